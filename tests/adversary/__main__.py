"""The command line of the adversary."""

from __future__ import annotations

import secrets
import signal
import sys

import click

from tests.adversary.case import KINDS, Setting
from tests.adversary.running import Failure, attack


@click.command()
@click.option("--minutes", default=1.0, help="Time to run for.")
@click.option("--kinds", default=",".join(KINDS), help="Kinds of cases, separated by commas.")
@click.option("--seed", type=int, help="Seed of the first case; by default a fresh one.")
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", help="Device of the engines.")
@click.option("--jobs", default=1, help="Worker processes, on up to two cores each.")
@click.option("--cases", type=int, help="Most cases of each kind and worker.")
def main(minutes: float, kinds: str, seed: int | None, device: str, jobs: int, cases: int | None) -> None:
    """Attack elimina with random cases and print programs that show what failed.

    Failures are printed as they are found, and the number of cases of each kind at the end, by whatever it comes:
    SIGINT and SIGTERM end a run early.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    seed = secrets.randbelow(10**9) if seed is None else seed
    names = kinds.split(",")
    unknown = [name for name in names if name not in KINDS]
    if unknown:
        raise click.UsageError(f"unknown kind {unknown[0]!r}; the kinds are {', '.join(KINDS)}")
    click.echo(f"seed {seed}")
    counts, failures = attack(names, seed, 60 * minutes, jobs, Setting(device), cases, _tell)
    numbers = ", ".join(f"{kind}: {count:,} cases" for kind, count in counts.items())
    click.echo(f"{numbers}; {sum(counts.values()):,} cases in all; {len(failures)} defects")
    sys.exit(1 if failures else 0)


def _tell(failure: Failure) -> None:
    click.echo(f"\n== {failure.kind} {failure.seed}: {failure.signature}\n{failure.report}")


if __name__ == "__main__":
    main()
