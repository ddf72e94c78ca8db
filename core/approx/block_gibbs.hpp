// Gibbs sampling of blocks: variables whose factors, given all other variables, form a forest are drawn together, from
// their exact distribution (Jensen, Kong and Kjaerulff 1995, "Blocking Gibbs sampling in very large probabilistic
// expert systems"; Hamze and de Freitas 2004, "From fields to trees").
#pragma once
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "approx/scoped_tables.hpp"

namespace elimina::approx {

class BlockGibbs {
 public:
  // `values`: values of all factors, positive, one factor after another. Each chain has a replica for each power of the
  // product of all factors; the first power is 1. Neighbouring replicas exchange states (Geyer 1991, "Markov chain
  // Monte Carlo maximum likelihood"). Chains start at random states.
  BlockGibbs(std::vector<std::int64_t> sizes, const ScopeList& scopes, const std::vector<double>& values,
             std::vector<double> powers, std::size_t chains, std::uint64_t seed);

  // Draws each variable of each chain at least once a sweep, and adds the marginals of each block given the other
  // variables (Rao and Blackwell) to the chain's sums. `sums`: sums of each chain, one variable after another; `draws`:
  // number of draws of each chain and variable, both for the power 1. `moments`: for each chain and power, sums over
  // sweeps of 1, of the logarithm of the product of all factors, of its square, and of the product to the power of the
  // difference from the previous power. Returns the number of sweeps of all chains, smaller when the thread is asked to
  // stop.
  std::uint64_t run(std::uint64_t sweeps, std::span<double> sums, std::span<double> draws, std::span<double> moments);

  static constexpr std::size_t kMoments = 4;

  std::size_t chains() const { return states_.size() / powers_.size(); }
  std::size_t powers() const { return powers_.size(); }
  std::size_t variables() const { return sizes_.size(); }
  std::size_t cells() const { return std::size_t(begins_.back()); }

 private:
  using Random = std::mt19937_64;
  struct Use {  // a factor that a variable of a block uses
    std::uint32_t factor, axis;
    std::int32_t parent_axis;  // axis of the previous variable of the block; -1: none
  };
  struct Node {
    std::int32_t variable, parent;  // position of the parent in the block; -1: a root
    std::uint32_t first_use, last_use;
    std::int64_t weights, message;  // offsets of its weights and its message
  };
  struct Block {
    std::vector<Node> nodes;  // parents before children
    std::vector<Use> uses;
    std::int64_t cells = 0;  // number of cells for weights and messages
  };
  struct Factor {
    std::uint32_t first, last;  // axes
    std::int64_t begin;         // offset of its values
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

  std::vector<std::int64_t> sizes_, begins_;  // size of each variable, and offset of its marginal
  std::vector<double> logs_, powers_;
  std::vector<std::vector<double>> values_;  // values of all factors, for each power
  std::vector<Factor> factors_;
  std::vector<Axis> axes_;
  std::vector<std::vector<Use>> uses_;             // factors that each variable uses
  std::vector<std::vector<Block>> covers_;         // sets of blocks; the blocks of each set contain all variables
  std::vector<std::vector<std::int32_t>> states_;  // states for each chain and power
  std::size_t parity_ = 0;
  std::vector<double> cells_, products_;
  Random random_;
};

}  // namespace elimina::approx
