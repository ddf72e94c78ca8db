"""Models that are written and read again, and files that are damaged."""

from __future__ import annotations

import math
import random
import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import elimina.io as eio
from elimina.errors import InputError
from elimina.model.model import Model
from tests.adversary.case import Case, Defect, Setting
from tests.adversary.models import build, make_model, smaller_models, text
from tests.adversary.oracle import Oracle

SUFFIXES = {
    "min-cost": ["wcsp", "cfn"],
    "max-cost": ["cfn"],
    "probability": ["uai"],
    "network": ["uai", "bif", "xmlbif", "erg"],
}
TOKENS = (
    b"-1",
    b"0",
    b"1",
    b"2",
    b"7",
    b"1000000000000",
    b"9223372036854775807",
    b"nan",
    b"1e999",
    b"{",
    b"}",
    b"",
    b"\xff",
)
SPARE = 1 << 30
"""Bytes of address space that reading a small file may take."""


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a model, a format and perhaps some damage."""
    spec = make_model(rng)
    is_network = spec["children"] is not None and sorted(spec["children"]) == list(range(len(spec["variables"])))
    suffix = rng.choice(SUFFIXES["network" if is_network and spec["variables"] else spec["sense"]])
    ending = rng.choice(["", "", "", ".gz", ".xz"])
    damage = [_damage(rng) for _ in range(rng.choice([0, 0, 1, 1, 2]))]
    return {"model": spec, "suffix": suffix + ending, "damage": damage}


def _damage(rng: random.Random) -> list[Any]:
    what = rng.choice(["cut", "flip", "token", "token", "token", "drop"])
    return [what, rng.random(), rng.randrange(256) if what == "flip" else rng.randrange(len(TOKENS))]


def check(case: Case) -> None:
    """Write, damage, read, and compare."""
    try:
        model = build(case["model"])
    except InputError:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"model.{case['suffix']}"
        try:
            eio.write(model, path)
        except InputError as error:
            if not _may_refuse(case):
                raise
            if not str(error):
                raise Defect("an error without a text") from None
            return
        size = path.stat().st_size
        if size > 3_000_000:
            raise Defect(f"the file has {size} bytes")
        if not case["damage"]:
            compare(case, eio.read(path))
            return
        data = path.read_bytes()
        for what, place, how in case["damage"]:
            data = _damaged(data, what, place, how)
        path.write_bytes(data)
        _read_damaged(path)


def _may_refuse(case: Case) -> bool:
    """Return whether the format may have no way to write the model."""
    spec, suffix = case["model"], case["suffix"].partition(".")[0]
    if suffix == "wcsp":
        return True
    return (suffix in ("cfn", "uai") and spec["sense"] != "probability") or spec["constant"] != 0


def _read_damaged(path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + SPARE, before[1]))
    try:
        eio.read(path)
    except InputError as error:
        if not str(error).startswith(str(path)) or "\n" in str(error):
            raise Defect(f"an error that does not name the file in one line: {error}") from None
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _damaged(data: bytes, what: str, place: float, how: int) -> bytes:
    at = int(place * len(data))
    if what == "cut":
        return data[:at]
    if what == "flip":
        return data[:at] + bytes([data[at] ^ how]) + data[at + 1 :] if data else data
    tokens = data.split(b" ")
    number = int(place * len(tokens))
    tokens[number : number + 1] = [TOKENS[how]] if what == "token" else []
    return b" ".join(tokens)


def compare(case: Case, back: Model) -> None:
    """Compare what was read with what was written, assignment by assignment."""
    spec = case["model"]
    oracle = Oracle(spec)
    if back.sizes != tuple(oracle.sizes):
        raise Defect(f"the sizes are {back.sizes}, not {oracle.sizes}")
    worth: dict[int, Any] = dict(zip(oracle.allowed.tolist(), oracle.scores, strict=True))
    if spec["upper_bound"] is not None:
        sign = 1 if spec["sense"] == "min-cost" else -1
        worth = {n: score for n, score in worth.items() if sign * score < sign * spec["upper_bound"]}
    is_whole = isinstance(spec["constant"], int) and all(f["dtype"] == "int64" for f in spec["factors"])
    is_scaled = case["suffix"].startswith("wcsp") and not is_whole
    for number, values in enumerate(np.ndindex(*oracle.sizes)):
        score: Any = back.score(values)
        if math.isinf(score) or back.is_beyond_bound(score):
            score = None
        if (score is None) != (number not in worth):
            raise Defect(f"{values} is worth {score}, and was {worth.get(number)}")
        if score is not None and not is_scaled:
            off = score - worth[number]
            if (isinstance(off, int) and off) or abs(off) > 1e-9 * max(1.0, oracle.magnitude):
                raise Defect(f"{values} is worth {score!r}, and was {worth[number]!r}")


def smaller(case: Case) -> Iterator[Case]:
    """Yield simpler cases."""
    for i in range(len(case["damage"])):
        yield {**case, "damage": case["damage"][:i] + case["damage"][i + 1 :]}
    if "." in case["suffix"]:
        yield {**case, "suffix": case["suffix"].partition(".")[0]}
    for spec, _ in smaller_models(case["model"]):
        yield {**case, "model": spec}


def script(case: Case) -> str:
    """Return a program that writes and reads."""
    if case["damage"]:
        return f"from tests.adversary.files import check\ncheck({case!r})"
    return "\n".join(
        [
            "from math import inf",
            "import numpy as np",
            "from elimina import FORBIDDEN, Model, Table, Variable, read, write",
            *text(case["model"]),
            f"write(model, '/tmp/model.{case['suffix']}')",
            f"back = read('/tmp/model.{case['suffix']}')",
            "print(back.factors, back.constant, back.upper_bound)",
        ]
    )
