"""TOML files that people write: what they hold, where it stands, and every fault at its place."""
