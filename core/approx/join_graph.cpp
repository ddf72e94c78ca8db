#include "approx/join_graph.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stop.hpp"

namespace elimina::approx {

namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double sum_of(const std::vector<double>& cells) {
  double sum = 0;
  for (const double cell : cells) sum += cell;
  return sum;
}

}  // namespace

JoinGraph::JoinGraph(std::vector<std::int64_t> sizes, ScopeList scopes, std::vector<std::int32_t> ends,
                     ScopeList separators)
    : sizes_(std::move(sizes)), scopes_(std::move(scopes)), separators_(std::move(separators)), ports_(scopes_.count()),
      priorities_(scopes_.count(), 0.0), smallest_(sizes_.size(), kNone) {
  std::vector<double> smallest_cells(sizes_.size(), kInfinity);
  for (std::size_t cluster = 0; cluster < scopes_.count(); ++cluster) {
    const std::int64_t cells = cells_of(scopes_[cluster], sizes_);
    tables_.emplace_back(cells, 1.0);
    for (const std::int32_t v : scopes_[cluster]) {
      if (double(cells) >= smallest_cells[v]) continue;
      smallest_cells[v] = double(cells);
      smallest_[v] = cluster;
    }
  }
  for (std::size_t edge = 0; edge < separators_.count(); ++edge) {
    const std::span separator = separators_[edge];
    const std::int64_t cells = cells_of(separator, sizes_);
    const double share = 1.0 / double(cells);
    messages_.push_back({Cells(cells, share), Cells(cells, share)});
    for (const int side : {0, 1}) {
      const std::size_t cluster = ends[2 * edge + side], neighbour = ends[2 * edge + 1 - side];
      ports_[cluster].push_back({edge, side, neighbour, runs_of(scopes_[cluster], separator, sizes_)});
    }
  }
}

bool JoinGraph::multiply(std::span<const std::int64_t> clusters, const ScopeList& scopes,
                         std::span<const double> values) {
  if (scopes.starts.size() != clusters.size() + 1 || scopes.starts.front() != 0) return false;
  for (std::size_t number = 0; number < clusters.size(); ++number) {
    if (scopes.starts[number] > scopes.starts[number + 1] ||
        scopes.starts[number + 1] > std::int64_t(scopes.members.size()))
      return false;
    if (clusters[number] < 0 || clusters[number] >= std::int64_t(scopes_.count())) return false;
    const std::span scope = scopes[number], whole = scopes_[clusters[number]];
    for (const std::int32_t v : scope)
      if (std::ranges::count(whole, v) != 1 || std::ranges::count(scope, v) != 1) return false;
    const std::int64_t cells = cells_of(scope, sizes_);
    if (cells > std::int64_t(values.size())) return false;
    multiply_by(tables_[clusters[number]].data(), runs_of(whole, scope, sizes_), values.data());
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
    multiply_by(belief_.data(), port.runs, messages_[port.edge][1 - port.side].data());
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
    add_up(belief_.data(), port.runs, sum_.data());
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
      add_up(belief_.data(), runs_of(scopes_[cluster], std::span(&v, 1), sizes_), sum_.data());
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
