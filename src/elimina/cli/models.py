"""Models as files: their reading by all commands, with the library's notices; commands that need little besides."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elimina.cli import signals
from elimina.cli.options import (
    check_no_input,
    check_writable,
    choice_option,
    format_for,
    format_options,
    naming_time_limit,
    number_option,
    output_option,
    share_option,
    time_limit_option,
)
from elimina.cli.terminal import Command, CommandGroup, Decorated, labelled, option, show, show_notices, together
from elimina.display import count_text, seconds_text
from elimina.errors import InputError
from elimina.io.files import save as save_text
from elimina.io.files import suffix_of
from elimina.io.formats import by_suffix, format_of
from elimina.io.model_files import read, write
from elimina.model.model import Model
from elimina.model.senses import convert_sense
from elimina.planning.option_values import read_gap
from elimina.result import Bounds, Result, assignment_text, with_reading

if TYPE_CHECKING:
    from elimina.cp.tsp import TourState
    from elimina.dcop import Problem


def _be_verbose(context: click.Context, option: click.Parameter, value: bool) -> None:
    if value:
        show_notices(logging.INFO)


verbose_option = option(
    "-v",
    "--verbose",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_be_verbose,
    group="output",
    help="Log what is done and why, on standard error.",
)
reading_options = together(
    option("--no-check", is_flag=True, group="expert", help="Accept distributions that do not sum to 1 as they are."),
    verbose_option,
)
"""Options of commands that read models: ``--no-check``, whose value is ``no_check``, and ``-v``."""

_ELSEWHERE = {
    "MiniZinc": "run 'elimina install-minizinc' once, then 'minizinc --solver elimina' on this file; to solve a small "
    "model by elimina solve, compile it to a .fzn file first ('minizinc -c')",
    "tour": "use 'elimina tsp'",
}
"""Contents that other commands solve."""


def _note_format(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    context.meta[__name__] = value


source_option = option(
    "--from",
    metavar="FORMAT",
    group="expert",
    expose_value=False,
    callback=_note_format,
    help="Format of a model on standard input (FILE is -): a suffix, such as wcsp or uai.gz.",
)
"""``--from``, the format of a model on standard input."""


def source_of(path: str) -> str:
    """Return the name of a source: that of its file, or ``-.FORMAT`` of standard input.

    Raises:
        InputError: Standard input lacks its format, or a file has one besides its suffix.
    """
    context = click.get_current_context(silent=True)
    form = None if context is None else context.meta.get(__name__)
    if path != "-":
        if form is not None:
            raise InputError(
                f"--from {form} is for standard input (-), not for {path}: "
                f"leave it out, or write - --from {form} < {path}"
            )
        return path
    if form is None:
        example = "fzn" if context is not None and context.info_name == "cp" else "wcsp"
        raise InputError(f"standard input has no suffix: name its format by --from, such as --from {example}")
    return f"-.{form.removeprefix('.')}"


def read_model(path: str, *, no_check: bool = False) -> Model:
    """Read a model: see ``read_with_total``."""
    return read_with_total(path, no_check=no_check)[0]


def read_with_total(path: str, *, no_check: bool = False) -> tuple[Model, str | None]:
    """Read a model; constraints become tables, and of a distributed problem only the costs count.

    Args:
        path: The file, as ``source_of`` names it.
        no_check: True if a network's probabilities are taken as they are.

    Returns:
        The model, and the name of the objective's variable if the model lacks it: its value is the total.

    Raises:
        InputError: It cannot be read, or a constraint's table would be too large.
    """
    form = format_of(Path(path))
    content = None if form is None else form.content
    if content in _ELSEWHERE:
        raise InputError(f"{path} is not a graphical model: {_ELSEWHERE[content]}")
    if content == "constraints":
        return _tabulated(path)
    if content == "distributed problem":
        from elimina import dcop

        return dcop.read(path).model, None
    if form is None and Path(path).exists() and not Path(path).is_dir():
        suffix = suffix_of(Path(path))
        known = ", ".join(by_suffix("model", "constraints", "distributed problem"))
        raise InputError(
            f"{path}: unknown suffix {suffix and '.' + suffix!r}; models are {known} (perhaps with .gz or .xz), and "
            "'elimina tsp' reads .tsp files; a file of another name is read from standard input, such as "
            f"- --from wcsp < {path}"
        )
    return read(path, check=not no_check), None


def _tabulated(path: str) -> tuple[Model, str | None]:
    from elimina.cp.reading import read as read_constraints

    constraints = read_constraints(path)
    model, aim = constraints.to_model(), constraints.objective
    if aim is None or aim.constant or list(aim.terms.values()) != [1]:
        return model, None
    name = str(aim)
    return model, None if any(v.name == name for v in model.variables) else name


@contextlib.contextmanager
def explaining(total: str | None) -> Iterator[None]:
    """Explain the error about the objective's variable, which the model lacks: see ``read_with_total``."""
    try:
        yield
    except InputError as error:
        if total is None or not str(error).startswith(f"the model has no variable {total!r}"):
            raise
        raise InputError(
            f"{total!r} is the variable of the objective, which the cost tables do not have: its value is that of the "
            "answer; to fix it, add a constraint to the file that sets it"
        ) from None


