#include "translations.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace elimina::cp::flatzinc {

Argument listed(const Ends& range) {
  constexpr Value kMost = 1 << 24;
  const auto [first, last] = range;
  if (last - first >= kMost) throw Refused("a range has at most 2^24 values, not " + std::to_string(last - first + 1));
  Argument result;
  for (Value value = first; value <= last; ++value) result.push_back(constant(value));
  return result;
}

const Argument& Translation::list(std::size_t i) const {
  if (ranges_[i] && arguments_[i].empty()) arguments_[i] = listed(*ranges_[i]);
  return arguments_[i];
}

std::optional<Ends> Translation::range(std::size_t i) const {
  if (ranges_[i]) return ranges_[i];
  const Argument& values = arguments_[i];
  if (values.empty()) return Ends{1, 0};
  const Ends ends{values.front().offset, values.back().offset};
  const bool has_gaps = ends.second - ends.first + 1 != static_cast<Value>(values.size());
  return has_gaps ? std::nullopt : std::optional(ends);
}

void Translation::expect(std::size_t count) const {
  if (arguments_.size() != count)
    throw Refused("expected " + std::to_string(count) + " arguments, found " + std::to_string(arguments_.size()));
}

View Translation::view(std::size_t i) const {
  if (list(i).size() != 1) throw Refused("argument " + std::to_string(i + 1) + " is one value");
  return list(i)[0];
}

Value Translation::value(std::size_t i) const {
  const View x = view(i);
  if (x.var >= 0) throw Refused("argument " + std::to_string(i + 1) + " is an integer");
  return x.offset;
}

Argument Translation::shifted(std::size_t i, Value by) const {
  Argument result = list(i);
  for (View& x : result) x = x + by;
  return result;
}

View Translation::truth(const std::string& name, std::vector<Argument> arguments) const {
  const View b = boolean();
  arguments.push_back({b});
  post(name + "_reif", arguments);
  return b;
}

