"""Random FlatZinc models of every constraint."""

from __future__ import annotations

import random

# Arguments: i, b: a variable or constant; I, B: three of them (a number: how many); c, C: constants; s: a set.
_REIFIABLE = {
    **{f"int_{r}": "i i" for r in ("eq", "ne", "le", "lt")},
    **{f"bool_{r}": "b b" for r in ("eq", "ne", "le", "lt")},
    **{f"int_lin_{r}": "C I c" for r in ("eq", "ne", "le")},
    "set_in": "i s",
    "bool_clause": "B B",
}
_OTHERS = {
    "bool_lin_eq": "C B i",
    "bool_lin_le": "C B c",
    "bool2int": "b z",
    "bool_not": "b b",
    "bool_and": "b b b",
    "bool_or": "b b b",
    "bool_xor": "b b b",
    "array_bool_and": "B b",
    "array_bool_or": "B b",
    "array_bool_xor": "B",
    "bool_and_imp": "b b b",
    "bool_or_imp": "b b b",
    "bool_xor_imp": "b b b",
    "array_bool_and_imp": "B b",
    "array_bool_or_imp": "B b",
    **{f"int_{f}": "i i i" for f in ("plus", "minus", "times", "div", "mod", "pow", "max", "min")},
    "int_abs": "i i",
    "array_int_maximum": "i I",
    "array_int_minimum": "i I",
    "array_int_element": "i C i",
    "array_var_int_element": "i I i",
    "array_bool_element": "i K b",
    "array_var_bool_element": "i B b",
    "fzn_all_different_int": "I",
    "jacop_alldiff": "I4",
    "fzn_alldifferent_except_0": "I",
    "fzn_circuit": "I",
    "elimina_circuit": "I4",
    "fzn_subcircuit": "I",
    "elimina_inverse": "I I",
    "fzn_table_int": "I table",
    "fzn_table_bool": "B booltable",
    "fzn_regular": "I automaton",
    "fzn_cumulative": "I N N n",
    "fzn_count_eq": "I i i",
    "fzn_global_cardinality": "I cover I2",
    "fzn_global_cardinality_closed": "I cover I2",
    "fzn_nvalue": "i I",
    "fzn_lex_less_int": "I I2",
    "fzn_lex_lesseq_int": "I I",
    "fzn_lex_less_bool": "B B2",
    "fzn_lex_lesseq_bool": "B B",
    "elimina_bin_packing_load": "I2 I N",
}
_FOREIGN = {
    **dict.fromkeys(("gecode_all_different_int", "minicpp_all_different", "jacop_alldistinct"), "I"),
    **dict.fromkeys(("all_different", "alldifferent"), "I"),
    **dict.fromkeys((f"{p}_table_int" for p in ("jacop", "gecode", "chuffed", "ortools")), "I table"),
    "jacop_table_bool": "B booltable",
    **{f"gecode_table_int_{s}": "I table b" for s in ("reif", "imp")},
    **{f"gecode_table_bool_{s}": "B booltable b" for s in ("reif", "imp")},
    **dict.fromkeys((f"{p}_regular" for p in ("gecode", "chuffed", "ortools")), "I automaton"),
    "jacop_regular": "I automaton n",
    **dict.fromkeys(("jacop_cumulative", "cumulatives", "chuffed_cumulative"), "I N N n"),
    "chuffed_cumulative_vars": "I N N i",
    **dict.fromkeys(("count", "jacop_count_var", "ortools_count_eq", "ortools_count_eq_cst"), "I i i"),
    **dict.fromkeys(("count_reif", "count_imp", "count_eq_reif", "count_eq_imp"), "I i i b"),
    **dict.fromkeys(("jacop_count_reif", "jacop_count_var_reif"), "I i i b"),
    **dict.fromkeys(("jacop_nvalue", "nvalue", "ortools_nvalue"), "i I"),
    **dict.fromkeys(("jacop_all_equal_int", "all_equal_int", "fzn_all_equal_int"), "I"),
    **dict.fromkeys(("jacop_all_equal_int_reif", "all_equal_int_reif"), "I b"),
    **dict.fromkeys((f"{p}increasing{k}" for p in ("", "jacop_") for k in ("", "_int")), "I"),
    **dict.fromkeys(("decreasing", "decreasing_int"), "I"),
    **dict.fromkeys(("increasing_bool", "decreasing_bool", "jacop_increasing_bool"), "B"),
    **dict.fromkeys(("jacop_strictly_increasing", "strictly_increasing_int", "jacop_strictly_decreasing"), "I"),
    "strictly_decreasing_int": "I",
    "among": "i I s",
    "jacop_among": "I s i",
    "jacop_among_var": "I I2 i",
    **dict.fromkeys(("at_least_int", "at_most_int"), "n I c"),
    **dict.fromkeys(("jacop_atleast", "jacop_atmost"), "I c n"),
    **dict.fromkeys(("jacop_atleast_reif", "jacop_atmost_reif"), "I c n b"),
    **dict.fromkeys(("global_cardinality_low_up", "jacop_count_values_bounds"), "I cover N2 N2"),
    "global_cardinality_low_up_closed": "I cover N2 N2",
    "ortools_global_cardinality_low_up": "I cover N2 N2 k",
    "ortools_global_cardinality": "I cover I2 k",
    **dict.fromkeys(("jacop_count_values", "gecode_global_cardinality"), "I cover I2"),
    "gecode_global_cardinality_closed": "I cover I2",
    "jacop_gcc": "I I4 c",
    **dict.fromkeys(("diffn", "jacop_diff2_strict", "diffn_nonstrict", "jacop_list_diff2"), "I I N N"),
    "gecode_nooverlap": "I N I N",
    "jacop_diff2": "I8",
    **dict.fromkeys(("disjunctive", "disjunctive_strict", "gecode_schedule_unary"), "I N"),
    "chuffed_disjunctive_strict": "I N",
    **dict.fromkeys(("elimina_disjunctive_opt", "elimina_disjunctive_strict_opt"), "I N B"),
    **dict.fromkeys(("gecode_schedule_unary_optional", "jacop_disjunctive_optional"), "I N B"),
    "ortools_disjunctive_strict_opt": "B I N",
    "jacop_cumulative_optional": "I N N n B",
    "gecode_schedule_cumulative_optional": "I N N B n",
    "ortools_cumulative_opt": "B I N N n",
    **dict.fromkeys(("if_then_else_int", "jacop_if_then_else_int", "fzn_if_then_else_var_int"), "B I i"),
    **dict.fromkeys(("if_then_else_bool", "jacop_if_then_else_bool", "fzn_if_then_else_var_bool"), "B B b"),
    **dict.fromkeys(("member_int", "jacop_member_int"), "I i"),
    **dict.fromkeys(("member_bool", "jacop_member_bool"), "B b"),
    **{f"{p}member_int_reif": "I i b" for p in ("", "jacop_", "gecode_")},
    **{f"{p}member_bool_reif": "B b b" for p in ("", "jacop_", "gecode_")},
    **dict.fromkeys(("value_precede_int", "jacop_value_precede_int", "chuffed_value_precede"), "c c I"),
    **dict.fromkeys(("precede", "gecode_precede"), "I c c"),
    **{f"{p}value_precede_chain_int": "cover I" for p in ("", "jacop_")},
    "ortools_precede_chain_int": "cover I",
    **dict.fromkeys(("seq_precede_chain_int", "jacop_seq_precede_chain_int", "chuffed_seq_precede"), "I"),
    "inverse_offsets": "I c I c",
    **dict.fromkeys(("jacop_assignment", "ortools_inverse"), "I I c c"),
    "jacop_bin_packing": "I I2 N c",
    "gecode_bin_packing_load": "I2 I N c",
    "ortools_bin_packing_load": "I2 I pair N",
    "jacop_bin_packing_capacity": "I N2 N c",
    "ortools_bin_packing_capa": "N2 I pair N",
    "jacop_channel": "i B2 pair",
    "jacop_knapsack": "N N i i I",
    **dict.fromkeys((f"{p}_{m}imum" for p in ("jacop", "chuffed_array_int") for m in ("max", "min")), "i I"),
    **{f"jacop_{m}imum_arg_int": "I i c" for m in ("max", "min")},
    **{f"jacop_{m}imum_arg_bool": "B i c" for m in ("max", "min")},
    **{f"gecode_{m}imum_arg_int_offset": "I c i" for m in ("max", "min")},
    **{f"gecode_{m}imum_arg_bool_offset": "B c i" for m in ("max", "min")},
    "chuffed_maximum_arg_bool": "B c i",
    "ortools_arg_max_int": "I i c sign",
    "ortools_arg_max_bool": "B i c sign",
    **dict.fromkeys(("array_int_lt", "array_int_lq", "jacop_lex_less_int", "ortools_lex_lesseq_int"), "I I2"),
    **dict.fromkeys(("array_bool_lt", "array_bool_lq", "ortools_lex_less_bool", "jacop_lex_lesseq_bool"), "B B2"),
    "gecode_int_pow": "i i i",
    "gecode_circuit": "c I",
    **dict.fromkeys(("chuffed_circuit", "ortools_circuit", "chuffed_subcircuit", "ortools_subcircuit"), "I c"),
    "jacop_subcircuit": "I",
    **{
        f"int_lin_{r}{s}": f"C I c{b}"
        for r in ("lt", "ge", "gt")
        for s, b in (("", ""), ("_reif", " b"), ("_imp", " b"))
    },
    **{f"bool_lin_{r}{s}": f"C B i{b}" for r in ("lt", "ge", "gt") for s, b in (("", ""), ("_imp", " b"))},
    **{f"bool_sum_{r}": "B i" for r in ("eq", "ne", "le", "lt", "ge", "gt")},
}
SIGNATURES = {
    **_OTHERS,
    **_FOREIGN,
    **_REIFIABLE,
    **{f"{name}_reif": f"{kinds} b" for name, kinds in _REIFIABLE.items()},
    **{f"{name}_imp": f"{kinds} b" for name, kinds in _REIFIABLE.items()},
}


