"""Agents on a page: their messages and work, and their pseudo-tree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from elimina.dcop.agent import agree_on_tree
from elimina.dcop.problem import Problem
from elimina.number_texts import bytes_text, seconds_text
from elimina.reporting.html import Markup, bar, joined, paragraph, short, table
from elimina.result import Delivery
from elimina.viz.diagram import Colouring, Diagram
from elimina.viz.pseudotree import pseudotree_diagram

_MAX_AGENTS = 60
"""Largest number of agents in the table of messages."""

_MAX_NODES, _MAX_BACK_EDGES = 3000, 10_000


def messages_section(deliveries: Sequence[Delivery]) -> Markup:
    """Return tables of the messages by kind, and of the agents that send most; a note if no message was sent."""
    sent = any(delivery.kind for delivery in deliveries)
    if not sent:
        return paragraph("No message was sent.")
    by_kind: dict[str, list[int]] = defaultdict(list)
    out: dict[str, int] = defaultdict(int)
    largest: dict[str, int] = defaultdict(int)
    received: dict[str, int] = defaultdict(int)
    work: dict[str, float] = defaultdict(float)
    for delivery in deliveries:
        work[delivery.receiver] += delivery.ended - delivery.begun
        if delivery.kind:
            by_kind[delivery.kind].append(delivery.size)
            out[delivery.sender] += delivery.size
            largest[delivery.sender] = max(largest[delivery.sender], delivery.size)
            received[delivery.receiver] += delivery.size
    total = sum(map(sum, by_kind.values())) or 1
    kinds = [
        (kind, f"{len(sizes):,}", bytes_text(max(sizes)), bar(sum(sizes) / total, bytes_text(sum(sizes))))
        for kind, sizes in sorted(by_kind.items(), key=lambda pair: -sum(pair[1]))
    ]
    names = sorted(work, key=lambda name: (-out[name], name))
    largest_output = max(*out.values(), 1)
    rows = [
        (
            short(name),
            bar(out[name] / largest_output, bytes_text(out[name])),
            bytes_text(largest[name]),
            bytes_text(received[name]),
            seconds_text(work[name]),
        )
        for name in names[:_MAX_AGENTS]
    ]
    caption = f"Agents{'' if len(rows) == len(names) else f': the {len(rows):,} of {len(names):,} that send most'}"
    return joined(
        [
            table("Messages by kind", ("kind", "messages", "largest", "bytes of all"), kinds),
            table(caption, ("agent", "sends", "largest message", "receives", "time at work"), rows),
        ]
    )


def shown_pseudotree(problem: Problem, deliveries: Sequence[Delivery]) -> Diagram:
    """Return the agents' pseudo-tree, coloured by the bytes that each variable's agent sends."""
    tree = agree_on_tree(problem)
    sent: dict[str, int] = defaultdict(int)
    for delivery in deliveries:
        if delivery.kind:
            sent[delivery.sender] += delivery.size
    variables = problem.model.variables
    scopes = [factor.scope for factor in problem.model.factors]
    diagram = pseudotree_diagram(tree, scopes, [variable.name for variable in variables], _MAX_BACK_EDGES)
    owners = [problem.agents[problem.owners[node.variable]].name for node in reversed(tree.nodes)]
    largest = max(sent.values(), default=0) or 1
    shares = [round(sent[owner] / largest, 4) for owner in owners]
    return replace(
        diagram,
        details=[
            [(f"agent {short(owner)}", None), (f"sends {bytes_text(sent[owner])}", share)]
            for owner, share in zip(owners, shares, strict=True)
        ],
        colourings=[Colouring("bytes that its agent sends", shares, ("0", bytes_text(largest)), True)],
    )


def can_draw(problem: Problem) -> bool:
    """Return whether the problem has variables, and few enough to make and draw the pseudo-tree quickly."""
    return 0 < len(problem.model.variables) <= _MAX_NODES
