"""Hooks of the documentation's build: the help of every command becomes part of the page that asks for it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import click

from elimina.cli.commands import commands

CLICK, ARGPARSE = "<!-- help of elimina -->", "<!-- help of fzn-elimina -->"
WIDTH = 100  # columns of the text


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the programs' help in its places."""
    if CLICK in markdown:
        markdown = markdown.replace(CLICK, "\n\n".join(_sections(commands, "elimina")))
    if ARGPARSE in markdown:
        program = "from elimina.cli.flatzinc import main; main(['--help'])"
        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        markdown = markdown.replace(ARGPARSE, f"```text\n{ran.stdout}```")
    return markdown


def _sections(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[str]:
    options = commands.context_settings["help_option_names"]
    context = click.Context(command, parent, name.rpartition(" ")[2], terminal_width=WIDTH, help_option_names=options)
    yield f"## {name}\n\n```text\n{command.get_help(context)}\n```"
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None
            yield from _sections(found, f"{name} {child}", context)