namespace {

using T = const Translation&;

Argument single(View x) { return {x}; }
Argument single(Value value) { return {constant(value)}; }

Argument ones(std::size_t count) { return Argument(count, constant(1)); }

Argument negated(const Argument& xs) {
  Argument result;
  for (const View x : xs) result.push_back(-x);
  return result;
}

void same_length(T t, std::size_t i, std::size_t k) {
  if (t.list(i).size() != t.list(k).size())
    throw Refused("arguments " + std::to_string(i + 1) + " and " + std::to_string(k + 1) + " have different lengths");
}

// Posts a constraint of the file under another name. `order`: for each argument of the posted constraint, its position
// among the arguments in the file, which has `count` of them.
template <std::size_t Count>
void renamed(T t, const std::string& name, const std::size_t (&order)[Count], std::size_t count = Count) {
  t.expect(count);
  std::vector<Argument> arguments;
  for (const std::size_t i : order) arguments.push_back(t.list(i));
  t.post(name, arguments);
}

// Posts a circuit whose list numbers its nodes from `first`; the solver numbers them from 0.
void circuit(T t, const std::string& name, std::size_t list, Value first) {
  t.post(name + t.side(), {t.shifted(list, -first)});
}

// Posts that two arrays are inverse functions. The indices of the first array begin at `first`, those of the second one
// at `inverse_first`.
void inverse(T t, Value first, Value inverse_first) {
  t.post("inverse", {t.shifted(0, -inverse_first), t.shifted(1, -first)});
}

void bins(T t, const Argument& loads, std::size_t bin, Value first, std::size_t sizes) {
  t.post("bin_packing_load", {loads, t.shifted(bin, -first), t.list(sizes)});
}

// Makes a load variable for each bin, from 0 to the bin's capacity.
Argument loads_within(T t, std::size_t capacities) {
  Argument loads;
  for (const View c : t.list(capacities)) {
    if (c.offset < 0) throw Refused("a capacity is at least 0");
    loads.push_back(t.integer(0, c.offset));
  }
  return loads;
}

View count_of(T t, const Argument& xs, View value) {
  const View count = t.integer(0, static_cast<Value>(xs.size()));
  t.post("count_eq", {xs, single(value), single(count)});
  return count;
}

// Posts the reified or half-reified form of a count.
void count_if(T t, const char* name) {
  t.expect(4);
  t.post(name, {single(count_of(t, t.list(0), t.view(1))), t.list(2), t.list(3)});
}

void cardinality(T t, bool closed) {
  t.post(closed ? "global_cardinality_closed" : "global_cardinality", {t.list(0), t.list(1), t.list(2)});
}

void cardinality_within(T t, bool closed) {
  same_length(t, 1, 2);
  same_length(t, 1, 3);
  const auto count_limit = static_cast<Value>(t.list(0).size());
  Argument counts;
  for (std::size_t i = 0; i < t.list(1).size(); ++i) {
    const View count = counts.emplace_back(t.integer(0, count_limit));
    t.post("int_le", {single(t.list(2)[i]), single(count)});
    t.post("int_le", {single(count), single(t.list(3)[i])});
  }
  t.post(closed ? "global_cardinality_closed" : "global_cardinality", {t.list(0), t.list(1), counts});
}

View is_one_of(T t, View x, const Argument& values) {
  Argument hits;
  for (const View value : values) hits.push_back(t.truth("int_eq", {single(x), single(value)}));
  const View b = t.boolean();
  t.post("array_bool_or", {hits, single(b)});
  return b;
}

// Returns the Boolean of a view's membership in a sorted set; a range takes two comparisons, since it may be long.
View is_in(T t, View x, std::size_t values) {
  const std::optional<Ends> range = t.range(values);
  if (!range) return t.truth("set_in", {single(x), t.list(values)});
  const auto [first, last] = *range;
  if (first > last) return constant(0);
  const View b = t.boolean();
  t.post("bool_and", {single(t.truth("int_le", {single(first), single(x)})),
                      single(t.truth("int_le", {single(x), single(last)})), single(b)});
  return b;
}

void among(T t, std::size_t n, std::size_t xs, std::size_t values) {
  Argument inside;
  for (const View x : t.list(xs)) inside.push_back(is_in(t, x, values));
  t.post("bool_lin_eq", {ones(inside.size()), inside, t.list(n)});
}

// Posts a comparison of each element of a list with the next one.
void chain(T t, const char* name, bool descends) {
  t.expect(1);
  const Argument& xs = t.list(0);
  for (std::size_t i = 1; i < xs.size(); ++i)
    t.post(name, {single(xs[descends ? i : i - 1]), single(xs[descends ? i - 1 : i])});
}

void all_equal_if(T t) {
  t.expect(2);
  Argument pairs;
  for (const View x : t.list(0)) pairs.push_back(t.truth("int_eq", {single(t.list(0)[0]), single(x)}));
  t.post("array_bool_and", {pairs, t.list(1)});
}

// Posts that a sum is at most a bound. `at_least` reverses the comparison; a gap of 1 makes it strict.
void sum_at_most(T t, const std::string& suffix, bool at_least, Value gap) {
  t.expect(suffix.empty() ? 3 : 4);
  const View bound = t.view(2);
  std::vector<Argument> arguments{at_least ? negated(t.list(0)) : t.list(0), t.list(1),
                                  single((at_least ? -bound : bound) - gap)};
  if (!suffix.empty()) arguments.push_back(t.list(3));
  t.post("int_lin_le" + suffix, arguments);
}

// Posts a comparison of the number of true Booleans with a number.
void boolean_sum(T t, const std::string& relation, bool at_least, Value gap) {
  t.expect(2);
  Argument factors = ones(t.list(0).size());
  const View bound = t.view(1);
  t.post("int_lin_" + relation,
         {at_least ? negated(factors) : factors, t.list(0), single((at_least ? -bound : bound) - gap)});
}

// Posts boxes that do not overlap. `lists`: positions of the arguments with the origins on both axes, then the sizes.
void boxes(T t, const char* name, const std::array<std::size_t, 4>& lists) {
  std::vector<Argument> arguments;
  for (const std::size_t number : lists) arguments.push_back(t.list(number));
  arguments.push_back(ones(arguments[0].size()));
  t.post(name, arguments);
}

// Posts tasks that run one after another; if `occurs` is empty, all tasks occur.
void in_turn(T t, const char* name, std::size_t starts, std::size_t durations, const Argument& occurs) {
  t.post(name, {t.list(starts), t.list(durations), occurs.empty() ? ones(t.list(starts).size()) : occurs});
}

// Posts tasks that share a capacity; those that do not occur have no demand.
void optional_cumulative(T t, std::size_t starts, std::size_t occurs, std::size_t capacity) {
  const Argument& all = t.list(starts + 2);
  same_length(t, starts + 2, occurs);
  Argument demands;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const View b = t.list(occurs)[i], demand = all[i];
    constexpr Value kMost = Value{1} << 42;
    const View present_demand =
        demands.emplace_back(t.integer(0, demand.var < 0 ? std::max<Value>(demand.offset, 0) : kMost));
    t.post("int_times", {single(b), single(demand), single(present_demand)});
  }
  t.post("cumulative", {t.list(starts), t.list(starts + 1), demands, t.list(capacity)});
}

