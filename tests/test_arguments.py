"""Arguments of ``solve``, ``plan`` and ``JunctionTree`` of a wrong type or without a meaning."""

from __future__ import annotations

import importlib
import inspect
import math
import re
import sys

import numpy as np
import pytest

import elimina
from elimina import Table, arguments, cp, dcop, solve, write
from elimina.cp.tsp import solve_tsp
from elimina.dcop import Problem
from elimina.errors import InputError, MemoryLimitError
from elimina.io.cases import read_cases
from elimina.io.posteriors import open_posteriors
from elimina.planning.option_checks import check_options
from tests import calls
from tests.calls import solve_by_agents as solve_dcop

COSTS = elimina.Model.from_arrays({"a": 2, "b": 2}, [(("a", "b"), np.array([[3, 1], [2, 5]]))])
CHAIN = elimina.Model.from_arrays(
    {"a": 2, "b": 2}, [(("a",), [0.5, 0.5]), (("a", "b"), [[0.9, 0.1], [0.2, 0.8]])], sense="probability"
)


class Named:
    """An object whose text says what it is."""

    def __repr__(self):
        return "<Named>"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"memory": b"8GiB"}, r"memory is b'8GiB' \(bytes\); it takes a number of bytes, text such as '8GiB'"),
        ({"memory": [1]}, r"memory is \[1\] \(list\)"),
        ({"memory": True}, r"memory is True \(bool\)"),
        ({"time_limit": "3"}, r"time_limit is '3' \(str\); it takes a number of seconds, or None"),
        ({"gap": None}, r"gap is None; it takes a number such as 0.01, or text such as '1%'"),
        ({"order": None}, r"order is None; it takes a method \(auto, min-fill, .*\) or a sequence of variables"),
        ({"order": 3}, r"order is 3 \(int\)"),
        ({"order": {"a", "b"}}, r"order is \{'a', 'b'\} \(set\)"),
        ({"order_seconds": "1"}, r"order_seconds is '1' \(str\)"),
        ({"seed": 1.5}, r"seed is 1.5 \(float\); it takes an integer"),
        ({"seed": None}, r"seed is None; it takes an integer"),
        ({"threads": "four"}, r"threads is 'four' \(str\); it takes an integer"),
        ({"threads": True}, r"threads is True \(bool\)"),
        ({"dtype": 32}, r"dtype is 32 \(int\); it takes the name of a dtype such as 'float32'"),
        ({"device": 3}, r"device is 3 \(int\); it takes a name such as 'cuda', or a list of GPUs"),
        ({"tables": 1}, r"tables is 1 \(int\); it takes one of auto, dense, sparse"),
        ({"slices": 2.5}, r"slices is 2.5 \(float\); it takes auto, never or"),
        ({"scratch": 3}, r"scratch is 3 \(int\); it takes a path"),
        ({"ibound": 2.0, "method": "mbe"}, r"ibound is 2.0 \(float\); it takes auto, a number of variables, or None"),
        ({"shift": None}, r"shift is None"),
        ({"partition": Named()}, r"partition is <Named> \(Named\)"),
        ({"method": 7}, r"method is 7 \(int\); it takes one of auto, eliminate"),
        ({"upper_bound": "2"}, r"upper_bound is '2' \(str\); it takes the cost of a known solution, or None"),
        ({"task": 1}, r"task is 1 \(int\); it takes one of mpe, map, pr"),
        ({"on_plan": 1}, r"on_plan is 1 \(int\); it takes a function, or None"),
        ({"progress": "yes"}, r"progress is 'yes' \(str\)"),
        ({"checkpoint": 5}, r"checkpoint is 5 \(int\); it takes a path"),
    ],
)
def test_wrong_types(options, problem):
    with pytest.raises(TypeError, match=f"^{problem}"):
        calls.solve(COSTS, **options)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"memory": math.nan}, "memory is NaN"),
        ({"memory": math.inf}, "memory is inf bytes: expected a finite size"),
        ({"memory": "lots"}, "invalid memory size 'lots': expected a number with a unit, such as 8GiB"),
        ({"memory": "-5"}, "invalid memory size '-5'"),
        ({"memory": "x" * 1000}, "invalid memory size 'x{10,40}"),
        ({"time_limit": math.nan}, "time_limit is NaN; it takes a number of seconds"),
        ({"time_limit": 0}, "time_limit is 0 s; it must be above 0"),
        ({"gap": "-1%"}, "invalid gap '-1%': expected a share of 0 or more, such as 0.01 or 1%"),
        ({"gap": "1e999"}, "invalid gap '1e999': it must be finite"),
        ({"gap": "5"}, "invalid gap '5': shares above 1 are written in per cent; .* write 5%"),
        ({"gap": math.inf}, "gap is inf; it must be finite"),
        ({"threads": 0}, "threads is 0; it must be from 1 to 1,024"),
        ({"slices": "some"}, "slices is 'some'; it takes auto, never"),
        ({"ibound": 0, "method": "mbe"}, "ibound is 0; it must be at least 1"),
        ({"seed": -1}, "seed is -1; it must be from 0 to"),
    ],
)
def test_values_without_a_meaning(options, problem):
    with pytest.raises(InputError, match=f"^{problem}"):
        calls.solve(COSTS, **options)


