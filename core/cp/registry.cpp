// Constraints by name: what their arguments have to be, and what is posted for them. Elements and automata count from 1, as
// FlatZinc's; successors, inverses and bins count from 0.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <unordered_map>

#include "solver.hpp"

namespace elimina::cp {

namespace {

// The arguments of one constraint, read as what they have to be.
class Call {
 public:
  Call(Solver& solver, const std::string& name, const std::vector<Argument>& arguments) : solver_(solver), name_(name), arguments_(arguments) {}

  Control control;

  Engine& engine() const { return solver_.engine(); }

  [[noreturn]] void refuse(const std::string& why) const { throw Refused(name_ + ": " + why); }

  void expect(std::size_t count) const {
    if (arguments_.size() != count)
      refuse("takes " + std::to_string(count) + " arguments, found " + std::to_string(arguments_.size()));
  }

  std::size_t length(std::size_t i) const { return arguments_[i].size(); }

  Views views(std::size_t i) const {
    Views result = arguments_[i];
    for (View& x : result) x = known(x);
    return result;
  }

  View view(std::size_t i) const {
    single(i);
    return known(arguments_[i][0]);
  }

  View boolean(std::size_t i) const {
    single(i);
    return zero_one(known(arguments_[i][0]));
  }

  Views booleans(std::size_t i) const {
    Views result = views(i);
    for (const View x : result) zero_one(x);
    return result;
  }

  Values values(std::size_t i) const {
    Values result;
    for (const View x : arguments_[i]) {
      if (x.var >= 0) refuse("argument " + std::to_string(i + 1) + " consists of constants");
      result.push_back(x.offset);
    }
    return result;
  }

  Value value(std::size_t i) const {
    single(i);
    return values(i)[0];
  }

  void same_length(std::size_t i, std::size_t k) const {
    if (length(i) != length(k))
      refuse("arguments " + std::to_string(i + 1) + " and " + std::to_string(k + 1) + " have " + std::to_string(length(i)) + " and " +
             std::to_string(length(k)) + " elements, which should be equal");
  }

 private:
  void single(std::size_t i) const {
    if (length(i) != 1) refuse("argument " + std::to_string(i + 1) + " is one value, not " + std::to_string(length(i)));
  }

  View known(View x) const {
    if (x.var < 0) return solver_.fixed(x.offset);
    const Domains& d = solver_.domains();
    if (x.var >= d.count()) refuse("there is no variable " + std::to_string(x.var));
    const __int128 a = static_cast<__int128>(x.scale) * d.lo(x.var) + x.offset, b = static_cast<__int128>(x.scale) * d.hi(x.var) + x.offset;
    if (x.scale == 0 || std::max(a, b) > kLimit || std::min(a, b) < -kLimit || std::abs(x.offset) > kLimit)
      refuse("a view is scale * x + offset with a scale other than 0, within 2^52");
    return x;
  }

  View zero_one(View x) const {
    if (solver_.domains().lo(x) < 0 || solver_.domains().hi(x) > 1) refuse("a Boolean is 0 or 1");
    return x;
  }

