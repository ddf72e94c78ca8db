// Agents of one process that make their pseudo-tree: messages are delivered one after another, and each agent has a clock of its own.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "dcop/traversal.hpp"

namespace elimina::dcop {

enum class Order { time, fifo, random };

struct Delivery {
  Order order = Order::time;
  double delay = 0, jitter = 0;  // seconds that each message takes, and at most takes longer
  std::uint64_t seed = 0;
};

struct Agreement {
  std::array<i64, kKinds> messages{};  // between agents, by kind
  std::vector<double> clocks;          // of each agent, when its last message of the kind is dealt with, in seconds
};

// Run the traversals of all variables to their end. Only messages between agents count.
//
// `traversals`: one for each variable, none of them started. `owners`: the agent of each variable. `agents`: their number. `poll`: called now and
// then; the run ends early where it throws.
Agreement agree(std::span<Traversal* const> traversals, std::span<const int> owners, int agents, const Delivery& delivery, const std::function<void()>& poll);

}  // namespace elimina::dcop
