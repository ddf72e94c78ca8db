"""Options that several commands share, and readers of their values."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click
from click.core import ParameterSource

from elimina import arguments
from elimina._core import TextError
from elimina.cli.terminal import Decorated, Group, Share, WholeNumber, option, together
from elimina.display import seconds_text
from elimina.errors import InputError, TimeLimitError
from elimina.io.evidence import NamedEvidence, merge, parse_assignments, parse_names
from elimina.io.evidence_files import read_evidence
from elimina.io.files import load
from elimina.model.model import Model
from elimina.model.states import StateIndex, integer_of
from elimina.planning.devices import device_name
from elimina.planning.options import DIVISIONS, MOST_THREADS, ORDER_SECONDS, SHIFTS, TABLES, Options
from elimina.planning.order import Method, read_order
from elimina.problem.tasks import NAMES, task_of

if TYPE_CHECKING:
    from distributed import Client


def bytes_of(text: str) -> int:
    """Read an amount of memory: ``8GiB``, ``500 MB``, ``1e9``."""
    try:
        return arguments.parse_size(text)
    except InputError as error:
        raise click.BadParameter(str(error)) from None


def device_of(text: str) -> str:
    """Read a device, or several GPUs: ``cuda``, ``cuda:0,cuda:1``, ``0,1``."""
    parts = [part.strip() for part in text.split(",")]
    try:
        return device_name(f"cuda:{part}" if part.isdecimal() else part for part in parts)
    except InputError as error:
        raise click.BadParameter(str(error)) from None


def seconds_of(text: str | float) -> float:
    """Read a positive time in seconds."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 < number < float("inf"):
        raise click.BadParameter(f"{text!r} is invalid: expected a positive number of seconds")
    return number


def check_no_input(option: str, output: Path, *inputs: str | None) -> None:
    """Raise InputError if a file that an option names would replace one of the inputs.

    Args:
        option: Name of the option.
        output: File to be written.
        inputs: Files that are read, and what else the options of files may hold.
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


def _number_or(words: tuple[str, ...], unit: str) -> Callable[[str], int | str]:
    """Return a reader of one of these words, or of a number from 1 on."""

    def read(text: str) -> int | str:
        if text in words:
            return text
        if not re.fullmatch("[0-9]{1,18}", text) or int(text) < 1:
            raise click.BadParameter(
                f"{text!r} is invalid: expected {', '.join(words)} or a number of {unit} from 1 on"
            )
        return int(text)

    return read


def number_option(
    *names: str,
    help: str,
    default: int | None = 0,
    least: int = 0,
    most: int | None = None,
    group: Group = "common",
) -> Callable[[Decorated], Decorated]:
    """Return an option whose value is a whole number, or None without a default."""
    kind = WholeNumber(min=least, max=most)
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
    return number_option("--threads", default=None, least=1, most=1024, group="limits", help=help)


def memory_option(help: str) -> Callable[[Decorated], Decorated]:
    """Return ``--memory``."""
    return option("--memory", type=bytes_of, metavar="SIZE", group="limits", help=help)


_NAMED_READING_SHARE = 0.01
"""Share of a time limit from which the time of reading is named where the limit passed."""

time_limit_option = seconds_option("--time-limit", group="limits", help="Time limit in seconds, reading included.")


class _TaskChoice(click.Choice[str]):
    """A choice of tasks by their names and aliases; its value is the task."""

    def __init__(self) -> None:
        super().__init__(NAMES, case_sensitive=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the task of a name."""
        return task_of(super().convert(value, param, ctx))


def task_option(default: str | None, shown: str) -> Callable[[Decorated], Decorated]:
    """Return ``--task``.

    Args:
        default: Task where the option is not given; None: the command chooses.
        shown: Description of the default in the help.
    """
    text = f"Task, one of the above.  [default: {shown}]"
    return option("--task", type=_TaskChoice(), default=default, metavar="TASK", help=text)