  Solver& solver_;
  const std::string& name_;
  const std::vector<Argument>& arguments_;
};

struct Entry {
  std::size_t arguments;
  bool reifiable;
  std::function<void(Call&)> post;
};

using Entries = std::unordered_map<std::string, Entry>;

void add_comparisons(Entries& table) {
  for (const std::string kind : {"int", "bool"}) {
    table[kind + "_eq"] = {2, true, [](Call& c) { post_equal(c.engine(), c.view(0), c.view(1), c.control); }};
    table[kind + "_ne"] = {2, true, [](Call& c) { post_different(c.engine(), c.view(0), c.view(1), c.control); }};
    table[kind + "_le"] = {2, true, [](Call& c) { post_at_most(c.engine(), c.view(0), c.view(1), c.control); }};
    table[kind + "_lt"] = {2, true, [](Call& c) { post_at_most(c.engine(), c.view(0) + 1, c.view(1), c.control); }};
    table[kind + "_ge"] = {2, true, [](Call& c) { post_at_most(c.engine(), c.view(1), c.view(0), c.control); }};
    table[kind + "_gt"] = {2, true, [](Call& c) { post_at_most(c.engine(), c.view(1) + 1, c.view(0), c.control); }};
  }
  table["bool2int"] = table["int_eq"];
  table["bool2int"].reifiable = false;
  table["bool_not"] = table["bool_ne"];
  table["set_in"] = {2, true, [](Call& c) { post_member(c.engine(), c.view(0), c.values(1), c.control); }};
}

// The right-hand side may be a variable, too.
void linear(Call& c, Relation relation, bool by_domains = false) {
  c.same_length(0, 1);
  Values coefficients = c.values(0);
  Views xs = c.views(1);
  coefficients.push_back(-1);
  xs.push_back(c.view(2));
  post_linear(c.engine(), relation, coefficients, xs, 0, c.control);
  if (by_domains) post_sum_of_domains(c.engine(), coefficients, xs);
}

void add_linear(Entries& table) {
  for (const std::string kind : {"int", "bool"}) {
    table[kind + "_lin_eq"] = {3, true, [](Call& c) { linear(c, Relation::equal); }};
    table[kind + "_lin_ne"] = {3, true, [](Call& c) { linear(c, Relation::different); }};
    table[kind + "_lin_le"] = {3, true, [](Call& c) { linear(c, Relation::at_most); }};
  }
  table["int_lin_eq_domain"] = {3, false, [](Call& c) { linear(c, Relation::equal, true); }};
}

void maximum(Call& c, const Views& xs, View z, bool least) {
  if (xs.empty()) c.refuse("an extreme of no variables does not exist");
  Views signed_xs = xs;
  if (least)
    for (View& x : signed_xs) x = -x;
  post_maximum(c.engine(), signed_xs, least ? -z : z);
}

void add_arithmetic(Entries& table) {
  table["int_plus"] = {3, false, [](Call& c) {
                         post_linear(c.engine(), Relation::equal, {1, 1, -1}, {c.view(0), c.view(1), c.view(2)}, 0);
                       }};
  table["int_minus"] = {3, false, [](Call& c) {
                          post_linear(c.engine(), Relation::equal, {1, -1, -1}, {c.view(0), c.view(1), c.view(2)}, 0);
                        }};
  table["int_times"] = {3, false, [](Call& c) { post_times(c.engine(), c.view(0), c.view(1), c.view(2)); }};
  table["int_div"] = {3, false, [](Call& c) { post_divide(c.engine(), c.view(0), c.view(1), c.view(2)); }};
  table["int_mod"] = {3, false, [](Call& c) { post_remainder(c.engine(), c.view(0), c.view(1), c.view(2)); }};
  table["int_pow"] = {3, false, [](Call& c) { post_power(c.engine(), c.view(0), c.view(1), c.view(2)); }};
  table["int_abs"] = {2, false, [](Call& c) { post_absolute(c.engine(), c.view(0), c.view(1)); }};
  table["int_max"] = {3, false, [](Call& c) { maximum(c, {c.view(0), c.view(1)}, c.view(2), false); }};
  table["int_min"] = {3, false, [](Call& c) { maximum(c, {c.view(0), c.view(1)}, c.view(2), true); }};
  table["array_int_maximum"] = {2, false, [](Call& c) { maximum(c, c.views(1), c.view(0), false); }};
  table["array_int_minimum"] = {2, false, [](Call& c) { maximum(c, c.views(1), c.view(0), true); }};
}

Views clause(const Call& c) {
  Views literals = c.booleans(0);
  for (const View x : c.booleans(1)) literals.push_back(negation(x));
  return literals;
}

void add_booleans(Entries& table) {
  table["bool_and"] = {3, false, [](Call& c) { post_all_true(c.engine(), {c.boolean(0), c.boolean(1)}, c.boolean(2)); }};
  table["bool_or"] = {3, false, [](Call& c) { post_clause(c.engine(), {c.boolean(0), c.boolean(1)}, Control::reified(c.boolean(2))); }};
  table["bool_xor"] = {3, false, [](Call& c) { post_different(c.engine(), c.boolean(0), c.boolean(1), Control::reified(c.boolean(2))); }};
  table["bool_clause"] = {2, true, [](Call& c) { post_clause(c.engine(), clause(c), c.control); }};
  table["array_bool_or"] = {2, false, [](Call& c) { post_clause(c.engine(), c.booleans(0), Control::reified(c.boolean(1))); }};
  table["array_bool_and"] = {2, false, [](Call& c) { post_all_true(c.engine(), c.booleans(0), c.boolean(1)); }};
  // The Boolean implies the conjunction, or the disjunction.
  table["array_bool_and_imp"] = {2, false, [](Call& c) { for (const View x : c.booleans(0)) post_at_most(c.engine(), c.boolean(1), x); }};
  table["array_bool_or_imp"] = {2, false, [](Call& c) { post_clause(c.engine(), c.booleans(0), Control::implied(c.boolean(1))); }};
  table["array_bool_xor"] = {1, false, [](Call& c) { post_odd(c.engine(), c.booleans(0)); }};
}

void add_elements(Entries& table) {
  for (const std::string kind : {"int", "bool"}) {
    table["array_" + kind + "_element"] = {3, false, [](Call& c) { post_element(c.engine(), c.view(0) - 1, c.values(1), c.view(2)); }};
    table["array_var_" + kind + "_element"] = {3, false, [](Call& c) { post_element(c.engine(), c.view(0) - 1, c.views(1), c.view(2)); }};
  }
}

// Side that filters an AllDifferent, by a name's end.
constexpr std::pair<const char*, Side> kSides[] = {{"", Side::automatic}, {"_cpu", Side::cpu}, {"_gpu", Side::gpu}};

void add_all_different(Entries& table) {
  const std::pair<const char*, Consistency> kinds[] = {{"value", Consistency::value}, {"bounds", Consistency::bounds}};
  for (const auto& [name, consistency] : kinds)
    table[std::string("all_different_") + name] = {
        1, false, [consistency = consistency](Call& c) { post_all_different(c.engine(), c.views(0), consistency); }};
  for (const auto& [suffix, side] : kSides)
    table[std::string("all_different_domain") + suffix] = {
        1, false, [side = side](Call& c) { post_all_different(c.engine(), c.views(0), Consistency::domain, side); }};
  table["all_different_except_0"] = {1, false, [](Call& c) { post_all_different_except(c.engine(), c.views(0), 0); }};
}

// Arguments: successors, both ends and the length of each edge, whether the circuit has it, the circuit's length.
void weighted_circuit(Call& c) {
  for (const std::size_t i : {2, 3, 4}) c.same_length(1, i);
  const auto nodes = static_cast<Value>(c.length(0));
  if (nodes < 3) c.refuse("there are three nodes at least, not " + std::to_string(nodes));
  tsp::Graph graph{static_cast<int>(nodes), {}, {}, c.values(3)};
  std::vector<std::pair<Value, Value>> pairs;
  const Values from = c.values(1), to = c.values(2);
  for (std::size_t e = 0; e < from.size(); ++e) {
    const auto [least, most] = std::minmax(from[e], to[e]);
    if (least < 0 || most >= nodes || least == most)
      c.refuse("edge " + std::to_string(from[e]) + " to " + std::to_string(to[e]) + " is not between two nodes of 0 to " + std::to_string(nodes - 1));
    pairs.emplace_back(least, most);
    graph.from.push_back(static_cast<int>(least));
    graph.to.push_back(static_cast<int>(most));
  }
  std::sort(pairs.begin(), pairs.end());
  const auto twice = std::adjacent_find(pairs.begin(), pairs.end());
  if (twice != pairs.end()) c.refuse("edge " + std::to_string(twice->first) + " to " + std::to_string(twice->second) + " is given twice");
  post_weighted_circuit(c.engine(), c.views(0), std::move(graph), c.booleans(4), c.view(5));
}

void add_graphs(Entries& table) {
  for (const auto& [suffix, side] : kSides) {
    table[std::string("circuit") + suffix] = {1, false, [side = side](Call& c) { post_circuit(c.engine(), c.views(0), side); }};
    table[std::string("subcircuit") + suffix] = {1, false, [side = side](Call& c) { post_subcircuit(c.engine(), c.views(0), side); }};
  }
  table["weighted_circuit"] = {6, false, weighted_circuit};
  table["inverse"] = {2, false, [](Call& c) {
                        c.same_length(0, 1);
                        post_inverse(c.engine(), c.views(0), c.views(1));
                      }};
}

// FlatZinc's arguments: variables, states, symbols, table (states and symbols from 1 on, 0: none), first state, last states.
Automaton automaton(const Call& c) {
  const Value states = c.value(1), symbols = c.value(2), start = c.value(4);
  const Values next = c.values(3);
  if (states < 1 || symbols < 1 || states > (1 << 24) || symbols > (1 << 24) || static_cast<Value>(next.size()) != states * symbols)
    c.refuse("the table has a row for each state and a column for each symbol");
  const auto check = [&](Value state, Value least) {
    if (state < least || state > states) c.refuse("there is no state " + std::to_string(state));
    return static_cast<int>(state - 1);
  };
  Automaton result{static_cast<int>(states), static_cast<int>(symbols), {}, check(start, 1), {}};
  for (const Value state : next) result.next.push_back(check(state, 0));
  result.accepting.resize(static_cast<std::size_t>(states), 0);
  for (const Value state : c.values(5)) result.accepting[static_cast<std::size_t>(check(state, 1))] = 1;
  return result;
}

void add_extensions(Entries& table) {
  for (const std::string kind : {"int", "bool"})
    table["table_" + kind] = {2, false, [](Call& c) {
                                if (c.length(0) == 0 || c.length(1) % c.length(0) != 0) c.refuse("each row has a value for each variable");
                                post_table(c.engine(), c.views(0), c.values(1));
                              }};
  table["regular"] = {6, false, [](Call& c) {
                        Views xs = c.views(0);
                        for (View& x : xs) x = x - 1;
                        post_regular(c.engine(), xs, automaton(c));
                      }};
}

void cardinality(Call& c, bool closed) {
  c.same_length(1, 2);
  const Values given = c.values(1);
  const Views counts = c.views(2);
  // A value that is listed twice is counted once, and both of its counts are equal.
  std::map<Value, View> by_value;
  for (std::size_t i = 0; i < given.size(); ++i)
    if (const auto [known, is_new] = by_value.emplace(given[i], counts[i]); !is_new) post_equal(c.engine(), known->second, counts[i]);
  Values values;
  Views distinct;
  for (const auto& [value, count] : by_value) {
    values.push_back(value);
    distinct.push_back(count);
  }
  post_cardinality(c.engine(), c.views(0), values, distinct, closed);
}

void add_counts(Entries& table) {
  table["count_eq"] = {3, false, [](Call& c) { post_count(c.engine(), c.views(0), c.view(1), c.view(2)); }};
  table["global_cardinality"] = {3, false, [](Call& c) { cardinality(c, false); }};
  table["global_cardinality_closed"] = {3, false, [](Call& c) { cardinality(c, true); }};
  table["nvalue"] = {2, false, [](Call& c) { post_distinct_values(c.engine(), c.views(1), c.view(0)); }};
}

// Sums of sizes stay within 64 bits.
Values sizes(const Call& c, std::size_t i) {
  const Values result = c.values(i);
  __int128 total = 0;
  for (const Value size : result) {
    if (size < 0) c.refuse("a size is at least 0, not " + std::to_string(size));
    total += size;
  }
  if (total > kLimit) c.refuse("the sizes add up to more than 2^52");
  return result;
}

void add_resources(Entries& table) {
  table["cumulative"] = {4, false, [](Call& c) {
                           c.same_length(0, 1);
                           c.same_length(0, 2);
                           post_cumulative(c.engine(), c.views(0), c.views(1), c.views(2), c.view(3));
                         }};
  table["bin_packing_load"] = {3, false, [](Call& c) {
                                 c.same_length(1, 2);
                                 post_bin_packing(c.engine(), c.views(0), c.views(1), sizes(c, 2));
                               }};
  table["lex_less"] = {2, false, [](Call& c) { post_lexicographic(c.engine(), c.views(0), c.views(1), true); }};
  table["lex_lesseq"] = {2, false, [](Call& c) { post_lexicographic(c.engine(), c.views(0), c.views(1), false); }};
}

const Entries& table() {
  static const Entries result = [] {
    Entries t;
    add_comparisons(t);
    add_linear(t);
    add_arithmetic(t);
    add_booleans(t);
    add_elements(t);
    add_all_different(t);
    add_graphs(t);
    add_extensions(t);
    add_counts(t);
    add_resources(t);
    return t;
  }();
  return result;
}

bool take_suffix(std::string& name, const std::string& suffix) {
  if (!name.ends_with(suffix)) return false;
  name.resize(name.size() - suffix.size());
  return true;
}

}  // namespace

void Solver::post(const std::string& name, const std::vector<Argument>& arguments) {
  std::string base = name;
  const bool is_known = table().contains(name);
  const bool reified = !is_known && take_suffix(base, "_reif"), implied = !is_known && !reified && take_suffix(base, "_imp");
  const auto entry = table().find(base);
  if (entry == table().end() || ((reified || implied) && !entry->second.reifiable)) throw Refused("unknown constraint " + name);
  Call call(*this, name, arguments);
  call.expect(entry->second.arguments + (reified || implied));
  if (reified) call.control = Control::reified(call.boolean(arguments.size() - 1));
  if (implied) call.control = Control::implied(call.boolean(arguments.size() - 1));
  entry->second.post(call);
}

std::vector<std::string> constraint_names() {
  std::vector<std::string> names;
  for (const auto& [name, entry] : table()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace elimina::cp
