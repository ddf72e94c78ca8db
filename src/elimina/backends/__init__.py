"""Executors of programs: dense and sparse tables, on the CPU and on GPUs."""
