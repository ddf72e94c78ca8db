"""Tables of the parameters of a network to which a posterior is most sensitive."""

from __future__ import annotations

import time

from elimina.methods.junction_tree import JunctionTree
from elimina.number_texts import probability_text
from elimina.planning.options import Options
from elimina.problem.tasks import described
from elimina.reporting.answers import Question
from elimina.reporting.html import Markup, bar, joined, paragraph, short, table
from elimina.result import Result
from elimina.strategies.call import Call
from elimina.viz.charts import RangeChart, sensitivity_chart

CHANGE = 0.1
"""Share of its value by which each parameter decreases and increases."""

_CHANGED = f"{100 * CHANGE:.0f} %"

_MAX_QUERIES = 5
_MAX_ROWS = 10


def can_vary(asked: Question, result: Result) -> bool:
    """Return whether parameters can be varied: in a Bayesian network, for posteriors of variables named by a query."""
    return bool(asked.model.children is not None and asked.query and described(result.task).is_marginal)


def parameters_section(asked: Question, result: Result, deadline: float) -> Markup:
    """Return a table for each of the query's first unobserved variables: the sensitivity of its most probable state.

    The section is empty if no parameter changes these posteriors.

    Args:
        asked: Question whose answer is explained.
        result: Answer to the question.
        deadline: Time limit, by ``time.monotonic``.

    Raises:
        MemoryLimitError: The posteriors do not fit into memory.
        TimeLimitError: The time limit passed.
    """
    options = Options(
        device=asked.options.device,
        memory=asked.options.memory,
        order=asked.options.order,
        threads=asked.options.threads,
        exact=True,
    )
    names = [name for name in asked.query or () if name not in asked.evidence][:_MAX_QUERIES]

    def tables() -> list[Markup]:
        tree = JunctionTree(asked.model, evidence=asked.evidence, options=options)
        events = [{name: max(result.marginals[name].items(), key=lambda row: row[1])[0]} for name in names]
        charts = [sensitivity_chart(tree.sensitivities(event), CHANGE, _MAX_ROWS) for event in events]
        return [_chart_table(chart) for chart in charts if chart.names]

    shown = Call(result.task, max(deadline - time.monotonic(), 1e-3)).result(tables)
    explanation = paragraph(
        f"Each row is a number of the model, and the posterior if it is {_CHANGED} smaller or larger, while the "
        "other numbers of its distribution change in proportion."
    )
    return joined([explanation, *shown]) if shown else Markup()


def _chart_table(chart: RangeChart) -> Markup:
    """Return a table of the ranges of a posterior, the widest first."""
    widths = [abs(high - low) for low, high in chart.ranges]
    rows = [
        (
            short(name),
            probability_text(low),
            bar(width / max(widths), probability_text(high)),
        )
        for name, (low, high), width in zip(chart.names, chart.ranges, widths, strict=True)
    ]
    header = ("number", f"{_CHANGED} smaller", f"{_CHANGED} larger")
    return table(f"Sensitivity of {short(chart.title)}", header, rows)
