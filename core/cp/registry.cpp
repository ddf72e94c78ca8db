// Constraints by name: the rows of constraint_rows.hpp, and the basic constraints, which come in several forms each.
// Indices of elements and states of automata count from 1, as in FlatZinc; successors, inverses and bins count from 0.
#include <algorithm>
#include <functional>
#include <unordered_map>

#include "constraint_call.hpp"

namespace elimina::cp {

namespace {

struct Entry {
  std::size_t arguments;
  bool reifiable;
  std::function<void(ConstraintCall&)> post;
};

using Entries = std::unordered_map<std::string, Entry>;

void add_comparisons(Entries& table) {
  for (const std::string kind : {"int", "bool"}) {
    table[kind + "_eq"] = {2, true, [](ConstraintCall& c) { post_equal(c.engine(), c.view(0), c.view(1), c.control); }};
    table[kind + "_ne"] = {2, true,
                           [](ConstraintCall& c) { post_different(c.engine(), c.view(0), c.view(1), c.control); }};
    table[kind + "_le"] = {2, true,
                           [](ConstraintCall& c) { post_at_most(c.engine(), c.view(0), c.view(1), c.control); }};
    table[kind + "_lt"] = {2, true,
                           [](ConstraintCall& c) { post_at_most(c.engine(), c.view(0) + 1, c.view(1), c.control); }};
    table[kind + "_ge"] = {2, true,
                           [](ConstraintCall& c) { post_at_most(c.engine(), c.view(1), c.view(0), c.control); }};
    table[kind + "_gt"] = {2, true,
                           [](ConstraintCall& c) { post_at_most(c.engine(), c.view(1) + 1, c.view(0), c.control); }};
  }
  table["bool2int"] = table["int_eq"];
  table["bool2int"].reifiable = false;
  table["bool_not"] = table["bool_ne"];
  table["set_in"] = {2, true, [](ConstraintCall& c) { post_member(c.engine(), c.view(0), c.values(1), c.control); }};
}

// Posts a linear constraint. The right-hand side may be a variable, so it becomes one more term.
void linear(ConstraintCall& c, Relation relation, bool by_domains = false) {
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
    table[kind + "_lin_eq"] = {3, true, [](ConstraintCall& c) { linear(c, Relation::equal); }};
    table[kind + "_lin_ne"] = {3, true, [](ConstraintCall& c) { linear(c, Relation::different); }};
    table[kind + "_lin_le"] = {3, true, [](ConstraintCall& c) { linear(c, Relation::at_most); }};
  }
  table["int_lin_eq_domain"] = {3, false, [](ConstraintCall& c) { linear(c, Relation::equal, true); }};
}

void maximum(ConstraintCall& c, const Views& xs, View z, bool least) {
  if (xs.empty()) c.refuse("an extreme of no variables does not exist");
  Views signed_xs = xs;
  if (least)
    for (View& x : signed_xs) x = -x;
  post_maximum(c.engine(), signed_xs, least ? -z : z);
}

void add_arithmetic(Entries& table) {
  table["int_plus"] = {3, false, [](ConstraintCall& c) {
                         post_linear(c.engine(), Relation::equal, {1, 1, -1}, {c.view(0), c.view(1), c.view(2)}, 0);
                       }};
  table["int_minus"] = {3, false, [](ConstraintCall& c) {
                          post_linear(c.engine(), Relation::equal, {1, -1, -1}, {c.view(0), c.view(1), c.view(2)}, 0);
                        }};
  table["int_times"] = {3, false, [](ConstraintCall& c) { post_times(c.engine(), c.view(0), c.view(1), c.view(2)); }};
  table["int_div"] = {3, false, [](ConstraintCall& c) { post_divide(c.engine(), c.view(0), c.view(1), c.view(2)); }};
  table["int_mod"] = {3, false, [](ConstraintCall& c) { post_remainder(c.engine(), c.view(0), c.view(1), c.view(2)); }};
  table["int_pow"] = {3, false, [](ConstraintCall& c) { post_power(c.engine(), c.view(0), c.view(1), c.view(2)); }};
  table["int_abs"] = {2, false, [](ConstraintCall& c) { post_absolute(c.engine(), c.view(0), c.view(1)); }};
  table["int_max"] = {3, false, [](ConstraintCall& c) { maximum(c, {c.view(0), c.view(1)}, c.view(2), false); }};
  table["int_min"] = {3, false, [](ConstraintCall& c) { maximum(c, {c.view(0), c.view(1)}, c.view(2), true); }};
  table["array_int_maximum"] = {2, false, [](ConstraintCall& c) { maximum(c, c.views(1), c.view(0), false); }};
  table["array_int_minimum"] = {2, false, [](ConstraintCall& c) { maximum(c, c.views(1), c.view(0), true); }};
}

Views clause(const ConstraintCall& c) {
  Views literals = c.booleans(0);
  for (const View x : c.booleans(1)) literals.push_back(negation(x));
  return literals;
}

void add_booleans(Entries& table) {
  table["bool_and"] = {
      3, false, [](ConstraintCall& c) { post_all_true(c.engine(), {c.boolean(0), c.boolean(1)}, c.boolean(2)); }};
  table["bool_or"] = {3, false, [](ConstraintCall& c) {
                        post_clause(c.engine(), {c.boolean(0), c.boolean(1)}, Control::reified(c.boolean(2)));
                      }};
  table["bool_xor"] = {3, false, [](ConstraintCall& c) {
                         post_different(c.engine(), c.boolean(0), c.boolean(1), Control::reified(c.boolean(2)));
                       }};
  table["bool_clause"] = {2, true, [](ConstraintCall& c) { post_clause(c.engine(), clause(c), c.control); }};
  table["array_bool_or"] = {
      2, false, [](ConstraintCall& c) { post_clause(c.engine(), c.booleans(0), Control::reified(c.boolean(1))); }};
  table["array_bool_and"] = {2, false,
                             [](ConstraintCall& c) { post_all_true(c.engine(), c.booleans(0), c.boolean(1)); }};
  // Half-reified forms: the Boolean implies the conjunction, or the disjunction.
  table["array_bool_and_imp"] = {2, false, [](ConstraintCall& c) {
                                   for (const View x : c.booleans(0)) post_at_most(c.engine(), c.boolean(1), x);
                                 }};
  table["array_bool_or_imp"] = {
      2, false, [](ConstraintCall& c) { post_clause(c.engine(), c.booleans(0), Control::implied(c.boolean(1))); }};
  table["array_bool_xor"] = {1, false, [](ConstraintCall& c) { post_odd(c.engine(), c.booleans(0)); }};
}

void add_elements(Entries& table) {
  for (const std::string kind : {"int", "bool"}) {
    table["array_" + kind + "_element"] = {
        3, false, [](ConstraintCall& c) { post_element(c.engine(), c.view(0) - 1, c.values(1), c.view(2)); }};
    table["array_var_" + kind + "_element"] = {
        3, false, [](ConstraintCall& c) { post_element(c.engine(), c.view(0) - 1, c.views(1), c.view(2)); }};
  }
}

// Suffixes of AllDifferent's names, for the processor that filters it.
constexpr std::pair<const char*, Side> kSides[] = {{"", Side::automatic}, {"_cpu", Side::cpu}, {"_gpu", Side::gpu}};

void add_all_different(Entries& table) {
  const std::pair<const char*, Consistency> kinds[] = {{"value", Consistency::value}, {"bounds", Consistency::bounds}};
  for (const auto& [name, consistency] : kinds)
    table[std::string("all_different_") + name] = {1, false, [consistency = consistency](ConstraintCall& c) {
                                                     post_all_different(c.engine(), c.views(0), consistency);
                                                   }};
  for (const auto& [suffix, side] : kSides)
    table[std::string("all_different_domain") + suffix] = {
        1, false,
        [side = side](ConstraintCall& c) { post_all_different(c.engine(), c.views(0), Consistency::domain, side); }};
}

void add_graphs(Entries& table) {
  for (const auto& [suffix, side] : kSides) {
    table[std::string("circuit") + suffix] = {
        1, false, [side = side](ConstraintCall& c) { post_circuit(c.engine(), c.views(0), side); }};
    table[std::string("subcircuit") + suffix] = {
        1, false, [side = side](ConstraintCall& c) { post_subcircuit(c.engine(), c.views(0), side); }};
  }
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
#define ELIMINA_ENTRY(name, arguments, reifiable, post) t[name] = {arguments, reifiable, post};
    ELIMINA_CONSTRAINT_ROWS(ELIMINA_ENTRY)
#undef ELIMINA_ENTRY
    return t;
  }();
  return result;
}

