"""TSPLIB files: symmetric travelling salesman problems and their tours (Reinelt, ORSA Journal on Computing 3, 1991)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from elimina import arguments
from elimina._core import TextError
from elimina.cp.tour_distances import DISTANCE_RULES, MAX_DISTANCE, distance_matrix
from elimina.cp.tour_problem import Distances, Points, TourProblem
from elimina.errors import FormatError, InputError, MemoryLimitError, UnsupportedError, source_text
from elimina.io.files import load, save
from elimina.number_texts import bytes_text, counted
from elimina.system import available_memory, memory_errors_in_words

MAX_CITIES = 46_340
"""Largest number of cities with fewer than 2^31 pairs."""
FORMATS = {
    "FULL_MATRIX": "full",
    "UPPER_ROW": "upper",
    "LOWER_COL": "upper",
    "LOWER_ROW": "lower",
    "UPPER_COL": "lower",
    "UPPER_DIAG_ROW": "upper diagonal",
    "LOWER_DIAG_COL": "upper diagonal",
    "LOWER_DIAG_ROW": "lower diagonal",
    "UPPER_DIAG_COL": "lower diagonal",
}
_KEYS = (
    *("NAME", "COMMENT", "TYPE", "DIMENSION", "EDGE_WEIGHT_TYPE", "EDGE_WEIGHT_FORMAT", "EDGE_DATA_FORMAT"),
    *("NODE_COORD_TYPE", "DISPLAY_DATA_TYPE", "CAPACITY"),
)
_FREE_TEXT = ("NAME", "COMMENT")
_ENTRY = re.compile(r"([A-Za-z_]+(?:_[23]D)?)\s*(?:[:=]\s*|(?<=\s)|$)(.*)")
"""A key in any case and its value, with a colon, an equals sign or blanks between them (as LKH reads them)."""
_SECTIONS = (
    *("NODE_COORD_SECTION", "EDGE_WEIGHT_SECTION", "DISPLAY_DATA_SECTION", "FIXED_EDGES_SECTION", "TOUR_SECTION"),
    *("EDGE_DATA_SECTION", "DEPOT_SECTION", "DEMAND_SECTION"),
)


class _TourLines:
    """The lines of a file: keys with values, and sections of numbers."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = str(path)
        try:
            self._lines = load(arguments.file("path", path)).decode(errors="replace").splitlines()
        except TextError as error:
            raise FormatError(self.path, None, str(error)) from None
        self.line = 0
        self.lines_of: dict[str, int] = {}
        self.values: dict[str, str] = {}

    def fail(self, problem: str, line: int | None = None) -> FormatError:
        return FormatError(self.path, max(self.line, 1) if line is None else line, problem)

    def unsupported(self, problem: str, line: int | None = None) -> UnsupportedError:
        return UnsupportedError(
            f"{source_text(self.path)}:{self.line if line is None else line}: unsupported: {problem}"
        )

    def sections(self) -> Iterator[str]:
        """Yield the names of the sections; entries that precede them go to `values`."""
        while self.line < len(self._lines):
            text = self._lines[self.line].strip()
            self.line += 1
            if text.upper() == "EOF":
                return
            if not text:
                continue
            entry = _ENTRY.fullmatch(text)
            name, value = (entry[1].upper(), entry[2]) if entry else ("", "")
            if name in _SECTIONS and not value:
                if name in self.lines_of:
                    raise self.fail(f"a second {name}; the first one is in line {self.lines_of[name]}")
                self.lines_of[name] = self.line
                yield name
            elif name in _KEYS:
                if name not in _FREE_TEXT and self.values.get(name, value).upper() != value.upper():
                    raise self.fail(f"a second {name}; the first one is in line {self.lines_of[name]}")
                self.values[name], self.lines_of[name] = value, self.line
            else:
                raise self.fail(f"expected 'KEY : value' or a section of a TSPLIB file, found {text[:40]!r}")

    @property
    def words(self) -> dict[str, str]:
        """The values of the keys, in capital letters."""
        return {name: value.upper() for name, value in self.values.items()}

    def numbers(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Return the numbers up to the next key or section, and the line of each."""
        values: list[float] = []
        lines: list[int] = []
        while self.line < len(self._lines):
            words = self._lines[self.line].split()
            if words and (words[0][0].isalpha() and words[0].lower() not in ("nan", "inf", "infinity")):
                break
            self.line += 1
            for word in words:
                values.append(self._number(word))
                lines.append(self.line)
        return np.array(values), np.array(lines, dtype=np.int64)

    def _number(self, word: str) -> float:
        try:
            value = float(word)
        except ValueError:
            raise self.fail(f"expected a number, found {word[:40]!r}") from None
        if not abs(value) < 2**53 or "_" in word:
            raise self.fail(f"expected a number within 2^53, found {word[:40]!r}")
        return value


class _TourFile:
    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.lines = _TourLines(path)
        self.points: dict[str, Points] = {}
        self.weights: tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]] | None = None
        self.fixed: list[tuple[int, int]] = []
        self.tour: list[int] | None = None

    def read(self) -> None:
        for section in self.lines.sections():
            if section in ("NODE_COORD_SECTION", "DISPLAY_DATA_SECTION"):
                self.points[section] = self._read_points(section)
            elif section == "EDGE_WEIGHT_SECTION":
                self.weights = self.lines.numbers()
            elif section == "FIXED_EDGES_SECTION":
                self.fixed = self._read_fixed()
            elif section == "TOUR_SECTION":
                self.tour = self._read_tour()
            else:
                raise self.lines.unsupported(section)

    def kind(self) -> str:
        """Return the first word of the type; ``TSP`` if the file names none."""
        return next(iter(self.lines.words.get("TYPE", "").split()), "TSP")

    def dimension(self) -> int:
        text = self.lines.values.get("DIMENSION")
        if text is None:
            raise self.lines.fail("expected a DIMENSION before the data")
        line = self.lines.lines_of["DIMENSION"]
        if not text.isdecimal() or not text.isascii() or len(text) > 9 or int(text) < 1:
            raise self.lines.fail(f"expected a number of cities from 1 on, found {text[:40]!r}", line)
        if int(text) > MAX_CITIES:
            raise self.lines.unsupported(f"{int(text):,} cities; at most {MAX_CITIES:,} are supported", line)
        return int(text)

    def _check_memory(self, n: int) -> None:
        """Refuse cities if their distances do not fit into memory, before the system kills the process."""
        needed, available = n * n * np.dtype(np.int32).itemsize, available_memory()
        if needed > available:
            raise MemoryLimitError(
                f"{self.lines.path}:{self.lines.lines_of['DIMENSION']}: the distances of {n:,} cities take "
                f"{bytes_text(needed)}, and {bytes_text(available)} are free: use a machine with more memory"
            )

    def _whole(self, value: float, line: int, low: int, high: int, what: str) -> int:
        if value != int(value) or not low <= value <= high:
            raise self.lines.fail(f"expected {what} from {low} to {high}, found {value:g}", line)
        return int(value)

    def _read_points(self, section: str) -> Points:
        n, kind = self.dimension(), self.lines.words.get("EDGE_WEIGHT_TYPE", "")
        if kind and kind != "EXPLICIT":
            self._check_rule(kind)
        width = 3 if section == "NODE_COORD_SECTION" and kind.endswith("_3D") else 2
        start = self.lines.line
        values, lines = self.lines.numbers()
        if len(values) != n * (width + 1):
            line = int(lines[-1]) if len(lines) else start
            raise self.lines.fail(
                f"expected {n} cities with a number and {width} coordinates, found {counted(len(values), 'number')}",
                line,
            )
        rows = values.reshape(n, width + 1)
        points = np.full((n, width), np.nan)
        for row, line in zip(rows, lines[:: width + 1], strict=True):
            city = self._whole(row[0], int(line), 1, n, "a city's number") - 1
            if not np.isnan(points[city, 0]):
                raise self.lines.fail(f"city {city + 1} has coordinates already", int(line))
            points[city] = row[1:]
        return points

    def _read_fixed(self) -> list[tuple[int, int]]:
        n = self.dimension()
        values, lines = self.lines.numbers()
        if len(values) % 2 != 1 or values[-1] != -1:
            raise self.lines.fail("expected pairs of cities, and -1 at their end")
        ends = [self._whole(x, int(k), 1, n, "a city") - 1 for x, k in zip(values[:-1], lines, strict=False)]
        return list(zip(ends[::2], ends[1::2], strict=True))

    def _read_tour(self) -> list[int]:
        values, lines = self.lines.numbers()
        if len(values) and values[-1] == -1:
            values = values[:-1]
        n = self.dimension() if "DIMENSION" in self.lines.values else len(values)
        visited: set[int] = set()
        for value, line in zip(values, lines, strict=False):
            city = self._whole(value, int(line), 1, n, "a city")
            if city in visited:
                raise self.lines.fail(f"city {city} is in the tour twice", int(line))
            visited.add(city)
        if len(visited) != n or n == 0:
            raise self.lines.fail(f"expected a tour of {n} cities, found {len(visited)}")
        return [int(value) - 1 for value in values]

    def picture(self) -> Points | None:
        """Return the coordinates for a picture; None if the file has none.

        Latitudes go upwards, and longitudes to the right.
        """
        if "DISPLAY_DATA_SECTION" in self.points:
            return self.points["DISPLAY_DATA_SECTION"]
        points = self.points.get("NODE_COORD_SECTION")
        if points is None:
            return None
        is_geographical = self.lines.words.get("EDGE_WEIGHT_TYPE") == "GEO"
        return points[:, ::-1] if is_geographical else points[:, :2]

    def distances(self) -> Distances:
        n, kind = self.dimension(), self.lines.words.get("EDGE_WEIGHT_TYPE")
        if kind is None:
            raise self.lines.fail("expected an EDGE_WEIGHT_TYPE")
        self._check_memory(n)
        if kind == "EXPLICIT":
            return self._explicit(n)
        self._check_rule(kind)
        points = self.points.get("NODE_COORD_SECTION")
        if points is None:
            raise self.lines.fail(f"expected a NODE_COORD_SECTION, since distances are {kind}")
        if kind == "GEO" and np.abs(points).max() > 360:
            line = self.lines.lines_of["NODE_COORD_SECTION"]
            raise self.lines.fail("expected latitudes and longitudes within 360 degrees", line)
        try:
            return distance_matrix(points, kind)
        except InputError as error:
            raise self.lines.fail(str(error), self.lines.lines_of["NODE_COORD_SECTION"]) from None

    def _check_rule(self, kind: str) -> None:
        if kind not in DISTANCE_RULES:
            raise self.lines.unsupported(f"EDGE_WEIGHT_TYPE {kind}", self.lines.lines_of["EDGE_WEIGHT_TYPE"])

    def _explicit(self, n: int) -> Distances:
        form = self.lines.words.get("EDGE_WEIGHT_FORMAT")
        if form is None:
            line = self.lines.lines_of["EDGE_WEIGHT_TYPE"]
            raise self.lines.fail("expected an EDGE_WEIGHT_FORMAT, since distances are EXPLICIT", line)
        if form not in FORMATS:
            raise self.lines.unsupported(f"EDGE_WEIGHT_FORMAT {form}", self.lines.lines_of["EDGE_WEIGHT_FORMAT"])
        if self.weights is None:
            raise self.lines.fail("expected an EDGE_WEIGHT_SECTION, since distances are EXPLICIT")
        values, lines = self.weights
        shape = FORMATS[form]
        count = {"full": n * n, "upper": n * (n - 1) // 2, "lower": n * (n - 1) // 2}.get(shape, n * (n + 1) // 2)
        if len(values) != count:
            line = int(lines[-1]) if len(lines) else self.lines.lines_of["EDGE_WEIGHT_SECTION"]
            raise self.lines.fail(
                f"expected {count} distances ({form} of {n} cities), found {len(values)}, the last one here", line
            )
        bad = np.flatnonzero((values != np.floor(values)) | (np.abs(values) > MAX_DISTANCE))
        if len(bad):
            raise self.lines.fail(
                f"expected whole distances within 2^31, found {values[bad[0]]:.17g}", int(lines[bad[0]])
            )
        integers = values.astype(np.int32)
        if shape == "full":
            return self._checked(integers.reshape(n, n), lines)
        matrix = np.zeros((n, n), dtype=np.int32)
        skip = 0 if "diagonal" in shape else 1
        triangle = np.triu_indices(n, skip) if "upper" in shape else np.tril_indices(n, -skip)
        matrix[triangle] = integers
        matrix.T[triangle] = integers
        np.fill_diagonal(matrix, 0)
        return matrix

    def _checked(self, matrix: Distances, lines: npt.NDArray[np.int64]) -> Distances:
        unequal = np.argwhere(matrix != matrix.T)
        if len(unequal):
            i, j = (int(x) for x in unequal[0])
            raise self.lines.fail(
                f"the distance from {i + 1} to {j + 1} is {matrix[i, j]}, back it is {matrix[j, i]}: "
                "a TSP is symmetric",
                int(lines[i * len(matrix) + j]),
            )
        np.fill_diagonal(matrix, 0)
        return matrix


@memory_errors_in_words("while it read the tour problem", None)
def read_tsp(path: str | os.PathLike[str]) -> TourProblem:
    """Read a symmetric problem (.tsp; also .gz, .xz).

    Distances are EUC, MAN, MAX (2D and 3D), CEIL_2D, GEO, ATT or EXPLICIT, rounded as the TSPLIB documentation says.

    Raises:
        FormatError: The file is malformed; the message names the line.
        UnsupportedError: The problem or its distances are of a type that is not supported.
        InputError: The file cannot be read.
        MemoryLimitError: Memory ran out.

    Examples:
        >>> from elimina import cp
        >>> problem = cp.read_tsp("examples/towns.tsp")
        >>> problem.name, problem.cities
        ('towns', 30)
    """
    reader = _TourFile(path)
    reader.read()
    lines = reader.lines
    if reader.kind() != "TSP":
        raise lines.unsupported(f"TYPE {lines.values['TYPE']}; it has to be TSP", lines.lines_of["TYPE"])
    distances = reader.distances()
    name = lines.values.get("NAME", source_text(Path(path).name))
    return TourProblem(name, distances, reader.picture(), reader.fixed)


def read_tour(path: str | os.PathLike[str]) -> list[int]:
    """Read a tour (.tour, .opt.tour); its cities count from 0.

    Raises:
        FormatError: The file is malformed; the message names the line.
        InputError: The file cannot be read.

    Examples:
        >>> from elimina import cp
        >>> cp.write_tour("square.tour", "square", [0, 2, 1, 3], 10)
        >>> cp.read_tour("square.tour")
        [0, 2, 1, 3]
    """
    reader = _TourFile(path)
    reader.read()
    if reader.tour is None:
        raise reader.lines.fail("expected a TOUR_SECTION")
    return reader.tour


def write_tour(path: str | os.PathLike[str], name: str, tour: Sequence[int], length: int) -> None:
    """Write a tour of cities that count from 0; the file appears only once it is complete.

    Raises:
        InputError: The file cannot be written.

    Examples:
        >>> from pathlib import Path
        >>> from elimina import cp
        >>> cp.write_tour("square.tour", "square", [0, 2, 1, 3], 10)
        >>> Path("square.tour").read_text().split()[-6:]
        ['1', '3', '2', '4', '-1', 'EOF']
    """
    head = [f"NAME : {name}.tour", f"COMMENT : length {length}", "TYPE : TOUR", f"DIMENSION : {len(tour)}"]
    lines = [*head, "TOUR_SECTION", *(str(city + 1) for city in tour), "-1", "EOF"]
    save(arguments.file("path", path), [line + "\n" for line in lines])
