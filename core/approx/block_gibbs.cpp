#include "approx/block_gibbs.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "approx/bounded_order.hpp"
#include "stop.hpp"

namespace elimina::approx {

namespace {

// Largest number of covers. A cover is a set of blocks that together contain all variables. Each sweep uses a cover
// drawn at random.
constexpr std::size_t kCovers = 3;

}  // namespace

BlockGibbs::BlockGibbs(std::vector<std::int64_t> sizes, const ScopeList& scopes, const std::vector<double>& values,
                       std::vector<double> powers, std::size_t chains, std::uint64_t seed, double max_cells)
    : sizes_(std::move(sizes)), begins_(sizes_.size() + 1, 0), powers_(std::move(powers)), random_(seed) {
  for (const double power : powers_) {
    auto& powered = values_.emplace_back(values);
    if (power != 1)
      for (double& value : powered) value = std::pow(value, power);
  }
  std::partial_sum(sizes_.begin(), sizes_.end(), begins_.begin() + 1);
  for (std::size_t chain = 0; chain < chains * powers_.size(); ++chain) {
    auto& states = states_.emplace_back(sizes_.size());
    for (std::size_t v = 0; v < sizes_.size(); ++v) states[v] = std::int32_t(random_() % std::uint64_t(sizes_[v]));
  }
  const auto neighbours = neighbours_of(sizes_.size(), scopes);
  for (std::size_t cover = 0; cover < kCovers; ++cover) {
    auto& blocks = covers_.emplace_back();
    for (std::vector<bool> is_drawn(sizes_.size(), false); std::ranges::count(is_drawn, false) > 0;) {
      const std::vector<std::int32_t> order = bounded_order(sizes_, neighbours, max_cells, is_drawn, random_);
      for (const std::int32_t v : order) is_drawn[v] = true;
      blocks.emplace_back(sizes_, scopes, order);
    }
    // A block of all variables is a cover by itself; further covers would repeat it.
    if (blocks.size() == 1) break;
  }
}

std::int64_t BlockGibbs::table_cells() const {
  std::int64_t cells = 0;
  for (const auto& blocks : covers_)
    for (const ConditionedTree& block : blocks) cells = std::max(cells, block.table_cells());
  return cells;
}

void BlockGibbs::draw(const ConditionedTree& block, std::size_t chain, std::size_t power, const Counts& counts) {
  block.draw(states_[chain * powers() + power], [&] { return uniform(); }, tables_);
  if (power > 0) return;
  block.add_marginals(1, counts.sums, tables_);
  for (const std::int32_t v : block.order()) ++counts.draws[v];
}

void BlockGibbs::exchange(const ConditionedTree& block, std::size_t chain, std::size_t power, const Counts& counts) {
  const std::size_t first = chain * powers() + power, second = first + 1;
  // Logarithms of the sum over the block, for the states of both replicas and for both powers. `second_at_first`:
  // states of the second replica, first power.
  const double first_at_first = collect(block, power, first), second_at_first = collect(block, power, second);
  const double first_at_second = collect(block, power + 1, first), second_at_second = collect(block, power + 1, second);
  double* const moments = counts.moments.data() + (power + 1) * kMoments;
  const double log = second_at_first - second_at_second;
  moments[0] += 1;
  moments[1] += log;
  moments[2] += log * log;
  moments[3] += std::exp(log);
  const double gain = second_at_first + first_at_second - first_at_first - second_at_second;
  const bool is_exchanged = gain >= 0 || uniform() < std::exp(gain);
  if (is_exchanged) {
    std::swap(states_[first], states_[second]);
    collect(block, power + 1, second);
  }
  draw(block, chain, power + 1, counts);
  collect(block, power, first);
  draw(block, chain, power, counts);
}

std::uint64_t BlockGibbs::run(std::uint64_t sweeps, std::span<double> sums, std::span<double> draws,
                              std::span<double> moments) {
  const std::size_t count = powers();
  for (std::uint64_t sweep = 0; sweep < sweeps; ++sweep) {
    for (const ConditionedTree& block : covers_[random_() % covers_.size()]) {
      for (std::size_t chain = 0; chain < chains(); ++chain) {
        const Counts counts{sums.subspan(chain * cells(), cells()), draws.subspan(chain * variables(), variables()),
                            moments.subspan(chain * count * kMoments, count * kMoments)};
        for (std::size_t power = 0; power < count; ++power) {
          if (stopped()) return sweep;
          if ((power % 2 == 1) == is_odd_ && power + 1 < count) {
            exchange(block, chain, power++, counts);
            continue;
          }
          collect(block, power, chain * count + power);
          draw(block, chain, power, counts);
        }
      }
      is_odd_ = !is_odd_;
    }
  }
  return sweeps;
}

}  // namespace elimina::approx