// Posts that a view has the value of the first true condition. Arguments: conditions, the value of each condition, the
// view.
void first_of(T t) {
  t.expect(3);
  same_length(t, 0, 1);
  Argument before;
  for (std::size_t i = 0; i < t.list(0).size(); ++i) {
    Argument reasons = before;
    reasons.push_back(t.truth("int_eq", {single(t.view(2)), single(t.list(1)[i])}));
    t.post("bool_clause", {reasons, single(t.list(0)[i])});
    before.push_back(t.list(0)[i]);
  }
}

// Posts the index of the first largest element or, with `least`, of the first smallest one. Indices begin at `first`.
void extreme_index(T t, std::size_t index, Value first, bool least) {
  const Argument xs = least ? negated(t.list(0)) : t.list(0);
  if (xs.empty()) throw Refused("an extreme of no variables does not exist");
  t.post("int_le", {single(first), t.list(index)});
  t.post("int_le", {t.list(index), single(first + static_cast<Value>(xs.size()) - 1)});
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const View chosen = t.truth("int_eq", {t.list(index), single(first + static_cast<Value>(i))});
    for (std::size_t k = 0; k < xs.size(); ++k)
      if (k != i) t.post(k < i ? "int_lt_imp" : "int_le_imp", {single(xs[k]), single(xs[i]), single(chosen)});
  }
}

Argument hits(T t) {
  Argument result;
  for (const View x : t.list(0)) result.push_back(t.truth("int_eq", {single(x), t.list(1)}));
  return result;
}

// Posts a reified table: the Boolean equals or implies that a tuple is one of the table's rows.
void table_if(T t, const char* name) {
  t.expect(3);
  const Argument &xs = t.list(0), &rows = t.list(1);
  if (xs.empty() || rows.size() % xs.size() != 0) throw Refused("each row has a value for each variable");
  Argument matches;
  for (std::size_t row = 0; row < rows.size(); row += xs.size()) {
    Argument equal;
    for (std::size_t i = 0; i < xs.size(); ++i)
      equal.push_back(t.truth("int_eq", {single(xs[i]), single(rows[row + i])}));
    const View match = matches.emplace_back(t.boolean());
    t.post("array_bool_and", {equal, single(match)});
  }
  t.post(name, {matches, t.list(2)});
}

