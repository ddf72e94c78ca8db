"""TSPLIB files: distances by hand, malformed files, published optimal tours."""

from __future__ import annotations

import re

import numpy as np
import pytest

from elimina.cp.tsplib import read_tour, read_tsp, write_tour
from elimina.errors import FormatError, InputError, MemoryLimitError, UnsupportedError


@pytest.fixture
def read(tmp_path):
    def read_text(text, name="x.tsp"):
        (tmp_path / name).write_text(text)
        return (read_tour if name.endswith(".tour") else read_tsp)(tmp_path / name)

    return read_text


def coordinates(kind, *points):
    rows = "\n".join(f"{i} {' '.join(map(str, point))}" for i, point in enumerate(points, 1))
    return f"NAME: x\nTYPE: TSP\nDIMENSION: {len(points)}\nEDGE_WEIGHT_TYPE: {kind}\nNODE_COORD_SECTION\n{rows}\nEOF\n"


def explicit(form, n, *rows):
    head = f"TYPE : TSP\nDIMENSION : {n}\nEDGE_WEIGHT_TYPE : EXPLICIT\nEDGE_WEIGHT_FORMAT : {form}\n"
    return head + "EDGE_WEIGHT_SECTION\n" + "\n".join(rows) + "\nEOF\n"


@pytest.mark.parametrize(
    ("kind", "a", "b", "distance"),
    [
        ("EUC_2D", (0, 0), (1, 1), 1),  # 1.41
        ("EUC_2D", (0, 0), (1.5, 2), 3),  # 2.5 goes up
        ("EUC_3D", (0, 0, 0), (2, 3, 6), 7),
        ("CEIL_2D", (0, 0), (1, 1), 2),
        ("CEIL_2D", (0, 0), (3, 4), 5),
        ("MAN_2D", (0, 0), (1.2, -2.4), 4),
        ("MAX_2D", (0, 0), (1.2, -2.6), 3),
        ("ATT", (0, 0), (10, 0), 4),  # sqrt(10) = 3.16 goes to 3, which is less
        ("ATT", (0, 0), (0, 30), 10),  # 9.49 goes to 9, which is less
        ("ATT", (0, 0), (0, 28), 9),  # 8.85 goes to 9
        # One degree of latitude: 6378.388 * 3.141592 / 180 = 111.32, plus 1, cut off.
        ("GEO", (0.0, 0.0), (1.0, 0.0), 112),
        # 30 minutes are half a degree: 55.66.
        ("GEO", (0.30, 10.0), (0.0, 10.0), 56),
        # At 60 degrees a degree of longitude is half as long.
        ("GEO", (60.0, 0.0), (60.0, 2.0), 112),
    ],
)
def test_rules(read, kind, a, b, distance):
    assert read(coordinates(kind, a, b)).distances.tolist() == [[0, distance], [distance, 0]]


SPELLINGS = [
    str.lower,
    str.title,
    lambda text: text.replace(":", " :"),
    lambda text: text.replace(":", "\t:\t"),
    lambda text: text.replace(": ", ":"),
    lambda text: text.replace(":", ""),
    lambda text: text.replace(":", " ="),
    lambda text: text.replace("\n", "\r\n"),
    lambda text: text.replace("\n", " \n  "),
    lambda text: text.replace("EOF\n", ""),
    lambda text: text.replace("SECTION", "SECTION :"),
    lambda text: "COMMENT: a\nCOMMENT: b\n" + text,
]


@pytest.mark.parametrize("spelling", range(len(SPELLINGS)))
def test_spellings_of_one_problem(read, spelling):
    change = SPELLINGS[spelling]
    points = [(0, 0), (0, 3), (4, 0)]
    problem = read(change(coordinates("EUC_2D", *points)))
    assert problem.name.lower() == "x"
    assert problem.distances.tolist() == [[0, 3, 4], [3, 0, 5], [4, 5, 0]]
    full = change(explicit("UPPER_ROW", 3, "3 4", "5"))
    assert read(full).distances.tolist() == problem.distances.tolist()
    assert read(change("TYPE: TOUR\nDIMENSION: 3\nTOUR_SECTION\n2\n3\n1\n-1\nEOF\n"), "x.tour") == [1, 2, 0]


