"""A match in a Spark of its own, with an empty folder for kernels: who compiles them, and who says so.

python first_use_job.py
"""

from __future__ import annotations

import json
import os
from pathlib import Path


def main() -> None:
    from harken.spark import match
    from harken.spark.session import local_session

    folder = Path(os.environ["NUMBA_CACHE_DIR"])
    spark = local_session(cores=2)
    events = spark.range(4_000).selectExpr("id", "concat('c', id % 60) AS category", "id % 400 AS price").repartition(4)
    wanted = {f"s{n}": f"category = 'c{n % 50}' AND price < {n % 400}" for n in range(3_000)}
    matched = match(events, wanted)
    before = sorted(each.name for each in folder.rglob("*.nbc"))
    matches = matched.count()
    after = sorted(each.name for each in folder.rglob("*.nbc"))
    expected = sum(1 for id in range(4_000) for n in range(id % 60, 3_000, 50) if id % 60 < 50 and id % 400 < n % 400)
    print(json.dumps({"matches": matches, "expected": expected, "before": len(before), "after": len(after)}))
    spark.stop()


if __name__ == "__main__":
    main()
