#include "order/graph.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace elimina::order {

Graph moral_graph(std::vector<double> sizes, const std::vector<std::int64_t>& offsets,
                  const std::vector<Vertex>& members) {
  Graph graph{std::move(sizes), {}};
  graph.neighbours.resize(graph.count());
  Looks looks;
  // Long lists lose their duplicates early, because wide scopes over the same variables would pile up.
  const std::size_t max_neighbours = 2 * static_cast<std::size_t>(graph.count()) + 64;
  std::vector<std::size_t> room(graph.count());
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i)
    for (std::int64_t at = offsets[i]; at < offsets[i + 1]; ++at)
      room[members[at]] += static_cast<std::size_t>(offsets[i + 1] - offsets[i]);
  for (Vertex v = 0; v < graph.count(); ++v) graph.neighbours[v].reserve(std::min(room[v], max_neighbours));
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    looks.look();
    const auto first = members.begin() + offsets[i], last = members.begin() + offsets[i + 1];
    for (auto a = first; a != last; ++a) {
      auto& list = graph.neighbours[*a];
      list.insert(list.end(), first, last);
      if (list.size() > max_neighbours) {
        std::sort(list.begin(), list.end());
        list.erase(std::unique(list.begin(), list.end()), list.end());
      }
    }
  }
  for (Vertex v = 0; v < graph.count(); ++v) {
    looks.look();
    auto& list = graph.neighbours[v];
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    list.erase(std::remove(list.begin(), list.end(), v), list.end());
  }
  return graph;
}

Graph induced(const Graph& graph, const std::vector<Vertex>& keep) {
  std::vector<Vertex> local(graph.count(), none);
  for (Vertex i = 0; i < keep.size(); ++i) local[keep[i]] = i;
  Graph result;
  result.size.reserve(keep.size());
  result.neighbours.reserve(keep.size());
  for (Vertex v : keep) {
    result.size.push_back(graph.size[v]);
    auto& list = result.neighbours.emplace_back();
    list.reserve(graph.neighbours[v].size());
    for (Vertex u : graph.neighbours[v])
      if (local[u] != none) list.push_back(local[u]);
    std::sort(list.begin(), list.end());
  }
  return result;
}

std::vector<std::vector<Vertex>> components(const Graph& graph) {
  std::vector<std::vector<Vertex>> result;
  std::vector<char> seen(graph.count(), 0);
  for (Vertex root = 0; root < graph.count(); ++root) {
    if (seen[root]) continue;
    std::vector<Vertex> component{root};
    seen[root] = 1;
    for (std::size_t i = 0; i < component.size(); ++i)
      for (Vertex u : graph.neighbours[component[i]])
        if (!seen[u]) {
          seen[u] = 1;
          component.push_back(u);
        }
    std::sort(component.begin(), component.end());
    result.push_back(std::move(component));
  }
  return result;
}

std::vector<Vertex> without_barren(const std::vector<std::int64_t>& offsets, const std::vector<Vertex>& members,
                                   const std::vector<Vertex>& children, const std::vector<char>& wanted) {
  const auto count = static_cast<Vertex>(children.size());
  std::vector<Vertex> scope_of(wanted.size(), none), uses(wanted.size()), waiting, kept;
  std::vector<char> is_kept(count, 1);
  for (Vertex f = 0; f < count; ++f) scope_of[children[f]] = f;
  for (const Vertex v : members) ++uses[v];
  const auto is_barren = [&](Vertex v) {
    return uses[v] == 1 && !wanted[v] && scope_of[v] != none && is_kept[scope_of[v]];
  };
  for (const Vertex v : children)
    if (is_barren(v)) waiting.push_back(v);
  while (!waiting.empty()) {
    const Vertex f = scope_of[waiting.back()];
    waiting.pop_back();
    is_kept[f] = 0;
    for (std::int64_t i = offsets[f]; i < offsets[f + 1]; ++i) {
      --uses[members[i]];
      if (is_barren(members[i])) waiting.push_back(members[i]);
    }
  }
  for (Vertex f = 0; f < count; ++f)
    if (is_kept[f]) kept.push_back(f);
  return kept;
}

EliminationTree eliminate(const Graph& graph, const Order& order) {
  const Vertex n = graph.count();
  EliminationTree tree;
  tree.position.resize(n);
  tree.parent.assign(n, none);
  tree.starts.reserve(std::size_t{n} + 1);
  std::vector<Vertex>& position = tree.position;
  for (Vertex i = 0; i < n; ++i) position[order[i]] = i;
  // The children of each vertex form a list: its first and last child, and each child's successor.
  std::vector<Vertex> mark(n, none), first(n, none), last(n), next(n, none);
  for (Vertex v : order) {
    const std::size_t begin = tree.members.size();
    mark[v] = v;
    const auto add = [&](Vertex u) {
      if (mark[u] == v) return;
      mark[u] = v;
      tree.members.push_back(u);
    };
    for (Vertex u : graph.neighbours[v])
      if (position[u] > position[v]) add(u);
    for (Vertex child = first[v]; child != none; child = next[child])
      for (std::size_t i = tree.starts[position[child]]; i < tree.starts[position[child] + 1]; ++i)
        add(tree.members[i]);
    tree.starts.push_back(tree.members.size());
    Vertex& parent = tree.parent[v];
    for (std::size_t i = begin; i < tree.members.size(); ++i)
      if (const Vertex u = tree.members[i]; parent == none || position[u] < position[parent]) parent = u;
    if (parent == none) continue;
    (first[parent] == none ? first[parent] : next[last[parent]]) = v;
    last[parent] = v;
  }
  return tree;
}

Order in_postorder(const EliminationTree& tree) {
  const auto n = static_cast<Vertex>(tree.parent.size());
  std::vector<Vertex> first(n, none), next(n, none), path;
  Vertex root = none;  // root with the highest number; `next` leads to lower ones
  for (Vertex v = 0; v < n; ++v) {
    Vertex& head = tree.parent[v] == none ? root : first[tree.parent[v]];
    next[v] = head;
    head = v;
  }
  // The order is written from its end: the last root, then the subtree of its last child.
  Order order(n);
  Vertex position = n;
  if (root != none) path.push_back(root);
  while (!path.empty()) {
    const Vertex v = path.back();
    path.pop_back();
    order[--position] = v;
    if (next[v] != none) path.push_back(next[v]);
    if (first[v] != none) path.push_back(first[v]);
  }
  return order;
}

double log2_sum(double a, double b) {
  if (a < b) std::swap(a, b);
  return std::isinf(b) ? a : a + std::log2(1 + std::exp2(b - a));
}

Cost cost_of(const Graph& graph, const EliminationTree& tree) {
  Cost cost;
  std::vector<double> cells(graph.count());
  double largest_log = 0;
  for (Vertex v = 0; v < graph.count(); ++v) {
    double log = 0;
    for (Vertex u : tree.separator(v)) log += std::log2(graph.size[u]);
    cost.largest = std::max(cost.largest, log);
    cells[v] = log + std::log2(graph.size[v]);
    largest_log = std::max(largest_log, cells[v]);
  }
  double sum = 0;
  for (double log : cells) sum += std::exp2(log - largest_log);
  if (sum > 0) cost.total = largest_log + std::log2(sum);
  return cost;
}

Cost cost_of(const Graph& graph, const Order& order) { return cost_of(graph, eliminate(graph, order)); }

}  // namespace elimina::order
