"""The configuration of a pipeline: one TOML file, checked completely before Spark starts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import copy
from pathlib import Path

from harken.errors import ConfigError
from harken.pipeline.config.checks import check
from harken.pipeline.config.config_model import (
    AVAILABLE_NOW,
    Config,
    DeadLetters,
    EnrichmentConfig,
    MatchConfig,
    MetricsConfig,
    Sink,
    SourceConfig,
    SubscriptionsConfig,
)
from harken.pipeline.config.config_tables import ConfigDocument, ConfigTable
from harken.pipeline.config.defaults import fill_in
from harken.schema.faults import first_of
from harken.toml.document import read_text

__all__ = [
    "AVAILABLE_NOW",
    "MAX_CONFIG_BYTES",
    "Config",
    "DeadLetters",
    "EnrichmentConfig",
    "MatchConfig",
    "MetricsConfig",
    "Sink",
    "SourceConfig",
    "SubscriptionsConfig",
    "check_config",
    "load_config",
]

MAX_CONFIG_BYTES = 1_048_576


def load_config(path: str | Path, environment: Mapping[str, str] | None = None) -> Config:
    """Load a configuration. Raises SourceError if the file cannot be read, and ConfigError with all its faults."""
    text = read_text(path, "configuration", MAX_CONFIG_BYTES)
    config, faults = check_config(text, str(path), environment)
    if config is None:
        error = first_of([copy(faults[0]), *faults[1:]])
        error.faults = tuple(faults)
        raise error
    return config


def check_config(
    text: str, source_name: str | None = None, environment: Mapping[str, str] | None = None
) -> tuple[Config | None, list[ConfigError]]:
    """Read a configuration. Returns None if it has faults; these are in the order of the lines.

    Paths are relative to the folder of the file `source_name` or, without one, to the working folder.
    """
    file = Path(source_name or "pipeline.toml").absolute()
    document = ConfigDocument(text, source_name, file.parent, os.environ if environment is None else environment)
    if not document.faults:
        root = ConfigTable(document, (), Config).read(document.content)
        fill_in(root, file.stem)
        check(root)
    return (None, document.faults) if document.faults else (root.build(), [])