def test_contradicting_entries_are_errors(read):
    text = coordinates("EUC_2D", (0, 0), (0, 3), (4, 0))
    assert read("dimension: 3\n" + text).cities == 3
    with pytest.raises(FormatError, match=r"x\.tsp:4: a second DIMENSION; the first one is in line 1"):
        read("dimension: 4\n" + text)
    with pytest.raises(
        FormatError, match="expected 'KEY : value' or a section of a TSPLIB file, found 'DIMENSIONS: 3'"
    ):
        read("DIMENSIONS: 3\n" + text)
    with pytest.raises(FormatError, match=r"x\.tsp:4: expected an EDGE_WEIGHT_FORMAT, since distances are EXPLICIT"):
        read(text.replace("EUC_2D", "EXPLICIT"))


def test_cities_whose_distances_do_not_fit_are_refused_before_anything_is_allocated(read, monkeypatch):
    monkeypatch.setattr("elimina.cp.tsplib.available_memory", lambda: 35)
    with pytest.raises(
        MemoryLimitError, match=r"x.tsp:3: the distances of 3 cities take 36 bytes, and 35 bytes are free"
    ):
        read(coordinates("EUC_2D", (0, 0), (0, 3), (4, 0)))


@pytest.mark.parametrize(
    ("form", "rows"),
    [
        ("FULL_MATRIX", ("0 1 2", "1 0 3", "2 3 0")),
        ("FULL_MATRIX", ("0 1 2 1 0", "3 2 3", "0")),
        ("UPPER_ROW", ("1 2", "3")),
        ("LOWER_ROW", ("1", "2 3")),
        ("UPPER_DIAG_ROW", ("0 1 2", "0 3", "0")),
        ("LOWER_DIAG_ROW", ("0", "1 0", "2 3 0")),
        ("UPPER_COL", ("1", "2 3")),
        ("LOWER_COL", ("1 2", "3")),
        ("UPPER_DIAG_COL", ("0", "1 0", "2 3 0")),
        ("LOWER_DIAG_COL", ("0 1 2", "0 3", "0")),
    ],
)
def test_formats(read, form, rows):
    problem = read(explicit(form, 3, *rows))
    assert problem.distances.tolist() == [[0, 1, 2], [1, 0, 3], [2, 3, 0]]
    assert problem.distances.dtype == np.int32
    assert problem.points is None
    assert problem.length([2, 0, 1]) == 6


def test_names_and_pictures(read):
    problem = read("NAME : five\nCOMMENT: a: b\n" + coordinates("GEO", (1, 2), (3, 4))[8:])
    assert problem.name == "five"
    assert problem.points.tolist() == [[2, 1], [4, 3]]
    shown = explicit("UPPER_ROW", 2, "7")[:-4] + "DISPLAY_DATA_SECTION\n2 5 6\n1 3 4\nEOF\n"
    assert read(shown).points.tolist() == [[3, 4], [5, 6]]
    fixed = coordinates("EUC_2D", (0, 0), (1, 0), (0, 1)).replace("NODE_C", "FIXED_EDGES_SECTION\n1 3\n-1\nNODE_C")
    assert read(fixed).fixed == [(0, 2)]
    # No EOF, blanks before the colon or not, numbers in any order.
    assert read(coordinates("EUC_2D", (0, 0), (3, 4))[:-4].replace(":", "  :")).length([0, 1]) == 10


