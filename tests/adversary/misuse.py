"""Calls with wrong arguments: answers, errors of elimina, or TypeErrors that name the argument may come out."""

from __future__ import annotations

import contextlib
import io
import random
import re
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elimina.errors import EliminaError, InternalError
from tests.adversary.case import Case, Defect, Setting

WRONG = (
    *("None", "True", "False", "-1", "0", "1", "2", "2.5", "nan", "inf", "-inf", "10**12", "2**31", "2**63", "2**64"),
    *("10**400", "''", "'-'", "'3'", "'1GB'", "'auto'", "'x0'", "'a'", "'nonsense'", "' 1'", "'١'", "b'x'", "1j"),
    *(
        "[]",
        "[0]",
        "['x0']",
        "[['x0']]",
        "['x0', 'x0']",
        "[None]",
        "[nan]",
        "[1, 2]",
        "[[1, 2], [3]]",
        "[0, [1]]",
        "[True, False]",
        "[0.5, 0.5]",
        "(1, 2)",
        "[10**400, 1]",
        "{1}",
        "{}",
    ),
    *(
        "{'x0': 0}",
        "{'x0': None}",
        "{'x0': 'a'}",
        "{0: 1}",
        "{'x0': [0.5]}",
        "{'x0': [nan, 1]}",
        "{'x0': 1.0}",
        "{'x0': [10**400, 1]}",
        "{'x9': 0}",
        "{'x9': [0], 'x0': ['a']}",
        "{'x9': [0], 'observation': [0]}",
    ),
    *("{'x0': True}", "{None: 0}", "{'x0': [-1, 2]}", "{'x0': 10**30}", "{(0, 1): 2}", "[{}]", "[(0, 1)]", "[[]]"),
    *("object()", "np.array([1, 2])", "np.array([[1, 2]])", "np.array('x')", "np.array([])", "np.float32(1.5)"),
    *("np.int64(1)", "np.array([2**63], np.uint64)", "np.array(['a'], object)", "np.array([1 + 2j])", "np.bool_(True)"),
    *("np.ma.array([1, 2], mask=[0, 1])", "np.array([1, 2], np.longdouble)", "np.datetime64('2020-01-01')", "range(3)"),
    *("lambda *a: None", "Fraction(1, 2)", "Path('.')", "print", "costs", "network", "[costs]", "iter([0, 1])", "type"),
)
"""Source of what is given for an argument."""

