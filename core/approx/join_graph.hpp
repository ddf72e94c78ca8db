// Propagation on a join graph: clusters of variables with tables, and edges over which they exchange marginals until these agree
// (Mateescu, Kask, Gogate and Dechter 2010, "Join-graph propagation algorithms"). On a tree it is exact; where a cluster holds one factor it
// is loopy belief propagation. The cluster whose arriving messages have changed most is next (Elidan, McGraw and Koller 2006, "Residual
// belief propagation").
#pragma once
#include <array>
#include <cstdint>
#include <queue>
#include <span>
#include <vector>

#include "approx/scoped_tables.hpp"

namespace elimina::approx {

class JoinGraph {
 public:
  using Cells = std::vector<double>;

  // `scopes`: variables of each cluster, slow to fast; `ends`: two clusters for each edge; `separators`: the variables of its messages.
  JoinGraph(std::vector<std::int64_t> sizes, ScopeList scopes, std::vector<std::int32_t> ends, ScopeList separators);

  // Multiplies each cluster's table by a factor over some of its variables; `values` holds all factors' values, which are at least 0. False:
  // a factor does not fit its cluster.
  bool multiply(std::span<const std::int64_t> clusters, const ScopeList& scopes, std::span<const double> values);

  // Updates clusters until no message changes by more than `tolerance`, or there were so many updates; returns whether no message does.
  // `damping`: share of the message before in a new one. Leaves it, with whole messages, when the thread's patience ends.
  bool run(double tolerance, double damping, std::uint64_t updates);

  // Natural logarithm of the sum, by Bethe's approximation; minus infinity: the messages show that nothing is possible.
  double log_sum();

  // Marginals of variables, one after another, each from the smallest cluster with the variable; uniform where there is none.
  Cells marginals(std::span<const std::int32_t> variables);

  // Messages of the first edges, each from the first end to the second, one after another.
  Cells messages(std::size_t edges) const;

  double residual() const { return residual_; }
  bool is_impossible() const { return impossible_; }

 private:
  struct Port {  // an edge as one of its clusters sees it
    std::size_t edge;
    int side;
    std::size_t neighbour;
    Runs runs;
  };
  struct Waiting {
    double priority;
    std::size_t cluster;
    bool operator<(const Waiting& other) const { return priority < other.priority; }
  };

  double join(std::size_t cluster);  // into belief_; returns the logarithm of the power that was divided out
  void update(std::size_t cluster, double damping);
  void await(std::size_t cluster, double residual);

  std::vector<std::int64_t> sizes_;
  ScopeList scopes_, separators_;
  std::vector<Cells> tables_;
  std::vector<std::vector<Port>> ports_;
  std::vector<std::array<Cells, 2>> messages_;  // of each edge, by the side that has sent it
  std::vector<double> priorities_;
  std::priority_queue<Waiting> queue_;
  std::vector<std::size_t> smallest_;  // cluster of each variable
  Cells belief_, sum_;
  std::size_t swept_ = 0;  // clusters of the first two sweeps that are done
  double residual_ = 1;
  bool impossible_ = false;
};

}  // namespace elimina::approx
