"""Malformed files of distributed problems: errors with their places, never anything else."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from elimina.errors import EliminaError, FormatError, InputError, MemoryLimitError, UnsupportedError
from tests.dcop.problems import EXAMPLES, JSON, XCSP, YAML, parse


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("objective: min", "objective: best", r"problem.yaml:2: expected the objective min or max.*\(column 12\)"),
        ("objective: min", "objective: min\nobjective: min", r":3: the key 'objective' occurs twice \(column 1\)"),
        ("objective: min", "objectiv: min", r":2: unknown key 'objectiv': did you mean 'objective'\? \(column 1\)"),
        ("[R, G, B]", "[R, G, R]", r":4: domain 'colors' has the value 'R' twice \(column 20\)"),
        ("[R, G, B]", "[]", ":4: domain 'colors' has no values"),
        ("[R, G, B]", "[[R], G]", ":4: expected a value .* found a sequence"),
        ("[R, G, B]", "[R, ~]", r":4: expected a value .* found '~' \(column 24\)"),
        ("[R, G, B]", "R", ":4: expected a list of values of domain 'colors', found 'R'"),
        ("[0 .. 2]", "[0 .. 9999999999]", ":5: expected 1 to 1000000 values"),
        ("[0 .. 2]", "[2 .. 0]", ":5: expected 1 to 1000000 values"),
        (
            "v2: {domain: colors",
            "v2: {domain: colours",
            r":9: expected the name of a domain, found 'colours' \(column 16\)",
        ),
        ("initial_value: G", "initial_value: X", r":9: expected a value of domain 'colors' \(R, G, B\), found 'X'"),
        ("domain: colors, initial_value: G", "noise_level: 1", ":9: expected 'domain' of variable 'v2', found none"),
        ("2 * l1", "2 * v2", ":10: 'l1': the costs of variable 'l1' depend on 'v2'"),
        ("2 * l1", "2 * l9", ":10: 'l1': expected the name of a variable, found 'l9'"),
        ("2 * l1", "2 / l1", ":10: 'l1': the expression divides by zero"),
        ("2 * l1", "2 l1", ":10: 'l1': expected a Python expression, found '2 l1': invalid syntax"),
        ("2 * l1", "float('nan')", ":10: 'l1': expected costs that are numbers"),
        ("2 * l1", "-float('inf')", ":10: 'l1': expected costs that are numbers or, where forbidden, inf; found -inf"),
        ("2 * l1", "[2]", ":10: expected an expression, found a sequence"),
        ("2 * l1", "2 * l1, noise_level: -1", ":10: expected a noise level of at least 0"),
        ("2 * l1", "2 * l1, noise_level: many", ":10: expected a noise level, found 'many'"),
        ("sun: {domain: levels, initial_value: 2", "sun: {domain: levels", ":13: expected 'initial_value'"),
        ("sun:", "v1:", ":13: a second variable is named 'v1'"),
        ("different: {type: intention", "different: {type: magic", ":15: expected the type 'intention' or"),
        (
            "different: {type: intention, function",
            "different: {function",
            ":15: expected 'type' of constraint 'different'",
        ),
        ("R 0 | G 1", "R 0 | G 1 1", r":29: expected 2 values in a tuple, found 'G 1 1' \(column 10\)"),
        ("R 0 | G 1", "R 0 G 1", ":29: expected 2 values in a tuple"),
        ("R 0 | G 1", "R | 0 G 1", ":29: expected 2 values in a tuple, found 'R'"),
        ("R 0 | G 1", "R 0 | G 9", r":29: expected a value of domain 'levels' \(0, 1, 2\), found '9'"),
        ("R 0 | G 1", "[R, 0]", ":29: expected tuples of values, found a sequence"),
        ("2.5: B 2", "2.5: R 0", "function 'table': a tuple of this function is listed with two costs"),
        ("2.5: B 2", "big: R 0", r":30: expected a cost, found 'big' \(column 7\)"),
        ("2.5: B 2", ".nan: R 0", r":30: expected a cost, found 'nan' \(column 7\)"),
        ("2.5: B 2", "1: R 0", r":30: the key '1' occurs twice \(column 7\)"),
        ("    default: .inf\n", "", "function 'table' has a cost for 3 of its 9 tuples; give it a default"),
        ("variables: [v1, l1]", "variables: [v1, l9]", ":26: expected the name of a variable, found 'l9'"),
        ("a1: {capacity: 10}", "a1: {capacity: big}", ":34: expected a capacity, found 'big'"),
        ("a1: {capacity: 10}", "a1: 10", ":34: expected a mapping in agents: a1, found '10'"),
        ("{a2: [v1, table]}", "{a2: [v1, v9]}", ":44: expected the name of a variable or constraint, found 'v9'"),
        ("{a2: [v1, table]}", "{a2: [v1], a1: [v1]}", ":44: agents 'a2' and 'a1' both must host 'v1'"),
        ("must_host:", "must_hosts:", r":44: unknown key 'must_hosts': did you mean 'must_host'\?"),
        ("domains:", "Domains:", r"unknown key 'Domains': did you mean 'domains'\?"),
        ("name: everything", "- name", "expected YAML"),
        ("name: everything", "name: [", r"expected YAML: .*\(column"),
        ("name: everything", "name: *x", r":1: expected an anchor that is defined before, found '\*x'"),
        ("name: everything", "? [a]\n: b", ":1: expected a name as a key, found a collection"),
        (
            "name: everything",
            "--- a\n--- b\n---\nname: everything",
            "expected the end of the file, found a second document",
        ),
    ],
)
def test_malformed_yaml(tmp_path, old, new, message):
    assert YAML.count(old) == 1
    with pytest.raises(FormatError, match=message):
        parse(tmp_path, YAML.replace(old, new), "yaml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: everything", "name: !!python/object:os.system x", ":1: the tag 'tag:yaml.org,2002:python/object:os"),
        ("v2: {", "v2: {<<: {a: b}, ", ":9: merged keys"),
        ("{type: intention, function: 10", "{type: intention, source: a.py, function: 10", ":15: .* has a 'source'"),
        ("2 * l1", "l1.__class__", ":10: 'l1': an expression uses Attribute"),
        ("2 * l1", "l1(2)", ":10: 'l1': an expression calls 'l1'; it may call abs,"),
        ("2 * l1", "2 ** 9 ** 9 ** 9", ":10: 'l1': an expression raises an integer to the power"),
    ],
)
def test_unsupported_yaml(tmp_path, old, new, message):
    assert YAML.count(old) == 1
    with pytest.raises(UnsupportedError, match=message):
        parse(tmp_path, YAML.replace(old, new), "yaml")


@pytest.mark.parametrize("text", ["", "[]", "3", "a", "# nothing", "\x00", b"\xff\xfe\x00", b"\xc3\x28: 1", "a: \x07"])
def test_no_mapping_at_all(tmp_path, text):
    with pytest.raises(FormatError, match=r"problem.yaml(:1)?: expected"):
        parse(tmp_path, text, "yaml")


@pytest.mark.parametrize(
    "text", ["[" * 10**5, "{a: " * 10**5, "- " * 10**5, "a:\n" + "".join(" " * i + "a:\n" for i in range(1, 300))]
)
def test_deep_yaml(tmp_path, text):
    with pytest.raises(InputError, match=r"nested more than 100 levels|expected"):
        parse(tmp_path, text, "yaml")


EXTRA = [
    ("objective: min", "objective: min\nauthors: {first: [me]}"),
    ("type: color}", "type: color, unit: none}"),
    ("v2: {domain: colors,", "v2: {room: kitchen, domain: colors,"),
    ("sun: {", "sun: {where: outside, "),
    ("different: {", "different: {note: [1, {a: b}], "),
    ("variables: [v1, l1]", "variables: [v1, l1]\n    weight: 3"),
    ("a2: {}", "a2: {speed: 3}"),
    ("a1: {default: 1,", "a1: {why: far, default: 1,"),
    ("  must_host: {a2", "  may_host: {a3: [v1]}\n  must_host: {a2"),
]


@pytest.mark.parametrize(("old", "new"), EXTRA)
def test_extra_keys_change_nothing(tmp_path, caplog, old, new):
    """pyDCOP's format allows them at every level."""
    assert old in YAML
    plain, extended = parse(tmp_path, YAML, "yaml"), parse(tmp_path, YAML.replace(old, new, 1), "yaml")
    assert (extended.agents, extended.owners) == (plain.agents, plain.owners)
    assert list(map(repr, extended.model.variables)) == list(map(repr, plain.model.variables))
    for ours, theirs in zip(extended.model.factors, plain.model.factors, strict=True):
        assert ours.scope == theirs.scope
        assert ours.values.tolist() == theirs.values.tolist()
    assert not caplog.text


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("cost_function: 2", "cost_functon: 2", "unknown key 'cost_functon': did you mean 'cost_function'?"),
        ("default: .inf", "defalt: .inf", "unknown key 'defalt': did you mean 'default'?"),
        ("l1: {domain:", "l1: {dom:", "expected 'domain' of variable 'l1', found none"),
        ("single: {type:", "single: {kind:", "expected 'type' of constraint 'single', found none"),
        ("\nvariables:", "\nvertices:", "expected 'variables' of a problem, found none"),
        ("routes:", "route:", "unknown key 'route': did you mean 'routes'?"),
    ],
)
def test_misspelt_keys_are_errors(tmp_path, old, new, problem):
    assert old in YAML
    with pytest.raises(FormatError) as caught:
        parse(tmp_path, YAML.replace(old, new, 1), "yaml")
    assert problem in str(caught.value)


