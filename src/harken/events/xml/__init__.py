"""XML documents as arrays: their tag paths, nodes and values, and how many documents come out of one file."""

from harken.events.xml.documents import Documents, numbers, read_document, read_documents
from harken.events.xml.tag_paths import TagPaths, current_tag_paths

__all__ = ["Documents", "TagPaths", "current_tag_paths", "numbers", "read_document", "read_documents"]
