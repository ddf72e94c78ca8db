"""Reports: one self-contained page about a model, its plan and its answer."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any, TypeVar

from elimina import api, arguments
from elimina.cp.model import Model as ConstraintModel
from elimina.cp.tour_problem import TourProblem
from elimina.cp.tsp import TourState, solve_tsp
from elimina.dcop.problem import Problem as DistributedProblem
from elimina.dcop.solve import AgentOptions
from elimina.dcop.solve import solve as solve_by_agents
from elimina.display import figures_of
from elimina.errors import EliminaError, InputError
from elimina.io.files import save
from elimina.io.sources import EvidenceLike, ModelLike, as_evidence, as_model
from elimina.model.model import Model, variable_indices
from elimina.model.states import State, StateIndex, is_missing
from elimina.model.variable import Variable, index_of
from elimina.planning.option_checks import check_options, options_of
from elimina.planning.options import DEFAULT, Options
from elimina.problem.tasks import Task, TaskName, task_of
from elimina.reporting import page_agents, page_search, tours
from elimina.reporting.answers import (
    Question,
    answer_rows,
    answer_section,
    assignment_table,
    bounds_section,
    plan_rows,
    plan_section,
    sensitivity_section,
)
from elimina.reporting.diagrams import PageDiagram, page_layout
from elimina.reporting.graphs import shown_graph, with_answer
from elimina.reporting.html import Markup, figures, joined, paragraph
from elimina.reporting.junction_trees import shown_tree
from elimina.reporting.page import PageSection, page
from elimina.reporting.parameters import can_vary, parameters_section
from elimina.reporting.subject import Subject, read_subject
from elimina.result import Bounds, Delivery, Result
from elimina.strategies.call import Call
from elimina.viz.diagram import Diagram, GraphLayout

_LONG_SECTIONS = ("plan", "answer", "sensitivity", "parameters")
"""Sections to omit after an interrupt."""

Made = TypeVar("Made")

_ANSWER_SHARE, _SEARCH_SHARE = 0.6, 0.9
"""Shares of the remaining time for the answer: if diagrams and sensitivity follow, and if only charts follow."""

_SECTION_SHARE = 0.15
"""Share of the remaining time for the layout of a diagram, and for the plan."""

_SENSITIVITY_SECONDS = 20.0
"""Largest number of seconds for each section on sensitivity."""


class Report:
    """A report: a notebook shows it, and ``save`` writes it.

    Attributes:
        html: The page, as one self-contained file.
        result: The answer; None if there is none.

    Examples:
        >>> import elimina
        >>> page = elimina.report("examples/radio.wcsp")
        >>> page.result.value
        1352
    """

    def __init__(self, html: str, result: Result | None) -> None:
        self.html, self.result = html, result

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page; the file appears only once it is complete.

        Args:
            path: Path of the page, which ends in .html or .htm.

        Raises:
            InputError: The suffix is not .html or .htm, or the file cannot be written.
        """
        save(html_path(path), [self.html])

    def __repr__(self) -> str:
        status = "no answer" if self.result is None else f"{self.result.task}: {self.result.status}"
        return f"Report({status}, {len(self.html):,} characters)"

    def _repr_html_(self) -> str:

        style = "width:100%;height:40em;border:1px solid #8884"
        return f'<iframe title="report" sandbox="allow-scripts" style="{style}" srcdoc="{escape(self.html)}"></iframe>'


