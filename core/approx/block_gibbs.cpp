#include "approx/block_gibbs.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "stop.hpp"

namespace elimina::approx {

namespace {

// Number of sets of blocks with all variables; each sweep draws one of them.
constexpr std::size_t kCovers = 8;

// Divides positive numbers by the largest one if it is tiny, so that products of many stay in the range of floats.
void rescale(double* numbers, std::int64_t count) {
  constexpr double least = 1e-100;
  const double peak = *std::max_element(numbers, numbers + count);
  if (peak >= least) return;
  for (std::int64_t i = 0; i < count; ++i) numbers[i] /= peak;
}

}  // namespace

BlockGibbs::BlockGibbs(std::vector<std::int64_t> sizes, const ScopeList& scopes, const std::vector<double>& values,
                       std::vector<double> powers, std::size_t chains, std::uint64_t seed)
    : sizes_(std::move(sizes)), begins_(sizes_.size() + 1, 0), powers_(std::move(powers)), uses_(sizes_.size()),
      random_(seed) {
  for (const double value : values) logs_.push_back(std::log(value));
  for (const double power : powers_) {
    auto& powered = values_.emplace_back(values);
    for (std::size_t i = 0; i < values.size(); ++i) powered[i] = std::exp(power * logs_[i]);
  }
  std::partial_sum(sizes_.begin(), sizes_.end(), begins_.begin() + 1);
  std::int64_t begin = 0;
  for (std::size_t number = 0; number < scopes.count(); ++number) {
    const std::span scope = scopes[number];
    const auto first = std::uint32_t(axes_.size());
    std::int64_t stride = cells_of(scope, sizes_);
    factors_.push_back({first, first + std::uint32_t(scope.size()), begin});
    begin += stride;
    for (const std::int32_t v : scope) {
      uses_[v].push_back({std::uint32_t(number), std::uint32_t(axes_.size()), -1});
      axes_.push_back({v, stride /= sizes_[v]});
    }
  }
  for (std::size_t chain = 0; chain < chains * powers_.size(); ++chain) {
    auto& states = states_.emplace_back(sizes_.size());
    for (std::size_t v = 0; v < sizes_.size(); ++v) states[v] = std::int32_t(random_() % std::uint64_t(sizes_[v]));
  }
  std::vector<std::int32_t> sequence(sizes_.size());
  std::iota(sequence.begin(), sequence.end(), 0);
  for (std::size_t cover = 0; cover < kCovers && !stopped(); ++cover) {
    auto& blocks = covers_.emplace_back();
    std::ranges::shuffle(sequence, random_);
    for (std::vector<bool> is_drawn(sizes_.size(), false); std::ranges::count(is_drawn, false) > 0;) {
      // Variables that no block has yet come first, so that each block adds some.
      std::ranges::stable_partition(sequence, [&](std::int32_t v) { return !is_drawn[v]; });
      blocks.push_back(block_of(sequence, is_drawn));
    }
  }
}

BlockGibbs::Block BlockGibbs::block_of(std::vector<std::int32_t> sequence, std::vector<bool>& is_drawn) {
  // A variable joins if it is adjacent to each tree at most once, so that a factor has at most two variables of the
  // block.
  std::vector<std::int32_t> roots(sizes_.size());
  std::iota(roots.begin(), roots.end(), 0);
  const auto root_of = [&](std::int32_t v) {
    while (roots[v] != v) v = roots[v] = roots[roots[v]];
    return v;
  };
  std::vector<bool> is_member(sizes_.size(), false);
  std::vector<std::vector<std::int32_t>> neighbours(sizes_.size());
  std::vector<std::int32_t> members, adjacent, trees;
  const auto can_join = [&](std::int32_t v) {
    adjacent.clear();
    for (const Use& use : uses_[v]) {
      int count = 0;
      for (std::uint32_t axis = factors_[use.factor].first; axis < factors_[use.factor].last; ++axis) {
        if (!is_member[axes_[axis].variable]) continue;
        if (++count > 1) return false;
        adjacent.push_back(axes_[axis].variable);
      }
    }
    std::ranges::sort(adjacent);
    adjacent.erase(std::ranges::unique(adjacent).begin(), adjacent.end());
    trees.clear();
    for (const std::int32_t w : adjacent) trees.push_back(root_of(w));
    std::ranges::sort(trees);
    return std::ranges::adjacent_find(trees) == trees.end();
  };
  for (const std::int32_t v : sequence) {
    if (!can_join(v)) continue;
    is_member[v] = is_drawn[v] = true;
    members.push_back(v);
    for (const std::int32_t w : adjacent) {
      roots[root_of(w)] = v;
      neighbours[v].push_back(w);
      neighbours[w].push_back(v);
    }
  }
  Block block;
  std::vector<std::int32_t> positions(sizes_.size(), -1);
  for (const std::int32_t start : members) {
    if (positions[start] >= 0) continue;
    std::size_t next = block.nodes.size();
    positions[start] = std::int32_t(next);
    block.nodes.push_back({start, -1, 0, 0, 0, 0});
    for (; next < block.nodes.size(); ++next) {
      for (const std::int32_t w : neighbours[block.nodes[next].variable]) {
        if (positions[w] >= 0) continue;
        positions[w] = std::int32_t(block.nodes.size());
        block.nodes.push_back({w, std::int32_t(next), 0, 0, 0, 0});
      }
    }
  }
  for (Node& node : block.nodes) {
    node.first_use = std::uint32_t(block.uses.size());
    for (Use use : uses_[node.variable]) {
      bool is_of_child = false;
      for (std::uint32_t axis = factors_[use.factor].first; axis < factors_[use.factor].last; ++axis) {
        const std::int32_t position = positions[axes_[axis].variable];
        if (position < 0 || axis == use.axis) continue;
        if (position == node.parent) use.parent_axis = std::int32_t(axis);
        else is_of_child = true;
      }
      if (!is_of_child) block.uses.push_back(use);
    }
    node.last_use = std::uint32_t(block.uses.size());
    const std::int64_t size = sizes_[node.variable];
    node.weights = block.cells;
    // Weights of a node's states, given the parent's state.
    const std::int64_t above = node.parent < 0 ? 1 : sizes_[block.nodes[node.parent].variable];
    block.cells += size * above;
    node.message = block.cells;
    block.cells += size + above;
  }
  return block;
}

void BlockGibbs::draw(const Block& block, const std::vector<double>& powered, std::span<std::int32_t> states,
                      std::span<double> sums, std::span<double> draws) {
  cells_.assign(block.cells, 1.0);
  double* cells = cells_.data();
  // Upward pass: a node's cells hold its weights by the parent's state, the products of its children's messages, and
  // its message.
  for (std::size_t position = block.nodes.size(); position-- > 0;) {
    const Node& node = block.nodes[position];
    const std::int64_t size = sizes_[node.variable];
    const std::int64_t above = node.parent < 0 ? 1 : sizes_[block.nodes[node.parent].variable];
    double *weights = cells + node.weights, *below = cells + node.message, *message = below + size;
    for (std::int64_t up = 0; up < above; ++up)
      for (std::int64_t x = 0; x < size; ++x) weights[up * size + x] = below[x];
    for (std::uint32_t number = node.first_use; number < node.last_use; ++number) {
      const Use& use = block.uses[number];
      const Factor& factor = factors_[use.factor];
      const double* values = powered.data() + factor.begin;
      for (std::uint32_t axis = factor.first; axis < factor.last; ++axis)
        if (axis != use.axis && std::int32_t(axis) != use.parent_axis)
          values += axes_[axis].stride * states[axes_[axis].variable];
      const std::int64_t stride = axes_[use.axis].stride;
      const std::int64_t parent_stride = use.parent_axis < 0 ? 0 : axes_[use.parent_axis].stride;
      for (std::int64_t up = 0; up < above; ++up)
        for (std::int64_t x = 0; x < size; ++x) weights[up * size + x] *= values[x * stride + up * parent_stride];
      rescale(weights, above * size);
    }
    double peak = 0;
    for (std::int64_t up = 0; up < above; ++up) {
      message[up] = 0;
      for (std::int64_t x = 0; x < size; ++x) message[up] += weights[up * size + x];
      peak = std::max(peak, message[up]);
    }
    if (node.parent < 0) continue;
    double* parent_below = cells + block.nodes[node.parent].message;
    for (std::int64_t up = 0; up < above; ++up) parent_below[up] *= message[up] / peak;
    rescale(parent_below, above);
  }
  // Downward pass: marginals replace the products, and states are drawn.
  for (const Node& node : block.nodes) {
    const std::int64_t size = sizes_[node.variable];
    const std::int64_t above = node.parent < 0 ? 1 : sizes_[block.nodes[node.parent].variable];
    double *weights = cells + node.weights, *shares = cells + node.message, *message = shares + size;
    std::fill_n(shares, size, 0.0);
    for (std::int64_t up = 0; up < above; ++up) {
      const double share = (node.parent < 0 ? 1.0 : cells[block.nodes[node.parent].message + up]) / message[up];
      for (std::int64_t x = 0; x < size; ++x) shares[x] += share * weights[up * size + x];
    }
    if (!sums.empty()) {
      double* sum = sums.data() + begins_[node.variable];
      for (std::int64_t x = 0; x < size; ++x) sum[x] += shares[x];
      ++draws[node.variable];
    }
    const std::int64_t up = node.parent < 0 ? 0 : states[block.nodes[node.parent].variable];
    double remaining = uniform() * message[up];
    std::int32_t state = 0;
    while (state + 1 < size && (remaining -= weights[up * size + state]) >= 0) ++state;
    states[node.variable] = state;
  }
}

double BlockGibbs::log_product(std::span<const std::int32_t> states) const {
  double sum = 0;
  for (const Factor& factor : factors_) {
    std::int64_t cell = factor.begin;
    for (std::uint32_t axis = factor.first; axis < factor.last; ++axis)
      cell += axes_[axis].stride * states[axes_[axis].variable];
    sum += logs_[cell];
  }
  return sum;
}

void BlockGibbs::exchange(std::size_t chain, std::span<double> moments) {
  const std::size_t count = powers_.size(), first = chain * count;
  products_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    products_[i] = log_product(states_[first + i]);
    double* sums = moments.data() + (first + i) * kMoments;
    sums[0] += 1;
    sums[1] += products_[i];
    sums[2] += products_[i] * products_[i];
    if (i > 0) sums[3] += std::exp((powers_[i - 1] - powers_[i]) * products_[i]);
  }
  for (std::size_t i = parity_; i + 1 < count; i += 2) {
    const double log = (powers_[i] - powers_[i + 1]) * (products_[i + 1] - products_[i]);
    if (log < 0 && uniform() >= std::exp(log)) continue;
    std::swap(states_[first + i], states_[first + i + 1]);
  }
}

std::uint64_t BlockGibbs::run(std::uint64_t sweeps, std::span<double> sums, std::span<double> draws,
                              std::span<double> moments) {
  if (covers_.empty()) return 0;
  for (std::uint64_t sweep = 0; sweep < sweeps; ++sweep) {
    for (std::size_t chain = 0; chain < chains(); ++chain) {
      for (std::size_t power = 0; power < powers(); ++power) {
        const bool is_counted = power == 0;
        for (const Block& block : covers_[random_() % covers_.size()]) {
          draw(block, values_[power], states_[chain * powers() + power],
               sums.subspan(chain * cells(), is_counted ? cells() : 0),
               draws.subspan(chain * variables(), is_counted ? variables() : 0));
          if (stopped()) return sweep;
        }
      }
      exchange(chain, moments);
    }
    parity_ ^= 1;
  }
  return sweeps;
}

}  // namespace elimina::approx