ARGUMENTS = ("task", "evidence", "query", "device", "memory", "options")
TREE = ("order", "order_seconds", "seed", "threads", "dtype")
PLANNING = ("device", "memory", *TREE, "slices", "scratch", "tables", "ibound", "shift", "partition")
SOLVING = (*PLANNING, "method", "upper_bound", "hint", "gap", "on_plan", "on_bounds", "progress", "checkpoint")
SEARCH = ("all_solutions", "solution_limit", "time_limit", "threads", "seed", "device", "on_solution", "options")
FIT_OPTIONS = ("start", "seed", "tolerance", "max_iterations", "device", "memory", "planning")
SEARCH_OPTIONS = ("node_limit", "fail_limit", "restarts", "restart_scale", "restart_growth", "free", "lns")
CONSTRAINTS = (
    *(
        "clause([@], [xs[0]])",
        "clause([xs[0]], [@])",
        "any_of([xs[0], @])",
        "all_of([xs[0], @])",
        "add(cp.clause(xs, [@]))",
    ),
    *("clause([m.int_var(@, 1)])", "any_of([m.int_var(0, @), xs[0]])", "add(xs[0] & m.int_var(@, 1))"),
    *("no_overlap(xs, [1, 1], [@, 1])", "no_overlap(xs, [1, 1], [m.int_var(0, @), 1])", "no_overlap(xs, [@, 1])"),
    *("no_overlap(xs, [1, 1], [1, 1], [[0, @], [0, 0]])", "no_overlap([@, xs[0]], [1, 1])"),
    *("no_overlap_2d(xs, xs, [1, 1], [1, @])", "no_overlap_2d(xs, xs, [1, 1], [1, 1], [@, xs[0]])"),
    *("cumulative(xs, [1, 1], [1, @], 1)", "cumulative(xs, [1, 1], [1, 1], 1, [m.int_var(0, @), xs[0]])"),
    *("reservoir(xs, [@, -1], 0, 2)", "reservoir(xs, [1, -1], @, 2)", "reservoir([xs[0], @], [1, -1], 0, 2)"),
    *("reservoir(xs, [1, -1], 0, 2, [@, 1])", "reservoir(xs, [1, -1], 0, 2, [xs[0], m.int_var(0, @)])"),
    *("precedence(m.interval_var(xs[0], 1), m.interval_var(xs[1], 1), @)", "interval_var(xs[0], 1, @)"),
    *("interval_var(xs[0], @)", "interval_var((0, @), 1)", "interval_var(xs[0], 1, m.int_var(@, 1))"),
    *("member(xs[0], [@])", "member(@, [0])", "all_different([xs[0], @])", "all_different_except_0([xs[0], @])"),
    *("circuit([xs[0], @])", "subcircuit([xs[0], @])", "table(xs, [(0, @)])", "table([xs[0], @], [(0, 1)])"),
    *("weighted_circuit([*xs, xs[0]], {(0, 1): @})", "weighted_circuit(xs, {(0, 1): @})"),
    *("circuit([@])", "weighted_circuit([*xs, @], {(0, 1): 1})"),
    *("regular(xs, [{0: @}], 0, [0])", "regular([xs[0], @], [{0: 0}], 0, [0])"),
    *("cardinality(xs, {0: @})", "cardinality([xs[0], @], {0: 1})"),
    *("lex_less(xs, [@])", "lex_lesseq([@], xs)", "inverse(xs, [@])", "inverse(xs, [xs[0], @])"),
    *(
        "bin_packing_load([@, 1], xs, [1, 1])",
        "bin_packing_load([1, 1], xs, [1, @])",
        "bin_packing_load(xs, [@], [1, 1])",
    ),
    *("quotient(xs[0], @)", "remainder(@, xs[0])", "power(xs[0], @, 0, 9)", "absolute(@)", "minimum([xs[0], @])"),
    *("count([xs[0], @], 1)", "count(xs, @)", "distinct_values([xs[0], @])", "arg_min([xs[0], @])", "sort([xs[0], @])"),
    *("element([0, @], xs[0])", "element([xs[1], @], xs[0])", "element([[0, 1]], (0, @))", "value_precede([0, @], xs)"),
    *("cost_regular(xs, [{0: 0}], 0, [0], [{0: @}])", "cost_regular([xs[0], @], [{0: 0}], 0, [0], [{0: 1}])"),
    *("add_cost([xs[0], @], [[1, 2], [3, 4]])", "minimize([xs[0], @])", "search([@])"),
    *("minimize(m.int_var(0, 2**52) + @)", "maximize(m.int_var(0, 2**52) * 2 + xs[0] * @)", "hint({xs[0]: @})"),
    *("count([m.int_var(-2**52, 2**52) + @, xs[0]], 1)", "add(m.int_var(-2**52, 2**52) + xs[0] == @)"),
    *("all_different([m.int_var(-2**52, 2**52) + @])", "lex_less([m.int_var(0, 2**52) * @], xs)"),
)
"""Constraints of a model ``m`` with two Booleans ``xs``: the call refuses all that is wrong with their arguments."""

