// Gibbs sampling of blocks: variables whose factors, given all other variables, form a forest are drawn together, from their exact
// distribution (Jensen, Kong and Kjaerulff 1995, "Blocking Gibbs sampling in very large probabilistic expert systems"; Hamze and de Freitas 2004,
// "From fields to trees").
#pragma once
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "approx/scoped_tables.hpp"

namespace elimina::approx {

class BlockGibbs {
 public:
  // `values`: of all factors, positive, one after another. Each chain has a replica for each power of the product of all factors; the first
  // power is 1. Neighbouring replicas exchange states (Geyer 1991, "Markov chain Monte Carlo maximum likelihood"). Chains start at
  // random states.
  BlockGibbs(std::vector<std::int64_t> sizes, const ScopeList& scopes, const std::vector<double>& values,
             std::vector<double> powers, std::size_t chains, std::uint64_t seed);

  // Draws each variable of each chain at least once a sweep, and adds the marginals of each block given the other variables (Rao and
  // Blackwell) to the chain's sums. `sums`: for each chain, those of one variable after another; `draws`: of each chain and variable,
  // how often that was, both for the power 1. `moments`: for each chain and power, sums over sweeps of 1, of the logarithm of the product of all
  // factors, of its square, and of the product to the difference to the power before. Returns the sweeps that all chains have had, fewer
  // when the thread's patience ends.
  std::uint64_t run(std::uint64_t sweeps, std::span<double> sums, std::span<double> draws, std::span<double> moments);

  static constexpr std::size_t kMoments = 4;

  std::size_t chains() const { return states_.size() / powers_.size(); }
  std::size_t powers() const { return powers_.size(); }
  std::size_t variables() const { return sizes_.size(); }
  std::size_t cells() const { return std::size_t(begins_.back()); }

 private:
  using Random = std::mt19937_64;
  struct Use {  // of a factor, by a variable of a block
    std::uint32_t factor, axis;
    std::int32_t parent_axis;  // axis of the block's variable before; -1: it has none of the block's
  };
  struct Node {
    std::int32_t variable, parent;  // position of its parent in the block; -1: a root
    std::uint32_t first_use, last_use;
    std::int64_t weights, message;  // offsets
  };
  struct Block {
    std::vector<Node> nodes;  // parents first
    std::vector<Use> uses;
    std::int64_t cells = 0;  // of weights and messages
  };
  struct Factor {
    std::uint32_t first, last;  // axes
    std::int64_t begin;         // of its values
  };
  struct Axis {
    std::int32_t variable;
    std::int64_t stride;
  };

  Block block_of(std::vector<std::int32_t> sequence, std::vector<bool>& is_drawn);
  void draw(const Block& block, const std::vector<double>& powered, std::span<std::int32_t> states,
            std::span<double> sums, std::span<double> draws);
  double log_product(std::span<const std::int32_t> states) const;
  void exchange(std::size_t chain, std::span<double> moments);
  double uniform() { return double(random_() >> 11) * 0x1p-53; }

  std::vector<std::int64_t> sizes_, begins_;  // of each variable, and where its marginal begins
  std::vector<double> logs_, powers_;
  std::vector<std::vector<double>> values_;  // for each power
  std::vector<Factor> factors_;
  std::vector<Axis> axes_;
  std::vector<std::vector<Use>> uses_;             // of each variable
  std::vector<std::vector<Block>> covers_;         // sets of blocks that have each variable
  std::vector<std::vector<std::int32_t>> states_;  // for each chain and power
  std::size_t parity_ = 0;
  std::vector<double> cells_, products_;
  Random random_;
};

}  // namespace elimina::approx
