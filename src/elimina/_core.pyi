"""elimina's compiled core."""

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, overload

import numpy
from numpy.typing import NDArray


class Stop:
    """A request to end the long calls of those threads that obey it."""

    def __init__(self) -> None: ...

    def request(self) -> None:
        """End them."""

    @property
    def requested(self) -> bool:
        """Whether they are to end."""

def obey(stop: Stop | None) -> None:
    """
    Let long calls from this thread end once `stop`, which the caller keeps alive, is requested; None: nothing ends them.
    """

def stopped() -> bool:
    """Whether long calls from this thread are to end."""

class Stopped(BaseException):
    pass

class TextError(ValueError):
    pass

class Text:
    """
    Reads tokens and numbers from bytes; every method but 'line' raises TextError.
    """

    def __init__(self, data: bytes, *, blanks: str = '', marks: str = '', quotes: bool = False, block_comments: bool = False, line_comments: bool = False, glued_minus: bool = False) -> None: ...

    @property
    def line(self) -> int:
        """Line of the last token read, from 1."""

    @property
    def left(self) -> int:
        """Number of bytes not yet read."""

    @property
    def quoted(self) -> bool:
        """Whether the last token was in quotes."""

    def at_end(self) -> bool:
        """Whether only blanks and comments are left."""

    def peek(self) -> bytes:
        """The next token, b'' at the end; stays unread."""

    def token(self, what: str) -> bytes: ...

    def integer(self, what: str) -> int: ...

    def real(self, what: str) -> float: ...

    def need(self, count: int, what: str) -> None:
        """Fail unless that many tokens can be in the rest."""

    def integers(self, count: int, what: str) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

    def reals(self, count: int, what: str) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

    def lists(self, count: int, bound: int, what: str) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
        """
        Lists 'k i1 .. ik' of distinct indices below bound: (offsets, concatenated members).
        """

    def tables(self, sizes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], total: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """
        Tables 'k v1 .. vk' with k == sizes[i], concatenated; total == sum(sizes).
        """

    def tuples(self, count: int, sizes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
        """Lines 'i1 .. ik cost': (flat int32 rows, int64 costs)."""

    def bif_rows(self, child_size: int, labels: Sequence[Sequence[str]]) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """
        The rest of a BIF probability block: (parents' flat indices, values, default row, table).
        """

    def bracket_items(self, as_words: bool = False) -> NDArray[numpy.int64] | NDArray[numpy.float64] | list[bytes]:
        """
        Items up to the closing bracket: an int64 array if all are integers, float64 if all are numbers, else a list of bytes.
        """

WORTH_A_SEARCH: float = 0.0002

SEARCH_SHARE: float = 0.25

def find_order(sizes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], members: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], *, rules: Sequence[str], anneal: bool, rounds: int, seconds: float, patience: float, limit: float, seed: int, threads: int) -> tuple:
    """
    An elimination order of little work, and what `messages` says of it; the arguments are trusted.
    """

def messages(sizes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], members: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple:
    """
    Most variables of a message along an order, each variable's message's cells (0 above 64 bits), and the separators of those above 64 bits.
    """

def without_barren(offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], members: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], children: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], wanted: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.uint32], dict(shape=(None,))]:
    """
    Scopes left, ascending, when those go, one after another, whose own variable has no other scope left and is not wanted. No scope names a variable twice, and each has its child, which no other one has.
    """

class TableList:
    """
    Tables as the core reads them. It keeps their arrays, not what was written to a table's attributes since.
    """

    def __init__(self, tables: Iterable) -> None:
        """List objects with the attributes of `elimina.table.Table`."""

    def replace(self, number: int, table: object) -> None:
        """Put another table of the same scope in the place of one."""

    def ends(self, sense: str) -> list:
        """
        For each table the smallest and the largest value that is not forbidden; None if every one is.
        """

    def values(self, assignment: Sequence[int]) -> list:
        """
        Each table's value at an assignment, which has a value index for each variable.
        """

    def groups(self) -> list:
        """
        For each group of tables whose scopes one of them contains its members, that one first; without tables of no variables.
        """

    def idle(self) -> list:
        """
        The dense tables of at most 2^20 cells that depend on some of their axes alone: number and the other axes.
        """

    def largest(self) -> int:
        """
        The first table of the most cells (counted up to 2^62); -1 if there is none.
        """

    def incumbent(self, sense: str, descent: int, moves: int, table: int, listed_table: int, all: int) -> tuple:
        """
        Find an assignment by a descent that visits so many cells, and as many tabu moves, on copies of the tables with at most so many cells (`all`: of all copies). Returns pairs of a variable and its value, and the cost above the tables' least costs; None if a table is left out or of floats, or the assignment is forbidden.
        """

    def join(self, sense: str, rule: str, limit: int, scope: Sequence[int], sizes: Sequence[int], arena: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu')], block: int) -> None:
        """
        Write all tables to an arena as one factor over a scope that contains theirs, the last variable fastest: see `encode`.
        """

    def encode(self, sense: str, rule: str, limit: int, member_starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], members: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], scopes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], sizes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], strides: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, arena: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu')], block: int) -> tuple:
        """
        Write factors to an arena: those with these numbers, or all. `rule`: `support`, `distances` (up to `limit`), `sums`, `logs` or `products`; `block`: cells that are worked on at a time. Returns (products) the largest and the smallest positive value of each factor, the powers of two that were taken out, and 1 where no positive product left the normal range, else 0.
        """