@pytest.mark.parametrize("memory", ["1GB", "8GiB", "500 MB", "1e9", 10**9, 1e9, np.int64(10**9), np.float32(1e9)])
def test_memory_as_on_the_command_line(memory):
    result = elimina.solve(COSTS, memory=memory, device="cpu")
    assert result.value == 1
    assert elimina.plan(COSTS, memory=memory, device="cpu").memory_limit == arguments.memory_size("memory", memory)


def test_sizes_are_exact():
    assert arguments.parse_size("9007199254740993") == 2**53 + 1
    assert arguments.parse_size("0.1GB") == 10**8


def test_sizes_beyond_any_machine():
    assert elimina.solve(COSTS, memory=10**400, device="cpu").value == 1
    assert arguments.memory_size("memory", 10**400) == sys.maxsize
    for size in (-(10**400), -1):
        with pytest.raises(InputError, match=r"^memory is -.* bytes: expected a finite size"):
            elimina.solve(COSTS, memory=size)


@pytest.mark.parametrize(
    ("gap", "meant"), [("1%", 0.01), ("500%", 5), ("0.5", 0.5), (".5e1%", 0.05), (0, 0), (np.float32(1), 1)]
)
def test_gaps(gap, meant):
    assert arguments.share("gap", gap) == pytest.approx(meant)
    assert calls.solve(COSTS, gap=gap).value == 1


@pytest.mark.parametrize("options", [{"dtype": np.float32}, {"dtype": np.dtype("float32")}, {"dtype": "float32"}])
def test_dtypes_of_numpy(options):
    assert calls.solve(COSTS, **options).stats["dtype"] == "float32"


class TestModels:
    def test_paths_are_read(self, tmp_path):
        path = tmp_path / "m.uai"
        elimina.write(CHAIN, path)
        expected = elimina.solve(CHAIN, "pr").log10_z
        assert elimina.solve(path, "pr").log10_z == pytest.approx(expected)
        assert elimina.solve(str(path), "mpe").task == "mpe"
        assert elimina.plan(path).width == 1
        assert elimina.JunctionTree(path).log10_evidence == pytest.approx(expected)

    @pytest.mark.parametrize("name", ["nowhere.bif", "nowhere.docx", "nowhere"])
    def test_a_path_that_is_not_there(self, name):
        with pytest.raises(InputError, match=rf"cannot read {name}: No such file"):
            elimina.solve(name)

    def test_a_folder_and_an_unknown_suffix(self, tmp_path):
        with pytest.raises(InputError, match=r"cannot read .*: Is a directory"):
            elimina.solve(tmp_path)
        path = tmp_path / "model.docx"
        path.touch()
        with pytest.raises(InputError, match=r"unknown suffix .\.docx"):
            elimina.solve(path)

    @pytest.mark.parametrize("model", [None, 3, [], {"a": 2}])
    @pytest.mark.parametrize("call", [elimina.solve, elimina.plan, elimina.JunctionTree])
    def test_other_objects(self, call, model):
        with pytest.raises(
            TypeError, match=r"^model is .*; it takes a Model, a network of pgmpy or pyAgrum, or the path"
        ):
            call(model)


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda path: elimina.write(1, path), r"model is 1 \(int\); it takes a Model"),
        (lambda path: elimina.write(COSTS, None), "path is None; it takes the path of a file"),
        (lambda path: elimina.read(3), r"path is 3 \(int\); it takes the path of a file$"),
        (lambda path: elimina.read(b"m.uai"), r"path is b'm.uai' \(bytes\)"),
    ],
)
def test_reading_and_writing(tmp_path, call, problem):
    with pytest.raises(TypeError, match=f"^{problem}"):
        call(tmp_path / "m.uai")


