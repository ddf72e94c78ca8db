#include "order/remainder.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

#include "versions.hpp"

namespace elimina::order {
namespace {

// Counts the bits of one set that are not in another.
ELIMINA_VERSIONS std::uint64_t bits_outside(const std::uint64_t* first, const std::uint64_t* other, std::size_t words) {
  std::uint64_t count = 0;
  for (std::size_t w = 0; w < words; ++w) count += static_cast<std::uint64_t>(std::popcount(first[w] & ~other[w]));
  return count;
}

}  // namespace

Remainder::Remainder(Graph graph)
    : size_(std::move(graph.size)), log_size_(size_.size()), adjacent_(std::move(graph.neighbours)),
      gone_(size_.size(), 0), remaining_(count()), mark_(size_.size(), 0) {
  for (Vertex v = 0; v < count(); ++v) log_size_[v] = std::log2(size_[v]);
  constexpr Vertex max_vertices = 4096;  // 2 MiB of bits
  if (count() > max_vertices) return;
  words_ = (count() + 63) / 64;
  bits_.resize(words_ * count());
  for (Vertex v = 0; v < count(); ++v)
    for (Vertex u : adjacent_[v]) bits(v)[u / 64] |= std::uint64_t{1} << (u % 64);
}

double Remainder::log_bucket(Vertex v) const {
  double log = log_size_[v];
  for (Vertex u : adjacent_[v]) log += log_size_[u];
  return log;
}

void Remainder::find_fill(Vertex v) {
  fill_.clear();
  const auto& clique = adjacent_[v];
  for (Vertex a : clique) {
    ++stamp_;
    for (Vertex u : adjacent_[a]) mark_[u] = stamp_;
    visit(adjacent_[a].size() + clique.size());
    for (Vertex b : clique)
      if (b > a && mark_[b] != stamp_) fill_.emplace_back(a, b);
  }
}

std::vector<Vertex> Remainder::join(Vertex v) {
  std::vector<Vertex> clique = std::move(adjacent_[v]);
  ++stamp_;
  for (const auto& [a, b] : fill_) mark_[a] = mark_[b] = stamp_;
  for (Vertex a : clique) {
    if (mark_[a] != stamp_) continue;
    scratch_.clear();
    std::set_union(adjacent_[a].begin(), adjacent_[a].end(), clique.begin(), clique.end(),
                   std::back_inserter(scratch_));
    adjacent_[a] = scratch_;
    adjacent_[a].erase(std::lower_bound(adjacent_[a].begin(), adjacent_[a].end(), a));
  }
  for (Vertex a : clique) adjacent_[a].erase(std::lower_bound(adjacent_[a].begin(), adjacent_[a].end(), v));
  if (words_) {
    for (Vertex a : clique) bits(a)[v / 64] &= ~(std::uint64_t{1} << (v % 64));
    for (const auto& [a, b] : fill_) {
      bits(a)[b / 64] |= std::uint64_t{1} << (b % 64);
      bits(b)[a / 64] |= std::uint64_t{1} << (a % 64);
    }
  }
  adjacent_[v].clear();
  gone_[v] = 1;
  --remaining_;
  return clique;
}

void Remainder::common(Vertex a, Vertex b, std::vector<Vertex>& result) const {
  const auto &x = adjacent_[a], &y = adjacent_[b];
  visit(words_ ? std::min(words_, x.size() + y.size()) : x.size() + y.size());
  if (words_ && words_ < x.size() + y.size()) {
    for (std::size_t w = 0; w < words_; ++w)
      for (std::uint64_t word = bits(a)[w] & bits(b)[w]; word; word &= word - 1)
        result.push_back(static_cast<Vertex>(w * 64) + std::countr_zero(word));
    return;
  }
  std::set_intersection(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(result));
}

double Remainder::missing_around(Vertex v, const std::vector<Vertex>& others, bool weighted) {
  if (!weighted && words_ && words_ < adjacent_[v].size()) {
    std::uint64_t absent = 0;
    visit(words_ * others.size());
    for (Vertex u : others) absent += bits_outside(bits(v), bits(u), words_);
    return static_cast<double>(absent - others.size());  // each vertex of `others` has counted itself
  }
  ++stamp_;
  double all = 0, absent = 0;
  visit(adjacent_[v].size());
  for (Vertex u : adjacent_[v]) {
    mark_[u] = stamp_;
    all += weighted ? size_[u] : 1;
  }
  for (Vertex u : others) {
    visit(adjacent_[u].size());
    double present = weighted ? size_[u] : 1;
    for (Vertex w : adjacent_[u])
      if (mark_[w] == stamp_) present += weighted ? size_[w] : 1;
    absent += (all - present) * (weighted ? size_[u] : 1);
  }
  return absent;
}

Vertex Remainder::odd_neighbour(Vertex v) {
  const auto& around = adjacent_[v];
  ++stamp_;
  for (Vertex u : around) mark_[u] = stamp_;
  // The missing pairs must form a star: k + 1 vertices with a sum of degrees of 2k, including the centre's k.
  std::size_t defective = 0, sum = 0, max_absent = 0;
  Vertex odd = v;
  for (Vertex u : around) {
    visit(adjacent_[u].size());
    std::size_t absent = around.size() - 1;
    for (Vertex w : adjacent_[u]) absent -= mark_[w] == stamp_;
    if (absent == 0) continue;
    if (absent > 1 && max_absent > 1) return none;  // a star has one centre
    ++defective;
    sum += absent;
    if (absent > max_absent || (absent == max_absent && size_[u] < size_[odd])) {
      max_absent = absent;
      odd = u;
    }
  }
  return defective == 0 || (defective == max_absent + 1 && sum == 2 * max_absent) ? odd : none;
}

std::pair<Graph, std::vector<Vertex>> Remainder::graph() && {
  std::pair<Graph, std::vector<Vertex>> result;
  auto& [graph, names] = result;
  std::vector<Vertex> local(count(), none);
  for (Vertex v = 0; v < count(); ++v)
    if (!gone(v)) {
      local[v] = static_cast<Vertex>(names.size());
      names.push_back(v);
    }
  graph.size.reserve(names.size());
  graph.neighbours.reserve(names.size());
  for (Vertex v : names) {
    graph.size.push_back(size(v));
    auto& list = graph.neighbours.emplace_back(std::move(adjacent_[v]));
    for (Vertex& u : list) u = local[u];
  }
  return result;
}

}  // namespace elimina::order