@click.command(cls=Command)
@click.argument("source", type=click.Path())
@click.argument("target", type=click.Path())
@source_option
@reading_options
def convert(source: str, target: str, no_check: bool) -> None:
    """Write the model in SOURCE to TARGET. The suffixes name the formats (.wcsp, .uai, .cfn, .bif, .xmlbif, .erg).

    SOURCE may also be .net, .xdsl, .cnf, .wcnf, .qpbo, or a small .fzn, .opb or XCSP3 file. Either file may end in .gz
    or .xz. Costs become probabilities exp(-cost); probabilities become costs -ln(p), rounded.

    Distributed problems are .yaml (pyDCOP), .json and .xml (FRODO's XCSP; XDisCSP is read only). A model without agents
    gets one for each variable. A probability model in an .xml file is XMLBIF.
    """
    from elimina import dcop

    check_no_input("TARGET", Path(target), source)
    source = source_of(source)
    form = format_of(Path(source))
    if form is not None and form.content == "distributed problem":
        problem = dcop.read(source)
        save(problem.model, target, problem)
    else:
        save(read_model(source, no_check=no_check), target)


def save(model: Model, target: str, problem: Problem | None = None) -> None:
    """Write a model, or a distributed problem if the suffix is that of one."""
    from elimina.dcop import Problem, formats

    suffix = suffix_of(Path(target))
    if suffix not in formats.FORMATS or (suffix == "xml" and model.sense == "probability"):
        write(model, target)
        return
    if problem is None:
        problem = Problem.from_model(convert_sense(model, "min-cost") if model.sense == "probability" else model)
    formats.write(problem, target)


def _share(name: str, default: float, help: str) -> Callable[[Decorated], Decorated]:
    return share_option(name, default=default, show_default=True, help=help)


@click.group(cls=CommandGroup)
def generate() -> None:
    """Write a random WCSP with costs from 0 to 100 (Fioretto et al. 2018, section 8.1).

    A share p2 of each table is forbidden. FILE is a model, or a distributed problem if it ends in .yaml, .json or .xml.
    """


_shared = together(
    number_option(
        "--agents",
        default=None,
        least=1,
        help="Number of agents of a distributed problem.  [default: one for each variable]",
    ),
    number_option("--seed", help="Random seed. Equal seeds give equal problems."),
)
_common = together(
    number_option("-d", "--domain", default=10, least=1, help="Number of values of each variable."),
    _share("--p2", 0.5, "Share of forbidden pairs in each table."),
    option("--maximize", is_flag=True, help="Gains to maximise instead of costs to minimise."),
    _shared,
)


