"""Sections on agents (their messages and work) and on constraint models (the search)."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from elimina.cp.model import Model
from elimina.cp.search_options import SearchOptions
from elimina.cp.solution import Solution
from elimina.dcop.agent import agree_on_tree
from elimina.dcop.problem import Problem
from elimina.display import bytes_text, seconds_text
from elimina.reporting.drawing import (
    Colouring,
    Drawing,
    Markup,
    bar,
    figures,
    joined,
    on_page,
    paragraph,
    short,
    table,
    time_chart,
)
from elimina.result import Delivery, Result
from elimina.viz.layouts import tidy_layout
from elimina.viz.trees import back_edges

_MOST_AGENTS = 60
_MOST_NODES, _MOST_BACK = 3000, 10_000


def messages_section(deliveries: Sequence[Delivery]) -> Markup:
    """Return tables of the messages by kind, and of the agents that send most."""
    sent = [one for one in deliveries if one.kind]
    if not sent:
        return paragraph("No message was sent.")
    by_kind: dict[str, list[int]] = defaultdict(list)
    out: dict[str, int] = defaultdict(int)
    largest: dict[str, int] = defaultdict(int)
    received: dict[str, int] = defaultdict(int)
    work: dict[str, float] = defaultdict(float)
    for one in deliveries:
        work[one.receiver] += one.ended - one.begun
        if one.kind:
            by_kind[one.kind].append(one.size)
            out[one.sender] += one.size
            largest[one.sender] = max(largest[one.sender], one.size)
            received[one.receiver] += one.size
    total = sum(map(sum, by_kind.values())) or 1
    kinds = [
        (kind, f"{len(sizes):,}", bytes_text(max(sizes)), bar(sum(sizes) / total, bytes_text(sum(sizes))))
        for kind, sizes in sorted(by_kind.items(), key=lambda pair: -sum(pair[1]))
    ]
    names = sorted(work, key=lambda name: (-out[name], name))
    most = max(*out.values(), 1)
    rows = [
        (
            short(name),
            bar(out[name] / most, bytes_text(out[name])),
            bytes_text(largest[name]),
            bytes_text(received[name]),
            seconds_text(work[name]),
        )
        for name in names[:_MOST_AGENTS]
    ]
    caption = f"Agents{'' if len(rows) == len(names) else f': the {len(rows):,} of {len(names):,} that send most'}"
    return joined(
        [
            table("Messages by kind", ("kind", "messages", "largest", "bytes of all"), kinds),
            table(caption, ("agent", "sends", "largest message", "receives", "time at work"), rows),
        ]
    )


def draw_pseudotree(problem: Problem, deliveries: Sequence[Delivery]) -> Drawing:
    """Return the pseudo-tree that the agents agree upon; colours are the bytes that a variable's agent sends."""
    tree = agree_on_tree(problem)
    count = len(tree.nodes)
    out: dict[str, int] = defaultdict(int)
    for one in deliveries:
        if one.kind:
            out[one.sender] += one.size
    owners = [problem.agents[problem.owners[node.variable]].name for node in tree.nodes]
    x, levels = tidy_layout([node.parent for node in tree.nodes], [1.0] * count)
    places = np.stack([x, -1.0 * np.array(levels)], axis=1)
    down = [(node.parent, number) for number, node in enumerate(tree.nodes) if node.parent >= 0]
    scopes = [factor.scope for factor in problem.model.factors]
    back = back_edges(tree, scopes)[:_MOST_BACK]
    most = float(max(out.values(), default=0)) or 1.0
    title = f"Pseudo-tree of {count:,} variables, depth {max(levels) + 1}, width {tree.width}; back edges are dashed"
    names = [short(problem.model.variables[node.variable].name) for node in tree.nodes]
    return Drawing(
        "agents",
        title,
        names,
        places * on_page(places),
        [*down, *back],
        dashed=range(len(down), len(down) + len(back)),
        details=[
            [(f"agent {short(owner)}", None), (f"sends {bytes_text(out[owner])}", out[owner] / most)]
            for owner in owners
        ],
        colourings=[
            Colouring(
                "bytes that its agent sends",
                [round(out[owner] / most, 4) for owner in owners],
                ("0", bytes_text(round(most))),
                True,
            )
        ],
    )


def can_draw(problem: Problem) -> bool:
    """Return whether the pseudo-tree is small enough to be made and drawn soon."""
    return 0 < len(problem.model.variables) <= _MOST_NODES


_FIGURES = {
    "nodes": "nodes",
    "failures": "failures",
    "peak_depth": "greatest depth",
    "restarts": "restarts",
    "nogoods": "nogoods",
    "propagations": "calls of propagators",
    "solutions": "solutions",
}
_MOST_POINTS = 400


class Profile:
    """Figures of a search over time, thinned out while it runs."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._pause = 0.0
        self.points: list[tuple[float, Mapping[str, Any]]] = []
        self.values: list[tuple[float, float]] = []

    def note(self, known: Mapping[str, Any]) -> None:
        """Record the current figures if the last ones are old enough."""
        now = time.monotonic() - self._started
        if self.points and now - self.points[-1][0] < self._pause:
            return
        self.points.append((now, known))
        if len(self.points) > _MOST_POINTS:
            self.points = self.points[::2]
            self._pause = 2 * now / _MOST_POINTS

    def found(self, value: float) -> None:
        """Take the objective of a solution."""
        self.values.append((time.monotonic() - self._started, value))


def solve(model: Model, profile: Profile, time_limit: float | None, threads: int | None) -> Result:
    """Search for a solution, the best one with an objective, and watch the search.

    Args:
        model: Constraint model.
        profile: Record of the search.
        time_limit: Time limit in seconds; None for no limit.
        threads: Number of threads; None for one.
    """
    aim = model.objective

    def found(solution: Solution) -> None:
        if aim is not None:
            profile.found(float(solution[aim]))

    options = SearchOptions(free=True, progress=profile.note)
    return model.solve(time_limit=time_limit, threads=threads or 1, on_solution=found, options=options)


def search_section(result: Result, profile: Profile) -> Markup:
    """Return the search's figures, and their course."""
    stats = result.stats
    rows = [(label, f"{stats[name]:,}") for name, label in _FIGURES.items() if name in stats]
    seconds = stats["seconds"]["total"]
    if seconds > 0 and "nodes" in stats:
        rows.append(("nodes per second", f"{stats['nodes'] / seconds:,.0f}"))
    rows.append(("time", seconds_text(seconds)))
    parts: list[object] = [figures(rows)]
    if profile.values:
        parts.append(
            time_chart(
                "Objective of the best solution over time", [("objective", profile.values)], seconds, "objective"
            )
        )
    points = profile.points
    if len(points) > 1:
        for name, label in (("nodes", "Nodes"), ("failures", "Failures"), ("peak_depth", "Greatest depth")):
            if name in points[-1][1]:
                line = [(at, float(known[name])) for at, known in points]
                if name in stats:
                    line.append((seconds, float(stats[name])))
                parts.append(time_chart(f"{label} over time", [(label.lower(), line)], seconds, label.lower()))
    elif not profile.values:
        parts.append(paragraph("The search ended too soon for a course over time."))
    return joined(parts)
