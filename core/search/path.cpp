#include "path.hpp"

#include <algorithm>

namespace elimina::search {

Path::Path(const Problem& problem)
    : problem_(problem), value_(problem.size.size()), row_(problem.tables.size()), sent_(problem.tables.size()) {
  for (const Table& table : problem.tables) {
    const int first = static_cast<int>(axes_.size());
    axes_.insert(axes_.end(), table.axes.begin(), table.axes.end());
    head_.push_back({table.offset, table.stride, first, static_cast<int>(axes_.size())});
  }
}

void Path::expand(Var v, double* cost, double* bound) {
  const int count = problem_.size[v];
  double sent = 0;
  for (const int t : problem_.through(v)) sent += sent_[t];
  std::fill_n(cost, count, 0.0);
  std::fill_n(bound, count, sent);
  problem_.arena.as_cells([&](const auto* cells) {
    const auto add = [&](int t, double* to) {
      const std::int64_t stride = head_[t].stride;
      const auto* row = cells + (row_[t] = locate(t));
      for (int x = 0; x < count; ++x) to[x] += problem_.arena.cost(row[x * stride]);
    };
    for (const int t : problem_.factors[v]) add(t, cost);
    for (const int t : problem_.messages[v]) add(t, bound);
  });
  for (int x = 0; x < count; ++x) bound[x] = problem_.rounded(bound[x] + cost[x]);
}

void Path::assign(Var v, int x) {
  value_[v] = x;
  problem_.arena.as_cells([&](const auto* cells) {
    for (const int t : problem_.messages[v]) sent_[t] = problem_.arena.cost(cells[row_[t] + x * head_[t].stride]);
  });
}

}  // namespace elimina::search