@generate.command(cls=Command)
@click.argument("file", type=click.Path())
@number_option("-n", "--variables", default=10, least=1, help="Number of variables.")
@_share("--p1", 0.3, "Share of the pairs of variables that have a table.")
@_common
def random(file: str, variables: int, p1: float, domain: int, p2: float, seed: int, **rest: Any) -> None:
    """Write a problem on a connected random graph."""
    from elimina.generate import random_model

    _save(random_model(variables, domain, p1, p2, seed=seed), file, **rest)


@generate.command(cls=Command, short_help="Write a problem on a scale-free graph.")
@click.argument("file", type=click.Path())
@number_option("-n", "--variables", default=10, least=2, help="Number of variables.")
@_common
def scalefree(file: str, variables: int, domain: int, p2: float, seed: int, **rest: Any) -> None:
    """Write a problem on a scale-free graph (Barabasi and Albert) with two edges for each new variable."""
    from elimina.generate import scale_free_model

    _save(scale_free_model(variables, domain, p2, seed=seed), file, **rest)


@generate.command(cls=Command)
@click.argument("file", type=click.Path())
@number_option("--side", default=10, least=1, help="Number of rows.")
@number_option("--columns", default=None, least=1, help="Number of columns.  [default: as many as rows]")
@_common
def grid(file: str, side: int, columns: int | None, domain: int, p2: float, seed: int, **rest: Any) -> None:
    """Write a problem on a grid."""
    from elimina.generate import grid_model

    _save(grid_model(side, domain, p2, seed=seed, columns=columns), file, **rest)


@generate.command(cls=Command)
@click.argument("file", type=click.Path())
@number_option("-n", "--variables", default=10, least=1, help="Number of variables.")
@_share("--p1", 0.3, "Share of the pairs of variables that have a table.")
@number_option("-d", "--domain", default=3, least=1, help="Number of colours.")
@_shared
def coloring(file: str, variables: int, p1: float, domain: int, seed: int, agents: int | None) -> None:
    """Write the colouring of a random graph, with a cost of 1 for each clash."""
    from elimina.generate import coloring_model

    _save(coloring_model(variables, domain, p1, seed=seed), file, agents)


def _save(model: Model, file: str, agents: int | None, maximize: bool = False) -> None:
    from elimina.dcop import Problem
    from elimina.dcop.formats import FORMATS
    from elimina.generate import maximized

    if agents is not None and suffix_of(Path(file)) not in FORMATS:
        raise InputError(f"{file} cannot hold agents: leave --agents out, or name a .yaml, .json or .xml file")
    if maximize:
        model = maximized(model)
    save(model, file, Problem.from_model(model, agents))
    click.echo(f"{file}: {len(model.variables)} variables, {len(model.factors)} functions")


DEVICES = ("auto", "cpu", "cuda")


@click.command(cls=Command)
@click.argument("file", type=click.Path())
@number_option("--threads", default=1, least=1, help="Number of threads of the search.")
@option("--free", is_flag=True, help="Search by past conflicts alone, with restarts.")
@option("--lns", is_flag=True, help="Search near the best solution and everywhere, in turn.")
@choice_option(
    "--device", choices=DEVICES, metavar="DEVICE", help="Device that filters AllDifferent: auto, cpu or cuda."
)
@option(
    "--gap",
    type=read_gap,
    default=0.0,
    metavar="GAP",
    group="limits",
    help="Stop once the bounds are this close (relative: 0.01 or 1%).",
)
@time_limit_option
@number_option("--seed", most=2**62, group="expert", help="Random seed of the search.")
@format_options("human", "json")
@output_option()
@source_option
@verbose_option
def cp(
    file: str,
    threads: int,
    free: bool,
    lns: bool,
    device: str,
    gap: float,
    time_limit: float | None,
    seed: int,
    format_: str,
    output: str | None,
) -> None:
    """Find a solution, or the best one, of the constraints in FILE: .fzn, .xml (XCSP3) or .opb; also .gz, .xz.

    The run ends with a proof, at the time limit or at Ctrl-C, and prints the best solution. Search annotations of
    FlatZinc are ignored; fzn-elimina follows them, and prints all solutions.
    """
    from elimina.cp import SearchOptions, read

    started = time.monotonic()
    if output is not None:
        check_writable(Path(output), file)
    model = read(source_of(file))
    reading = time.monotonic() - started
    with naming_time_limit(time_limit, reading):
        found = model.solve(
            time_limit=signals.remaining(time_limit, reading),
            threads=threads,
            seed=seed,
            device=device,  # type: ignore[arg-type]
            options=SearchOptions(free=free, lns=lns, gap=gap),
        )
    with signals.deferred():
        result = signals.attributed(with_reading(found, reading))
        write_answer(result, _solution_text, format_for(output, format_), output)