def test_aliases_do_not_multiply(tmp_path):
    levels = "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 90))
    with pytest.raises(FormatError, match="expected 'variables' of a problem, found none"):
        parse(tmp_path, f"a0: &a0 [1]\n{levels}", "yaml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('maximize="false"', 'maximize="maybe"', r"problem.xml:3: expected maximize='true' or 'false', found 'maybe'"),
        ('<agent name="b"/>', '<agent name="a"/>', ":4: a second agent is named 'a'"),
        ('<agent name="b"/>', "<agent/>", ":4: expected the attribute 'name' of <agent>"),
        ('<agent name="b"/>', "<spy/>", ":4: expected <agent> in <agents>, found <spy>"),
        ("1..2 5", "1..2", ":6: domain 'd' has 2 values, but nbValues is 3"),
        ("1..2 5", "1 2 2", ":6: domain 'd' has the value '2' twice"),
        ("1..2 5", "1..9999999999", ":6: expected up to 1000000 values of domain 'd'"),
        ('name="e" nbValues="2"', 'name="e" nbValues="0"', ":7: expected nbValues from 1"),
        ('name="e" nbValues="2"', 'name="d" nbValues="2"', ":7: a second domain is named 'd'"),
        ('name="e" nbValues="2"', 'name="e"', ":7: domain 'e' has no values"),
        ('name="x" domain="d"', 'name="x" domain="q"', ":11: expected the name of a domain, found 'q'"),
        ('name="y"', 'name="x"', ":12: a second variable is named 'x'"),
        ('agent="b"', 'agent="q"', ":11: expected the name of an agent for variable 'x', found 'q'"),
        ("0: 1 1|5 2", "0: 1 1|5", ":17: expected 2 values in relation 'soft', found '5'"),
        ("0: 1 1|5 2", "1 1|5 2", ":17: expected a cost and a colon before the first tuple in relation 'soft'"),
        ("0: 1 1|5 2", "z: 1 1|5 2", ":17: expected a cost, found 'z'"),
        ("0: 1 1|5 2", "nan: 1 1|5 2", ":17: expected a cost, found 'nan'"),
        ("2.5:2\n       2", "2.5:2\n       2 2", ":18: expected 2 values in relation 'soft'"),
        ("0: 1 1|5 2", "0: 1 1|7 2", ":17: expected a value of domain 'd' .*found '7'"),
        ("0: 1 1|5 2", "0: 1 1|5 2|5:1 1", "function 'c0': a tuple of this function is listed with two costs"),
        (' defaultCost="4"', "", "function 'c0' has a cost for 4 of its 6 tuples"),
        ('defaultCost="4"', 'defaultCost="-infinity"', "expected costs that are numbers or, where forbidden, inf"),
        ('defaultCost="4"', 'defaultCost="much"', ":17: expected a cost, found 'much'"),
        ('"conflicts">red 1', '"conflicts">3:red 1', ":19: relation 'no' has semantics 'conflicts', but a cost"),
        ('scope="x y"', 'scope="x q"', ":25: expected the name of a variable, found 'q'"),
        ('arity="2" scope="x y"', 'arity="3" scope="x y"', ":25: constraint 'c0' has 2 variables, but arity 3"),
        ('arity="2" scope="x y"', 'arity="b" scope="x y"', ":25: expected an arity of <constraint>, found 'b'"),
        (
            'arity="2" scope="x y"',
            'arity="1" scope="x"',
            ":25: constraint 'c0' has 1 variable, but relation 'soft' has 2",
        ),
        ('reference="soft"', 'reference="hard"', ":25: expected the name of a relation, found 'hard'"),
        ('initialCost="100"', 'initialCost="many"', ":24: expected a cost, found 'many'"),
        ("<domains", "<doms", r"problem.xml:9: expected well-formed XML: .*\(column"),
        ('name="no"', 'name="soft"', ":19: a second relation is named 'soft'"),
        ('"4">0', '"4"><!ENTITY a "b">0', "expected well-formed XML"),
        ("  <presentation", "  <presentation/><presentation", ":3: a second section is named <presentation>"),
        ("</instance>", "<toys/></instance>", ":33: expected a section of an instance, found <toys>"),
    ],
)
def test_malformed_xml(tmp_path, old, new, message):
    assert XCSP.count(old) == 1
    with pytest.raises(FormatError, match=message):
        parse(tmp_path, XCSP.replace(old, new), "xml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  <domains", "  <predicates/><domains", "<predicates> are not handled"),
        ('reference="soft"', 'reference="global:allDifferent"', ":25: constraint 'c0' is 'global:allDifferent'"),
        ('"conflicts">red', '"probability">red', ":19: relation 'no' has semantics 'probability'"),
        ('agent="b"', 'type="random"', ":11: variable 'x' is 'random'"),
        ('"XCSP 2.1_FRODO"', '"XCSP 3"', ":3: format 'XCSP 3' is not handled"),
    ],
)
def test_unsupported_xml(tmp_path, old, new, message):
    assert XCSP.count(old) == 1
    with pytest.raises(UnsupportedError, match=message):
        parse(tmp_path, XCSP.replace(old, new), "xml")


