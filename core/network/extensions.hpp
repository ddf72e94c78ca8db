// The best values of eliminated variables, once all other variables have values.
#pragma once
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "network/network.hpp"

namespace elimina::network {

// Finds assignments in the order of their costs (Lawler, 1972). Each differs from an earlier one in the value of an
// eliminated variable; all variables eliminated before that variable get their best values. `Elimination` lists the
// variables in the sequence of their elimination (`eliminated_count()`, `eliminated(rank)`). Its `list_costs(rank,
// value, costs)` appends the cost of each value of such a variable, given the values of all variables that were not
// eliminated before it, and may overwrite the variable's own value. The difference between the costs of two values is
// the difference between the costs of the best assignments with these values.
template <class Elimination>
class Extensions {
 public:
  // `count`: largest number of assignments to find.
  explicit Extensions(std::size_t count) : count_(count) {}

  // Begins with the values of all variables that are not eliminated, and the cost of the best assignment with them. The
  // elimination must not change before `end`.
  void start(const Elimination& elimination, Cost cost, const std::vector<int>& value) {
    open_.clear();
    remaining_ = count_;
    is_started_ = true;
    add(cost, {std::make_shared<std::vector<int>>(value), elimination.eliminated_count(), -1});
  }

  // Finds the next assignment that is cheaper than the top; returns false if there is none.
  bool next(const Elimination& elimination, Cost top, std::vector<int>& value) {
    if (remaining_ == 0 || open_.empty() || open_.begin()->first >= top) return false;
    const auto [cost, deviation] = std::move(*open_.begin());
    open_.erase(open_.begin());
    --remaining_;
    value = *deviation.value;
    if (deviation.other >= 0) value[elimination.eliminated(deviation.rank)] = deviation.other;
    const auto shared = std::make_shared<std::vector<int>>();
    for (std::size_t rank = deviation.rank; rank-- > 0;) {
      costs_.clear();
      elimination.list_costs(rank, value, costs_);
      const auto best = *std::min_element(costs_.begin(), costs_.end(), [](const auto& first, const auto& other) {
        return first.second < other.second;
      });
      value[elimination.eliminated(rank)] = best.first;
      for (const auto& [other, other_cost] : costs_)
        if (other != best.first && cost + (other_cost - best.second) < top)
          add(cost + (other_cost - best.second), {shared, rank, other});
    }
    *shared = value;
    return true;
  }

  void end() {
    open_.clear();
    is_started_ = false;
  }
  bool is_started() const { return is_started_; }

 private:
  struct Deviation {
    std::shared_ptr<const std::vector<int>> value;  // values of the earlier assignment
    std::size_t rank;                               // place of the variable among the eliminated ones
    int other;                                      // the variable's value in the new assignment; -1: no variable
  };

  void add(Cost cost, Deviation deviation) {
    if (open_.size() == remaining_) {
      if (remaining_ == 0 || std::prev(open_.end())->first <= cost) return;
      open_.erase(std::prev(open_.end()));
    }
    open_.emplace(cost, std::move(deviation));
  }

  std::size_t count_, remaining_ = 0;
  bool is_started_ = false;
  std::multimap<Cost, Deviation> open_;  // at most `remaining_` deviations
  std::vector<std::pair<int, Cost>> costs_;
};

}  // namespace elimina::network
