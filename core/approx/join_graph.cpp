#include "approx/join_graph.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stop.hpp"

namespace elimina::approx {

namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Calls work(first cell of a fast run, its cell in the other table) for each slow cell; `fast` cells follow each.
template <class Work>
void for_rows(const Runs& runs, Work work) {
  const std::size_t slow = runs.sizes.size() - 1;
  std::array<std::int64_t, 64> digits{};
  std::int64_t cell = 0, other = 0;
  const std::int64_t fast = runs.sizes[slow];
  for (;;) {
    work(cell, other);
    cell += fast;
    std::size_t axis = slow;
    for (;;) {
      if (axis-- == 0) return;
      other += runs.strides[axis];
      if (++digits[axis] < runs.sizes[axis]) break;
      other -= runs.strides[axis] * runs.sizes[axis];
      digits[axis] = 0;
    }
  }
}

void multiply_by(std::vector<double>& table, const Runs& runs, const double* factor) {
  const std::int64_t fast = runs.sizes.back();
  double* cells = table.data();
  if (runs.strides.back() == 0) {
    for_rows(runs, [&](std::int64_t cell, std::int64_t other) {
      const double value = factor[other];
      for (std::int64_t i = 0; i < fast; ++i) cells[cell + i] *= value;
    });
  } else {
    for_rows(runs, [&](std::int64_t cell, std::int64_t other) {
      for (std::int64_t i = 0; i < fast; ++i) cells[cell + i] *= factor[other + i];
    });
  }
}

void add_up(const std::vector<double>& table, const Runs& runs, double* sums) {
  const std::int64_t fast = runs.sizes.back();
  const double* cells = table.data();
  if (runs.strides.back() == 0) {
    for_rows(runs, [&](std::int64_t cell, std::int64_t other) {
      double sum = 0;
      for (std::int64_t i = 0; i < fast; ++i) sum += cells[cell + i];
      sums[other] += sum;
    });
  } else {
    for_rows(runs, [&](std::int64_t cell, std::int64_t other) {
      for (std::int64_t i = 0; i < fast; ++i) sums[other + i] += cells[cell + i];
    });
  }
}

double sum_of(const std::vector<double>& cells) {
  double sum = 0;
  for (const double cell : cells) sum += cell;
  return sum;
}

}  // namespace

JoinGraph::JoinGraph(std::vector<std::int64_t> sizes, Lists scopes, std::vector<std::int32_t> ends, Lists separators)
    : sizes_(std::move(sizes)), scopes_(std::move(scopes)), separators_(std::move(separators)), ports_(scopes_.count()),
      priorities_(scopes_.count(), 0.0), smallest_(sizes_.size(), kNone) {
  std::vector<double> smallest_cells(sizes_.size(), kInfinity);
  for (std::size_t cluster = 0; cluster < scopes_.count(); ++cluster) {
    const std::int64_t cells = cells_of(scopes_[cluster]);
    tables_.emplace_back(cells, 1.0);
    for (const std::int32_t v : scopes_[cluster]) {
      if (double(cells) >= smallest_cells[v]) continue;
      smallest_cells[v] = double(cells);
      smallest_[v] = cluster;
    }
  }
  for (std::size_t edge = 0; edge < separators_.count(); ++edge) {
    const std::span separator = separators_[edge];
    const std::int64_t cells = cells_of(separator);
    const double share = 1.0 / double(cells);
    messages_.push_back({Cells(cells, share), Cells(cells, share)});
    for (const int side : {0, 1}) {
      const std::size_t cluster = ends[2 * edge + side], neighbour = ends[2 * edge + 1 - side];
      ports_[cluster].push_back({edge, side, neighbour, runs_of(scopes_[cluster], separator)});
    }
  }
}

std::int64_t JoinGraph::cells_of(std::span<const std::int32_t> scope) const {
  std::int64_t cells = 1;
  for (const std::int32_t v : scope) cells *= sizes_[v];
  return cells;
}

Runs JoinGraph::runs_of(std::span<const std::int32_t> whole, std::span<const std::int32_t> part) const {
  Runs runs;
  std::vector<std::int64_t> strides(whole.size(), 0);
  std::int64_t stride = 1;
  for (std::size_t i = part.size(); i-- > 0;) {
    strides[std::find(whole.begin(), whole.end(), part[i]) - whole.begin()] = stride;
    stride *= sizes_[part[i]];
  }
  for (std::size_t axis = 0; axis < whole.size(); ++axis) {
    const std::int64_t size = sizes_[whole[axis]];
    const bool is_merged = !runs.sizes.empty() && runs.strides.back() == strides[axis] * size;
    if (is_merged) {
      runs.sizes.back() *= size;
      runs.strides.back() = strides[axis];
    } else {
      runs.sizes.push_back(size);
      runs.strides.push_back(strides[axis]);
    }
  }
  if (runs.sizes.empty()) runs = {{1}, {0}};
  if (runs.strides.back() > 1) {  // a fast run of one cell
    runs.sizes.push_back(1);
    runs.strides.push_back(0);
  }
  return runs;
}

