// Approximation of a calibrated tree of cliques by one of smaller cliques.
#pragma once
#include "approx/clique_forest.hpp"

namespace elimina::approx {

// A calibrated tree of cliques, from which the weakest dependences are removed first.
// An edge connects two variables of a clique. It can be removed if no other clique has this edge. The Kullback-Leibler
// divergence then grows by the conditional mutual information of the two variables given the clique's other variables,
// and the marginals of the remaining cliques do not change (Deshpande, Garofalakis and Jordan 2001, "Efficient stepwise
// selection in decomposable models").
class CliqueFront : public CliqueForest {
 public:
  explicit CliqueFront(std::span<const i64> sizes) : sizes_(sizes) {}

  // Adds a clique with its belief. `source`: the clique of the finished tree that contains the new one.
  int add(Scope scope, std::vector<double> belief, int source);
  int source(int number) const { return sources_[number]; }
  // Total mutual information of the removed edges, in nats.
  double divergence() const { return divergence_; }

  // Removes each clique that a neighbour contains.
  void absorb();

  // Removes edges of a variable until its cliques can be joined into one table of at most `most_cells` cells.
  void separate(int variable, i64 most_cells);

  // Removes one variable from the clique at `position` of a path. Candidates are the variables that the clique shares
  // with a neighbour on the path, except for those in `needed`. The chosen one loses the least information relative to
  // the logarithm of its number of states. It stays on that neighbour's side of the tree, and is removed from all other
  // cliques that contain it.
  void shorten(std::span<const int> path, std::size_t position, std::span<const int> needed);

 private:
  using Belief = std::vector<double>;

  double price(double information, int variable) const;
  double entropy_without(int clique, int variable) const;
  double information(int clique, std::span<const int> first, std::span<const int> second) const;
  Belief marginal_of(int clique, std::span<const int> axes) const;
  void split(int clique, int first, int second);
  void drop(int variable, int start, int behind);
  void absorb(int clique);
  void discard(int clique, int heir = -1);

  const std::span<const i64> sizes_;
  std::vector<Belief> beliefs_;
  std::vector<int> sources_;
  double divergence_ = 0;
};

}  // namespace elimina::approx
