"""Arenas larger than a device's memory: pinned memory, files, tiles."""