bool JoinGraph::multiply(std::span<const std::int64_t> clusters, const Lists& scopes, std::span<const double> values) {
  if (scopes.starts.size() != clusters.size() + 1 || scopes.starts.front() != 0) return false;
  for (std::size_t number = 0; number < clusters.size(); ++number) {
    if (scopes.starts[number] > scopes.starts[number + 1] ||
        scopes.starts[number + 1] > std::int64_t(scopes.members.size()))
      return false;
    if (clusters[number] < 0 || clusters[number] >= std::int64_t(scopes_.count())) return false;
    const std::span scope = scopes[number], whole = scopes_[clusters[number]];
    for (const std::int32_t v : scope)
      if (std::ranges::count(whole, v) != 1 || std::ranges::count(scope, v) != 1) return false;
    const std::int64_t cells = cells_of(scope);
    if (cells > std::int64_t(values.size())) return false;
    multiply_by(tables_[clusters[number]], runs_of(whole, scope), values.data());
    values = values.subspan(cells);
  }
  return values.empty();
}

double JoinGraph::join(std::size_t cluster) {
  // So many messages with values from 0 to 1 may leave the range of a float; the largest value is 1 again after a few.
  constexpr int together = 4;
  belief_ = tables_[cluster];
  double log = 0;
  int count = 0;
  for (const Port& port : ports_[cluster]) {
    multiply_by(belief_, port.runs, messages_[port.edge][1 - port.side].data());
    if (++count % together) continue;
    const double peak = *std::max_element(belief_.begin(), belief_.end());
    if (!(peak > 0)) return -kInfinity;
    for (double& cell : belief_) cell /= peak;
    log += std::log(peak);
  }
  return log;
}

void JoinGraph::await(std::size_t cluster, double residual) {
  if (residual <= priorities_[cluster]) return;
  priorities_[cluster] = residual;
  queue_.push({residual, cluster});
}

void JoinGraph::update(std::size_t cluster, double damping) {
  priorities_[cluster] = 0;
  join(cluster);
  for (const Port& port : ports_[cluster]) {
    Cells& sent = messages_[port.edge][port.side];
    const Cells& received = messages_[port.edge][1 - port.side];
    sum_.assign(sent.size(), 0.0);
    add_up(belief_, port.runs, sum_.data());
    double total = 0;
    for (std::size_t i = 0; i < sum_.size(); ++i) {
      sum_[i] = received[i] > 0 ? sum_[i] / received[i] : 0;
      total += sum_[i];
    }
    if (!(total > 0) || !std::isfinite(total)) {
      impossible_ = true;
      return;
    }
    double change = 0;
    for (std::size_t i = 0; i < sum_.size(); ++i) {
      const double value = (1 - damping) * (sum_[i] / total) + damping * sent[i];
      change = std::max(change, std::abs(value - sent[i]));
      sent[i] = value;
    }
    await(port.neighbour, change);
  }
}

bool JoinGraph::run(double tolerance, double damping, std::uint64_t updates) {
  const std::size_t count = scopes_.count();
  std::int64_t cells = 0;
  const auto look = [&](std::size_t cluster) {
    constexpr std::int64_t some = 1 << 16;
    cells += std::int64_t(tables_[cluster].size()) * std::int64_t(1 + ports_[cluster].size()) + 64;
    if (cells < some) return false;
    cells = 0;
    return stopped();
  };
  for (; swept_ < 2 * count && updates > 0 && !impossible_; ++swept_, --updates) {
    const std::size_t cluster = swept_ < count ? swept_ : 2 * count - 1 - swept_;
    update(cluster, 0);
    if (look(cluster)) return false;
  }
  while (!queue_.empty() && !impossible_) {
    const auto [priority, cluster] = queue_.top();
    if (priority != priorities_[cluster]) {
      queue_.pop();
      continue;
    }
    residual_ = priority;
    if (priority <= tolerance) return true;
    if (updates-- == 0) return false;
    queue_.pop();
    update(cluster, damping);
    if (look(cluster)) return false;
  }
  residual_ = 0;
  return swept_ >= 2 * count;
}

double JoinGraph::log_sum() {
  if (impossible_) return -kInfinity;
  double log = 0;
  for (std::size_t cluster = 0; cluster < scopes_.count(); ++cluster) log += join(cluster) + std::log(sum_of(belief_));
  for (const auto& [one, other] : messages_) {
    double sum = 0;
    for (std::size_t i = 0; i < one.size(); ++i) sum += one[i] * other[i];
    log -= std::log(sum);
  }
  return std::isnan(log) ? -kInfinity : log;
}

JoinGraph::Cells JoinGraph::marginals(std::span<const std::int32_t> variables) {
  Cells shares;
  std::size_t joined = kNone;
  for (const std::int32_t v : variables) {
    sum_.assign(sizes_[v], 0.0);
    const std::size_t cluster = smallest_[v];
    if (cluster != kNone) {
      if (cluster != joined) join(cluster);
      joined = cluster;
      add_up(belief_, runs_of(scopes_[cluster], std::span(&v, 1)), sum_.data());
    }
    const double total = sum_of(sum_);
    for (const double sum : sum_) shares.push_back(total > 0 ? sum / total : 1.0 / double(sizes_[v]));
  }
  return shares;
}

JoinGraph::Cells JoinGraph::messages(std::size_t edges) const {
  Cells cells;
  for (const auto& [message, opposite] : std::span(messages_).first(std::min(edges, messages_.size())))
    cells.insert(cells.end(), message.begin(), message.end());
  return cells;
}

}  // namespace elimina::approx
