"""Running a plan once: execution, passes, checkpoints, rounding, threads."""
