#include "solver.hpp"

#include <algorithm>

#include "propagators/matching.hpp"

namespace elimina::cp {

View Solver::new_variable(const Values& values) {
  if (values.empty()) throw Refused("a variable has at least one value");
  Values sorted = values;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  const View x = new_variable(sorted.front(), sorted.back());
  if (sorted.back() - sorted.front() + 1 != static_cast<Value>(sorted.size())) post_member(engine_, x, std::move(sorted));
  return x;
}

View Solver::fixed(Value value) {
  const auto [place, is_new] = fixed_.try_emplace(value);
  if (is_new) place->second = new_variable(value, value);
  return place->second;
}

bool Solver::wants_device() {
  bool result = false;
  engine_.each_propagator([&](Propagator& p) {
    auto* const matching = dynamic_cast<Matching*>(&p);
    if (!matching || !DeviceBatch::can_filter(domains(), *matching)) return;
    result |= matching->side() == Side::gpu || matching->views().size() >= DeviceBatch::kWorthwhile;
  });
  return result;
}

void Solver::accelerate(std::unique_ptr<FilterDevice> device, bool measures) {
  batch_ = std::make_unique<DeviceBatch>(engine_, std::move(device), measures);
}

}  // namespace elimina::cp