CALLS = (
    *(f"solve(costs, {name}=@)" for name in (*ARGUMENTS, "time_limit")),
    *(f"solve(network, 'mar', {name}=@)" for name in (*ARGUMENTS[1:], "time_limit")),
    *(f"plan(costs, {name}=@)" for name in ARGUMENTS),
    *(f"solve(costs, options=Options({name}=@))" for name in SOLVING),
    *(f"solve(network, 'mar', options=Options({name}=@))" for name in SOLVING),
    *(f"plan(costs, options=Options({name}=@))" for name in PLANNING),
    *(f"JunctionTree(network, {name}=@).marginals()" for name in ("device", "memory", "options")),
    *(f"JunctionTree(network, options=Options({name}=@)).marginals()" for name in TREE),
    *(f"problem().solve({name}=@)" for name in SEARCH),
    *(f"problem().solve(options=cp.SearchOptions({name}=@))" for name in SEARCH_OPTIONS),
    *(f"list(islice(iterate_best(costs, {name}=@), 3))" for name in (*ARGUMENTS[1:2], *ARGUMENTS[3:], "within")),
    "list(islice(iterate_best(costs, distance=@), 3))",
    *(f"fit(network, rows, {name}=@)" for name in ("states", "prior", "tied", "time_limit", "options")),
    *(f"fit(network, rows, options=FitOptions({name}=@))" for name in FIT_OPTIONS),
    *("fit(@, rows)", "fit(network, @)", "sample(@, 2)", "sample(network, @)"),
    *(f"sample(network, 2, {name}=@)" for name in ("evidence", "seed", "device", "memory", "time_limit")),
    *("solve(@)", "plan(@)", "JunctionTree(@)", "read(@)", "write(@, '/tmp/x.uai')", "write(costs, @)"),
    *("JunctionTree(network).set_evidence(@)", "JunctionTree(network).update(@)", "JunctionTree(network).marginals(@)"),
    *("JunctionTree(network).max_marginals(@)", "JunctionTree(network).joint(@)", "JunctionTree(network).sample(@)"),
    *(
        "JunctionTree(network).sample(2, seed=@)",
        "JunctionTree(network).sample(2, 0, @)",
        "JunctionTree(network).batch(@)",
    ),
    *("JunctionTree(network).batch({'x0': [0]}, @)", "JunctionTree(network).entropy(@)"),
    *("JunctionTree(network).mutual_information(@, ['x1'])", "JunctionTree(network).batch({'x0': @})"),
    *("JunctionTree(network).impacts(@)", "JunctionTree(network).observation_values(@)"),
    *(f"JunctionTree(network).observation_values('x0', {name}=@)" for name in ("candidates", "costs")),
    *("JunctionTree(network).sensitivities(@)", "JunctionTree(network).relevant_explanations(@)"),
    "JunctionTree(network, evidence={'x0': 0}).relevant_explanations(['x1'], @)",
    *("Variable(@, 2)", "Variable('x', @)", "Variable('x', 2, @)", "Table(@, [1, 2])", "Table([0], @)"),
    *("Table([0], [1], sizes=@, rows=[[0]], default=0)", "Table([0], [1], sizes=[2], rows=@, default=0)"),
    *("Table([0], [1], sizes=[2], rows=[[0]], default=@)", "Model(@, [])", "Model([Variable('x', 2)], @)"),
    *(
        "Model([], [], sense=@)",
        "Model([], [], constant=@)",
        "Model([], [], upper_bound=@)",
        "Model([], [], children=@)",
    ),
    *("Model.from_arrays(@, [])", "Model.from_arrays([2], @)", "Model.from_arrays([2], [(@, [1, 2])])"),
    *("Model.from_arrays([2], [([0], @)])", "network.index(@)", "network.variables[0].index(@)", "Variable('x', 2, @)"),
    *("cp.Model().int_var(@)", "cp.Model().int_var(0, @)", "cp.Model().bool_var(@)"),
    *("problem().add(@)", "problem().all_different(@)", "problem().minimize(@)", "problem().search(@)", "problem()[@]"),
    *(
        "cp.Model().sum(@)",
        "cp.Model.from_model(@)",
        "problem().to_model(rows=@)",
        "given(lambda m, xs: m.table(xs, @))",
    ),
    *("given(lambda m, xs: m.table(@, [(0, 1)]))", "given(lambda m, xs: m.element(@, xs[0]))"),
    *(
        "given(lambda m, xs: m.element(@, (xs[0], xs[1])))",
        "tour(@)",
        "log_z(@)",
        "solve(network, options=Options(hint={'x0': @}))",
    ),
    *("given(lambda m, xs: m.element([1, 2], @))", "given(lambda m, xs: m.count(xs, @))"),
    *("given(lambda m, xs: m.cardinality(xs, @))", "given(lambda m, xs: m.cumulative(xs, @, [1, 1], 2))"),
    *("given(lambda m, xs: m.cumulative(xs, [1, 1], [1, 1], @))", "given(lambda m, xs: m.add_cost(xs, @))"),
    *("given(lambda m, xs: m.regular(xs, @, 0, [0]))", "given(lambda m, xs: m.regular(xs, [{0: 0, 1: 0}], @, [0]))"),
    *("given(lambda m, xs: m.bin_packing_load(xs, xs, @))", "given(lambda m, xs: m.member(xs[0], @))"),
    *("given(lambda m, xs: m.weighted_circuit(xs, @))", "given(lambda m, xs: m.circuit(@))"),
    *("given(lambda m, xs: m.inverse(xs, @))", "given(lambda m, xs: m.lex_less(xs, @))"),
    *("given(lambda m, xs: m.product(xs[0], @))", "given(lambda m, xs: m.power(xs[0], xs[1], @, 4))"),
    *(
        "given(lambda m, xs: m.clause(xs, @))",
        "given(lambda m, xs: m.maximum(@))",
        "xs()[0] + @",
        "xs()[0] * @",
        "xs()[0] <= @",
    ),
    *("network[@]", "network.find(@)", "network.score(@)", "network.terms(@)"),
    *("network.states_at(@)", "network.indices_of(@)", "network.do(@)", "network.do({'x0': @})"),
    *("network.ancestors(@)", "network.parents(@)", "network.children_of(@)", "network.markov_blanket(@)"),
    *("network.is_d_separated(@, 'x1')", "network.is_d_separated('x0', 'x1', @)", "network.ends(@, 1)"),
    *("Model.from_cpds(@)", "Model.from_cpds({'a': @})", "Model.from_cpds({('a', 'b'): [[1, 1], [0, 0]], 'b': @})"),
    *(f"Model.from_cpds({{'a': [0.5, 0.5]}}, {name}=@)" for name in ("states", "name", "check")),
    *("Model.from_cpds({'a': [0.5, 0.5]}, states={'a': @})", "Model.from_arrays([2], [([0], [1, 2])], children=@)"),
    *("network.variables[0].state(@)", "network.variables[0].find(@)", "network.factors[1].at(@)"),
    *("network.factors[1].over(@)", "network.factors[1].restrict(@)", "StateIndex(@)"),
    *("io.convert_sense(costs, @)", "io.convert_sense(costs, 'probability', decimals=@)", "read_evidence(@, network)"),
    *("io.convert_sense(costs, 'probability', scale=@)", "io.cases.cases_from_frame(@, network)"),
    *("solve(network)[@]", "solve(network, 'mar').to_frame(@)", "report(network, @)", "report(@)"),
    *(f"report(network, {name}=@)" for name in ("evidence", "query", "memory", "time_limit", "title", "options")),
    *("viz.plot(@)", "viz.plot(network, @)", "viz.plot(network, evidence=@)"),
    *(f"JunctionTree(network).{name}({{'x0': ['a']}}, @)" for name in ("map_batch", "predict", "predict_proba")),
    *(f"JunctionTree(network).{name}(@)" for name in ("mpe_batch", "sample_batch", "fill", "log_likelihoods")),
    *("JunctionTree(network).sample_batch({'x0': ['a']}, @)", "JunctionTree(network).conditional(@, ['x1'])"),
    *("JunctionTree(network).conditional(['x0'], @)", "JunctionTree(network).batch({'x0': ['a']}, joints=@)"),
    *("JunctionTree(network).batch({'x0': ['a']}, joints=[@])", "JunctionTree(network).update({'x0': @})"),
    "JunctionTree(network, evidence=@)",
    *("JunctionTree(network).joint(['x0', 'x1']).at(@)", "JunctionTree(network).joint(['x0', 'x1']).to_frame(@)"),
    *("fit(@, {'x': [0, 1]})", "fit({'x': []}, @)", "fit({'x': @}, {'x': [0, 1]})", "fit({'x': []}, {'x': @})"),
    *("fit({'x': []}, {'x': [0, 1]}, states=@)", "fit({'x': []}, {'x': [0, 1]}, states={'x': @})"),
    *("fit(markov, @)", "fit(markov, [0, 1], lengths=@)", "fit(markov, [0, 1], prior=@)"),
    *("DynamicModel(@, network)", "DynamicModel(network, @)", "DynamicModel.from_cpds(initial=@, transition={})"),
    *(
        "DynamicModel.from_cpds({'a': [0.5, 0.5]}, transition=@)",
        "DynamicModel.from_cpds({'a': [1]}, {}, states=@)",
        "DynamicModel.from_cpds({'a': [1]}, {}, states={'a': @})",
    ),
    *("DynamicModel.hidden_markov(@, [[1]])", "DynamicModel.hidden_markov([1], @)"),
    "DynamicModel.hidden_markov([1], [[1]], [[1]], states=@)",
    "DynamicModel.hidden_markov([1], [[1]], [[1]], symbols=@)",
    "DynamicModel.hidden_markov([1], [[1]], [[1]], symbols={'observation': @})",
    *("DynamicModel.hidden_markov([1], [[1]], @)", "markov.unroll(@)", "markov.predict([0, 1], @)"),
    *(f"markov.{name}(@)" for name in ("filter", "smooth", "viterbi", "log_likelihood", "sequences_of")),
    *(f"markov.smooth([0, 1], {name}=@)" for name in ("variables", "lengths", "device", "memory", "options")),
    *(
        "markov.filter({'observation': @})",
        "markov.filter({'state': @})",
        "list(markov.stream(@))",
        "list(markov.stream([0], @))",
    ),
    *(
        "OnlineFilter(@)",
        "OnlineFilter(markov, @)",
        "OnlineFilter(markov).update(@)",
    ),
    *(
        "InfluenceDiagram(@, [], [], {}, {})",
        "InfluenceDiagram([], [], [], @, {})",
        "InfluenceDiagram([], [], [], {}, @)",
    ),
    *(
        "diagram({'chance': @})",
        "diagram({'chance': {'c': @}})",
        "diagram({'decisions': @})",
        "diagram({'decisions': {'d': @}})",
    ),
    *(
        "diagram({'utilities': @})",
        "diagram({'utilities': {('u', 'd'): @}})",
        "diagram({'states': @})",
        "diagram({'states': {'d': @}})",
    ),
    *(f"diagram().solve({name}=@)" for name in ("evidence", "policies", "restarts", "seed", "time_limit", "options")),
    *("diagram().solve(policies={'d': @})", "diagram().observation_gains(@)", "diagram().with_policies(@)"),
    *("diagram().observation_gains('d', @)", "InfluenceDiagram.read(@)", "diagram().with_policies({'d': @})"),
    *("problem().hint(@)", "problem().bounds(@)", "problem().domain(@)", "problem().holds(@)", "problem().post(@)"),
    *(
        "problem().propagated(time_limit=@)",
        "problem().conflict(time_limit=@)",
        "list(problem().solutions(time_limit=@))",
    ),
    *(
        "problem().post('int_eq', @, 1)",
        "given(lambda m, xs: m.table(xs, [@]))",
        "given(lambda m, xs: m.add(xs[0], iff=@))",
    ),
    *("given(lambda m, xs: m.subcircuit(@))", "given(lambda m, xs: m.value_precede(@, xs))"),
    *("given(lambda m, xs: m.no_overlap(xs, @))", "given(lambda m, xs: m.no_overlap(xs, [1, 1], transition_times=@))"),
    *("given(lambda m, xs: m.no_overlap_2d(xs, xs, @, [1, 1]))", "given(lambda m, xs: m.reservoir(xs, @, 0, 1))"),
    *("given(lambda m, xs: m.reservoir(xs, [1, 1], 0, @))", "given(lambda m, xs: m.interval_var(@, 1))"),
    *(
        "given(lambda m, xs: m.arg_max(@))",
        "given(lambda m, xs: m.sort(@))",
        "given(lambda m, xs: m.distinct_values(@))",
    ),
    *(
        "given(lambda m, xs: m.any_of(@))",
        "given(lambda m, xs: m.all_of(@))",
        "xs()[0] // @",
        "xs()[0] % @",
        "xs()[0] ** @",
    ),
    *("given(lambda m, xs: m.cost_regular(xs, [{0: 0, 1: 0}], 0, [0], @))", "@ + xs()[0]", "xs()[0] == @"),
    *(f"given(lambda m, xs: m.{call})" for call in CONSTRAINTS),
)
"""Calls, with @ for the argument."""