// Posts that `later` occurs only after `earlier` has occurred.
void precede(T t, View earlier, View later, const Argument& xs) {
  View has_occurred = constant(0);
  for (const View x : xs) {
    t.post("bool_le", {single(t.truth("int_eq", {single(x), single(later)})), single(has_occurred)});
    const View next = t.boolean();
    t.post("bool_or", {single(has_occurred), single(t.truth("int_eq", {single(x), single(earlier)})), single(next)});
    has_occurred = next;
  }
}

void precede_in_chain(T t, const Argument& values, const Argument& xs) {
  for (std::size_t i = 1; i < values.size(); ++i) precede(t, values[i - 1], values[i], xs);
}

// Posts that each value above 1 occurs only after the value below it has occurred.
void precede_in_sequence(T t) {
  t.expect(1);
  View highest = constant(0);
  for (std::size_t i = 0; i < t.list(0).size(); ++i) {
    const View x = t.list(0)[i];
    t.post("int_lin_le", {{constant(1), constant(-1)}, {x, highest}, single(Value{1})});
    const View next = t.integer(0, static_cast<Value>(i) + 1);
    t.post("int_max", {single(highest), single(x), single(next)});
    highest = next;
  }
}

const std::unordered_map<std::string_view, Translate>& table() {
  static const std::unordered_map<std::string_view, Translate> result{
      // Names of MiniZinc's library, and names that several solvers share. Prefixes (`kPrefixes` in instance.cpp) are
      // left out of these names.
      {"all_different_int", [](T t) { t.expect(1), t.post("all_different" + t.consistency(), {t.list(0)}); }},
      {"all_different", [](T t) { t.expect(1), t.post("all_different" + t.consistency(), {t.list(0)}); }},
      {"alldifferent", [](T t) { t.expect(1), t.post("all_different" + t.consistency(), {t.list(0)}); }},
      {"circuit", [](T t) { t.expect(1), circuit(t, "circuit", 0, 1); }},
      {"subcircuit", [](T t) { t.expect(1), circuit(t, "subcircuit", 0, 1); }},
      {"inverse", [](T t) { t.expect(2), inverse(t, 1, 1); }},
      {"bin_packing_load", [](T t) { t.expect(3), bins(t, t.list(0), 1, 1, 2); }},
      {"alldifferent_except_0", [](T t) { renamed(t, "all_different_except_0", {0}); }},
      {"lex_less_int", [](T t) { renamed(t, "lex_less", {0, 1}); }},
      {"lex_less_bool", [](T t) { renamed(t, "lex_less", {0, 1}); }},
      {"lex_lesseq_int", [](T t) { renamed(t, "lex_lesseq", {0, 1}); }},
      {"lex_lesseq_bool", [](T t) { renamed(t, "lex_lesseq", {0, 1}); }},
      {"all_equal_int", [](T t) { chain(t, "int_eq", false); }},
      {"all_equal_int_reif", all_equal_if},
      {"increasing", [](T t) { chain(t, "int_le", false); }},
      {"increasing_int", [](T t) { chain(t, "int_le", false); }},
      {"increasing_bool", [](T t) { chain(t, "int_le", false); }},
      {"decreasing", [](T t) { chain(t, "int_le", true); }},
      {"decreasing_int", [](T t) { chain(t, "int_le", true); }},
      {"decreasing_bool", [](T t) { chain(t, "int_le", true); }},
      {"strictly_increasing", [](T t) { chain(t, "int_lt", false); }},
      {"strictly_increasing_int", [](T t) { chain(t, "int_lt", false); }},
      {"strictly_decreasing", [](T t) { chain(t, "int_lt", true); }},
      {"strictly_decreasing_int", [](T t) { chain(t, "int_lt", true); }},
      {"count", [](T t) { renamed(t, "count_eq", {0, 1, 2}); }},
      {"count_reif", [](T t) { count_if(t, "int_eq_reif"); }},
      {"count_imp", [](T t) { count_if(t, "int_eq_imp"); }},
      {"count_eq_reif", [](T t) { count_if(t, "int_eq_reif"); }},
      {"count_eq_imp", [](T t) { count_if(t, "int_eq_imp"); }},
      {"among", [](T t) { t.expect(3), among(t, 0, 1, 2); }},
      {"at_least_int",
       [](T t) { t.expect(3), t.post("int_le", {t.list(0), single(count_of(t, t.list(1), t.view(2)))}); }},
      {"at_most_int",
       [](T t) { t.expect(3), t.post("int_le", {single(count_of(t, t.list(1), t.view(2))), t.list(0)}); }},
      {"global_cardinality_low_up", [](T t) { t.expect(4), cardinality_within(t, false); }},
      {"global_cardinality_low_up_closed", [](T t) { t.expect(4), cardinality_within(t, true); }},
      {"diffn", [](T t) { t.expect(4), boxes(t, "diffn", {0, 1, 2, 3}); }},
      {"diffn_nonstrict", [](T t) { t.expect(4), boxes(t, "diffn_nonstrict", {0, 1, 2, 3}); }},
      {"disjunctive", [](T t) { t.expect(2), in_turn(t, "no_overlap", 0, 1, {}); }},
      {"disjunctive_strict", [](T t) { t.expect(2), in_turn(t, "no_overlap_strict", 0, 1, {}); }},
      {"disjunctive_opt", [](T t) { t.expect(3), in_turn(t, "no_overlap", 0, 1, t.list(2)); }},
      {"disjunctive_strict_opt", [](T t) { t.expect(3), in_turn(t, "no_overlap_strict", 0, 1, t.list(2)); }},
      {"if_then_else_int", first_of},
      {"if_then_else_bool", first_of},
      {"if_then_else_var_int", first_of},
      {"if_then_else_var_bool", first_of},
      {"member_int", [](T t) { t.expect(2), t.post("bool_clause", {hits(t), {}}); }},
      {"member_bool", [](T t) { t.expect(2), t.post("bool_clause", {hits(t), {}}); }},
      {"member_int_reif", [](T t) { t.expect(3), t.post("array_bool_or", {hits(t), t.list(2)}); }},
      {"member_bool_reif", [](T t) { t.expect(3), t.post("array_bool_or", {hits(t), t.list(2)}); }},
      {"value_precede_int", [](T t) { t.expect(3), precede(t, t.view(0), t.view(1), t.list(2)); }},
      {"value_precede_chain_int", [](T t) { t.expect(2), precede_in_chain(t, t.list(0), t.list(1)); }},
      {"seq_precede_chain_int", precede_in_sequence},
      {"table_int_reif", [](T t) { table_if(t, "array_bool_or"); }},
      {"table_int_imp", [](T t) { table_if(t, "array_bool_or_imp"); }},
      {"table_bool_reif", [](T t) { table_if(t, "array_bool_or"); }},
      {"table_bool_imp", [](T t) { table_if(t, "array_bool_or_imp"); }},
      {"inverse_offsets",
       [](T t) { t.expect(4), t.post("inverse", {t.shifted(0, -t.value(3)), t.shifted(2, -t.value(1))}); }},
      {"precede", [](T t) { t.expect(3), precede(t, t.view(1), t.view(2), t.list(0)); }},
      // Sums of MiniZinc's library.
      {"int_lin_lt", [](T t) { sum_at_most(t, "", false, 1); }},
      {"int_lin_ge", [](T t) { sum_at_most(t, "", true, 0); }},
      {"int_lin_gt", [](T t) { sum_at_most(t, "", true, 1); }},
      {"int_lin_lt_reif", [](T t) { sum_at_most(t, "_reif", false, 1); }},
      {"int_lin_ge_reif", [](T t) { sum_at_most(t, "_reif", true, 0); }},
      {"int_lin_gt_reif", [](T t) { sum_at_most(t, "_reif", true, 1); }},
      {"int_lin_lt_imp", [](T t) { sum_at_most(t, "_imp", false, 1); }},
      {"int_lin_ge_imp", [](T t) { sum_at_most(t, "_imp", true, 0); }},
      {"int_lin_gt_imp", [](T t) { sum_at_most(t, "_imp", true, 1); }},
      {"bool_lin_lt", [](T t) { sum_at_most(t, "", false, 1); }},
      {"bool_lin_ge", [](T t) { sum_at_most(t, "", true, 0); }},
      {"bool_lin_gt", [](T t) { sum_at_most(t, "", true, 1); }},
      {"bool_lin_lt_imp", [](T t) { sum_at_most(t, "_imp", false, 1); }},
      {"bool_lin_ge_imp", [](T t) { sum_at_most(t, "_imp", true, 0); }},
      {"bool_lin_gt_imp", [](T t) { sum_at_most(t, "_imp", true, 1); }},
      {"bool_sum_eq", [](T t) { boolean_sum(t, "eq", false, 0); }},
      {"bool_sum_ne", [](T t) { boolean_sum(t, "ne", false, 0); }},
      {"bool_sum_le", [](T t) { boolean_sum(t, "le", false, 0); }},
      {"bool_sum_lt", [](T t) { boolean_sum(t, "le", false, 1); }},
      {"bool_sum_ge", [](T t) { boolean_sum(t, "le", true, 0); }},
      {"bool_sum_gt", [](T t) { boolean_sum(t, "le", true, 1); }},
      // Names of JaCoP's library.
      {"jacop_alldiff", [](T t) { t.expect(1), t.post("all_different" + t.consistency(), {t.list(0)}); }},
      {"jacop_alldistinct", [](T t) { t.expect(1), t.post("all_different" + t.consistency(), {t.list(0)}); }},
      {"jacop_regular", [](T t) { renamed(t, "regular", {0, 1, 2, 3, 4, 5}, 7); }},
      {"jacop_count_var", [](T t) { renamed(t, "count_eq", {0, 1, 2}); }},
      {"jacop_count_var_reif", [](T t) { count_if(t, "int_eq_reif"); }},
      {"jacop_among", [](T t) { t.expect(3), among(t, 2, 0, 1); }},
      {"jacop_among_var",
       [](T t) {
         t.expect(3);
         Argument inside;
         for (const View x : t.list(0)) inside.push_back(is_one_of(t, x, t.list(1)));
         t.post("bool_lin_eq", {ones(inside.size()), inside, t.list(2)});
       }},
      {"jacop_assignment", [](T t) { t.expect(4), inverse(t, t.value(2), t.value(3)); }},
      {"jacop_atleast",
       [](T t) { t.expect(3), t.post("int_le", {t.list(2), single(count_of(t, t.list(0), t.view(1)))}); }},
      {"jacop_atmost",
       [](T t) { t.expect(3), t.post("int_le", {single(count_of(t, t.list(0), t.view(1))), t.list(2)}); }},
      {"jacop_atleast_reif",
       [](T t) {
         t.expect(4), t.post("int_le_reif", {t.list(2), single(count_of(t, t.list(0), t.view(1))), t.list(3)});
       }},
      {"jacop_atmost_reif",
       [](T t) {
         t.expect(4), t.post("int_le_reif", {single(count_of(t, t.list(0), t.view(1))), t.list(2), t.list(3)});
       }},
      {"jacop_bin_packing", [](T t) { t.expect(4), bins(t, t.list(1), 0, t.value(3), 2); }},
      {"jacop_bin_packing_capacity", [](T t) { t.expect(4), bins(t, loads_within(t, 1), 0, t.value(3), 2); }},
      {"jacop_channel",
       [](T t) {
         t.expect(3);
         same_length(t, 1, 2);
         for (std::size_t i = 0; i < t.list(1).size(); ++i)
           t.post("int_eq_reif", {t.list(0), single(t.list(2)[i]), single(t.list(1)[i])});
       }},
      {"jacop_count_values", [](T t) { t.expect(3), cardinality(t, false); }},
      {"jacop_count_values_bounds", [](T t) { t.expect(4), cardinality_within(t, false); }},
      {"jacop_gcc",
       [](T t) {
         t.expect(3);
         Argument values;
         for (std::size_t i = 0; i < t.list(1).size(); ++i)
           values.push_back(constant(t.value(2) + static_cast<Value>(i)));
         t.post("global_cardinality_closed", {t.list(0), values, t.list(1)});
       }},
      {"jacop_diff2",
       [](T t) {
         t.expect(1);
         if (t.list(0).size() % 4 != 0) throw Refused("a rectangle is two origins and two sizes");
         std::vector<Argument> sides(4);
         for (std::size_t i = 0; i < t.list(0).size(); ++i) sides[i % 4].push_back(t.list(0)[i]);
         t.post("diffn_nonstrict", {sides[0], sides[1], sides[2], sides[3], ones(sides[0].size())});
       }},
      {"jacop_list_diff2", [](T t) { boxes(t, "diffn_nonstrict", {0, 1, 2, 3}); }},
      {"jacop_diff2_strict", [](T t) { boxes(t, "diffn", {0, 1, 2, 3}); }},
      {"jacop_cumulative_optional", [](T t) { t.expect(5), optional_cumulative(t, 0, 4, 3); }},
      {"jacop_disjunctive_optional", [](T t) { t.expect(3), in_turn(t, "no_overlap_strict", 0, 1, t.list(2)); }},
      {"jacop_knapsack",
       [](T t) {
         t.expect(5);
         t.post("int_lin_eq", {t.list(0), t.list(4), t.list(2)});
         t.post("int_lin_eq", {t.list(1), t.list(4), t.list(3)});
       }},
      {"jacop_maximum", [](T t) { renamed(t, "array_int_maximum", {0, 1}); }},
      {"jacop_minimum", [](T t) { renamed(t, "array_int_minimum", {0, 1}); }},
      {"jacop_maximum_arg_int", [](T t) { t.expect(3), extreme_index(t, 1, t.value(2), false); }},
      {"jacop_maximum_arg_bool", [](T t) { t.expect(3), extreme_index(t, 1, t.value(2), false); }},
      {"jacop_minimum_arg_int", [](T t) { t.expect(3), extreme_index(t, 1, t.value(2), true); }},
      {"jacop_minimum_arg_bool", [](T t) { t.expect(3), extreme_index(t, 1, t.value(2), true); }},
      // Names of Gecode's library.
      {"array_int_lq", [](T t) { renamed(t, "lex_lesseq", {0, 1}); }},
      {"array_bool_lq", [](T t) { renamed(t, "lex_lesseq", {0, 1}); }},
      {"array_int_lt", [](T t) { renamed(t, "lex_less", {0, 1}); }},
      {"array_bool_lt", [](T t) { renamed(t, "lex_less", {0, 1}); }},
      {"cumulatives", [](T t) { renamed(t, "cumulative", {0, 1, 2, 3}); }},
      {"gecode_circuit", [](T t) { t.expect(2), circuit(t, "circuit", 1, t.value(0)); }},
      {"gecode_bin_packing_load", [](T t) { t.expect(4), bins(t, t.list(0), 1, t.value(3), 2); }},
      {"gecode_int_pow", [](T t) { renamed(t, "int_pow", {0, 1, 2}); }},
      {"gecode_maximum_arg_int_offset", [](T t) { t.expect(3), extreme_index(t, 2, t.value(1), false); }},
      {"gecode_maximum_arg_bool_offset", [](T t) { t.expect(3), extreme_index(t, 2, t.value(1), false); }},
      {"gecode_minimum_arg_int_offset", [](T t) { t.expect(3), extreme_index(t, 2, t.value(1), true); }},
      {"gecode_minimum_arg_bool_offset", [](T t) { t.expect(3), extreme_index(t, 2, t.value(1), true); }},
      {"gecode_nooverlap", [](T t) { t.expect(4), boxes(t, "diffn", {0, 2, 1, 3}); }},
      {"gecode_schedule_unary", [](T t) { t.expect(2), in_turn(t, "no_overlap_strict", 0, 1, {}); }},
      {"gecode_schedule_unary_optional", [](T t) { t.expect(3), in_turn(t, "no_overlap_strict", 0, 1, t.list(2)); }},
      {"gecode_schedule_cumulative_optional", [](T t) { t.expect(5), optional_cumulative(t, 0, 3, 4); }},
      // Names of Chuffed's library.
      {"chuffed_array_int_maximum", [](T t) { renamed(t, "array_int_maximum", {0, 1}); }},
      {"chuffed_array_int_minimum", [](T t) { renamed(t, "array_int_minimum", {0, 1}); }},
      {"chuffed_circuit", [](T t) { t.expect(2), circuit(t, "circuit", 0, t.value(1)); }},
      {"chuffed_subcircuit", [](T t) { t.expect(2), circuit(t, "subcircuit", 0, t.value(1)); }},
      {"chuffed_cumulative_vars", [](T t) { renamed(t, "cumulative", {0, 1, 2, 3}); }},
      {"chuffed_maximum_arg_bool", [](T t) { t.expect(3), extreme_index(t, 2, t.value(1), false); }},
      {"chuffed_seq_precede", precede_in_sequence},
      {"chuffed_value_precede", [](T t) { t.expect(3), precede(t, t.view(0), t.view(1), t.list(2)); }},
      // Names of OR-Tools' library.
      {"ortools_inverse", [](T t) { t.expect(4), inverse(t, t.value(2), t.value(3)); }},
      {"ortools_circuit", [](T t) { t.expect(2), circuit(t, "circuit", 0, t.value(1)); }},
      {"ortools_subcircuit", [](T t) { t.expect(2), circuit(t, "subcircuit", 0, t.value(1)); }},
      {"ortools_count_eq_cst", [](T t) { renamed(t, "count_eq", {0, 1, 2}); }},
      {"ortools_bin_packing_load",
       [](T t) { t.expect(4), bins(t, t.list(0), 1, t.list(2).empty() ? 0 : t.list(2)[0].offset, 3); }},
      {"ortools_bin_packing_capa",
       [](T t) { t.expect(4), bins(t, loads_within(t, 0), 1, t.list(2).empty() ? 0 : t.list(2)[0].offset, 3); }},
      {"ortools_global_cardinality", [](T t) { t.expect(4), cardinality(t, t.value(3) != 0); }},
      {"ortools_global_cardinality_low_up", [](T t) { t.expect(5), cardinality_within(t, t.value(4) != 0); }},
      {"ortools_arg_max_int", [](T t) { t.expect(4), extreme_index(t, 1, t.value(2), t.value(3) < 0); }},
      {"ortools_arg_max_bool", [](T t) { t.expect(4), extreme_index(t, 1, t.value(2), t.value(3) < 0); }},
      {"ortools_cumulative_opt", [](T t) { t.expect(5), optional_cumulative(t, 1, 0, 4); }},
      {"ortools_disjunctive_strict_opt", [](T t) { t.expect(3), in_turn(t, "no_overlap_strict", 1, 2, t.list(0)); }},
      {"ortools_precede_chain_int", [](T t) { t.expect(2), precede_in_chain(t, t.list(0), t.list(1)); }},
  };
  return result;
}

}  // namespace

Translate translation_of(std::string_view name) {
  const auto entry = table().find(name);
  return entry == table().end() ? nullptr : entry->second;
}

std::vector<std::string> translated_names() {
  std::vector<std::string> names;
  for (const auto& [name, translate] : table()) names.emplace_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace elimina::cp::flatzinc
