// Simulates both passes of agents on their pseudo-tree, if the work of each elimination is known: UTIL messages go up,
// VALUE messages down.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "dcop/delivery.hpp"
#include "dcop/traversal.hpp"

namespace elimina::dcop {

struct Chain {
  double seconds;  // the latest clock
  i64 operations;  // operations on the longest chain of messages
};

// Delivers the messages of both passes, without contents. `traversals`: one for each variable, complete. `owners`:
// agent of each variable. `clocks`: clock of each agent, in seconds. `operations`: work of eliminating each variable.
// `pace`: seconds of an operation. `poll`: see `Network`.
Chain pass(std::span<Traversal* const> traversals, std::span<const int> owners, std::vector<double> clocks,
           std::span<const i64> operations, double pace, const Delivery& delivery, const std::function<void()>& poll);

}  // namespace elimina::dcop
