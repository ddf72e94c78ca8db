#include "task_orders.hpp"

#include <algorithm>
#include <limits>

namespace elimina::cp {

OrderBrancher::OrderBrancher(Engine& engine, std::vector<TaskOrder> orders)
    : orders_(std::move(orders)), kinds_(static_cast<std::size_t>(engine.domains().count()), kNone),
      first_(engine.trail().make(1, 0)) {
  for (const TaskOrder& order : orders_)
    for (const View x : order.starts) kinds_[static_cast<std::size_t>(x.var)] = kStart;
  for (std::size_t i = 0; i < orders_.size(); ++i)
    kinds_[static_cast<std::size_t>(orders_[i].is_first.var)] = static_cast<int>(i);
}

std::optional<Decision> OrderBrancher::decide(Engine& engine) {
  const Domains& d = engine.domains();
  auto first = static_cast<std::size_t>(engine.trail().get(first_));
  while (first < orders_.size() && d.fixed(orders_[first].is_first)) ++first;
  engine.trail().set(first_, first);
  if (first == orders_.size()) return std::nullopt;
  engine.weigh_active();
  const TaskOrder* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = first; i < orders_.size(); ++i) {
    const TaskOrder& order = orders_[i];
    if (d.fixed(order.is_first)) continue;
    const double rank = static_cast<double>(d.size(order.starts[0]) + d.size(order.starts[1])) /
                        (std::max(engine.weight(order.is_first.var), 0.0) + 1);
    if (rank >= least) continue;
    least = rank;
    best = &order;
  }
  return decide(d, *best);
}

std::optional<Decision> OrderBrancher::decide(const Domains& d, View x) const {
  const int kind = kinds_[static_cast<std::size_t>(x.var)];
  if (kind < 0) return std::nullopt;
  return decide(d, orders_[static_cast<std::size_t>(kind)]);
}

Decision OrderBrancher::decide(const Domains& d, const TaskOrder& order) {
  const auto room = [&](int i) { return d.hi(order.starts[1 - i]) - d.lo(order.starts[i]) - order.durations[i]; };
  return {order.is_first, Test::is, room(0) >= room(1)};
}

Views OrderBrancher::variables() const {
  Views result;
  for (const TaskOrder& order : orders_) result.push_back(order.is_first);
  return result;
}

}  // namespace elimina::cp
