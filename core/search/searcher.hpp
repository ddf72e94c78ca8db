// Depth-first search of the AND/OR graph under a limit, with a cache of bounds.
#pragma once
#include <functional>
#include <utility>
#include <vector>

#include "busy.hpp"
#include "cache.hpp"
#include "path.hpp"
#include "problem.hpp"

namespace elimina::search {

// A variable occurs once on a path, so its OR node (the variable, its ancestors' values) and the AND node (one of its values) that is
// searched below it are kept with the variable: there is no stack, and a return goes to the parent.
class Searcher {
 public:
  // Searches that share a cache divide the work by what they are busy with; null: there is one alone.
  Searcher(const Problem& problem, Cache& cache, Busy* busy);
  Searcher(const Searcher&) = delete;
  Searcher& operator=(const Searcher&) = delete;

  // Begins at an OR node whose ancestors have values. A solution below the limit is sought.
  void start(Var top, double limit);

  // Goes on for some nodes; whether it came to an end.
  bool run(std::uint64_t nodes);

  // At the end: whether there is a solution below the limit, whose cost is lower().
  bool solved() const { return node_[top_].solved; }
  int best() const { return node_[top_].best; }

  // Leaves subtrees that other searches have decided meanwhile.
  void skip();

  // A lower bound on the top, at any time.
  double lower() const;

  // Stores the bounds along the path.
  void leave();

  // Finds the values of the solution whose cost was found at the root: what the cache lost is searched again. False if it was stopped.
  bool decode(const std::function<bool()>& stopped, std::vector<int>& value);

  std::uint64_t nodes() const { return nodes_; }  // OR nodes expanded and AND nodes entered
  std::uint64_t hits() const { return hits_; }
  std::uint64_t take_stored() { return std::exchange(stored_, 0); }  // new entries of the cache

 private:
  struct Node {
    double limit, lower;
    double least;        // of the values that are solved
    double sum, target;  // of the AND node: its bound, and the limit on it
    std::uint64_t entered;
    int chosen, best;
    bool solved;
    bool marked = false;  // as busy with the chosen value
    std::size_t mark;
  };

  // Work below a variable so far.
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
  std::vector<double> cost_, bound_;  // of the values of OR nodes; infinite: solved
  std::vector<Cache::Word> keys_;
  Var top_ = 0, at_ = 0;
  bool ended_ = true;
  std::uint64_t nodes_ = 0, hits_ = 0, stored_ = 0;
};

}  // namespace elimina::search
