"""Command ``elimina calibrate``."""

from __future__ import annotations

from pathlib import Path

import click

from elimina import calibration
from elimina.cli.grouped_options import Command, option
from elimina.planning.machine import UNITS, Speeds, calibration_file, speeds

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))


@click.command(cls=Command)
@option("--show", is_flag=True, help="Show the speeds in use, and measure nothing.")
@option("--reset", is_flag=True, help="Forget the measured speeds.")
def calibrate(show: bool, reset: bool) -> None:
    """Measure the speeds of this machine, and of its GPU if it has one.

    elimina uses these speeds to estimate times and to choose methods and devices. They are saved in
    calibration.json in the user's cache folder. The measurement takes less than 20 seconds. Run it while the machine is
    idle.
    """
    if show and reset:
        raise click.UsageError("--show and --reset exclude each other: leave out one of them")
    if reset:
        removed = calibration.reset()
        click.echo("no speeds were measured before" if removed is None else f"removed {removed}")
        return
    defaults = Speeds()._asdict()
    if show:
        path = calibration_file()
        shown = speeds()
        # A damaged file is ignored.
        is_measured = path is not None and Path(path).exists() and shown != Speeds()
        for name, value in shown._asdict().items():
            click.echo(_line(name, value, defaults[name]))
        click.echo(f"measured, from {path}" if is_measured else "built-in: 'elimina calibrate' measures this machine")
        return
    calibration.prepare_file()  # if the folder cannot be made, this fails now, and not after the measurement
    measured = {}
    for name, value in calibration.measure():
        measured[name] = value
        click.echo(_line(name, value, defaults[name]))
    click.echo(f"wrote {calibration.save(measured)}")


def _line(name: str, value: float, default: float) -> str:
    return f"{name:14} {_amount(name, value):24} built-in: {_amount(name, default)}"


def _amount(name: str, value: float) -> str:
    size, prefix = next((pair for pair in _PREFIXES if value >= pair[0]), _PREFIXES[-1])
    return f"{value / size:.3g} {prefix}{UNITS[name]}"
