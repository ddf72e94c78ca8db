"""The command line."""

from elimina.cli.main import main

__all__ = ["main"]
