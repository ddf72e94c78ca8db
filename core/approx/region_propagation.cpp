#include "approx/region_propagation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "approx/transcendental.hpp"
#include "stop.hpp"

namespace elimina::approx {

namespace {

constexpr double kForbidden = -std::numeric_limits<double>::infinity();

// Number of sweeps after which beliefs are recomputed from logarithms: products of messages drift, and underflows would
// stay 0.
constexpr std::uint64_t kRefreshSweeps = 16;

// Smallest probability that is distinguished from 0 in logarithms.
constexpr double kLeastProbability = 1e-130;

// Replaces non-positive logarithms by their exponentials, and returns the sum.
double exponentiate(double* logs, std::int64_t cells) {
  exponentials(logs, cells);
  double sum = 0;
  for (std::int64_t i = 0; i < cells; ++i) sum += logs[i];
  return sum;
}

}  // namespace

RegionPropagation::RegionPropagation(const RegionGraph& graph)
    : sizes_(graph.sizes()), outer_scopes_(graph.outer()), inner_scopes_(graph.inner()) {
  std::int64_t begin = 0;
  for (std::size_t region = 0; region < outer_scopes_.count(); ++region) {
    outer_.push_back({begin, cells_of(outer_scopes_[region], sizes_), {}, {}});
    begin += outer_.back().cells;
  }
  beliefs_.assign(begin, 1.0);
  std::int64_t inner_begin = 0, message = 0;
  for (std::size_t region = 0; region < inner_scopes_.count(); ++region) {
    const std::span scope = inner_scopes_[region], parents = graph.parents()[region];
    const std::int64_t cells = cells_of(scope, sizes_);
    inner_.push_back(
        {inner_begin, cells, edges_.size(), edges_.size() + parents.size(), graph.counting_numbers()[region]});
    inner_begin += cells;
    for (const std::int32_t outer : parents) {
      outer_[outer].edges.push_back(std::uint32_t(edges_.size()));
      const std::uint32_t runs = number_of(runs_of(outer_scopes_[outer], scope, sizes_));
      edges_.push_back({std::uint32_t(outer), std::uint32_t(region), runs, message});
      message += cells;
    }
  }
  messages_.assign(message, 0.0);
  inner_logs_.assign(inner_begin, 0.0);
}

std::uint32_t RegionPropagation::number_of(Runs runs) {
  const auto [item, is_new] = run_numbers_.try_emplace(std::move(runs), std::uint32_t(runs_.size()));
  if (is_new) runs_.push_back(item->first);
  return item->second;
}

bool RegionPropagation::multiply(const RegionGraph& graph, const ScopeList& scopes, std::span<const double> values) {
  std::int64_t begin = 0;
  for (std::size_t number = 0; number < scopes.count(); ++number) {
    const std::span scope = scopes[number];
    std::vector<std::int32_t> sorted(scope.begin(), scope.end());
    std::ranges::sort(sorted);
    const std::int64_t outer = graph.holder(sorted), cells = cells_of(scope, sizes_);
    if (outer < 0 || cells > std::int64_t(values.size()) - begin) return false;
    outer_[outer].factors.push_back(std::uint32_t(factors_.size()));
    factors_.push_back({std::uint32_t(outer), number_of(runs_of(outer_scopes_[outer], scope, sizes_)), begin});
    begin += cells;
  }
  for (const double value : values) {
    has_zeros_ |= value == 0;
    logs_.push_back(std::log(value));
  }
  return begin == std::int64_t(values.size());
}

bool RegionPropagation::filter_tuples() {
  std::vector<double> allowed;
  for (const Factor& factor : factors_) {
    if (!has_zeros_) break;
    const Runs& runs = runs_[factor.runs];
    const std::size_t cells =
        &factor == &factors_.back() ? logs_.size() - factor.begin : (&factor)[1].begin - factor.begin;
    allowed.clear();
    for (std::size_t i = 0; i < cells; ++i) allowed.push_back(logs_[factor.begin + i] == kForbidden ? 0.0 : 1.0);
    multiply_by(beliefs_.data() + outer_[factor.outer].begin, runs, allowed.data());
  }
  std::vector<bool> is_waiting(inner_.size(), has_zeros_);
  for (bool has_changed = has_zeros_; has_changed;) {
    has_changed = false;
    for (std::size_t region = 0; region < inner_.size(); ++region) {
      if (!is_waiting[region]) continue;
      is_waiting[region] = false;
      const Inner& inner = inner_[region];
      double* logs = inner_logs_.data() + inner.begin;
      for (std::size_t e = inner.first; e < inner.last; ++e) {
        allowed.assign(inner.cells, 0.0);
        add_up(beliefs_.data() + outer_[edges_[e].outer].begin, runs_[edges_[e].runs], allowed.data());
        for (std::int64_t i = 0; i < inner.cells; ++i)
          if (allowed[i] == 0) logs[i] = kForbidden;
      }
      for (std::int64_t i = 0; i < inner.cells; ++i) allowed[i] = logs[i] == kForbidden ? 0.0 : 1.0;
      for (std::size_t e = inner.first; e < inner.last; ++e) {
        const Outer& outer = outer_[edges_[e].outer];
        const std::span table = std::span(beliefs_).subspan(outer.begin, outer.cells);
        const std::int64_t before = std::ranges::count(table, 1.0);
        multiply_by(table.data(), runs_[edges_[e].runs], allowed.data());
        const std::int64_t after = std::ranges::count(table, 1.0);
        if (after == 0) return false;
        if (after == before) continue;
        has_changed = true;
        for (const std::uint32_t edge : outer.edges) is_waiting[edges_[edge].inner] = true;
      }
      // After a stop request, the loop ends early and leaves some impossible tuples. These do not change the sums.
      if (look(inner.cells * std::int64_t(inner.last - inner.first))) has_changed = false;
    }
  }
  for (const Edge& edge : edges_)
    for (std::int64_t i = 0; i < inner_[edge.inner].cells; ++i)
      if (inner_logs_[inner_[edge.inner].begin + i] == kForbidden) messages_[edge.begin + i] = kForbidden;
  for (const Outer& outer : outer_)
    if (std::ranges::count(std::span(beliefs_).subspan(outer.begin, outer.cells), 1.0) == 0) return false;
  refresh_all();
  return true;
}

bool RegionPropagation::look(std::int64_t cells) {
  constexpr std::int64_t cells_between_polls = 1 << 15;
  looked_ += cells + 32;
  if (looked_ < cells_between_polls) return false;
  looked_ = 0;
  return stopped();
}

void RegionPropagation::set_factors(const Outer& outer, double* table) const {
  std::fill_n(table, outer.cells, 0.0);
  for (const std::uint32_t factor : outer.factors)
    add_to(table, runs_[factors_[factor].runs], logs_.data() + factors_[factor].begin);
}

void RegionPropagation::refresh(const Outer& outer) {
  double* table = beliefs_.data() + outer.begin;
  set_factors(outer, table);
  for (const std::uint32_t edge : outer.edges)
    add_to(table, runs_[edges_[edge].runs], messages_.data() + edges_[edge].begin);
  const double peak = *std::max_element(table, table + outer.cells);
  for (std::int64_t i = 0; i < outer.cells; ++i) table[i] -= peak;
  const double sum = exponentiate(table, outer.cells);
  for (std::int64_t i = 0; i < outer.cells; ++i) table[i] /= sum;
}

void RegionPropagation::refresh_all() {
  for (const Outer& outer : outer_) refresh(outer);
}

void RegionPropagation::multiply_by_exponential(const Edge& edge, double* logs) {
  const std::int64_t cells = inner_[edge.inner].cells;
  const double peak = *std::max_element(logs, logs + cells);
  for (std::int64_t i = 0; i < cells; ++i) logs[i] -= peak;
  exponentials(logs, cells);
  const double scale = std::exp(peak);
  for (std::int64_t i = 0; i < cells; ++i) logs[i] *= scale;
  multiply_by(beliefs_.data() + outer_[edge.outer].begin, runs_[edge.runs], logs);
}

double RegionPropagation::update(std::size_t number, double damping) {
  const Inner& inner = inner_[number];
  const std::int64_t cells = inner.cells, count = std::int64_t(inner.last - inner.first);
  double* belief = inner_logs_.data() + inner.begin;
  const double* tangent = is_tangent_ ? tangents_.data() + inner.begin : belief;
  // The new belief's logarithm is a sum (computed below) divided by `weight`, which is at least 1. In this sum,
  // `tangent` has the weight `weight` - `plain_weight`. It is the previous belief or, in the double loop, the tangent
  // point.
  const double plain_weight = double(count) + inner.number;
  const double weight = std::max(1.0, is_tangent_ ? double(count) + inner.convex_number() : plain_weight);
  // Marginals of the outer regions over the inner one's variables, and the logarithms of their inverses.
  margins_.assign(count * cells, 0.0);
  margin_logs_.resize(count * cells);
  for (std::int64_t k = 0; k < count; ++k) {
    const Edge& edge = edges_[inner.first + k];
    double* margin = margins_.data() + k * cells;
    add_up(beliefs_.data() + outer_[edge.outer].begin, runs_[edge.runs], margin);
    double total = 0;
    for (std::int64_t i = 0; i < cells; ++i) total += margin[i];
    if (!(total > 0)) continue;
    for (std::int64_t i = 0; i < cells; ++i) margin[i] /= total;
  }
  for (std::int64_t i = 0; i < count * cells; ++i) margin_logs_[i] = 1 / std::max(margins_[i], kLeastProbability);
  logarithms(margin_logs_.data(), count * cells);
  // The belief's logarithm: log marginal minus log message, summed over the outer regions, plus the weighted `tangent`,
  // all divided by `weight`.
  sums_.assign(cells, 0.0);
  for (std::int64_t k = 0; k < count; ++k) {
    const double* message = messages_.data() + edges_[inner.first + k].begin;
    for (std::int64_t i = 0; i < cells; ++i) sums_[i] -= margin_logs_[k * cells + i] + message[i];
  }
  double peak = kForbidden;
  for (std::int64_t i = 0; i < cells; ++i) {
    if (belief[i] == kForbidden) continue;
    belief[i] = (sums_[i] + (weight - plain_weight) * tangent[i]) / weight;
    peak = std::max(peak, belief[i]);
  }
  for (std::int64_t i = 0; i < cells; ++i) sums_[i] = belief[i] - peak;
  const double total = exponentiate(sums_.data(), cells), log_total = peak + std::log(total);
  for (std::int64_t i = 0; i < cells; ++i) {
    belief[i] -= log_total;
    sums_[i] /= total;
  }
  // Multiplies the outer regions' beliefs so that their marginals become the new belief or, with damping, move towards
  // it.
  double change = 0;
  for (std::int64_t k = 0; k < count; ++k) {
    const Edge& edge = edges_[inner.first + k];
    double* message = messages_.data() + edge.begin;
    double* logs = margin_logs_.data() + k * cells;
    for (std::int64_t i = 0; i < cells; ++i) {
      change = std::max(change, std::abs(sums_[i] - margins_[k * cells + i]));
      logs[i] = belief[i] == kForbidden ? 0.0 : (1 - damping) * (belief[i] + logs[i]);
      message[i] += logs[i];
    }
    multiply_by_exponential(edge, logs);
  }
  return change;
}

double RegionPropagation::move_tangent(std::size_t number) {
  const Inner& inner = inner_[number];
  if (inner.convex_number() == inner.number) return 0;
  const double* belief = inner_logs_.data() + inner.begin;
  double* tangent = tangents_.data() + inner.begin;
  const double share = (inner.convex_number() - inner.number) / double(inner.last - inner.first);
  double change = 0;
  margins_.resize(inner.cells);
  for (std::int64_t i = 0; i < inner.cells; ++i) {
    margins_[i] = belief[i] == kForbidden ? 0.0 : share * (belief[i] - tangent[i]);
    change = std::max(change, std::abs(std::exp(belief[i]) - std::exp(tangent[i])));
    tangent[i] = belief[i];
  }
  for (std::size_t e = inner.first; e < inner.last; ++e) {
    double* message = messages_.data() + edges_[e].begin;
    for (std::int64_t i = 0; i < inner.cells; ++i) message[i] += margins_[i];
    sums_ = margins_;
    multiply_by_exponential(edges_[e], sums_.data());
  }
  return change;
}

bool RegionPropagation::sweep(double damping) {
  if (sweeps_ % kRefreshSweeps == kRefreshSweeps - 1) refresh_all();
  double residual = 0;
  for (std::size_t i = 0; i < inner_.size(); ++i) {
    // Forward and backward sweeps alternate.
    const std::size_t number = sweeps_ % 2 ? inner_.size() - 1 - i : i;
    const double change = update(number, damping);
    residual = std::max(residual, change);
    const std::int64_t edges = std::int64_t(inner_[number].last - inner_[number].first);
    if (look(edges * outer_[edges_[inner_[number].first].outer].cells)) return false;
  }
  ++sweeps_;
  residual_ = residual;
  return true;
}

bool RegionPropagation::run(double tolerance, double damping, std::uint64_t sweeps) {
  is_tangent_ = false;
  for (std::uint64_t number = 0; number < sweeps; ++number)
    if (!sweep(damping) || residual_ <= tolerance) return residual_ <= tolerance;
  return false;
}

bool RegionPropagation::run_double_loop(double tolerance, double precision, std::uint64_t inner_sweeps,
                                        std::uint64_t sweeps) {
  if (!is_tangent_) {
    // If an earlier run did not converge, its messages may be far from a solution, so all messages are reset.
    is_tangent_ = true;
    for (double& message : messages_) message = message == kForbidden ? message : 0.0;
    for (double& log : inner_logs_) log = log == kForbidden ? log : 0.0;
    tangents_ = inner_logs_;
    refresh_all();
  }
  double moved = 1;
  for (std::uint64_t number = 0; number < sweeps;) {
    for (std::uint64_t inner = 0; inner < inner_sweeps; ++inner, ++number) {
      if (!sweep(0)) return false;
      if (residual_ <= precision * moved) break;
    }
    const double disagreement = residual_;
    moved = 0;
    for (std::size_t region = 0; region < inner_.size(); ++region) {
      moved = std::max(moved, move_tangent(region));
      if (look(inner_[region].cells * 64)) return false;
    }
    residual_ = std::max(disagreement, moved);
    if (residual_ <= tolerance) return true;
    ++number;
  }
  return false;
}

double RegionPropagation::log_sum() {
  double log = 0;
  refresh_all();
  for (const Outer& outer : outer_) {
    table_.resize(outer.cells);
    set_factors(outer, table_.data());
    const double* belief = beliefs_.data() + outer.begin;
    for (std::int64_t i = 0; i < outer.cells; ++i)
      if (belief[i] > 0) log += belief[i] * (table_[i] - std::log(belief[i]));
  }
  for (const Inner& inner : inner_) {
    double entropy = 0;
    for (std::int64_t i = inner.begin; i < inner.begin + inner.cells; ++i)
      if (inner_logs_[i] > kLeastExponent) entropy -= std::exp(inner_logs_[i]) * inner_logs_[i];
    log += inner.number * entropy;
  }
  return log;
}

std::vector<double> RegionPropagation::marginals(std::span<const std::int32_t> variables) {
  struct Source {
    std::int64_t cells = std::numeric_limits<std::int64_t>::max();
    std::size_t region = 0;
    bool is_inner = false;
  };
  std::vector<Source> sources(sizes_.size());
  const auto offer = [&](std::span<const std::int32_t> scope, Source source) {
    for (const std::int32_t v : scope)
      if (source.cells < sources[v].cells) sources[v] = source;
  };
  for (std::size_t region = 0; region < inner_.size(); ++region)
    offer(inner_scopes_[region], {inner_[region].cells, region, true});
  for (std::size_t region = 0; region < outer_.size(); ++region)
    offer(outer_scopes_[region], {outer_[region].cells, region, false});
  std::vector<double> shares, table;
  for (const std::int32_t v : variables) {
    const Source& source = sources[v];
    sums_.assign(sizes_[v], 0.0);
    if (source.is_inner) {
      const Inner& inner = inner_[source.region];
      table.assign(inner_logs_.begin() + inner.begin, inner_logs_.begin() + inner.begin + inner.cells);
      exponentials(table.data(), inner.cells);
      add_up(table.data(), runs_of(inner_scopes_[source.region], std::span(&v, 1), sizes_), sums_.data());
    } else if (source.cells < std::numeric_limits<std::int64_t>::max()) {
      const std::span scope = outer_scopes_[source.region];
      add_up(beliefs_.data() + outer_[source.region].begin, runs_of(scope, std::span(&v, 1), sizes_), sums_.data());
    }
    double total = 0;
    for (const double sum : sums_) total += sum;
    for (const double sum : sums_) shares.push_back(total > 0 ? sum / total : 1.0 / double(sizes_[v]));
  }
  return shares;
}

}  // namespace elimina::approx