bool take_suffix(std::string& name, const std::string& suffix) {
  if (!name.ends_with(suffix)) return false;
  name.resize(name.size() - suffix.size());
  return true;
}

struct Form {
  const Entry& entry;
  bool reified, implied;
};

// Returns the form of a constraint that a name stands for; refuses an unknown name, and a wrong number of arguments.
Form form_of(const std::string& name, std::size_t arguments) {
  std::string base = name;
  const bool is_known = table().contains(name);
  const bool reified = !is_known && take_suffix(base, "_reif"),
             implied = !is_known && !reified && take_suffix(base, "_imp");
  const auto entry = table().find(base);
  if (entry == table().end() || ((reified || implied) && !entry->second.reifiable))
    throw Refused("unknown constraint " + name);
  if (const std::size_t expected = entry->second.arguments + (reified || implied); arguments != expected)
    throw Refused(name + ": takes " + std::to_string(expected) + " arguments, found " + std::to_string(arguments));
  return {entry->second, reified, implied};
}

}  // namespace

void check_constraint(const std::string& name, std::size_t arguments) { form_of(name, arguments); }

void Solver::post(const std::string& name, const std::vector<Argument>& arguments) {
  const auto [entry, reified, implied] = form_of(name, arguments.size());
  ConstraintCall call(*this, name, arguments);
  if (reified) call.control = Control::reified(call.boolean(arguments.size() - 1));
  if (implied) call.control = Control::implied(call.boolean(arguments.size() - 1));
  entry.post(call);
  if (name == "int_lin_le") note_difference(arguments);
}

// Records x - y <= bound if the arguments have this form.
void Solver::note_difference(const std::vector<Argument>& arguments) {
  const Argument &coefficients = arguments[0], &xs = arguments[1];
  if (xs.size() != 2 || xs[0].var < 0 || xs[1].var < 0) return;
  const auto is_unit = [](Value factor) { return factor == 1 || factor == -1; };
  if (!is_unit(coefficients[0].offset) || !is_unit(coefficients[1].offset) || !is_unit(xs[0].scale) ||
      !is_unit(xs[1].scale))
    return;
  const Value a = coefficients[0].offset * xs[0].scale, b = coefficients[1].offset * xs[1].scale;
  if (a == b) return;
  const Value bound = std::clamp(arguments[2][0].offset, -kLimit, kLimit) - coefficients[0].offset * xs[0].offset -
                      coefficients[1].offset * xs[1].offset;
  if (a == 1) differences_.push_back({xs[0].var, -bound, xs[1].var});
  else differences_.push_back({xs[1].var, -bound, xs[0].var});
}

std::vector<std::string> constraint_names() {
  std::vector<std::string> names;
  for (const auto& [name, entry] : table()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace elimina::cp
