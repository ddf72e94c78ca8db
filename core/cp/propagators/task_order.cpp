// A Boolean for the order of two tasks that do not overlap. Free searches decide these Booleans before the starts
// (core/cp/task_orders.hpp).
#include <algorithm>
#include <memory>

#include "cp/constraint_call.hpp"

namespace elimina::cp {

namespace {

class OrderOfTwo final : public Propagator {
 public:
  explicit OrderOfTwo(const TaskOrder& order) : Propagator(Priority::ternary), order_(order) {}

  void attach(Engine& engine) override {
    engine.subscribe(*this, order_.is_first, kFix);
    for (const View x : order_.starts) engine.subscribe(*this, x, kBounds);
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    if (!d.fixed(order_.is_first)) {
      const bool is_before = may_precede(d, 0), is_after = may_precede(d, 1);
      if (is_before && is_after) return Outcome::fixpoint;
      if ((!is_before && !is_after) || !d.assign(order_.is_first, is_before)) return Outcome::failed;
    }
    const int first = d.lo(order_.is_first) == 1 ? 0 : 1;
    const View start = order_.starts[first], next = order_.starts[1 - first];
    const Value duration = order_.durations[first];
    if (!d.set_lo(next, d.lo(start) + duration) || !d.set_hi(start, d.hi(next) - duration)) return Outcome::failed;
    return d.hi(start) + duration <= d.lo(next) ? Outcome::entailed : Outcome::again;
  }

 private:
  bool may_precede(const Domains& d, int i) const {
    return d.lo(order_.starts[i]) + order_.durations[i] <= d.hi(order_.starts[1 - i]);
  }

  TaskOrder order_;
};

}  // namespace

void post_task_orders(const ConstraintCall& call, const Views& starts, const Views& durations) {
  constexpr std::size_t kMaxTasks = 100;  // 4,950 pairs: more propagators cost more than their orders save
  const Domains& d = call.engine().domains();
  if (starts.size() > kMaxTasks) return;
  if (std::ranges::any_of(durations, [&](View x) { return d.lo(x) <= 0; })) return;
  for (std::size_t i = 0; i < starts.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) {
      const TaskOrder order{call.new_boolean(), {starts[k], starts[i]}, {d.lo(durations[k]), d.lo(durations[i])}};
      call.engine().post(std::make_unique<OrderOfTwo>(order));
      call.add_order(order);
    }
}

}  // namespace elimina::cp