def test_entities_are_refused(tmp_path):
    bomb = '<!DOCTYPE i [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><instance>&b;</instance>'
    with pytest.raises(FormatError, match="expected no entities"):
        parse(tmp_path, bomb, "xml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[1, 2, 3, 4, 5, 6]", "[1, 2, 3, 4, 5]", "problem.json: expected 6 costs of constraint 'c0', found 5"),
        ("[1, 2, 3, 4, 5, 6]", '[1, 2, 3, 4, 5, "x"]', "expected a cost, found 'x'"),
        ("[1, 2, 3, 4, 5, 6]", "[1, 2, 3, 4, 5, null]", "expected a cost of constraint 'c0', found null"),
        ("[1, 2, 3, 4, 5, 6]", "[1, 2, 3, 4, 5, NaN]", "expected costs that are numbers"),
        ("[1, 2, 3, 4, 5, 6]", "7", "expected a list 'vals' of constraint 'c0', found 7"),
        ("[1, 2, 3, 4, 5, 6]", f"[1, 2, 3, 4, 5, {'9' * 400}]", "a cost is beyond the range of a double"),
        ("[1, 2, 3, 4, 5, 6]", f"[1, 2, 3, 4, 5, {'9' * 5000}]", "problem.json: "),
        ('["x", "y"]', '["x", "q"]', "expected the name of a variable, found 'q'"),
        ('["x", "y"]', '["x", 3]', "expected the name of a variable of constraint 'c0', found 3"),
        ('"c1"', '"c0"', "the key 'c0' occurs twice in an object"),
        ('"domain": [0, 1]', '"domain": []', "domain 'of x' has no values"),
        (
            '"domain": [0, 1]',
            '"domain": [null]',
            "expected a number, a string or a boolean in the domain of variable 'x', found null",
        ),
        ('"domain": [0, 1]', '"domain": [1, "1"]', "has the value '1' twice"),
        ('"agent": "b"', '"agent": "q"', "variable 'y' belongs to agent 'q', which is not declared"),
        ('"agent": "a"', '"agent": "b"', "variable 'x' belongs to agents 'a' and 'b'"),
        ('"vars": ["x"]', '"vars": ["q"]', "expected the name of a variable of agent 'a', found \"q\""),
        ('"constraints"', '"constraint"', "expected 'constraints' of a problem, found none"),
        ('"constraints": {', '"objective": "mid", "constraints": {', "expected the objective 'min' or 'max', found"),
        ("  }\n}", "  }\n", r"problem.json:1\d: expected JSON: .*\(column"),
        ('"x": {"domain"', '"x": [{"domain"', "expected JSON"),
    ],
)
def test_malformed_json(tmp_path, old, new, message):
    assert JSON.count(old) == 1
    with pytest.raises(FormatError, match=message):
        parse(tmp_path, JSON.replace(old, new), "json")


