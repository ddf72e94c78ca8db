"""Options in messages, as the user writes them: arguments in Python, flags on the command line."""

from __future__ import annotations

from collections.abc import Sequence

FLAGS = {
    "algorithm": "--algo",
    "filtering": "--filter",
    "order_seconds": "--order-time",
}
"""Names in Python -> flags, where the names differ."""

_door = {"uses_flags": False}


def uses_flags() -> bool:
    """Return whether messages name flags of the command line: True if the process runs a command."""
    return _door["uses_flags"]


def use_flags(is_on: bool) -> None:
    """Choose whether messages name flags or arguments from now on.

    The setting applies to the whole process, because threads of a call raise errors, too.

    Args:
        is_on: True for flags, because a command runs.
    """
    _door["uses_flags"] = is_on


def by_interface(python: str, command: str) -> str:
    """Return the advice for the interface in use.

    Args:
        python: Words for callers in Python.
        command: Words for the command line.

    Examples:
        >>> by_interface("read it by elimina.read", "solve it by 'elimina solve'")
        'read it by elimina.read'
    """
    return command if uses_flags() else python


def option(name: str, value: str | int | Sequence[str] | None = None) -> str:
    """Return an option as the user writes it.

    Args:
        name: Name of the option in Python.
        value: Value of the option (True or False for a switch); None: the option alone is named.

    Examples:
        >>> option("memory"), option("memory", "500MB"), option("query", ["A", "B"])
        ('memory', 'memory="500MB"', 'query=["A", "B"]')
    """
    if uses_flags():
        flag = FLAGS.get(name) or "--" + name.replace("_", "-")
        if value is False:
            return flag.replace("--", "--no-", 1)
        if value is None or value is True:
            return flag
        return f"{flag} {value if isinstance(value, str | int) else ','.join(value)}"
    if value is None:
        return name
    if isinstance(value, int):
        return f"{name}={value}"
    if isinstance(value, str):
        return f'{name}="{value}"'
    quoted = ", ".join(f'"{word}"' for word in value)
    return f"{name}=[{quoted}]"
