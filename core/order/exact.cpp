#include "order/exact.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

namespace elimina::order {
namespace {

using Set = std::uint32_t;

class Exact {
 public:
  explicit Exact(const Graph& graph) : graph_(graph), adjacent_(graph.count(), 0) {
    for (Vertex v = 0; v < graph.count(); ++v)
      for (Vertex u : graph.neighbours[v]) adjacent_[v] |= Set{1} << u;
  }

  // Returns the number of cells of v's message if the vertices `gone` are eliminated before it: the product of the
  // sizes of all remaining vertices to which a path from v leads through `gone`.
  double message(Vertex v, Set gone) const {
    Set reached = adjacent_[v], open = reached & gone;
    while (open) {
      const auto u = std::countr_zero(open);
      const Set fresh = adjacent_[u] & ~reached;
      reached |= fresh;
      open = (open & (open - 1)) | (fresh & gone);
    }
    double cells = 1;
    for (Set rest = reached & ~gone & ~(Set{1} << v); rest; rest &= rest - 1)
      cells *= graph_.size[std::countr_zero(rest)];
    return cells;
  }

  // Returns the least cost of eliminating all vertices: the cost of a set follows from smaller sets by the vertex that
  // is eliminated last. `extend(cost, cells, vertex)`: cost after this vertex is eliminated, too, with a message of
  // `cells` cells.
  double solve(const std::function<double(double, double, Vertex)>& extend) {
    const Vertex count = graph_.count();
    cost_.assign(std::size_t{1} << count, std::numeric_limits<double>::infinity());
    last_.assign(cost_.size(), none);
    cost_[0] = 0;
    for (Set gone = 0; gone + 1 < cost_.size(); ++gone)
      for (Vertex v = 0; v < count; ++v) {
        if (gone >> v & 1) continue;
        const double cost = extend(cost_[gone], message(v, gone), v);
        const Set next = gone | Set{1} << v;
        if (cost < cost_[next]) cost_[next] = cost, last_[next] = v;
      }
    return cost_.back();
  }

  Order order() const {
    Order order;
    for (Set gone = static_cast<Set>(cost_.size() - 1); gone; gone ^= Set{1} << last_[gone])
      order.push_back(last_[gone]);
    std::reverse(order.begin(), order.end());
    return order;
  }

 private:
  const Graph& graph_;
  std::vector<Set> adjacent_;
  std::vector<double> cost_;
  std::vector<Vertex> last_;
};

}  // namespace

Order exact_order(const Graph& graph, double limit) {
  Exact exact(graph);
  const double least = exact.solve([](double cost, double cells, Vertex) { return std::max(cost, cells); });
  const double allowed = std::max(std::exp2(limit), least);
  exact.solve([&](double cost, double cells, Vertex v) {
    return cells <= allowed ? cost + cells * graph.size[v] : std::numeric_limits<double>::infinity();
  });
  return exact.order();
}

}  // namespace elimina::order
