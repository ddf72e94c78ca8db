// Propagation on a join graph: clusters of variables with tables, and edges over which they exchange marginals until these agree
// (Mateescu, Kask, Gogate and Dechter 2010, "Join-graph propagation algorithms"). On a tree it is exact; where a cluster holds one factor it
// is loopy belief propagation. The cluster whose arriving messages have changed most is next (Elidan, McGraw and Koller 2006, "Residual
// belief propagation").
#pragma once
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
  JoinGraph(std::vector<std::int64_t> sizes, ScopeList scopes, std::span<const std::int32_t> ends,
            const ScopeList& separators);

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
  struct Waiting {
    double priority;
    std::size_t cluster;
    bool operator<(const Waiting& other) const { return priority < other.priority; }
  };
  struct Port {                   // an edge as one of its clusters sees it
    std::int64_t sent, received;  // first cells of the messages from the cluster, and to it
    std::int64_t cells;
    std::uint32_t runs;
    std::size_t neighbour;
  };

  std::span<const Port> ports(std::size_t cluster) const {
    return {ports_.data() + port_starts_[cluster], ports_.data() + port_starts_[cluster + 1]};
  }
  std::int64_t cells(std::size_t cluster) const { return firsts_[cluster + 1] - firsts_[cluster]; }
  double join(std::size_t cluster);  // into belief_; returns the logarithm of the power that was divided out
  void update(std::size_t cluster, double damping);
  void await(std::size_t cluster, double residual);

  std::vector<std::int64_t> sizes_;
  ScopeList scopes_;
  std::vector<std::int64_t> firsts_{0};  // first cell of each cluster's table
  std::vector<std::int64_t> port_starts_;
  Cells tables_;
  std::vector<Port> ports_;  // of one cluster after another
  std::vector<Runs> runs_;   // of all ports that share them
  Cells messages_;           // of each edge both, that from its first end first
  std::vector<std::int64_t> edge_firsts_{0};
  std::vector<double> priorities_;
  std::priority_queue<Waiting> queue_;
  std::vector<std::size_t> smallest_;  // cluster of each variable
  Cells belief_, sum_;
  std::size_t swept_ = 0;  // clusters of the first two sweeps that are done
  double residual_ = 1;
  bool impossible_ = false;
};

}  // namespace elimina::approx
