"""``elimina dcop``: agents solve a distributed problem."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from elimina import dcop as distributed
from elimina.cli import signals
from elimina.cli.options import (
    bytes_of,
    cluster_of,
    cluster_options,
    format_options,
    number_option,
    reject_given,
    seconds_of,
)
from elimina.cli.progress import Progress
from elimina.dcop import Network, Problem, solve
from elimina.dcop.forecast import Forecast
from elimina.dcop.formats import FORMATS as DISTRIBUTED
from elimina.dcop.formats import is_distributed
from elimina.dcop.network import ORDERS
from elimina.dcop.solve import ALGORITHMS
from elimina.dcop.view import HEURISTICS
from elimina.errors import InputError
from elimina.io import FORMATS as CENTRAL
from elimina.io import read
from elimina.io.files import suffix_of
from elimina.planning.plan import bytes_text, count_text, seconds_text
from elimina.result import Delivery, Result, number_text, with_reading
from elimina.viz.timeline import check_timeline, draw_timeline

_DEFAULT = Network()
_LONG_SECONDS = 10.0
_SIMULATED = ("delivery", "delay", "jitter", "loss", "duplicate", "retries", "crashes", "downtime", "timeline")


def _wait_of(text: str | float) -> float:
    """Read a time in seconds, 0 included."""
    return 0.0 if str(text) in ("0", "0.0") else seconds_of(text)


def _downtime_of(text: str | float) -> float:
    return math.inf if text == "never" else _wait_of(text)


def _crash_of(text: str) -> tuple[str, int]:
    """Read which agent crashes at which message: ``a1@3``."""
    name, at, number = text.rpartition("@")
    if not at or not number.isdecimal() or int(number) < 1:
        raise click.BadParameter(f"{text!r} does not say who crashes when; write it like a1@3 (a1, at its 3rd message)")
    return name, int(number)


@click.command(short_help="Let agents solve a distributed problem.")
@click.argument("file", type=click.Path())
@click.option(
    "--algo",
    type=click.Choice(ALGORITHMS),
    default="dpop",
    show_default=True,
    help="dpop: exact; adpop: bounds, by tables of at most --ibound variables; mb-dpop: exact, fixes variables in "
    "turn where tables are too large for --memory.",
)
@click.option("--ibound", type=click.IntRange(min=1), metavar="N", help="adpop: the most variables of a table.")
@click.option(
    "--filter",
    "filtering",
    type=click.IntRange(min=1),
    metavar="N",
    help="dpop: find bounds by tables of at most N variables first, then send only rows that may still matter.",
)
@click.option(
    "--device",
    "--agents",
    "agents",
    type=click.Choice(("cpu", "cuda")),
    default="cpu",
    show_default=True,
    help="What agents compute on.",
)
@click.option(
    "--heuristic",
    type=click.Choice(HEURISTICS),
    default="max-degree",
    show_default=True,
    help="Of the pseudo-tree: the neighbour that is visited next, and the root.",
)
@click.option("--memory", type=bytes_of, metavar="BYTES", help="That each agent may use for tables, like 500MB.")
@click.option(
    "--threads", type=click.IntRange(min=1, max=1024), metavar="N", help="CPU threads of an agent.  [default: all]"
)
@number_option("--seed", help="Of everything random.")
@click.option(
    "--delivery",
    type=click.Choice(ORDERS),
    default="time",
    show_default=True,
    help="The message delivered next: first by the agents' clocks, sent first, or any.",
)
@click.option("--delay", type=_wait_of, default=0.0, metavar="SECONDS", help="Simulated time that a message takes.")
@click.option("--jitter", type=_wait_of, default=0.0, metavar="SECONDS", help="That it takes longer, at random.")
@click.option(
    "--loss", type=click.FloatRange(0, 1), default=0.0, metavar="SHARE", help="Of transmissions that are lost."
)
@click.option(
    "--duplicate", type=click.FloatRange(0, 1), default=0.0, metavar="SHARE", help="Of those that arrive twice."
)
@number_option(
    "--retries", default=_DEFAULT.retries, help="Times that a lost message is repeated before the run fails."
)
@click.option(
    "--crash",
    "crashes",
    type=_crash_of,
    multiple=True,
    metavar="AGENT@N",
    help="The agent loses its memory, but not its log, at its N-th message. May be repeated.",
)
@click.option(
    "--downtime",
    type=_downtime_of,
    default=_DEFAULT.downtime,
    show_default=True,
    metavar="SECONDS|never",
    help="After which it starts again.",
)
@click.option("--time-limit", type=seconds_of, metavar="SECONDS", help="For everything, reading included.")
@click.option("--timeline", type=click.Path(), metavar="FILE", help="Draw the run: a .svg or .html file.")
@format_options("human", "json")
@cluster_options
def dcop(
    file: str,
    algo: Any,
    format_: str,
    agents: str,
    time_limit: float | None,
    timeline: str | None,
    cluster: str | None,
    local: int | None,
    **options: Any,
) -> None:
    """Let agents solve the distributed problem in FILE, simulated in this process or on the workers of a cluster.

    FILE is .yaml (pyDCOP), .xml (XCSP of FRODO, XDisCSP) or .json; a model of costs in a format that solve reads gets
    an agent for each variable. Each agent knows its own variables and cost functions, and learns the rest from messages
    of its neighbours.
    """
    names = ("delay", "jitter", "loss", "duplicate", "retries", "downtime", "seed")
    network = Network(
        order=options["delivery"], crashes=dict(options["crashes"]), **{name: options[name] for name in names}
    )
    kept = {name: options[name] for name in ("ibound", "heuristic", "seed", "memory", "threads")}
    started = time.monotonic()
    if time_limit is not None:
        signals.alarm(time_limit)
    if timeline is not None:
        check_timeline(timeline)
    problem = read_problem(file)
    read = time.monotonic() - started
    seen: list[Delivery] = []

    def left() -> float | None:
        return None if time_limit is None else max(1e-3, time_limit - (time.monotonic() - started))

    with Progress() as progress, cluster_of(cluster, local, agents) as client:
        if client is not None:
            from elimina.distributed import solve_agents

            reject_given(_SIMULATED, "a cluster", "nothing is simulated there")
            reject_given(("filtering",), "a cluster", "agents send whole tables there")
            result = solve_agents(problem, algo, client=client, agents=agents, time_limit=left(), **kept)
        else:
            listener = None if timeline is None else seen.append
            kept["filtering"] = options["filtering"]
            result = solve(
                problem,
                algo,
                agents=agents,
                network=network,
                time_limit=left(),
                listener=listener,
                on_forecast=lambda ahead: _announce(ahead, progress),
                progress=progress.update,
                **kept,
            )
        # Before the workers end, which may take a while.
        with signals.deferred():
            result = signals.attributed(with_reading(result, read))
            click.echo(result.to_json() if format_ == "json" else _human(result))
    if timeline is not None:
        title = f"{Path(file).name}: {algo}, {seconds_text(result.stats['simulated_seconds'])} simulated"
        draw_timeline(seen, [agent.name for agent in problem.agents], timeline, title)


def _announce(ahead: Forecast, progress: Progress) -> None:
    """Say what a run takes that one would wonder about."""
    progress.show(f"width {ahead.width}, about {seconds_text(ahead.seconds)}", ahead.seconds)
    if ahead.seconds > _LONG_SECONDS and not sys.stderr.isatty():
        click.echo(f"elimina: {ahead}", err=True)


def read_problem(file: str) -> Problem:
    """Read a distributed problem; a model of costs gets an agent for each variable.

    Raises:
        InputError: The suffix is that of neither.
    """
    suffix = suffix_of(Path(file))
    if suffix not in {**DISTRIBUTED, **CENTRAL}:
        others = ", ".join(name for name in CENTRAL if name not in DISTRIBUTED)
        raise InputError(
            f"{file}: unknown suffix {suffix and '.' + suffix!r}; distributed problems are {', '.join(DISTRIBUTED)}, "
            f"and models with an agent for each variable {others} (perhaps with .gz or .xz)"
        )
    return distributed.read(file) if is_distributed(file) else Problem.from_model(read(file))


def _human(result: Result) -> str:
    stats = result.stats
    rows = [("status", str(result.status))]
    if result.value is not None:
        rows.append(("value", number_text(result.value)))
    if result.status == "bounded":
        ends = (result.lower_bound, result.upper_bound)
        rows.append(("bounds", " to ".join("unknown" if end is None else number_text(end) for end in ends)))
    if result.ended_by is not None:
        rows.append(("ended by", result.ended_by))
    messages, largest = stats["messages"], bytes_text(stats["largest_message"])
    counts = ", ".join(f"{count_text(number)} {kind}" for kind, number in messages.items())
    repeated = f"; {count_text(stats['repeated'])} repeated" if stats.get("repeated") else ""
    tree = "" if stats["induced_width"] is None else f"width {stats['induced_width']}, depth {stats['depth']} "
    dtype = "" if stats["dtype"] is None else f", {stats['dtype']}"
    rows += [
        ("agents", f"{stats['agents']} on {stats['device']}{dtype}"),
        ("tree", f"{tree}(largest table: {count_text(stats['largest_table'])} cells)"),
        ("messages", f"{count_text(sum(messages.values()))} ({counts}){repeated}" if messages else "none"),
        (
            "network",
            f"{bytes_text(stats['network_load'])}, {largest} in the largest message",
        ),
        *_filtered(stats),
        ("memory", f"{bytes_text(stats['peak_bytes'])} of one agent"),
        _clusters(stats) if "workers" in stats else _simulated(stats),
        ("time", seconds_text(stats["seconds"]["total"])),
    ]
    if result.assignment:
        rows.append(("assignment", " ".join(f"{name}={state}" for name, state in result.assignment.items())))
    return "\n".join(f"{name + ':':12}{text}" for name, text in rows)


def _filtered(stats: Mapping[str, Any]) -> list[tuple[str, str]]:
    if "rows_sent" not in stats:
        return []
    return [("rows", f"{count_text(stats['rows_sent'])} sent of {count_text(stats['dense_rows'])} of whole tables")]


def _simulated(stats: Mapping[str, Any]) -> tuple[str, str]:
    operations = (
        f"{count_text(stats['nonconcurrent_operations'])} operations of {count_text(stats['total_operations'])}"
    )
    return "simulated", f"{seconds_text(stats['simulated_seconds'])}, {operations} one after another"


def _clusters(stats: Mapping[str, Any]) -> tuple[str, str]:
    lost = f", {stats['lost_workers']} lost ({stats['restarted_agents']} agents started again)"
    between = f"{stats['workers']}, {bytes_text(stats['transferred_bytes'])} between them"
    return "workers", between + (lost if stats["lost_workers"] else "")