class Maker:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def one_of(self, names: str, constants: range | tuple[str, ...]) -> str:
        return self.rng.choice(names) if self.rng.random() < 0.8 else str(self.rng.choice(constants))

    def argument(self, kind: str) -> str:
        rng = self.rng
        letter, count = kind[0], int(kind[1:]) if kind[1:].isdigit() else 3
        if kind == "table":
            return str([rng.randint(-1, 3) for _ in range(3 * rng.randint(0, 6))])
        if kind == "booltable":
            return str([rng.random() < 0.5 for _ in range(3 * rng.randint(0, 5))]).lower()
        if kind == "automaton":
            return f"2, 3, {[rng.randint(0, 2) for _ in range(6)]}, 1, {rng.choice(['1..2', '{2}', '{}', '1..1'])}"
        if kind == "pair":
            return f"{(first := rng.randint(-1, 3))}..{first + 1}"
        if kind == "sign":
            return rng.choice(("1", "-1"))
        if kind == "cover":
            return str(rng.sample(range(-1, 4), 2))
        if letter in "IBCKN":
            return "[" + ", ".join(self.argument(letter.lower()) for _ in range(count)) + "]"
        return {
            "i": lambda: self.one_of("xyzw", range(-2, 5)),
            "b": lambda: self.one_of("abc", ("true", "false")),
            "z": lambda: self.rng.choice("xyz"),
            "c": lambda: str(rng.randint(-3, 4)),
            "k": lambda: rng.choice(("true", "false")),
            "n": lambda: str(rng.randint(0, 3)),
            "s": lambda: rng.choice(("0..2", "{0,2,3}", "{}", "2..1", "-1..9999999", "-1..999999999999", "{1}")),
        }[letter]()

    def domain(self) -> str:
        rng = self.rng
        if rng.random() < 0.5:
            lo = rng.randint(-2, 2)
            return f"{lo}..{lo + rng.randint(0, 3)}"
        return "{" + ",".join(map(str, sorted(rng.sample(range(-2, 5), rng.randint(1, 4))))) + "}"

    def tie(self) -> str:
        rng = self.rng
        if rng.random() < 0.3:
            return f"constraint {rng.choice(['bool_not', 'bool_eq'])}({', '.join(rng.sample('abc', 2))});"
        factors, names = f"[{rng.choice((1, -1))}, {rng.choice((1, -1))}]", ", ".join(rng.sample("xyzw", 2))
        return f"constraint int_lin_eq({factors}, [{names}], {rng.randint(-3, 5)});"

    def model(self, constraints: list[str], ties: int = 0) -> str:
        lines = [f"var {self.domain()}: {x} :: output_var;" for x in "xyzw"]
        lines += [f"var bool: {b} :: output_var;" for b in "abc"]
        lines += [self.tie() for _ in range(ties)]
        for name in constraints:
            arguments = ", ".join(self.argument(kind) for kind in SIGNATURES[name].split())
            lines.append(f"constraint {name}({arguments});")
        return "\n".join([*lines, "solve satisfy;"])