COMMANDS = {
    ("solve", "pump.bif"): (
        "--task",
        "--evidence",
        "--query",
        "--time-limit",
        "--memory",
        "-o",
        "--cases",
        "-k",
        "--gap",
    ),
    ("sample", "pump.bif", "-n", "2"): ("-n", "--seed", "--evidence", "--time-limit", "-o"),
    ("fit", "pump.bif", "pump_cases.csv", "-o", "fitted.bif"): (
        "-o",
        "--prior",
        "--time-limit",
        "--order",
    ),
    ("decide", "heating.bifxml"): ("--policy", "--evidence", "--gains", "--time-limit", "-o", "--seed"),
    ("cp", "queens.fzn"): ("--time-limit", "--threads", "-o", "--gap", "--seed"),
    ("tsp", "towns.tsp"): ("--time-limit", "--seed", "-o"),
    ("dcop", "meetings.yaml"): ("--algo", "--time-limit", "--loss", "--delay", "--crash", "-o", "--memory"),
    ("plan", "radio.wcsp"): ("--task", "--ibound", "--memory", "--order", "--threads"),
    ("plot", "pump.bif", "-o", "pump.svg"): ("-o", "--what", "--evidence"),
}
"""Commands on files of the examples, and options of which one is given a wrong value."""

LINES = tuple(f"command(*{line!r}, {option!r}, str(@))" for line, options in COMMANDS.items() for option in options)
"""Command lines, with @ for the option's value."""

