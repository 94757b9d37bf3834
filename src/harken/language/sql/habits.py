"""What people write out of habit from SQL dialects and other languages, and what to write here instead."""

from __future__ import annotations

import re

from harken.language.functions import FUNCTIONS
from harken.schema.paths import format_path

_ANY_CASE = "= and LIKE tell upper from lower case: write lower(x) = 'get', or x ILIKE 'get%'"
_REGULAR = "a regular expression is written x RLIKE '^a+b'; in a LIKE pattern % stands for any characters"
_NO_CASTS = "there are no casts: a value has the type that the event, or the schema, gives it"
_NO_CLOCK = "there is no clock: write the time itself, TIMESTAMP '2026-01-31 12:00:00'"
_NO_CASE = "there is no CASE: join conditions with AND and OR"
_NO_ORDER = "write only the condition, as it would stand between WHERE and ORDER BY"
ONLY_CONDITION = "write only the condition, as it would follow WHERE"
_STARTS = "write x LIKE 'start%' or startswith(x, 'start')"
_ENDS = "write x LIKE '%end' or endswith(x, 'end')"
_INSIDE = "write x LIKE '%part%' to search in a string, tags CONTAINS 'red' to ask for a value of a set"
_OF_SET = "write tags CONTAINS 'red'"
_ABSENT = "write x IS NULL"
_PRESENT = "write x IS NOT NULL, or x IS NULL for its opposite"
_ANY = "write x IN (…) for a list of values, x LIKE ANY (…) for patterns, tags CONTAINS 'red' for a set"
_DATED = "write DATE '2026-01-31' or TIMESTAMP '2026-01-31 12:00:00', without parentheses"
_ONE_EVENT = "a condition is about one event, and knows nothing of others: nothing is counted or timed over several"
_NO_JOINING = "strings cannot be joined: write a condition for each part"
_NO_LAMBDAS = "conditions on a path hold within one element of its array: items.price > 3 AND items.qty = 2"
NO_FUNCTIONS = f"the functions are {', '.join([*FUNCTIONS, 'startswith', 'endswith', 'contains'])}"

OPERATORS: dict[str, str] = {
    **dict.fromkeys(("REGEXP_LIKE", "SIMILAR", "MATCHES", "MATCH", "GLOB"), _REGULAR),
    "XOR": "write (a OR b) AND NOT (a AND b)",
    **dict.fromkeys(("STARTSWITH", "STARTS", "BEGINS", "BEGINSWITH"), _STARTS),
    **dict.fromkeys(("ENDSWITH", "ENDS"), _ENDS),
    **dict.fromkeys(("HAS", "INCLUDES", "CONTAIN"), _INSIDE),
    "ISNULL": _ABSENT,
    **dict.fromkeys(("NOTNULL", "EXISTS"), _PRESENT),
    **dict.fromkeys(("EQ", "EQUALS"), "write ="),
    **dict.fromkeys(("NE", "NEQ"), "write <>"),
    "LT": "write <",
    "LE": "write <=",
    "LTE": "write <=",
    "GT": "write >",
    "GE": "write >=",
    "GTE": "write >=",
    "MOD": "write x % 2",
    "DIV": "write floor(x / 2)",
    "COLLATE": _ANY_CASE,
    **dict.fromkeys(("WHEN", "ELSE", "END"), _NO_CASE),
    **dict.fromkeys(("FOR", "WITHIN", "UNTIL", "DURING", "THEN", "FOLLOWED", "ONCE", "CHANGED", "OVER"), _ONE_EVENT),
    "HAVING": _ONE_EVENT,
    "AS": _NO_CASTS,
    **dict.fromkeys(("FROM", "WHERE"), ONLY_CONDITION),
    **dict.fromkeys(("ORDER", "GROUP", "LIMIT"), _NO_ORDER),
}
"""Words that stand where the language has an operator."""

PREFIXES: dict[str, str] = {
    "CASE": _NO_CASE,
    "EXISTS": _PRESENT,
    "SELECT": "there are no subqueries: list the values, x IN (1, 2)",
    "INTERVAL": _NO_CLOCK,
    "DATE": "write the date in quotes: DATE '2026-01-31'",
    "TIMESTAMP": "write the time in quotes: TIMESTAMP '2026-01-31 12:00:00'",
}
"""Words before an operand, at which the parser does not expect it."""