def write_answer(result: Result, text_of: Callable[[Result], str], format_: str, output: str | None) -> None:
    """Write an answer to its file, or print it."""
    text = result.to_json() if format_ == "json" else text_of(result)
    if output is not None:
        save_text(Path(output), [text, "\n"])
    elif format_ == "json":
        click.echo(text)
    else:
        show(text)


def _solution_text(result: Result) -> str:
    rows = result.outcome()
    if "nodes" in result.stats:
        rows.append(("nodes", f"{count_text(result.stats['nodes'])}, {count_text(result.stats['failures'])} failures"))
    rows.append(("time", seconds_text(result.stats["seconds"]["total"])))
    if result.assignment:
        rows.append(("assignment", assignment_text(result.assignment)))
    return labelled(rows)


@click.command(cls=Command)
@click.argument("file", type=click.Path())
@time_limit_option
@number_option("--seed", most=2**62, group="expert", help="Random seed of the local search.")
@format_options("human", "json")
@output_option("File for the tour, in TSPLIB format.", metavar="TOUR")
def tsp(file: str, time_limit: float | None, seed: int, format_: str, output: str | None) -> None:
    """Find a shortest tour of the symmetric TSPLIB problem in FILE (.tsp; also .gz, .xz), and prove it shortest.

    Tours and bounds are printed as they improve. The run ends with a proof, at the time limit or at Ctrl-C.
    """
    from elimina.cp.tsp import solve_tsp
    from elimina.cp.tsplib import read_tsp, write_tour

    started = time.monotonic()
    if time_limit is not None:
        signals.alarm(time_limit)
    if output is not None:
        check_writable(Path(output), file)
    problem = read_tsp(file)
    read = time.monotonic() - started
    in_json = format_ == "json"
    left = signals.remaining(time_limit, read)
    found = solve_tsp(problem, time_limit=left, seed=seed, on_improvement=(lambda known: None) if in_json else _show)
    with signals.deferred():
        result = signals.attributed(with_reading(found, read))
        if output is not None:
            write_tour(output, problem.name, [city - 1 for city in result.tour or ()], int(result.value or 0))
        if in_json:
            click.echo(result.to_json())
        else:
            show(_tour_text(result, output is None))


def _show(known: TourState) -> None:
    bound = "unknown" if known.bound is None else str(known.bound)
    click.echo(f"{known.seconds:8.2f} s  tour {known.length}  bound {bound}")


def _tour_text(result: Result, with_tour: bool) -> str:
    rows = [("status", str(result.status)), ("length", str(result.value))]
    if result.status == "bounded":
        gap = Bounds(0.0, result.lower_bound, result.upper_bound).gap
        rows.append(("bound", f"{result.lower_bound} (gap {100 * gap:.3g} %)"))
    if result.ended_by is not None:
        rows.append(("ended by", result.ended_by))
    rows.append(("nodes", count_text(result.stats["nodes"])))
    rows.append(("time", seconds_text(result.stats["seconds"]["total"])))
    if with_tour and result.tour is not None:
        rows.append(("tour", " ".join(map(str, result.tour))))
    return labelled(rows)
