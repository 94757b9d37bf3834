"""Webhooks: send a signed message to a URL that a subscriber chose, safely.

    networks        the IP addresses that may be sent to: public ones, and those that the operator allows
    addresses       parse a URL strictly, and check every address of its host
    signing         the signature headers of a message (Standard Webhooks)
    call_outcomes   the outcome of one attempt
    sending         one attempt: connect to a checked address, post, read a limited answer within a deadline
    backoff         how long to wait before the next attempt
    hosts           which webhook is called next, so that no host delays the others

`server/delivering.py` decides what to send and when.
"""
