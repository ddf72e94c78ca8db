"""Command ``elimina decide``."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from elimina.answer_texts import labelled, marginals_table, policies_lines
from elimina.cli import signals
from elimina.cli.grouped_options import Command, option
from elimina.cli.model_input import source_of, source_option, verbose_option
from elimina.cli.model_output import write_answer
from elimina.cli.options import (
    check_writable,
    evidence_option,
    format_for,
    format_options,
    naming_time_limit,
    number_option,
    output_option,
    sampling_options,
    time_limit_option,
)
from elimina.cli.question_inputs import call_options, evidence_of
from elimina.decisions import InfluenceDiagram, ObservationGains
from elimina.errors import TimeLimitError
from elimina.number_texts import seconds_text
from elimina.result import Result
from elimina.running.phases import with_reading
from elimina.strategies.call import Call


@click.command(cls=Command)
@click.argument("file", type=click.Path())
@evidence_option
@option(
    "--policy",
    "policies",
    multiple=True,
    metavar="DECISION=STATE",
    help="State that a decision always has, instead of the best ones. Repeatable.",
)
@option("--no-forgetting", is_flag=True, help="Let each decision see all earlier ones and their observations.")
@option(
    "--gains",
    "gaining",
    metavar="DECISION",
    help="Decision for which to list the gain of observing each further variable.",
)
@number_option("--restarts", help="Number of further, random starts where the diagram is not soluble.")
@number_option("--seed", "start_seed", help="Random seed of the starts.")
@sampling_options
@time_limit_option
@format_options("human", "json")
@output_option()
@source_option
@option("--no-check", is_flag=True, group="expert", help="Accept distributions that do not sum to 1 as they are.")
@verbose_option
def decide(
    file: str,
    policies: tuple[str, ...],
    no_forgetting: bool,
    gaining: str | None,
    time_limit: float | None,
    format_: str,
    output: str | None,
    no_check: bool,
    **options: Any,
) -> None:
    """Find policies of largest expected utility in the influence diagram in FILE: .bifxml or .xdsl; also .gz, .xz.

    A decision sees the nodes with an arc to it. Decisions in .xdsl files also see all earlier ones and their
    observations.
    """
    started = time.monotonic()
    if gaining is not None and policies:
        raise click.UsageError("--gains lets all decisions follow their best policies: leave --policy out")
    if output is not None:
        check_writable(Path(output), file, options["order"], *options["evidence"])
    file = source_of(file)

    def read() -> InfluenceDiagram:
        diagram = InfluenceDiagram.read(file, check=not no_check)
        return diagram.with_no_forgetting() if no_forgetting else diagram

    diagram = Call("read", time_limit).result(read)
    reading = time.monotonic() - started
    network = diagram.network
    asked, evidence = call_options(options, network), evidence_of(options["evidence"], network)
    fixed = evidence_of(policies, network, "--policy")
    if gaining is not None:
        diagram.decision_index(gaining)
    question = {
        "evidence": evidence,
        "restarts": options["restarts"],
        "seed": options["start_seed"],
        "options": asked,
    }
    with naming_time_limit(time_limit, reading):
        limit = signals.remaining(time_limit, reading)
        result = diagram.solve(policies=fixed, time_limit=limit, **question)
        if gaining is not None and result.ended_by is None:
            limit = signals.remaining(time_limit, time.monotonic() - started)
            result = _with_gains(
                result, gaining, lambda: diagram.observation_gains(gaining, time_limit=limit, **question)
            )
    with signals.deferred():
        result = signals.attributed(with_reading(result, reading))
        write_answer(result, _text_of, format_for(output, format_), output)


def _with_gains(result: Result, decision: str, gains_of: Callable[[], ObservationGains]) -> Result:
    """Return an answer with the gains of observations, or without them if the time limit passes first."""
    try:
        gains = [row._asdict() for row in gains_of()]
    except TimeLimitError:
        return result.replace(ended_by="time-limit")
    return result.replace(stats={**result.stats, "gains": {decision: gains}})


def _text_of(result: Result) -> str:
    rows = [("status", str(result.status))]
    if result.ended_by is not None:
        rows.append(("ended by", result.ended_by))
    rows.append(("utility", f"{result.value:.10g}"))
    if result.status == "bounded":
        rows.append(("at most", f"{result.upper_bound:.10g}"))
    if len(result.stats["utilities"]) > 1:
        rows += [(f"of {name}", f"{value:.10g}") for name, value in result.stats["utilities"].items()]
    rows.append(("time", seconds_text(result.stats["seconds"]["total"])))
    lines = [labelled(rows), *policies_lines(result.policies)]
    for decision, gains in result.stats.get("gains", {}).items():
        lines.append(f"gains of {decision} by observing:")
        width = max((len(row["variable"]) for row in gains), default=0)
        lines += [f"{row['variable']:<{width}}  {row['gain']:.10g}" for row in gains]
    return "\n".join([*lines, marginals_table(result.marginals)] if result.marginals else lines)
