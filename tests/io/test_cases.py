"""Batches' cases: CSV and Parquet files, data frames; what is malformed names its place."""

from __future__ import annotations

import contextlib
import csv
import datetime
import decimal
import gzip
import importlib
import lzma
import sys

import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina.errors import FormatError, InputError
from elimina.io.cases import MISSING, cases_from_frame, read_cases
from elimina.model.model import Model
from elimina.model.variable import Variable, texts_of
from tests.io.models import named_variables

MODEL = Model(
    [
        Variable("HR", 3, ["LOW", "NORMAL", "HIGH"]),
        Variable("age", 4),
        Variable("grade", 3, [1, 2, 5]),
        Variable("sick", 2, [False, True]),
        Variable("a,b", 2, ["?", 'x"y']),
    ],
    [],
    sense="probability",
)


@st.composite
def cases(draw):
    """A model, some of its variables as columns, and values with gaps."""
    variables = [v for v in draw(named_variables()) if v.name.strip() == v.name]
    variables = [v for v in variables if all(la == la.strip() for la in texts_of(v))]
    columns = draw(st.permutations(range(len(variables))))[: draw(st.integers(0, len(variables)))]
    rows = draw(st.lists(st.tuples(*(st.integers(-1, variables[v].size - 1) for v in columns)), max_size=5))
    values = np.array(rows, dtype=np.int32).reshape(len(rows), len(columns))
    return Model(variables, [], sense="probability"), tuple(columns), values


def cell(variable, value, gap):
    return gap if value < 0 else variable.state(int(value))


def assert_equal(read, columns, values):
    assert read.columns == columns
    assert read.values.dtype == np.int32
    np.testing.assert_array_equal(read.values, values)


@settings(max_examples=60, deadline=None)
@given(cases(), st.sampled_from(["", ".gz", ".xz"]), st.sampled_from(sorted(MISSING)))
def test_csv_round_trip(tmp_path_factory, drawn, compression, gap):
    model, columns, values = drawn
    if not columns:
        return
    path = tmp_path_factory.mktemp("cases") / f"c.csv{compression}"
    stream = {"": open, ".gz": gzip.open, ".xz": lzma.open}[compression](path, "wt", encoding="utf-8", newline="")
    with stream:
        writer = csv.writer(stream, quoting=csv.QUOTE_ALL)
        writer.writerow(model.variables[v].name for v in columns)
        for row in values:
            texts = [cell(model.variables[v], x, gap) for v, x in zip(columns, row, strict=True)]
            writer.writerow(texts)
    for i, v in enumerate(columns):
        states = texts_of(model.variables[v])
        if gap in states:
            values[values[:, i] < 0, i] = states.index(gap)
    assert_equal(read_cases(path, model), columns, values)


@settings(max_examples=60, deadline=None)
@given(cases(), st.sampled_from(["strings", "categories", "parquet", "records", "mapping", "structured"]))
def test_frames_round_trip(tmp_path_factory, drawn, form):
    model, columns, values = drawn
    names = [model.variables[v].name for v in columns]
    texts = {
        name: [cell(model.variables[v], x, None) for x in values[:, i]]
        for i, (name, v) in enumerate(zip(names, columns, strict=True))
    }
    frame = pandas.DataFrame(texts, index=range(len(values)), columns=names, dtype=object)
    if form == "parquet":
        if not columns:
            return
        path = tmp_path_factory.mktemp("cases") / "c.parquet"
        pyarrow.parquet.write_table(pyarrow.table({n: pyarrow.array(c) for n, c in texts.items()}), path)
        assert_equal(read_cases(path, model), columns, values)
        return
    if form == "records":
        records = [{n: texts[n][i] for n in names} for i in range(len(values))]
        if not records:
            return
        assert_equal(cases_from_frame(records, model), columns, values)
        return
    if form == "structured":
        if not columns or any(not n or ord(max(n)) > 127 for n in names):
            return
        array = np.array(
            [tuple(texts[n][i] for n in names) for i in range(len(values))], dtype=[(n, object) for n in names]
        )
        assert_equal(cases_from_frame(array, model), columns, values)
        return
    given = {"strings": frame, "categories": frame.astype("category"), "mapping": texts}[form]
    if not columns:
        assert cases_from_frame(given, model).columns == ()
        return
    assert_equal(cases_from_frame(given, model), columns, values)


