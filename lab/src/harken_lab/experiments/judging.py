"""Judges the claims of saved results again, by their rows: nothing is measured.

    python -m harken_lab.experiments.judging RESULTS_FOLDER

To be run after a margin or a judgement changed; the pages that show the findings are generated afterwards.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from harken.versions.atomic import output_file
from harken_lab.experiments import EXPERIMENTS, find_experiment
from harken_lab.experiments.definition import read_result


def judge_again(folder: Path) -> Iterator[str]:
    """Rewrite the findings of the results in a folder. Yields a line for each verdict that changed."""
    for name in EXPERIMENTS:
        path = folder / f"{name}.json"
        if not path.exists():
            continue
        before = read_result(path)
        after = before.judged(find_experiment(name))
        verdicts = {each.claim: each.verdict for each in before.findings}
        for each in after.findings:
            if verdicts.get(each.claim) != each.verdict:
                yield f"{name}: {each.claim}: {verdicts.get(each.claim, 'new')} -> {each.verdict}"
        with output_file(str(path)) as stream:
            stream.write(after.to_json().encode())


def main(arguments: Sequence[str]) -> None:
    if len(arguments) != 1:
        sys.exit("usage: python -m harken_lab.experiments.judging RESULTS_FOLDER")
    for line in judge_again(Path(arguments[0])):
        print(line)


if __name__ == "__main__":
    main(sys.argv[1:])
