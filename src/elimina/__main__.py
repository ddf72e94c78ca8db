"""``python -m elimina``: the command line."""

from elimina.cli import main

main()