def html_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of a page.

    Raises:
        InputError: The suffix of the path is not .html or .htm.
    """
    path = arguments.file("path", path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{path}: reports are written to .html files")
    return path


@arguments.with_checked_keywords(Options, "elimina.Options")
def report(
    model: Subject | ModelLike,
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
        model: Any model, as ``elimina.solve`` takes it; a problem of ``elimina.dcop``, a model of
            ``elimina.cp``, or a problem that ``elimina.cp.read_tsp`` reads. The last three are solved by
            agents, by constraint search and as a tour.
        task: See ``elimina.solve``; None: marginals of a model of probabilities, else the optimum.
        evidence: Evidence, as in ``elimina.solve``.
        query: Variables to report, as in ``elimina.solve``.
        memory: Memory limit, as in ``elimina.solve``.
        time_limit: Seconds for the whole call. The answer may take 60 % of them.
        title: Heading of the page; None for the model's name.
        options: Settings for experts.

    Returns:
        The page. If a limit, an error or Ctrl-C ends the call, the page names what is missing.

    Raises:
        TypeError: An argument has the wrong type.
        InputError: An option or the evidence does not fit the model, or the file of the model cannot be read.

    Examples:
        >>> import elimina
        >>> page = elimina.report("examples/pump.bif", evidence={"Alarm": "on"})
        >>> page.save("report.html")
    """
    limit = arguments.seconds("time_limit", time_limit)
    settings = options_of(options, None, memory)
    if isinstance(model, DistributedProblem | ConstraintModel | TourProblem):
        for name, value in (("task", task), ("evidence", evidence), ("query", query)):
            if value is not None:
                raise InputError(f"{name} is for graphical models: leave it out")
    writer = _PageWriter(limit)
    if isinstance(model, DistributedProblem):
        return writer.write_agents(model, settings, title)
    if isinstance(model, ConstraintModel):
        return writer.write_constraints(model, settings, title)
    if isinstance(model, TourProblem):
        return writer.write_tour(model, title)
    if isinstance(model, str | os.PathLike):
        return report(
            read_subject(os.fspath(model)),
            task,
            evidence=evidence,
            query=query,
            time_limit=limit,
            title=Path(model).name if title is None else title,
            options=settings,
        )
    graphical = as_model(model)
    answered_task = task_of(task) if task is not None else "mar" if graphical.sense == "probability" else "mpe"
    check_options(settings, answered_task, is_run=True)
    states = {name: state for name, state in as_evidence(evidence, graphical).items() if not is_missing(state)}
    shown: dict[str, State] = {graphical[name].name: _shown(graphical[name], state) for name, state in states.items()}
    asked = [] if query is None else variable_indices(graphical, query, "query")
    names = None if query is None else [graphical.variables[v].name for v in asked]
    return writer.write_model(Question(graphical, shown, names, settings), answered_task, title)


def _shown(variable: Variable, state: Any) -> Any:
    """Return a state as the page shows it: a state given by its index is replaced by the state itself."""
    return variable.state(index_of(variable, state)) if isinstance(state, StateIndex) else state


