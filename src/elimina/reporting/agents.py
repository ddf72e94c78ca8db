"""Agents of a distributed problem: their messages and work, on the pseudo-tree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from elimina.dcop.problem import Problem
from elimina.dcop.pseudotree import agree_on_tree
from elimina.planning.plan import bytes_text, seconds_text
from elimina.reporting.drawing import Colouring, Drawing, on_page
from elimina.reporting.markup import Markup, bar, joined, paragraph, short, table
from elimina.result import Delivery
from elimina.viz.pseudotree import back_edges
from elimina.viz.tidy import tidy_layout

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
