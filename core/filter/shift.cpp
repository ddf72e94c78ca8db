#include "shift.hpp"

#include <algorithm>
#include <chrono>

#include "stop.hpp"
#include "versions.hpp"

namespace elimina::filter {

Shifter::Shifter(const Network& network)
    : size_(network.size), unary_(network.size.size()), touching_(network.size.size()), constant_(network.constant),
      limit_(network.upper - 1), upper_(network.upper) {
  for (Var v = 0; v < network.count(); ++v) unary_[v].assign(size_[v], 0);
  for (const Function& f : network.functions) {
    check_stop();
    if (f.arity() == 1) {
      for (int x = 0; x < size_[f.scope[0]]; ++x) unary_[f.scope[0]][x] = add(unary_[f.scope[0]][x], f.cost[x]);
      continue;
    }
    const auto [low, high] = std::minmax_element(f.scope.begin(), f.scope.end());
    for (int p = f.arity(); p-- > 0;) {
      const Var v = f.scope[p];
      touching_[v].push_back({static_cast<int>(functions_.size()), f.stride[p], v == *low, v == *high});
    }
    functions_.push_back(f);
  }
}

ELIMINA_VERSIONS void Shifter::least(const Incidence& incidence, Var v) {
  const auto& cost = functions_[incidence.function].cost;
  const std::size_t size = size_[v], stride = incidence.stride, block = stride * size;
  message_.assign(size, forbidden);
  Cost* low = message_.data();
  for (std::size_t start = 0; start < cost.size(); start += block) {
    const Cost* row = &cost[start];
    if (stride == 1) {
      for (std::size_t x = 0; x < size; ++x) low[x] = std::min(low[x], row[x]);
      continue;
    }
    for (std::size_t x = 0; x < size; ++x, row += stride) {
      Cost least = low[x];
      for (std::size_t i = 0; i < stride; ++i) least = std::min(least, row[i]);
      low[x] = least;
    }
  }
}

ELIMINA_VERSIONS void Shifter::shift(const Incidence& incidence, Var v) {
  auto& cost = functions_[incidence.function].cost;
  const std::size_t size = size_[v], stride = incidence.stride, block = stride * size;
  const Cost* by = message_.data();
  const auto moved = [](Cost c, Cost by) { return c >= forbidden || by >= forbidden ? forbidden : c + by; };
  for (std::size_t start = 0; start < cost.size(); start += block) {
    Cost* row = &cost[start];
    if (stride == 1) {
      for (std::size_t x = 0; x < size; ++x) row[x] = moved(row[x], by[x]);
      continue;
    }
    for (std::size_t x = 0; x < size; ++x, row += stride)
      for (std::size_t i = 0; i < stride; ++i) row[i] = moved(row[i], by[x]);
  }
}

void Shifter::visit(Var v, bool forward) {
  auto& unary = unary_[v];
  int ahead = 0, behind = 0;
  for (const Incidence& incidence : touching_[v]) {
    ahead += !incidence.last;
    behind += !incidence.first;
    least(incidence, v);
    for (int x = 0; x < size_[v]; ++x) {
      unary[x] = add(unary[x], message_[x]);
      if (message_[x] < forbidden) message_[x] = -message_[x];
    }
    shift(incidence, v);
  }
  Cost low = forbidden;
  for (int x = 0; x < size_[v]; ++x) {
    if (constant_ + unary[x] > limit_) unary[x] = forbidden;
    low = std::min(low, unary[x]);
  }
  constant_ = add(constant_, low);
  if (constant_ > limit_) {
    blamed_ = v;
    return;
  }
  for (Cost& c : unary)
    if (c < forbidden) c -= low;
  const Cost shares = std::max({ahead, behind, 1});
  std::vector<Cost> remaining = unary;
  for (const Incidence& incidence : touching_[v]) {
    const bool sends = forward ? !incidence.last : !incidence.first;
    for (int x = 0; x < size_[v]; ++x) {
      message_[x] = unary[x] >= forbidden ? forbidden : sends ? unary[x] / shares : 0;
      if (unary[x] < forbidden) remaining[x] -= message_[x];
    }
    shift(incidence, v);
  }
  unary = remaining;
}

void Shifter::drop_cells() {
  Looks looks(1 << 16);
  for (Function& f : functions_) {
    Cost* next = f.cost.data();
    for_each_cell(size_, f.scope, [&](const std::vector<int>& digit) {
      looks.look();
      Cost& c = *next++;
      if (c >= forbidden) return;
      Cost total = constant_ + c;
      for (std::size_t i = 0; i < digit.size(); ++i) total = add(total, unary_[f.scope[i]][digit[i]]);
      if (total > limit_) c = forbidden;
    });
  }
}

void Shifter::run(int passes, Cost least_gain) {
  const Var n = static_cast<Var>(size_.size());
  for (int pass = 0; pass < passes; ++pass) {
    const Cost before = constant_;
    for (Var v = 0; v < n && !infeasible() && !stopped(); ++v) visit(v, true);
    for (Var v = n; v-- > 0 && !infeasible() && !stopped();) visit(v, false);
    if (infeasible() || stopped()) return;
    if (limit_ < forbidden - 1) drop_cells();
    if (constant_ - before < least_gain) break;
  }
}

std::vector<std::vector<int>> Shifter::kept() const {
  std::vector<std::vector<int>> result(size_.size());
  for (std::size_t v = 0; v < size_.size(); ++v)
    for (int x = 0; x < size_[v]; ++x)
      if (unary_[v][x] < forbidden) result[v].push_back(x);
  return result;
}

Network Shifter::network() const {
  Network result{size_, functions_, constant_, std::min(upper_, limit_ + 1)};
  for (std::size_t v = 0; v < size_.size(); ++v) result.add_function({static_cast<Var>(v)}, unary_[v]);
  return result;
}

Network shift(const Network& network, double seconds, Cost least_gain, const Poll& poll) {
  const auto start = std::chrono::steady_clock::now();
  Shifter shifter(network);
  const TimeLimit limit(seconds);
  try {
    for (Cost before = -1; !shifter.infeasible();) {
      shifter.run(1, 0);
      if (shifter.bound() - before < least_gain) break;
      before = shifter.bound();
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
      if (elapsed.count() > seconds || !poll(before, network.upper, nullptr)) break;
    }
  } catch (const Stopped&) {
    // A stop request is obeyed between two removals of cells. Each removed cell is too expensive by itself, so the
    // network is equivalent to the original even if only some such cells were removed.
  }
  return shifter.network();
}

}  // namespace elimina::filter
