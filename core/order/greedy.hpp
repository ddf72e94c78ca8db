// Greedy elimination orders and the reductions that come before any search.
#pragma once
#include <optional>
#include <utility>

#include "order/graph.hpp"

namespace elimina::order {

// A graph during elimination.
class Remainder {
 public:
  explicit Remainder(Graph graph);
  bool gone(Vertex v) const { return gone_[v]; }
  Vertex count() const { return static_cast<Vertex>(size_.size()); }
  Vertex remaining() const { return remaining_; }
  const std::vector<Vertex>& neighbours(Vertex v) const { return adjacent_[v]; }
  double size(Vertex v) const { return size_[v]; }
  double log_size(Vertex v) const { return log_size_[v]; }
  double log_bucket(Vertex v) const;
  // Joins v's neighbours and removes v; returns the neighbours. `fill()` has the new edges.
  std::vector<Vertex> eliminate(Vertex v) {
    find_fill(v);
    return join(v);
  }
  // The two halves of `eliminate`: `find_fill` lists the new edges in `fill()`, `join` adds them and removes v.
  void find_fill(Vertex v);
  std::vector<Vertex> join(Vertex v);
  const std::vector<std::pair<Vertex, Vertex>>& fill() const { return fill_; }
  // Pairs of v's neighbours without an edge: the number of these pairs or, if `weighted`, the sum of the products of
  // their sizes.
  double missing(Vertex v, bool weighted) { return missing_around(v, adjacent_[v], weighted) / 2; }
  // Pairs without an edge between one of v's neighbours `some` and any neighbour of v; pairs within `some` count twice.
  double missing_around(Vertex v, const std::vector<Vertex>& some, bool weighted);
  // Appends the common neighbours of two vertices.
  void common(Vertex a, Vertex b, std::vector<Vertex>& result) const;
  // The neighbour without which the others form a clique; v itself if all of v's neighbours form one; `none` if there
  // is neither.
  Vertex odd_neighbour(Vertex v);
  // Remaining graph, and the original numbers of its vertices.
  std::pair<Graph, std::vector<Vertex>> graph() &&;
  // Adds to a clock the approximate time of the work since the last call.
  void count_visits(Clock& clock) { clock.count(visit_seconds * static_cast<double>(std::exchange(visits_, 0))); }
  void visit(std::uint64_t entries) const { visits_ += entries; }

 private:
  // Seconds for an entry of a list or a word of bits, on the machine VM of bench/RESULTS.md.
  static constexpr double visit_seconds = 2.2e-9;
  std::vector<double> size_, log_size_;
  std::vector<std::vector<Vertex>> adjacent_;
  std::vector<char> gone_;
  Vertex remaining_;
  std::vector<std::pair<Vertex, Vertex>> fill_;
  std::vector<std::uint64_t> mark_;
  std::uint64_t stamp_ = 0;
  std::vector<Vertex> scratch_;
  std::size_t words_ = 0;  // words of each vertex's bit set of neighbours; 0 for large graphs, which have no bit sets
  std::vector<std::uint64_t> bits_;
  mutable std::uint64_t visits_ = 0;
  std::uint64_t* bits(Vertex v) { return bits_.data() + words_ * v; }
  const std::uint64_t* bits(Vertex v) const { return bits_.data() + words_ * v; }
};

// `sweep` walks through the graph from one end: only neighbours of eliminated vertices are candidates, the smallest
// bucket first.
enum class Rule { min_fill, weighted_min_fill, min_degree, min_weight, sweep };

// Runs one greedy elimination. Keys are multiplied by 2^(noise * g) with g Gumbel-distributed; ties are broken at
// random. Returns nullopt if the work passes 2^bound. When the clock expires, the remaining vertices follow by their
// current degree.
std::optional<Order> greedy(const Graph& graph, Rule rule, double noise, double bound, Random& random, Clock& clock);

// A greedy elimination by fill-in that ends at a bucket of more than 2^log_cells cells, in the graph or, if it is
// large, in a part of it. The remaining vertices follow in the sequence of a sweep, because even a symbolic elimination
// of them would take too long.
struct PartialOrder {
  Order order;
  Vertex widest = none;             // vertex of this bucket; `none` if no bucket is that large
  std::vector<Vertex> separator{};  // neighbours of `widest` at that time
};
PartialOrder greedy_up_to(Graph graph, double log_cells, Random& random, Clock& clock);

// Eliminates variables that need no search; returns them in order. The remainder holds the other variables.
Order reduce(Remainder& rest, Clock& clock);

}  // namespace elimina::order