model_options = together(
    task_option("mpe", "mpe"),
    option(
        "--evidence",
        multiple=True,
        metavar="FILE|A=x,B=y",
        help="Evidence file, or observations. Repeatable.",
    ),
    option(
        "--query",
        multiple=True,
        metavar="A,B|FILE",
        help="Variables to report (mar, mmap), or a .query file. Repeatable.  [default: all]",
    ),
    option(
        "--device",
        "--devices",
        type=device_of,
        default="auto",
        show_default=True,
        metavar="DEVICE",
        help="cpu, cuda, GPUs by number (0,1), or auto for the fastest.",
    ),
    memory_option("Memory limit, such as 8GiB.  [default: what is free]"),
    threads_option("Number of CPU threads.  [default: all]"),
    option(
        "--order",
        default="auto",
        show_default=True,
        metavar="METHOD|FILE",
        group="expert",
        help=f"Elimination order: a heuristic ({', '.join(get_args(Method))}), or a file.",
    ),
    seconds_option(
        "--order-time",
        default=ORDER_SECONDS,
        show_default=True,
        group="expert",
        help="Time limit of the order search, in seconds, counted by its work.",
    ),
    number_option("--seed", group="expert", help="Random seed of the order search."),
    option(
        "--dtype",
        type=click.Choice(("int16", "int32", "int64", "float32", "float64", "uint64")),
        metavar="TYPE",
        group="expert",
        help="Number type of the tables: int16, int32, int64, float32, float64 or uint64.  "
        "[default: the narrowest exact type]",
    ),
    option(
        "--slices",
        type=_number_or(("auto", "never"), "slices"),
        default="auto",
        show_default=True,
        metavar="auto|never|N",
        group="expert",
        help="Conditioning on variables if the plan does not fit; N: in at most N slices.",
    ),
    file_option(
        "--scratch",
        metavar="DIR",
        group="expert",
        help="Directory for tables that memory cannot hold. They are deleted at the end.",
    ),
    choice_option(
        "--tables",
        choices=TABLES,
        group="expert",
        help="Table layout. sparse stores allowed tuples only; auto uses it if it is faster.",
    ),
    option(
        "--ibound",
        type=_number_or(("auto",), "variables"),
        metavar="auto|N",
        group="expert",
        help="Largest number of variables in a message between mini-buckets; auto: as many as memory holds.",
    ),
    choice_option(
        "--shift",
        choices=SHIFTS,
        default="all",
        metavar="WHERE",
        group="expert",
        help="Cost shifting for tighter bounds: none, tables (mpe), clusters of tables (mpe), buckets (between "
        "mini-buckets) or all.",
    ),
    choice_option(
        "--partition",
        choices=DIVISIONS,
        group="expert",
        help="Partition buckets by scope, or by the contents of their tables (mpe).",
    ),
)
"""Options of commands that plan: task, evidence, device, memory, order."""


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


def format_for(output: str | None, given: str) -> str:
    """Return the format of an answer: JSON in a file with this suffix, unless another one is asked for."""
    is_chosen = click.get_current_context().get_parameter_source("format_") is not ParameterSource.DEFAULT
    return given if is_chosen or output is None or Path(output).suffix.lower() != ".json" else "json"


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
        least=1,
        most=MOST_THREADS,
        group="expert",
        help="Number of worker processes to start on this machine.",
    ),
)
"""Options of commands that may run on a cluster."""


@contextmanager
def cluster_of(address: str | None, local: int | None, device: str) -> Iterator[Client | None]:
    """Connect to the cluster that ``--cluster`` or ``--local`` asks for; None if neither does.

    Raises:
        UsageError: Both are given.
        ClusterError: No scheduler answers at the address.
        DeviceError: There are fewer GPUs than workers that need one.
    """
    if address is not None and local is not None:
        raise click.UsageError(
            "--cluster and --local contradict each other: give --cluster for running workers, or --local to start some"
        )
    if address is None and local is None:
        yield None
        return
    from elimina import distributed

    # The answer, or a one-line error, reports lost workers already.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with distributed.connected(address) if address is not None else distributed.local(local or 1, device) as client:
        yield client


def reject_given(names: tuple[str, ...], what: str, reason: str) -> None:
    """Fail if the user gave one of these options.

    Args:
        names: Parameter names of the options.
        what: Subject of the error, with which the options are incompatible.
        reason: Cause, or what to do instead.

    Raises:
        UsageError: One of them was given.
    """
    context = click.get_current_context()
    own = [p for p in context.command.params if p.name in names]
    given = [p.opts[0] for p in own if context.get_parameter_source(str(p.name)) is not ParameterSource.DEFAULT]
    if given:
        raise click.UsageError(f"{what} cannot be combined with {', '.join(given)}: {reason}")


