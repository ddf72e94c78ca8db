// Agents of one process that build their pseudo-tree.
#pragma once
#include <array>
#include <functional>
#include <span>
#include <vector>

#include "dcop/delivery.hpp"
#include "dcop/traversal.hpp"

namespace elimina::dcop {

struct Agreement {
  std::array<i64, kKinds> messages{};  // number of messages between agents, by kind
  std::vector<double> clocks;  // time at which each agent has processed its last message of the kind, in seconds
};

// Runs the traversals of all variables to their end. Messages between variables of one agent are not counted.
// `traversals`: one for each variable, not started. `owners`: agent of each variable. `agents`: number of agents.
// `poll`: see `Network`.
Agreement agree(std::span<Traversal* const> traversals, std::span<const int> owners, int agents,
                const Delivery& delivery, const std::function<void()>& poll);

}  // namespace elimina::dcop