CLOCKS: dict[str, str] = dict.fromkeys(("NOW", "CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME"), _NO_CLOCK)
"""Names that other dialects read as the time of the query; here they are names."""

_FUNCTIONS: dict[str, str] = {
    **dict.fromkeys(("starts_with", "left"), _STARTS),
    **dict.fromkeys(("ends_with", "right"), _ENDS),
    **dict.fromkeys(("instr", "locate", "position", "charindex"), _INSIDE),
    **dict.fromkeys(("array_contains", "list_contains"), _OF_SET),
    **dict.fromkeys(("any", "some"), _ANY),
    "all": "join conditions with AND; for patterns write x LIKE ALL ('a%', '%b')",
    "isnull": _ABSENT,
    **dict.fromkeys(("isnotnull", "exists"), _PRESENT),
    **dict.fromkeys(("ifnull", "nvl"), "write coalesce(x, 1)"),
    **dict.fromkeys(("similar_to", "matches", "regexp_matches", "regexp_contains"), _REGULAR),
    **dict.fromkeys(("casefold", "initcap"), _ANY_CASE),
    **dict.fromkeys(("len", "octet_length", "bit_length"), "write length(x)"),
    **dict.fromkeys(("ltrim", "rtrim", "btrim"), "write trim(x)"),
    **dict.fromkeys(("cardinality", "array_length", "array_size"), "write size(x)"),
    **dict.fromkeys(("mod", "pmod"), "write x % 2"),
    **dict.fromkeys(("extract", "date_part"), "write year(x), month(x), day(x), hour(x) or dayofweek(x)"),
    **dict.fromkeys(("now", "current_timestamp", "current_date", "getdate", "today"), _NO_CLOCK),
    **dict.fromkeys(("date", "timestamp", "to_date", "to_timestamp"), _DATED),
    "cast": _NO_CASTS,
    **dict.fromkeys(("concat", "concat_ws"), _NO_JOINING),
    "count": f"{_ONE_EVENT}; size(tags) counts the values of a set",
    **dict.fromkeys(("sum", "avg", "mean", "min", "max", "median", "stddev", "variance", "percentile"), _ONE_EVENT),
    **dict.fromkeys(("first", "last", "first_value", "last_value", "lag", "lead", "rank", "row_number"), _ONE_EVENT),
}

SIGNS: dict[str, str] = {
    "==": "equality is written with one =",
    "===": "equality is written with one =",
    "!==": "write <>",
    "=>": "write >=",
    "=<": "write <=",
    "><": "write <>",
    "=!": "write <>",
    "<=>": "write =, and OR x IS NULL where a missing value is to match too",
    ":=": "equality is written with =",
    "->": "a path is written with points: a.b",
    "->>": "a path is written with points: a.b",
    "||": f"or is written OR; {_NO_JOINING}",
    "//": "a comment is written -- to the end of the line, or /* between */",
    **dict.fromkeys(("~", "!~", "=~", "!=~", "~*", "!~*", "~~", "!~~"), _REGULAR),
}
"""Signs that the language does not have, or only in part."""

CHARACTERS: dict[str, str] = {
    '"': "a string is written in single quotes, 'like this', and a name in backticks, `like this`",
    "'": "the string that starts here is not closed; inside a string a quote is written twice, ''",
    "`": "the name that starts here is not closed",
    **dict.fromkeys("\u2018\u2019\u201c\u201d\u00b4", "a string is written in straight single quotes, 'like this'"),
    "&": "write AND",
    "|": "write OR",
    "!": "write NOT, or <> for not equal",
    "?": "a variable is a question mark and a name: ?distance",
    ";": "a subscription is one expression, without a semicolon",
    **dict.fromkeys(":$", "there are no parameters: write the value itself"),
    "#": "a comment is written -- to the end of the line, or /* between */",
    **dict.fromkeys("[]", "a path goes through all elements of an array, without an index; IN takes (1, 2)"),
    **dict.fromkeys("{}", "there are no parameters and no braces: IN takes (1, 2)"),
    "\\": "a backslash has a meaning only in a LIKE pattern, which is written in quotes",
    "\u2260": "write <>",
    "\u2264": "write <=",
    "\u2265": "write >=",
    "\u2227": "write AND",
    "\u2228": "write OR",
    "\u00ac": "write NOT",
}
"""Characters that start no word and no sign of the language."""

