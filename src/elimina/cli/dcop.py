"""Command ``elimina dcop``."""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from elimina import dcop as distributed
from elimina.answer_texts import assignment_text, labelled
from elimina.cli import signals
from elimina.cli.grouped_options import Command, option
from elimina.cli.model_input import source_of, source_option, verbose_option
from elimina.cli.model_output import write_answer
from elimina.cli.options import (
    check_writable,
    choice_option,
    cluster_of,
    cluster_options,
    device_of,
    file_option,
    format_for,
    format_options,
    memory_option,
    number_option,
    output_option,
    reject_given,
    seconds_of,
    seconds_option,
    share_option,
    threads_option,
    time_limit_option,
)
from elimina.dcop import AgentOptions, Network, Problem, solve
from elimina.dcop.agent import Forecast
from elimina.dcop.network_settings import ORDERS
from elimina.dcop.problem import HEURISTICS
from elimina.dcop.solve import ALGORITHMS
from elimina.errors import InputError, source_text
from elimina.io.files import suffix_of
from elimina.io.formats import by_suffix, format_of
from elimina.io.model_files import read
from elimina.number_texts import bytes_text, count_text, counted, seconds_text
from elimina.progress import Progress
from elimina.result import Delivery, Result, outcome_rows
from elimina.running.phases import with_reading

heuristic_option = choice_option(
    "--heuristic",
    choices=HEURISTICS,
    metavar="NAME",
    group="expert",
    help=f"Heuristic of the pseudo-tree: {', '.join(HEURISTICS)}.",
)

logger = logging.getLogger("elimina")

_DEFAULT = Network()
_LONG_SECONDS = 10.0
_SIMULATED = ("delivery", "delay", "jitter", "loss", "duplicate", "retries", "crashes", "downtime", "timeline")


def _wait_of(text: str | float) -> float:
    """Read a time in seconds, 0 included."""
    return 0.0 if str(text) in ("0", "0.0") else seconds_of(text)


def _downtime_of(text: str | float) -> float:
    return math.inf if text == "never" else _wait_of(text)


def _crash_of(text: str) -> tuple[str, int]:
    """Read an agent and the number of the message at which it crashes: ``a1@3``.

    Raises:
        BadParameter: The text has another form.
    """
    name, at, number = text.rpartition("@")
    if not at or not number.isdecimal() or int(number) < 1:
        raise click.BadParameter(f"{text!r} is invalid: expected an agent and a message number, such as a1@3")
    return name, int(number)


@click.command(cls=Command)
@click.argument("file", type=click.Path())
@choice_option(
    "--algo",
    choices=ALGORITHMS,
    help="Algorithm: dpop (exact), mb-dpop (exact, within --memory) or adpop (bounds, within --ibound).",
)
@number_option("--ibound", default=None, minimum=1, help="Largest number of variables in a table (adpop).")
@number_option(
    "--filter",
    "filtering",
    default=None,
    minimum=1,
    help="Send only tuples that can be optimal, by bounds from tables of at most N variables (dpop).",
)
@option(
    "--device",
    "--devices",
    "--agents",
    "agents",
    type=device_of,
    default="cpu",
    show_default=True,
    metavar="DEVICE",
    help="Device of the agents: cpu, cuda, or GPUs by number (0,1).",
)
@heuristic_option
@memory_option("Memory limit of each agent's tables, like 500MB.")
@threads_option("Number of CPU threads of an agent.  [default: all]")
@number_option("--seed", group="expert", help="Random seed.")
@choice_option(
    "--delivery",
    choices=ORDERS,
    group="expert",
    help="Order in which messages are delivered: by the agents' clocks, as sent, or at random.",
)
@seconds_option(
    "--delay", default=0.0, group="network", help="Simulated delay of a message, in seconds.", read=_wait_of
)
@seconds_option(
    "--jitter",
    default=0.0,
    group="network",
    help="Maximum random delay added to each message, in seconds.",
    read=_wait_of,
)
@share_option("--loss", group="network", help="Share of transmissions lost, from 0 to 1.")
@share_option("--duplicate", group="expert", help="Share of transmissions that arrive twice.")
@number_option(
    "--retries",
    default=_DEFAULT.retries,
    group="expert",
    help="Number of repeats of a lost message before the run fails.",
)
@option(
    "--crash",
    "crashes",
    type=_crash_of,
    multiple=True,
    metavar="AGENT@N",
    group="network",
    help="Crash of an agent at its N-th message; it restarts from its log. Repeatable.",
)
@option(
    "--downtime",
    type=_downtime_of,
    default=_DEFAULT.downtime,
    show_default=True,
    metavar="SECONDS|never",
    group="network",
    help="Time until an agent restarts, in seconds.",
)
@time_limit_option
@file_option("--timeline", group="output", help="Picture of the run, .svg or .html.")
@format_options("human", "json")
@output_option()
@cluster_options
@source_option
@verbose_option
def dcop(
    file: str,
    algo: Any,
    format_: str,
    agents: str,
    time_limit: float | None,
    timeline: str | None,
    output: str | None,
    cluster: str | None,
    local: int | None,
    **options: Any,
) -> None:
    """Solve the distributed problem in FILE with agents that exchange messages with their neighbours.

    FILE is .yaml (pyDCOP), .xml (FRODO's XCSP, XDisCSP) or .json. A cost model in another format gets an agent for
    each variable. The network is simulated in this process, unless --cluster or --local runs the agents on workers.
    """
    names = ("delay", "jitter", "loss", "duplicate", "retries", "downtime", "seed")
    network = Network(
        order=options["delivery"], crashes=dict(options["crashes"]), **{name: options[name] for name in names}
    )
    call_arguments = {name: options[name] for name in ("memory", "threads")}
    agent_options = AgentOptions(
        agents=agents, **{name: options[name] for name in ("ibound", "heuristic", "seed", "filtering")}
    )
    started = time.monotonic()
    if time_limit is not None:
        signals.alarm(time_limit)
    if output is not None:
        check_writable(Path(output), file)
    if timeline is not None:
        from elimina.viz.timeline import check_timeline, draw_timeline

        check_timeline(timeline)
    problem = read_problem(source_of(file))
    read = time.monotonic() - started
    deliveries: list[Delivery] = []

    def remaining() -> float | None:
        return signals.remaining(time_limit, time.monotonic() - started)

    with Progress() as progress, cluster_of(cluster, local, agents) as client:
        if client is not None:
            from elimina.distributed import solve_agents

            reject_given(_SIMULATED, "a cluster", "they belong to the simulated network")
            reject_given(("filtering",), "a cluster", "its agents send whole tables; leave it out")
            result = solve_agents(
                problem, algo, client=client, time_limit=remaining(), options=agent_options, **call_arguments
            )
        else:
            listener = None if timeline is None else deliveries.append
            agent_options = replace(
                agent_options,
                listener=listener,
                on_forecast=lambda forecast: _announce(forecast, progress),
                progress=progress.update,
            )
            result = solve(
                problem, algo, network=network, time_limit=remaining(), options=agent_options, **call_arguments
            )
        # Printed before the workers end, because that may take a while.
        with signals.deferred():
            result = signals.attributed(with_reading(result, read))
            write_answer(result, _human, format_for(output, format_), output)
    if timeline is not None:
        title = f"{source_text(Path(file).name)}: {algo}, {seconds_text(result.stats['simulated_seconds'])} simulated"
        draw_timeline(deliveries, [agent.name for agent in problem.agents], timeline, title)


