"""TOML files that people write: their content, its positions, and faults with line and caret."""
