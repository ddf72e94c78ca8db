// The order of least work of a small graph, by dynamic programming over sets of eliminated vertices.
#pragma once
#include "order/graph.hpp"

namespace elimina::order {

inline constexpr Vertex exact_size = 12;

// Returns the order of least work of a graph with at most `exact_size` vertices, among the orders whose largest table
// has at most 2^limit cells. If there is none, it is the order of least work among those whose largest table is
// smallest.
Order exact_order(const Graph& graph, double limit);

}  // namespace elimina::order