class PlannedTree:
    """
    A bucket tree over the scopes of a problem's factors, in elimination order.
    """

    def __init__(self, sizes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], members: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], kept: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], ibound: int | None, partition: Sequence[Sequence[Sequence[int]]] | None) -> None:
        """
        Eliminate symbolically; the arguments are trusted. Scope `f` is `members[starts[f]:starts[f + 1]]`.
        """

    @property
    def width(self) -> int:
        """Induced width."""

    @property
    def scopes(self) -> tuple:
        """Starts and members of the scopes, sorted by the order."""

    @property
    def variables(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]:
        """The variable that each node eliminates."""

    @property
    def parents(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]:
        """Each node's parent; -1 for a root."""

    @property
    def separators(self) -> tuple:
        """Starts and members of the nodes' separators."""

    @property
    def factors(self) -> tuple:
        """Starts and members of the nodes' factors."""

    @property
    def children(self) -> tuple:
        """Starts and members of the nodes' children."""

    def cliques(self) -> tuple:
        """
        Starts and members of the scopes and of the separators of the maximal cliques, and their parents; -1 for a root.
        """

    def central_order(self) -> list[int]:
        """
        An order of the same triangulation whose junction tree has the fewest levels.
        """

class PlannedSteps:
    """The steps of a plan before memory is laid out."""

    @property
    def most_tables(self) -> int:
        """Tables that a step reads at most."""

    @property
    def outputs(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """
        For each part of the answer its step, and the variable whose marginal it is (-1: none).
        """

    @property
    def tables(self) -> tuple:
        """
        Starts of each step's tables, their sources and factors, and each step's combinations.
        """

    def moved(self, sequence: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> PlannedSteps:
        """The same steps in another sequence."""

    def place(self, itemsize: int, keep: bool, levels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], runs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bandwidth: float, combinations: float, step: float, most_words: int) -> PlannedLayout:
        """
        Lay the steps' tables out in memory. `levels`: of the steps, empty: all 0; `runs`: how often the steps of each level run; `most_words`: of records, which are left out where there are more.
        """

def mini_buckets(scopes: Sequence[Sequence[int]], ibound: int) -> list[list[int]]:
    """
    Divide a bucket: each table, the largest first, joins the mini-bucket that it adds the fewest variables to.
    """

def plan_steps(tree: PlannedTree, passes: str, tables: int, levelled: bool, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], wanted: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], products: bool = False) -> PlannedSteps:
    """
    The steps over a tree. `passes`: `upward`, `lasting` (whose messages stay), `postorder`, `both` or `joint`. `products`: sides of buckets are joined early, for sum-product makes matrix products of them.
    """

def row_bounds(tree: PlannedTree, tables: int, cells: int) -> tuple:
    """
    Steps that bound what steps on rows do not know; and for each node the tables that bound its message, and those that bound the rest: a factor is its number, a message -1 less its step's.
    """

class Arena:
    """
    Allocator of spans of one block of memory, which reuses freed spans and records its peak.
    """

    def __init__(self, itemsize: int) -> None: ...

    def take(self, span: int) -> int:
        """Return the offset of a free span: the first that fits."""

    def seal(self) -> None:
        """Leave free spans below the height unused."""

    def give_back(self, offset: int, span: int) -> None:
        """Make a span free again, merged with its free neighbours."""

    @property
    def height(self) -> int:
        """Elements up to the end of the last span that was taken."""

