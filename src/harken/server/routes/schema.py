"""Routes for the schema: read it, and the four ways in which publishers may extend it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from harken.errors import SchemaError
from harken.schema import Schema
from harken.schema.domain_tables import domain_from_table, domain_to_table
from harken.schema.event_types import EventType
from harken.schema.extensions import Extension, NewAttribute, NewDomain, NewEventType, NewOptionalAttribute
from harken.schema.paths import Path, format_path, parse_path
from harken.schema.schema_files import format_schema, parse_rule
from harken.server.access import PUBLISH, SUBSCRIBE, Requester
from harken.server.http_answers import SchemaModel, VersionModel
from harken.server.models import AttributeModel, DomainModel, EventTypeModel, OptionalAttributeModel
from harken.server.requests import CallerOf, ServiceOf, problems
from harken.server.service import Service

router = APIRouter(tags=["schema"])
_PROBLEMS = problems(409, body=True)


@router.get("/schema", response_model=SchemaModel, responses=problems())
async def schema(service: ServiceOf, caller: CallerOf) -> Any:
    """The schema, as data and as the text of a schema file. Without a schema, the version is null."""
    caller.require(PUBLISH, SUBSCRIBE)
    current = service.index.engine.schema
    if current is None:
        return {"version": None, "toml": "", "domains": {}, "attributes": {}, "event_types": {}}
    return {
        "version": current.version,
        "toml": format_schema(current),
        "domains": {name: domain_to_table(each) for name, each in current.domains.items()},
        "attributes": {format_path(path): domain.name for path, domain in current.attributes.items()},
        "event_types": {
            name: {format_path(path): str(rule) for path, rule in each.rules.items()}
            for name, each in current.event_types.items()
        },
    }


@router.post("/schema/domains", status_code=201, response_model=VersionModel, responses=_PROBLEMS)
async def new_domain(body: DomainModel, service: ServiceOf, caller: CallerOf) -> Any:
    """Add a domain, with the keys of a schema file."""
    table = {name: value for name, value in body.model_dump().items() if name != "name"}
    domain, faults = domain_from_table(body.name, table)
    if domain is None or faults:
        raise faults[0][1]
    return await _extended(NewDomain(domain), service, caller)


@router.post("/schema/attributes", status_code=201, response_model=VersionModel, responses=_PROBLEMS)
async def new_attribute(body: AttributeModel, service: ServiceOf, caller: CallerOf) -> Any:
    """Add an attribute with a domain, which is built in or one of the schema's."""
    return await _extended(NewAttribute(_path(body.name), body.domain), service, caller)


@router.post("/schema/optional-attributes", status_code=201, response_model=VersionModel, responses=_PROBLEMS)
async def new_optional_attribute(body: OptionalAttributeModel, service: ServiceOf, caller: CallerOf) -> Any:
    """Add an optional attribute to an event type."""
    extension = NewOptionalAttribute(body.event_type, _path(body.attribute), body.multiple)
    return await _extended(extension, service, caller)


@router.post("/schema/event-types", status_code=201, response_model=VersionModel, responses=_PROBLEMS)
async def new_event_type(body: EventTypeModel, service: ServiceOf, caller: CallerOf) -> Any:
    """Add an event type with the rules of its attributes, such as `mandatory` or `optional multiple`."""
    rules = {_path(name): parse_rule(rule, name) for name, rule in body.attributes.items()}
    return await _extended(NewEventType(EventType(body.name, rules)), service, caller)


async def _extended(extension: Extension, service: Service, caller: Requester) -> dict[str, int]:
    caller.require(PUBLISH)
    extended: Schema = await service.subscriptions.extend_schema(extension)
    return {"version": extended.version}


def _path(name: str) -> Path:
    """The path of an attribute. Raises SchemaError."""
    try:
        return parse_path(name)
    except ValueError as error:
        raise SchemaError(str(error)) from None