class TestJunctionTree:
    @pytest.mark.parametrize("options", [{"memory": [1]}, {"order": None}, {"seed": "1"}, {"threads": 2.0}])
    def test_wrong_types(self, options):
        with pytest.raises(TypeError, match=f"^{next(iter(options))} is "):
            calls.junction_tree(CHAIN, **options)

    def test_memory_as_text(self):
        assert elimina.JunctionTree(CHAIN, memory="1MB").plan.memory_limit == 10**6

    def test_numbers_of_samples(self):
        tree = elimina.JunctionTree(CHAIN)
        with pytest.raises(TypeError, match=r"^count is 2.5 \(float\); it takes an integer"):
            tree.sample(2.5)
        with pytest.raises(TypeError, match=r"^seed is 1.5 \(float\); it takes an integer, or None for any"):
            tree.sample(2, 1.5)
        with pytest.raises(InputError, match=r"^count is -1; it must be at least 0"):
            tree.sample(-1)
        with pytest.raises(MemoryLimitError, match=r"^1,000,000,000,000 samples of 2 variables need .* draw fewer"):
            tree.sample(10**12)
        with pytest.raises(MemoryLimitError):
            tree.sample(10**30)
        assert tree.sample(np.int64(3), indices=True).shape == (3, 2)


DIAGRAM = elimina.InfluenceDiagram.from_tables(
    chance={}, decisions={"a": []}, utilities={("u", "a"): [1, 2]}, states={"a": 2}
)


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda: calls.solve(COSTS, method=np.array([])), r"method is array\(.*; it takes one of auto,"),
        (lambda: solve(COSTS, np.array(["mpe", "pr"])), r"task is array\(.*; it takes one of mpe,"),
        (lambda: solve(CHAIN, "mar", query=np.array("a")), r"query is array\(.*; it takes a sequence of names"),
        (lambda: solve(CHAIN, "mar", query={"a": 0}), r"query is \{'a': 0\} \(dict\); it takes a sequence of names"),
        (lambda: elimina.JunctionTree(CHAIN).marginals({"a": 0}), r"variables is \{'a': 0\}.*; it takes a sequence of"),
        (lambda: solve(cp.Model()), r"model is a constraint model; .* elimina.solve\(model.to_model\(\)\)"),
        (lambda: solve(elimina.fit(NETWORK, FIT_ROWS)), r"model is a fit; its network is fit\.model"),
        (lambda: solve(elimina.JunctionTree(NETWORK)), r"model is a junction tree; .*: tree\.model"),
        (
            lambda: solve(elimina.DynamicModel.hidden_markov([1.0], [[1.0]], [[1.0]])),
            r"model is a model over time; .* model\.unroll\(10\)",
        ),
        (
            lambda: elimina.JunctionTree(DIAGRAM),
            "model is an influence diagram; .* solve",
        ),
        (
            lambda: elimina.Model.from_arrays([2, 2], [(np.ones((2, 2)), [0, 1])]),
            r"factors\[0\]\[0\] is array.*; it takes a seq",
        ),
        (
            lambda: cp.Model().int_var(0, 5) / 2,
            r"expressions are whole numbers: x // y rounds down, Model.quotient\(x, y\) towards 0",
        ),
        (lambda: write(3, "model.uai"), r"model is 3 \(int\); it takes a Model"),
        (lambda: dcop.solve("a.yaml"), r"problem is 'a.yaml' \(str\); it takes an elimina.dcop.Problem"),
        (lambda: solve_tsp("a.tsp"), r"problem is 'a.tsp' \(str\); it takes an elimina.cp.TourProblem"),
        (lambda: calls.search(cp.Model(), lns=np.array([1, 2])), r"lns is array\(.*; it takes True or False"),
        (lambda: cp.Model().solve(all_solutions="no"), r"all_solutions is 'no' \(str\); it takes True or False"),
    ],
)
def test_what_has_no_truth_value(call, problem):
    with pytest.raises(TypeError, match=f"^{problem}"):
        call()