class PlannedLayout:
    """Where the tables of a plan lie, and its steps as records."""

    @property
    def record_words(self) -> int:
        """Words of all records, also where they were left out."""

    @property
    def factor_cells(self) -> float:
        """Elements that the factors take."""

    @property
    def arena_cells(self) -> float:
        """Elements of all tables that are there at a time."""

    @property
    def largest(self) -> float:
        """Cells of the largest table."""

    @property
    def work(self) -> float:
        """Combinations of output cells and eliminated values, over all runs."""

    @property
    def operations(self) -> float:
        """One for each table and combination."""

    @property
    def seconds(self) -> float:
        """Estimated time of the steps, over all runs."""

    @property
    def offsets(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Of the factors."""

    @property
    def spans(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Of the factors."""

    @property
    def strides(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Of the factors' axes, one factor after the other."""

    @property
    def words(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """The records."""

    @property
    def starts(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Where each record starts."""

    @property
    def out_spans(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Elements of each step's output."""

    @property
    def factors(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]:
        """The factor of each table that is read; -1: a message."""

class CasePlanner:
    """
    Plans what is left of a network when some variables are observed; one call at a time.
    """

    def __init__(self, sizes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], members: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], strides: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], least: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], asked: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], places: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], first: int, last: int) -> None:
        """
        Scopes in compressed rows, their strides and places in an arena, log2 of each factor's least value; what is asked for and where it goes; the part of the arena that messages may take.
        """

    def measure(self, values: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[float, int] | None:
        """
        The work of the plan for what these values observe (-1: nothing), and its number of steps; None if none fits.
        """

class CaseNetwork:
    """
    A small network that answers one set of observations after another; one call at a time.
    """

    def __init__(self, tables: TableList, sense: str, rule: str, sizes: Sequence[int], cells: int, work: float) -> None:
        """
        Factors of a model and the sizes of all variables; the cells that tables and messages may take, and the combinations of a run. `rule`: `products` of probabilities, or `support` to count what is allowed.
        """

    def answer(self, evidence: dict[int, int]) -> tuple[NDArray[numpy.float64], float, float, int, int, int, int] | None:
        """
        Posteriors of all variables given observations, variable -> index of its state. Returns the probabilities, one variable after the other, the natural logarithm of the sum of everything, the sum itself where a float holds it, the induced width, the cells of the largest table, the combinations, and the cells of all tables; None where that takes too much room or time, or may have left the range of doubles.
        """

class DenseSession:
    """A packed program translated for an arena; one run at a time."""

    def __init__(self, semiring: str, parameter: float, integer_parameter: int, words: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], outputs: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], arena: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu')], peaks: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], threads: int) -> None: ...

    def fix(self, values: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """
        Compute only cells with these values from now on; -1 where none is given. What depends on a changed one must run again.
        """

    def decode(self, variables: int) -> NDArray[numpy.int32]:
        """
        Return the best assignment of so many variables: walk the steps from the roots to the leaves; each value is the first best one, given those of the step's axes.
        """

    def run_cases(self, variables: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], given: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], first: int, zones: Annotated[NDArray, dict(shape=(None, None), order='C', device='cpu')], peaks: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> None:
        """
        For each row of values: `fix` them, run all steps, copy the arena from `first` on into `zones` and the peaks into `peaks`.
        """

    def run_planned(self, planner: CasePlanner, variables: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], given: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], zones: Annotated[NDArray, dict(shape=(None, None), order='C', device='cpu')], logs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], sound: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """
        For each row of values: run a plan of its own on the factors in the arena (sum-product), write the marginals into `zones`, the natural logarithm of the sum into `logs`, and whether both can be relied on into `sound`.
        """

    def run(self, steps: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, progress: object | None = None) -> None:
        """
        Run all steps, or those of some ascending numbers, on what is in the arena now; `progress` gets the work done so far.
        """

def exact_count(words: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], roots: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], factors: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> bytes:
    """
    Run a packed program over factors of zeros and ones in integers of any length; return the product of some steps' outputs, the least byte first.
    """

def dense_instruction_set() -> str:
    """The instruction set that the dense executor uses here."""

def rows_join(semiring: str, parameter: float, integer_parameter: int, left_keys: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], left_values: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], right_keys: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], right_values: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], group: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], low: int, eliminate: bool, stage: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], budget: float, integer_budget: int, most: int, threads: int) -> tuple[Annotated[NDArray[numpy.uint64], dict(shape=(None, None))], Annotated[NDArray, dict(shape=(None,))], int]:
    """
    Join two sorted tables in one layout: keys, values, candidates. `low`: the bits of the least significant variable, which may be eliminated. OverflowError: more than `most` rows.
    """

