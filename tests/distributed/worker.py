"""A worker of Dask in a process forked from one that has loaded its modules: they take most of a test's time."""

from __future__ import annotations

import os


def run(arguments: list[str]) -> None:
    """Run ``dask worker`` without output."""
    from distributed.cli.dask_worker import main

    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    main(arguments)
