"""Webhooks: send one signed message to a URL that a subscriber chose, without letting that URL do harm.

    networks    which IP addresses are public, and so may be sent to
    addresses   a URL, parsed strictly, and the addresses of its host, each one checked
    signing     the headers by which a receiver knows who sent a message (Standard Webhooks)
    outcomes    what became of one attempt
    sending     the attempt: connect to a checked address, post, read a bounded answer within a deadline
    backoff     how long to wait before the next attempt
    hosts       which of the messages that are due are sent next, so that no host holds up the others

When to send, and what has been sent, is decided and kept elsewhere.
"""
