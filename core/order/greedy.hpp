// Greedy elimination orders.
#pragma once
#include <optional>
#include <vector>

#include "order/graph.hpp"

namespace elimina::order {

// `sweep` walks through the graph from one end: only neighbours of eliminated vertices are candidates, the smallest
// bucket first.
enum class Rule { min_fill, weighted_min_fill, min_degree, min_weight, sweep };

// Runs one greedy elimination. Keys are multiplied by 2^(noise * g) with g Gumbel-distributed; ties are broken at
// random. Returns nullopt if the work passes 2^bound. When the clock expires, the remaining vertices follow by their
// current degree.
std::optional<Order> greedy(const Graph& graph, Rule rule, double noise, double bound, Random& random, Clock& clock);

// The order of a greedy elimination by fill-in that ends at a bucket of more than 2^log_cells cells. The remaining
// vertices follow breadth first, because even eliminating them symbolically would take too long. For a large graph, a
// part is tried first: if the part has such a bucket, the whole graph is not tried.
struct PartialOrder {
  Order order;
  Vertex widest = none;             // vertex of the large bucket; `none` if no bucket is that large
  std::vector<Vertex> separator{};  // neighbours of `widest` when the elimination ends
};
PartialOrder greedy_up_to(Graph graph, double log_cells, Random& random, Clock& clock);

}  // namespace elimina::order
