#include "approx/weighted_mini_buckets.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "plan/arena.hpp"
#include "stop.hpp"

namespace elimina::approx {
namespace {

// Largest number of cells in a block, which then fits the first cache; blocks with a single axis of columns may have
// more.
constexpr i64 kBlockCells = 1024;

// Largest error of a term of a sum, and of a logarithm of a sum of exponentials, in units in the last place.
constexpr double kUlps = 8;

// Limits on the logarithm of a weight's absolute value: beyond them the bound hardly changes, and rounding grows.
constexpr double kLeastLog = -9, kMostLog = 6;

// Offsets of the messages. The memory of a message is reused once the parent of its node has read it.
struct LiveMessages {
  std::vector<i64> offsets;
  i64 height;
};

LiveMessages place_messages(const plan::Tree& tree, std::span<const int> sequence, std::span<const i64> columns) {
  plan::Arena arena(sizeof(double));
  LiveMessages live{std::vector<i64>(columns.size()), 0};
  for (const int r : sequence) {
    live.offsets[r] = arena.allocate(columns[r]);
    for (const int child : tree.children[r]) arena.give_back(live.offsets[child], columns[child]);
  }
  live.height = arena.height();
  return live;
}

std::vector<i64> message_cells(const plan::PlannedTree& planned) {
  std::vector<i64> cells;
  for (i64 r = 0; r < planned.tree.size(); ++r) {
    i64 columns = 1;
    for (const int v : planned.tree.separators[r]) columns = plan::times(columns, planned.sizes[v]);
    cells.push_back(columns);
  }
  return cells;
}

// Returns the number of 32-bit records of a node: shares of all states but the first, or a message.
i64 records_of(i64 columns, i64 size) { return plan::times(columns, std::max<i64>(1, size - 1)); }

}  // namespace

double WeightedMiniBuckets::bytes(const plan::PlannedTree& planned) {
  const std::vector<int> sequence = planned.tree.postorder();
  const std::vector<i64> columns = message_cells(planned);
  double records = 0;
  for (std::size_t r = 0; r < columns.size(); ++r)
    records += double(records_of(columns[r], planned.sizes[planned.tree.variables[r]]));
  return double(sizeof(double)) * double(place_messages(planned.tree, sequence, columns).height) +
         sizeof(Share) * records;
}

WeightedMiniBuckets::WeightedMiniBuckets(const plan::PlannedTree& planned, std::vector<double> values,
                                         std::vector<double> weights, int shared)
    : values_(std::move(values)), weights_(std::move(weights)) {
  const plan::Tree& tree = planned.tree;
  const int nodes = int(tree.size());
  const auto position = [&](int v) { return tree.position[v]; };
  for (const int v : tree.order) sizes_.push_back(planned.sizes[v]);
  parents_ = tree.parents;
  sequence_ = tree.postorder();
  columns_ = message_cells(planned);
  LiveMessages live = place_messages(tree, sequence_, columns_);
  offsets_ = std::move(live.offsets);
  live_cells_ = live.height;
  std::vector<i64> factor_offsets{0};
  for (i64 f = 0; f < planned.scopes.size(); ++f)
    factor_offsets.push_back(factor_offsets.back() + plan::cells_of(planned.scopes[f], planned.sizes));
  records_begin_.push_back(0);
  for (int r = 0; r < nodes; ++r) {
    variables_.push_back(position(tree.variables[r]));
    cliques_.add(variables_.back());
    for (const int v : tree.separators[r]) cliques_.add(position(v));
    cliques_.close();
    records_begin_.push_back(records_begin_.back() + records_of(columns_[r], sizes_[variables_[r]]));
  }
  i64 largest_block = 1, largest_columns = 1;
  for (int r = 0; r < nodes; ++r) {
    const std::span<const int> clique = cliques_[r];
    const i64 limit = kBlockCells / sizes_[variables_[r]];
    Blocks blocks{clique.size(), 1};
    while (blocks.outer_axes > 1) {
      const i64 columns = blocks.columns * sizes_[clique[blocks.outer_axes - 1]];
      if (columns > limit && blocks.columns > 1) break;
      blocks.columns = columns;
      --blocks.outer_axes;
    }
    blocks_.push_back(blocks);
    largest_columns = std::max(largest_columns, blocks.columns);
    largest_block = std::max(largest_block, blocks.columns * sizes_[variables_[r]]);
  }
  block_.resize(largest_block);
  magnitudes_.resize(largest_columns);

  // Appends the strides of a table over sorted variables along the axes of a clique; 0 for variables that the table
  // lacks.
  std::vector<i64> along(sizes_.size(), 0);
  const auto put_strides = [&](std::span<const int> clique, std::span<const int> scope, std::vector<i64>& strides) {
    i64 stride = 1;
    for (auto axis = scope.rbegin(); axis != scope.rend(); ++axis) along[*axis] = stride, stride *= sizes_[*axis];
    for (const int v : clique) strides.push_back(along[v]);
    for (const int v : scope) along[v] = 0;
  };
  // Scope of the shifts of each partitioned bucket: the variables that all of its mini-buckets share, at most the first
  // `shared` ones.
  number_.assign(nodes, -1);
  std::vector<int> scope;
  for (int first = 0, last; first < nodes; first = last) {
    for (last = first + 1; last < nodes && variables_[last] == variables_[first];) ++last;
    if (last - first == 1) continue;
    groups_.push_back(int(divided_.size()));
    totals_.push_back(0);
    positive_.push_back(-1);
    scope.assign(cliques_[first].begin(), cliques_[first].end());
    for (int r = first + 1; r < last; ++r)
      std::erase_if(scope, [&](int v) { return std::ranges::find(cliques_[r], v) == cliques_[r].end(); });
    if (int(scope.size()) > shared) scope.resize(shared);
    shift_scopes_.append(scope);
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
      initial_sizes_.push_back(std::log(std::max(std::abs(weights_[r]), 1e-3)));
    }
  }
  groups_.push_back(int(divided_.size()));
  shift_begin_.push_back(shifts_);
  std::size_t most_sources = 0;
  for (int r = 0, group = -1; r < nodes; ++r) {
    if (const int n = number_[r]; n >= 0 && n == groups_[group + 1]) ++group;
    sources_begin_.push_back(i64(sources_.size()));
    for (const int f : tree.factors[r]) {
      scope.clear();
      for (const int v : planned.scopes[f]) scope.push_back(position(v));
      sources_.push_back({Origin::kFactor, factor_offsets[f], -1, int(strides_.size())});
      put_strides(cliques_[r], scope, strides_);
    }
    for (const int child : tree.children[r]) {
      sources_.push_back({Origin::kMessage, offsets_[child], child, int(strides_.size())});
      put_strides(cliques_[r], cliques_[child].subspan(1), strides_);
    }
    if (const int n = number_[r]; n >= 0) {
      sources_.push_back({Origin::kShift, shift_begin_[n], -1, int(strides_.size())});
      put_strides(cliques_[r], shift_scopes_[group], strides_);
    }
    most_sources = std::max(most_sources, sources_.size() - sources_begin_.back());
  }
  sources_begin_.push_back(i64(sources_.size()));
  layouts_.resize(most_sources);
  source_offsets_.resize(most_sources);
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

std::vector<double> WeightedMiniBuckets::shift_cells() const {
  std::vector<double> cells;
  for (std::size_t n = 0; n < divided_.size(); ++n) {
    const i64 count = shift_begin_[n + 1] - shift_begin_[n];
    cells.insert(cells.end(), count, double(count));
  }
  return cells;
}

void WeightedMiniBuckets::set_totals(std::span<const double> totals) {
  for (std::size_t r = 0; r < variables_.size(); ++r)
    if (number_[r] < 0) weights_[r] = totals[variables_[r]];
  for (std::size_t g = 0; g < totals_.size(); ++g) totals_[g] = totals[variables_[divided_[groups_[g]]]];
}

void WeightedMiniBuckets::centre_shifts(std::span<const double> parameters, std::vector<double>& shifted) const {
  for (std::size_t g = 0; g + 1 < groups_.size(); ++g) {
    const int begin = groups_[g], end = groups_[g + 1], copies = end - begin;
    const i64 cells = shift_begin_[begin + 1] - shift_begin_[begin];
    for (i64 cell = 0; cell < cells; ++cell) {
      double mean = 0;
      for (int n = begin; n < end; ++n) mean += parameters[shift_begin_[n] + cell];
      mean /= copies;
      // The last shift takes the remainder of rounding, so that the shifts cancel.
      double sum = 0;
      for (int n = begin; n + 1 < end; ++n) {
        const double shift = parameters[shift_begin_[n] + cell] - mean;
        shifted[shift_begin_[n] + cell] = shift;
        sum += shift;
      }
      shifted[shift_begin_[end - 1] + cell] = -sum;
    }
  }
}

// Returns the mini-bucket of a group that shares most variables with another tree's node; of several, the smallest.
int WeightedMiniBuckets::closest(const WeightedMiniBuckets& other, int node, std::size_t group) const {
  const std::span<const int> clique = other.cliques_[node];
  const auto distance = [&](int n) {
    const std::span<const int> candidate = cliques_[divided_[n]];
    i64 common = 0;
    for (const int v : candidate) common += std::ranges::count(clique, v);
    return std::pair(-common, candidate.size());
  };
  int best = groups_[group];
  for (int n = best + 1; n < groups_[group + 1]; ++n)
    if (distance(n) < distance(best)) best = n;
  return best;
}

// Adds to each cell of a table the mean of those cells of another table that have the same values of the common
// variables.
static void add_means(std::span<const int> other_scope, const double* other, std::span<const int> scope, double* table,
                      std::span<const i64> sizes) {
  std::vector<int> common;
  for (const int v : scope)
    if (std::ranges::find(other_scope, v) != other_scope.end()) common.push_back(v);
  // Calls a function with each cell of a scope and the corresponding cell over the common variables.
  const auto for_cells = [&](std::span<const int> axes, const auto& work) {
    const i64 cells = plan::cells_of(axes, sizes);
    for (i64 cell = 0; cell < cells; ++cell) {
      i64 remaining = cell, common_cell = 0, stride = 1;
      for (std::size_t axis = axes.size(), next = common.size(); axis-- > 0;) {
        const i64 digit = remaining % sizes[axes[axis]];
        remaining /= sizes[axes[axis]];
        if (next == 0 || common[next - 1] != axes[axis]) continue;
        common_cell += digit * stride;
        stride *= sizes[axes[axis]];
        --next;
      }
      work(cell, common_cell);
    }
  };
  const i64 means = plan::cells_of(common, sizes);
  std::vector<double> sums(means, 0.0);
  for_cells(other_scope, [&](i64 cell, i64 common_cell) { sums[common_cell] += other[cell]; });
  const double share = double(means) / double(plan::cells_of(other_scope, sizes));
  for_cells(scope, [&](i64 cell, i64 common_cell) { table[cell] += share * sums[common_cell]; });
}

std::vector<double> WeightedMiniBuckets::continued(const WeightedMiniBuckets& other,
                                                   std::span<const double> parameters) const {
  std::vector<double> start = initial();
  std::vector<double> shifted(other.shifts_);
  other.centre_shifts(parameters, shifted);
  std::vector<int> group_of(sizes_.size(), -1);
  for (std::size_t g = 0; g + 1 < groups_.size(); ++g) group_of[variables_[divided_[groups_[g]]]] = int(g);
  std::vector<double> weights(divided_.size(), 0.0);
  const auto size_of = [](double logarithm) { return std::exp(std::clamp(logarithm, kLeastLog, kMostLog)); };
  for (std::size_t h = 0; h + 1 < other.groups_.size(); ++h) {
    const int begin = other.groups_[h], end = other.groups_[h + 1];
    const int g = group_of[other.variables_[other.divided_[begin]]];
    if (g < 0) continue;
    double total = 1;  // sum by which sizes of positive weights are divided
    if (other.positive_[h] < 0) {
      total = 0;
      for (int m = begin; m < end; ++m) total += size_of(parameters[other.shifts_ + m]);
    }
    for (int m = begin; m < end; ++m) {
      const int n = closest(other, other.divided_[m], g);
      add_means(other.shift_scopes_[h], shifted.data() + other.shift_begin_[m], shift_scopes_[g],
                start.data() + shift_begin_[n], sizes_);
      if (m != other.positive_[h]) weights[n] += size_of(parameters[other.shifts_ + m]) / total;
    }
  }
  for (std::size_t n = 0; n < weights.size(); ++n)
    if (weights[n] > 0) start[shifts_ + n] = std::log(weights[n]);
  return start;
}

void WeightedMiniBuckets::set_parameters(std::span<const double> parameters) {
  centre_shifts(parameters, shifted_);
  for (std::size_t g = 0; g + 1 < groups_.size(); ++g) {
    const int begin = groups_[g], end = groups_[g + 1];
    const double* logs = parameters.data() + shifts_;
    const auto size = [&](int n) { return std::exp(std::clamp(logs[n], kLeastLog, kMostLog)); };
    double sum = 0;
    if (positive_[g] < 0) {
      for (int n = begin; n < end; ++n) sum += size(n);
      double remaining = totals_[g];
      for (int n = begin; n + 1 < end; ++n) remaining -= weights_[divided_[n]] = totals_[g] * (size(n) / sum);
      weights_[divided_[end - 1]] = std::max(0.0, remaining);
    } else {
      for (int n = begin; n < end; ++n)
        if (n != positive_[g]) sum += size(n), weights_[divided_[n]] = -size(n);
      weights_[divided_[positive_[g]]] = totals_[g] + sum;
    }
  }
}

void WeightedMiniBuckets::release_tables() {
  live_ = {};
  records_ = {};
}

// Calls a function with the first column of each block of a node's table, after setting the layouts of its source
// tables and the block's offsets in these.
template <class Work>
void WeightedMiniBuckets::for_blocks(int node, const Work& work) {
  const std::span<const int> clique = cliques_[node];
  const Blocks& blocks = blocks_[node];
  const i64 begin = sources_begin_[node], sources = sources_begin_[node + 1] - begin;
  axis_sizes_.clear();
  for (const int v : clique) axis_sizes_.push_back(sizes_[v]);
  const std::span<const i64> inner_sizes = std::span<const i64>(axis_sizes_).subspan(blocks.outer_axes);
  for (i64 s = 0; s < sources; ++s) {
    const i64* const strides = strides_.data() + sources_[begin + s].begin;
    layouts_[s].set(inner_sizes, {strides + blocks.outer_axes, inner_sizes.size()});
    source_offsets_[s] = 0;
  }
  counts_.assign(clique.size(), 0);
  for (i64 column = 0;; column += blocks.columns) {
    work(column);
    std::size_t axis = blocks.outer_axes;
    for (;;) {
      if (--axis == 0) return;
      const i64 back = ++counts_[axis] < axis_sizes_[axis] ? 0 : axis_sizes_[axis];
      for (i64 s = 0; s < sources; ++s)
        source_offsets_[s] += (1 - back) * strides_[sources_[begin + s].begin + i64(axis)];
      if (back == 0) break;
      counts_[axis] = 0;
    }
  }
}

double* WeightedMiniBuckets::base_of(const Source& source) {
  std::vector<double>& tables = source.origin == Origin::kFactor    ? values_
                                : source.origin == Origin::kMessage ? live_
                                                                    : shifted_;
  return tables.data() + source.offset;
}

// Adds up a row of a block: the terms of one state of the node's variable.
void WeightedMiniBuckets::build(int node, i64 row) {
  double* const target = block_.data() + row * blocks_[node].columns;
  const i64 begin = sources_begin_[node], end = sources_begin_[node + 1];
  if (begin == end) std::fill_n(target, blocks_[node].columns, 0.0);
  for (i64 s = begin; s < end; ++s) {
    const i64 offset = source_offsets_[s - begin] + row * strides_[sources_[s].begin];
    layouts_[s - begin].spread(base_of(sources_[s]) + offset, target, s == begin);
  }
}

// Eliminates a node's variable; keeps the shares of its states or, without `keeps_shares`, its message in single
// precision.
void WeightedMiniBuckets::send(int node, bool keeps_shares) {
  const i64 columns = blocks_[node].columns, size = sizes_[variables_[node]];
  const double weight = weights_[node];
  const i64 fixed = fixed_[variables_[node]];
  double* const message = live_.data() + offsets_[node];
  Share* const records = records_.data() + records_begin_[node];
  std::fill_n(magnitudes_.begin(), columns, 0.0);
  for_blocks(node, [&](i64 column) {
    if (fixed >= 0) {
      build(node, fixed);
      // A variable that is conditioned on has a single term; with weight 0, the sum is this term.
      sum_powers(block_.data() + fixed * columns, 1, columns, 0, message + column, nullptr, 0, magnitudes_.data());
    } else {
      for (i64 row = 0; row < size; ++row) build(node, row);
      sum_powers(block_.data(), size, columns, weight, message + column, keeps_shares ? records + column : nullptr,
                 columns_[node], magnitudes_.data());
    }
  });
  if (!keeps_shares)
    for (i64 s = 0; s < columns_[node]; ++s) records[s] = std::bit_cast<Share>(float(message[s]));
  const double largest = *std::max_element(magnitudes_.begin(), magnitudes_.begin() + columns);
  const bool is_divided = number_[node] >= 0;
  const double terms = double(sources_begin_[node + 1] - sources_begin_[node] + (is_divided ? 0 : 1) + size);
  rounding_ += kUlps * std::numeric_limits<double>::epsilon() * terms * (largest + std::abs(weight) * double(size) + 1);
}

// Splits the belief of a node's separator among the states of its variable, and passes the beliefs on to its sources;
// returns the entropy of a partitioned bucket's variable given the separator.
double WeightedMiniBuckets::condition(int node, double* gradient) {
  const i64 columns = blocks_[node].columns, size = sizes_[variables_[node]];
  const double* const above = live_.data() + offsets_[node];
  const Share* const records = records_.data() + records_begin_[node];
  const i64 fixed = fixed_[variables_[node]];
  double* const marginals = marginals_.data() + marginal_begin_[variables_[node]];
  const i64 begin = sources_begin_[node], end = sources_begin_[node + 1];
  for (i64 s = begin; s < end; ++s)
    if (sources_[s].origin == Origin::kMessage) std::fill_n(base_of(sources_[s]), columns_[sources_[s].node], 0.0);
  double entropy = 0;
  for_blocks(node, [&](i64 column) {
    if (fixed >= 0) {
      std::copy_n(above + column, columns, block_.begin() + fixed * columns);
    } else {
      split_by_shares(above + column, records + column, columns_[node], size, columns, block_.data());
      if (number_[node] >= 0)
        entropy += conditional_entropy(above + column, block_.data(), records + column, columns_[node], size, columns);
    }
    for (i64 row = std::max<i64>(fixed, 0); row < (fixed < 0 ? size : fixed + 1); ++row) {
      const double* const beliefs = block_.data() + row * columns;
      marginals[row] += sum_of(beliefs, columns) / copies_[variables_[node]];
      for (i64 s = begin; s < end; ++s) {
        const Source& source = sources_[s];
        if (source.origin == Origin::kFactor) continue;
        double* const target = source.origin == Origin::kShift ? gradient + source.offset : base_of(source);
        layouts_[s - begin].gather(beliefs, target + source_offsets_[s - begin] + row * strides_[source.begin]);
      }
    }
  });
  return entropy;
}

std::vector<int> WeightedMiniBuckets::decode(int count, std::uint64_t seed) const {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(std::numeric_limits<double>::min(), 1.0);
  std::vector<int> assignments(count * sizes_.size());
  std::vector<double> scores;
  for (int number = 0; number < count; ++number) {
    int* const values = assignments.data() + number * sizes_.size();
    for (int last = int(variables_.size()), first; last > 0; last = first) {
      const int v = variables_[last - 1];
      scores.assign(sizes_[v], 0.0);
      for (first = last; first > 0 && variables_[first - 1] == v;) {
        const std::span<const int> clique = cliques_[--first];
        for (i64 s = sources_begin_[first]; s < sources_begin_[first + 1]; ++s) {
          const Source& source = sources_[s];
          if (source.origin == Origin::kShift) continue;  // the shifts of a bucket cancel
          const i64* const strides = strides_.data() + source.begin;
          i64 cell = 0;
          for (std::size_t axis = 1; axis < clique.size(); ++axis) cell += strides[axis] * values[clique[axis]];
          for (i64 x = 0; x < sizes_[v]; ++x, cell += strides[0])
            scores[x] += source.origin == Origin::kFactor
                             ? values_[source.offset + cell]
                             : std::bit_cast<float>(records_[records_begin_[source.node] + cell]);
        }
      }
      if (number > 0)
        for (double& score : scores) score -= std::log(-std::log(uniform(random)));
      values[v] = fixed_[v] >= 0 ? fixed_[v] : int(std::ranges::max_element(scores) - scores.begin());
    }
  }
  return assignments;
}

double WeightedMiniBuckets::evaluate(std::span<const double> parameters, std::vector<double>* output_gradient) {
  set_parameters(parameters);
  live_.resize(live_cells_);
  records_.resize(records_begin_.back());
  rounding_ = 0;
  double bound = 0;
  for (const int r : sequence_) {
    check_stop();
    send(r, output_gradient != nullptr);
    if (parents_[r] >= 0) continue;
    bound += live_[offsets_[r]];
    rounding_ += std::numeric_limits<double>::epsilon() * (std::abs(bound) < -kLogOfZero ? std::abs(bound) : 0);
  }
  if (!output_gradient) return bound;
  std::vector<double>& gradient = *output_gradient;
  gradient.assign(parameters.size(), 0.0);
  marginals_.assign(marginal_begin_.back(), 0.0);
  if (bound == kLogOfZero) return bound;
  std::vector<double> entropies(divided_.size());
  for (std::size_t i = sequence_.size(); i-- > 0;) {
    check_stop();
    const int r = sequence_[i];
    if (parents_[r] < 0) live_[offsets_[r]] = 1;
    const double entropy = condition(r, gradient.data());
    if (const int n = number_[r]; n >= 0) entropies[n] = entropy;
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
