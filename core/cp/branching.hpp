// Choice of the next variable to decide, and of its value.
#pragma once
#include <string>
#include <vector>

#include "engine.hpp"

namespace elimina::cp {

enum class VariableOrdering : std::uint8_t {
  input_order,
  first_fail,
  anti_first_fail,
  smallest,
  largest,
  occurrence,
  most_constrained,
  max_regret,
  dom_w_deg
};
enum class ValueOrdering : std::uint8_t {
  min,
  max,
  median,
  middle,
  random,
  split,
  reverse_split,
  interval,
  not_min,
  not_max
};

// Return the ordering that has this name in FlatZinc (`indomain` means `indomain_min`). Throw `Refused` if there is
// none.
VariableOrdering variable_ordering_of(const std::string& name);
ValueOrdering value_ordering_of(const std::string& name);

// Variables, and the orderings by which a search picks the next of them and its value. A search follows several rules
// one after the other.
struct Rule {
  Views xs;
  VariableOrdering variable_ordering = VariableOrdering::input_order;
  ValueOrdering value_ordering = ValueOrdering::min;
  // Keys and rules of the groups of variables in a priority search; otherwise empty. The variable ordering picks a key,
  // and all variables of its group are decided before the next key is picked. `xs` has the variables of all groups.
  Views keys{};
  std::vector<std::vector<Rule>> groups{};
};

enum class Test : std::uint8_t { is, is_not, at_most, at_least };

// A test of a variable: true in the first branch, false in the second one.
struct Decision {
  View x;
  Test test;
  Value value;

  Decision negated() const;
  [[nodiscard]] bool apply(Domains& d) const;
  // True if the decision holds for all values of the domain.
  bool holds(const Domains& d) const;
};

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 2 + 1) {}
  std::uint64_t below(std::uint64_t count);

 private:
  std::uint64_t state_;
};

class Brancher {
 public:
  // Reserves a trailed word, so construct it before the search's first level.
  Brancher(Engine& engine, Rule rule);

  // Sets `decision` to the next decision; returns false if all variables of the rule have values.
  bool decide(Engine& engine, Random& random, Decision& decision);

  const Rule& rule() const { return rule_; }

 private:
  bool decide_in_groups(Engine& engine, Random& random, Decision& decision);
  std::size_t pick_group(const Engine& engine) const;
  std::size_t pick(Engine& engine, std::size_t first) const;
  // Returns the rank of a variable: the open variable of least rank is decided next.
  double rank(const Engine& engine, View x) const;

  Rule rule_;
  std::size_t first_;  // trailed word: the first variable that may be open; with groups, the current group plus 1
  std::vector<std::vector<Brancher>> groups_;
};

// Value that a search tries first for a view.
struct Hint {
  View x;
  Value value;
};

// A brancher that gives open variables their hinted values, in the order of the hints. It skips hinted values that are
// no longer in the domains.
class HintBrancher {
 public:
  // Reserves a trailed word, as `Brancher` does.
  HintBrancher(Engine& engine, const std::vector<Hint>& hints);

  // Returns false if no further hint can be followed.
  bool decide(Engine& engine, Decision& decision);

 private:
  const std::vector<Hint>& hints_;
  std::size_t first_;
};

Decision decide_value(const Domains& d, View x, ValueOrdering ordering, Random& random);

}  // namespace elimina::cp
