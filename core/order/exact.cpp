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

  // Returns the number of cells of v's message if the vertices `eliminated` are eliminated before v: the product of the
  // sizes of all remaining vertices to which a path from v leads through `eliminated`.
  double message(Vertex v, Set eliminated) const {
    Set reached = adjacent_[v], open = reached & eliminated;
    while (open) {
      const auto u = std::countr_zero(open);
      const Set fresh = adjacent_[u] & ~reached;
      reached |= fresh;
      open = (open & (open - 1)) | (fresh & eliminated);
    }
    double cells = 1;
    for (Set rest = reached & ~eliminated & ~(Set{1} << v); rest; rest &= rest - 1)
      cells *= graph_.size[std::countr_zero(rest)];
    return cells;
  }

  // Returns the least cost of eliminating all vertices. The least cost of a set follows from those of the sets with one
  // vertex less: this vertex is then eliminated last. `extend(cost, cells, vertex)`: cost after `vertex` is eliminated,
  // too, with a message of `cells` cells.
  double solve(const std::function<double(double, double, Vertex)>& extend) {
    const Vertex count = graph_.count();
    cost_.assign(std::size_t{1} << count, std::numeric_limits<double>::infinity());
    last_.assign(cost_.size(), none);
    cost_[0] = 0;
    for (Set eliminated = 0; eliminated + 1 < cost_.size(); ++eliminated)
      for (Vertex v = 0; v < count; ++v) {
        if (eliminated >> v & 1) continue;
        const double cost = extend(cost_[eliminated], message(v, eliminated), v);
        const Set next = eliminated | Set{1} << v;
        if (cost < cost_[next]) cost_[next] = cost, last_[next] = v;
      }
    return cost_.back();
  }

  Order order() const {
    Order order;
    for (Set eliminated = static_cast<Set>(cost_.size() - 1); eliminated; eliminated ^= Set{1} << last_[eliminated])
      order.push_back(last_[eliminated]);
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
