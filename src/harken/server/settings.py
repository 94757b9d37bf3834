"""What a server is started with: every limit, period and place, by name."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

DAY = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The settings of one server. Periods are in seconds."""

    store: str = "harken.db"
    """A path for SQLite, or a URL of PostgreSQL."""
    snapshot: str | None = None
    """The folder that the index is saved to; None: beside the SQLite file, or in the user's cache."""
    operators: tuple[str, ...] = ()
    """Operators that subscriptions may call, as "module:name"."""
    schema: str | None = None
    """A schema file, for a store that has no schema yet."""
    secrets_keys: tuple[str, ...] = field(default=(), repr=False)
    """What the secrets of webhooks are encrypted with: the first encrypts, and any decrypts."""
    api_keys: bool = False
    """Whether publishing and subscribing need an API key."""
    cors_origins: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    """Names by which clients may ask the server, besides those of the machine itself; "*" is any name."""

    valid_for: float = DAY
    """How long a subscription is valid unless it asks otherwise."""
    max_valid_for: float = 366 * DAY
    max_body_bytes: int = 32 << 20
    """Bytes of a request. Subscriptions in bulk are read line by line, and may be longer."""
    max_batch_events: int = 10_000
    """Events of one request."""
    max_matches: int = 2_000_000
    """Notifications of one request: they are one transaction."""
    max_waiting_events: int = 100_000
    """Events that wait to be matched. Beyond, publishers are told to come back."""
    max_subscriptions_per_owner: int = 1_000_000
    max_label_bytes: int = 4_096
    max_requests_per_second: float = 0.0
    """Requests of one caller, in the long run; 0: as many as it likes."""
    request_burst: int = 100
    """Requests of one caller at once, where the rate is limited."""
    max_streams: int = 10_000
    """Open streams."""
    max_streams_per_caller: int = 1_000
    max_stream_subscriptions: int = 1_000
    """Subscriptions on one stream, or in one question for notifications."""
    max_page: int = 1_000
    """Rows of one answer."""
    max_answer_bytes: int = 16 << 20
    """Bytes of events or texts in one page. It ends early, after one row at least: a larger one comes alone."""
    max_backtests: int = 1
    """Back-tests at one time. Each has a thread, and nobody else waits for it."""
    max_backtest_bytes: int = 64 << 20
    """Bytes of events that one back-test reads."""
    backtest_timeout: float = 10.0
    """How long one back-test may take."""

    keep_alive: float = 75.0
    """How long a connection without requests stays open. It has to be longer than clients and proxies keep theirs:
    else one of them sends a request while the connection is being closed, and gets no answer."""
    header_timeout: float = 30.0
    """How long a client may take to send the head of a request, from when it connects; 0: as long as it likes."""
    max_header_bytes: int = 1 << 20
    """Bytes of the head of a request."""
    body_timeout: float = 30.0
    """After so long without `min_body_rate` a body that is not whole is given up; 0: never."""
    min_body_rate: int = 500
    """Bytes a second that a client sends of a body, in the mean of each `body_timeout`."""
    ping_period: float = 15.0
    """A stream that has nothing to tell says so."""
    stream_timeout: float = 60.0
    """A stream whose client reads nothing for so long is closed."""
    token_valid_for: float = 300.0
    """How long a token opens a stream."""
    journal_age: float = 7 * DAY
    """Events are kept this long."""
    journal_bytes: int = 8 << 30
    """Bytes of events that are kept, besides those of the last transaction. The oldest go first."""
    answer_age: float = DAY
    """How long a repeated publish is recognised."""
    change_age: float = 7 * DAY
    """How long the log of changes reaches back at least."""
    snapshot_changes: int = 20_000
    """Changes after which the index is saved again."""
    drain_timeout: float = 20.0
    """How long a server that is told to stop waits for requests that are under way."""

    webhook_networks: tuple[Network, ...] = ()
    """Networks that webhooks may be in although they are private, as a subnet."""
    webhook_timeout: float = 15.0
    webhook_parallel: int = 256
    """Webhooks that are called at once."""
    webhook_delays: tuple[float, ...] = field(
        default=(5, 30, 120, 600, 1_800, 3_600, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
    )
    """How long to wait after each failure. After the last a notification is given up."""
    max_digest: int = 1_000
    """Notifications of one digest."""
    max_digest_bytes: int = 4 << 20
    """Bytes of the events of one digest, of which it has one at least."""
