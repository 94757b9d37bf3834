"""Models of the answers, for the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from harken.server.models import ThrottleModel


class TakenModel(BaseModel):
    id: str
    ticket: Annotated[str, Field(description="Shown once. It opens, renews, changes and deletes the subscription.")]
    expires_at: str
    warnings: list[str] | None = None
    webhook_secret: str | None = None


class ExpiresModel(BaseModel):
    id: str
    expires_at: str
    warnings: list[str] | None = None
    webhook_secret: Annotated[str | None, Field(description="Shown once, if the webhook is new.")] = None


class RedeliveredModel(BaseModel):
    redelivered: int


class TokenModel(BaseModel):
    token: str
    expires_at: str


class StreamTokenModel(TokenModel):
    cursor: Annotated[
        str, Field(description="The last notification so far: a stream `after` it misses none that follow.")
    ]


class OutlineModel(BaseModel):
    """A listed subscription that the caller cannot open."""

    id: str
    language: str
    expires_at: str


class ShownDeliveryModel(BaseModel):
    """A delivery, without the webhook's secret."""

    format: Literal["plain", "cloudevents"]
    webhook: dict[Literal["url"], str] | None = None
    max_delay: float | None = None
    throttle: ThrottleModel | None = None


class WebhookStateModel(BaseModel):
    """The progress of a webhook."""

    state: Annotated[
        Literal["active", "waiting", "failing", "stopped"],
        Field(description="`failing`: the last notification was given up, and none waits."),
    ]
    failures: Annotated[int, Field(description="Calls that failed since the last that succeeded.")]
    acknowledged: Annotated[str, Field(description="The last notification that was delivered or given up.")]
    dead: Annotated[int, Field(description="Notifications that were given up.")]
    next_attempt_at: str | None = None
    failing_since: Annotated[str | None, Field(description="When the first of these calls failed.")] = None
    last_error: str | None = None


class ShownModel(OutlineModel):
    """A subscription."""

    where: str
    owner: str | None
    labels: dict[str, str]
    created_at: str
    delivery: ShownDeliveryModel
    webhook: WebhookStateModel | None = None


class ListModel(BaseModel):
    subscriptions: list[ShownModel | OutlineModel]
    next: str | None


class RejectionModel(BaseModel):
    model_config = ConfigDict(extra="allow")
    position: int
    error: str
    message: str


class PublishedModel(BaseModel):
    accepted: int
    rejected: list[RejectionModel]
    duplicates: int | None = None


class MatchesModel(BaseModel):
    matches: list[list[str]]
    rejected: list[RejectionModel]


class NotificationModel(BaseModel):
    id: Annotated[str, Field(description="An increasing decimal number, which is also a cursor.")]
    subscription: str
    event: Annotated[Any, Field(description="As it was published, XML as a string; null once it is deleted.")]
    event_gone: Annotated[str | None, Field(description="Why the event is null.")] = None
    event_id: str
    time: str
    suppressed: Annotated[int | None, Field(description="Notifications suppressed by the throttle before this.")] = None


class CloudNotificationModel(BaseModel):
    """A notification as a CloudEvent."""

    specversion: Literal["1.0"]
    type: str
    source: str
    id: str
    subject: Annotated[str, Field(description="The subscription.")]
    time: str
    datacontenttype: Literal["application/json"]
    data: NotificationModel


class NotificationsModel(BaseModel):
    notifications: list[NotificationModel | CloudNotificationModel]
    next: str


class DeadLetterModel(BaseModel):
    """A notification that a webhook did not accept in any attempt."""

    id: str
    event: Any
    event_gone: Annotated[str | None, Field(description="Why the event is null.")] = None
    time: str
    failed_at: str
    attempts: int
    reason: str


class DeadLettersModel(BaseModel):
    dead_letters: list[DeadLetterModel]
    next: str | None


class CheckedModel(BaseModel):
    ok: bool
    warnings: list[str]


class MetModel(BaseModel):
    """The values of an attribute in the event that a clause tests, and the one for which it is true."""

    attribute: str
    values: list[Any]
    picked: Any = None


class ClauseModel(BaseModel):
    """A part of an expression with its truth: true, false, or null for unknown."""

    text: str
    truth: bool | None
    values: list[MetModel] | None = None
    note: str | None = None
    parts: list[ClauseModel] | None = None


class ExplainedModel(BaseModel):
    matched: bool
    tree: ClauseModel
    text: Annotated[str, Field(description="The tree as lines of text.")]


class ExampleModel(BaseModel):
    event_id: str
    time: str
    event: Any


class BacktestedModel(BaseModel):
    looked_at: int
    matched: int
    examples: Annotated[list[ExampleModel], Field(description="The newest first.")]
    since: Annotated[str | None, Field(alias="from")]
    to: str | None


class SchemaModel(BaseModel):
    """A schema, as data and as the text of a schema file."""

    version: int | None
    toml: str
    domains: dict[str, dict[str, Any]]
    attributes: Annotated[dict[str, str], Field(description="Domains by attribute.")]
    event_types: Annotated[dict[str, dict[str, str]], Field(description="Rules by event type and attribute.")]


class VersionModel(BaseModel):
    version: int


class ShownKeyModel(BaseModel):
    """An API key, without the key."""

    id: str
    owner: str
    scopes: list[str]
    name: str | None
    created_at: str


class NewKeyModel(ShownKeyModel):
    key: Annotated[str, Field(description="Shown once.")]


class KeysModel(BaseModel):
    keys: list[ShownKeyModel]


class ProblemModel(BaseModel):
    """An error (RFC 9457), with the place in a text if there is one."""

    type: str
    title: str
    status: int
    detail: str
    line: int | None = None
    column: int | None = None
    excerpt: str | None = None
    hint: str | None = None
    limit: str | None = None
    request_id: str | None = None
