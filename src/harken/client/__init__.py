"""Clients of a Harken server: `harken.Client` and `harken.AsyncClient`, which have the same methods.

What is sent and how answers are read is written once, without input or output: `exchange` has requests, answers and
retries, the modules of calls have a flow for each method, and `listening` has the stream of notifications. `blocking`
and `asynchronous` run these over httpx, which is imported when a client is made.
"""

from __future__ import annotations

from harken.client.answers import (
    Backtested,
    Changed,
    DeadLetter,
    Example,
    Explained,
    LineReport,
    Matched,
    Notification,
    NotificationPage,
    Published,
    Rejected,
    SubscriptionState,
    Ticketed,
)
from harken.client.asynchronous import AsyncClient
from harken.client.blocking import Client
from harken.client.client_errors import ServerError, UnreachableError
from harken.client.delivery import Delivery, Throttle, Webhook
from harken.client.exchange import Backoff

__all__ = [
    "AsyncClient",
    "Backoff",
    "Backtested",
    "Changed",
    "Client",
    "DeadLetter",
    "Delivery",
    "Example",
    "Explained",
    "LineReport",
    "Matched",
    "Notification",
    "NotificationPage",
    "Published",
    "Rejected",
    "ServerError",
    "SubscriptionState",
    "Throttle",
    "Ticketed",
    "UnreachableError",
    "Webhook",
]