@pytest.mark.parametrize("text", ["", "[]", "[" * 10**6, b"\xff", "3", "{}"])
def test_no_object_at_all(tmp_path, text):
    with pytest.raises(FormatError, match="expected"):
        parse(tmp_path, text, "json")


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(sorted(EXAMPLES)),
    st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 5), st.binary(max_size=4)), min_size=1, max_size=4),
)
def test_mutations_never_crash(tmp_path, suffix, edits):
    data = EXAMPLES[suffix].encode()
    for place, length, new in edits:
        start = place % len(data)
        data = data[:start] + new + data[start + length :]
    try:
        problem = parse(tmp_path, data, suffix)
    except EliminaError as error:
        message = str(error)
    else:
        message = f"problem.{len(problem.owners)}"
    assert "problem." in message


def test_a_huge_intention_is_refused_before_it_is_allocated(tmp_path):
    names = [f"v{i}" for i in range(12)]
    text = "domains: {d: {values: [0 .. 9]}}\nvariables:\n" + "".join(f"  {n}: {{domain: d}}\n" for n in names)
    text += f"constraints:\n  big: {{type: intention, function: {' + '.join(names)}}}\n"
    with pytest.raises(
        MemoryLimitError, match=r"problem.yaml:16: 'big': function 'big' has 10 x .* = 1000000000000 costs"
    ):
        parse(tmp_path, text, "yaml")


def test_many_large_intentions_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("elimina.dcop.formats.build.MAX_COMPUTED_CELLS", 30)
    text = "domains: {d: {values: [0, 1, 2]}}\nvariables: {x: {domain: d}, y: {domain: d}}\nconstraints:\n"
    text += "".join(f"  c{i}: {{type: intention, function: {i} * x * y}}\n" for i in range(4))
    with pytest.raises(
        MemoryLimitError, match=r"up to 'c3' have 36 costs .* tables of up to 30 in all; list the costs"
    ):
        parse(tmp_path, text, "yaml")
    monkeypatch.setattr("elimina.dcop.formats.expression.MAX_OPERATIONS", 100)
    with pytest.raises(UnsupportedError, match=r":5: 'c1': the expressions up to that of 'c1' have \d+ operations"):
        parse(tmp_path, text, "yaml")


def test_many_large_domains_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("elimina.dcop.formats.build.MAX_VALUES", 25)
    text = "variables:\ndomains:\n" + "".join(f"  d{i}: {{values: [1 .. 10]}}\n" for i in range(9))
    with pytest.raises(MemoryLimitError, match=r"problem.yaml:5: the domains up to 'd2' have 30 values; up to 25 are"):
        parse(tmp_path, text, "yaml")
