"""CNF, WCNF, QPBO, LG and OPB against brute force, and against peers' readers where these are installed."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import elimina
from elimina import cp
from elimina.errors import FormatError, InputError, UnsupportedError
from elimina.model.table import FORBIDDEN


def best(count, cost):
    """The least cost of all assignments of Booleans; None if all are forbidden."""
    found = min(map(cost, itertools.product((0, 1), repeat=count)))
    return None if found >= FORBIDDEN else found


def violated(clause, values):
    return all(values[abs(literal) - 1] == (literal < 0) for literal in clause)


def random_clauses(rng, count):
    number = rng.integers(3, 14)
    clauses = [(rng.integers(1, count + 1, rng.integers(1, 4)) * rng.choice([-1, 1])).tolist() for _ in range(number)]
    return [[int(literal * rng.choice([-1, 1])) for literal in clause] for clause in clauses]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("dialect", ["cnf", "old", "new"])
def test_clauses(tmp_path, seed, dialect):
    rng = np.random.default_rng(seed)
    count = 5
    clauses = random_clauses(rng, count)
    weights = [None if dialect == "cnf" or rng.random() < 0.3 else int(rng.integers(0, 9)) for _ in clauses]
    lines = ["c a comment"]
    if dialect != "new":
        top = " 50" if dialect == "old" else ""
        lines.append(f"p {'cnf' if dialect == 'cnf' else 'wcnf'} {count} {len(clauses)}{top}")
    hard = {"cnf": "", "old": "50 ", "new": "h "}[dialect]
    for clause, weight in zip(clauses, weights, strict=True):
        lines.append((hard if weight is None else f"{weight} ") + " ".join(map(str, [*clause, 0])))
    path = tmp_path / ("x.cnf" if dialect == "cnf" else "x.wcnf")
    path.write_text("\n".join(lines) + "\n")
    costs = [FORBIDDEN if weight is None else weight for weight in weights]

    def cost(values):
        return sum(c for clause, c in zip(clauses, costs, strict=True) if violated(clause, values))

    model = elimina.read(path)
    result = elimina.solve(model)
    expected = best(len(model.variables), cost)
    assert (result.status, result.value) == (("infeasible", None) if expected is None else ("optimal", expected))


def test_satlib_ends_files_by_a_percent_sign(tmp_path):
    path = tmp_path / "uf.cnf"
    path.write_text("c SATLIB\np cnf 3  2 \n 1 -2 0\n2 3 0\n%\n0\n\n")
    assert elimina.solve(elimina.read(path), "count").value == 4
    path.write_text("p cnf 3 2\n1 -2 0\n2 3\n%\n0\n")
    with pytest.raises(FormatError, match=r"uf\.cnf:4: the last clause does not end with 0"):
        elimina.read(path)


@pytest.mark.parametrize("text", ["c clauses only\n1 2 0\n2 -1 0\n", "h 1 2 0\n", "2 1 0\n", "%\n0\n"])
def test_a_cnf_without_its_header_is_refused(tmp_path, text):
    path = tmp_path / "x.cnf"
    path.write_text(text)
    with pytest.raises(
        FormatError, match=r"x\.cnf:\d: expected the header 'p cnf VARIABLES CLAUSES' before the clauses"
    ):
        elimina.read(path)


@pytest.mark.parametrize("end", ["1 3 0\n", "0\n1 3 0\n", "0 0\n"])
def test_clauses_after_the_end_are_refused(tmp_path, end):
    path = tmp_path / "x.cnf"
    path.write_text("p cnf 3 2\n1 -2 0\n2 3 0\n%\n" + end)
    with pytest.raises(FormatError, match="expected the end of the file after %"):
        elimina.read(path)


@pytest.mark.parametrize("seed", range(6))
def test_weights_of_literals(tmp_path, seed):
    rng = np.random.default_rng(seed)
    count = 5
    clauses = random_clauses(rng, count)
    lines, weight = ["c t wmc", f"p cnf {count} {len(clauses)}"], {}
    for v in range(1, count + 1):
        given = rng.choice(4)  # no literal's, the variable's, the negated one's, both
        p = float(rng.integers(1, 9)) / 8
        weight[v], weight[-v] = (1.0, 1.0) if given == 0 else (p, 1 - p) if given < 3 else (p, 3.5)
        chosen = {0: [], 1: [v], 2: [-v], 3: [v, -v]}[int(given)]
        lines += [f"c p weight {literal} {weight[literal]}{' 0' if v % 2 else ''}" for literal in chosen]
    lines += [" ".join(map(str, [*clause, 0])) for clause in clauses]
    path = tmp_path / "x.cnf"
    path.write_text("\n".join(lines) + "\n")
    total = 0.0
    for values in itertools.product((0, 1), repeat=count):
        if not any(violated(clause, values) for clause in clauses):
            total += math.prod(weight[v if values[v - 1] else -v] for v in range(1, count + 1))
    if len(lines) == len(clauses) + 2:
        pytest.skip("no literal has a weight")
    result = elimina.solve(path, "pr")
    assert (0.0 if result.log10_z in (None, -math.inf) else 10**result.log10_z) == pytest.approx(total)


@pytest.mark.parametrize("line", ["c p show 1 3 0", "c ind 1 3 0", "cr 1 3"])
def test_projected_counts_are_refused(tmp_path, line):
    path = tmp_path / "x.cnf"
    path.write_text(f"p cnf 3 1\n{line}\n1 -2 0\n")
    with pytest.raises(
        UnsupportedError, match=r"x\.cnf:2: the count is projected on 2 of 3 variables; remove the lines"
    ):
        elimina.read(path)
    path.write_text(f"p cnf 3 1\n{line}\n1 -2 0\nc p show 2 0\n")
    assert elimina.solve(path, "count").value == 6


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("c p weight 1 x 0", "x.cnf:2: expected a weight, found 'x'"),
        ("c p weight 1 0.3 1", "x.cnf:2: expected 'c p weight LITERAL WEIGHT 0'"),
        ("c p weight 4 0.3 0", "a weight names variable 4, but the file has 3 variables"),
        ("c p weight 1 0.3 0\nc p weight 1 0.4 0", "x.cnf:3: the literal 1 has the weights 0.3 and 0.4"),
        ("c p weight 1 1.5 0", "the literal -1 has the negative weight -0.5 (1 minus that of literal 1)"),
        ("c p weight -2 3 0", "the literal 2 has the negative weight -2 (1 minus that of literal -2)"),
        ("c p weight 1 -1/4 0\nc p weight -1 1 0", "the literal 1 has the negative weight -0.25"),
    ],
)
def test_errors_in_weights_of_literals(tmp_path, line, problem):
    path = tmp_path / "x.cnf"
    path.write_text(f"p cnf 3 1\n{line}\n1 -2 0\n")
    with pytest.raises(InputError) as caught:
        elimina.read(path)
    assert problem in str(caught.value)


def test_the_header_of_a_pseudo_boolean_problem_declares_its_variables(tmp_path):
    path = tmp_path / "x.opb"
    path.write_text("* #variable= 4 #constraint= 1\n+1 x1 +1 x3 >= 1 ;\n")
    assert elimina.solve(cp.read(path).to_model(), "count").value == 12
    path.write_text("* #variable= 99999999 #constraint= 1\n+1 x1 +1 x3 >= 1 ;\n")
    with pytest.raises(FormatError, match="at most 4,194,304 variables"):
        cp.read(path)


def test_a_peer_reads_the_same(tmp_path):
    formula = pytest.importorskip("pysat.formula")
    path = tmp_path / "x.wcnf"
    path.write_text("c x\nh 1 -2 0\n3 2 3 0\n1 -3 0\n")
    peer = formula.WCNF(from_file=str(path))
    ours = elimina.read(path)
    scopes = [tuple(v + 1 for v in factor.scope) for factor in ours.factors]
    assert scopes == [tuple(map(abs, clause)) for clause in [*peer.hard, *peer.soft]]
    assert [factor.values.tolist() for factor in ours.factors] == [[FORBIDDEN], *([w] for w in peer.wght)]


@pytest.mark.parametrize(
    ("name", "text", "line", "problem"),
    [
        ("x.cnf", "p cnf 2 2\n1 0\n", 2, "expected 2 clauses, found 1"),
        ("x.cnf", "p cnf 2 1\n1 3 0\n", 2, "a clause names variable 3, but the file has 2 variables"),
        ("x.cnf", "p cnf 2 1\n1 2\n", 2, "the last clause does not end with 0"),
        ("x.cnf", "p cnf 2 1\n1 x 0\n", 2, "expected a literal, found 'x'"),
        ("x.cnf", "p dnf 2 1\n", 1, "expected 'p cnf VARIABLES CLAUSES'"),
        ("x.wcnf", "h 1 2\n", 1, "expected a weight, literals and 0 on a line"),
        ("x.wcnf", "-1 1 0\n", 1, "expected a weight of at least 0, found -1"),
        ("x.wcnf", "", 1, "expected a header, or clauses, found neither"),
        ("x.qpbo", "2 1\n1 3 4\n", 2, "expected variables from 1 to 2 in a term, found 1 and 3"),
        ("x.qpbo", "2 1\n1 2 inf\n", 2, "found"),
        ("x.qpbo", "2 -9223372036854775808\n1 2 3\n", 2, "expected 6442450941 more items"),
        (
            "x.qpbo",
            "-2000000000 1\n1 2 3\n",
            1,
            "at most 4,194,304 variables in a file of this size, found 2,000,000,000",
        ),
        (
            "x.cnf",
            "p cnf 2000000000 1\n1 0\n",
            2,
            "at most 4,194,304 variables in a file of this size, found 2,000,000,000",
        ),
        ("x.wcnf", f"h 1 {-(2**63)} 0\n", 1, "at most 4,194,304 variables in a file of this size, found 9,223,"),
    ],
)
def test_errors(tmp_path, name, text, line, problem):
    (tmp_path / name).write_text(text)
    with pytest.raises(FormatError) as caught:
        elimina.read(tmp_path / name)
    assert f"{name}:{line}: " in str(caught.value)
    assert problem in str(caught.value)


@pytest.mark.parametrize("seed", range(8))
def test_quadratic_functions(tmp_path, seed):
    rng = np.random.default_rng(seed)
    count, sign, direction = 4, rng.choice([1, -1]), rng.choice([1, -1])
    pairs = [(i, j) for i in range(count) for j in range(i, count) if rng.random() < 0.7]
    weights = rng.integers(-9, 10, len(pairs)).tolist() if seed % 2 else rng.normal(size=len(pairs)).tolist()
    terms = [f"{i + 1} {j + 1} {w!r}" for (i, j), w in zip(pairs, weights, strict=True)]
    path = tmp_path / "x.qpbo"
    path.write_text(f"{sign * count} {direction * len(pairs)}\n" + "\n".join(terms) + "\n")
    matrix = np.zeros((count, count))
    for (i, j), w in zip(pairs, weights, strict=True):
        matrix[i, j] = matrix[j, i] = w
    values = [np.array(x) for x in itertools.product((0, 1) if sign > 0 else (1, -1), repeat=count)]
    totals = [float(x @ matrix @ x) for x in values]
    result = elimina.solve(path)
    assert result.value == pytest.approx(min(totals) if direction > 0 else max(totals))
    chosen = np.array([result.assignment[f"x{i + 1}"] for i in range(count)])
    assert chosen @ matrix @ chosen == pytest.approx(result.value)
    assert elimina.read(path).is_integer == bool(seed % 2)


def test_logarithms(tmp_path):
    path = tmp_path / "x.LG"
    path.write_text("MARKOV 2 2 2 2 1 0 2 0 1\n2 -1000.5 -1001.5\n4 0 -inf 2 3\n")
    logs = [-1000.5 + 0, -math.inf, -1001.5 + 2, -1001.5 + 3]
    result = elimina.solve(path, "pr")
    peak = max(logs)
    expected = (peak + math.log(sum(math.exp(x - peak) for x in logs))) / math.log(10)
    assert result.log10_z == pytest.approx(expected)
    assert elimina.solve(path).value == pytest.approx(peak)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("is_soft", [False, True])
def test_pseudo_boolean_problems(tmp_path, seed, is_soft):
    """Sums of products of literals, in an objective or in the costs of violated constraints, against brute force."""
    rng = np.random.default_rng(seed)
    count = 5

    def product():
        size = rng.choice([1, 1, 2, 3])
        return [(int(v) + 1, bool(rng.random() < 0.3)) for v in rng.permutation(count)[:size]]

    def terms():
        return [(int(rng.integers(-5, 6)), product()) for _ in range(rng.integers(1, count + 1))]

    def text(terms):
        return " ".join(f"{w:+d} " + " ".join(f"{'~' * negated}x{v}" for v, negated in part) for w, part in terms)

    def total(terms, values):
        return sum(w * all(values[v - 1] != negated for v, negated in part) for w, part in terms)

    aim = terms() + [(0, [(v, False)]) for v in range(1, count + 1)]
    constraints = [(terms(), str(rng.choice([">=", "<=", "="])), int(rng.integers(-3, 4))) for _ in range(4)]
    weights = [int(rng.integers(1, 9)) if is_soft and rng.random() < 0.7 else None for _ in constraints]
    limit = int(rng.integers(4, 20))
    lines = [f"soft: {limit};" if is_soft else f"min: {text(aim)};"]
    for (left, relation, bound), weight in zip(constraints, weights, strict=True):
        lines.append(f"{'' if weight is None else f'[{weight}] '}{text(left)} {relation} {bound};")
    path = tmp_path / "x.opb"
    path.write_text("* #variable= 5\n" + "\n".join(lines) + "\n")
    holds = {">=": int.__ge__, "<=": int.__le__, "=": int.__eq__}

    def cost(values):
        costs = [
            0 if holds[relation](total(left, values), bound) else FORBIDDEN if weight is None else weight
            for (left, relation, bound), weight in zip(constraints, weights, strict=True)
        ]
        if not is_soft:
            costs.append(total(aim, values))
        return FORBIDDEN if max(costs) == FORBIDDEN or (is_soft and sum(costs) >= limit) else sum(costs)

    expected = best(count, cost)
    model = cp.read(path)
    result = model.solve()
    assert result.value == expected
    assert elimina.solve(model.to_model()).value == expected
    if expected is not None:
        assert cost([result.assignment[f"x{v}"] for v in range(1, count + 1)]) == expected


def test_soft_constraints_without_a_limit(tmp_path):
    path = tmp_path / "x.opb"
    path.write_text("soft: ;\n[2] +1 x1 +1 x2 >= 2;\n[3] -1 x1 x2 >= 0;\n[9]+1 ~x1 x3 >= 1 ;\n+1 x1 >= 1;\n")
    assert cp.read(path).solve().value == 11


@pytest.mark.parametrize(
    ("text", "kind", "problem"),
    [
        ("* x\n+1 x1 >= 1;\nmin: +1 x1;\n", FormatError, ":3: the objective comes once"),
        ("+1 x1 >= 1\n", FormatError, ":1: the last statement does not end with ;"),
        ("\n+1 x1 > 1;\n", FormatError, ":2: expected a constraint"),
        ("+1 x1 +1 +1 x3 >= 1;\n", FormatError, ":1: expected a coefficient and a variable, found '+1 +1 x3'"),
        ("+1 x1 >= 99999999999999999999;\n", UnsupportedError, "beyond 2^52"),
        ("+1 x1 >= 1;\nsoft: 6 ;\n", FormatError, ":2: 'soft:' comes once, before all constraints"),
        ("[3] +1 x1 >= 1;\n", FormatError, ":1: a soft constraint needs the statement 'soft: LIMIT;' before"),
        ("soft: 6;\n[3] min: +1 x1;\n", FormatError, ":2: expected a constraint, found"),
        ("soft: 6;\n[3] +1 x1;\n", FormatError, ":2: expected a constraint, found"),
    ],
)
def test_errors_of_pseudo_boolean_problems(tmp_path, text, kind, problem):
    (tmp_path / "x.opb").write_text(text)
    with pytest.raises(kind) as caught:
        cp.read(tmp_path / "x.opb")
    assert problem in str(caught.value)


def test_pseudo_boolean_problems_are_text(tmp_path):
    (tmp_path / "x.opb").write_bytes(b"\xff")
    with pytest.raises(FormatError, match="expected UTF-8 text: invalid start byte"):
        cp.read(tmp_path / "x.opb")


def test_they_are_only_read(tmp_path):
    model = elimina.Model.from_arrays([2], [])
    with pytest.raises(InputError, match="only read"):
        elimina.write(model, tmp_path / "x.cnf")