def test_what_values_mean():
    frame = pandas.DataFrame(
        {
            "HR": ["LOW", None, "HIGH", float("nan")],
            "age": [0, 3, None, 2],  # floats, as pandas reads integers with gaps
            "grade": pandas.array([1, 5, 2, None], dtype="Int64"),
            "sick": [True, False, True, False],
        }
    )
    read = cases_from_frame(frame, MODEL)
    assert read.columns == (0, 1, 2, 3)
    expected = [[0, 0, 0, 1], [-1, 3, 2, 0], [2, -1, 1, 1], [-1, 2, -1, 0]]
    np.testing.assert_array_equal(read.values, expected)
    mixed = cases_from_frame(
        [{"sick": True}, {"sick": "false"}, {"age": np.int64(2)}, {"sick": np.bool_(True), "age": pandas.NA}], MODEL
    )
    assert mixed.columns == (3, 1)
    np.testing.assert_array_equal(mixed.values, [[1, -1], [0, -1], [-1, 2], [1, -1]])
    masked = np.ma.masked_array([5, 7, 1], [False, True, False])
    np.testing.assert_array_equal(cases_from_frame({"grade": masked}, MODEL).values, [[2], [-1], [0]])
    np.testing.assert_array_equal(cases_from_frame({"HR": np.array([b"LOW", b"HIGH"])}, MODEL).values, [[0], [2]])


def test_arrays_of_all_variables():
    numbers = np.array([[0, 3, 2, 1, 1], [-1, -1, 0, 0, 0]])
    floats = np.where(numbers < 0, np.nan, numbers)
    masked = np.ma.masked_array(np.maximum(numbers, 0), numbers < 0)
    for array in (numbers, numbers.astype(np.int8), floats, masked, numbers.astype(object)):
        assert_equal(cases_from_frame(array, MODEL, indices=True), (0, 1, 2, 3, 4), numbers)
    texts = np.array([["LOW", "3", "5", "true", "?"]])
    assert_equal(cases_from_frame(texts, MODEL), (0, 1, 2, 3, 4), [[0, 3, 2, 1, 0]])
    states = np.array([["LOW", 3, 5, True, "?"], [None, np.nan, 1, False, 'x"y']], dtype=object)
    assert_equal(cases_from_frame(states, MODEL), (0, 1, 2, 3, 4), [[0, 3, 2, 1, 0], [-1, -1, 0, 0, 1]])


def test_an_array_means_what_a_frame_means():
    model = Model([Variable("A", 3, [1, 2, 3]), Variable("B", 2)], [], sense="probability")
    array = np.array([[1, 0], [3, 1]])
    frame = pandas.DataFrame(array, columns=["A", "B"])
    for table in (array, array.astype(float), frame, frame.to_dict("list"), frame.to_dict("records")):
        assert_equal(cases_from_frame(table, model), (0, 1), [[0, 0], [2, 1]])
    for table in (array - 1, frame - 1):
        assert_equal(cases_from_frame(table, model, indices=True), (0, 1), [[0, -1], [2, 0]])
    for table in (np.array([[0, 0]]), frame - 1, {"B": [-1]}):
        with pytest.raises(InputError, match=r"row \d: variable '[AB]' has no state"):
            cases_from_frame(table, model)
    for table in (np.array([[3, 0]]), {"A": [True]}, {"A": ["1"]}, {"A": [-2]}):
        with pytest.raises(InputError, match="variable 'A'"):
            cases_from_frame(table, model, indices=True)


