"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click
from click.core import ParameterSource

from elimina import arguments
from elimina.backends.choose import DEVICES
from elimina.errors import InputError
from elimina.inference.call import TASKS
from elimina.inference.options import DIVISIONS, ORDER_SECONDS, SHIFTS, TABLES
from elimina.io import read_evidence
from elimina.io.evidence import Given, merge, parse_assignments, parse_names
from elimina.model import Model
from elimina.order import Method, read_order
from elimina.states import integer_of

if TYPE_CHECKING:
    from distributed import Client

Command = TypeVar("Command", bound=Callable[..., Any])


def bytes_of(text: str) -> int:
    """Read an amount of memory: ``8GiB``, ``500 MB``, ``1e9``."""
    try:
        return arguments.parse_size(text)
    except InputError as error:
        raise click.BadParameter(str(error)) from None


def seconds_of(text: str | float) -> float:
    """Read a positive time in seconds."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 < number < float("inf"):
        raise click.BadParameter(f"{text!r} is no positive number of seconds")
    return number


def check_writable(output: Path) -> None:
    """Fail before the work, not after it."""
    if output.exists() and not (output.is_dir() or output.is_file()):
        return
    folder = Path(os.path.realpath(output)).parent
    if output.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        reason = "it is a directory" if output.is_dir() else f"{output.parent} is no directory that one can write to"
        raise InputError(f"cannot write {output}: {reason}")


def _number_or(words: tuple[str, ...], what: str) -> Callable[[str], int | str]:
    """What reads one of these words, or a number of something from 1 on."""

    def read(text: str) -> int | str:
        if text in words:
            return text
        if not re.fullmatch("[0-9]{1,18}", text) or int(text) < 1:
            raise click.BadParameter(f"{text!r} is neither {', '.join(words)} nor a number of {what} from 1 on")
        return int(text)

    return read


def number_option(
    *names: str, help: str, default: int = 0, least: int = 0, most: int | None = None
) -> Callable[[Command], Command]:
    """An option whose value is a whole number."""
    kind = click.IntRange(min=least, max=most)
    return click.option(*names, type=kind, default=default, show_default=True, metavar="N", help=help)


def model_options(command: Command) -> Command:
    """The options of commands that plan: task, evidence, device, memory, order."""
    for option in reversed(
        [
            click.option("--task", type=click.Choice(TASKS), default="mpe", show_default=True, help=_TASK_HELP),
            click.option(
                "--evidence",
                multiple=True,
                metavar="FILE|A=x,B=y",
                help="An evidence file, or observations by name; repeat it for more.",
            ),
            click.option(
                "--query",
                multiple=True,
                metavar="A,B|FILE",
                help="mar, mmap: the variables asked for, or a .query file; repeat it for more.  [default: all]",
            ),
            click.option(
                "--device",
                type=click.Choice(DEVICES),
                default="auto",
                show_default=True,
                help="auto: the GPU if there is one and the work is worth its start.",
            ),
            click.option(
                "--memory",
                type=bytes_of,
                metavar="BYTES",
                help="Limit on the device's memory, like 8GiB or 500MB.  [default: what is free]",
            ),
            click.option(
                "--order",
                default="auto",
                show_default=True,
                metavar="METHOD|FILE",
                help=f"{', '.join(get_args(Method))}, or a file with an order.",
            ),
            click.option(
                "--order-time",
                type=seconds_of,
                metavar="SECONDS",
                default=ORDER_SECONDS,
                show_default=True,
                help="Limit on the search for an order.",
            ),
            number_option("--seed", help="Of the search for an order."),
            click.option(
                "--threads", type=click.IntRange(min=1, max=1024), metavar="N", help="CPU threads.  [default: all]"
            ),
            click.option(
                "--dtype",
                type=click.Choice(("int16", "int32", "int64", "float32", "float64", "uint64")),
                help="Of the tables.  [default: the narrowest exact one]",
            ),
            click.option(
                "--slices",
                type=_number_or(("auto", "never"), "slices"),
                default="auto",
                show_default=True,
                metavar="auto|never|N",
                help="Fix variables in turn where the plan does not fit otherwise; N: in N slices at most.",
            ),
            click.option(
                "--scratch",
                type=click.Path(),
                metavar="DIR",
                help="A directory for tables that memory does not hold; nothing is left there.",
            ),
            click.option(
                "--tables",
                type=click.Choice(TABLES),
                default="auto",
                show_default=True,
                help="sparse: keep only what is allowed; auto: where that is expected to be faster.",
            ),
            click.option(
                "--ibound",
                type=_number_or(("auto",), "variables"),
                metavar="auto|N",
                help="Bounds by mini-buckets, whose messages have N variables at most; auto: what memory holds.",
            ),
            click.option(
                "--shift",
                type=click.Choice(SHIFTS),
                default="all",
                show_default=True,
                help="Where costs are shifted for better bounds: between tables, also clusters (mpe), mini-buckets.",
            ),
            click.option(
                "--partition",
                type=click.Choice(DIVISIONS),
                default="auto",
                show_default=True,
                help="content: what tables say decides which share a mini-bucket (mpe); scope: their variables do.",
            ),
        ]
    ):
        command = option(command)
    return command


def format_options(*formats: str, others: str = "") -> Callable[[Command], Command]:
    """What an answer looks like: ``--format``, whose value is ``format_``, and ``--json`` for short.

    Args:
        formats: The names; the first one is the default.
        others: What there is to say of them.
    """

    def add(command: Command) -> Command:
        for option in (
            click.option(
                "--json",
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_note_json,
                help="Short for --format json.",
            ),
            click.option(
                "--format",
                "format_",
                type=click.Choice(formats),
                default=formats[0],
                show_default=True,
                callback=_chosen_format,
                help=f"Of the answer; json: one object on one line{others}.",
            ),
        ):
            command = option(command)
        return command

    return add


def _note_json(context: click.Context, option: click.Parameter, value: bool) -> None:
    context.meta[__name__] = value


def _chosen_format(context: click.Context, option: click.Parameter, value: str) -> str:
    if not context.meta.get(__name__):
        return value
    if value != "json" and context.get_parameter_source("format_") is not ParameterSource.DEFAULT:
        raise click.UsageError(f"--json and --format {value} contradict each other; give one of them")
    return "json"


def cluster_options(command: Command) -> Command:
    """The options of commands that may run on a cluster."""
    for option in (
        click.option(
            "--local", type=click.IntRange(min=1), metavar="N", help="Start N worker processes on this machine for it."
        ),
        click.option(
            "--cluster",
            metavar="ADDRESS",
            help="Address of a Dask scheduler, like tcp://host:8786 or tls://host:8786; runs on its workers.",
        ),
    ):
        command = option(command)
    return command


@contextmanager
def cluster_of(address: str | None, local: int | None, device: str) -> Iterator[Client | None]:
    """A client of the cluster that ``--cluster`` or ``--local`` asks for; None if neither does.

    Raises:
        UsageError: Both are given.
        ClusterError: Nobody answers at the address.
        DeviceError: There are fewer GPUs than workers that need one.
    """
    if address is not None and local is not None:
        raise click.UsageError("--cluster names workers that are there, --local starts some; give one of them")
    if address is None and local is None:
        yield None
        return
    from elimina import distributed

    # What Dask has to say when workers are lost is in the answer, or in one line of error.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with distributed.connected(address) if address is not None else distributed.local(local or 1, device) as client:
        yield client


def reject_given(names: tuple[str, ...], what: str, reason: str) -> None:
    """Fail if the user gave one of these options, which do not go with something for a reason.

    Raises:
        UsageError: It was given.
    """
    context = click.get_current_context()
    own = [p for p in context.command.params if p.name in names]
    given = [p.opts[0] for p in own if context.get_parameter_source(str(p.name)) is not ParameterSource.DEFAULT]
    if given:
        raise click.UsageError(f"{what} goes without {', '.join(given)}; {reason}")


_TASK_HELP = (
    "mpe: the best assignment (optimum of a WCSP, MPE of a network); pr: partition function or P(evidence); "
    "mar: posterior marginals; mmap: best values of the query, all else summed out; count: allowed assignments."
)


def evidence_of(given: Sequence[str], model: Model) -> Given:
    """Read and combine what ``--evidence`` names: files, and observations like ``name=state,name=state``.

    Raises:
        InputError: A file or an observation cannot be read, or two of them contradict each other.
    """
    return merge((source, _one_evidence(source, model)) for source in given)


def _one_evidence(source: str, model: Model) -> Given:
    if ("=" not in source and source.strip()) or os.path.exists(source):
        return {**read_evidence(source, model)}
    return parse_assignments(source, model)


def query_of(given: Sequence[str], model: Model) -> list[str] | None:
    """Read the variables that ``--query`` names: files of the competitions, and names; None if there is none.

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
        words = Path(source).read_text().split()
        numbers = [integer_of(word) for word in words]
        if not numbers or numbers[0] != len(numbers) - 1 or None in numbers:
            raise InputError(f"{source} is no query: it should have the number of variables, and then their numbers")
        return [model.index(number) for number in numbers[1:] if number is not None]
    return parse_names(source, model)


def planning_of(options: dict[str, Any], model: Model) -> dict[str, Any]:
    """The options that say how to plan, by the names of ``elimina.inference.options.Options``."""
    names = ("device", "memory", "seed", "threads", "dtype", "slices", "scratch", "tables")
    bounds = ("ibound", "shift", "partition")
    kept = {name: options[name] for name in (*names, *bounds)}
    return {**kept, "order": _order_of(options["order"], model), "order_seconds": options["order_time"]}


def _order_of(given: str, model: Model) -> Any:
    """A method's name, or the order in a file."""
    if given in get_args(Method):
        return given
    if not Path(given).exists():
        raise InputError(f"order {given!r} is neither a method ({', '.join(get_args(Method))}) nor a file")
    return read_order(given, [v.name for v in model.variables])
