"""Runs a pipeline for `spark-submit` and `python -m harken.pipeline`, without Harken's command line."""

from __future__ import annotations

import argparse
import sys

from harken.errors import ConfigError, HarkenError


def main(arguments: list[str] | None = None) -> int:
    """Run the pipeline of a configuration file. Returns the exit code: 0, or 3 after an error."""
    parser = argparse.ArgumentParser("harken.pipeline", description="Run a Harken pipeline.")
    parser.add_argument("configuration", metavar="PIPELINE.TOML")
    parser.add_argument("--dry-run", action="store_true", help="show what the pipeline would do, and exit")
    options = parser.parse_args(arguments)
    from harken.pipeline.batch_planning import plan
    from harken.pipeline.config import load_config
    from harken.pipeline.progress import text_of
    from harken.pipeline.run import run

    try:
        config = load_config(options.configuration)
        if options.dry_run:
            for label, line in plan(config).lines():
                print(f"{label}: {line}")
            return 0
        result = run(config, lambda report: print(text_of(report), file=sys.stderr, flush=True))
        print(f"{config.name}: {result}", flush=True)
        return 0
    except ConfigError as error:
        for each in error.faults or (error,):
            print(f"error: {each}", file=sys.stderr)
    except HarkenError as error:
        print(f"error: {error}", file=sys.stderr)
    return 3


if __name__ == "__main__":
    sys.exit(main())