@pytest.mark.parametrize(
    ("frame", "problem"),
    [
        ({"HRX": ["LOW"]}, "no variable 'HRX'; did you mean 'HR'"),
        ({"HR": ["LOW", "low"]}, "row 1: variable 'HR' has no state 'low'; its states are 'LOW', 'NORMAL', 'HIGH'"),
        ({"HR": ["LOW", 3]}, "row 1: variable 'HR' has no state 3"),
        ({"HR": [0.5]}, "row 0: variable 'HR' has no state 0.5"),
        ({"HR": [float("inf")]}, "row 0: variable 'HR' has no state inf"),
        ({"HR": [True]}, "row 0: variable 'HR' has no state True"),
        ({"HR": [["LOW"]]}, "row 0: variable 'HR' has no state ['LOW']"),
        ({"HR": [None, [0.2, 0.5, 1]]}, "cells hold states, and JunctionTree.set_evidence takes likelihoods"),
        ({"age": np.array([0, 1, 9, 9])}, "row 2: variable 'age' has no state 9; its states are 0 to 3"),
        ({"grade": np.array([1, 3])}, "row 1: variable 'grade' has no state 3; its states are 1, 2, 5"),
        ({"HR": ["LOW"], "age": [1, 2]}, "the columns' lengths differ: 1, 2"),
        ({"HR": ["LOW"], 0: ["LOW"]}, "two columns are about the same variable"),
        ({"HR": np.zeros((2, 2))}, "the column 'HR' has the shape (2, 2)"),
        (np.zeros((2, 3)), "a column for each of the 5 variables; this one has the shape (2, 3)"),
        (np.array([["LOW", 0, 1, True, 2]], dtype=object), "row 0: variable 'a,b' has no state 2"),
        (np.array([["LOW", 0.5, 1, True, 0]], dtype=object), "row 0: variable 'age' has no state 0.5"),
        (
            {"HR": [1]},
            "has no state 1; its states are 'LOW', 'NORMAL', 'HIGH'; an index is written elimina.StateIndex(1), and "
            "cases of indices are read with indices=True",
        ),
        ({"grade": [True]}, "row 0: variable 'grade' has no state True; its states are 1, 2, 5"),
        ({"sick": [1]}, "row 0: variable 'sick' has no state 1; its states are False, True"),
        ({"age": [1, -1]}, "row 1: variable 'age' has no state -1; leave cells that are not observed empty"),
    ],
)
def test_frames_that_do_not_fit(frame, problem):
    with pytest.raises(InputError) as caught:
        cases_from_frame(frame, MODEL)
    assert problem in str(caught.value)


@pytest.mark.parametrize("frame", ["HR", 7, None, ["HR"]])
def test_what_is_no_table(frame):
    with pytest.raises(TypeError, match=r"cases is .*; it takes a data frame"):
        cases_from_frame(frame, MODEL)


@pytest.mark.parametrize("column", ["LOW", b"LOW", 3, {"LOW", "HIGH"}, iter(["LOW"])])
def test_what_is_no_column(column):
    with pytest.raises(TypeError, match=r"the column 'HR' is .*; it takes a sequence with a cell for each case"):
        cases_from_frame({"HR": column}, MODEL)


def test_pandas_columns_report_their_own_rows():
    frame = pandas.DataFrame({"HR": [None, "LOW", None, "odd"]})
    with pytest.raises(InputError, match=r"row 3: .* 'odd'"):
        cases_from_frame(frame, MODEL)
    with pytest.raises(InputError, match="two columns of the frame are named 'HR'"):
        cases_from_frame(pandas.DataFrame([["LOW", "LOW"]], columns=["HR", "HR"]), MODEL)


def test_csv_details(tmp_path):
    path = tmp_path / "c.csv"
    path.write_bytes(b'\xef\xbb\xbfage , HR,"a,b"\r\n\r\n 3,LOW,"x""y"\r\n?, NORMAL ,?\r\nNA,*,\r\n')
    read = read_cases(path, MODEL)
    assert read.columns == (1, 0, 4)
    np.testing.assert_array_equal(read.values, [[3, 0, 1], [-1, 1, 0], [-1, -1, -1]])
    path.write_text("HR,age\n")
    assert read_cases(path, MODEL).values.shape == (0, 2)
    path.write_text(" a, b\n1,1\n")
    assert read_cases(path, Model([Variable("a", 2), Variable(" a", 2), Variable("b", 2)], [])).columns == (1, 2)


