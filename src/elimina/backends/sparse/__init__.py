"""Sparse tables: packed keys and values, on any device."""
