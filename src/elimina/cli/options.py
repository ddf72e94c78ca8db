"""Options of several commands."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click
from click.core import ParameterSource

from elimina import arguments
from elimina.cli.grouped_options import Decorated, Group, Share, WholeNumber, option, together
from elimina.errors import InputError, TimeLimitError
from elimina.number_texts import seconds_text
from elimina.planning.option_table import MAX_THREADS, OPTIONS, Engine, OptionRecord
from elimina.planning.option_values import Values, read_device, read_seconds
from elimina.problem.tasks import NAMES, task_of

if TYPE_CHECKING:
    from distributed import Client

Value = TypeVar("Value")


def reader(read: Callable[[Any], Value]) -> Callable[[Any], Value]:
    """Return a reader of an option's text that raises errors of the command line."""

    def read_parameter(text: Any) -> Value:
        try:
            return read(text)
        except InputError as error:
            raise click.BadParameter(str(error)) from None

    return read_parameter


bytes_of = reader(arguments.parse_size)
device_of = reader(read_device)
seconds_of = reader(read_seconds)


def check_no_input(option: str, output: Path, *inputs: str | None) -> None:
    """Raise InputError if a file that an option names would replace one of the inputs.

    Args:
        option: Name of the option.
        output: Output file.
        inputs: Arguments of the command that may name input files.
    """
    for file in inputs:
        if file is not None and output.exists() and os.path.exists(file) and output.samefile(file):
            raise InputError(f"cannot write {output}: it is an input of this command; name another file ({option})")


def check_writable(output: Path, *inputs: str | None) -> None:
    """Raise InputError before any work is done if a file cannot be written, or would replace one of the inputs."""
    check_no_input("-o", output, *inputs)
    if output.exists() and not (output.is_dir() or output.is_file()):
        return
    folder = Path(os.path.realpath(output)).parent
    if output.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        reason = "it is a directory" if output.is_dir() else f"{output.parent} is not a writable directory"
        raise InputError(f"cannot write {output}: {reason}")


def number_option(
    *names: str,
    help: str,
    default: int | None = 0,
    minimum: int = 0,
    maximum: int | None = None,
    group: Group = "common",
) -> Callable[[Decorated], Decorated]:
    """Return an option whose value is a whole number; None if it is not given and ``default`` is None."""
    kind = WholeNumber(min=minimum, max=maximum)
    return option(*names, type=kind, default=default, show_default=True, metavar="N", group=group, help=help)


def choice_option(
    *names: str, choices: Sequence[str], default: str | None = None, **settings: Any
) -> Callable[[Decorated], Decorated]:
    """Return an option whose value is one of some words, the first one by default; for ``settings`` see ``Option``."""
    default = choices[0] if default is None else default
    return option(*names, type=click.Choice(choices), default=default, show_default=True, **settings)


def file_option(*names: str, metavar: str = "FILE", **settings: Any) -> Callable[[Decorated], Decorated]:
    """Return an option whose value is a path."""
    return option(*names, type=click.Path(), metavar=metavar, **settings)


def output_option(
    help: str = "File for the answer; .json means --json.", **settings: Any
) -> Callable[[Decorated], Decorated]:
    """Return ``-o``, the file of an answer; a dash is standard output."""
    return file_option("-o", "--output", group="output", callback=_unless_dash, help=help, **settings)