def _announce(forecast: Forecast, progress: Progress) -> None:
    """Log the forecast, and show a progress bar; with neither visible, print the forecast of a long run."""
    logger.info("%s", forecast)
    progress.show(f"width {forecast.width}, about {seconds_text(forecast.seconds)}", forecast.seconds)
    if forecast.seconds > _LONG_SECONDS and not sys.stderr.isatty() and not logger.isEnabledFor(logging.INFO):
        click.echo(f"elimina: {forecast}", err=True)


def read_problem(file: str) -> Problem:
    """Read a distributed problem; a cost model gets an agent for each variable.

    Raises:
        InputError: The suffix is unknown, or the file cannot be read.
    """
    suffix = suffix_of(Path(file))
    distributed_problems, models = by_suffix("distributed problem"), by_suffix("model")
    if suffix not in {**distributed_problems, **models}:
        others = ", ".join(name for name in models if name not in distributed_problems)
        raise InputError(
            f"{source_text(file)}: unknown suffix {suffix and '.' + suffix!r}; distributed problems are "
            f"{', '.join(distributed_problems)}, "
            f"and models with an agent for each variable {others} (perhaps with .gz or .xz)"
        )
    form = format_of(Path(file))
    if form is not None and form.content == "distributed problem":
        return distributed.read(file)
    return Problem.from_model(read(file))


def _human(result: Result) -> str:
    stats = result.stats
    rows = outcome_rows(result)
    messages, largest = stats["messages"], bytes_text(stats["largest_message"])
    counts = ", ".join(f"{count_text(number)} {kind}" for kind, number in messages.items())
    repeated = f"; {count_text(stats['repeated'])} repeated" if stats.get("repeated") else ""
    tree = "" if stats["induced_width"] is None else f"width {stats['induced_width']}, depth {stats['depth']} "
    dtype = "" if stats["dtype"] is None else f", {stats['dtype']}"
    rows += [
        ("agents", f"{stats['agents']} on {stats['device']}{dtype}"),
        ("tree", f"{tree}(largest table: {counted(stats['largest_table'], 'cell', is_rounded=True)})"),
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
        rows.append(("assignment", assignment_text(result.assignment)))
    return labelled(rows)


def _filtered(stats: Mapping[str, Any]) -> list[tuple[str, str]]:
    if "rows_sent" not in stats:
        return []
    return [("tuples", f"{count_text(stats['rows_sent'])} sent of {count_text(stats['dense_rows'])} of whole tables")]


def _simulated(stats: Mapping[str, Any]) -> tuple[str, str]:
    operations = (
        f"{count_text(stats['nonconcurrent_operations'])} operations of {count_text(stats['total_operations'])}"
    )
    return "simulated", f"{seconds_text(stats['simulated_seconds'])}, {operations} one after another"


def _clusters(stats: Mapping[str, Any]) -> tuple[str, str]:
    lost = f", {stats['lost_workers']} lost ({stats['restarted_agents']} agents started again)"
    between = f"{stats['workers']}, {bytes_text(stats['transferred_bytes'])} between them"
    return "workers", between + (lost if stats["lost_workers"] else "")
