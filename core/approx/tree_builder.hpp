// Growth of clique trees by factors and by eliminations.
#pragma once
#include "approx/clique_front.hpp"
#include "approx/linked_trees.hpp"

namespace elimina::approx {

// A growing clique tree. Its front consists of the cliques with variables that are still to be eliminated; the
// eliminated cliques hang below them.
class GrowingTree : public CliqueForest {
 public:
  // `holders`: for each variable, the numbers of the front cliques with the variable, ascending.
  explicit GrowingTree(std::vector<std::vector<int>>& holders) : holders_(holders) {}

  bool is_front(int number) const { return is_front_[number]; }
  bool has_front() const { return fronts_ > 0; }

  int add_front(Scope scope);
  void widen(int number, Scope scope);
  void add_factor(int factor, int clique) { factors_.push_back({factor, clique}); }
  // Adds the cliques of an approximated front. `interface`: output of the previous tree; its targets become these
  // cliques. `input`: number of the previous tree. `positions`: for each clique of the front, its position in the
  // interface.
  void begin(const CliqueFront& front, std::span<const int> positions, int input, Interface& interface);
  // Adds the cliques, factors and inputs of another tree.
  void merge(const GrowingTree& other, std::vector<LinkedTree>& trees);
  // Joins the cliques with the variable; the front keeps the join without the variable.
  void eliminate(int variable, const Scope& scope);
  // Carries a variable along a path to the path's first clique. `needs`: for each clique but the last, its new scope
  // or, if this lacks variables of the clique, the scope of a new clique beside it.
  void widen_path(std::span<const int> path, std::span<const Scope> needs);
  // Returns the finished tree, and sets `positions` to each clique's position in the tree; -1 for a removed clique.
  LinkedTree complete(std::span<const i64> sizes, int rank, std::vector<LinkedTree>& trees,
                      std::vector<int>& positions);

 private:
  void leave_front(int number);
  void replace(int number, int heir);
  int heir_of(int number);

  std::vector<std::vector<int>>& holders_;
  std::vector<char> is_front_;
  std::vector<int> heirs_;  // for each clique, its replacement; the clique itself if it has none
  int fronts_ = 0;
  std::vector<int> inputs_;
  std::vector<LinkedTree::Member> factors_, eliminated_;
  std::vector<std::pair<int, int>> hanging_;  // eliminated cliques, each with the clique above it
};

class TreeBuilder {
 public:
  explicit TreeBuilder(LinkedTrees& result);
  void build();

 private:
  using Growing = std::shared_ptr<GrowingTree>;
  struct Closed {
    CliqueFront front;
    int tree;
  };

  void add(int factor);
  void eliminate(int variable);
  Growing home(std::span<const int> scope);
  void move(const GrowingTree& cliques, const Growing& home);
  int gather(Growing& tree, std::span<const int> shared);
  void shorten(CliqueFront& front, std::span<const int> shared);
  int nearest(const CliqueForest& forest, std::span<const int> candidates, std::span<const int> shared) const;
  std::vector<int> path(CliqueForest& forest, int start, int variable, int end) const;
  std::vector<Scope> needs(const CliqueForest& forest, std::span<const int> path, std::span<const int> shared,
                           int variable) const;
  int oversized(std::span<const Scope> scopes) const;
  int complete(GrowingTree& tree, std::vector<int>& positions, bool is_closed);
  Closed close(GrowingTree& tree);
  Growing follow(const Closed& closed);

  LinkedTrees& result_;
  const RankedFactors& factors_;
  const std::span<const i64> sizes_;
  std::vector<Growing> homes_;  // growing tree of each variable in a front
  std::vector<std::vector<int>> holders_;
  int rank_ = 0;
};

}  // namespace elimina::approx