def _unless_dash(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    return None if value == "-" else value


def share_option(*names: str, default: float = 0.0, **settings: Any) -> Callable[[Decorated], Decorated]:
    """Return an option whose value is a number from 0 to 1."""
    return option(*names, type=Share(), default=default, metavar="SHARE", **settings)


def seconds_option(
    *names: str, read: Callable[[str], float] = seconds_of, **settings: Any
) -> Callable[[Decorated], Decorated]:
    """Return an option whose value is a time in seconds."""
    return option(*names, type=read, metavar="SECONDS", **settings)


def threads_option(help: str) -> Callable[[Decorated], Decorated]:
    """Return ``--threads``."""
    return number_option("--threads", default=None, minimum=1, maximum=1024, group="limits", help=help)


def memory_option(help: str) -> Callable[[Decorated], Decorated]:
    """Return ``--memory``."""
    return option("--memory", type=bytes_of, metavar="SIZE", group="limits", help=help)


_NAMED_READING_SHARE = 0.01
"""An error about a time limit states the time of reading if it exceeds this share of the limit."""

time_limit_option = seconds_option("--time-limit", group="limits", help="Time limit in seconds, reading included.")


class _TaskChoice(click.Choice[str]):
    """A choice of tasks by their names and aliases; its value is the task."""

    def __init__(self) -> None:
        super().__init__(NAMES, case_sensitive=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the task with this name or alias."""
        return task_of(super().convert(value, param, ctx))


def task_option(default: str | None, shown: str) -> Callable[[Decorated], Decorated]:
    """Return ``--task``.

    Args:
        default: Task where the option is not given; None: the command chooses.
        shown: Description of the default in the help.
    """
    text = f"Task, one of the above.  [default: {shown}]"
    return option("--task", type=_TaskChoice(), default=default, metavar="TASK", help=text)


def _type_of(values: Values) -> Any:
    """Return the type of an option's value, as click takes it."""
    if values.read is not None:
        return reader(values.read)
    if values.words:
        return click.Choice(values.words)
    if values.limits is not None:
        return WholeNumber(*values.limits)
    return click.Path() if values.is_path else str


def _option_of(record: OptionRecord) -> Callable[[Decorated], Decorated]:
    """Return the option of the command line for an option of a call."""
    default = "" if record.default_text is None else f"  [default: {record.default_text}]"
    return option(
        *record.command_line,
        record.name,
        type=None if record.values.is_flag else _type_of(record.values),
        is_flag=record.values.is_flag,
        default=None if record.values.is_repeatable else record.default,
        show_default=record.default is not None and not record.values.is_flag,
        multiple=record.values.is_repeatable,
        metavar=record.metavar,
        group=record.group,
        help=record.help + default,
    )


def _options_of(scope: Literal["plan", "run"]) -> list[Callable[[Decorated], Decorated]]:
    return [_option_of(record) for record in OPTIONS if record.scope == scope and record.command_line]


evidence_option = option(
    "--evidence",
    multiple=True,
    metavar="FILE|A=x,B=y",
    help="Evidence file, or observations. Repeatable.",
)
"""``--evidence``, with values for ``evidence_of``."""

planning_options = together(
    task_option("mpe", "mpe"),
    evidence_option,
    option(
        "--query",
        multiple=True,
        metavar="A,B|FILE",
        help="Variables to report (mar, mmap), or a .query file. Repeatable.  [default: all]",
    ),
    *_options_of("plan"),
)
"""Options of commands that plan: task, evidence, query, and those of a plan."""

sampling_options = together(
    *(
        _option_of(record)
        for record in OPTIONS
        if record.name in ("device", "memory", "order", "order_seconds", "threads")
    )
)
"""Options of a plan that also apply to ``sample``, ``fit`` and ``decide``."""

run_options = together(*_options_of("run"))
"""Options of commands that run a plan."""


def names_not_for(*engines: Engine) -> tuple[str, ...]:
    """Return the names of the options that apply to none of the given algorithms."""
    return tuple(
        record.name for record in OPTIONS if record.command_line and not set(engines).intersection(record.engines)
    )


def format_options(*formats: str) -> Callable[[Decorated], Decorated]:
    """Add ``--format``, whose value is ``format_``, and ``--json`` for short.

    Args:
        formats: Names of the formats; the first one is the default.
    """
    return together(
        choice_option(
            "--format",
            "format_",
            choices=formats,
            callback=_chosen_format,
            group="output",
            metavar="FORMAT",
            help=f"Format of the answer: {', '.join(formats)}.",
        ),
        option(
            "--json",
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_note_json,
            group="output",
            help="Short for --format json.",
        ),
    )


def _note_json(context: click.Context, option: click.Parameter, value: bool) -> None:
    context.meta[__name__] = value


def _chosen_format(context: click.Context, option: click.Parameter, value: str) -> str:
    if not context.meta.get(__name__):
        return value
    if value != "json" and context.get_parameter_source("format_") is not ParameterSource.DEFAULT:
        raise click.UsageError(f"--json and --format {value} contradict each other; give one of them")
    return "json"


def format_for(output: str | None, name: str) -> str:
    """Return the format of an answer: ``name``, or JSON for the suffix .json unless ``--format`` is given."""
    is_chosen = click.get_current_context().get_parameter_source("format_") is not ParameterSource.DEFAULT
    return name if is_chosen or output is None or Path(output).suffix.lower() != ".json" else "json"


cluster_options = together(
    option(
        "--cluster",
        metavar="ADDRESS",
        group="expert",
        help="Address of a Dask scheduler to run on, such as tcp://host:8786 or tls://host:8786.",
    ),
    number_option(
        "--local",
        default=None,
        minimum=1,
        maximum=MAX_THREADS,
        group="expert",
        help="Number of worker processes to start on this machine.",
    ),
)
"""Options of commands that may run on a cluster."""


@contextmanager
def cluster_of(address: str | None, local: int | None, device: str) -> Iterator[Client | None]:
    """Yield a client of the cluster of ``--cluster`` or ``--local``; None if neither is given.

    Raises:
        UsageError: Both are given.
        ClusterError: No scheduler answers at the address.
        DeviceError: There are fewer GPUs than workers on GPUs.
    """
    if address is not None and local is not None:
        raise click.UsageError(
            "--cluster and --local contradict each other: give --cluster for running workers, or --local to start some"
        )
    if address is None and local is None:
        yield None
        return
    from elimina import distributed

    # The answer, or a one-line error, reports lost workers, so Dask's own log of them is not shown.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with distributed.connected(address) if address is not None else distributed.local(local or 1, device) as client:
        yield client


def reject_given(names: tuple[str, ...], what: str, reason: str) -> None:
    """Fail if the user gave one of these options.

    Args:
        names: Parameter names of the options.
        what: Subject of the error, incompatible with the options.
        reason: Cause, or what to do instead.

    Raises:
        UsageError: One of these options was given.
    """
    context = click.get_current_context()
    parameters = [p for p in context.command.params if p.name in names]
    flags = [p.opts[0] for p in parameters if context.get_parameter_source(str(p.name)) is not ParameterSource.DEFAULT]
    if flags:
        raise click.UsageError(f"{what} cannot be combined with {', '.join(flags)}: {reason}")


@contextmanager
def naming_time_limit(time_limit: float | None, reading: float) -> Iterator[None]:
    """Make an error about a time limit state the user's limit, and the time of reading unless it is short.

    The limit inside the block is shorter, because reading has taken some of the time.

    Args:
        time_limit: The user's limit in seconds, which includes reading; None for no limit.
        reading: Seconds that reading has taken.

    Raises:
        TimeLimitError: The limit passed.
    """
    try:
        yield
    except TimeLimitError as error:
        if time_limit is None:
            raise
        limit = f"--time-limit {time_limit:g}"
        if reading >= _NAMED_READING_SHARE * time_limit:
            limit = f"reading took {seconds_text(reading)} of the {time_limit:g} s of --time-limit"
        raise TimeLimitError(f"{error} ({limit})") from error
