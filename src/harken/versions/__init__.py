"""Files of arrays in versions on disk: written atomically, checked when opened, published by a manifest."""
