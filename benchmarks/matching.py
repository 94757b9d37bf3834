"""Time and memory of matching, and their growth: `harken bench` with its defaults.

With --save the result goes to benchmarks/results/matching.json, and its plots beside it. Further options are those of
`harken bench`.
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
        options += ["--output", str(RESULTS / "matching.json"), "--plots", str(RESULTS)]
    sys.argv = ["harken", "bench", *options]
    main()
