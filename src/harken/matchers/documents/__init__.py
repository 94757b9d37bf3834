"""The index of XPath subscriptions over XML documents: docs/xml.md describes how it works."""

from harken.matchers.documents.matcher import XPathMatcher

__all__ = ["XPathMatcher"]
