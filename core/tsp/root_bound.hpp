// A bound on all tours of a complete graph, and the edges that short tours may have.
#pragma once
#include <optional>

#include "ascent.hpp"
#include "one_tree.hpp"

namespace elimina::tsp {

// A bound by multipliers, which are improved on a graph with few edges for each city. The bound is that of a 1-tree of
// the complete graph; the edges of this tree are added to the small graph, so that the bounds of both graphs agree in
// the end.
class RootBound {
 public:
  // Needs at least three cities, and initial edges that connect all. Throws `std::invalid_argument` if the distances
  // are too large.
  RootBound(Distances distances, const std::vector<int>& from, const std::vector<int>& to);

  // Makes steps, and regularly a 1-tree of the complete graph; returns true if the bound improved, or edges were added.
  bool improve(Length upper, int steps);

  // The best bound, rounded up to a whole length; nullopt before the first 1-tree of the complete graph.
  std::optional<Length> bound() const;
  std::size_t edges() const { return graph_.edges(); }

  // Multipliers of the best bound, in parts (`scale()` to a unit of length).
  const std::vector<Length>& multipliers() const { return best_multipliers_; }
  Length scale() const { return scale_; }

  // Returns all edges that a tour of at most `upper` may have; nullopt if there are more than `max_edges`, or after a
  // stop request.
  std::optional<Graph> survivors(Length upper, std::size_t max_edges) const;

 private:
  struct Tree {
    std::vector<int> order, parent;  // cities without the special one, parents first; parent of each city
    std::vector<Length> above;       // length of the edge to the parent
    int first = -1, second = -1;     // the special city's neighbours
    Length value = 0;
  };

  void add(int i, int j);
  bool reaches(Length upper) const;
  Length changed(int i, int j, const std::vector<Length>& multipliers) const;
  Tree spanning_tree(int first, const std::vector<Length>& multipliers) const;
  std::optional<Tree> complete_tree(const std::vector<Length>& multipliers) const;
  std::optional<Length> adopt(const std::vector<double>& multipliers);
  void begin(Length upper);
  double unit(Length upper) const;
  void measure_paths(const Tree& tree, int from, std::vector<Length>& heaviest, std::vector<int>& seen) const;

  Distances distances_;
  Graph graph_;
  std::vector<std::vector<int>> joined_;
  Ascent ascent_;
  Length scale_ = 0, largest_ = 1;
  std::vector<double> multipliers_;
  std::vector<Length> best_multipliers_;
  Length best_;
};

}  // namespace elimina::tsp
