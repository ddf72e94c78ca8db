#include "network/local_search.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "stop.hpp"

namespace elimina::network {

LocalSearch::LocalSearch(View view, std::uint64_t seed)
    : numbers_(view.numbers), sizes_(std::move(view.sizes)), random_(seed), touching_(sizes_.size()) {
  for (Var v = 0; v < count(); ++v) {
    first_.push_back(owner_.size());
    owner_.insert(owner_.end(), static_cast<std::size_t>(sizes_[v]), v);
  }
  gain_.resize(owner_.size());
  until_.resize(owner_.size());
  factors_.reserve(view.functions.size());
  double largest_cost = 0;
  for (View::Function& function : view.functions) {
    std::int64_t last = 0;
    for (const auto& [v, stride] : function.axes) {
      touching_[v].push_back({static_cast<int>(factors_.size()), stride});
      last += stride * (sizes_[v] - 1);
    }
    numbers_.as_cells(function.cells, [&](const auto* cells) {
      for (std::int64_t i = 0; i <= last; ++i)
        if (const double cost = numbers_.cost(cells[i]); cost < infinite)
          largest_cost = std::max(largest_cost, std::abs(cost));
    });
    factors_.push_back({std::move(function), 0, 0, false});
  }
  first_penalty_ = largest_cost > 0 ? largest_cost : 1;
}

void LocalSearch::start(const std::vector<int>& value) {
  value_ = value;
  best_ = value;
  std::fill(gain_.begin(), gain_.end(), 0.0);
  std::fill(until_.begin(), until_.end(), 0);
  total_ = 0;
  broken_ = 0;
  step_ = improved_ = 0;
  level_ = failures_ = 0;
  for (Factor& factor : factors_) {
    factor.penalty = first_penalty_;
    factor.at = 0;
    for (const auto& [v, stride] : factor.function.axes) factor.at += stride * value[v];
    const double cost =
        numbers_.as_cells(factor.function.cells, [&](const auto* cells) { return numbers_.cost(cells[factor.at]); });
    factor.broken = cost == infinite;
    broken_ += factor.broken;
    total_ += factor.broken ? factor.penalty : cost;
    measure(factor, 1);
  }
  best_cost_ = broken_ ? infinite : total_;
}

// Adds `sign` times a factor's contribution to the cost of each value of its variables (`gain_`).
void LocalSearch::measure(const Factor& factor, double sign) {
  numbers_.as_cells(factor.function.cells, [&](const auto* cells) {
    for (const auto& [v, stride] : factor.function.axes) {
      const auto* row = cells + (factor.at - stride * value_[v]);
      double* to = gain(v);
      const int size = sizes_[v];
      for (int x = 0; x < size; ++x) {
        const double cost = numbers_.cost(row[x * stride]);
        to[x] += sign * (cost < infinite ? cost : factor.penalty);
      }
      cells_ += size;
    }
  });
}

void LocalSearch::set(Var v, int x) {
  total_ += gain(v)[x] - gain(v)[value_[v]];
  for (const Incidence& incidence : touching_[v]) measure(factors_[incidence.factor], -1);
  for (const Incidence& incidence : touching_[v]) {
    Factor& factor = factors_[incidence.factor];
    factor.at += incidence.stride * (x - value_[v]);
    broken_ -= factor.broken;
    factor.broken = numbers_.as_cells(factor.function.cells,
                                      [&](const auto* cells) { return numbers_.cost(cells[factor.at]) == infinite; });
    broken_ += factor.broken;
  }
  value_[v] = x;
  for (const Incidence& incidence : touching_[v]) measure(factors_[incidence.factor], 1);
}

bool LocalSearch::keep_if_better() {
  // Sums of differences accumulate rounding errors, so tiny gains do not count.
  constexpr double drift = 1e-9;
  if (broken_ || !(best_cost_ == infinite || total_ < best_cost_ - drift * std::abs(best_cost_))) return false;
  best_cost_ = total_;
  best_ = value_;
  improved_ = step_;
  return true;
}

void LocalSearch::descend(std::uint64_t cells) {
  constexpr int most_reweighed = 10;
  const std::uint64_t end = cells_ + cells;
  int reweighed = 0;
  for (bool changed = true; std::exchange(changed, false) && cells_ < end && !stopped();) {
    for (Var v = 0; v < count(); ++v) {
      const int x = static_cast<int>(std::min_element(gain(v), gain(v) + sizes_[v]) - gain(v));
      if (!(gain(v)[x] < gain(v)[value_[v]])) continue;
      set(v, x);
      changed = true;
    }
    cells_ += gain_.size() + 1;
    if (changed || !broken_ || reweighed++ == most_reweighed) continue;
    reweigh();
    changed = true;
  }
  keep_if_better();
}

bool LocalSearch::run(std::uint64_t cells) {
  constexpr std::uint64_t between_looks = 16;  // number of steps between checks for a stop request
  const double before = best_cost_;
  const std::uint64_t end = cells_ + cells;
  const std::uint64_t patience = 100 + value_.size();
  while (cells_ < end && (step_ % between_looks != 0 || !stopped())) {
    move();
    if (!keep_if_better() && step_ - improved_ > patience) {
      stuck();
      improved_ = step_;
    }
  }
  return best_cost_ < before;
}

// Makes the best change of one value, even if it increases the cost; recent values are excluded unless they give a new
// best cost.
void LocalSearch::move() {
  ++step_;
  cells_ += gain_.size() + 1;
  double least = infinite;
  std::size_t chosen = gain_.size();
  std::uint64_t ties = 0;
  for (Var v = 0; v < count(); ++v) {
    const double now = gain(v)[value_[v]];
    for (int x = 0; x < sizes_[v]; ++x) {
      const double change = gain(v)[x] - now;
      if (change > least || x == value_[v]) continue;
      if (until_[first_[v] + x] > step_ && total_ + change >= best_cost_) continue;
      ties = change < least ? 1 : ties + 1;
      if (ties > 1 && random_() % ties) continue;
      least = change;
      chosen = first_[v] + x;
    }
  }
  if (chosen == gain_.size()) return;
  const Var v = owner_[chosen];
  until_[first_[v] + value_[v]] = step_ + 5 + random_() % 10;
  set(v, static_cast<int>(chosen - first_[v]));
}

void LocalSearch::return_to_best() {
  if (best_cost_ == infinite) return;
  for (Var v = 0; v < count(); ++v)
    if (value_[v] != best_[v]) set(v, best_[v]);
}

// Gives violated functions more weight.
void LocalSearch::reweigh() {
  for (Factor& factor : factors_) {
    if (!factor.broken) continue;
    measure(factor, -1);
    total_ += first_penalty_;
    factor.penalty += first_penalty_;
    measure(factor, 1);
  }
}

// Gives violated functions more weight, returns to the best solution, and changes a few of its values at random.
void LocalSearch::stuck() {
  reweigh();
  return_to_best();
  for (std::size_t i = 0; i < 2 + value_.size() / 50 && !value_.empty(); ++i) {
    const auto v = static_cast<Var>(random_() % value_.size());
    set(v, static_cast<int>(random_() % sizes_[v]));
  }
}

}  // namespace elimina::network
