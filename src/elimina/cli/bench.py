"""``elimina bench``: how fast the kernels are on this machine."""

from __future__ import annotations

import click


@click.group()
def bench() -> None:
    """Measure this machine."""


@bench.command(short_help="The GPU's kernels, by single buckets.")
def kernels() -> None:
    """Single buckets on the GPU, as shares of a device-to-device copy and of the instruction rate."""
    from elimina.bench_kernels import report_kernels

    report_kernels(click.echo)
