#include <algorithm>
#include <cmath>

#include "network/local_search.hpp"
#include "stop.hpp"

namespace elimina::network {

namespace {

// Largest number of cells of a table (`first_cells`) and number of variables (`first_variables`) of a neighbourhood at
// level 0. From each level to the next, these limits grow by the factors `more_cells` and `more_variables`, but to at
// most `most_variables` variables. Even a neighbourhood of the last level visits only some millions of cells.
constexpr double first_cells = 1 << 6, more_cells = 4;
constexpr double first_variables = 32, more_variables = 2, most_variables = 1024;
constexpr int last_level = 5;
constexpr int patience = 8;  // neighbourhoods of a level without a better solution

// Layout of a message or of a factor in a cluster's table: its strides along the cluster's variables, and its first
// cell.
struct Strided {
  std::vector<std::int64_t> strides;
  std::int64_t at;
};

// Calls a function with each cell of a table of these sizes, and with the corresponding offset of `from`.
template <class Visit>
void for_each_offset(const std::vector<int>& sizes, const Strided& from, Visit visit) {
  std::vector<int> digit(sizes.size(), 0);
  const std::size_t last = sizes.size() - 1;
  std::size_t cell = 0;
  for (std::int64_t at = from.at;;) {
    for (int x = 0; x < sizes[last]; ++x) visit(cell++, at + x * from.strides[last]);
    std::size_t i = last;
    for (;;) {
      if (i-- == 0) return;
      at += from.strides[i];
      if (++digit[i] < sizes[i]) break;
      at -= from.strides[i] * sizes[i];
      digit[i] = 0;
    }
  }
}

}  // namespace

// Gives the neighbourhood's variables the best values for the current values of all others. Ties are broken at random,
// so that the search moves between solutions of equal cost. Returns false on a stop request.
bool LocalSearch::solve(const Neighbourhood& neighbourhood) {
  const auto& [order, separators] = neighbourhood;
  const std::size_t length = order.size();
  constexpr std::size_t kept = static_cast<std::size_t>(-1);
  std::vector<std::size_t> rank(sizes_.size(), kept);
  for (std::size_t i = 0; i < length; ++i) rank[order[i]] = i;
  std::vector<std::vector<std::size_t>> inbox(length);
  std::vector<std::vector<double>> message(length);
  std::vector<std::vector<int>> choice(length);
  std::vector<double> sum;
  for (std::size_t i = 0; i < length; ++i) {
    if (stopped()) return false;
    std::vector<Var> cluster = separators[i];
    cluster.push_back(order[i]);
    std::vector<int> sizes;
    std::size_t cells = 1;
    for (const Var v : cluster) {
      sizes.push_back(sizes_[v]);
      cells *= static_cast<std::size_t>(sizes_[v]);
    }
    sum.assign(cells, 0);
    for (const Incidence& incidence : touching_[order[i]]) {
      const Factor& factor = factors_[incidence.factor];
      Strided from{std::vector<std::int64_t>(cluster.size()), factor.at};
      bool is_first = true;
      for (const auto& [v, stride] : factor.function.axes) {
        if (rank[v] == kept) continue;
        is_first = is_first && rank[v] >= i;
        from.at -= stride * value_[v];
        const auto axis = std::find(cluster.begin(), cluster.end(), v);
        if (axis != cluster.end()) from.strides[static_cast<std::size_t>(axis - cluster.begin())] = stride;
      }
      if (!is_first) continue;
      numbers_.as_cells(factor.function.cells, [&](const auto* table) {
        for_each_offset(sizes, from, [&](std::size_t cell, std::int64_t at) {
          const double cost = numbers_.cost(table[at]);
          sum[cell] += cost < infinite ? cost : factor.penalty;
        });
      });
      cells_ += cells;
    }
    for (const std::size_t sender : inbox[i]) {
      Strided from{std::vector<std::int64_t>(cluster.size()), 0};
      std::int64_t stride = 1;
      for (std::size_t n = separators[sender].size(); n-- > 0; stride *= sizes_[separators[sender][n]]) {
        const auto axis = std::find(cluster.begin(), cluster.end(), separators[sender][n]);
        from.strides[static_cast<std::size_t>(axis - cluster.begin())] = stride;
      }
      for_each_offset(sizes, from, [&](std::size_t cell, std::int64_t at) {
        sum[cell] += message[sender][static_cast<std::size_t>(at)];
      });
      cells_ += cells;
      message[sender] = {};
    }
    const std::size_t size = static_cast<std::size_t>(sizes.back());
    message[i].resize(cells / size);
    choice[i].resize(cells / size);
    for (std::size_t cell = 0; cell < cells / size; ++cell) {
      const double* row = sum.data() + cell * size;
      std::size_t best = 0;
      std::uint64_t ties = 1;
      for (std::size_t x = 1; x < size; ++x) {
        if (row[x] > row[best]) continue;
        ties = row[x] < row[best] ? 1 : ties + 1;
        if (ties == 1 || random_() % ties == 0) best = x;
      }
      message[i][cell] = row[best];
      choice[i][cell] = static_cast<int>(best);
    }
    cells_ += cells;
    if (separators[i].empty()) continue;
    std::size_t next = length;
    for (const Var v : separators[i]) next = std::min(next, rank[v]);
    inbox[next].push_back(i);
  }
  std::vector<int> value = value_;
  for (std::size_t i = length; i-- > 0;) {
    std::size_t cell = 0;
    for (const Var v : separators[i])
      cell = cell * static_cast<std::size_t>(sizes_[v]) + static_cast<std::size_t>(value[v]);
    value[order[i]] = choice[i][cell];
  }
  for (const Var v : order)
    if (value[v] != value_[v]) set(v, value[v]);
  return true;
}

bool LocalSearch::explore(std::uint64_t cells) {
  if (sizes_.empty()) return false;
  const double before = best_cost_;
  const std::uint64_t end = cells_ + cells;
  if (!neighbourhoods_) {
    View view{numbers_, sizes_, {}};
    for (const Factor& factor : factors_) view.functions.push_back(factor.function);
    neighbourhoods_.emplace(view);
  }
  return_to_best();
  while (cells_ < end) {
    const double variables = std::min(most_variables, first_variables * std::pow(more_variables, level_));
    const Neighbourhood drawn =
        neighbourhoods_->draw(static_cast<std::size_t>(variables), first_cells * std::pow(more_cells, level_), random_);
    cells_ += drawn.order.size() + 1;
    if (!solve(drawn)) break;
    if (keep_if_better()) {
      level_ = std::max(0, level_ - 1);
      failures_ = 0;
      continue;
    }
    if (!broken_ && total_ <= best_cost_) best_ = value_;  // a solution of the same cost replaces the best one
    if (best_cost_ == infinite) reweigh();
    if (++failures_ < patience) continue;
    failures_ = 0;
    if (level_ < last_level) {
      ++level_;
    } else {
      level_ = 0;
      stuck();
    }
  }
  return best_cost_ < before;
}

}  // namespace elimina::network
