"""The live set of subscriptions: ids and numbers, changes, loading and saving, and the results of matching."""
