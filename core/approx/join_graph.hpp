// Propagation on a join graph: clusters of variables with tables, and edges over which they exchange marginals until
// these agree (Mateescu, Kask, Gogate and Dechter 2010, "Join-graph propagation algorithms"). It is exact on a tree,
// and equals loopy belief propagation if each cluster holds one factor. The cluster with the largest change of incoming
// messages is updated next (Elidan, McGraw and Koller 2006, "Residual belief propagation").
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

  // `scopes`: variables of each cluster, slow to fast; `ends`: the two clusters of each edge; `separators`: the
  // variables of each edge's messages.
  JoinGraph(std::vector<std::int64_t> sizes, ScopeList scopes, std::span<const std::int32_t> ends,
            const ScopeList& separators);

  // Multiplies factors into the tables of clusters. `clusters`: the cluster of each factor, which contains the factor's
  // variables (`scopes`); `values`: values of all factors, at least 0. Returns false if a factor does not fit its
  // cluster, or if the number of values is wrong.
  bool multiply(std::span<const std::int64_t> clusters, const ScopeList& scopes, std::span<const double> values);

  // Updates clusters until no message changes by more than `tolerance`, or `updates` times; returns true if all
  // messages have converged. `damping`: share of the old message in a new one. Ends early, with complete messages, when
  // the thread is asked to stop.
  bool run(double tolerance, double damping, std::uint64_t updates);

  // Returns Bethe's approximation of the natural logarithm of the sum; minus infinity if the messages show that the sum
  // is 0.
  double log_sum();

  // Returns the marginals of variables, one after another, each from the smallest cluster with the variable; uniform if
  // no cluster has it.
  Cells marginals(std::span<const std::int32_t> variables);

  // Returns the messages of the first `edges` edges, each from its first end to its second, one after another.
  Cells messages(std::size_t edges) const;

  double residual() const { return residual_; }
  bool is_impossible() const { return impossible_; }

 private:
  struct Waiting {
    double priority;
    std::size_t cluster;
    bool operator<(const Waiting& other) const { return priority < other.priority; }
  };
  struct Port {                   // an edge, from the side of one of its clusters
    std::int64_t sent, received;  // offsets of the outgoing and the incoming message
    std::int64_t cells;
    std::uint32_t runs;
    std::size_t neighbour;
  };

  std::span<const Port> ports(std::size_t cluster) const {
    return {ports_.data() + port_starts_[cluster], ports_.data() + port_starts_[cluster + 1]};
  }
  std::int64_t cells(std::size_t cluster) const { return firsts_[cluster + 1] - firsts_[cluster]; }
  // Sets `belief_` to the product of the cluster's table and of the messages that the cluster receives, divided by a
  // scale; returns the logarithm of the scale.
  double join(std::size_t cluster);
  void update(std::size_t cluster, double damping);
  void await(std::size_t cluster, double residual);

  std::vector<std::int64_t> sizes_;
  ScopeList scopes_;
  std::vector<std::int64_t> firsts_{0};  // first cell of each cluster's table
  std::vector<std::int64_t> port_starts_;
  Cells tables_;
  std::vector<Port> ports_;  // ports of each cluster, one cluster after another
  std::vector<Runs> runs_;   // runs shared by ports of equal layout
  Cells messages_;           // both messages of each edge, beginning with that from its first end
  std::vector<std::int64_t> edge_firsts_{0};
  std::vector<double> priorities_;
  std::priority_queue<Waiting> queue_;
  std::vector<std::size_t> smallest_;  // for each variable, the smallest cluster that contains it
  Cells belief_, sum_;
  std::size_t swept_ = 0;  // number of finished updates in the first two sweeps, one forward and one backward
  double residual_ = 1;
  bool impossible_ = false;
};

}  // namespace elimina::approx
