// Gibbs sampling of blocks. A block is a set of variables that tables of bounded size can eliminate while all other
// variables keep their states. The variables of a block are drawn together, from their exact distribution given the
// others (Jensen, Kong and Kjaerulff 1995, "Blocking Gibbs sampling in very large probabilistic expert systems").
#pragma once
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "approx/conditioned_tree.hpp"

namespace elimina::approx {

class BlockGibbs {
 public:
  // `values`: values of all factors, positive and at most 1, one factor after another. Each chain has a replica for
  // each of the `powers` of the product of all factors; the first power is 1. Replicas of neighbouring powers exchange
  // states (Geyer 1991, "Markov chain Monte Carlo maximum likelihood"); the probability of an exchange is computed with
  // the block's variables summed out. Chains start at random states. `max_cells`: largest number of cells of a table
  // over a variable that is eliminated and its neighbours.
  BlockGibbs(std::vector<std::int64_t> sizes, const ScopeList& scopes, const std::vector<double>& values,
             std::vector<double> powers, std::size_t chains, std::uint64_t seed, double max_cells);

  // Draws each variable of each chain at least once a sweep. `sums`: for each chain, one variable after another, the
  // sums of the marginals that the variables had in their blocks given all other variables (Rao and Blackwell);
  // `draws`: number of draws of each variable of each chain. Only replicas of power 1 count in `sums` and `draws`.
  // `moments`: for each chain and power, the sums of 1, x, x^2 and exp(x) over the proposed exchanges with the previous
  // power. Here x = log S(previous power) - log S(own power), and S(p) is the sum over the block of the p-th power of
  // the product, given the replica's other states. Returns the number of complete sweeps, which is smaller than
  // `sweeps` on a stop request.
  std::uint64_t run(std::uint64_t sweeps, std::span<double> sums, std::span<double> draws, std::span<double> moments);

  static constexpr std::size_t kMoments = 4;

  std::size_t chains() const { return states_.size() / powers_.size(); }
  std::size_t powers() const { return powers_.size(); }
  std::size_t variables() const { return sizes_.size(); }
  std::size_t cells() const { return std::size_t(begins_.back()); }
  // Largest number of cells that the tables of a block have in total.
  std::int64_t table_cells() const;

 private:
  struct Counts {  // sums, numbers of draws, and moments of one chain
    std::span<double> sums, draws, moments;
  };

  void draw(const ConditionedTree& block, std::size_t chain, std::size_t power, const Counts& counts);
  void exchange(const ConditionedTree& block, std::size_t chain, std::size_t power, const Counts& counts);
  double collect(const ConditionedTree& block, std::size_t power, std::size_t state) {
    return block.collect(values_[power], states_[state], tables_);
  }
  double uniform() { return double(random_() >> 11) * 0x1p-53; }

  std::vector<std::int64_t> sizes_, begins_;  // size of each variable, and offset of its marginal
  std::vector<double> powers_;
  std::vector<std::vector<double>> values_;           // values of all factors, for each power
  std::vector<std::vector<ConditionedTree>> covers_;  // sets of blocks; the blocks of a set contain all variables
  std::vector<std::vector<std::int32_t>> states_;     // states for each chain and power
  TreeTables tables_;
  bool is_odd_ = false;
  std::mt19937_64 random_;
};

}  // namespace elimina::approx