def test_names_and_defaults_of_other_types():
    with pytest.raises(InputError, match="no variable named"):
        cp.Model()[np.array([])]
    assert cp.Model().to_model(rows=10**400).sizes == ()
    with pytest.raises(InputError, match="integer default"):
        Table([0], [1], sizes=[2], rows=[[0]], default=np.float32(1.5))
    assert calls.search(cp.Model(), free=np.bool_(True)).status == "feasible"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"time_limit": "3"}, "time_limit is '3'"),
        ({"threads": 1.5}, "threads is 1.5"),
        ({"seed": None}, "seed is None"),
        ({"memory": []}, "memory is "),
        ({"algorithm": 3}, "algorithm is 3"),
        ({"heuristic": None}, "heuristic is None"),
        ({"algorithm": "adpop", "ibound": "2"}, "ibound is '2'"),
        ({"filtering": 2.0}, "filtering is 2.0"),
    ],
)
def test_agents(options, problem):
    with pytest.raises(TypeError, match=f"^{problem}"):
        solve_dcop(Problem.from_model(COSTS), **options)


def test_memory_of_agents_as_text():
    assert solve_dcop(Problem.from_model(COSTS), "mb-dpop", memory="1GB").value == 1


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda: solve(COSTS, threads=1), r"options=elimina.Options\(threads=1\)"),
        (lambda: elimina.plan(COSTS, ibound=3), r"options=elimina.Options\(ibound=3\)"),
        (lambda: elimina.JunctionTree(CHAIN, dtype="float32"), r"options=elimina.Options\(dtype='float32'\)"),
        (lambda: elimina.report(CHAIN, seed=1), r"options=elimina.Options\(seed=1\)"),
        (lambda: cp.Model().solve(lns=True), r"options=elimina.cp.SearchOptions\(lns=True\)"),
        (lambda: dcop.solve(Problem.from_model(COSTS), ibound=2), r"options=elimina.dcop.AgentOptions\(ibound=2\)"),
    ],
)
def test_an_option_that_is_given_as_an_argument(call, advice):
    with pytest.raises(TypeError, match=f"is one of the options: write {advice}$"):
        call()


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda: solve(COSTS, timeout=3), "did you mean 'time_limit'"),
        (lambda: cp.Model().solve(timeout=3), "did you mean 'time_limit'"),
        (lambda: solve(COSTS, upperbound=3), r"did you mean options=elimina.Options\(upper_bound=3\)"),
        (lambda: elimina.JunctionTree(CHAIN, evidences={}), "did you mean 'evidence'"),
        (
            lambda: elimina.plan(COSTS, foo=3),
            "it has 'model', 'task', 'evidence', 'query', 'device', 'memory', 'options'$",
        ),
    ],
)
def test_an_argument_that_nothing_takes(call, advice):
    with pytest.raises(TypeError, match=f"unexpected keyword argument .*; {advice}"):
        call()


PACKAGES = ("elimina", *(f"elimina.{name}" for name in ("cp", "dcop", "distributed", "generate", "io", "viz")))

UNCHECKED = ["Table", "Variable", "NamedTable", "Policy", "OnlineFilter", "Expression", "Solution", "Agent"]
"""Classes of objects that are made, or called, by the thousand: a check would take a share of their time."""


TREE = elimina.JunctionTree(CHAIN)


def is_condition(package, name):
    """Return whether a function returns a condition, whose arguments a model's method checks."""
    return package is cp and hasattr(cp.Model, name)


def public_calls():
    """Yield the public functions and methods with optional arguments, except those of ``UNCHECKED``."""
    for package in map(importlib.import_module, PACKAGES):
        own = [name for name, value in vars(package).items() if getattr(value, "__module__", "") == package.__name__]
        for name in getattr(package, "__all__", own):
            owner = getattr(package, name)
            if inspect.isfunction(owner) and not is_condition(package, name):
                yield f"{package.__name__}.{name}", owner
            elif inspect.isclass(owner) and owner.__module__.startswith("elimina.") and name not in UNCHECKED:
                for method in [method for method in dir(owner) if method == "__init__" or not method.startswith("_")]:
                    member = inspect.getattr_static(owner, method)
                    yield f"{package.__name__}.{name}.{method}", getattr(member, "__func__", member)


