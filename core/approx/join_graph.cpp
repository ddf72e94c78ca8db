#include "approx/join_graph.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "stop.hpp"

namespace elimina::approx {

namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

JoinGraph::JoinGraph(std::vector<std::int64_t> sizes, ScopeList scopes, std::span<const std::int32_t> ends,
                     const ScopeList& separators)
    : sizes_(std::move(sizes)), scopes_(std::move(scopes)), port_starts_(scopes_.count() + 1), ports_(ends.size()),
      priorities_(scopes_.count(), 0.0), smallest_(sizes_.size(), kNone) {
  for (std::size_t cluster = 0; cluster < scopes_.count(); ++cluster) {
    const std::int64_t cells = cells_of(scopes_[cluster], sizes_);
    firsts_.push_back(firsts_.back() + cells);
    for (const std::int32_t v : scopes_[cluster])
      if (smallest_[v] == kNone || cells < this->cells(smallest_[v])) smallest_[v] = cluster;
  }
  tables_.assign(std::size_t(firsts_.back()), 1.0);
  for (const std::int32_t cluster : ends) ++port_starts_[cluster + 1];
  for (std::size_t cluster = 0; cluster < scopes_.count(); ++cluster)
    port_starts_[cluster + 1] += port_starts_[cluster];
  std::vector<std::int64_t> next_ports = port_starts_;
  std::map<Runs, std::uint32_t> numbers;
  Runs runs;
  Looks looks;
  for (std::size_t edge = 0; edge < separators.count(); ++edge) {
    looks.look();
    const std::span separator = separators[edge];
    const std::int64_t cells = cells_of(separator, sizes_), first = std::int64_t(messages_.size());
    messages_.resize(std::size_t(first + 2 * cells), 1.0 / double(cells));
    edge_firsts_.push_back(first + 2 * cells);
    for (const int side : {0, 1}) {
      const std::size_t cluster = ends[2 * edge + side], neighbour = ends[2 * edge + 1 - side];
      set_runs(runs, scopes_[cluster], separator, sizes_);
      const auto [entry, is_new] = numbers.try_emplace(runs, std::uint32_t(runs_.size()));
      if (is_new) runs_.push_back(runs);
      ports_[next_ports[cluster]++] = {first + side * cells, first + (1 - side) * cells, cells, entry->second,
                                       neighbour};
    }
  }
}

bool JoinGraph::multiply(std::span<const std::int64_t> clusters, const ScopeList& scopes,
                         std::span<const double> values) {
  if (scopes.starts.size() != clusters.size() + 1 || scopes.starts.front() != 0) return false;
  Looks looks;
  for (std::size_t number = 0; number < clusters.size(); ++number) {
    looks.look();
    if (scopes.starts[number] > scopes.starts[number + 1] ||
        scopes.starts[number + 1] > std::int64_t(scopes.members.size()))
      return false;
    if (clusters[number] < 0 || clusters[number] >= std::int64_t(scopes_.count())) return false;
    const std::span scope = scopes[number], whole = scopes_[clusters[number]];
    for (const std::int32_t v : scope)
      if (std::ranges::count(whole, v) != 1 || std::ranges::count(scope, v) != 1) return false;
    const std::int64_t cells = cells_of(scope, sizes_);
    if (cells > std::int64_t(values.size())) return false;
    multiply_by(tables_.data() + firsts_[clusters[number]], whole, values.data(), scope, sizes_);
    values = values.subspan(cells);
  }
  return values.empty();
}

double JoinGraph::join(std::size_t cluster) {
  // Number of messages after which a product is normalised: with more, values from 0 to 1 may leave the range of
  // floats.
  constexpr int together = 4;
  belief_.assign(tables_.begin() + firsts_[cluster], tables_.begin() + firsts_[cluster + 1]);
  double log = 0;
  int count = 0;
  for (const Port& port : ports(cluster)) {
    multiply_by(belief_.data(), runs_[port.runs], messages_.data() + port.received);
    if (++count % together) continue;
    const double peak = largest_of(belief_);
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
  for (const Port& port : ports(cluster)) {
    double* const sent = messages_.data() + port.sent;
    const double* const received = messages_.data() + port.received;
    sum_.assign(std::size_t(port.cells), 0.0);
    add_up(belief_.data(), runs_[port.runs], sum_.data());
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
    constexpr std::int64_t cells_between_polls = 1 << 16;
    cells += this->cells(cluster) * std::int64_t(1 + ports(cluster).size()) + 64;
    if (cells < cells_between_polls) return false;
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
  for (std::size_t cluster = 0; cluster < scopes_.count(); ++cluster) {
    log += join(cluster) + std::log(sum_of(belief_));
    for (const Port& port : ports(cluster)) {
      if (port.sent > port.received) continue;
      double sum = 0;
      for (std::int64_t i = 0; i < port.cells; ++i) sum += messages_[port.sent + i] * messages_[port.received + i];
      log -= std::log(sum);
    }
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
      add_up(belief_.data(), scopes_[cluster], sum_.data(), std::span(&v, 1), sizes_);
    }
    const double total = sum_of(sum_);
    for (const double sum : sum_) shares.push_back(total > 0 ? sum / total : 1.0 / double(sizes_[v]));
  }
  return shares;
}

JoinGraph::Cells JoinGraph::messages(std::size_t edges) const {
  Cells cells;
  for (std::size_t edge = 0; edge < std::min(edges, edge_firsts_.size() - 1); ++edge) {
    const auto first = messages_.begin() + edge_firsts_[edge];
    cells.insert(cells.end(), first, first + (edge_firsts_[edge + 1] - edge_firsts_[edge]) / 2);
  }
  return cells;
}

}  // namespace elimina::approx
