"""The papers' algorithms, one a file, over rows in labels."""
