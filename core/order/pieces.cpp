// Local search piece by piece. The order inside a connected piece of the elimination tree does not change the result of
// eliminating the piece, so all other buckets keep their costs, and pieces can be improved independently.
#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "order/anneal.hpp"

namespace elimina::order {
namespace {

class Pieces {
 public:
  Pieces(const Graph& graph, const Order& order, Vertex piece)
      : graph_(graph), tree_(eliminate(graph, order)), children_(graph.count()), local_(graph.count(), none) {
    std::vector<Vertex> roots;
    for (Vertex v : order) (tree_.parent[v] == none ? roots : children_[tree_.parent[v]]).push_back(v);
    while (!roots.empty()) {
      const Vertex root = roots.back();
      roots.pop_back();
      std::vector<Vertex> inner{root};
      for (std::size_t i = 0; i < inner.size(); ++i)
        for (Vertex child : children_[inner[i]]) (inner.size() < piece ? inner : roots).push_back(child);
      std::sort(inner.begin(), inner.end(), [&](Vertex a, Vertex b) { return tree_.position[a] < tree_.position[b]; });
      pieces_.emplace_back(root, std::move(inner));
    }
  }

  Order anneal(const Schedule& schedule, double limit, Random& random, Clock& clock) {
    Order result;
    for (auto piece = pieces_.rbegin(); piece != pieces_.rend(); ++piece) {
      const auto& [root, inner] = *piece;
      if (inner.size() == 1 || inner.size() + tree_.separator(root).size() > largest_patch || clock.expired()) {
        result.insert(result.end(), inner.begin(), inner.end());
        continue;
      }
      auto annealer = make_annealer(patch_of(root, inner), limit);
      annealer->anneal(schedule, random, clock);
      for (Vertex v : annealer->best()) result.push_back(inner[v]);
    }
    return result;
  }

 private:
  Patch patch_of(Vertex root, const std::vector<Vertex>& inner) {
    std::vector<Vertex> names = inner;
    const auto separator = tree_.separator(root);
    names.insert(names.end(), separator.begin(), separator.end());
    for (Vertex i = 0; i < names.size(); ++i) local_[names[i]] = i;
    Patch patch{{}, static_cast<Vertex>(inner.size()), {}};
    for (Vertex v : names) patch.graph.size.push_back(graph_.size[v]);
    patch.graph.neighbours.resize(names.size());
    for (Vertex i = 0; i < patch.inner; ++i) {
      patch.order.push_back(i);
      join(patch, i, graph_.neighbours[names[i]]);
      // A subtree below the piece sends a message, whose variables become neighbours.
      for (Vertex child : children_[names[i]])
        if (local_[child] == none)
          for (Vertex u : tree_.separator(child))
            if (local_[u] < patch.inner) join(patch, local_[u], tree_.separator(child));
    }
    for (Vertex v : names) local_[v] = none;
    return patch;
  }

  void join(Patch& patch, Vertex i, std::span<const Vertex> others) const {
    for (Vertex u : others)
      if (local_[u] != none && local_[u] != i) patch.graph.neighbours[i].push_back(local_[u]);
  }

  const Graph& graph_;
  EliminationTree tree_;
  std::vector<std::vector<Vertex>> children_;
  std::vector<Vertex> local_;
  std::vector<std::pair<Vertex, std::vector<Vertex>>> pieces_;
};

}  // namespace

Order anneal_pieces(const Graph& graph, const Order& order, Vertex piece, const Schedule& schedule, double limit,
                    Random& random, Clock& clock) {
  return Pieces(graph, order, piece).anneal(schedule, limit, random, clock);
}

}  // namespace elimina::order
