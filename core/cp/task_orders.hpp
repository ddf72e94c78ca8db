// Precedence branching: the orders of tasks that do not overlap are decided before their starts (Grimes and Hebrard, INFORMS Journal on
// Computing 27, 2015).
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "branching.hpp"

namespace elimina::cp {

// Two tasks, and a Boolean: whether the first one comes first.
struct TaskOrder {
  View is_first;
  std::array<View, 2> starts;
  std::array<Value, 2> durations;
};

class OrderBrancher {
 public:
  // Takes a trailed word: below the level where the search begins.
  OrderBrancher(Engine& engine, std::vector<TaskOrder> orders);

  // The order of two tasks that have little room and failed often: the one that leaves more room first. None: all have values.
  std::optional<Decision> decide(Engine& engine);
  // The same for one variable; none: it is not an order.
  std::optional<Decision> decide(const Domains& d, View x) const;

  // True if the variable is a start: orders decide it, so a value that it had before means nothing.
  bool is_start(View x) const { return kinds_[static_cast<std::size_t>(x.var)] == kStart; }
  // The Booleans.
  Views variables() const;

 private:
  static constexpr int kNone = -1, kStart = -2;

  static Decision decide(const Domains& d, const TaskOrder& order);

  std::vector<TaskOrder> orders_;
  std::vector<int> kinds_;  // of each variable; from 0 on: its order
  std::size_t first_;
};

}  // namespace elimina::cp
