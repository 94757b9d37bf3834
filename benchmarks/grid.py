"""Calls of an engine beside a loop of closures and a scan, by shape, size and way to call: `harken bench --grid`.

With --save the result goes to benchmarks/results/grid.json, and its picture beside it. Further options are those of
`harken bench --grid`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from harken.cli import main

RESULTS = Path(__file__).parent / "results"

if __name__ == "__main__":
    options = [each for each in sys.argv[1:] if each != "--save"]
    if len(options) < len(sys.argv) - 1:
        RESULTS.mkdir(exist_ok=True)
        options += ["--output", str(RESULTS / "grid.json"), "--plots", str(RESULTS)]
    sys.argv = ["harken", "bench", "--grid", *options]
    main()
