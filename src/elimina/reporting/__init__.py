"""Reports: one self-contained page about a model, its plan and its answer."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, NamedTuple, TypeVar

from elimina import api, arguments
from elimina.cp.model import Model as ConstraintModel
from elimina.cp.reading import read as read_constraints
from elimina.cp.tour_problem import TourProblem
from elimina.cp.tsp import TourState, solve_tsp
from elimina.cp.tsplib import read_tsp
from elimina.dcop.problem import Problem as DistributedProblem
from elimina.dcop.solve import AgentOptions
from elimina.dcop.solve import solve as solve_by_agents
from elimina.display import figures_of
from elimina.errors import EliminaError, InputError
from elimina.io.files import save
from elimina.io.formats import format_of
from elimina.io.model_files import read
from elimina.io.sources import EvidenceLike, as_evidence
from elimina.model.model import Model
from elimina.model.states import State, StateIndex, is_missing
from elimina.model.variable import Variable, index_of
from elimina.planning.options import DEFAULT, Options, options_of
from elimina.problem.tasks import Task, TaskName, task_of
from elimina.reporting import page_graph, solvers
from elimina.reporting.answers import (
    Asked,
    answer_rows,
    answer_section,
    assignment_table,
    bounds_section,
    plan_rows,
    plan_section,
    sensitivity_section,
)
from elimina.reporting.drawing import Drawing, Markup, figures, html, joined, paragraph, short
from elimina.reporting.page_graph import Layout, draw_graph, draw_tree, lay_out
from elimina.result import Bounds, Delivery, Result
from elimina.version import __version__

__all__ = ["Report", "report"]


_ESCAPED = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})
"""Characters that could end the element of the data, or that scripts do not take in texts."""

_ORDER = (
    *("figures", "answer", "search", "tour", "bounds", "graph", "tree", "agents", "messages", "timeline"),
    *("sensitivity", "plan"),
)


class PageSection(NamedTuple):
    """A part of the page.

    Attributes:
        key: Identifier, one of a fixed list that gives the order on the page.
        title: Heading of the section.
        body: Content of the section, HTML.
    """

    key: str
    title: str
    body: Markup


def page(title: str, sections: list[PageSection], drawings: list[Drawing], notes: list[str]) -> str:
    """Return the whole page.

    Args:
        title: Heading of the page.
        sections: Parts in any order.
        drawings: Graphs whose places are in the parts.
        notes: Remarks on what the page lacks.
    """
    shown = sorted((one for one in sections if one.body), key=lambda one: _ORDER.index(one.key))
    links = "".join(f'<a href="#{one.key}">{html(one.title)}</a>' for one in shown)
    bodies = "\n".join(
        f'<section id="{one.key}" aria-labelledby="h-{one.key}"><h2 id="h-{one.key}">{html(one.title)}</h2>'
        f"\n{one.body}\n</section>"
        for one in shown
    )
    data: dict[str, Any] = {drawing.key: drawing.data() for drawing in drawings}
    return Template(_part("page.html")).substitute(
        title=html(short(title)),
        style=_part("style.css"),
        script=_part("script.js"),
        links=links,
        notes="".join(f'<p class="warning">{html(note)}</p>' for note in notes),
        sections=bodies,
        data=json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False).translate(_ESCAPED),
        version=__version__,
    )


def _part(name: str) -> str:
    return files("elimina.reporting").joinpath("template", name).read_text("utf-8")


def read_subject(path: str, *, check: bool = True) -> Model | DistributedProblem | ConstraintModel | TourProblem:
    """Read a model, a distributed problem, a constraint model or a travelling salesman problem.

    Args:
        path: Path of the file.
        check: See ``elimina.read``.

    Raises:
        InputError: It cannot be read.
    """
    form = format_of(Path(path))
    content = "model" if form is None else form.content
    if content == "tour":
        return read_tsp(path)
    if content == "constraints":
        return read_constraints(path)
    if content == "distributed problem":
        from elimina import dcop

        return dcop.read(path)
    return read(path, check=check)


_LONG = ("plan", "answer", "sensitivity")
"""Parts that are not begun once the report was ended."""

Made = TypeVar("Made")
Subject = Model | DistributedProblem | ConstraintModel | TourProblem | str | os.PathLike[str]

_SHARE_OF_ANSWER, _SHARE_OF_SEARCH = 0.6, 0.9
"""Shares of the time left that the answer may take: before drawings and sensitivity, and before charts only."""

_SENSITIVITY_SECONDS = 20.0
"""Time of the sensitivity analysis where there is no time limit."""


class Report:
    """A report: a notebook shows it, and ``save`` writes it.

    Attributes:
        html: The page, one file that needs no other and no network.
        result: The answer; None if there is none.
    """

    def __init__(self, html: str, result: Result | None) -> None:
        self.html, self.result = html, result

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page; the file appears only once it is complete.

        Args:
            path: Path of the page, which ends in .html.

        Raises:
            InputError: The suffix is another one, or the file cannot be written.
        """
        save(html_path(path), [self.html])

    def __repr__(self) -> str:
        status = "no answer" if self.result is None else f"{self.result.task}: {self.result.status}"
        return f"Report({status}, {len(self.html):,} characters)"

    def _repr_html_(self) -> str:
        from html import escape

        style = "width:100%;height:40em;border:1px solid #8884"
        return f'<iframe title="report" sandbox="allow-scripts" style="{style}" srcdoc="{escape(self.html)}"></iframe>'


