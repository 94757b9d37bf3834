"""The report: one self-contained page, for light and dark, wide and narrow screens."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from harken.language.explanation import Clause
from harken_lab.demo.layouts import LAYOUTS, as_sentences, attribute_of, reached
from harken_lab.demo.outcome import DemoOutcome, Told
from harken_lab.demo.plots import Bar, bars, columns, day, doubling, gantt, heat
from harken_lab.demo.timeline import INDEX, MATCH, NOTIFY

_CATEGORIES = 14
_GROUPS = 12
_CUT = 150
_RUN_AGAIN = "harken run harken-demo/pipeline.toml --dry-run\nharken run harken-demo/pipeline.toml"
_BESIDE = (
    "Beside this page lie the events, the subscriptions, the configuration of the pipeline, the notifications as "
    "Parquet, the dead letters and the metrics as JSON lines, and what Spark wrote down."
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
    "desk": "those who run the house",
}


def page(found: DemoOutcome, command: str) -> str:
    """The whole report. `command` makes the same day again."""
    style = files(__package__).joinpath("page.css").read_text("utf-8")
    parts = (
        _head(found),
        _tiles(found),
        _day(found),
        _categories(found),
        _spread(found),
        _subscriptions(found),
        _explained(found),
        _letters(found),
        _time(found),
        _plan(found),
        _again(found, command),
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>A day of auctions, matched by Harken</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(parts)
        + "\n</main>\n</body>\n</html>\n"
    )


def _head(found: DemoOutcome) -> str:
    return (
        "<header><h1>A day at the auction house</h1>"
        f'<p class="lead">{found.events:,} events came in. {found.refused:,} were refused as broken or invalid, '
        f"{found.duplicates:,} were duplicates of earlier ones, and the other {found.matched:,} were matched with "
        f"{found.subscriptions:,} subscriptions. That makes {found.matched:,} × {found.subscriptions:,} = "
        f"{found.pairs:,} pairs of an event and a subscription. Each has an answer, as if it had been evaluated by "
        f"itself: {found.notifications:,} of them match, and each of these is a notification.</p>"
        '<p class="soft">The market is made up; every number below was read back from what the pipeline wrote.</p>'
        "</header>"
    )


def _tiles(found: DemoOutcome) -> str:
    match = found.seconds(MATCH)
    tiles = {
        "events came in": f"{found.events:,}",
        "of them were matched": f"{found.matched:,}",
        "subscriptions": f"{found.subscriptions:,}",
        "notifications": f"{found.notifications:,}",
        "events a second, decoded, joined and matched": f"{found.matched / match:,.0f}" if match else "–",
        "bytes a subscription in the index": _decimal(found.plan["bytes"] / max(1, found.subscriptions)),
        "seconds for the whole pipeline": _decimal(found.metrics["seconds"]),
    }
    shown = "".join(f"<div><b>{value}</b><span>{name}</span></div>" for name, value in tiles.items())
    return f'<div class="tiles">{shown}</div>'


def _day(found: DemoOutcome) -> str:
    return _section(
        "The day",
        "Notifications a minute, and below them the events that caused them. Auctions end at full hours in the "
        "evening, and reminders go out ten minutes before.",
        day(found.notifications_by_minute, "notifications", "one"),
        day(found.events_by_minute, "events", "three"),
    )


def _categories(found: DemoOutcome) -> str:
    rows = [
        Bar(name, count, f"{count:,}", f"{found.events_by_category.get(name, 0):,} events")
        for name, count in list(found.notifications_by_category.items())[:_CATEGORIES]
    ]
    hours = heat(dict(found.by_area_and_hour), "notifications")
    return _pair(
        _section("What people are told of", "Notifications by category, the first of them.", bars(rows)),
        _section("And when", "Notifications by hour of the day and part of the house.", hours),
    )


def _spread(found: DemoOutcome) -> str:
    events = [Bar(name, count, f"{count:,}", f"{count:,} events") for name, count in doubling(found.matches_of_events)]
    told = [
        Bar(name, count, f"{count:,}", f"{count:,} subscriptions")
        for name, count in doubling(found.told_of_subscriptions)
    ]
    mean, most = found.notifications / max(1, found.matched), len(found.matches_of_events) - 1
    return _pair(
        _section(
            "Matches of an event",
            f"How many subscriptions an event matches: {_decimal(mean)} on average, {most:,} at most.",
            columns(events),
        ),
        _section(
            "Notifications of a subscription",
            f"How often a subscription was told of something. {found.owners:,} people heard of anything at all.",
            columns(told, "three"),
        ),
    )


def _subscriptions(found: DemoOutcome) -> str:
    busiest = _table(
        ("told", "who", "what they wait for"),
        ((f"{each.count:,}", escape(each.owner), f"<code>{escape(each.where)}</code>") for each in found.busiest),
        numbers={0},
    )
    kinds = _table(
        ("kind of wish", "subscriptions", "notifications"),
        (
            (f"{escape(_KINDS.get(kind, kind))}", f"{wanted:,}", f"{told:,}")
            for kind, (wanted, told) in sorted(found.by_kind.items(), key=lambda pair: -pair[1][0])
        ),
        numbers={1, 2},
    )
    return _section("The busiest subscriptions", "Of those that say the same, one is shown.", busiest) + _section(
        "What they wait for", "", kinds
    )


def _explained(found: DemoOutcome) -> str:
    if found.hit is None or found.event is None:
        return ""
    event = escape(json.dumps(found.event, ensure_ascii=False))
    stories = [_story(found.hit, "was told of this event")]
    if found.near_miss is not None:
        stories.append(_story(found.near_miss, "was not, and nearly was"))
    return _section(
        "Why, and why not",
        "Harken can say of every event and every subscription what met what.",
        f"<pre>{event}</pre>",
        f'<div class="pair" style="margin-top:16px">{"".join(stories)}</div>',
    )


def _story(told: Told, verdict: str) -> str:
    mark = "yes" if told.explanation.matched else "no"
    return (
        f'<div><p><b>{escape(told.owner)}</b> <span class="verdict {mark}">{verdict}</span><br>'
        f'<small><code>{escape(told.id)}</code></small></p><ul class="tree">{_tree(told.explanation.tree)}</ul></div>'
    )


def _tree(part: Clause) -> str:
    met = f' <span class="soft">({escape(part.values)})</span>' if part.met else ""
    note = f' <span class="soft">{escape(part.note)}</span>' if part.note is not None else ""
    below = f"<ul>{''.join(map(_tree, part.parts))}</ul>" if part.parts else ""
    return f'<li><span class="{_TRUTHS[part.truth]}"><code>{escape(part.text)}</code>{met}{note}</span>{below}</li>'


def _letters(found: DemoOutcome) -> str:
    count = sum(found.letters_by_reason.values())
    kinds = _table(
        ("events", "refused at", "reason"),
        (
            (f"{number:,}", escape(stage), escape(_cut(reason)))
            for (stage, reason), number in sorted(found.letters_by_reason.items(), key=lambda pair: -pair[1])[:10]
        ),
        numbers={0},
    )
    examples = _table(
        ("refused at", "an event, as it came"),
        ((escape(each.stage), f"<code>{escape(_cut(each.event))}</code>") for each in found.letters),
    )
    return _section(
        "Dead letters",
        f"{count:,} events were refused, each with its reason; all others went on. {found.duplicates:,} more were "
        "duplicates: they came twice and were matched once.",
        kinds,
        examples,
    )


def _time(found: DemoOutcome) -> str:
    whole = float(found.metrics["seconds"])
    busy = sum(step.seconds for step in found.steps)
    work = {INDEX: (found.subscriptions, "subscriptions"), MATCH: (found.matched, "events")}
    work[NOTIFY] = (found.notifications, "notifications")
    rows = []
    for name, (count, unit) in work.items():
        own = [step for step in found.steps if step.name == name]
        seconds = found.seconds(name)
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
    head = ("step", "took", "throughput", "for each of them", "tasks", "tasks added up")
    return _section(
        "Where the time went",
        f"The pipeline took {_decimal(whole)} s. Spark's steps took {_decimal(busy)} s of it; the rest is the "
        "driver's: reading the subscriptions, joining and saving the index, planning. The times are from Spark's own "
        "log. Tasks run at the same time, so added up they may take longer than their step.",
        gantt(found.steps, found.start, whole),
        _table(head, rows, numbers={1, 2, 3, 4, 5}),
    )


def _plan(found: DemoOutcome) -> str:
    groups = [group for layer in found.plan["layers"] for group in layer["groups"]]
    cost = sum(group["expected_ns"] for group in groups)
    shown = sorted(groups, key=lambda group: -group["rows"])[:_GROUPS]
    head = (
        "how it is stored",
        "rows",
        "attributes it asks for",
        "how an event finds them",
        "compared",
        "expected time",
    )
    table = _table(
        head,
        (
            (
                escape(group["layout"]) + (" <small>checked again</small>" if group["verified"] else ""),
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
        f"is one row, or several if it says OR or IN. Here {found.plan['rows']:,} rows are in {len(groups):,} groups, "
        f"and to find what an event matches in all of them is expected to take {_decimal(cost)} ns. The index takes "
        f"{_decimal(found.plan['bytes'] / 1e6)} MB of memory, and {_decimal(found.index_bytes / 1e6)} MB in files, "
        f"with all texts and owners. The {len(shown):,} largest groups:",
        table,
        _legend(shown),
    )


def _legend(groups: Sequence[Mapping[str, Any]]) -> str:
    """How to read the table of groups: its first row in sentences, then its terms."""
    if not groups:
        return ""
    lines = [f"<b>The first row says:</b> {escape(as_sentences(groups[0]))}"]
    used = dict.fromkeys(group["layout"] for group in groups)
    lines += [f"<b>{escape(name)}</b>: {escape(LAYOUTS[name])}" for name in used if name in LAYOUTS]
    lines.append("<b>compared</b>: the rows that an event is compared with, on average, of all in the group.")
    if any(group["verified"] for group in groups):
        lines.append(
            "<b>checked again</b>: the index alone cannot decide such rows, for example a LIKE or a comparison of two "
            "attributes. What it finds is evaluated once more."
        )
    return f'<ul class="soft">{"".join(f"<li>{line}</li>" for line in lines)}</ul>'


def _again(found: DemoOutcome, command: str) -> str:
    judged = found.judged
    verdict = "agreed with all of them" if not judged.otherwise else f"judged {judged.otherwise:,} of them otherwise"
    return _section(
        "Is it true? And how to do it again",
        f"For this page {judged.told:,} notifications picked at random, and {judged.untold:,} pairs of an event and a "
        "subscription picked at random, were evaluated once more, one by one, by the reference evaluator, which shares "
        f"no code with the matcher. It {verdict}.",
        f"<pre>{escape(command)}\n{_RUN_AGAIN}</pre>",
        f'<p class="soft" style="margin:12px 0 0">{_BESIDE} Index version {found.metrics["index_version"]}, '
        f"matched at {escape(found.metrics['match_time'][:19])} UTC.</p>",
    )


def _section(title: str, text: str, *content: str) -> str:
    said = f'<p class="soft">{text}</p>' if text else ""
    return f"<section><h2>{title}</h2>{said}{''.join(content)}</section>"


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
    """A time, a size or a mean, with one decimal as everywhere on the page. Counts and rates are whole."""
    return f"{number:,.1f}"