HEADER = """from fractions import Fraction
from math import inf, nan
from pathlib import Path
import numpy as np
from itertools import islice
from elimina import DynamicModel, FitOptions, InfluenceDiagram, JunctionTree, Model, OnlineFilter, Options, StateIndex
from elimina import Table, Variable, cp, fit, io, iterate_best, plan, read, read_evidence, report, sample
from elimina import solve, viz, write
import contextlib
from io import StringIO
from tempfile import TemporaryDirectory
from elimina.adapters.potentials import LogPartition
from elimina.cli import main
from elimina.cp.tour_problem import TourProblem
from elimina.errors import InputError
from tests.adversary.case import Defect
import elimina.io.cases
costs = Model.from_arrays([2, 3], [([0, 1], [[1, 2, 3], [3, 2, 1]])])
network = Model(
    [Variable('x0', 2, ['a', 'b']), Variable('x1', 2)],
    [Table([0], [0.25, 0.75]), Table([0, 1], [[0.5, 0.5], [0.1, 0.9]])], sense='probability', children=[0, 1],
)
rows = {'x0': ['a', 'b', None], 'x1': [0, 1, 1]}
def given(post):
    model = cp.Model()
    post(model, model.int_vars(2, 0, 1))
    try:
        return model.solve()
    except InputError as error:
        raise Defect(f'wrong arguments are refused only by solve: {error}') from error
def problem():
    model = cp.Model()
    model.add(model.sum(model.int_vars(2, 0, 1, 'x')) >= 1)
    return model
def xs():
    return cp.Model().int_vars(2, 0, 1)
EXAMPLES = Path(elimina.__file__).parents[2] / 'examples'
def command(*words):
    streams = contextlib.redirect_stderr(StringIO()), contextlib.suppress(SystemExit)
    with TemporaryDirectory() as folder, contextlib.chdir(folder), streams[0], streams[1]:
        files = [EXAMPLES / word if (EXAMPLES / word).is_file() else word for word in words[:-1]]
        main([*map(str, files), words[-1]])
def tour(distances):
    return TourProblem('tour', distances)
def log_z(table):
    return LogPartition([2, 2], [(0, 1)])([table])
markov = DynamicModel.hidden_markov([0.5, 0.5], [[0.7, 0.3], [0.2, 0.8]], [[0.9, 0.1], [0.2, 0.8]])
def diagram(changes={}):
    tables = {'chance': {'c': [0.5, 0.5]}, 'decisions': {'d': ['c']}, 'utilities': {('u', 'd'): [1, 2]}}
    return InfluenceDiagram.from_tables(**{**tables, 'states': {'d': 2}, **changes})
"""
_NAMED = re.compile(r"\w+(?==)|(?<=')\w+(?=': )")
"""Names of arguments and keys in a call."""