def test_whole_floats_of_pandas_are_integers(tmp_path):
    frame = pandas.DataFrame({"HR": ["LOW", "HIGH", None], "age": [3, None, 0]})
    frame.to_csv(tmp_path / "c.csv", index=False)
    assert "3.0" in (tmp_path / "c.csv").read_text()
    read = read_cases(tmp_path / "c.csv", MODEL)
    np.testing.assert_array_equal(read.values, cases_from_frame(frame, MODEL).values)
    model = Model([Variable("x", 2, ("1", "1.0"))], [])
    (tmp_path / "c.csv").write_text("x\n1.0\n1\n")
    np.testing.assert_array_equal(read_cases(tmp_path / "c.csv", model).values, [[1], [0]])


def test_many_rows(tmp_path):
    """More than one chunk; the error's line counts through all of them."""
    path = tmp_path / "c.csv"
    rows = ["LOW,1" if i % 2 else "HIGH,2" for i in range(20000)]
    path.write_text("\n".join(["HR,age", *rows]))
    read = read_cases(path, MODEL)
    assert read.values.shape == (20000, 2)
    np.testing.assert_array_equal(read.values.sum(axis=0), [20000, 30000])
    path.write_text("\n".join(["HR,age", *rows, "", "HIGH,7"]))
    with pytest.raises(FormatError, match=r"c\.csv:20003: column 'age': variable 'age' has no state '7'") as caught:
        read_cases(path, MODEL)
    assert caught.value.line == 20003


def test_blank_lines(tmp_path, monkeypatch):
    """However many there are; in one column, Arrow writes a missing cell as a blank line, other packages skip it."""
    monkeypatch.setattr("elimina.io.cases._ROWS_PER_BLOCK", 2)
    path = tmp_path / "c.csv"
    path.write_text("HR,age\nLOW,1\n\n\n\n\nHIGH,2\n\n")
    np.testing.assert_array_equal(read_cases(path, MODEL).values, [[0, 1], [2, 2]])
    path.write_text('HR\nLOW\n""\nNA\nHIGH\n\n\n')
    np.testing.assert_array_equal(read_cases(path, MODEL).values, [[0], [-1], [-1], [2]])
    path.write_text("HR\nLOW\n\nHIGH\n")
    with pytest.raises(FormatError, match=r"c\.csv:4: the line before is blank: write NA for a case"):
        read_cases(path, MODEL)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "c.csv:1: expected the names of variables in the first line"),
        ("HR,Age\n", "c.csv:1: the model has no variable 'Age'; did you mean 'age'"),
        ("HR,HR\n", "c.csv:1: column 2 is the second one named 'HR'"),
        (",HR\n0,LOW\n", "c.csv:1: column 1 has no name"),
        ("HR;age\nLOW;1\n", "c.csv:1: expected names separated by commas, found ';' between them"),
        ("patient\t HR\n1\tLOW\n", "c.csv:1: expected names separated by commas, found '\\t' between them"),
        ("HR,age\nLOW\n", "c.csv:2: expected 2 cells, one for each column, found 1"),
        ("HR,age\nLOW,1\nLOW,1,2\n", "c.csv:3: expected 2 cells, one for each column, found 3"),
        (
            "HR,age\nLOW,1\nMID,1\n",
            "c.csv:3: column 'HR': variable 'HR' has no state 'MID'; its states are 'LOW', 'NORMAL', 'HIGH'",
        ),
        ("HR,age\nLOW,-1\n", "c.csv:2: column 'age': variable 'age' has no state '-1'"),
        ("HR,age\nLOW,1.5\n", "c.csv:2: column 'age': variable 'age' has no state '1.5'"),
        ("HR,age\nLOW,4.0\n", "c.csv:2: column 'age': variable 'age' has no state '4.0'"),
        ("HR,age\n1.0,1\n", "c.csv:2: column 'HR': variable 'HR' has no state '1.0'"),
        ('HR\n"LOW\nage\n', "c.csv:3: "),
        ('HR\n"LOW"x\n', "c.csv:2: "),
        ('HR,age\n"\nLOW",1\nx,1\n', "c.csv:4: column 'HR': variable 'HR' has no state 'x'"),
    ],
)
def test_malformed_csv(tmp_path, text, problem):
    (tmp_path / "c.csv").write_text(text)
    with pytest.raises(FormatError) as caught:
        read_cases(tmp_path / "c.csv", MODEL)
    assert problem in str(caught.value)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=60), st.sampled_from([".csv", ".csv.gz", ".csv.xz", ".parquet"]))