def rows_project(semiring: str, parameter: float, integer_parameter: int, keys: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], values: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], low: int, threads: int) -> tuple[Annotated[NDArray[numpy.uint64], dict(shape=(None, None))], Annotated[NDArray, dict(shape=(None,))], int]:
    """Eliminate the least significant variable of a sorted table."""

def rows_semi_join(keys: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], values: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], others: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], group: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int) -> tuple[Annotated[NDArray[numpy.uint64], dict(shape=(None, None))], Annotated[NDArray, dict(shape=(None,))], int]:
    """
    Keep the rows of a sorted table whose bits of `group` occur in another one.
    """

def rows_sorted(keys: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], threads: int) -> bool:
    """Whether no key is less than the one before it."""

def rows_sort(keys: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], values: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int) -> tuple[Annotated[NDArray[numpy.uint64], dict(shape=(None, None))], Annotated[NDArray, dict(shape=(None,))], int]:
    """Sort rows by key."""

def rows_move(keys: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], segments: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], words: int, threads: int) -> Annotated[NDArray[numpy.uint64], dict(shape=(None, None))]:
    """Keys in another layout of `words` words."""

def rows_from_dense(semiring: str, parameter: float, integer_parameter: int, cells: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], axes: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], sizes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], words: int) -> tuple[Annotated[NDArray[numpy.uint64], dict(shape=(None, None))], Annotated[NDArray, dict(shape=(None,))], int]:
    """
    The feasible cells of a dense table as sorted rows; `axes`: terms, the most significant field first.
    """

def rows_to_dense(keys: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], values: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], terms: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], cells: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write rows into the cells of a dense table."""

FORBIDDEN_COST: int = 1125899906842624

def minimise_costs(sizes: Sequence[int], scopes: Sequence[Sequence[int]], tables: Sequence[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]], constant: int, upper: int, seconds: float, most_rows: int, seed: int, poll: object) -> dict:
    """
    Least sum of costs (of 0 to 2^38, or FORBIDDEN_COST) below `upper`, by elimination that drops rows by bounds. `poll` gets both bounds now and then, and the best value if it is new (else None), and ends it by False; so does an interruption.
    """

def shift_costs(sizes: Sequence[int], scopes: Sequence[Sequence[int]], tables: Sequence[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]], upper: int, seconds: float, least_gain: int, poll: object) -> tuple:
    """
    An equivalent sum of costs (as of `minimise_costs`, which may add up to 2^48 here): a lower bound, and pairs of scope and table, first those of several variables in the given sequence, then one for each variable. Assignments from `upper` on are lost.
    """

class LocalSearch:
    """
    Local search for a small sum of costs (infinite: forbidden): tabu moves, and neighbourhoods solved by elimination, in turns.
    """

    def __init__(self, sizes: Sequence[int], scopes: Sequence[Sequence[int]], tables: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], seed: int) -> None: ...

    def start(self, value: Sequence[int]) -> None:
        """Go on from an assignment, which may be forbidden."""

    def run(self, seconds: float, cells: float) -> bool:
        """
        Search until so many cells were visited, and return whether a better assignment was found. Runs that no time limit ends are reproducible.
        """

    @property
    def best(self) -> list[int]:
        """The best assignment since the start."""

def search_tree(arena: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], tables: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], sizes: Sequence[int], parents: Sequence[int], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], contexts: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], forbidden: float, sign: float, integral: bool, upper: float, start: Sequence[int] | None, seconds: float, nodes: float, threads: int, memory: float, seed: int, poll: object) -> dict:
    """
    Least sum of costs below `upper`, by AND/OR branch and bound with the messages of mini-buckets as bounds. `poll` gets both bounds, the nodes and the best value if it is new (else None) now and then, and ends it by False; so does an interruption. For each table, `tables` has: offset, home, the home's stride, origin (-1: a factor), k, and k times a variable and its stride. `starts`: of each variable's ancestors in `contexts`, and the end.
    """

class Reduction:
    """
    Exact elimination of variables with at most three neighbours, in an order; at least one variable stays.
    """

    def __init__(self, sizes: Sequence[int], scopes: Sequence[Sequence[int]], tables: Sequence[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]], order: Sequence[int]) -> None: ...

    @property
    def kept(self) -> list[int]:
        """Variables of the rest, by their numbers in the model."""

    @property
    def rest(self) -> tuple:
        """Sizes, scopes and tables of the rest."""

    def extend(self, value: Sequence[int]) -> list[int]:
        """Return the best assignment of all variables, given one of the rest."""

class ConsistencySearch:
    """
    Least sum of costs (from 0 on, or FORBIDDEN_COST) below `upper`, by branch and bound with soft local consistency.
    """

    def __init__(self, sizes: Sequence[int], scopes: Sequence[Sequence[int]], tables: Sequence[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]], order: Sequence[int], upper: int, step: int, slack: int, threads: int) -> None: ...

    def run(self, seconds: float, nodes: float, memory: float, poll: object) -> dict:
        """
        Goes on until so many nodes since the beginning. `poll` gets the bound, the best cost found, the nodes and the best value if it is new (else None) now and then, and ends it by False; so does an interruption.
        """

    def know(self, cost: int, value: Sequence[int]) -> None:
        """
        Accepts only solutions that are better than a given one, and tries its values first.
        """

    def at_root(self, value: Sequence[int]) -> int:
        """What an assignment costs by the costs shifted."""

    def take_open(self) -> tuple:
        """
        What is left to search, which is no longer its own: bounds and numbers of decisions, and all decisions, three words each.
        """

    def replace_open(self, bounds: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], lengths: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], decisions: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Search these instead, which another search of the same model has left."""

    @property
    def top(self) -> int:
        """What costs as much or more is not looked for."""

    @property
    def kept(self) -> list[list[int]]:
        """The values that are left at the root."""

    @property
    def bound(self) -> int:
        """No assignment costs less, or less than what is looked for."""

