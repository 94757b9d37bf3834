"""The report as one self-contained HTML page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from harken.language.explanation import Clause
from harken_lab.demo.layouts import LAYOUTS, as_sentences, attribute_of, reached
from harken_lab.demo.outcome import DemoOutcome, ExplainedSubscription
from harken_lab.demo.plots import Bar, bars, columns, day, doubling, gantt, heat
from harken_lab.demo.timeline import INDEX, MATCH, NOTIFY

_CATEGORIES = 14
_GROUPS = 12
_CUT = 150
_RUN_AGAIN = "harken run harken-demo/pipeline.toml --dry-run\nharken run harken-demo/pipeline.toml"
_BESIDE = (
    "Beside this page lie the events, the subscriptions, the configuration of the pipeline, the notifications as "
    "Parquet, the dead letters and the metrics as JSON lines, and Spark's event log."
)
_TRUTHS: dict[bool | None, str] = {True: "true", False: "false", None: "unknown"}
_KINDS = {
    "bargain": "something cheap, just listed",
    "maker": "things of one maker",
    "trusted": "from good sellers, within a range",
    "watch-list": "certain lots",
    "last-call": "ends soon, with few bids",
    "seller": "whatever one seller does",
    "collector": "signed, boxed, with a word in the title",
    "no-reserve": "without a reserve",
    "either-or": "one thing or another",
    "below-estimate": "price below the reserve",
    "desk": "the staff of the house",
}


def page(outcome: DemoOutcome, command: str) -> str:
    """The whole report. `command` is what makes the same day again."""
    style = files(__package__).joinpath("page.css").read_text("utf-8")
    parts = (
        _head(outcome),
        _tiles(outcome),
        _day(outcome),
        _categories(outcome),
        _spread(outcome),
        _subscriptions(outcome),
        _explained(outcome),
        _letters(outcome),
        _time(outcome),
        _plan(outcome),
        _again(outcome, command),
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>A day of auctions, matched by Harken</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(parts)
        + "\n</main>\n</body>\n</html>\n"
    )


def _head(outcome: DemoOutcome) -> str:
    return (
        "<header><h1>A day at the auction house</h1>"
        f'<p class="lead">{outcome.events:,} events came in. {outcome.rejected:,} were rejected as broken or invalid, '
        f"{outcome.duplicates:,} were duplicates of earlier ones, and the other {outcome.matched:,} were matched with "
        f"{outcome.subscriptions:,} subscriptions. That makes {outcome.matched:,} × {outcome.subscriptions:,} = "
        f"{outcome.pairs:,} pairs of an event and a subscription. Each pair has the same answer as if it had been "
        f"evaluated alone: {outcome.notifications:,} of them match, and each match is a notification.</p>"
        '<p class="soft">The market is made up; every number below was read back from what the pipeline wrote.</p>'
        "</header>"
    )


def _tiles(outcome: DemoOutcome) -> str:
    match = outcome.seconds(MATCH)
    tiles = {
        "events came in": f"{outcome.events:,}",
        "of them were matched": f"{outcome.matched:,}",
        "subscriptions": f"{outcome.subscriptions:,}",
        "notifications": f"{outcome.notifications:,}",
        "events a second, decoded, joined and matched": f"{outcome.matched / match:,.0f}" if match else "–",
        "bytes a subscription in the index": _decimal(outcome.plan["bytes"] / max(1, outcome.subscriptions)),
        "seconds for the whole pipeline": _decimal(outcome.metrics["seconds"]),
    }
    shown = "".join(f"<div><b>{value}</b><span>{name}</span></div>" for name, value in tiles.items())
    return f'<div class="tiles">{shown}</div>'


def _day(outcome: DemoOutcome) -> str:
    return _section(
        "The day",
        "Notifications a minute, and below them the events that caused them. Auctions end at full hours in the "
        "evening, and reminders go out ten minutes before.",
        day(outcome.notifications_by_minute, "notifications", "one"),
        day(outcome.events_by_minute, "events", "three"),
    )


def _categories(outcome: DemoOutcome) -> str:
    rows = [
        Bar(name, count, f"{count:,}", f"{outcome.events_by_category.get(name, 0):,} events")
        for name, count in list(outcome.notifications_by_category.items())[:_CATEGORIES]
    ]
    hours = heat(dict(outcome.by_area_and_hour), "notifications")
    return _pair(
        _section("What the notifications are about", "Notifications of the categories that have most.", bars(rows)),
        _section("When they were sent", "Notifications by hour of the day and part of the house.", hours),
    )


def _spread(outcome: DemoOutcome) -> str:
    events = [
        Bar(name, count, f"{count:,}", f"{count:,} events") for name, count in doubling(outcome.matches_of_events)
    ]
    subscriptions = [
        Bar(name, count, f"{count:,}", f"{count:,} subscriptions")
        for name, count in doubling(outcome.notifications_of_subscriptions)
    ]
    mean, most = outcome.notifications / max(1, outcome.matched), len(outcome.matches_of_events) - 1
    return _pair(
        _section(
            "Matches of an event",
            f"How many subscriptions an event matches: {_decimal(mean)} on average, {most:,} at most.",
            columns(events),
        ),
        _section(
            "Notifications of a subscription",
            f"How many notifications a subscription had. {outcome.owners:,} people had at least one.",
            columns(subscriptions, "three"),
        ),
    )


def _subscriptions(outcome: DemoOutcome) -> str:
    busiest = _table(
        ("notifications", "owner", "subscription"),
        ((f"{each.count:,}", escape(each.owner), f"<code>{escape(each.where)}</code>") for each in outcome.busiest),
        numbers={0},
    )
    kinds = _table(
        ("kind", "subscriptions", "notifications"),
        (
            (f"{escape(_KINDS.get(kind, kind))}", f"{subscribed:,}", f"{notified:,}")
            for kind, (subscribed, notified) in sorted(outcome.by_kind.items(), key=lambda pair: -pair[1][0])
        ),
        numbers={1, 2},
    )
    return _section(
        "The busiest subscriptions", "Of subscriptions with the same text, one is shown.", busiest
    ) + _section("Kinds of subscriptions", "", kinds)


def _explained(outcome: DemoOutcome) -> str:
    if outcome.hit is None or outcome.event is None:
        return ""
    event = escape(json.dumps(outcome.event, ensure_ascii=False))
    stories = [_story(outcome.hit, "matches this event")]
    if outcome.near_miss is not None:
        stories.append(_story(outcome.near_miss, "misses it narrowly"))
    return _section(
        "Why, and why not",
        "For every event and every subscription Harken can show which parts hold.",
        f"<pre>{event}</pre>",
        f'<div class="pair" style="margin-top:16px">{"".join(stories)}</div>',
    )


def _story(subscription: ExplainedSubscription, verdict: str) -> str:
    mark = "yes" if subscription.explanation.matched else "no"
    return (
        f'<div><p><b>{escape(subscription.owner)}</b> <span class="verdict {mark}">{verdict}</span><br>'
        f"<small><code>{escape(subscription.id)}</code></small></p>"
        f'<ul class="tree">{_tree(subscription.explanation.tree)}</ul></div>'
    )


def _tree(part: Clause) -> str:
    met = f' <span class="soft">({escape(part.values)})</span>' if part.met else ""
    note = f' <span class="soft">{escape(part.note)}</span>' if part.note is not None else ""
    below = f"<ul>{''.join(map(_tree, part.parts))}</ul>" if part.parts else ""
    return f'<li><span class="{_TRUTHS[part.truth]}"><code>{escape(part.text)}</code>{met}{note}</span>{below}</li>'


def _letters(outcome: DemoOutcome) -> str:
    count = sum(outcome.letters_by_reason.values())
    kinds = _table(
        ("events", "rejected at", "reason"),
        (
            (f"{number:,}", escape(stage), escape(_cut(reason)))
            for (stage, reason), number in sorted(outcome.letters_by_reason.items(), key=lambda pair: -pair[1])[:10]
        ),
        numbers={0},
    )
    examples = _table(
        ("rejected at", "an event, as it was received"),
        ((escape(each.stage), f"<code>{escape(_cut(each.event))}</code>") for each in outcome.letters),
    )
    return _section(
        "Dead letters",
        f"{count:,} events were rejected, each with its reason; all others were processed. {outcome.duplicates:,} more "
        "were duplicates of earlier events, which are matched once.",
        kinds,
        examples,
    )


def _time(outcome: DemoOutcome) -> str:
    whole = float(outcome.metrics["seconds"])
    busy = sum(step.seconds for step in outcome.steps)
    work = {INDEX: (outcome.subscriptions, "subscriptions"), MATCH: (outcome.matched, "events")}
    work[NOTIFY] = (outcome.notifications, "notifications")
    rows = []
    for name, (count, unit) in work.items():
        own = [step for step in outcome.steps if step.name == name]
        seconds = outcome.seconds(name)
        if own and seconds:
            tasks, spent = sum(step.tasks for step in own), sum(step.busy for step in own)
            rows.append(
                (
                    escape(name),
                    f"{_decimal(seconds)} s",
                    f"{count / seconds:,.0f} {unit}/s",
                    f"{_decimal(1e6 * seconds / max(1, count))} µs",
                    f"{tasks:,}",
                    f"{_decimal(spent)} s",
                )
            )
    head = ("step", "took", "throughput", "time for each", "tasks", "time of all tasks")
    return _section(
        "Where the time went",
        f"The pipeline took {_decimal(whole)} s. Spark's steps took {_decimal(busy)} s of it; the rest is the "
        "driver's: reading the subscriptions, joining and saving the index, planning. The times are from Spark's own "
        "log. Tasks run in parallel, so the time of all tasks may be longer than their step.",
        gantt(outcome.steps, outcome.start, whole),
        _table(head, rows, numbers={1, 2, 3, 4, 5}),
    )


def _plan(outcome: DemoOutcome) -> str:
    groups = [group for layer in outcome.plan["layers"] for group in layer["groups"]]
    cost = sum(group["expected_ns"] for group in groups)
    shown = sorted(groups, key=lambda group: -group["rows"])[:_GROUPS]
    head = (
        "how it is stored",
        "rows",
        "attributes they ask for",
        "how an event finds them",
        "compared",
        "expected time",
    )
    table = _table(
        head,
        (
            (
                escape(group["layout"]) + (" <small>verified</small>" if group["verified"] else ""),
                f"{group['rows']:,}",
                escape(", ".join(map(attribute_of, group["attributes"]))),
                escape(reached(group)),
                _decimal(group["expected_candidates"]),
                f"{_decimal(group['expected_ns'])} ns",
            )
            for group in shown
        ),
        numbers={1, 4, 5},
    )
    return _section(
        "How the subscriptions are laid out",
        "To match an event, Harken does not go through all subscriptions. It sorts them into groups that ask for the "
        "same attributes, and each group is stored in the way that is expected to take the least time. A subscription "
        f"is one row, or several if it says OR or IN. Here {outcome.plan['rows']:,} rows are in {len(groups):,} "
        f"groups, and finding the matches of an event in all of them is expected to take {_decimal(cost)} ns. The "
        f"index takes {_decimal(outcome.plan['bytes'] / 1e6)} MB of memory, and "
        f"{_decimal(outcome.index_bytes / 1e6)} MB in files, with all texts and owners. The "
        f"{len(shown):,} largest groups:",
        table,
        _legend(shown),
    )


def _legend(groups: Sequence[Mapping[str, Any]]) -> str:
    """How to read the table of groups: its first row in sentences, then an explanation of its terms."""
    if not groups:
        return ""
    lines = [f"<b>The first row says:</b> {escape(as_sentences(groups[0]))}"]
    used = dict.fromkeys(group["layout"] for group in groups)
    lines += [f"<b>{escape(name)}</b>: {escape(LAYOUTS[name])}" for name in used if name in LAYOUTS]
    lines.append("<b>compared</b>: how many rows of the group an event is compared with, on average.")
    if any(group["verified"] for group in groups):
        lines.append(
            "<b>verified</b>: the index alone cannot decide such rows, for example a LIKE or a comparison of two "
            "attributes. Its candidates are evaluated exactly."
        )
    return f'<ul class="soft">{"".join(f"<li>{line}</li>" for line in lines)}</ul>'


def _again(outcome: DemoOutcome, command: str) -> str:
    check = outcome.reference_check
    verdict = f"disagreed on {check.disagreements:,} of them" if check.disagreements else "agreed with all of them"
    return _section(
        "The check by the reference, and how to run it again",
        f"For this page {check.notifications:,} notifications picked at random, and {check.pairs:,} pairs of an event "
        "and a subscription picked at random, were evaluated once more, one by one, by the reference evaluator, which "
        f"shares no code with the matcher. It {verdict}.",
        f"<pre>{escape(command)}\n{_RUN_AGAIN}</pre>",
        f'<p class="soft" style="margin:12px 0 0">{_BESIDE} Index version {outcome.metrics["index_version"]}, '
        f"matched at {escape(outcome.metrics['match_time'][:19])} UTC.</p>",
    )


def _section(title: str, text: str, *content: str) -> str:
    lead = f'<p class="soft">{text}</p>' if text else ""
    return f"<section><h2>{title}</h2>{lead}{''.join(content)}</section>"


def _pair(*sections: str) -> str:
    return f'<div class="pair">{"".join(sections)}</div>'


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = ()) -> str:
    right = set(numbers)
    kinds = [' class="number"' if place in right else "" for place in range(len(head))]
    top = "".join(f"<th{kind}>{name}</th>" for kind, name in zip(kinds, head, strict=True))
    body = "".join(
        f"<tr>{''.join(f'<td{kind}>{cell}</td>' for kind, cell in zip(kinds, row, strict=True))}</tr>" for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _cut(text: str) -> str:
    return text if len(text) <= _CUT else f"{text[: _CUT - 1]}…"


def _decimal(number: float) -> str:
    """A time, a size or a mean, with one decimal. Counts and rates are shown without."""
    return f"{number:,.1f}"
