"""The XPath front end: branching XPath 1.0 paths with value predicates, as subscriptions to XML documents.

`ast` has the nodes of an expression. `tokens`, `grammar` and `parser` make it of a text, `syntax_errors` words what
they refuse, `printer` writes it, `doubts` warns of it, and `plan` is what it is compiled to.
"""