def test_any_bytes(tmp_path_factory, data, suffix):
    path = tmp_path_factory.mktemp("cases") / f"c{suffix}"
    path.write_bytes(b"HR,age\n" + data if suffix == ".csv" else data)
    try:
        values = read_cases(path, MODEL).values
    except FormatError as error:
        problem = error
    else:
        problem = None
        assert values.shape[1] == 2
    assert problem is None or problem.path == str(path)


def test_files_that_cannot_be_read(tmp_path):
    for name in ("c.txt", "c", "c.csv.zip", "csv", "c.csv.7z"):
        with pytest.raises(InputError, match="cases are read from"):
            read_cases(tmp_path / name, MODEL)
    for name in ("c.csv", "c.parquet"):
        with pytest.raises(InputError, match="cannot read"):
            read_cases(tmp_path / name, MODEL)
    (tmp_path / "c.csv").write_bytes(b"HR\n\xff\n")
    with pytest.raises(FormatError, match="expected UTF-8"):
        read_cases(tmp_path / "c.csv", MODEL)


def test_parquet_types(tmp_path):
    columns = {
        "HR": pyarrow.array(["LOW", None, "HIGH"]).dictionary_encode(),
        "age": pyarrow.array([3, None, 0], pyarrow.int16()),
        "grade": pyarrow.array([5.0, None, 1.0]),
        "sick": pyarrow.array([True, None, False]),
    }
    table = pyarrow.table(columns)
    pyarrow.parquet.write_table(pyarrow.concat_tables([table, table.slice(0, 0), table]), tmp_path / "c.parquet")
    read = read_cases(tmp_path / "c.parquet", MODEL)
    assert read.columns == (0, 1, 2, 3)
    np.testing.assert_array_equal(read.values, [[0, 3, 2, 1], [-1, -1, -1, -1], [2, 0, 0, 0]] * 2)
    pyarrow.parquet.write_table(pyarrow.table({"HR": ["LOW", "x"]}), tmp_path / "c.parquet")
    with pytest.raises(FormatError, match=r"c\.parquet: row 1: variable 'HR' has no state 'x'"):
        read_cases(tmp_path / "c.parquet", MODEL)
    pyarrow.parquet.write_table(pyarrow.table({"HRR": ["LOW"]}), tmp_path / "c.parquet")
    with pytest.raises(FormatError, match=r"c\.parquet: the model has no variable 'HRR'"):
        read_cases(tmp_path / "c.parquet", MODEL)
    pyarrow.parquet.write_table(pyarrow.table({"HR": [["LOW"]]}), tmp_path / "c.parquet")
    with pytest.raises(FormatError, match=r"c\.parquet: "):
        read_cases(tmp_path / "c.parquet", MODEL)


ODD_COLUMNS = {
    "list": pyarrow.array([["LOW"], ["HIGH"]]),
    "fixed list": pyarrow.array([[1, 2], [3, 4]], pyarrow.list_(pyarrow.int64(), 2)),
    "struct": pyarrow.array([{"a": 1}, {"a": 2}]),
    "map": pyarrow.array([[("a", 1)], [("b", 2)]], pyarrow.map_(pyarrow.string(), pyarrow.int64())),
    "date": pyarrow.array([datetime.date(2026, 1, 1)] * 2),
    "decimal": pyarrow.array([decimal.Decimal("0.5")] * 2),
    "duration": pyarrow.array([datetime.timedelta(1)] * 2),
    "time": pyarrow.array([datetime.time(1)] * 2),
    "lists by number": pyarrow.DictionaryArray.from_arrays([0, 0], pyarrow.array([["LOW"]])),
}


