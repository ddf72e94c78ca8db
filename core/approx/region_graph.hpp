// Region graphs of the cluster variation method (Kikuchi 1951; Yedidia, Freeman and Weiss 2005, "Constructing
// free-energy approximations and generalized belief propagation algorithms"): outer regions are sets of variables,
// inner regions their intersections.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "approx/scoped_tables.hpp"

namespace elimina::approx {

class RegionGraph {
 public:
  // Outer regions are the clusters that no other cluster contains. Inner regions have at most `largest` variables; with
  // 1, the regions are those of Bethe's approximation. Inner regions that change nothing are left out: their counting
  // number is 0, and the outer regions agree on them if they agree on the other inner regions. The graph stays
  // incomplete if regions and edges would have more than `max_members` variables in total, or when the thread is asked
  // to stop. The scopes of clusters must be sorted.
  RegionGraph(std::vector<std::int64_t> sizes, const ScopeList& clusters, std::size_t largest,
              std::int64_t max_members);

  bool is_complete() const { return is_complete_; }
  const std::vector<std::int64_t>& sizes() const { return sizes_; }
  const ScopeList& outer() const { return outer_; }
  const ScopeList& inner() const { return inner_; }
  // Outer regions that have an edge to each of the inner regions: all that contain it, unless its counting number is 0.
  // In that case, outer regions that already agree through larger inner regions are grouped, and only one region of
  // each group has an edge.
  const ScopeList& parents() const { return parents_; }
  // Counting number of each inner region's entropy. Those of outer regions are 1 and not stored.
  const std::vector<double>& counting_numbers() const { return counting_numbers_; }

  // Returns the number of the first outer region that contains the scope; -1 if none does.
  std::int64_t holder(std::span<const std::int32_t> scope) const;

  // Number of cells of the outer regions, and of all messages.
  double outer_cells() const;
  double message_cells() const;

  // Returns larger clusters: all outer regions; and the union of the outer regions that contain an inner region, if its
  // counting number is not 0 and the union has at most `max_cells` cells.
  ScopeList grow(double max_cells) const;

 private:
  void set_outer(const ScopeList& clusters);
  bool add_intersections(std::size_t largest);
  bool count_inner();
  std::vector<std::int32_t> containing(std::span<const std::int32_t> scope) const;

  std::vector<std::int64_t> sizes_;
  std::int64_t max_members_;
  bool is_complete_ = false;
  ScopeList outer_{{0}, {}}, inner_{{0}, {}}, parents_{{0}, {}};
  std::vector<double> counting_numbers_;
  std::vector<std::vector<std::int32_t>> outer_of_;       // outer regions of each variable
  std::vector<std::vector<std::int32_t>> intersections_;  // candidates for inner regions
};

// Returns at most `max_loops` chordless loops of three or four variables in the graph with an edge between any two
// variables of a scope. Loops inside a scope are left out.
ScopeList short_loops(std::size_t variables, const ScopeList& scopes, std::size_t max_loops);

}  // namespace elimina::approx
