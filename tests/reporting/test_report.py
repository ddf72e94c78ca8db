"""Reports: what is on the page, what is left out, and what is escaped."""

from __future__ import annotations

import json
import math
import re
import time
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import elimina
from elimina import InputError, Model, Options, Table, Variable, api, cp, dcop
from elimina.cp.tsplib import read_tsp
from elimina.generate import grid_model
from elimina.number_texts import probability_text
from elimina.reporting import graphs, junction_trees, writer
from elimina.reporting.answers import costly_terms
from elimina.reporting.page_charts import step_chart
from elimina.viz.charts import Series, StepChart

EXAMPLES = Path(__file__).parents[2] / "examples"
PUMP = EXAMPLES / "pump.bif"
HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    '"onmouseover="x',
    "naïve ∑ 変数",
    "&amp;",
]
MOST_BYTES = 10_000_000


class Page(HTMLParser):
    """Elements of a page, their attributes and texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.data = ""
        self._in_data = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._in_data = ("id", "data") in attrs

    def handle_endtag(self, tag):
        self._in_data = False

    def handle_data(self, data):
        if self._in_data:
            self.data += data
        else:
            self.texts.append(data)

    @property
    def sections(self) -> list[str]:
        return [str(attributes["id"]) for tag, attributes in self.tags if tag == "section"]

    @property
    def drawings(self) -> dict:
        return json.loads(self.data)


def warnings(report) -> list[str]:
    return re.findall('<p class="warning">(.*?)</p>', report.html)


def test_a_report_of_a_network_has_all_its_parts():
    evidence = {"Alarm": "on", "Noise": "loud"}
    report = elimina.report(PUMP, evidence=evidence)
    page = Page(report.html)
    assert page.sections == ["figures", "answer", "graph", "tree", "sensitivity", "plan"]
    expected = elimina.solve(PUMP, "mar", evidence=evidence)
    for name, values in expected.marginals.items():
        assert name in page.texts
        assert all(probability_text(p) in page.texts for p in values.values())
    drawing = page.drawings["graph"]
    model = elimina.read(PUMP)
    assert drawing["names"] == [v.name for v in model.variables]
    assert [drawing["names"][n] for n in drawing["marked"]] == ["Noise", "Alarm"]
    assert len(drawing["edges"]) == 2 * 15
    assert drawing["directed"]
    cliques = page.drawings["tree"]["members"]
    for factor in model.factors:
        free = {model.variables[v].name for v in factor.scope} - evidence.keys()
        assert any(free <= set(clique) for clique in cliques)
    assert not warnings(report)


def test_pages_need_no_network():
    page = Page(elimina.report(PUMP).html)
    for tag, attributes in page.tags:
        assert "src" not in attributes, tag
        assert (attributes.get("href") or "#").startswith(("#", "data:,")), tag
        assert not any(name.startswith("on") for name in attributes), tag
    policy = next(a["content"] for tag, a in page.tags if tag == "meta" and "http-equiv" in a)
    assert policy.startswith("default-src 'none';")
    assert "@import" not in elimina.report(PUMP).html


def hostile_model(sense) -> Model:
    states = ["</td><script>x</script>", "ß & <b>"]
    variables = [Variable(name, 2, states) for name in HOSTILE]
    tables = [Table((v, (v + 1) % 5), np.array([[1, 2], [3, 2]])) for v in range(5)]
    return Model(variables, tables, sense=sense, name="<h1>name</h1>")


@pytest.mark.parametrize("sense", ["probability", "min-cost"])
def test_hostile_names_stay_names(sense):
    model = hostile_model(sense)
    report = elimina.report(model, evidence={HOSTILE[0]: "ß & <b>"}, title="</title><script>alert(1)</script>")
    page = Page(report.html)
    assert sum(tag == "script" for tag, _ in page.tags) == 2
    assert not {"img", "b"} & {tag for tag, _ in page.tags}
    assert sum(tag == "h1" for tag, _ in page.tags) == 1
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert page.drawings["graph"]["names"] == HOSTILE
    assert set(HOSTILE[1:]) <= set(page.texts)
    assert "<" not in page.data


@pytest.mark.parametrize("count", [1, 10, 100, 1000])
def test_sizes(count):
    model = grid_model(2, 3, 0.1, columns=count // 2) if count > 1 else Model.from_arrays([3], [([0], [1, 2, 3])])
    report = elimina.report(model)
    assert report.result.status == "optimal"
    assert len(report.html.encode()) < MOST_BYTES / 5
    drawing = Page(report.html).drawings["graph"]
    assert len(drawing["names"]) == count
    assert len(drawing["positions"]) == 2 * count
    assert not warnings(report)


def test_ten_thousand_variables_and_more(monkeypatch):
    model = grid_model(4, 2, 0.05, columns=2500)
    report = elimina.report(model)
    assert report.result.status == "optimal"
    assert len(report.html.encode()) < MOST_BYTES
    assert "Assignment: 300 of 10,000 variables, the others are left out" in report.html
    monkeypatch.setattr(graphs, "MAX_NODES", 50)
    monkeypatch.setattr(graphs, "MAX_EDGES", 60)
    monkeypatch.setattr(junction_trees, "MAX_CLIQUES", 20)
    small = grid_model(10, 2)
    report = elimina.report(small, evidence={99: 0})
    drawings = Page(report.html).drawings
    assert len(drawings["graph"]["names"]) == 50
    assert small.variables[99].name in drawings["graph"]["names"]
    assert len(drawings["graph"]["edges"]) == 120
    assert len(drawings["tree"]["names"]) == 20
    assert "50 variables and 120 edges are left out" in report.html
    assert "cliques far from the root are left out" in report.html


def test_reasons_sum_to_the_distance_from_the_best():
    for sense in ("min-cost", "max-cost", "probability"):
        rng = np.random.default_rng(1)
        model = Model.from_arrays([2, 3, 2], [([0, 1], rng.random((2, 3))), ([1, 2], rng.random((3, 2)))], sense=sense)
        result = elimina.solve(model)
        terms = costly_terms(model, result.assignment)
        assert sum(term.value for term in terms) == pytest.approx(result.value)
        sign = 1 if sense == "min-cost" else -1
        bests = [float(sign * np.min(sign * factor.values)) for factor in model.factors]
        bests = [math.log(best) for best in bests] if sense == "probability" else bests
        assert sum(term.loss for term in terms) == pytest.approx(sign * (result.value - sum(bests)))
        assert [term.loss for term in terms] == sorted((term.loss for term in terms), reverse=True)


def test_sensitivity_is_the_answer_without_the_observation():
    evidence = {"Alarm": "on", "Noise": "loud"}
    report = elimina.report(PUMP, evidence=evidence, query=["Pump"])
    junction = elimina.JunctionTree(PUMP)
    junction.set_evidence(evidence)
    whole, before = junction.log10_evidence, junction.marginals(["Pump"])["Pump"]
    texts = Page(report.html).texts
    for name in evidence:
        junction.set_evidence({other: state for other, state in evidence.items() if other != name})
        change = np.abs(junction.marginals(["Pump"])["Pump"] - before).sum() / 2
        assert f"{change:.4f}" in texts
        assert probability_text(10 ** (whole - junction.log10_evidence)) in texts


def test_parameters_of_the_query():
    """Each variable of the query has the posteriors of its best state at other numbers of the model."""
    report = elimina.report(PUMP, evidence={"Alarm": "on", "Noise": "loud"}, query=["Bearing", "Alarm", "Pump"])
    page = Page(report.html)
    assert page.sections[-3:] == ["sensitivity", "parameters", "plan"]
    tree = elimina.JunctionTree(PUMP, evidence={"Alarm": "on", "Noise": "loud"})
    for event in ({"Bearing": "worn"}, {"Pump": "slow"}):
        sensitivities = tree.sensitivities(event)
        assert f"Sensitivity of {sensitivities.event} = {sensitivities.posterior:.4g}" in page.texts
        row = max(sensitivities, key=lambda row: abs(row.ends(0.1)[1] - row.ends(0.1)[0]))
        assert {row.name, *map(probability_text, row.ends(0.1))} <= set(page.texts)
    markov = Model([Variable("a", 2)], [Table([0], [1, 2])], sense="probability")
    assert "parameters" not in Page(elimina.report(markov, query=["a"]).html).sections
    assert "parameters" not in Page(elimina.report(PUMP, "mmap", query=["Pump"]).html).sections


def test_no_time_for_parameters(monkeypatch):
    monkeypatch.setattr(elimina.JunctionTree, "sensitivities", lambda *_: time.sleep(10))
    monkeypatch.setattr(writer, "_SENSITIVITY_SECONDS", 0.1)
    report = elimina.report(PUMP, query=["Pump"])
    assert "parameters" not in Page(report.html).sections
    assert any(note.startswith("No parameters: ") for note in warnings(report))


@pytest.mark.parametrize("task", ["mpe", "count", "pr", "mmap"])
def test_sensitivity_of_values(task):
    evidence = {"Alarm": "on", "Noise": "loud"}
    query = ["Pump", "Valve"] if task == "mmap" else None
    report = elimina.report(PUMP, task, evidence=evidence, query=query)
    texts = Page(report.html).texts
    for name in evidence:
        rest = {other: state for other, state in evidence.items() if other != name}
        answer = elimina.solve(PUMP, task, evidence=rest, query=query)
        assert (f"{answer.log10_z:.6g}" if task == "pr" else str(answer.value)[:30]) in texts


def test_large_counts():
    model = Model([Variable(f"x{i}", 4) for i in range(1200)], [])
    assert elimina.report(model, "count", evidence={0: 0, 1: 1}).result.value == 4**1198


def test_what_does_not_fit_is_said():
    options = Options(order_seconds=0.1, exact=True)
    report = elimina.report(grid_model(12, 6), "count", memory="64KiB", time_limit=120, options=options)
    assert report.result is None
    assert any(text.startswith("No answer: ") for text in warnings(report))
    assert {"figures", "graph", "tree", "plan"} <= set(Page(report.html).sections)


def test_impossible_evidence():
    model = Model.from_arrays([2, 2], [([0, 1], [[1.0, 0.0], [0.0, 0.0]])], sense="probability")
    report = elimina.report(model, evidence={"x0": 1})
    assert report.result.status == "infeasible"
    assert "Not computed: " in report.html


def test_a_time_limit_leaves_the_bounds():
    options = Options(order_seconds=0.1)
    report = elimina.report(grid_model(14, 8, seed=2), time_limit=2, memory="16MiB", options=options)
    assert report.result.status in ("bounded", "optimal")
    assert {"figures", "answer", "graph"} <= set(Page(report.html).sections)


def test_a_time_limit_holds_for_the_layout_and_the_plan():
    """Without it, each of them would take 3 s of processor time for this model."""
    rng = np.random.default_rng(0)
    tables = [Table(rng.choice(2000, 2, replace=False).tolist(), rng.random((2, 2))) for _ in range(4001)]
    model = Model([Variable(f"x{v}", 2) for v in range(2000)], tables, sense="probability")
    started = time.process_time()
    report = elimina.report(model, time_limit=1)
    assert time.process_time() - started < 3
    assert "figures" in Page(report.html).sections
    assert any(text.startswith("No graph: the time limit passed") for text in warnings(report))


def test_an_interrupt_leaves_the_rest_of_the_page(monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(api, "solve", interrupted)
    report = elimina.report(PUMP, evidence={"Alarm": "on"})
    assert warnings(report) == ["The report was ended early, while it made the answer."]
    assert Page(report.html).sections == ["figures", "graph", "tree", "plan"]
    monkeypatch.setattr(writer, "with_answer", interrupted)
    with pytest.raises(KeyboardInterrupt):
        elimina.report(PUMP)


def test_agents():
    pytest.importorskip("yaml")
    report = elimina.report(dcop.read(EXAMPLES / "meetings.yaml"))
    page = Page(report.html)
    assert page.sections == ["figures", "answer", "graph", "agents", "messages"]
    assert report.result.task == "dcop"
    for kind, number in report.result.stats["messages"].items():
        assert kind in page.texts
        assert f"{number:,}" in page.texts
    drawing = page.drawings["agents"]
    assert sorted(drawing["names"]) == sorted(page.drawings["graph"]["names"])
    assert len(drawing["dashed"]) == len(drawing["edges"]) // 2 - (len(drawing["names"]) - 1)


def test_constraints():
    report = elimina.report(EXAMPLES / "queens.fzn")
    assert Page(report.html).sections == ["figures", "answer", "search"]
    assert f"{report.result.stats['nodes']:,}" in report.html
    model = cp.Model()
    xs = [model.int_var(0, 40, f"x{i}") for i in range(6)]
    model.all_different(xs)
    model.minimize(sum(xs[1:], xs[0]))
    report = elimina.report(model)
    assert (report.result.status, report.result.value) == ("optimal", 15)
    assert "Objective of the best solution over time" in report.html


def test_progress_of_a_search():
    seen = []
    model = cp.Model()
    xs = [model.int_var(0, 7) for _ in range(9)]
    for i, x in enumerate(xs):
        for y in xs[:i]:
            model.add(x != y)
    result = model.solve(options=cp.SearchOptions(progress=seen.append))
    assert result.status == "infeasible"
    nodes = [known["nodes"] for known in seen]
    assert nodes
    assert nodes == sorted(nodes)
    assert nodes[-1] <= result.stats["nodes"]
    assert {"failures", "peak_depth", "propagations"} <= seen[-1].keys()


def test_tours():
    report = elimina.report(read_tsp(EXAMPLES / "towns.tsp"))
    page = Page(report.html)
    assert page.sections == ["answer", "tour"]
    edges = page.drawings["tour"]["edges"]
    assert sorted(edges[::2]) == sorted(edges[1::2]) == list(range(30))
    assert f"Tour: {' '.join(map(str, report.result.tour))}" in page.texts


@pytest.mark.parametrize("cities", [0, 1, 2])
def test_tours_of_few_cities(cities):
    points = np.arange(2.0 * cities).reshape(cities, 2)
    report = elimina.report(cp.tour_problem.TourProblem("few", np.zeros((cities, cities), int), points))
    page = Page(report.html)
    assert page.sections == ["answer", "tour"] if cities else ["answer"]
    assert any("not drawn: the problem has no coordinates, no cities" in text for text in page.texts) == (not cities)


def test_cities_without_a_tour(monkeypatch):
    unknown = elimina.Result("unknown", "tsp", stats={"seconds": {"total": 0.1}}, ended_by="time-limit")
    monkeypatch.setattr(writer, "solve_tsp", lambda *_, **__: unknown)
    page = Page(elimina.report(read_tsp(EXAMPLES / "towns.tsp")).html)
    assert page.sections == ["answer", "tour"]
    assert not page.drawings["tour"]["edges"]


def test_saving_and_showing(tmp_path):
    report = elimina.report(PUMP, "mpe")
    report.save(tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text("utf-8") == report.html
    with pytest.raises(InputError, match=r"a.png: reports are written to .html files"):
        report.save(tmp_path / "a.png")
    assert repr(report).startswith("Report(mpe: optimal, ")
    frame = Page(report._repr_html_()).tags
    assert [tag for tag, _ in frame] == ["iframe"]
    assert frame[0][1]["srcdoc"] == report.html


def test_arguments():
    with pytest.raises(InputError, match="evidence is for graphical models: leave it out"):
        elimina.report(cp.Model(), evidence={})
    with pytest.raises(
        TypeError, match=r"model is 3 \(int\); it takes a Model, a network of pgmpy or pyAgrum, or the p"
    ):
        elimina.report(3)
    with pytest.raises(InputError, match="the model has no variable 'Alrm'; did you mean 'Alarm'"):
        elimina.report(PUMP, evidence={"Alrm": "on"})
    with pytest.raises(InputError, match="has no state"):
        elimina.report(PUMP, evidence={"Alarm": "perhaps"})


def test_charts_of_one_value_and_of_long_runs():
    flat = step_chart(StepChart("flat", [Series("a", [(0.5, 3.0)])], 0.5, "cost"))
    assert "NaN" not in flat
    assert "inf" not in flat
    long = step_chart(StepChart("long", [Series("a", [(0.002, 1.0), (500.0, 2.0)])], 1000.0, "cost"))
    assert [label for label in ("0.01", "0.1", "1", "10", "100") if f">{label}</text>" not in long] == []