class _PageWriter:
    """A writer of a page, section by section; it notes sections that it could not make."""

    def __init__(self, limit: float | None) -> None:
        self._started = time.monotonic()
        self._deadline = math.inf if limit is None else self._started + limit
        self._sections: list[PageSection] = []
        self._diagrams: list[PageDiagram] = []
        self._notes: list[str] = []
        self._result: Result | None = None
        self._is_interrupted = False

    def write_model(self, asked: Question, task: Task, title: str | None) -> Report:
        model = asked.model
        history: list[Bounds] = []
        observed = [model.index(name) for name in asked.evidence]
        # The answer may take all the time that it gets, so shorter sections come first.
        graph = self._graph(model, [model.index(name) for name in asked.query or ()], observed)
        plan = self._attempt(
            "plan",
            lambda: api.plan(model, task, evidence=asked.evidence, query=asked.query, options=asked.options),
            _SECTION_SHARE,
        )
        rows: list[tuple[str, object]] = [*figures_of(model), *([] if plan is None else plan_rows(plan))]
        if observed:
            rows.append(("observations", f"{len(observed):,}"))
        self._add("figures", "Figures", lambda: figures(rows))
        if plan is not None:
            if plan.whole.order:
                self._draw("Junction tree", lambda: shown_tree(plan, model))
            self._add("plan", "Plan", lambda: plan_section(plan, model))
        options = replace(asked.options, on_bounds=history.append)
        limit = self._seconds(_ANSWER_SHARE)
        result = self._result = self._attempt(
            "answer",
            lambda: api.solve(
                model, task, evidence=asked.evidence, query=asked.query, time_limit=limit, options=options
            ),
        )
        if result is not None:
            self._add_answer(result, model, history)
        self._add_graph(graph, model, result)
        if observed and result is not None:
            end = min(self._deadline, time.monotonic() + _SENSITIVITY_SECONDS)
            self._add("sensitivity", "Sensitivity", lambda: sensitivity_section(asked, result, end))
        if result is not None and can_vary(asked, result):
            latest = min(self._deadline, time.monotonic() + _SENSITIVITY_SECONDS)
            self._add("parameters", "Parameters", lambda: parameters_section(asked, result, latest))
        return self._page(title if title is not None else model.name or "Model")

    def write_agents(self, problem: DistributedProblem, options: Options, title: str | None) -> Report:
        model, deliveries = problem.model, list[Delivery]()
        rows = [*figures_of(model), ("agents", f"{len(problem.agents):,}")]
        self._add("figures", "Figures", lambda: figures(rows))
        graph = self._graph(model, [], [])
        limit, memory, threads = self._seconds(_ANSWER_SHARE), options.memory, options.threads
        settings = AgentOptions(listener=deliveries.append)
        result = self._result = self._attempt(
            "answer",
            lambda: solve_by_agents(problem, memory=memory, threads=threads, time_limit=limit, options=settings),
        )
        if result is not None:
            self._add_answer(result, model, [])
        self._add_graph(graph, model, result)
        if page_agents.can_draw(problem):
            self._draw("Pseudo-tree", lambda: page_agents.shown_pseudotree(problem, deliveries))
        self._add("messages", "Messages of the agents", lambda: page_agents.messages_section(deliveries))
        return self._page(title if title is not None else model.name or "Distributed problem")

    def write_constraints(self, model: ConstraintModel, options: Options, title: str | None) -> Report:
        self._add("figures", "Figures", lambda: figures(figures_of(model)))
        profile, limit = page_search.Profile(), self._seconds(_SEARCH_SHARE)
        result = self._result = self._attempt(
            "answer", lambda: page_search.solve(model, profile, limit, options.threads)
        )
        if result is not None:
            self._add("answer", "Answer", lambda: _constraint_answer(result))
            self._add("search", "Profile of the search", lambda: page_search.search_section(result, profile))
        return self._page(title if title is not None else "Constraint model")

    def write_tour(self, problem: TourProblem, title: str | None) -> Report:
        history: list[Bounds] = []

        def record(state: TourState) -> None:
            history.append(Bounds(state.seconds, state.bound, state.length))

        limit = self._seconds(_SEARCH_SHARE)
        result = self._result = self._attempt(
            "answer", lambda: solve_tsp(problem, time_limit=limit, on_improvement=record)
        )
        if result is not None:
            self._add("answer", "Answer", lambda: tours.tour_section(problem, result, history))
            diagram = tours.shown_tour(problem, result.tour)
            if diagram is None:
                self._notes.append("The tour is not drawn: the problem has no coordinates, no cities, or too many.")
            else:
                self._draw("Tour", lambda: diagram)
        return self._page(title if title is not None else problem.name)

    def _seconds(self, share: float) -> float | None:
        """Return a share of the remaining seconds, at least 1 ms; None if there is no limit."""
        remaining = self._deadline - time.monotonic()
        return None if math.isinf(remaining) else max(share * remaining, 1e-3)

    def _add_answer(self, result: Result, model: Model, history: Sequence[Bounds]) -> None:
        self._add("answer", "Answer", lambda: answer_section(result, model))
        seconds = result.stats.get("seconds", {}).get("total", 0.0)
        self._add("bounds", "Bounds over time", lambda: bounds_section(history, seconds))

    def _graph(self, model: Model, queried: Sequence[int], observed: Sequence[int]) -> PageDiagram | None:
        def placed() -> PageDiagram:
            diagram = shown_graph(model, queried, observed)
            return PageDiagram(diagram, page_layout(diagram))

        return self._attempt("graph", placed, _SECTION_SHARE) if model.variables else None

    def _add_graph(self, graph: PageDiagram | None, model: Model, result: Result | None) -> None:
        if graph is not None:
            self._draw("Graph", lambda: with_answer(graph.diagram, model, result), graph.layout)

    def _draw(self, title: str, describe: Callable[[], Diagram], layout: GraphLayout | None = None) -> None:
        """Add a section with a diagram; without a ``layout``, the diagram is laid out first."""

        def drawn() -> PageDiagram:
            diagram = describe()
            return PageDiagram(diagram, page_layout(diagram) if layout is None else layout)

        drawing = self._attempt(title.lower(), drawn, _SECTION_SHARE if layout is None else None)
        if drawing is not None:
            self._diagrams.append(drawing)
            self._sections.append(PageSection(drawing.diagram.key, title, drawing.markup()))

    def _add(self, key: str, title: str, make: Callable[[], Markup]) -> None:
        body = self._attempt(title.lower(), make)
        if body is not None:
            self._sections.append(PageSection(key, title, body))

    def _attempt(self, what: str, make: Callable[[], Made], share: float | None = None) -> Made | None:
        """Make a section, or a part of it; None if an error or an interrupt prevents this, and then the page notes it.

        After an interrupt, long sections are left out.

        Args:
            what: Name of the section, for the note.
            make: Function that makes it.
            share: Share of the remaining time that the section may take; None if it is short, or checks the time
                limit itself.

        Raises:
            InputError: The caller's input is wrong.
            KeyboardInterrupt: The user interrupts for the second time.
        """
        if self._is_interrupted and what in _LONG_SECTIONS:
            return None
        limit = None if share is None else self._seconds(share)
        try:
            return make() if limit is None else Call(what, limit).result(make)
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
            self._notes.append(f"The computation was ended ({result.ended_by}): the answer is the best one so far.")
        return Report(page(title, self._sections, self._diagrams, self._notes), result)


def _constraint_answer(result: Result) -> Markup:
    contents: list[object] = [figures(answer_rows(result))]
    if result.assignment is not None and len(result.assignment):
        contents.append(assignment_table(result.assignment))
    elif result.assignment is not None:
        contents.append(paragraph("The solution has no named variables."))
    return joined(contents)