class CpDevice:
    """What filters AllDifferents beside the CPU's own search."""

    @overload
    def __init__(self, threads: int) -> None:
        """The device's code by threads of this processor, which is for tests."""

    @overload
    def __init__(self, ordinal: int, module: bytes, name: str) -> None:
        """A CUDA device; the kernel's module, and its name there."""

class CpSolver:
    """Variables and constraints; closed once it is searched or propagated."""

    def __init__(self) -> None: ...

    def new_variables(self, count: int, lo: int, hi: int) -> int:
        """The first one's number."""

    def new_variable_of(self, values: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)]) -> int: ...

    def post(self, name: str, arguments: Sequence[Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)]]) -> None: ...

    def device_delay(self) -> float:
        """
        Seconds of search after which a device is worth looking for: 0 where an AllDifferent asks for one.
        """

    def accelerate_later(self, find: object) -> None:
        """After that time; `find` returns a device, or None."""

    def accelerate(self, device: CpDevice, measures: bool) -> None:
        """
        After all is posted; `measures`: only where the device is faster, or asked for.
        """

    def device_calls(self) -> tuple[int, float]:
        """How many calls a device has answered, and their seconds."""

    def propagate(self) -> bool:
        """
        Brings the domains to a fixpoint and closes the solver; False: infeasible.
        """

    def decide(self, var: int, value: int, is_: bool) -> bool:
        """
        Gives or takes a value, and propagates; False: that fails. One call of undo each.
        """

    def undo(self) -> None: ...

    def domains(self) -> list:
        """The values of each variable."""

    def sizes(self) -> list[int]:
        """How many values each variable has."""

    def values_of(self, var: int) -> list[int]: ...

    def bounds_of(self, var: int) -> tuple[int, int]: ...

class CpSearch:
    """A search for one solution after the other."""

    def __init__(self, solvers: tuple, rules: Sequence[tuple[Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], str, str]], minimise: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)] | None, restarts: tuple[str, float, float] | None, relax: tuple[Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], float | None] | None, free: bool, seed: int, seconds: float, nodes: float, failures: float) -> None:
        """
        In as many threads as there are solvers, each of which was made in the same way.
        """

    def next(self, poll: object) -> str:
        """`poll` ends the search by False; so does an interruption."""

    def solution(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """The values of all variables."""

    def statistics(self) -> dict: ...

def cp_constraint_names() -> list[str]: ...

class TourSearch:
    """
    An iterated local search for a short tour; distances are symmetric. After `seconds`, or by a signal, calls end early.
    """

    def __init__(self, distances: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], seed: int, seconds: float = float('inf')) -> None: ...

    def kick(self, count: int, seconds: float = float('inf')) -> None:
        """Try so many changes of a few edges."""

    def start(self, tour: Sequence[int]) -> None:
        """Go on from another tour."""

    @property
    def length(self) -> int: ...

    @property
    def tour(self) -> list[int]: ...

    @property
    def edges(self) -> tuple[list[int], list[int]]:
        """Both ends of the tour's edges, then of edges between neighbours."""

