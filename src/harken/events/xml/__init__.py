"""XML documents as arrays of tag paths, nodes and values, and the splitting of files into documents."""

from harken.events.xml.documents import Documents, numbers, read_document, read_documents
from harken.events.xml.tag_paths import TagPaths, current_tag_paths

__all__ = ["Documents", "TagPaths", "current_tag_paths", "numbers", "read_document", "read_documents"]