def optional_names(function):
    """Return the names of optional arguments; none if any name is taken."""
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return []
    return [parameter.name for parameter in parameters if parameter.default is not parameter.empty]


CALLS = {
    name: function
    for name, function in public_calls()
    if inspect.isfunction(function) and function.__module__.startswith("elimina.") and optional_names(function)
}


@pytest.mark.parametrize("function", [pytest.param(function, id=name) for name, function in CALLS.items()])
def test_misspelt_arguments_of_all_calls(function):
    for name in optional_names(function):
        hint = f"; did you mean '{name}'" if len(name) > 2 else ""
        with pytest.raises(TypeError, match=rf"unexpected keyword argument '{name}x'{hint}"):
            function(TREE, **{f"{name}x": None})


def test_many_calls_are_public():
    assert len(CALLS) > 100


def test_the_advice_about_options_works():
    assert solve(COSTS, options=elimina.Options(threads=1)).value == 1
    assert cp.Model().solve(options=elimina.cp.SearchOptions(lns=True)).status
    assert dcop.solve(Problem.from_model(COSTS), "adpop", options=elimina.dcop.AgentOptions(ibound=2)).status


@pytest.mark.parametrize("name", ["a\0.bif", "\ud800.bif"])
def test_impossible_names_of_files(name):
    for call in (
        lambda: elimina.read(name),
        lambda: elimina.solve(name),
        lambda: elimina.write(CHAIN, name),
        lambda: elimina.read_evidence(name, CHAIN),
        lambda: elimina.report(CHAIN).save(name),
        lambda: dcop.read(name),
        lambda: dcop.write(Problem.from_model(COSTS), name),
        lambda: cp.read(name),
        lambda: read_cases(name, CHAIN),
        lambda: open_posteriors(name, CHAIN.variables),
        lambda: calls.solve(COSTS, checkpoint=name),
        lambda: calls.solve(COSTS, scratch=name),
    ):
        with pytest.raises(InputError, match="which no file can have as its name"):
            call()


def test_a_device_without_a_suffix_is_not_read():
    """It may have no end."""
    with pytest.raises(InputError, match="/dev/zero: unknown suffix ''"):
        elimina.read("/dev/zero")


@pytest.mark.parametrize("size", [2**31, 2**63, 2**64, 10**5000], ids=["31", "63", "64", "long"])
def test_domains_beyond_the_cores_integers(size):
    with pytest.raises(InputError, match=r"variable 'x' has .* values; at most 2\^31 - 1 are possible"):
        elimina.Variable("x", size)


def test_a_junction_tree_that_finds_no_memory_says_so(monkeypatch):
    def fail(*given):
        raise MemoryError

    monkeypatch.setattr("elimina.methods.compiled_tree.SmallNetwork", fail)
    with pytest.raises(MemoryLimitError, match="the process ran out of memory while it propagated"):
        elimina.JunctionTree(CHAIN)


def test_a_series_is_no_table_of_cases():
    for package in ("pandas", "polars"):
        library = pytest.importorskip(package)
        with pytest.raises(TypeError, match=r"cases is .* \(Series\); it takes a data frame"):
            elimina.JunctionTree(CHAIN).batch(library.Series([0, 1]))


@pytest.mark.parametrize("size", [1, 8, 1.5, 1000, np.int64(64), np.float32(2.5), 2**20 - 1])
def test_small_sizes_as_numbers_need_a_unit(size):
    problem = Problem.from_model(COSTS)
    calls_with_memory = [
        lambda memory: elimina.solve(COSTS, memory=memory),
        lambda memory: elimina.plan(COSTS, options=elimina.Options(memory=memory)),
        lambda memory: elimina.JunctionTree(CHAIN, memory=memory),
        lambda memory: elimina.sample(CHAIN, 1, memory=memory),
        lambda memory: dcop.solve(problem, "mb-dpop", memory=memory),
    ]
    for call in calls_with_memory:
        with pytest.raises(InputError, match=r"^invalid memory size .*: a number this small needs a unit") as error:
            call(size)
        for advice in re.findall(r"'(\S+?B)'", str(error.value)):
            arguments.memory_size("memory", advice)


