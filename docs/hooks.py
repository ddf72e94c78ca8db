"""Hooks of the documentation's build.

The help of every command becomes part of the page that asks for it. Pages of the repository outside of ``docs`` become
pages of the site.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from mkdocs.structure.files import File, Files

from elimina.cli import grouped_options
from elimina.cli.commands import commands

CLICK, ARGPARSE = "<!-- help of elimina -->", "<!-- help of fzn-elimina -->"
WIDTH = 100  # columns of the text
ROOT = Path(__file__).parents[1]
PROJECT_PAGES = (
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "bench/RESULTS.md",
    "bench/results/*.md",
)
DOCS_LINK = re.compile(r"(\]\((?:\.\./)*)docs/")
"""Link to a page of ``docs``, which is the root of the site."""


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Add the pages that lie outside of ``docs``, at the same paths."""
    for pattern in PROJECT_PAGES:
        for page in sorted(ROOT.glob(pattern)):
            text = DOCS_LINK.sub(r"\1", page.read_text())
            files.append(File.generated(config, str(page.relative_to(ROOT)), content=text))
    return files


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
    context.meta[grouped_options.__name__] = True  # the expert options, too
    yield f"## {name}\n\n```text\n{command.get_help(context)}\n```"
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None
            yield from _sections(found, f"{name} {child}", context)