ONE_NAME = "if this is one name, write it in backticks: "
_SIGN_RUN = re.compile(r"[-<>=!~*/:|]+")
_ARROWS = ("->", "=>")
_BEFORE_LAMBDA = re.compile(r"\w\s*\((?:[^()]{0,200},)?\s*\w+\s*\Z")
"""A call whose last argument so far is the parameter of a lambda."""
_JSON_KEY = re.compile(r"\s*['0-9]")
"""What follows an arrow into JSON, and hardly begins the body of a lambda."""
_OPENED_CALL = re.compile(r"([^\W\d]\w*)\s*\(\s*(?:DISTINCT\s+)?\Z", re.IGNORECASE)
_BEFORE = 300
"""Characters before a token that are searched for a call around it."""
_NAME_RUN = re.compile(r"[\w.@$#:/]+(?:-[\w.@$#:/]+)*")
_LONGEST_NAME = 80
"""The longest name that a hint repeats, in characters."""
_PLAIN_NAME = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:[eE]-?[0-9]+)?")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?")


def function_hint(name: str) -> str | None:
    """What to write in place of a function of other dialects."""
    return _FUNCTIONS.get(name.lower())


def sign_hint(text: str, at: int) -> str | None:
    """The hint for the run of signs that covers this offset of the text."""
    run, start = _run(_SIGN_RUN, text, at)
    if run in _ARROWS and _begins_lambda(text, start, run):
        return _NO_LAMBDAS
    return SIGNS.get(run.rstrip("-"))  # without the sign of a number


def _begins_lambda(text: str, at: int, arrow: str) -> bool:
    """Whether an arrow is that of a lambda, `x -> x > 3`, and leads to no key of JSON."""
    before = text[max(0, at - _BEFORE) : at]
    return _BEFORE_LAMBDA.search(before) is not None and _JSON_KEY.match(text, at + len(arrow)) is None


def opened_call(text: str, at: int) -> tuple[str, int, str] | None:
    """The name, the offset and the hint of a function of other dialects whose first argument is at this offset."""
    first = max(0, at - _BEFORE)
    call = _OPENED_CALL.search(text[first:at])
    hint = None if call is None else function_hint(call[1])
    return None if call is None or hint is None else (call[1], first + call.start(), hint)


def name_hint(text: str, at: int) -> str | None:
    """The hint for what stands at this offset if it may be one name that needs backticks, such as user-agent."""
    run = _run(_NAME_RUN, text, at)[0].rstrip(".:/")
    if len(run) > _LONGEST_NAME or _PLAIN_NAME.fullmatch(run) or run.startswith((".", ":", "/")) or ".." in run:
        return None
    if "::" in run:
        return _NO_CASTS
    if _UUID.fullmatch(run):
        return f"a UUID is a string: '{run}'"
    name = format_path(tuple(run.split(".")))
    if run[:1].isdecimal():
        return _number_hint(run, name)
    return f"{ONE_NAME}{name}" if name != run and _has_letter(run) else None


def _number_hint(run: str, name: str) -> str | None:
    """The hint for what starts with a digit and is not a name without backticks."""
    if _NUMBER.fullmatch(run):
        return None
    if _DATE.fullmatch(run):
        return f"a date is written DATE '{run}'"
    if ":" in run:
        return "a time is written TIMESTAMP '2026-01-31 12:00:00'"
    if _has_letter(run):
        return f"a number is written with digits, 1000 or 1.5 or 1e6; a name is written in backticks: {name}"
    return None


def _has_letter(run: str) -> bool:
    return any(each.isalpha() or each == "_" for each in run)


def starts_before(text: str, at: int) -> bool:
    """Whether a possible name began before this offset."""
    run, start = _run(_NAME_RUN, text, at)
    return bool(run) and start < at


def _run(pattern: re.Pattern[str], text: str, at: int) -> tuple[str, int]:
    """The match of a pattern that covers this offset, and where it starts; "" if there is none."""
    line = text.rfind("\n", 0, at) + 1
    for run in pattern.finditer(text, line):
        if run.start() > at:
            break
        if at < run.end():
            return run[0], run.start()
    return "", at
