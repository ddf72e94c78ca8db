// Depth-first search of the AND/OR graph with a limit and a cache of bounds.
#pragma once
#include <functional>
#include <utility>
#include <vector>

#include "busy.hpp"
#include "cache.hpp"
#include "path.hpp"
#include "problem.hpp"

namespace elimina::search {

// A variable occurs once on a path, so its OR node (variable, values of its ancestors) and the current AND node (one of
// its values) are stored with the variable. No stack is needed: a return goes to the parent.
class AndOrSearch {
 public:
  // `busy`: counters by which searches with a common cache divide the work; null for a single search.
  AndOrSearch(const Problem& problem, Cache& cache, Busy* busy);
  AndOrSearch(const AndOrSearch&) = delete;
  AndOrSearch& operator=(const AndOrSearch&) = delete;

  // Begins at an OR node with assigned ancestors, and searches for a solution below the limit.
  void start(Var top, double limit);

  // Continues for up to `nodes` further nodes; returns true once the search has ended.
  bool run(std::uint64_t nodes);

  // True, at the end of the search, if a solution is below the limit; lower() is then its cost.
  bool solved() const { return node_[top_].solved; }
  int best() const { return node_[top_].best; }

  // Leaves subtrees that other searches have decided in the meantime.
  void skip();

  // A lower bound on the node at which the search began, valid at any time.
  double lower() const;

  // Ends the search: stores the bounds along its path in the cache, and removes the search from all counters of busy
  // threads.
  void release_nodes();

  // Reads the values of the best solution from the cache, and searches again for entries that the cache has lost.
  // Returns false if it was stopped.
  bool decode(const std::function<bool()>& stopped, std::vector<int>& value);

  std::uint64_t nodes() const { return nodes_; }  // number of expanded OR nodes and entered AND nodes
  std::uint64_t hits() const { return hits_; }
  std::uint64_t take_stored() { return std::exchange(stored_, 0); }  // number of new entries in the cache

 private:
  struct Node {
    double limit, lower;
    double least;        // least cost of the solved values
    double sum, target;  // bound on the AND node, and its limit
    std::uint64_t entered;
    int chosen, best;
    bool solved;
    bool marked = false;  // true if this search counts as busy with the chosen value
    std::size_t mark;
  };

  // Number of nodes of the searches below a variable so far, and number of these searches.
  struct Load {
    std::uint64_t nodes, times;
  };

  void open(Var v, double limit);
  bool look_up(Var v);
  bool is_shared(Var v) const;
  int pick(Var v, double target);
  void unmark(Var v);
  void unmark_up_to(Var upper);
  bool choose();
  void enter();
  void advance();
  bool ascend();
  void keep(Var v);
  double sum_of_children(Var v) const;
  double least_bound(Var v, double of_chosen) const;
  double raised(Var v, double of_child) const;
  double* bound(Var v) { return bound_.data() + first_[v]; }
  const double* bound(Var v) const { return bound_.data() + first_[v]; }
  Cache::Word* key(Var v) { return keys_.data() + static_cast<std::size_t>(v) * cache_.words(); }

  const Problem& problem_;
  Cache& cache_;
  Path path_;
  Busy* busy_;
  std::vector<Node> node_;
  std::vector<Load> load_;
  std::vector<std::size_t> first_;
  std::vector<double> cost_, bound_;  // costs and bounds of the values of OR nodes; infinite bound: solved
  std::vector<Cache::Word> keys_;
  Var top_ = 0, at_ = 0;
  bool ended_ = true;
  std::uint64_t nodes_ = 0, hits_ = 0, stored_ = 0;
};

}  // namespace elimina::search
