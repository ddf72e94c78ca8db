"""Small files by a writer of another kind: spellings that keep a model, and changes of meaning that are errors."""

from __future__ import annotations

import itertools
import json
import math
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import elimina
from elimina import dcop
from elimina.cp import tsplib
from elimina.errors import InputError
from elimina.model.model import Model
from tests.adversary.case import Case, Defect, Setting

STATES = ["low", "_0_25]", "[0_1_5]", "a/b", "1", "very-high", "größe", "Ja", "x#1", "state_2"]
UNICODE = ("utf-8", "utf-8-sig", "utf-16")
"""Encodings that each reader of text takes."""

Content = dict[str, Any]


def make(rng: random.Random, setting: Setting) -> Case:
    """Make what a file says, its spelling, and perhaps a change that has to be an error."""
    form = rng.choice(sorted(FORMATS))
    content, _, _, faults = FORMATS[form]
    fault = rng.choice(faults) if rng.random() < 0.3 else None
    return {"format": form, "content": content(rng), "spelling": rng.randrange(10**6), "fault": fault}


def check(case: Case) -> None:
    """Write the file, read it, and compare."""
    _, write, compare, _ = FORMATS[case["format"]]
    suffix, data = write(random.Random(case["spelling"]), case["content"], case["fault"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"model{suffix}"
        path.write_bytes(data)
        try:
            compare(case["content"], path)
        except InputError as error:
            if case["fault"] is None:
                raise Defect(f"refused: {error}\n{data!r}") from None
            if not str(error).startswith(str(path)) or "\n" in str(error):
                raise Defect(f"an error that does not name the file in one line: {error}") from None
            return
        except Defect as error:
            raise Defect(f"{error}\n{data!r}") from None
        if case["fault"] is not None:
            raise Defect(f"read although it has the fault {case['fault']!r}\n{data!r}")


def smaller(case: Case) -> Iterator[Case]:
    """Yield simpler spellings."""
    yield from ({**case, "spelling": spelling} for spelling in range(min(case["spelling"], 20)))


def script(case: Case) -> str:
    """Return a program that shows what happens."""
    return f"from tests.adversary.dialects import check\ncheck({case!r})"


def _joined(rng: random.Random, tokens: Sequence[str], marks: str, comments: Sequence[str]) -> str:
    """Join tokens by blanks and comments, or by nothing where a mark separates them."""
    text = ""
    for before, token in itertools.pairwise(["", *tokens]):
        is_apart = not before or before in marks or token in marks
        gaps = [" ", "\n", "\t", "  "] + ([""] * 4 if is_apart else [])
        gap = rng.choice(gaps)
        if comments and before and rng.random() < 0.15:
            gap = rng.choice(["", " "]) + rng.choice(comments) + rng.choice(["", " "])
        text += gap + token
    return text


def _number(rng: random.Random, value: float) -> str:
    forms = [
        repr(value),
        f"{value:e}",
        f"{value:E}",
        f"+{value!r}",
        f"{value!r}0" if "." in repr(value) else repr(value),
    ]
    if 0 < value < 1 and repr(value).startswith("0."):
        forms.append(repr(value)[1:])
    return rng.choice(forms)


def _encoded(rng: random.Random, text: str, encodings: Sequence[str] = (*UNICODE, "latin-1")) -> bytes:
    return text.replace("\n", rng.choice(["\n", "\n", "\r\n"])).encode(rng.choice(encodings))


def _network(rng: random.Random) -> Content:
    """Make a network whose rows are in parts of 64, so that they sum to 1 exactly."""
    names = rng.sample(["A", "B2", "c_d", "Level", "7up"], rng.randint(1, 3))
    states = {name: rng.sample(STATES, rng.randint(1, 3)) for name in names}
    tables: dict[str, Any] = {}
    for i, name in enumerate(names):
        parents = [other for other in names[:i] if rng.random() < 0.6]
        rows = []
        is_uniform = len(states[name]) == 2 and rng.random() < 0.4
        for _ in itertools.product(*(states[parent] for parent in parents)):
            cuts = [32] if is_uniform else sorted(rng.randrange(65) for _ in states[name][1:])
            rows.append([(b - a) / 64 for a, b in itertools.pairwise([0, *cuts, 64])])
        tables[name] = [parents, rows]
    return {"states": states, "tables": tables}


def _write_bif(rng: random.Random, content: Content, fault: str | None) -> tuple[str, bytes]:
    def word(text: str) -> str:
        return f'"{text}"' if rng.random() < 0.3 else text

    def separated(items: Sequence[str]) -> list[str]:
        comma = rng.random() < 0.7
        return [part for i, item in enumerate(items) for part in ([","] if i and comma else []) + [item]]

    states, blocks = content["states"], []
    tokens = [
        "network",
        word("pump"),
        "{",
        *(["property", "site http://a.b 'c' ", ";"] if rng.random() < 0.5 else []),
        "}",
    ]
    for name, own in states.items():
        size = len(own) + (fault == "a state too few")
        brackets = rng.choice([["[", str(size), "]"], [f"[{size}]"], ["[", f"{size}]"]])
        kind = "discrete" if fault != "an unknown type" else "continuous"
        tokens += [
            "variable",
            word(name),
            "{",
            "type",
            kind,
            *brackets,
            "{",
            *separated(list(map(word, own))),
            "}",
            ";",
        ]
        tokens += [*(["property", "p = (1, 2)", ";"] if rng.random() < 0.3 else []), "}"]
    for name, (parents, rows) in content["tables"].items():
        head = [word(name), *(["|", *separated(list(map(word, parents)))] if parents else [])]
        block = ["probability", "(", *head, ")", "{"]
        if not parents or rng.random() < 0.3:
            flat = [_number(rng, row[x]) for x in range(len(states[name])) for row in rows]
            block += ["table", *separated(flat), ";"]
        else:
            keys = itertools.product(*(states[parent] for parent in parents))
            lines = [
                ["(", *separated(list(map(word, key))), ")", *separated([_number(rng, p) for p in row]), ";"]
                for key, row in zip(keys, rows, strict=True)
            ]
            rng.shuffle(lines)
            block += itertools.chain.from_iterable(lines)
        blocks.append([*block, "}"])
    if fault == "a block too few":
        del blocks[-1]
    rng.shuffle(blocks)
    comments = ["//x; }\n", "/* y; } */", "/**/", "// http://a.b\n"]
    # The comments of properties are part of their text.
    text = ""
    for block in [tokens, *blocks]:
        parts = list(_parts(block))
        text += "".join(
            _joined(rng, part, "{}();,|", comments if "property" not in part else []) + " " for part in parts
        )
    return ".bif", _encoded(rng, text)


def _parts(tokens: Sequence[str]) -> Iterator[list[str]]:
    """Yield pieces, so that a property is one of its own."""
    part: list[str] = []
    for token in tokens:
        if token == "property":
            yield part
            part = []
        part.append(token)
        if token == ";" and part[0] == "property":
            yield part
            part = []
    yield part


def _write_net(rng: random.Random, content: Content, fault: str | None) -> tuple[str, bytes]:
    states, tokens = content["states"], ["net", "{", "}"]
    blocks = []
    for name, own in states.items():
        quoted = [f'"{state}"' for state in own]
        tokens += ["node", name, "{", "states", "=", "(", *quoted, ")", ";"]
        tokens += [*(["label", "=", '"100 % // a;"', ";"] if rng.random() < 0.4 else []), "}"]
    for name, (parents, rows) in content["tables"].items():
        block = ["potential", "(", name, *(["|", *parents] if parents else []), ")", "{"]
        is_uniform = all(p == row[0] for row in rows for p in row)
        if not is_uniform or fault == "a row of zeros" or rng.random() < 0.3:
            numbers = [
                [_number(rng, p * scale) for p in row] for row in rows for scale in [rng.choice([1, 1, 64, 100])]
            ]
            if fault == "a row of zeros":
                numbers[0] = ["0"] * len(numbers[0])
            block += ["data", "=", "(", *itertools.chain.from_iterable(numbers), ")", ";"]
        if fault == "expressions":
            block += ["model_data", "=", "(", "x", ")", ";"]
        blocks.append([*block, "}"])
    if fault == "a block too few":
        del blocks[-1]
    rng.shuffle(blocks)
    tokens += itertools.chain.from_iterable(blocks)
    return ".net", _encoded(rng, _joined(rng, tokens, "{}();=|", ["%x; }\n", "//y; (\n", "/* z; ) */"]) + "\n")


def _compare_network(content: Content, path: Path) -> None:
    model = elimina.read(path)
    if {v.name: list(v.states or ()) for v in model.variables} != content["states"]:
        raise Defect(f"the variables are {model.variables}")
    if model.children is None or len(model.children) != len(content["tables"]):
        raise Defect(f"the children are {model.children}")
    for child, factor in zip(model.children, model.factors, strict=True):
        parents, rows = content["tables"][model.variables[child].name]
        names = [model.variables[v].name for v in factor.scope]
        expected = np.array(rows).reshape(
            [len(content["states"][name]) for name in [*parents, model.variables[child].name]]
        )
        if names != [*parents, model.variables[child].name] or np.abs(factor.dense() - expected).max() > 1e-9:
            raise Defect(f"the table of {model.variables[child].name!r} over {names} is {factor.dense().tolist()}")


def _clauses(rng: random.Random) -> Content:
    count = rng.randint(1, 4)
    clauses = [
        [rng.randint(1, count) * rng.choice([-1, 1]) for _ in range(rng.randint(1, 3))]
        for _ in range(rng.randint(1, 5))
    ]
    weights = [rng.choice([None, 1, 3, 8]) for _ in clauses]
    return {"count": count, "clauses": clauses, "weights": weights, "is_weighted": rng.random() < 0.5}


def _write_clauses(rng: random.Random, content: Content, fault: str | None) -> tuple[str, bytes]:
    count, is_weighted = content["count"], content["is_weighted"] and fault is None
    is_old = rng.random() < 0.5
    lines = [f"p cnf {count + (fault == 'projected')}  {len(content['clauses'])} "]
    if is_weighted:
        lines = [f"p wcnf {count} {len(content['clauses'])} 99"] if is_old else []
    for clause, weight in zip(content["clauses"], content["weights"], strict=True):
        words = [*map(str, clause), "0"]
        if is_weighted:
            head = str(weight) if weight is not None else "99" if is_old else "h"
            lines.append(rng.choice([" ", "\t", "  "]).join([head, *words]))
        else:
            lines.append("".join(word + rng.choice([" ", "\n", "\t"]) for word in words))
        if rng.random() < 0.3:
            lines.append(rng.choice(["c", "c a comment", "c p cnf 1 1", "", "  "]))
    if fault == "no header":
        del lines[0]
    if fault == "projected":
        lines.insert(rng.randrange(1, len(lines) + 1), rng.choice(["c p show 1 0", "c ind 1 0"]))
    if not is_weighted and (fault == "text after the end" or rng.random() < 0.2):
        lines += ["%", "0", *(["1 0"] if fault == "text after the end" else [])]
    return ".wcnf" if is_weighted else ".cnf", _encoded(rng, "\n".join(lines) + "\n", UNICODE)


def _compare_clauses(content: Content, path: Path) -> None:
    model = elimina.read(path)
    weights = content["weights"] if path.suffix == ".wcnf" else [None] * len(content["clauses"])

    def worth(values: Sequence[int]) -> float:
        total = 0.0
        for clause, weight in zip(content["clauses"], weights, strict=True):
            if all(values[abs(literal) - 1] == (literal < 0) for literal in clause):
                total += math.inf if weight is None else weight
        return total

    largest = max(abs(literal) for clause in content["clauses"] for literal in clause)
    if len(model.variables) not in (content["count"], largest):
        raise Defect(f"there are {len(model.variables)} variables")
    _compare_scores(model, worth)


def _costs(rng: random.Random) -> Content:
    sizes = [rng.randint(1, 3) for _ in range(rng.randint(1, 3))]
    functions = []
    for _ in range(rng.randint(1, 3)):
        scope = rng.sample(range(len(sizes)), rng.randint(1, len(sizes)))
        cells = math.prod(sizes[v] for v in scope)
        functions.append([scope, [rng.choice(["inf", 0, 1, 2, -3, 5]) for _ in range(cells)]])
    return {"sizes": sizes, "functions": functions, "sense": rng.choice([1, 1, -1])}


def _write_cfn(rng: random.Random, content: Content, fault: str | None) -> tuple[str, bytes]:
    suffix = rng.choice([".cfn", ".json"])
    decimals = rng.random() < 0.5
    bound = ("<" if content["sense"] > 0 else ">-") + ("1000.00" if decimals else "1000")
    costs = {
        f"f{i}": {"scope": [f"v{v}" for v in scope], "costs": list(values)}
        for i, (scope, values) in enumerate(content["functions"])
    }
    if fault == "an unknown word":
        costs["f0"]["costs"][0] = "nan"
    if fault == "an unknown keyword":
        costs["f0"] = {"scope": ["v0"], "type": "smstdp", "params": []}
    problem = {"name": "p", "mustbe": bound}
    if suffix == ".json":
        problem = _shuffled(rng, problem)
        costs = {name: _shuffled(rng, function) for name, function in costs.items()}
    top = {
        "problem": problem,
        "variables": {f"v{v}": size for v, size in enumerate(content["sizes"])},
        "functions": costs,
    }
    text = json.dumps(_shuffled(rng, top) if suffix == ".json" else top, indent=rng.choice([None, 1, 4]))
    if suffix == ".cfn":
        if rng.random() < 0.5:
            text = text.replace('"', "")
        if rng.random() < 0.5:
            text = text.replace(",", "").replace(":", " ")
        if rng.random() < 0.5:
            text = text.replace("]", "]// a: {\n").replace("{", "{\n# b }\n", 3)
    return suffix, _encoded(rng, text, UNICODE)


def _shuffled(rng: random.Random, pairs: dict[str, Any]) -> dict[str, Any]:
    """Return an object of JSON with its keys in another order, which means nothing."""
    return dict(rng.sample(list(pairs.items()), len(pairs)))


def _compare_cfn(content: Content, path: Path) -> None:
    sizes, sense = content["sizes"], content["sense"]

    def worth(values: Sequence[int]) -> float:
        total = 0.0
        for scope, costs in content["functions"]:
            cost = costs[int(np.ravel_multi_index([values[v] for v in scope], [sizes[v] for v in scope]))]
            total += sense * math.inf if cost == "inf" else cost
        return total

    _compare_scores(elimina.read(path), worth)


def _compare_scores(model: Model, worth: Callable[[Sequence[int]], float]) -> None:
    for values in itertools.product(*map(range, model.sizes)):
        score, expected = model.score(values), worth(values)
        if math.isinf(score) or model.is_beyond_bound(score):
            score = math.inf
        if (score if math.isfinite(score) else None) != (expected if math.isfinite(expected) else None):
            raise Defect(f"{values} is worth {score}, not {expected}")


def _write_yaml(rng: random.Random, content: Content, fault: str | None) -> tuple[str, bytes]:
    sizes = content["sizes"]

    def extra() -> dict[str, Any]:
        return rng.choice([{}, {}, {"room": "kitchen"}, {"since": [1, {"a": 2}]}])

    constraints: dict[str, Any] = {}
    for i, (scope, costs) in enumerate(content["functions"]):
        worst = ".inf" if content["sense"] > 0 else "-.inf"
        rows: dict[Any, list[str]] = {}
        for key, cost in zip(itertools.product(*(range(sizes[v]) for v in scope)), costs, strict=True):
            rows.setdefault(worst if cost == "inf" else cost, []).append(" ".join(map(str, key)))
        values = {cost: " | ".join(texts) for cost, texts in rows.items()}
        constraints[f"c{i}"] = {
            "type": "extensional",
            "variables": [f"v{v}" for v in scope],
            "values": values,
            **extra(),
        }
    top = {
        "name": "p",
        "objective": "min" if content["sense"] > 0 else "max",
        "domains": {f"d{size}": {"values": list(range(size)), **extra()} for size in sorted(set(sizes))},
        "variables": {f"v{v}": {"domain": f"d{size}", **extra()} for v, size in enumerate(sizes)},
        "constraints": constraints,
        "agents": {f"a{v}": {"capacity": 100, **extra()} for v in range(len(sizes))},
        **extra(),
    }
    if fault is not None:
        section, key, other = fault.split()
        node = top if section == "top" else next(iter(top[section].values()))  # type: ignore[union-attr]
        node[other] = node.pop(key)
    items = list(top.items())
    rng.shuffle(items)
    return ".yaml", _encoded(rng, "".join(f"{key}: {_flow(value)}\n" for key, value in items), UNICODE)


def _flow(value: Any) -> str:
    """Return YAML in the flow style, whose keys, unlike JSON's, may be numbers."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(item)}" for key, item in value.items()) + "}"
    return "[" + ", ".join(map(_flow, value)) + "]" if isinstance(value, list) else json.dumps(value)


def _compare_yaml(content: Content, path: Path) -> None:
    def worth(values: Sequence[int]) -> float:
        total = 0.0
        for scope, costs in content["functions"]:
            sizes = [content["sizes"][v] for v in scope]
            cost = costs[int(np.ravel_multi_index([values[v] for v in scope], sizes))]
            total += math.inf if cost == "inf" else cost
        return total

    _compare_scores(dcop.read(path).model, worth)


def _cities(rng: random.Random) -> Content:
    return {"points": [[rng.randrange(50), rng.randrange(50)] for _ in range(rng.randint(3, 6))]}


def _write_tsp(rng: random.Random, content: Content, fault: str | None) -> tuple[str, bytes]:
    def cased(text: str) -> str:
        return rng.choice([text, text, text.lower(), text.title()])

    n = len(content["points"])
    entries = [
        ("NAME", "x"),
        ("TYPE", "TSP"),
        ("COMMENT", "a: b"),
        ("DIMENSION", str(n)),
        ("EDGE_WEIGHT_TYPE", "MAN_2D"),
    ]
    if fault == "two dimensions":
        entries.append(("DIMENSION", str(n + 1)))
    if fault == "an unknown key":
        entries.append(("DIMENSIONS", str(n)))
    if fault == "another type":
        entries[1] = ("TYPE", "ATSP")
    rng.shuffle(entries)
    lines = [cased(key) + rng.choice([":", " : ", ": ", " :", " ", "="]) + cased(value) for key, value in entries]
    lines.append(cased("NODE_COORD_SECTION") + rng.choice(["", ":", " "]))
    rows = [f"{i} {_number(rng, float(x))}\t{_number(rng, float(y))}" for i, (x, y) in enumerate(content["points"], 1)]
    rng.shuffle(rows)
    lines += rows + rng.choice([[cased("EOF")], [], ["", cased("EOF"), "ignored"]])
    return ".tsp", _encoded(rng, "\n".join(rng.choice(["", " "]) + line for line in lines) + "\n", UNICODE)


def _compare_tsp(content: Content, path: Path) -> None:
    points = np.array(content["points"])
    expected = np.abs(points[:, None] - points[None]).sum(axis=2)
    found = tsplib.read_tsp(path).distances
    if not np.array_equal(found, expected):
        raise Defect(f"the distances are {found.tolist()}, not {expected.tolist()}")


_YAML_FAULTS = [
    *("variables domain domian", "variables domain dom", "constraints values valus", "constraints type types"),
    *("top objective objectiv", "top variables variable", "top constraints constraint", "domains values value"),
]
FORMATS: dict[str, tuple[Any, Any, Any, list[str]]] = {
    "bif": (_network, _write_bif, _compare_network, ["a state too few", "an unknown type", "a block too few"]),
    "net": (_network, _write_net, _compare_network, ["a row of zeros", "expressions", "a block too few"]),
    "clauses": (_clauses, _write_clauses, _compare_clauses, ["no header", "projected", "text after the end"]),
    "cfn": (_costs, _write_cfn, _compare_cfn, ["an unknown word", "an unknown keyword"]),
    "yaml": (_costs, _write_yaml, _compare_yaml, _YAML_FAULTS),
    "tsp": (_cities, _write_tsp, _compare_tsp, ["two dimensions", "an unknown key", "another type"]),
}
"""Format -> the functions that make, write and compare what a file says, and the faults that its files may have."""
