"""Files of posteriors: what was written reads back, chunk by chunk, and nothing is left after an error."""

from __future__ import annotations

import csv
import resource
import stat
import sys

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elimina._core import csv_lines
from elimina.errors import InputError
from elimina.io import posteriors as posterior_files
from elimina.io.posteriors import open_posteriors, posterior_columns, write_posteriors
from elimina.model.variable import Variable

VARIABLES = [Variable("HR", 2, ["LOW", "a,b"]), Variable("x", 3)]
COLUMNS = ["HR=LOW", "HR=a,b", "x=0", "x=1", "x=2"]
SUFFIXES = [".csv", ".csv.gz", ".csv.xz", ".parquet", ".npz"]


def read(path):
    """Names, posteriors and logarithms in a file, by other readers than ours."""
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return arrays["columns"].tolist(), arrays["posteriors"], arrays["log10_evidence"]
    if path.suffix == ".parquet":
        frame = pandas.read_parquet(path)
    else:
        frame = pandas.read_csv(path, dtype=str, keep_default_na=False).replace("", "nan")
    assert frame.columns[-1] == "log10_evidence"
    return list(frame.columns[:-1]), frame.iloc[:, :-1].to_numpy(dtype=float), frame.iloc[:, -1].to_numpy(dtype=float)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("lengths", [(), (1,), (3, 0, 4)])
def test_round_trip(tmp_path, suffix, dtype, lengths):
    rng = np.random.default_rng(5)
    chunks = [(rng.random((n, 5)).astype(dtype), rng.normal(size=n) * 1000) for n in lengths]
    for posteriors, logarithms in chunks:
        posteriors[-1:] = np.nan
        logarithms[-1:] = -np.inf
    path = tmp_path / f"p{suffix}"
    with open_posteriors(path, VARIABLES) as writer:
        for posteriors, logarithms in chunks:
            writer.write(posteriors, logarithms)
            assert not path.exists()
    names, posteriors, logarithms = read(path)
    assert names == COLUMNS == posterior_columns(VARIABLES)
    np.testing.assert_array_equal(
        posteriors.astype(dtype), np.concatenate([np.empty((0, 5), dtype), *(p for p, _ in chunks)])
    )
    np.testing.assert_array_equal(logarithms, np.concatenate([np.empty(0), *(z for _, z in chunks)]))
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@given(st.lists(st.floats(), min_size=1, max_size=12), st.integers(0, 17))
def test_numbers_are_written_as_python_writes_them(numbers, digits):
    values = np.array(numbers)
    texts = ["" if x != x else f"{x:.{digits}g}" if digits else repr(x) for x in numbers]
    lines = csv_lines(np.stack([values, values], axis=1), values, digits).decode()
    assert lines == "".join(f"{text},{text},{text}\n" for text in texts)
    assert csv_lines(np.empty((len(values), 0)), values, digits).decode() == "".join(f"{text}\n" for text in texts)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("has_errors", [False, True])
def test_digits(tmp_path, dtype, has_errors):
    values = np.array([[1 / 3, 2 / 3, 0, 1, 1e-9]], dtype=dtype)
    notes = (np.array(["estimated"]), np.array([0.0123456])) if has_errors else ()
    with open_posteriors(tmp_path / "p.csv", VARIABLES, has_errors=has_errors, digits=3) as writer:
        writer.write(values, np.array([-12.3456]), *notes)
    line = (tmp_path / "p.csv").read_text().splitlines()[1]
    assert line == "0.333,0.667,0,1,1e-09,-12.3" + (",estimated,0.0123" if has_errors else "")
    with pytest.raises(InputError, match="only numbers in CSV files have a number of digits"):
        open_posteriors(tmp_path / "p.npz", VARIABLES, digits=3)
    with pytest.raises(InputError, match="digits is 18"):
        open_posteriors(tmp_path / "p.csv", VARIABLES, digits=18)


def test_long_tables_are_written_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(posterior_files, "_CELLS_OF_TEXT", 13)
    values, logs = np.random.default_rng(1).random((11, 5)), np.arange(11.0)
    write_posteriors(tmp_path / "p.csv", VARIABLES, values, logs)
    _, read_values, read_logs = read(tmp_path / "p.csv")
    np.testing.assert_array_equal(read_values, values)
    np.testing.assert_array_equal(read_logs, logs)


def test_csv_text(tmp_path):
    write_posteriors(tmp_path / "p.csv", VARIABLES, np.array([[0.1, 0.9, 0, 1, 0]], dtype=np.float32), np.array([-0.5]))
    with (tmp_path / "p.csv").open(newline="") as stream:
        assert list(csv.reader(stream)) == [
            [*COLUMNS, "log10_evidence"],
            ["0.100000001", "0.899999976", "0", "1", "0", "-0.5"],
        ]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_nothing_is_left_after_an_error(tmp_path, suffix):
    def interrupted():
        with open_posteriors(tmp_path / f"p{suffix}", VARIABLES) as writer:
            writer.write(np.ones((1, 5)), np.ones(1))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with pytest.raises(InputError, match="has 5 columns, not 4"):
        write_posteriors(tmp_path / f"p{suffix}", VARIABLES, np.ones((1, 4)), np.ones(1))
    with pytest.raises(InputError, match=r"logarithms of shape \(2,\)"):
        write_posteriors(tmp_path / f"p{suffix}", VARIABLES, np.ones((1, 5)), np.ones(2))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_places_that_cannot_be_written(tmp_path, suffix):
    with pytest.raises(InputError, match=r"cannot write .*nowhere"):
        open_posteriors(tmp_path / "nowhere" / f"p{suffix}", VARIABLES)
    (tmp_path / f"p{suffix}").mkdir()
    with pytest.raises(InputError, match=r"cannot write .*p\."):
        write_posteriors(tmp_path / f"p{suffix}", VARIABLES, np.ones((1, 5)), np.ones(1))
    assert [p.name for p in tmp_path.iterdir()] == [f"p{suffix}"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_is_replaced_keeps_its_mode_and_a_link_its_name(tmp_path, suffix):
    (tmp_path / "old").write_text("old")
    (tmp_path / "old").chmod(0o600)
    link = tmp_path / f"p{suffix}"
    link.symlink_to("old")
    write_posteriors(link, VARIABLES, np.ones((1, 5)), np.ones(1))
    assert link.is_symlink()
    assert stat.S_IMODE((tmp_path / "old").stat().st_mode) == 0o600
    np.testing.assert_array_equal(read(link)[1], np.ones((1, 5)))
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["old", link.name])


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(("room", "rows"), [(0, 3), (1 << 12, 1000)])
def test_a_disk_that_is_full(tmp_path, suffix, room, rows):
    table = np.random.default_rng(0).random((rows, 5))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        with pytest.raises(InputError, match=r"cannot write .*p\."):
            write_posteriors(tmp_path / f"p{suffix}", VARIABLES, table, np.ones(rows))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["p", "p.txt", "p.npz.gz", "p.parquet.xz", "p.csv.zip"])
def test_unknown_suffixes(tmp_path, name):
    with pytest.raises(InputError, match="posteriors are written to"):
        open_posteriors(tmp_path / name, VARIABLES)


def test_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"writing a Parquet file needs pyarrow.*'elimina\[frames\]'"):
        open_posteriors(tmp_path / "p.parquet", VARIABLES)
