"""The index of XPath subscriptions over XML documents: docs/xml.md tells how it works."""

from harken.matchers.documents.matcher import XPathMatcher

__all__ = ["XPathMatcher"]