@pytest.mark.parametrize("kind", ODD_COLUMNS)
def test_columns_without_states(kind):
    """Each type of Arrow has one error, which names the row and the variable."""
    frames = [pyarrow.table({"HR": ODD_COLUMNS[kind]})]
    with contextlib.suppress(ModuleNotFoundError):
        frames.append(importlib.import_module("polars").from_arrow(frames[0]))
    frames.append(frames[0].to_pandas())
    for frame in frames:
        with pytest.raises(InputError, match="row 0: variable 'HR' has no state"):
            cases_from_frame(frame, MODEL)


def test_runs_and_unions():
    texts = pyarrow.array(["LOW", None, "HIGH"])
    runs = pyarrow.RunEndEncodedArray.from_arrays(pyarrow.array([1, 3, 4], pyarrow.int32()), texts)
    assert cases_from_frame(pyarrow.table({"HR": runs}), MODEL).values.T.tolist() == [[0, -1, -1, 2]]
    which = pyarrow.array([0, 1], pyarrow.int8())
    union = pyarrow.UnionArray.from_sparse(which, [texts[:2], pyarrow.array([None, 7])])
    with pytest.raises(InputError, match="row 1: variable 'HR' has no state 7"):
        cases_from_frame(pyarrow.table({"HR": union}), MODEL)


class Protocol:
    """A frame with nothing but one of the protocols of data frames."""

    def __init__(self, name, frame):
        setattr(type(self), name, lambda self, *given, **named: getattr(frame, name)(*given, **named))


def frames_of(columns):
    """The same columns as frames of other packages than pandas."""
    table = pyarrow.table(columns)
    yield table
    yield table.to_batches()[0]
    yield type("Streams", (Protocol,), {})("__arrow_c_stream__", table)
    yield type("Interchange", (Protocol,), {})("__dataframe__", table)
    try:
        import polars
    except ModuleNotFoundError:
        return
    frame = polars.DataFrame(columns)
    yield frame
    texts = [name for name, column in columns.items() if isinstance(next(filter(None, column)), str)]
    yield frame.with_columns(polars.col(texts).cast(polars.Categorical))


def test_frames_of_other_packages():
    columns = {"HR": ["LOW", None, "HIGH"], "age": [3, None, 0], "grade": [5.0, None, 1.0], "sick": [True, None, False]}
    for frame in frames_of(columns):
        read = cases_from_frame(frame, MODEL)
        assert_equal(read, (0, 1, 2, 3), [[0, 3, 2, 1], [-1, -1, -1, -1], [2, 0, 0, 0]])
        with pytest.raises(InputError, match="indices of states are integers"):
            cases_from_frame(frame, MODEL, indices=True)
    for frame in frames_of({"HR": [2, None, 0], "grade": [-1, 1, 0]}):
        assert_equal(cases_from_frame(frame, MODEL, indices=True), (0, 2), [[2, -1], [-1, 1], [0, 0]])
    for frame in frames_of({"HR": ["LOW", "x"]}):
        with pytest.raises(InputError, match="row 1: variable 'HR' has no state 'x'"):
            cases_from_frame(frame, MODEL)
    for frame in frames_of({"HRR": ["LOW"]}):
        with pytest.raises(InputError, match="no variable 'HRR'"):
            cases_from_frame(frame, MODEL)
    assert cases_from_frame(pyarrow.table({}), MODEL).columns == ()


def test_a_frame_of_polars_is_answered():
    polars = pytest.importorskip("polars")
    model = elimina.Model.from_arrays({"a": 2}, [(["a"], [0.25, 0.75])], sense="probability")
    answer = elimina.JunctionTree(model).batch(polars.DataFrame({"a": [1, None]})).to_frame("polars")
    assert answer["a=1"].to_list() == [1.0, 0.75]


def test_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"reading a Parquet file needs pyarrow.*pip install 'elimina\[frames\]'"):
        read_cases(tmp_path / "c.parquet", MODEL)
