// Tabu search for a good solution.
#pragma once
#include "model.hpp"

namespace elimina::filter::ELIMINA_ISA {

struct Solution {
  std::vector<int> value;
  Cost cost = forbidden;
};

// Starts at an assignment; forbidden cells weigh `penalty`. Deterministic for a seed, unless the thread is to stop.
Solution climb(const Model& model, std::vector<int> start, Cost penalty, std::int64_t steps, std::uint64_t seed);

}  // namespace elimina::filter::ELIMINA_ISA
