#include "schedule.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace elimina::cp {

namespace {

constexpr Restarts kLuby{Restarts::Kind::luby, 100, 1};

// Value of `Row::least_factor` for rows that prove nothing by themselves. Their smaller shares save a third of the time
// of proofs for job shops and Golomb rulers.
constexpr double kIdleFactor = 0.25;

// Returns term i of Luby, Sinclair and Zuckerman's sequence, where i counts from 1: 1 1 2 1 1 2 4 ...
double luby(std::uint64_t i) {
  for (;;) {
    std::uint64_t size = 1;
    while (size < i) size = 2 * size + 1;
    if (size == i) return static_cast<double>((size + 1) / 2);
    i -= size / 2;
  }
}

}  // namespace

double Restarts::cutoff(std::uint64_t round) const {
  switch (kind) {
    case Kind::constant: return scale;
    case Kind::linear: return scale * static_cast<double>(round);
    case Kind::geometric: return scale * std::pow(growth, static_cast<double>(round - 1));
    case Kind::luby: return scale * luby(round);
    default: return std::numeric_limits<double>::infinity();
  }
}

bool Schedule::has(Scope scope) const {
  return std::any_of(rows_.begin(), rows_.end(), [&](const Row& row) { return row.scope == scope; });
}

bool Schedule::has_free() const {
  return std::any_of(rows_.begin(), rows_.end(), [](const Row& row) { return row.ordering != Ordering::model; });
}

bool Schedule::restarts() const {
  return std::any_of(rows_.begin(), rows_.end(),
                     [](const Row& row) { return row.restarts.kind != Restarts::Kind::none; });
}

std::vector<Row> portfolio_rows(double scale, bool has_orderings) {
  const Restarts pace{Restarts::Kind::luby, std::max(1.0, 100 * scale), 1};
  std::vector<Row> rows;
  // The model's ordering may be a good one, so it comes first. Nogoods let each later stretch of this row resume where
  // the last one stopped.
  if (has_orderings)
    rows.push_back({Scope::tree, Ordering::model, 0.125, {Restarts::Kind::geometric, std::max(1.0, 500 * scale), 1.5}});
  // The best row for proofs, and for models without orderings.
  rows.push_back({Scope::tree, Ordering::free, 0.375, pace});
  // Searches near the incumbent. The second row prefers the values that the model prefers, such as early starts of
  // tasks.
  rows.push_back({Scope::neighbourhood, Ordering::free, 0.25, pace, kIdleFactor});
  rows.push_back({Scope::neighbourhood, Ordering::model, 0.25, pace, kIdleFactor});
  // A schedule cannot be shortened while tasks keep their starts, so this row keeps the orders of tasks. Its share does
  // not shrink, because schedules of large projects become shorter even after long stretches without success.
  rows.push_back({Scope::task_neighbourhood, Ordering::model, 0.5, pace});
  // If the relaxation is tight, its cheapest values are those of good solutions.
  rows.push_back({Scope::tree, Ordering::costs, 0.125, pace, kIdleFactor});
  rows.push_back({Scope::neighbourhood, Ordering::costs, 0.25, pace, kIdleFactor});
  // The bound often equals the optimum after a few hundred failures; later targets would then waste the share of this
  // row, so the share is small.
  rows.push_back({Scope::target, Ordering::free, 0.125, pace, kIdleFactor});
  return rows;
}

std::vector<Row> forced_rows(const Restarts& restarts, bool free, bool relaxes) {
  const bool has_pace = restarts.kind != Restarts::Kind::none;
  const Restarts pace = has_pace || !(free || relaxes) ? restarts : kLuby;
  const Ordering ordering = free ? Ordering::free : Ordering::model;
  if (!relaxes) return {{Scope::tree, ordering, 1, pace}};
  return {{Scope::tree, ordering, 0.5, pace}, {Scope::neighbourhood, ordering, 0.5, pace}};
}

std::vector<Row> rows_of_thread(const std::vector<Row>& rows, std::size_t thread, std::size_t threads) {
  // If there are more threads than rows, the further threads use all rows, with different seeds.
  if (thread >= rows.size()) return rows;
  std::vector<Row> result;
  for (std::size_t i = thread; i < rows.size(); i += threads) result.push_back(rows[i]);
  // A thread needs a row to begin with. Without an incumbent, only rows of the whole tree apply, and rows that follow
  // costs of values also wait for these costs.
  if (result.front().scope != Scope::tree || result.front().ordering == Ordering::costs)
    result.insert(result.begin(), {Scope::tree, Ordering::free, 0.125, kLuby});
  return result;
}

}  // namespace elimina::cp
