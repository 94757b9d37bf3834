"""The settings of a server: limits, periods and locations, by name."""

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
    """The folder for snapshots of the index; None: beside the SQLite file, or in the user's cache."""
    operators: tuple[str, ...] = ()
    """Operators that subscriptions may call, as "module:name"."""
    schema: str | None = None
    """A schema file, for a store that has no schema yet."""
    secrets_keys: tuple[str, ...] = field(default=(), repr=False)
    """The keys for the secrets of webhooks: the first encrypts, all decrypt."""
    api_keys: bool = False
    """Whether publishing and subscribing need an API key."""
    cors_origins: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    """Host names that requests may have, besides `localhost` and its addresses; "*" is any name."""

    valid_for: float = DAY
    """How long a subscription is valid if its request does not say."""
    max_valid_for: float = 366 * DAY
    max_body_bytes: int = 32 << 20
    """Most bytes of a request. Subscriptions in bulk are read line by line, and may be longer."""
    max_batch_events: int = 10_000
    """Most events of one request."""
    max_matches: int = 2_000_000
    """Most notifications of one request, which are written in one transaction."""
    max_waiting_events: int = 100_000
    """Most events that wait to be matched. Further ones are rejected with status 429."""
    max_subscriptions_per_owner: int = 1_000_000
    max_label_bytes: int = 4_096
    max_requests_per_second: float = 0.0
    """Requests of one caller in the long run; 0: no limit."""
    request_burst: int = 100
    """Requests of one caller at once, if the rate is limited."""
    max_streams: int = 10_000
    """Most open streams."""
    max_streams_per_caller: int = 1_000
    max_stream_subscriptions: int = 1_000
    """Most subscriptions of one stream, or of one request for notifications."""
    max_page: int = 1_000
    """Most rows of one answer."""
    max_answer_bytes: int = 16 << 20
    """Bytes of events or texts after which a page ends early. It has at least one row, however large."""
    max_backtests: int = 1
    """Most back-tests at one time. Each has a thread of its own."""
    max_backtest_bytes: int = 64 << 20
    """Most bytes of events that one back-test reads."""
    backtest_timeout: float = 10.0
    """How long one back-test may take."""

    keep_alive: float = 75.0
    """How long an idle connection stays open. It has to be longer than the keep-alive of clients and proxies, or one of
    them may send a request while the connection is being closed, and get no answer."""
    header_timeout: float = 30.0
    """How long a client may take to send the head of a request, from when it connects; 0: no limit."""
    max_header_bytes: int = 1 << 20
    """Most bytes of the head of a request."""
    body_timeout: float = 30.0
    """A request whose body arrives slower than `min_body_rate` for this long is rejected; 0: never."""
    min_body_rate: int = 500
    """Fewest bytes a second of a body, on average over each `body_timeout`."""
    ping_period: float = 15.0
    """After this long without a notification, a stream sends a ping."""
    stream_timeout: float = 60.0
    """A stream is closed if its client reads nothing for this long."""
    token_valid_for: float = 300.0
    """How long a token opens a stream."""
    journal_age: float = 7 * DAY
    """Events are kept this long."""
    journal_bytes: int = 8 << 30
    """Bytes of events that are kept, besides those of the last transaction. The oldest are deleted first."""
    answer_age: float = DAY
    """How long repetitions of a publishing request are recognised."""
    change_age: float = 7 * DAY
    """How far the change log reaches back, at least."""
    snapshot_changes: int = 20_000
    """Changes after which the index is saved again."""
    drain_timeout: float = 20.0
    """How long a stopping server waits for requests in progress."""

    webhook_networks: tuple[Network, ...] = ()
    """Private networks that webhooks may be in."""
    webhook_timeout: float = 15.0
    webhook_parallel: int = 256
    """Most webhooks that are called at once."""
    webhook_delays: tuple[float, ...] = field(
        default=(5, 30, 120, 600, 1_800, 3_600, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
    )
    """How long to wait after each failed attempt. After the last, a notification is given up."""
    max_digest: int = 1_000
    """Most notifications of one digest."""
    max_digest_bytes: int = 4 << 20
    """Most bytes of the events of one digest. It has at least one, however large."""
