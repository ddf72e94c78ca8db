"""Runs of a plan: execution, passes, checkpoints, rounding, threads."""
