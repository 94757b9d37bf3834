"""The XPath front end: branching XPath 1.0 paths with value predicates, as subscriptions to XML documents.

`ast` has the nodes of an expression. `tokens`, `grammar` and `parser` parse a text, `syntax_errors` words their errors,
`printer` writes an expression, `path_doubts` gives warnings about it, and `document_plan` is its plan.
"""
