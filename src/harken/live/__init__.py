"""The live set of subscriptions: what they are, their numbers, their changes, and what is saved of them."""
