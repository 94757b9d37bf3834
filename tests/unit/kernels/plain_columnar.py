"""A small life of the columnar matcher, to be run with and without compilation: prints what was found."""

from __future__ import annotations

import warnings
from random import Random

from harken import Engine

warnings.simplefilter("error")


def texts(rng: Random) -> list[tuple[str, str]]:
    found = []
    for number in range(150):
        asked = [
            f"a{i} {rng.choice(['=', '<>', '<', '>=', '<='])} {rng.randrange(5)}"
            for i in rng.sample(range(5), rng.randrange(1, 4))
        ]
        if number % 7 == 0:
            asked.append(f"s BETWEEN 'k{rng.randrange(40):02}' AND 'k{rng.randrange(40, 80)}'")
        if number % 11 == 0:
            asked.append(f"user = 'u{rng.randrange(300)}'")
        if number % 3 == 0:
            asked = [f"{name} {rng.choice(['<', '>='])} {rng.randrange(30)}" for name in ("x", "y")]
        found.append((f"{number:03}", " AND ".join(asked)))
    return found


def main() -> None:
    rng = Random(4)
    events = []
    for number in range(40):
        event: dict[str, object] = {f"a{i}": rng.randrange(6) for i in range(5) if rng.random() < 0.8}
        event["s"] = f"k{rng.randrange(80):02}"
        event["user"] = f"u{rng.randrange(300)}"
        event |= {"x": rng.randrange(30), "y": rng.randrange(30)}
        if number % 9 == 0:
            event["a1"] = [1, 3]
        events.append(event)
    every = ("cluster", "list", "pool", "sketch", "sieve")
    for layouts in (every, *((each,) for each in every)):
        engine = Engine(background=False, recent_rows=60, layouts=layouts, small_rows=0)
        for id, where in texts(Random(4))[:80]:
            engine.subscribe(id, where)
        engine.merge()
        engine.subscribe_many(texts(Random(4))[80:])
        for id in range(0, 150, 13):
            engine.unsubscribe(f"{id:03}")
        found = [sorted(ids) for ids in engine.match_batch(events).ids]
        assert [sorted(engine.match(event).ids) for event in events] == found
        engine.merge()
        assert [sorted(ids) for ids in engine.match_batch(events).ids] == found
        print(layouts[0], len(layouts), found)


if __name__ == "__main__":
    main()