GOOD = coordinates("EUC_2D", (0, 0), (1, 0), (0, 1))


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        (GOOD.replace("1 0 0", "1 0"), 8, "expected 3 cities with a number and 2 coordinates, found 8 numbers"),
        (GOOD.replace("1 0 0", "1 0 x"), 6, "expected a number, found 'x'"),
        (GOOD.replace("1 0 0", "1 0 nan"), 6, "expected a number within 2^53, found 'nan'"),
        (GOOD.replace("1 0 0", "1 0 1_0"), 6, "expected a number within 2^53, found '1_0'"),
        (GOOD.replace("2 1 0", "1 1 0"), 7, "city 1 has coordinates already"),
        (GOOD.replace("2 1 0", "4 1 0"), 7, "expected a city's number from 1 to 3, found 4"),
        (GOOD.replace("2 1 0", "2 1e12 0"), 5, "a distance of 1e+12 is beyond 2^31"),
        (GOOD.replace("DIMENSION: 3", "DIMENSION: 0"), 3, "expected a number of cities from 1 on, found '0'"),
        (GOOD.replace("DIMENSION: 3\n", ""), 4, "expected a DIMENSION before the data"),
        ("", 1, "expected a DIMENSION before the data"),
        (GOOD.replace("NAME", "NAMEN"), 1, "expected 'KEY : value' or a section of a TSPLIB file, found"),
        (GOOD.replace("EOF", "NODE_COORD_SECTION"), 9, "a second NODE_COORD_SECTION; the first one is in line 5"),
        (GOOD.replace("EDGE_WEIGHT_TYPE: EUC_2D\n", ""), 8, "expected an EDGE_WEIGHT_TYPE"),
        (GOOD.split("NODE_C")[0], 4, "expected a NODE_COORD_SECTION, since distances are EUC_2D"),
        (GOOD.replace("EUC_2D", "GEO").replace("2 1 0", "2 400 0"), 5, "latitudes and longitudes within 360 degrees"),
        (GOOD.replace("EOF", "FIXED_EDGES_SECTION\n1 2"), 10, "expected pairs of cities, and -1 at their end"),
        (explicit("UPPER_ROW", 3, "1 2"), 6, "expected 3 distances (UPPER_ROW of 3 cities), found 2"),
        (explicit("UPPER_ROW", 3, "1 2", "3 4"), 7, "expected 3 distances (UPPER_ROW of 3 cities), found 4"),
        (explicit("UPPER_ROW", 3, "1 2", "2.5"), 7, "expected whole distances within 2^31, found 2.5"),
        (explicit("UPPER_ROW", 3, "1 2", "3e9"), 7, "expected whole distances within 2^31, found 3000000000"),
        (explicit("FULL_MATRIX", 2, "0 1", "2 0"), 6, "the distance from 1 to 2 is 1, back it is 2: a TSP is symm"),
    ],
)
def test_malformed(read, text, line, problem):
    with pytest.raises(FormatError) as caught:
        read(text)
    assert f"x.tsp:{line}: " in str(caught.value)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        (GOOD.replace("TYPE: TSP", "TYPE: ATSP", 1), 2, "TYPE ATSP; it has to be TSP"),
        (GOOD.replace("EUC_2D", "XRAY1"), 4, "EDGE_WEIGHT_TYPE XRAY1"),
        (coordinates("XRAY1", (0, 0, 1), (1, 0, 1), (0, 1, 1)), 4, "EDGE_WEIGHT_TYPE XRAY1"),
        (explicit("FUNCTION", 3, "1 2 3"), 4, "EDGE_WEIGHT_FORMAT FUNCTION"),
        (GOOD.replace("DIMENSION: 3", "DIMENSION: 85900"), 3, "85,900 cities; at most 46,340 are supported"),
        (GOOD.replace("NODE_COORD", "DEMAND"), 5, "DEMAND_SECTION"),
    ],
)
def test_unsupported(read, text, line, problem):
    with pytest.raises(UnsupportedError, match=f"x.tsp:{line}: unsupported: {re.escape(problem)}"):
        read(text)


def test_tours(read, tmp_path):
    write_tour(tmp_path / "out.tour", "six", [2, 0, 1], 42)
    assert read_tour(tmp_path / "out.tour") == [2, 0, 1]
    text = (tmp_path / "out.tour").read_text()
    assert text.startswith(
        "NAME : six.tour\nCOMMENT : length 42\nTYPE : TOUR\nDIMENSION : 3\nTOUR_SECTION\n3\n1\n2\n-1\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["out.tour"]
    for old, new, line, problem in (
        ("\n1\n", "\n3\n", 7, "city 3 is in the tour twice"),
        ("\n1\n", "\n4\n", 7, "expected a city from 1 to 3, found 4"),
        ("\n1\n", "\n", 8, "expected a tour of 3 cities, found 2"),
        ("TOUR_SECTION", "NODE_COORD_SECTION", 9, "expected 3 cities"),
    ):
        with pytest.raises(FormatError, match=problem) as caught:
            read(text.replace(old, new), "bad.tour")
        assert caught.value.line == line
    with pytest.raises(FormatError, match="expected a TOUR_SECTION"):
        read(GOOD, "x.tour")
    with pytest.raises(InputError, match=r"cannot read .*no\.tsp"):
        read_tsp(tmp_path / "no.tsp")


@pytest.mark.data
def test_published_tours(data_dir):
    folder = data_dir / "tsplib"
    optima = dict(re.findall(r"^(\S+) : (\d+)", (folder / "solutions.txt").read_text(), re.M))
    checked = 0
    for path in sorted((folder / "opt_tours").glob("*.opt.tour")):
        name = path.name.removesuffix(".opt.tour")
        problem = folder / f"{name}.tsp"
        if not problem.exists() or problem.stat().st_size > 20_000:
            continue
        assert read_tsp(problem).length(read_tour(path)) == int(optima[name]), name
        checked += 1
    assert checked > 20