def test_checked_sizes_stay_as_they_are():
    size = arguments.memory_size("memory", "1000B")
    assert arguments.memory_size("memory", size) == size == 1000
    checked = check_options(elimina.Options(memory="1000B"))
    assert check_options(checked).memory == 1000


@pytest.mark.parametrize("text", ["8", "1000", " 64 ", "1e3", "1048575", "0.5"])
def test_small_sizes_as_text_need_a_unit(text):
    with pytest.raises(
        InputError, match=rf"size '{text}': a number this small needs a unit, such as {text.strip()}GiB"
    ):
        elimina.plan(COSTS, memory=text)
    assert arguments.parse_size(f"{text}GiB") > 2**20
    assert arguments.parse_size("1000B") == arguments.parse_size("1kB") == 1000
    assert arguments.parse_size("1048576") == 2**20


BEYOND_FLOATS = 10**400
NETWORK = elimina.Model(
    [elimina.Variable("x0", 2), elimina.Variable("x1", 2)],
    [Table([0], [0.25, 0.75]), Table([0, 1], [[0.5, 0.5], [0.1, 0.9]])],
    sense="probability",
    children=[0, 1],
)
FIT_ROWS = {"x0": [0, 1, None], "x1": [0, 1, 1]}


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: calls.search(cp.Model(), restart_scale=BEYOND_FLOATS), "restart_scale"),
        (lambda: calls.search(cp.Model(), restarts="geometric", restart_growth=BEYOND_FLOATS), "restart_growth"),
        (lambda: elimina.fit(NETWORK, FIT_ROWS, prior=BEYOND_FLOATS), "prior"),
        (lambda: elimina.fit(NETWORK, FIT_ROWS, prior={"x0": [BEYOND_FLOATS, 1]}), "prior of 'x0'"),
        (lambda: calls.fit(NETWORK, FIT_ROWS, tolerance=BEYOND_FLOATS), "tolerance"),
        (lambda: elimina.iterate_best(COSTS, within=BEYOND_FLOATS), "within"),
        (lambda: elimina.JunctionTree(NETWORK).observation_values("x0", costs={"x1": BEYOND_FLOATS}), r"costs\['x1'\]"),
        (lambda: elimina.solve(NETWORK, "mar", evidence={"x0": [BEYOND_FLOATS, 1]}), "likelihoods of variable 'x0'"),
    ],
)
def test_integers_beyond_floats(call, name):
    with pytest.raises(InputError, match=rf"{name} (is|are) .*range of a float$"):
        call()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("time_limit", 1j, "time_limit is 1j"),
        ("time_limit", np.array([1, 2]), "time_limit is array"),
        ("tied", 3, "tied is 3"),
        ("tied", np.array("x"), "tied is array"),
        ("options", 3, "options is 3"),
        ("options", elimina.FitOptions(planning=3), "planning is 3"),
    ],
)
def test_wrong_arguments_of_a_fit_are_named(name, value, message):
    with pytest.raises(TypeError, match=rf"^{message}"):
        elimina.fit(NETWORK, FIT_ROWS, **{name: value})


@pytest.mark.parametrize("name", ["set_evidence", "update"])
def test_required_arguments_of_trees_are_checked(name):
    with pytest.raises(TypeError, match=f"^{name}.*evidense"):
        getattr(TREE, name)(evidense={})


@pytest.mark.parametrize(
    ("word", "keyword"), [("variables", "query"), ("target", "query"), ("nodes", "query"), ("timeout", "time_limit")]
)
def test_keywords_of_other_libraries(word, keyword):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{word}'; did you mean '{keyword}'"):
        solve(CHAIN, "mar", **{word: None})


def test_unknown_keys_of_answers_name_close_ones():
    name = CHAIN.variables[0].name
    for mapping in (solve(CHAIN, "mar").marginals, elimina.sample(CHAIN, 2, seed=0), TREE.marginals()):
        with pytest.raises(KeyError, match=f"of '{name}_'.* {name!r}"):
            mapping[f"{name}_"]
        assert mapping.get(f"{name}_") is None
