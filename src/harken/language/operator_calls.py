"""Checks calls of operators against their signatures."""

from __future__ import annotations

from harken.errors import CheckError, HarkenError, LanguageError, did_you_mean
from harken.language.ast import Attribute, Call, Constant, Variable
from harken.schema import Schema
from harken.schema.signatures import OperatorSignature, Signatures
from harken.schema.values import show

_SHOWN = 8


def call_faults(call: Call, signatures: Signatures, schema: Schema | None) -> list[tuple[LanguageError, int]]:
    """The faults of a call, each with its offset in the text."""
    signature = signatures.get(call.name)
    if signature is not None:
        return _argument_faults(call, signature, schema)
    near = did_you_mean(call.name, signatures) or did_you_mean(call.name, signatures, case_sensitive=False)
    known = ", ".join(str(each) for each in list(signatures.values())[:_SHOWN])
    return [(CheckError(f"there is no operator `{call.name}`", hint=near or f"there is {known}"), call.at)]


def _argument_faults(
    call: Call, signature: OperatorSignature, schema: Schema | None
) -> list[tuple[LanguageError, int]]:
    least, most = signature.least, len(signature.parameters)
    if not least <= len(call.arguments) <= most:
        wanted = f"{most}" if least == most else f"{least} to {most}"
        noun = "argument" if wanted == "1" else "arguments"
        message = f"`{call.name}` takes {wanted} {noun}, not {len(call.arguments)}"
        return [(CheckError(message, hint=f"the signature is {signature}"), call.at)]
    faults: list[tuple[LanguageError, int]] = []
    for argument, parameter in zip(call.arguments, signature.parameters, strict=False):
        named = f"the {parameter.name} of `{call.name}`"
        if isinstance(argument, Variable):
            if not parameter.may_be_free:
                error = CheckError(f"{named} cannot be a variable", hint=f"the signature is {signature}")
                faults.append((error, argument.at))
            continue
        kind = argument.kind if isinstance(argument, Constant) else None
        shown = f"the {kind} {show(argument.value)}" if isinstance(argument, Constant) else ""
        if isinstance(argument, Attribute) and schema is not None:
            domain = schema.domain_of(argument.path)
            if domain is None:
                faults.append((CheckError(f"the schema has no attribute `{argument.name}`"), argument.at))
                continue
            kind, shown = domain.kind, f"`{argument.name}` ({domain.describe()})"
        if kind is not None and parameter.kind is not None and kind is not parameter.kind:
            faults.append((CheckError(f"{named} is a {parameter.kind}, and this is {shown}"), argument.at))
        elif isinstance(argument, Constant) and parameter.check is not None:
            try:
                parameter.check(argument.value)
            except HarkenError as problem:
                faults.append((CheckError(f"{named}: {problem.message}", hint=problem.hint), argument.at))
            except ValueError as problem:
                faults.append((CheckError(f"{named}: {problem}"), argument.at))
    return faults
