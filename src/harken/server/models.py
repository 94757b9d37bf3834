"""Models of the bodies of requests."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("the text has characters that cannot be printed")
    return text


# Checking the length also rejects lone surrogates, as "\ud800" in JSON, which no answer could contain.
Seconds = Annotated[float, Field(gt=0, le=1e10, allow_inf_nan=False)]
Id = Annotated[str, Field(min_length=1, max_length=200)]
Owner = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_printable)]
Label = Annotated[str, Field(max_length=1_000_000)]
Text = Annotated[str, Field(max_length=10_000_000)]
Name = Annotated[str, Field(min_length=1, max_length=1_000), AfterValidator(_printable)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class WebhookModel(_Model):
    """Where to send notifications, and the secret to sign them with. Without one, the server makes a secret."""

    url: Annotated[str, Field(max_length=2_048, examples=["https://example.com/hooks/prices"])]
    secret: Annotated[
        str | None, Field(max_length=200, description="`whsec_` and base64, after Standard Webhooks.")
    ] = None


class ThrottleModel(_Model):
    """At most `count` notifications in `seconds`. The next notification says how many were suppressed."""

    count: Annotated[int, Field(ge=1, le=1_000_000)]
    seconds: Seconds


class DeliveryModel(_Model):
    """How to be notified. Without it, the subscriber polls for notifications or opens a stream."""

    webhook: WebhookModel | None = None
    format: Literal["plain", "cloudevents"] = "plain"
    max_delay: Annotated[
        float, Field(ge=0, le=86_400, description="Seconds that notifications may wait to be sent together.")
    ] = 0.0
    throttle: ThrottleModel | None = None


class ChangeModel(_Model):
    """The new content of a subscription."""

    where: Annotated[Text, Field(examples=["category = 'Toy' AND price < 5"])]
    language: Annotated[str, Field(max_length=50, examples=["sql", "xpath"])] = "sql"
    labels: dict[Label, Label] = Field(default_factory=dict)
    valid_for: Annotated[
        Seconds | None,
        Field(
            description="Seconds. By default, a change keeps the validity, and a new subscription gets the server's."
        ),
    ] = None
    delivery: DeliveryModel | None = None


class SubscriptionModel(ChangeModel):
    """A new subscription."""

    id: Id | None = None
    owner: Owner | None = None


class RenewModel(_Model):
    valid_for: Seconds | None = None


class RedeliverModel(_Model):
    """Which notifications to send again: by id, all dead letters, or all after a cursor."""

    notifications: list[str] | None = Field(default=None, max_length=10_000)
    dead: bool = False
    after: str | None = None


class CheckModel(_Model):
    where: Text
    language: Annotated[str, Field(max_length=50)] = "sql"


class ExplainModel(_Model):
    """A subscription's id, which needs its ticket, or a text; and an event, XML as a string."""

    subscription: Id | None = None
    where: Text | None = None
    language: Annotated[str, Field(max_length=50)] = "sql"
    event: dict[str, Any] | str


class BacktestModel(CheckModel):
    events: Annotated[int, Field(ge=1, le=100_000, description="How many of the newest events to match.")] = 10_000
    limit: Annotated[int, Field(ge=0, le=1_000, description="How many examples to show.")] = 20


class DomainModel(BaseModel):
    """A domain, with the keys of a schema file: type, values, order, children, low, high."""

    model_config = ConfigDict(extra="allow")
    name: Name
    type: Name

    @model_validator(mode="after")
    def reject_lone_surrogates(self) -> DomainModel:
        json.dumps(self.model_extra, ensure_ascii=False).encode()  # raises a ValueError
        return self


class AttributeModel(_Model):
    name: Name
    domain: Name


class OptionalAttributeModel(_Model):
    event_type: Name
    attribute: Name
    multiple: bool = False


class EventTypeModel(_Model):
    name: Name
    attributes: dict[Name, Name] = Field(examples=[{"price": "mandatory", "tags": "optional multiple"}])


class KeyModel(_Model):
    owner: Owner
    scopes: Annotated[list[Literal["publish", "subscribe", "admin"]], Field(min_length=1)]
    name: Annotated[str | None, Field(max_length=200)] = None