def html_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of a page.

    Raises:
        InputError: Its suffix is not .html.
    """
    path = arguments.file("path", path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{path}: reports are written to .html files")
    return path


@arguments.with_options(Options._fields, "elimina.Options")
def report(
    model: Subject,
    task: TaskName | None = None,
    *,
    evidence: EvidenceLike | None = None,
    query: Sequence[str | int] | None = None,
    memory: int | str | None = None,
    time_limit: float | None = None,
    title: str | None = None,
    options: Options = DEFAULT,
) -> Report:
    """Answer a question, and describe the model, the plan, the answer and its reasons on one page.

    Args:
        model: Any model, or the path of a file that ``elimina.read`` takes; a problem of ``elimina.dcop``, a model of
            ``elimina.cp``, or a problem that ``elimina.cp.tsplib.read_tsp`` reads. The last three are solved by
            agents, by constraint search and as a tour.
        task: See ``elimina.plan``; None: marginals of a model of probabilities, else the optimum.
        evidence: Evidence, as in ``elimina.plan``.
        query: Variables to report, as in ``elimina.plan``.
        memory: Memory limit, as in ``elimina.plan``.
        time_limit: Seconds for the whole call. The answer may take 60 % of them.
        title: Heading of the page; None for the model's name.
        options: Settings for experts.

    Returns:
        The page. If a limit, an error or Ctrl-C ends the call, the page names what is missing.

    Raises:
        TypeError: An argument has the wrong type.
        InputError: An option or the evidence does not fit the model, or the file of the model cannot be read.
    """
    limit = arguments.seconds("time_limit", time_limit)
    own = options_of(options, None, memory)
    if isinstance(model, DistributedProblem | ConstraintModel | TourProblem):
        for name, given in (("task", task), ("evidence", evidence), ("query", query)):
            if given is not None:
                raise InputError(f"{name} is for graphical models: leave it out")
    writing = _Writing(limit)
    if isinstance(model, DistributedProblem):
        return writing.of_agents(model, own, title)
    if isinstance(model, ConstraintModel):
        return writing.of_constraints(model, own, title)
    if isinstance(model, TourProblem):
        return writing.of_tour(model, title)
    if not isinstance(model, Model):
        return report(
            read_subject(_path_of(model)),
            task,
            evidence=evidence,
            query=query,
            time_limit=limit,
            title=Path(model).name if title is None else title,
            options=own,
        )
    graphical = model
    chosen = task_of(task) if task is not None else "mar" if graphical.sense == "probability" else "mpe"
    own.checked(chosen, is_run=True)
    given = as_evidence(evidence, graphical)
    observed = {name: state for name, state in given.items() if not is_missing(state)}
    known: dict[str, State] = {graphical[name].name: _shown(graphical[name], state) for name, state in observed.items()}
    names = None if query is None else [graphical[name].name for name in query]
    return writing.of_model(Asked(graphical, known, names, own), chosen, title)


def _shown(variable: Variable, state: Any) -> Any:
    """Return a state as the page shows it: not by its index."""
    return variable.state(index_of(variable, state)) if isinstance(state, StateIndex) else state


def _path_of(model: Any) -> str:
    if isinstance(model, str | os.PathLike):
        return os.fspath(model)
    taken = "a model or problem of elimina, or the path of a file"
    raise arguments.wrong_type("model", model, taken)


class _Writing:
    """A page while it is made."""

    def __init__(self, limit: float | None) -> None:
        self._started = time.monotonic()
        self._deadline = math.inf if limit is None else self._started + limit
        self._sections: list[PageSection] = []
        self._drawings: list[Drawing] = []
        self._notes: list[str] = []
        self._result: Result | None = None
        self._is_interrupted = False

    def of_model(self, asked: Asked, task: Task, title: str | None) -> Report:
        model = asked.model
        known: list[Bounds] = []
        observed = [model.index(name) for name in asked.evidence]
        # What takes a foreseeable time comes first: an answer that is cut short leaves it on the page.
        layout = self._layout(model, [model.index(name) for name in asked.query or ()] + observed)
        plan = self._made(
            "plan",
            lambda: api.plan(model, task, evidence=asked.evidence, query=asked.query, options=asked.options),
        )
        rows: list[tuple[str, object]] = [*figures_of(model), *([] if plan is None else plan_rows(plan))]
        if observed:
            rows.append(("observations", f"{len(observed):,}"))
        self._add("figures", "Figures", lambda: figures(rows))
        if plan is not None:
            if plan.whole.order:
                self._draw("tree", "Junction tree", lambda: draw_tree(plan, model))
            self._add("plan", "Plan", lambda: plan_section(plan, model))
        told = asked.options._replace(on_bounds=known.append)
        limit = self._share(_SHARE_OF_ANSWER)
        result = self._result = self._made(
            "answer",
            lambda: api.solve(model, task, evidence=asked.evidence, query=asked.query, time_limit=limit, options=told),
        )
        if result is not None:
            self._answer(result, model, known)
        if layout is not None:
            self._draw("graph", "Graph", lambda: draw_graph(model, layout, result, observed))
        if observed and result is not None:
            end = min(self._deadline, time.monotonic() + _SENSITIVITY_SECONDS)
            self._add("sensitivity", "Sensitivity", lambda: sensitivity_section(asked, result, end))
        return self._page(title if title is not None else model.name or "Model")

    def of_agents(self, problem: DistributedProblem, options: Options, title: str | None) -> Report:
        model, seen = problem.model, list[Delivery]()
        rows = [*figures_of(model), ("agents", f"{len(problem.agents):,}")]
        self._add("figures", "Figures", lambda: figures(rows))
        layout = self._layout(model, [])
        limit, memory, threads = self._share(_SHARE_OF_ANSWER), options.memory, options.threads
        own = AgentOptions(listener=seen.append)
        result = self._result = self._made(
            "answer",
            lambda: solve_by_agents(problem, memory=memory, threads=threads, time_limit=limit, options=own),
        )
        if result is not None:
            self._answer(result, model, [])
        if layout is not None:
            self._draw("graph", "Graph", lambda: draw_graph(model, layout, result, []))
        if solvers.can_draw(problem):
            self._draw("agents", "Pseudo-tree", lambda: solvers.draw_pseudotree(problem, seen))
        self._add("messages", "Messages of the agents", lambda: solvers.messages_section(seen))
        return self._page(title if title is not None else model.name or "Distributed problem")

    def of_constraints(self, model: ConstraintModel, options: Options, title: str | None) -> Report:
        self._add("figures", "Figures", lambda: figures(figures_of(model)))
        profile, limit = solvers.Profile(), self._share(_SHARE_OF_SEARCH)
        result = self._result = self._made("answer", lambda: solvers.solve(model, profile, limit, options.threads))
        if result is not None:
            self._add("answer", "Answer", lambda: _constraint_answer(result))
            self._add("search", "Profile of the search", lambda: solvers.search_section(result, profile))
        return self._page(title if title is not None else "Constraint model")

    def of_tour(self, problem: TourProblem, title: str | None) -> Report:
        known: list[Bounds] = []

        def note(one: TourState) -> None:
            known.append(Bounds(one.seconds, one.bound, one.length))

        limit = self._share(_SHARE_OF_SEARCH)
        result = self._result = self._made("answer", lambda: solve_tsp(problem, time_limit=limit, on_improvement=note))
        if result is not None:
            self._add("answer", "Answer", lambda: page_graph.tour_section(problem, result, known))
            drawing = page_graph.draw_tour(problem, result.tour or ())
            if drawing is None:
                self._notes.append("The tour is not drawn: the file has no coordinates, or too many cities.")
            else:
                self._draw("tour", "Tour", lambda: drawing)
        return self._page(title if title is not None else problem.name)

    def _share(self, share: float) -> float | None:
        """Return seconds that a part may take; None if there is no limit."""
        left = self._deadline - time.monotonic()
        return None if math.isinf(left) else max(share * left, 1e-3)

    def _answer(self, result: Result, model: Model, known: Sequence[Bounds]) -> None:
        self._add("answer", "Answer", lambda: answer_section(result, model))
        seconds = result.stats.get("seconds", {}).get("total", 0.0)
        self._add("bounds", "Bounds over time", lambda: bounds_section(known, seconds))

    def _layout(self, model: Model, first: Sequence[int]) -> Layout | None:
        return self._made("graph", lambda: lay_out(model, first)) if model.variables else None

    def _draw(self, key: str, title: str, draw: Callable[[], Drawing]) -> None:
        def drawn() -> Markup:
            drawing = draw()
            self._drawings.append(drawing)
            return drawing.markup()

        self._add(key, title, drawn)

    def _add(self, key: str, title: str, make: Callable[[], Markup]) -> None:
        body = self._made(title.lower(), make)
        if body is not None:
            self._sections.append(PageSection(key, title, body))

    def _made(self, what: str, make: Callable[[], Made]) -> Made | None:
        """Make a part; None if something keeps it from being made, which the page notes."""
        if self._is_interrupted and what in _LONG:
            return None
        try:
            return make()
        except InputError:
            raise
        except EliminaError as error:
            self._notes.append(f"No {what}: {error}.")
        except KeyboardInterrupt:
            if self._is_interrupted:
                raise
            self._is_interrupted = True
            self._notes.append(f"The report was ended early, while it made the {what}.")
        return None

    def _page(self, title: str) -> Report:
        result = self._result
        if result is not None and result.ended_by is not None:
            self._notes.append(f"The computation was ended ({result.ended_by}): the answer is what was known by then.")
        return Report(page(title, self._sections, self._drawings, self._notes), result)


def _constraint_answer(result: Result) -> Markup:
    parts: list[object] = [figures(answer_rows(result))]
    if result.assignment is not None and len(result.assignment):
        parts.append(assignment_table(result.assignment))
    elif result.assignment is not None:
        parts.append(paragraph("The solution has no named variables."))
    return joined(parts)
