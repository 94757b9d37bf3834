"""The semantics of subscriptions in the plainest code: the law, and the oracle of the tests.

It shares the AST, the schema, errors and limits with what it judges, and no other code.
"""