def evidence_of(given: Sequence[str], model: Model) -> NamedEvidence:
    """Read and combine the values of ``--evidence``: files, and observations like ``name=state,name=state``.

    Raises:
        InputError: A file or an observation cannot be read, or two of them contradict each other.
    """
    return merge((source, _one_evidence(source, model)) for source in given)


def _one_hint(source: str, model: Model) -> NamedEvidence:
    if source.lower().endswith((".sol", ".mpe")) and Path(source).exists():
        return _solution(source, model)
    if not source.endswith(".json"):
        return _one_evidence(source, model)
    try:
        answer = json.loads(load(Path(source)))
    except (TextError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{source} is not JSON: {error}") from None
    states = answer.get("assignment") if isinstance(answer, dict) else None
    if not isinstance(states, dict):
        raise InputError(f"{source} holds no assignment; give an answer that 'elimina solve --json' has printed")
    return {**states}


def _solution(source: str, model: Model) -> NamedEvidence:
    """Read a value index for each variable, as toulbar2 writes them; in a file of the competitions after MPE and n."""
    words = load(Path(source)).decode(errors="replace").split()
    found = [integer_of(word) for word in (words[2:] if words[:1] == ["MPE"] else words)]
    if None in found or len(found) != len(model.variables):
        raise InputError(
            f"{source} is not a solution: expected a value index for each of {len(model.variables)} variables"
        )
    return {
        v.name: v.state(v.index(StateIndex(x))) for v, x in zip(model.variables, found, strict=True) if x is not None
    }


def _one_evidence(source: str, model: Model) -> NamedEvidence:
    if os.path.exists(source):
        return {**read_evidence(source, model)}
    if "=" not in source and source.strip():
        raise InputError(f"{source!r} is neither a file that exists nor of the form NAME=STATE,NAME=STATE")
    return parse_assignments(_as_utf8(source), model)


def _as_utf8(text: str) -> str:
    """Return an argument as UTF-8, whatever the locale: Python may have read bytes beyond ASCII as surrogates."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")


def query_of(given: Sequence[str], model: Model) -> list[str] | None:
    """Read the variables of ``--query``, from names and from files of the competitions; None without any.

    Raises:
        InputError: A file cannot be read, or the model has no such variable.
    """
    if not given:
        return None
    found = dict.fromkeys(v for source in given for v in _one_query(source, model))
    return [model.variables[v].name for v in found]


def _one_query(source: str, model: Model) -> list[int]:
    """Read a file with the number of variables and then their indices, or names between commas."""
    if source.endswith(".query") and Path(source).exists():
        numbers = [integer_of(word) for word in load(Path(source)).decode(errors="replace").split()]
        if not numbers or numbers[0] != len(numbers) - 1 or None in numbers:
            raise InputError(
                f"{source} is not a query file: expected the number of variables, followed by their indices"
            )
        try:
            return [model.index(number) for number in numbers[1:] if number is not None]
        except InputError as error:
            raise InputError(f"{source}: {error}") from None
    return parse_names(_as_utf8(source), model)


def planning_of(options: dict[str, Any], model: Model) -> Options:
    """Return the options of the same names in Python."""
    given = {name: value for name, value in options.items() if name in Options._fields}
    read = {"order": _order_of(options["order"], model), "order_seconds": options["order_time"]}
    hint = merge(((source, _one_hint(source, model)) for source in options.get("hint", ())), "the hint")
    return Options(**{**given, **read, "hint": hint or None})


def _order_of(given: str, model: Model) -> Any:
    """Return the heuristic's name, or the order that a file holds."""
    if given in get_args(Method):
        return given
    if not Path(given).exists():
        raise InputError(f"order {given!r} is neither a method ({', '.join(get_args(Method))}) nor a file")
    return read_order(given, [v.name for v in model.variables])


@contextmanager
def naming_time_limit(time_limit: float | None, reading: float) -> Iterator[None]:
    """Name the time limit that is asked for, and the reading's share of it, in an error about the rest of it.

    Args:
        time_limit: Limit in seconds, reading included; None: there is none.
        reading: Seconds of reading.

    Raises:
        TimeLimitError: The limit passed.
    """
    try:
        yield
    except TimeLimitError as error:
        if time_limit is None or reading < _NAMED_READING_SHARE * time_limit:
            raise
        shares = f"reading took {seconds_text(reading)} of the {time_limit:g} s of --time-limit"
        raise TimeLimitError(f"{error} ({shares})") from error
