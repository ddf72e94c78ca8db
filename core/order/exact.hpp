// The order of least work of a small graph, by dynamic programming over sets of eliminated vertices.
#pragma once
#include "order/graph.hpp"

namespace elimina::order {

inline constexpr Vertex exact_size = 12;

// Exact order for graphs of at most `exact_size` vertices; `limit` as in `better`.
Order exact_order(const Graph& graph, double limit);

}  // namespace elimina::order
