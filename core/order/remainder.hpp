// The graph that remains during an elimination.
#pragma once
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
  // Joins v's neighbours with each other and removes v; returns the neighbours. `fill()` has the new edges.
  std::vector<Vertex> eliminate(Vertex v) {
    find_fill(v);
    return join(v);
  }
  // The two halves of `eliminate`: `find_fill` lists the new edges in `fill()`, `join` adds them and removes v.
  void find_fill(Vertex v);
  std::vector<Vertex> join(Vertex v);
  const std::vector<std::pair<Vertex, Vertex>>& fill() const { return fill_; }
  // Counts the pairs of v's neighbours without an edge or, if `weighted`, adds up the products of their sizes.
  double missing(Vertex v, bool weighted) { return missing_around(v, adjacent_[v], weighted) / 2; }
  // Counts the pairs without an edge between one of `others`, which are neighbours of v, and any neighbour of v. Pairs
  // within `others` count twice.
  double missing_around(Vertex v, const std::vector<Vertex>& others, bool weighted);
  // Appends the common neighbours of two vertices.
  void common(Vertex a, Vertex b, std::vector<Vertex>& result) const;
  // Returns the neighbour of v without which v's other neighbours form a clique; v itself if all of them form a clique;
  // `none` if neither holds.
  Vertex odd_neighbour(Vertex v);
  // Returns the remaining graph, and the original numbers of its vertices.
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

}  // namespace elimina::order
