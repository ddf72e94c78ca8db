"""Command ``elimina calibrate``."""

from __future__ import annotations

import click

from elimina.cli.help import Command, option

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))


@click.command(cls=Command, short_help="Measure the speed of this machine for the planner.")
@option("--show", is_flag=True, help="Show the speeds in use, and measure nothing.")
@option("--reset", is_flag=True, help="Forget the measured speeds.")
def calibrate(show: bool, reset: bool) -> None:
    """Measure how fast this machine copies, combines, joins and orders, and its GPU if there is one.

    elimina uses these speeds to estimate times and to choose methods and devices. They are saved in
    calibration.json in the user's cache folder. The measurement takes less than 20 seconds. Run it while the machine is
    idle.
    """
    from elimina import calibration
    from elimina.planning.machine import Speeds, calibration_file, speeds

    if show and reset:
        raise click.UsageError("--show and --reset exclude each other: leave out one of them")
    if reset:
        removed = calibration.reset()
        click.echo("no speeds were measured before" if removed is None else f"removed {removed}")
        return
    given = Speeds()._asdict()
    if show:
        path = calibration_file()
        is_measured = path is not None and path.exists()
        for name, value in speeds()._asdict().items():
            click.echo(_line(name, value, given[name]))
        click.echo(f"measured, from {path}" if is_measured else "built-in: 'elimina calibrate' measures this machine")
        return
    found = {}
    for name, value in calibration.measure():
        found[name] = value
        click.echo(_line(name, value, given[name]))
    click.echo(f"wrote {calibration.save(found)}")


def _line(name: str, value: float, given: float) -> str:
    return f"{name:14} {_amount(name, value):24} built-in: {_amount(name, given)}"


def _amount(name: str, value: float) -> str:
    from elimina.planning.machine import UNITS

    size, prefix = next((pair for pair in _PREFIXES if value >= pair[0]), _PREFIXES[-1])
    return f"{value / size:.3g} {prefix}{UNITS[name]}"
