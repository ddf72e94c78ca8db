#include "solver.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "propagators/matching.hpp"

namespace elimina::cp {

namespace {

constexpr double kPatience = 2;

}  // namespace

View Solver::new_variable(const Values& values) {
  if (values.empty()) throw Refused("a variable has at least one value");
  Values sorted = values;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  const View x = new_variable(sorted.front(), sorted.back());
  if (sorted.back() - sorted.front() + 1 != static_cast<Value>(sorted.size()))
    post_member(engine_, x, std::move(sorted));
  return x;
}

View Solver::fixed(Value value) {
  const auto [entry, is_new] = fixed_.try_emplace(value);
  if (is_new) entry->second = new_variable(value, value);
  return entry->second;
}

double Solver::device_delay() {
  double result = std::numeric_limits<double>::infinity();
  engine_.each_propagator([&](Propagator& p) {
    auto* const matching = dynamic_cast<Matching*>(&p);
    if (!matching || !DeviceBatch::can_filter(domains(), *matching)) return;
    if (matching->side() == Side::gpu) result = 0;
    else if (matching->views().size() >= DeviceBatch::kWorthwhile) result = std::min(result, kPatience);
  });
  return result;
}

// Called now and then during a search. `find_` looks for a device in the background, which takes a second or two.
void Solver::has_searched(double seconds) {
  constexpr double kInterval = 0.05;
  if (!find_ || seconds < std::max(next_look_, kPatience)) return;
  next_look_ = seconds + kInterval;
  auto device = find_();
  if (!device) return;
  find_ = nullptr;
  if (*device) accelerate(std::move(*device), true);
}

void Solver::accelerate(std::unique_ptr<FilterDevice> device, bool measures) {
  batch_ = std::make_unique<DeviceBatch>(engine_, std::move(device), measures);
}

}  // namespace elimina::cp
