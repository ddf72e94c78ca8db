// Least costs, in a relaxation, of the solutions with each value. These costs order values, and exclude values that no
// better solution has (reduced cost filtering: Focacci, Lodi and Milano, CP 1999).
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "branching.hpp"

namespace elimina::cp {

class ValueCosts {
 public:
  // A value of a variable, and the least cost of solutions with this value, in units.
  struct Entry {
    int variable;
    Value value, cost;
  };

  // A solution with the value of an entry has an objective of at least ceil(cost / unit) + offset.
  ValueCosts(std::vector<Entry> entries, Value unit, Value offset);

  // Removes values with which the objective is at least `best`. The entries are sorted by cost, the most expensive
  // first; the search begins at `position` and advances it. Returns false if a domain becomes empty.
  [[nodiscard]] bool filter(Domains& d, Value best, std::size_t& position) const;

  // Returns the decision for the cheapest value of the variable with the largest regret (the difference of its two
  // least costs); nullopt if all variables with costs have values.
  std::optional<Decision> decide(const Engine& engine) const;
  // Returns the decision for the cheapest value of a variable; nullopt if the variable has no costs.
  std::optional<Decision> decide(const Domains& d, View x) const;

 private:
  struct Variable {
    int variable;
    std::size_t first, last;  // its entries, the cheapest first
  };

  std::vector<Entry> entries_, by_cost_;  // sorted by variable; sorted by cost, the most expensive first
  std::vector<Variable> variables_;
  std::vector<std::size_t> ranks_;  // for each variable, 1 + its position in `variables_`, or 0
  Value unit_, offset_;
};

// Costs that one thread hands to others.
class SharedValueCosts {
 public:
  void set(std::shared_ptr<const ValueCosts> costs) {
    const std::lock_guard lock(mutex_);
    costs_ = std::move(costs);
  }
  std::shared_ptr<const ValueCosts> get() const {
    const std::lock_guard lock(mutex_);
    return costs_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const ValueCosts> costs_;
};

}  // namespace elimina::cp
