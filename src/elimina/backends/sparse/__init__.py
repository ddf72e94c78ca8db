"""Programs whose large tables are sparse: only tuples with a value are stored."""
