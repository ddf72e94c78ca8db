// Minimum 1-trees (Held and Karp, Operations Research 18, 1970): a spanning tree of all cities but one, and two edges
// of the remaining city. No tour is shorter. If multipliers change the lengths, all tours change by the same constant.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "distances.hpp"

namespace elimina::tsp {

constexpr std::size_t kNone = ~std::size_t{0};

// Undirected edges between cities.
struct Graph {
  int cities = 0;
  std::vector<int> from, to;
  std::vector<Length> length;

  std::size_t edges() const { return from.size(); }
};

enum class Use : std::uint8_t { out, open, in };

// A minimum 1-tree and its bound. Lengths and multipliers are whole numbers of parts of a unit, so that bounds are
// exact. Nothing overflows if `scale_of(graph)` is at least 1.
class OneTree {
 public:
  // City outside of the spanning tree.
  static constexpr int kSpecial = 0;

  OneTree(const Graph& graph, Length scale);

  // Returns the number of parts into which a unit of length is divided, a power of two; 0 if the lengths are too large.
  static Length scale_of(const Graph& graph);

  Length scale() const { return scale_; }
  const Graph& graph() const { return graph_; }

  // Builds a minimum 1-tree of all required edges and otherwise open ones; returns false if there is none.
  bool build(const std::vector<Use>& use, const std::vector<Length>& multipliers);

  // Figures of the last tree: its bound in parts, the degrees of the cities, and whether an edge is in it.
  Length value() const { return value_; }
  const std::vector<int>& degrees() const { return degree_; }
  const std::vector<std::uint8_t>& has() const { return has_; }

  // Least rise of the last tree's bound for each edge: if an edge of the tree is excluded, or any other edge is
  // required. `kNever`: no tour remains.
  static constexpr Length kNever = Length{1} << 61;
  const std::vector<Length>& rises();

  // Improves multipliers by subgradient steps until the bound is above `upper` (parts), the tree is a tour, the bound
  // does not improve, or the steps are used up. Sets `multipliers` to the best ones, and makes their tree the last one.
  // Returns false if there is no 1-tree.
  bool ascend(const std::vector<Use>& use, Length upper, int steps, std::vector<Length>& multipliers);

 private:
  Length changed(std::size_t e) const;
  int root(int city) const;
  bool add_edge(std::size_t e);
  bool span(const std::vector<Use>& use);
  bool close(const std::vector<Use>& use);
  std::size_t heaviest_between(int a, int b) const;
  void find_entering();
  void find_leaving();
  void hang();
  void move(Length step_gap, double share, std::vector<Length>& multipliers);

  const Graph& graph_;
  Length scale_, bound_on_multipliers_;
  std::vector<std::size_t> inner_, special_;           // edges without and with the special city
  std::vector<std::pair<Length, std::size_t>> order_;  // open inner edges by changed length
  std::vector<Length> multipliers_;
  std::vector<Use> use_;
  Length value_ = 0;
  std::vector<int> degree_, before_;
  std::vector<std::uint8_t> has_;
  std::vector<std::size_t> tree_;  // inner edges, in the order of their choice
  // Union forest, the smaller tree below the larger: each city's parent and number of cities in its tree, and the edge
  // of the union with the parent, as a position in `tree_`.
  std::vector<int> above_, size_;
  std::vector<std::size_t> joined_;
  std::size_t second_ = 0;  // of the special city's edges that may be removed, the one of larger changed length
  bool may_replace_ = false;
  Length third_ = kNever;  // changed length of the special city's shortest edge outside of the tree
  std::vector<Length> rises_;
  // The rooted tree: each city's parent and level, a link towards the root that skips visited cities, and the edge
  // above.
  std::vector<int> parent_, level_, skip_;
  std::vector<std::size_t> edge_above_;
};

}  // namespace elimina::tsp
