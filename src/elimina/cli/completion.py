"""Command ``elimina completion``."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from elimina.cli.grouped_options import Command
from elimina.errors import InputError

SHELLS = ("bash", "zsh", "fish")


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a shell's completion script for the commands and options of elimina.

    Bash: add 'eval "$(elimina completion bash)"' to ~/.bashrc. Zsh: the same with zsh in ~/.zshrc. Fish: write the
    script to ~/.config/fish/completions/elimina.fish.
    """
    kind = get_completion_class(shell)
    root = context.find_root().command
    if kind is None:
        raise InputError(f"click has no completion for {shell}: upgrade click")
    try:
        script = kind(root, {}, "elimina", "_ELIMINA_COMPLETE").source()
    except RuntimeError as error:
        raise InputError(f"cannot complete in {shell}: {error}") from None
    click.echo(script)
