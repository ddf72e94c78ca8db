#include "dominance.hpp"

#include <algorithm>

#include "stop.hpp"

namespace elimina::filter {

namespace {

// Returns the largest excess of b's cost over a's cost in a function; `forbidden` if, for some values of the other
// variables, only b is forbidden.
Cost worst(const Function& f, std::size_t stride, int size, int a, int b) {
  const auto& cost = f.cost;
  const std::size_t block = stride * size;
  Cost largest = -forbidden;
  for (std::size_t start = 0; start < cost.size(); start += block) {
    const Cost* at_a = &cost[start + a * stride];
    const Cost* at_b = &cost[start + b * stride];
    for (std::size_t i = 0; i < stride; ++i) {
      if (at_a[i] >= forbidden) continue;
      if (at_b[i] >= forbidden) return forbidden;
      largest = std::max(largest, at_b[i] - at_a[i]);
    }
  }
  return largest;
}

// Returns the value whose mean costs in the functions have the least sum.
int cheapest(const Network& network, const std::vector<Occurrence>& occurrences, int size) {
  std::vector<double> mean(size, 0);
  for (const Occurrence& occurrence : occurrences) {
    const Function& f = network.functions[occurrence.function];
    const auto& cost = f.cost;
    const std::size_t stride = f.stride[occurrence.position];
    for (std::size_t i = 0; i < cost.size(); ++i)
      mean[i / stride % size] += static_cast<double>(cost[i]) * size / static_cast<double>(cost.size());
  }
  return static_cast<int>(std::min_element(mean.begin(), mean.end()) - mean.begin());
}

}  // namespace

bool drop_dominated(const Network& network, std::vector<std::vector<int>>& remaining_values) {
  const auto touching = network.touching();
  bool changed = false;
  for (Var v = 0; v < network.count(); ++v) {
    check_stop();
    // Testing all pairs would take longer by a factor of the domain's size, and remove few more values.
    const int b = cheapest(network, touching[v], network.size[v]);
    std::vector<int> undominated{b};
    for (int a : remaining_values[v]) {
      if (a == b) continue;
      Cost total = 0;
      for (const Occurrence& occurrence : touching[v]) {
        const Function& f = network.functions[occurrence.function];
        total += worst(f, f.stride[occurrence.position], network.size[v], a, b);
        if (total >= forbidden / 2) break;
      }
      if (total > 0) undominated.push_back(a);
    }
    std::sort(undominated.begin(), undominated.end());
    changed |= undominated.size() < remaining_values[v].size();
    remaining_values[v] = undominated;
  }
  return changed;
}

}  // namespace elimina::filter
