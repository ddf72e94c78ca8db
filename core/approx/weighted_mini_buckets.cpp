#include "approx/weighted_mini_buckets.hpp"

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "approx/transcendental.hpp"
#include "stop.hpp"

namespace elimina::approx {
namespace {

constexpr double kLogOfZero = -std::numeric_limits<double>::infinity();

// Columns of a table that are worked on at a time.
constexpr i64 kBlockColumns = 256;

// Cells of a block whose places in a source are listed.
constexpr i64 kBlockCells = 512;

// Units in the last place that a term of a sum, and a logarithm of a sum of exponentials, may be off.
constexpr double kUlps = 8;

// A weight's size: beyond these limits the bound hardly changes, and rounding would.
constexpr double kLeastLog = -9, kMostLog = 6;

}  // namespace

WeightedMiniBuckets::WeightedMiniBuckets(const plan::PlannedTree& planned, std::vector<double> values,
                                         std::vector<double> weights, int shared)
    : values_(std::move(values)), weights_(std::move(weights)) {
  const plan::Tree& tree = planned.tree;
  const int nodes = int(tree.size());
  const auto place = [&](int v) { return tree.position[v]; };
  for (const int v : tree.order) sizes_.push_back(planned.sizes[v]);
  parents_ = tree.parents;
  std::vector<i64> factor_offsets{0};
  for (i64 f = 0; f < planned.scopes.size(); ++f)
    factor_offsets.push_back(factor_offsets.back() + plan::cells_of(planned.scopes[f], planned.sizes));
  offsets_.push_back(0);
  i64 largest = 1;
  for (int r = 0; r < nodes; ++r) {
    variables_.push_back(place(tree.variables[r]));
    cliques_.add(variables_.back());
    i64 columns = 1;
    for (const int v : tree.separators[r]) {
      cliques_.add(place(v));
      columns *= planned.sizes[v];
    }
    cliques_.close();
    columns_.push_back(columns);
    offsets_.push_back(offsets_.back() + columns);
    largest = std::max(largest, columns * sizes_[variables_[r]]);
  }
  messages_.resize(offsets_.back());
  table_.resize(largest);
  for (auto* buffer : {&peaks_, &sums_, &shares_}) buffer->resize(kBlockColumns);

  // Strides of a table over sorted variables along the axes of a clique; 0 where it does not depend on one.
  std::vector<i64> along(sizes_.size(), 0);
  const auto put_strides = [&](std::span<const int> clique, std::span<const int> scope, std::vector<i64>& strides) {
    i64 stride = 1;
    for (auto axis = scope.rbegin(); axis != scope.rend(); ++axis) along[*axis] = stride, stride *= sizes_[*axis];
    for (const int v : clique) strides.push_back(along[v]);
    for (const int v : scope) along[v] = 0;
  };
  std::vector<int> scope;
  for (int r = 0; r < nodes; ++r) {
    sources_begin_.push_back(i64(sources_.size()));
    for (const int f : tree.factors[r]) {
      scope.clear();
      for (const int v : planned.scopes[f]) scope.push_back(place(v));
      sources_.push_back({factor_offsets[f], -1, int(strides_.size())});
      put_strides(cliques_[r], scope, strides_);
    }
    for (const int child : tree.children[r]) {
      sources_.push_back({offsets_[child], child, int(strides_.size())});
      put_strides(cliques_[r], cliques_[child].subspan(1), strides_);
    }
  }
  sources_begin_.push_back(i64(sources_.size()));

  number_.assign(nodes, -1);
  shift_strides_begin_.push_back(0);
  for (int first = 0, last; first < nodes; first = last) {
    for (last = first + 1; last < nodes && variables_[last] == variables_[first];) ++last;
    if (last - first == 1) continue;
    groups_.push_back(int(divided_.size()));
    totals_.push_back(0);
    positive_.push_back(-1);
    // The variables that all mini-buckets share, the bucket's first.
    scope.assign(cliques_[first].begin(), cliques_[first].end());
    for (int r = first + 1; r < last; ++r)
      std::erase_if(scope, [&](int v) { return std::ranges::find(cliques_[r], v) == cliques_[r].end(); });
    if (int(scope.size()) > shared) scope.resize(shared);
    i64 cells = 1;
    for (const int v : scope) cells *= sizes_[v];
    bool is_lower = false;
    for (int r = first; r < last; ++r) is_lower |= weights_[r] < 0;
    for (int r = first; r < last; ++r) {
      if (is_lower && weights_[r] > 0) positive_.back() = int(divided_.size());
      totals_.back() += weights_[r];
      number_[r] = int(divided_.size());
      divided_.push_back(r);
      shift_begin_.push_back(shifts_);
      shifts_ += cells;
      put_strides(cliques_[r], scope, shift_strides_);
      shift_strides_begin_.push_back(i64(shift_strides_.size()));
      initial_sizes_.push_back(std::log(std::max(std::abs(weights_[r]), 1e-3)));
    }
  }
  groups_.push_back(int(divided_.size()));
  shift_begin_.push_back(shifts_);
  shifted_.assign(shifts_, 0);
  marginal_begin_.push_back(0);
  for (const i64 size : sizes_) marginal_begin_.push_back(marginal_begin_.back() + size);
  fixed_.assign(sizes_.size(), -1);
  copies_.assign(sizes_.size(), 0);
  for (const int v : variables_) ++copies_[v];
}

std::vector<double> WeightedMiniBuckets::initial() const {
  std::vector<double> start(shifts_, 0.0);
  start.insert(start.end(), initial_sizes_.begin(), initial_sizes_.end());
  return start;
}

void WeightedMiniBuckets::set_totals(std::span<const double> totals) {
  for (std::size_t r = 0; r < variables_.size(); ++r)
    if (number_[r] < 0) weights_[r] = totals[variables_[r]];
  for (std::size_t g = 0; g < totals_.size(); ++g) totals_[g] = totals[variables_[divided_[groups_[g]]]];
}

void WeightedMiniBuckets::set_parameters(std::span<const double> parameters) {
  for (std::size_t g = 0; g + 1 < groups_.size(); ++g) {
    const int begin = groups_[g], end = groups_[g + 1], copies = end - begin;
    const i64 cells = shift_begin_[begin + 1] - shift_begin_[begin];
    for (i64 cell = 0; cell < cells; ++cell) {
      double mean = 0;
      for (int n = begin; n < end; ++n) mean += parameters[shift_begin_[n] + cell];
      mean /= copies;
      // The last one takes what rounding leaves, so that they cancel.
      double sum = 0;
      for (int n = begin; n + 1 < end; ++n) {
        const double shift = parameters[shift_begin_[n] + cell] - mean;
        shifted_[shift_begin_[n] + cell] = shift;
        sum += shift;
      }
      shifted_[shift_begin_[end - 1] + cell] = -sum;
    }
    const double* logs = parameters.data() + shifts_;
    const auto size = [&](int n) { return std::exp(std::clamp(logs[n], kLeastLog, kMostLog)); };
    double sum = 0;
    if (positive_[g] < 0) {
      for (int n = begin; n < end; ++n) sum += size(n);
      double rest = totals_[g];
      for (int n = begin; n + 1 < end; ++n) rest -= weights_[divided_[n]] = totals_[g] * (size(n) / sum);
      weights_[divided_[end - 1]] = std::max(0.0, rest);
    } else {
      for (int n = begin; n < end; ++n)
        if (n != positive_[g]) sum += size(n), weights_[divided_[n]] = -size(n);
      weights_[divided_[positive_[g]]] = totals_[g] + sum;
    }
  }
}

// Lists the places of a block's cells, those of the last axes, in a source.
void WeightedMiniBuckets::inner(std::span<const int> axes, std::span<const i64> strides) {
  block_.assign(1, 0);
  outer_axes_ = i64(axes.size());
  while (outer_axes_ > 0 && i64(block_.size()) * sizes_[axes[outer_axes_ - 1]] <= kBlockCells) {
    --outer_axes_;
    const std::size_t cells = block_.size();
    const i64 size = sizes_[axes[outer_axes_]], stride = strides[outer_axes_];
    block_.resize(cells * size);
    for (i64 x = 1; x < size; ++x)
      for (std::size_t i = 0; i < cells; ++i) block_[x * cells + i] = block_[i] + x * stride;
  }
  is_contiguous_ = block_.back() == i64(block_.size()) - 1;
}

// Calls with the place of each block in a source, along the table.
template <class Work>
void for_blocks(std::span<const int> axes, std::span<const i64> strides, std::span<const i64> sizes, i64 outer,
                const Work& work) {
  thread_local std::vector<i64> counts;
  counts.assign(outer, 0);
  for (i64 at = 0, number = 0;; ++number) {
    work(number, at);
    i64 axis = outer - 1;
    for (; axis >= 0; --axis) {
      at += strides[axis];
      if (++counts[axis] < sizes[axes[axis]]) break;
      at -= strides[axis] * counts[axis];
      counts[axis] = 0;
    }
    if (axis < 0) return;
  }
}

void WeightedMiniBuckets::add(std::span<const int> axes, std::span<const i64> strides, const double* source,
                              double* table) {
  inner(axes, strides);
  const i64 cells = i64(block_.size());
  const i64* const places = block_.data();
  for_blocks(axes, strides, sizes_, outer_axes_, [&](i64 number, i64 at) {
    double* const target = table + number * cells;
    const double* const from = source + at;
    if (is_contiguous_) {
      for (i64 i = 0; i < cells; ++i) target[i] += from[i];
    } else {
      for (i64 i = 0; i < cells; ++i) target[i] += from[places[i]];
    }
  });
}

void WeightedMiniBuckets::scatter(std::span<const int> axes, std::span<const i64> strides, const double* table,
                                  double* target) {
  inner(axes, strides);
  const i64 cells = i64(block_.size());
  const i64* const places = block_.data();
  for_blocks(axes, strides, sizes_, outer_axes_, [&](i64 number, i64 at) {
    const double* const from = table + number * cells;
    double* const to = target + at;
    if (is_contiguous_) {
      for (i64 i = 0; i < cells; ++i) to[i] += from[i];
    } else {
      for (i64 i = 0; i < cells; ++i) to[places[i]] += from[i];
    }
  });
}

void WeightedMiniBuckets::build(int node, std::span<const double> shifted) {
  const std::span<const int> clique = cliques_[node];
  const i64 cells = columns_[node] * sizes_[variables_[node]];
  std::fill_n(table_.begin(), cells, 0.0);
  for (i64 s = sources_begin_[node]; s < sources_begin_[node + 1]; ++s) {
    const Source& source = sources_[s];
    add(clique, {strides_.data() + source.begin, clique.size()},
        (source.node < 0 ? values_.data() : messages_.data()) + source.offset, table_.data());
  }
  if (const int n = number_[node]; n >= 0)
    add(clique, {shift_strides_.data() + shift_strides_begin_[n], clique.size()}, shifted.data() + shift_begin_[n],
        table_.data());
}

// Adds up the exponentials of a block of columns: of the differences from the value with the largest term, over the weight. That value is minus
// infinity where the sum is 0.
void WeightedMiniBuckets::sum_terms(int node, i64 begin, i64 width) {
  const i64 columns = columns_[node], size = sizes_[variables_[node]];
  const double weight = weights_[node], sign = weight < 0 ? -1 : 1, scale = weight == 0 ? 0 : 1 / weight;
  const double* const table = table_.data() + begin;
  std::copy_n(table, width, peaks_.data());
  for (i64 x = 1; x < size; ++x)
    for (i64 s = 0; s < width; ++s) peaks_[s] = sign * std::max(sign * peaks_[s], sign * table[x * columns + s]);
  terms_.resize(size * width);
  for (i64 x = 0; x < size; ++x)
    for (i64 s = 0; s < width; ++s) {
      const double peak = peaks_[s] == kLogOfZero ? 0 : peaks_[s];
      terms_[x * width + s] = std::clamp((table[x * columns + s] - peak) * scale, 2 * kLeastExponent, 0.0);
    }
  scaled_.assign(terms_.begin(), terms_.end());
  exponentials(terms_.data(), size * width);
  std::copy_n(terms_.data(), width, sums_.data());
  for (i64 x = 1; x < size; ++x)
    for (i64 s = 0; s < width; ++s) sums_[s] += terms_[x * width + s];
}

// Eliminates a node's variable from its table.
void WeightedMiniBuckets::send(int node) {
  const i64 columns = columns_[node], size = sizes_[variables_[node]];
  const double weight = weights_[node];
  double* const message = messages_.data() + offsets_[node];
  const double* const table = table_.data();
  double largest = 0;
  for (i64 cell = 0; cell < size * columns; ++cell) {
    const double value = std::abs(table[cell]);
    largest = std::max(largest, value < -kLogOfZero ? value : 0);
  }
  const double terms = double(sources_begin_[node + 1] - sources_begin_[node] + 1 + size);
  rounding_ += kUlps * std::numeric_limits<double>::epsilon() * terms * (largest + std::abs(weight) * double(size) + 1);
  if (const int value = fixed_[variables_[node]]; value >= 0) {
    std::copy_n(table + value * columns, columns, message);
    return;
  }
  for (i64 begin = 0; begin < columns; begin += kBlockColumns) {
    const i64 width = std::min(kBlockColumns, columns - begin);
    sum_terms(node, begin, width);
    if (weight == 0) {
      std::copy_n(peaks_.data(), width, message + begin);
      continue;
    }
    logarithms(sums_.data(), width);
    for (i64 s = 0; s < width; ++s)
      message[begin + s] = peaks_[s] == kLogOfZero ? kLogOfZero : peaks_[s] + weight * sums_[s];
  }
}

// Turns a node's table into its belief, by that of its separator; returns the entropy of its variable given this.
double WeightedMiniBuckets::condition(int node) {
  const i64 columns = columns_[node], size = sizes_[variables_[node]];
  const double weight = weights_[node];
  const double* const above = messages_.data() + offsets_[node];
  double* const table = table_.data();
  const int fixed = fixed_[variables_[node]];
  double entropy = 0;
  for (i64 begin = 0; begin < columns; begin += kBlockColumns) {
    const i64 width = std::min(kBlockColumns, columns - begin);
    if (fixed < 0) sum_terms(node, begin, width);
    if (fixed >= 0 || weight == 0) {
      for (i64 s = 0; s < width; ++s) {
        double* const column = table + begin + s;
        i64 top = std::max(fixed, 0);
        for (i64 x = 1; x < size && fixed < 0; ++x)
          if (column[x * columns] > column[top * columns]) top = x;
        const double share = column[top * columns] == kLogOfZero ? 0 : parents_[node] < 0 ? 1.0 : above[begin + s];
        for (i64 x = 0; x < size; ++x) column[x * columns] = x == top ? share : 0;
      }
      continue;
    }
    for (i64 s = 0; s < width; ++s) {
      const double share = peaks_[s] == kLogOfZero ? 0 : parents_[node] < 0 ? 1.0 : above[begin + s];
      shares_[s] = share;
      peaks_[s] = sums_[s] > 0 ? share / sums_[s] : 0;
    }
    for (i64 x = 0; x < size; ++x)
      for (i64 s = 0; s < width; ++s) {
        const double belief = terms_[x * width + s] * peaks_[s];
        table[x * columns + begin + s] = belief;
        entropy -= belief * scaled_[x * width + s];
      }
    for (i64 s = 0; s < width; ++s) sums_[s] = std::max(sums_[s], 1.0);
    logarithms(sums_.data(), width);
    for (i64 s = 0; s < width; ++s) entropy += shares_[s] * sums_[s];
  }
  return entropy;
}

std::vector<int> WeightedMiniBuckets::decode(int count, std::uint64_t seed) const {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(std::numeric_limits<double>::min(), 1.0);
  std::vector<int> chosen(count * sizes_.size());
  std::vector<double> scores;
  for (int number = 0; number < count; ++number) {
    int* const values = chosen.data() + number * sizes_.size();
    for (int last = int(variables_.size()), first; last > 0; last = first) {
      const int v = variables_[last - 1];
      scores.assign(sizes_[v], 0.0);
      for (first = last; first > 0 && variables_[first - 1] == v;) {
        const std::span<const int> clique = cliques_[--first];
        for (i64 s = sources_begin_[first]; s < sources_begin_[first + 1]; ++s) {
          const Source& source = sources_[s];
          const double* at = (source.node < 0 ? values_.data() : messages_.data()) + source.offset;
          const i64* const strides = strides_.data() + source.begin;
          for (std::size_t axis = 1; axis < clique.size(); ++axis) at += strides[axis] * values[clique[axis]];
          for (i64 x = 0; x < sizes_[v]; ++x) scores[x] += at[x * strides[0]];
        }
      }
      if (number > 0)
        for (double& score : scores) score -= std::log(-std::log(uniform(random)));
      values[v] = fixed_[v] >= 0 ? fixed_[v] : int(std::ranges::max_element(scores) - scores.begin());
    }
  }
  return chosen;
}

double WeightedMiniBuckets::evaluate(std::span<const double> parameters, std::vector<double>* wanted) {
  set_parameters(parameters);
  rounding_ = 0;
  double bound = 0;
  const int nodes = int(parents_.size());
  for (int r = 0; r < nodes; ++r) {
    check_stop();
    build(r, shifted_);
    send(r);
    if (parents_[r] < 0) {
      bound += messages_[offsets_[r]];
      rounding_ += std::numeric_limits<double>::epsilon() * (std::abs(bound) < -kLogOfZero ? std::abs(bound) : 0);
    }
  }
  if (!wanted) return bound;
  std::vector<double>& gradient = *wanted;
  gradient.assign(parameters.size(), 0.0);
  marginals_.assign(marginal_begin_.back(), 0.0);
  std::vector<double> entropies(divided_.size());
  for (int r = nodes - 1; r >= 0; --r) {
    check_stop();
    build(r, shifted_);
    const double entropy = condition(r);
    const std::span<const int> clique = cliques_[r];
    for (i64 s = sources_begin_[r]; s < sources_begin_[r + 1]; ++s) {
      const Source& source = sources_[s];
      if (source.node < 0) continue;
      double* const target = messages_.data() + source.offset;
      std::fill_n(target, columns_[source.node], 0.0);
      scatter(clique, {strides_.data() + source.begin, clique.size()}, table_.data(), target);
    }
    const i64 columns = columns_[r];
    const int v = variables_[r];
    for (i64 x = 0; x < sizes_[v]; ++x)
      marginals_[marginal_begin_[v] + x] +=
          std::accumulate(table_.begin() + x * columns, table_.begin() + (x + 1) * columns, 0.0) / copies_[v];
    if (const int n = number_[r]; n >= 0) {
      entropies[n] = entropy;
      scatter(clique, {shift_strides_.data() + shift_strides_begin_[n], clique.size()}, table_.data(),
              gradient.data() + shift_begin_[n]);
    }
  }
  for (std::size_t g = 0; g + 1 < groups_.size(); ++g) {
    const int begin = groups_[g], end = groups_[g + 1];
    const i64 cells = shift_begin_[begin + 1] - shift_begin_[begin];
    for (i64 cell = 0; cell < cells; ++cell) {
      double mean = 0;
      for (int n = begin; n < end; ++n) mean += gradient[shift_begin_[n] + cell];
      mean /= end - begin;
      for (int n = begin; n < end; ++n) gradient[shift_begin_[n] + cell] -= mean;
    }
    double* const by_size = gradient.data() + shifts_;
    if (positive_[g] < 0) {
      double mean = 0;
      for (int n = begin; n < end; ++n) mean += weights_[divided_[n]] * entropies[n];
      if (totals_[g] > 0) mean /= totals_[g];
      for (int n = begin; n < end; ++n) by_size[n] = weights_[divided_[n]] * (entropies[n] - mean);
    } else {
      for (int n = begin; n < end; ++n)
        if (n != positive_[g]) by_size[n] = -weights_[divided_[n]] * (entropies[positive_[g]] - entropies[n]);
    }
  }
  return bound;
}

}  // namespace elimina::approx
