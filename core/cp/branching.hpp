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

// By FlatZinc's names (`indomain` is `indomain_min`). Throws `Refused`.
VariableOrdering variable_ordering_of(const std::string& name);
ValueOrdering value_ordering_of(const std::string& name);

// Variables that are decided by one rule; several of these are done one after the other.
struct Rule {
  Views xs;
  VariableOrdering variable_ordering = VariableOrdering::input_order;
  ValueOrdering value_ordering = ValueOrdering::min;
};

enum class Test : std::uint8_t { is, is_not, at_most, at_least };

// A test that holds in the first branch and does not in the second one.
struct Decision {
  View x;
  Test test;
  Value value;

  Decision negated() const;
  [[nodiscard]] bool apply(Domains& d) const;
  // True if it is known to hold.
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
  // Takes a trailed word: below the level where the search begins.
  Brancher(Engine& engine, Rule rule);

  // False: its variables all have values.
  bool decide(Engine& engine, Random& random, Decision& decision);

  const Rule& rule() const { return rule_; }

 private:
  std::size_t pick(Engine& engine, std::size_t first) const;
  // The least score is chosen.
  double rank(const Engine& engine, View x) const;

  Rule rule_;
  std::size_t first_;
};

// Value that a search tries first for a view.
struct Hint {
  View x;
  Value value;
};

// Decides hinted views in their order, as far as their domains have the hinted values.
class HintBrancher {
 public:
  // Takes a trailed word, as `Brancher`.
  HintBrancher(Engine& engine, const std::vector<Hint>& hints);

  // False: no hint is left that may be followed.
  bool decide(Engine& engine, Decision& decision);

 private:
  const std::vector<Hint>& hints_;
  std::size_t first_;
};

Decision decide_value(const Domains& d, View x, ValueOrdering ordering, Random& random);

}  // namespace elimina::cp
