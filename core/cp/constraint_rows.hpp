// Constraints that have a file in propagators/. A row has the name of a constraint, its number of arguments, whether it
// has reified forms, and the function that posts it. Add a row for each new constraint.
#pragma once

#define ELIMINA_CONSTRAINT_ROWS(ROW)                                   \
  ROW("all_different_except_0", 1, false, post_all_different_except_0) \
  ROW("bin_packing_load", 3, false, post_bin_packing)                  \
  ROW("count_eq", 3, false, post_count)                                \
  ROW("cumulative", 4, false, post_cumulative)                         \
  ROW("diffn", 5, false, post_strict_boxes)                            \
  ROW("diffn_nonstrict", 5, false, post_boxes)                         \
  ROW("global_cardinality", 3, false, post_open_cardinality)           \
  ROW("global_cardinality_closed", 3, false, post_closed_cardinality)  \
  ROW("inverse", 2, false, post_inverse)                               \
  ROW("lex_less", 2, false, post_lex_less)                             \
  ROW("lex_lesseq", 2, false, post_lex_less_or_equal)                  \
  ROW("no_overlap", 3, false, post_optional_no_overlap)                \
  ROW("no_overlap_strict", 3, false, post_strict_no_overlap)           \
  ROW("nvalue", 2, false, post_distinct_values)                        \
  ROW("regular", 6, false, post_regular)                               \
  ROW("reservoir", 5, false, post_reservoir)                           \
  ROW("table_bool", 2, false, post_table)                              \
  ROW("table_int", 2, false, post_table)                               \
  ROW("table_starred", 3, false, post_starred_table)                   \
  ROW("transition_times", 4, false, post_transition_times)             \
  ROW("weighted_circuit", 6, false, post_weighted_circuit)
