"""Timelines of distributed runs: the work and the messages of agents over simulated time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path

from elimina import arguments
from elimina.errors import InputError
from elimina.io.files import save
from elimina.number_texts import bytes_text, seconds_text
from elimina.result import Delivery
from elimina.viz.colours import FAINT, INK, OUTLINE

SUFFIXES = (".svg", ".html")
MAX_AGENTS, MAX_MESSAGES = 200, 10_000
"""Limits of a legible picture."""

_WIDTH, _LANE, _TOP, _BOTTOM, _RIGHT = 1200, 24, 64, 40, 24
_LETTER = 7.0
_BAR = 9
_TICKS = 8
_COLOURS = {"util": "#c05621", "value": "#2f7d4f"}
_OTHER = "#9aa7b4"
_LEGEND = (("util", "#c05621"), ("value", "#2f7d4f"), ("election and traversal", _OTHER), ("at work", OUTLINE))


def check_timeline(path: str | os.PathLike[str]) -> None:
    """Check the suffix of a picture's file.

    Raises:
        InputError: The suffix is not one of ``SUFFIXES``.
    """
    if Path(path).suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: timelines are written to {' and '.join(SUFFIXES)} files")


def draw_timeline(
    deliveries: Sequence[Delivery], agents: Sequence[str], path: str | os.PathLike[str], title: str
) -> None:
    """Draw a run over simulated time; pointing at a mark shows its message.

    Args:
        deliveries: All deliveries of the run.
        agents: Names of the agents, from top to bottom.
        path: File of the picture: .svg, or .html around the same drawing.
        title: Title above the picture.

    Raises:
        InputError: There is too much to be drawn, the suffix is unknown, or the file cannot be written.
    """
    check_timeline(path)
    if len(agents) > MAX_AGENTS or len(deliveries) > MAX_MESSAGES:
        raise InputError(
            f"{len(agents)} agents and {len(deliveries)} messages are too many for a timeline, which shows "
            f"{MAX_AGENTS} and {MAX_MESSAGES}; take a smaller problem"
        )
    drawing = _drawing(deliveries, agents, title)
    if Path(path).suffix.lower() == ".html":
        head = f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title></head>'
        drawing = f'{head}\n<body style="margin: 1em">\n{drawing}</body></html>\n'
    save(arguments.file("path", path), [drawing])


def _drawing(deliveries: Sequence[Delivery], agents: Sequence[str], title: str) -> str:
    left = 24 + _LETTER * max((len(name) for name in agents), default=0)
    end = max((delivery.ended for delivery in deliveries), default=0.0) or 1.0
    height = _TOP + _LANE * len(agents) + _BOTTOM
    lanes = {name: _TOP + _LANE * (number + 0.5) for number, name in enumerate(agents)}

    def at(time: float) -> float:
        return left + (_WIDTH - left - _RIGHT) * time / end

    marks = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        f'<text x="16" y="22" font-size="14" fill="{INK}">{escape(title)}</text>',
    ]
    across = 16.0
    for text, colour in _LEGEND:
        marks.append(f'<rect x="{across:.0f}" y="36" width="14" height="8" fill="{colour}"/>')
        marks.append(f'<text x="{across + 20:.0f}" y="44" fill="{FAINT}">{text}</text>')
        across += 44 + _LETTER * len(text)
    marks.append('<g id="ticks" stroke="#e5eaef">')
    bottom = _TOP + _LANE * len(agents)
    for tick in range(_TICKS + 1):
        x = at(end * tick / _TICKS)
        label = seconds_text(end * tick / _TICKS) if tick else "0"
        marks.append(f'<line x1="{x:.1f}" y1="{_TOP - 4}" x2="{x:.1f}" y2="{bottom + 4}"/>')
        marks.append(
            f'<text x="{x:.1f}" y="{bottom + 22}" text-anchor="middle" stroke="none" fill="{FAINT}">{label}</text>'
        )
    marks.append('</g>\n<g id="agents">')
    for name, y in lanes.items():
        marks.append(f'<line x1="{left:.1f}" y1="{y}" x2="{_WIDTH - _RIGHT}" y2="{y}" stroke="#c9d2db"/>')
        marks.append(f'<text x="{left - 8:.1f}" y="{y + 4}" text-anchor="end" fill="{INK}">{escape(name)}</text>')
    marks.append('</g>\n<g id="messages" stroke-width="1.2">')
    # Messages of the coloured kinds are drawn last, so that the many others do not cover them.
    messages = [delivery for delivery in deliveries if delivery.kind]
    for message in sorted(messages, key=lambda message: message.kind in _COLOURS):
        colour = _COLOURS.get(message.kind, _OTHER)
        start = f'x1="{at(message.sent):.2f}" y1="{lanes[message.sender]}"'
        end_point = f'x2="{at(message.begun):.2f}" y2="{lanes[message.receiver]}"'
        description = (
            f"{message.kind} from {message.sender} to {message.receiver}, {bytes_text(message.size)}, sent at "
        )
        text = escape(f"{description}{seconds_text(message.sent)}")
        marks.append(f'<line {start} {end_point} stroke="{colour}" class="{message.kind}"><title>{text}</title></line>')
    marks.append(f'</g>\n<g id="work" fill="{OUTLINE}">')
    for delivery in deliveries:
        x, width = at(delivery.begun), max(at(delivery.ended) - at(delivery.begun), 0.6)
        frame = f'x="{x:.2f}" y="{lanes[delivery.receiver] - _BAR / 2}" width="{width:.2f}" height="{_BAR}"'
        work = f"{delivery.receiver}: {delivery.kind or 'start'}, {seconds_text(delivery.ended - delivery.begun)}"
        marks.append(f"<rect {frame}><title>{escape(work)}</title></rect>")
    marks.append("</g>\n</svg>\n")
    return "\n".join(marks)