_ADVISED = re.compile(r"\((\w+=True)\)")
"""Arguments that an error advises."""

_SAYS_WHAT_IS_TAKEN = re.compile(r"\btakes?\b|\bexpected\b")
"""Words of each TypeError that elimina raises itself."""

SPARE = 4 << 30
"""Bytes of address space that a call may take."""


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a random call."""
    return {"call": rng.choice(CALLS if rng.random() < 0.8 else LINES), "argument": rng.choice(WRONG)}


def check(case: Case) -> None:
    """Make the call."""
    names: dict[str, Any] = {}
    exec(HEADER, names)
    source = _source(case)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + SPARE, limits[1]))
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            eval(source, names)
    except InternalError:
        raise
    except EliminaError as error:
        if not str(error):
            raise Defect("an error without a text") from None
        _check_advice(source, str(error), names)
    except TypeError as error:
        before = case["call"].partition("@")[0]
        # An error about a value of a mapping names the mapping or the key.
        is_named = before.endswith(("=", "': ", "': ["))
        culprits = _NAMED.findall(before)[-1 if before.endswith("=") else -2 :] if is_named else []
        if culprits and not re.search(rf"\b({'|'.join(culprits)})\b", str(error)):
            raise Defect(f"a TypeError that does not name {culprits[-1]!r}: {error}") from error
        if not _SAYS_WHAT_IS_TAKEN.search(str(error)):
            raise Defect(f"a TypeError of Python's own, which does not say what is taken: {error}") from error
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def _check_advice(source: str, problem: str, names: dict[str, Any]) -> None:
    """Raise ``Defect`` if an error advises an argument that the call does not have."""
    advised = _ADVISED.findall(problem) if source.endswith(")") else []
    for argument in advised:
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                eval(f"{source[:-1].rstrip(', ')}, {argument})", names)
        except EliminaError as error:
            if argument in str(error):
                raise Defect(f"an error advises {argument}, which does not help: {problem}") from None
        except TypeError as error:
            # 'write options=...' says where the argument belongs.
            if "write " not in str(error):
                raise Defect(f"an error advises {argument}, which the call does not take: {problem}") from None


def _source(case: Case) -> str:
    argument = case["argument"]
    return str(case["call"]).replace("@", f"({argument})" if argument.startswith("lambda") else argument)


def smaller(case: Case) -> Iterator[Case]:
    """Yield simpler calls: there are none."""
    return iter(())


def script(case: Case) -> str:
    """Return a program that makes the call."""
    return HEADER + _source(case)
