"""Constraint models as FlatZinc."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from elimina.cp.branching import SearchRule
from elimina.cp.expressions import Expression
from elimina.cp.hints import Hints
from elimina.cp.posting import Declaration, Post, is_view, view_of
from elimina.cp.unbounded import UNBOUNDED_LIMIT
from elimina.cp.views import View, views_of
from elimina.errors import UnsupportedError

Arguments = Sequence[npt.NDArray[Any]]


class WrittenModel(NamedTuple):
    """Parts of a constraint model that FlatZinc can hold.

    Attributes:
        variables: Declarations.
        names: Number of a variable -> its name.
        posts: Constraints.
        objective: Expression that is minimised or maximised; None if there is none.
        sign: 1 if it is minimised, -1 if it is maximised.
        rules: Rules of the search.
        hints: Values that are tried first.
    """

    variables: Sequence[Declaration]
    names: Mapping[int, str]
    posts: Sequence[Post]
    objective: Expression | None
    sign: int
    rules: Sequence[SearchRule]
    hints: Hints


class _Form(NamedTuple):
    """Form of a constraint in FlatZinc.

    Attributes:
        name: Name of the constraint in FlatZinc.
        shifts: Position of an argument -> number to add, where FlatZinc counts from 1.
        annotation: Annotation, with the colons.
        ones: Position of an argument that is left out if all of its items are 1; None if there is none.
        other_name: Name in FlatZinc if some of these items are not 1; empty if FlatZinc has no such form.
    """

    name: str
    shifts: Mapping[int, int] = {}
    annotation: str = ""
    ones: int | None = None
    other_name: str = ""


_SIDES = ("", "_cpu", "_gpu")

_FORMS: dict[str, _Form] = {
    "all_different_value": _Form("fzn_all_different_int", annotation=" :: value_propagation"),
    "all_different_bounds": _Form("fzn_all_different_int", annotation=" :: bounds_propagation"),
    **{
        f"all_different_domain{side}": _Form("fzn_all_different_int", annotation=side.replace("_", " :: "))
        for side in _SIDES
    },
    "all_different_except_0": _Form("fzn_alldifferent_except_0"),
    **{
        f"{name}{side}": _Form(f"fzn_{name}", {0: 1}, side.replace("_", " :: "))
        for name in ("circuit", "subcircuit")
        for side in _SIDES
    },
    "inverse": _Form("fzn_inverse", {0: 1, 1: 1}),
    "bin_packing_load": _Form("fzn_bin_packing_load", {1: 1}),
    "lex_less": _Form("fzn_lex_less_int"),
    "lex_lesseq": _Form("fzn_lex_lesseq_int"),
    "diffn": _Form("fzn_diffn", ones=4),
    "diffn_nonstrict": _Form("fzn_diffn_nonstrict", ones=4),
    "no_overlap": _Form("fzn_disjunctive", ones=2, other_name="elimina_no_overlap"),
    "no_overlap_strict": _Form("fzn_disjunctive_strict", ones=2, other_name="elimina_no_overlap_strict"),
    **{
        name: _Form(f"elimina_{name}")
        for name in ("reservoir", "table_starred", "transition_times", "weighted_circuit")
    },
    **{
        name: _Form(f"fzn_{name}")
        for name in (
            *("count_eq", "cumulative", "global_cardinality", "global_cardinality_closed", "nvalue", "regular"),
            *("table_bool", "table_int"),
        )
    },
    "int_lin_eq_domain": _Form("int_lin_eq", annotation=" :: domain"),
}
"""Forms of constraints whose names or arguments differ from those of the core."""

_SINGLE_ARGUMENTS: dict[str, frozenset[int]] = {
    "count_eq": frozenset({1, 2}),
    "cumulative": frozenset({3}),
    "nvalue": frozenset({0}),
    "regular": frozenset({1, 2, 4}),
    "reservoir": frozenset({3, 4}),
    "weighted_circuit": frozenset({5}),
    "array_int_maximum": frozenset({0}),
    "array_int_minimum": frozenset({0}),
}
"""Positions of single values among the arguments of constraints that take lists."""


def flatzinc_of(model: WrittenModel) -> str:
    """Return a constraint model as FlatZinc.

    Raises:
        UnsupportedError: A constraint has no form in FlatZinc.
    """
    return _Writer(model).text()


class _Writer:
    def __init__(self, model: WrittenModel) -> None:
        self._model = model
        self._taken: set[str] = set()
        self._declarations: list[str] = []
        self._constraints: list[str] = []
        # Names of the FlatZinc variables that equal views: integer variables, and Boolean ones.
        self._views: dict[View, str] = {}
        self._booleans: dict[View, str] = {}
        for number, variable in enumerate(model.variables):
            name = self._fresh(model.names.get(number, "x"))
            output = " :: output_var" if number in model.names else ""
            self._declarations.append(f"var {_domain(variable)}: {name}{output};")
            self._views[View(number, 1, 0)] = name

    def text(self) -> str:
        for name, arguments in self._model.posts:
            self._post(name, arguments)
        annotations = [*self._searches(), *self._warm_starts()]
        goal = "satisfy"
        if self._model.objective is not None:
            goal = f"{'minimize' if self._model.sign > 0 else 'maximize'} {self._total(self._model.objective)}"
        solve = f"solve {''.join(f':: {annotation} ' for annotation in annotations)}{goal};"
        return "\n".join([*self._declarations, *self._constraints, solve, ""])

    def _total(self, x: Expression) -> str:
        """Return the variable of an objective: for a sum, a new variable."""
        if is_view(x):
            return self._variable(View(*view_of(x)[0].tolist()))
        lo, hi = x.model.bounds(x)
        total = self._fresh("objective")
        self._declarations.append(f"var {lo}..{hi}: {total} :: var_is_introduced;")
        factors = ", ".join(map(str, [*x.terms.values(), -1]))
        names = ", ".join([*(self._views[View(var, 1, 0)] for var in x.terms), total])
        self._constraints.append(f"constraint int_lin_eq([{factors}], [{names}], {-x.constant});")
        return total

    def _fresh(self, name: str) -> str:
        word = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
        word = word if word[:1].isalpha() else f"x_{word}".rstrip("_")
        if word in _KEYWORDS or word in self._taken:
            number = len(self._taken)
            while f"{word}_{number}" in self._taken:
                number += 1
            word = f"{word}_{number}"
        self._taken.add(word)
        return word

    def _post(self, name: str, arguments: Arguments) -> None:
        base = name.removesuffix("_reif").removesuffix("_imp")
        controlled = base != name
        form = _FORMS.get(name, _Form("int_eq" if name == "bool2int" else name))
        if form.ones is not None:
            are_present = all(view == View(-1, 0, 1) for view in views_of(arguments[form.ones]))
            if are_present:
                arguments = [argument for position, argument in enumerate(arguments) if position != form.ones]
            elif not form.other_name:
                raise UnsupportedError(
                    f"FlatZinc has no {name} of optional boxes: post it as a condition instead, "
                    "m.add(cp.no_overlap_2d(...), only_if=1)"
                )
            else:
                form = _Form(form.other_name)
        texts = []
        for position, argument in enumerate(arguments):
            views = [view._replace(offset=view.offset + form.shifts.get(position, 0)) for view in views_of(argument)]
            is_control = controlled and position == len(arguments) - 1
            is_boolean = is_control or _takes_booleans(base, position)
            words = [self._boolean(view) if is_boolean else self._variable(view) for view in views]
            if base == "set_in" and position == 1:
                texts.append("{" + ", ".join(words) + "}")
            elif is_control or _is_single(base, position, argument):
                texts.append(words[0])
            else:
                texts.append(f"[{', '.join(words)}]")
        self._constraints.append(f"constraint {form.name}({', '.join(texts)}){form.annotation};")

    def _variable(self, view: View) -> str:
        if view.var < 0:
            return str(view.offset)
        if view not in self._views:
            name = self._views[view] = self._fresh("view")
            declared = self._model.variables[view.var]
            ends = sorted((view.scale * declared.lo + view.offset, view.scale * declared.hi + view.offset))
            self._declarations.append(f"var {ends[0]}..{ends[1]}: {name} :: var_is_introduced;")
            inner = self._views[View(view.var, 1, 0)]
            self._constraints.append(f"constraint int_lin_eq([{view.scale}, -1], [{inner}, {name}], {-view.offset});")
        return self._views[view]

    def _boolean(self, view: View) -> str:
        if view.var < 0:
            return ("false", "true")[view.offset]
        if view not in self._booleans:
            name = self._booleans[view] = self._fresh("holds")
            self._declarations.append(f"var bool: {name} :: var_is_introduced;")
            self._constraints.append(f"constraint bool2int({name}, {self._variable(view)});")
        return self._booleans[view]

    def _searches(self) -> Iterable[str]:
        searches = [
            f"int_search([{', '.join(map(self._variable, views_of(rows)))}], {variable}, {value}, complete)"
            for rows, variable, value in self._model.rules
        ]
        return [f"seq_search([{', '.join(searches)}])"] if len(searches) > 1 else searches

    def _warm_starts(self) -> Iterable[str]:
        hints = self._model.hints
        if not hints:
            return []
        names = ", ".join(self._variable(view) for view in hints)
        return [f"warm_start([{names}], [{', '.join(map(str, hints.values()))}])"]


_KEYWORDS = frozenset(
    (
        *("annotation", "any", "array", "bool", "case", "constraint", "default", "diff", "div", "else", "elseif"),
        *("endif", "enum", "false", "float", "function", "if", "in", "include", "int", "intersect", "let", "list"),
        *("maximize", "minimize", "mod", "not", "of", "op", "opt", "output", "par", "predicate", "record", "satisfy"),
        *("set", "solve", "string", "subset", "superset", "symdiff", "test", "then", "true", "tuple", "type", "union"),
        *("var", "where", "xor"),
    )
)


def _domain(variable: Declaration) -> str:
    if variable.values is not None:
        return "{" + ", ".join(map(str, variable.values)) + "}"
    if (variable.lo, variable.hi) == (-UNBOUNDED_LIMIT, UNBOUNDED_LIMIT):
        return "int"
    return f"{variable.lo}..{variable.hi}"


def _takes_booleans(base: str, position: int) -> bool:
    """Return whether an argument is Boolean in FlatZinc, where the core has integers of 0 and 1."""
    if "_lin_" in base or base == "bool2int":
        return False
    if base.endswith("_bool_element"):
        return position > 0
    return base.startswith(("bool_", "array_bool_")) or base == "table_bool"


def _is_single(base: str, position: int, argument: npt.NDArray[np.signedinteger[Any]]) -> bool:
    """Return whether an argument is one value, and not a list of one."""
    if base in _SINGLE_ARGUMENTS:
        return position in _SINGLE_ARGUMENTS[base]
    if base in _FORMS and base != "int_lin_eq_domain":
        return False
    if "_lin_" in base:
        return position > 1
    if base == "bool_clause" or base == "array_bool_xor":
        return False
    if base.endswith("_element"):
        return position != 1
    if base.startswith("array_bool_"):
        return position > 0
    return True
