// Sequences of clique trees of bounded size, linked by approximate distributions.
//
// A clique tree grows by factors and eliminations as long as its cliques stay within a bound. Then its front (the
// cliques shared with later factors) is approximated by smaller cliques, and these begin the next tree (Bathla and
// Vasudevan 2023, "IBIA: an incremental build-infer-approximate framework for approximate inference of partition
// function").
// Marginals also depend on later trees, so messages pass in both directions: they are messages of expectation
// propagation (Minka 2001) over the cliques of the fronts, and further passes improve the approximations of the fronts,
// too.
#pragma once
#include <memory>
#include <stdexcept>

#include "approx/clique_forest.hpp"

namespace elimina::approx {

// Factors whose variables are numbered by rank (position in the elimination order), grouped by their first variable.
class RankedFactors {
 public:
  // `scopes`: variables of each factor, slow to fast; `values`: values of the factors, one after another.
  RankedFactors(std::vector<i64> sizes, const ScopeList& scopes, std::span<const double> values);

  std::span<const i64> sizes() const { return sizes_; }
  std::span<const int> scope(int factor) const { return scopes_[factor]; }
  const double* table(int factor) const { return tables_.data() + firsts_[factor]; }
  std::span<const int> bucket(int rank) const { return buckets_[rank]; }
  // The largest number of cells of a factor or, if that is larger, of states of a variable.
  i64 most_cells() const { return most_cells_; }

 private:
  std::vector<i64> sizes_, firsts_{0};
  ScopeList scopes_{{0}, {}}, buckets_;
  std::vector<double> tables_;
  i64 most_cells_ = 1;
};

// Weights of states, for some variables: a forecast of the effect of later factors.
class Forecasts {
 public:
  explicit Forecasts(std::size_t variables) : entries_(variables) {}

  void add(int variable, int rank, std::vector<double> weights) {
    entries_[variable].emplace_back(rank, std::move(weights));
  }
  bool has(int variable) const { return !entries_[variable].empty(); }
  // Returns the weights of the variable's forecast whose rank is nearest to `rank`.
  std::span<const double> at(int variable, int rank) const;

 private:
  // Rank and weights of each forecast, for each variable.
  std::vector<std::vector<std::pair<int, std::vector<double>>>> entries_;
};

// Approximate distribution over the variables that later factors share with a clique tree.
struct Interface {
  RootedCliques cliques;
  std::vector<int> sources;  // for each clique, the clique of the previous tree that contains it
  std::vector<int> targets;  // for each clique, the clique of the next tree that contains it
  // Factors of all cliques, as received from the previous tree (`forward`) and from the next one (`backward`), and the
  // natural logarithms of their scales.
  std::vector<double> forward, backward;
  double forward_scale = 0, backward_scale = 0;

  // Divides `smoothed` by the factors of the other direction and keeps the quotient: the product of both directions is
  // then `smoothed`.
  void set_forward(std::vector<double> smoothed);
  void set_backward(std::vector<double> smoothed);
};

// A finished tree of cliques. `inputs`: numbers of the trees whose outputs are its inputs.
struct LinkedTree {
  struct Member {  // a factor or a variable, and its clique
    int number, clique;
  };
  RootedCliques cliques;
  int rank;  // rank of the elimination that ended the tree
  std::vector<Member> factors, eliminated;
  std::vector<Member> weighted;  // variables whose forecasts stand for later trees
  std::vector<int> inputs;
  std::unique_ptr<Interface> output;  // null: the last tree
};

struct ZeroSum : std::runtime_error {
  ZeroSum() : std::runtime_error("the sum of a clique tree is 0, or too small for floats") {}
};
struct TreesTooLarge : std::runtime_error {
  TreesTooLarge() : std::runtime_error("the clique trees need more memory than they may take") {}
};

// A sequence of clique trees, with the approximate distributions between them.
class LinkedTrees {
 public:
  // `forecasts`: weights from another sequence of trees, used to approximate fronts; nullptr if fronts depend on
  // earlier factors alone.
  LinkedTrees(std::shared_ptr<const RankedFactors> factors, i64 most_cells, double most_bytes,
              std::shared_ptr<const Forecasts> forecasts);

  // Builds all trees. Throws ZeroSum or TreesTooLarge.
  void build();

  // Updates messages from later to earlier trees; returns the marginals, one rank after another.
  std::vector<double> pass_backward();
  // Updates messages from earlier to later trees.
  void pass_forward();
  // Returns the weights that later factors give to states, for the approximations in another sequence of trees.
  std::shared_ptr<const Forecasts> forecast() const;

  const std::vector<LinkedTree>& trees() const { return trees_; }
  // Natural logarithm of the sum of the factors' product, from the last pass.
  double log_z() const { return log_z_; }
  // Total mutual information that approximations removed, in nats.
  double divergence() const { return divergence_; }
  // Bytes of all trees and interfaces.
  double bytes() const { return bytes_; }
  bool is_exact() const;

 private:
  friend class TreeBuilder;

  void calibrate_tree(const LinkedTree& tree);  // writes the beliefs to beliefs_
  std::vector<double> project(const Interface& interface, const LinkedTree& tree, std::span<const int> hosts) const;

  const std::shared_ptr<const RankedFactors> factors_;
  const std::shared_ptr<const Forecasts> forecasts_;
  const std::span<const i64> sizes_;
  const i64 most_cells_;
  const double most_bytes_;
  std::vector<LinkedTree> trees_;
  std::vector<double> beliefs_;
  double log_z_ = 0, divergence_ = 0, bytes_ = 0;
};

}  // namespace elimina::approx
