"""Why an event matches a subscription or does not, as a tree with the truth of every part."""
