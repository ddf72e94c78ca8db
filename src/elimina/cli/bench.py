"""Command ``elimina bench``: the speed of the kernels on this machine."""

from __future__ import annotations

import click

from elimina.cli.help import Command


@click.group()
def bench() -> None:
    """Measure this machine."""


@bench.command(cls=Command, short_help="Measure the GPU kernels on single buckets.")
def kernels() -> None:
    """Measure single buckets on the GPU, as shares of a device-to-device copy and of the instruction rate."""
    from elimina.bench_kernels import report_kernels

    report_kernels(click.echo)
