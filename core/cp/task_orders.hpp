// Precedence branching: the orders of tasks that do not overlap are decided before their starts (Grimes and Hebrard,
// INFORMS Journal on Computing 27, 2015).
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "branching.hpp"

namespace elimina::cp {

// Two tasks, and a Boolean that is 1 if the first one comes first.
struct TaskOrder {
  View is_first;
  std::array<View, 2> starts;
  std::array<Value, 2> durations;
};

class OrderBrancher {
 public:
  // Reserves a trailed word, so construct it before the search's first level.
  OrderBrancher(Engine& engine, std::vector<TaskOrder> orders);

  // Decides the order of the pair of tasks with the least ratio of their time windows to their failures; first tries
  // the order that leaves more room. Returns nullopt if all orders are decided.
  std::optional<Decision> decide(Engine& engine);
  // Decides one order by its Boolean, even if it is decided already. Returns nullopt if the variable is not the Boolean
  // of an order.
  std::optional<Decision> decide(const Domains& d, View x) const;

  // True if the variable is a start: orders decide it, so its saved value is useless.
  bool is_start(View x) const { return kinds_[static_cast<std::size_t>(x.var)] == kStart; }
  // The Booleans of all orders.
  Views variables() const;

 private:
  static constexpr int kNone = -1, kStart = -2;

  static Decision decide(const Domains& d, const TaskOrder& order);

  std::vector<TaskOrder> orders_;
  std::vector<int> kinds_;  // kind of each variable; 0 or more: number of its order
  std::size_t first_;
};

}  // namespace elimina::cp