class RootBound:
    """
    A lower bound on all tours, and the edges that good ones may have. After `seconds`, or by a signal, calls end early.
    """

    def __init__(self, distances: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], from_: Sequence[int], to: Sequence[int], seconds: float = float('inf')) -> None: ...

    def improve(self, upper: int, steps: int, seconds: float = float('inf')) -> bool:
        """Take so many steps; False: nothing changed."""

    @property
    def bound(self) -> int | None: ...

    @property
    def edges(self) -> int: ...

    @property
    def multipliers(self) -> tuple[list[int], int]:
        """
        The multipliers of the cities, in parts of a unit, and the number of parts.
        """

    def survivors(self, upper: int, most: int, seconds: float = float('inf')) -> tuple[list[int], list[int], list[int]] | None:
        """
        Both ends and the lengths of all edges of tours up to `upper`; None: more than `most`, or no time.
        """

class FlatZinc:
    """A FlatZinc model, as text or JSON, read and posted."""

    def __init__(self, text: bytes, poll: object) -> None:
        """
        Raises ValueError, 'LINE:COLUMN: problem'; StopIteration where `poll` returned False.
        """

    def search(self, free: bool, seed: int, seconds: float, threads: int, relax: bool, poll: object) -> CpSearch:
        """
        By the model's annotations; once. StopIteration where `poll` returned False.
        """

    def device_delay(self) -> float:
        """As of CpSolver."""

    def accelerate_later(self, find: object) -> None:
        """As of CpSolver."""

    def accelerate(self, device: CpDevice, measures: bool) -> None:
        """As of CpSolver."""

    def show(self, search: CpSearch) -> bytes:
        """The last solution, in FlatZinc's form."""

    def objective(self, search: CpSearch) -> int:
        """Its value in the last solution."""

    def is_unbounded(self, search: CpSearch) -> bool:
        """
        Whether the last solution's objective is at the end of what an integer without bounds may be.
        """

    @property
    def is_satisfaction(self) -> bool: ...

    @property
    def notes(self) -> list[str]:
        """What of the annotations is ignored."""

    @property
    def parse_seconds(self) -> float: ...

    @property
    def variables(self) -> int: ...

    @property
    def propagators(self) -> int: ...

def flatzinc_record(text: bytes) -> tuple[list[tuple[int, int]], list[tuple[str, list[NDArray[numpy.int64]]]], list[tuple[str, NDArray[numpy.int64]]], list[tuple[str, bool, NDArray[numpy.int64], list[tuple[int, int]]]], int, NDArray[numpy.int64] | None]:
    """
    Bounds of variables; names and arguments of constraints; names of variables; outputs with their index sets; 1, -1 or 0 for minimise, maximise or satisfy; the objective. Views are rows of variable (-1: a constant), scale and offset. Raises ValueError.
    """

class Traversal:
    """One variable's part in the construction of a pseudo-tree."""

    def __init__(self, variable: int, rank: int, neighbours: Sequence[int], prefers_reached: bool) -> None:
        """
        A variable, its rank, and those that share a cost function with it, sorted; true if the token goes first to those neighbours that have most visited ones of their own, whatever their ranks.
        """

    def start(self) -> list:
        """
        Messages to the neighbours: a target, the number of the kind, and two numbers.
        """

    def receive(self, source: int, kind: int, first: int, second: int) -> list:
        """React to a message from another variable."""

    @property
    def visit(self) -> int:
        """
        Number of the token's first visit within this component, from 0 on; -1 before it.
        """

    @property
    def parent(self) -> int:
        """The variable that the token came from; -1 if there is none."""

    @property
    def is_done(self) -> bool:
        """True if the token has left for good."""

    @property
    def children(self) -> list[int]:
        """The variables that the token went to from here, in this order."""

    @property
    def above(self) -> dict:
        """Neighbours that are ancestors, and their visits."""

    def __getstate__(self) -> list[int]: ...

    def __setstate__(self, arg: Sequence[int], /) -> None: ...

def agree_on_tree(traversals: Sequence[Traversal], owners: Sequence[int], agents: int, order: str, delay: float, jitter: float, seed: int, poll: Callable) -> tuple:
    """
    Run traversals that have not started to their end, as agents of one process. `poll`: called with 0 now and then; the run ends where it raises. Returns the messages between agents by kind, and the clock of each agent in seconds.
    """
