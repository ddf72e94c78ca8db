"""Execution of plans: passes, checkpoints, rounding errors and threads."""
