// Graphs of variables, their symbolic elimination, and the cost of an order.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "stop.hpp"

namespace elimina::order {

using Vertex = std::uint32_t;
using Order = std::vector<Vertex>;
inline constexpr Vertex none = std::numeric_limits<Vertex>::max();

// Number of vertices from which a graph does not fit in caches. In orders of such graphs, vertices of equal keys come
// in blocks of consecutive numbers.
inline constexpr Vertex many_vertices = 1 << 16;

// Two variables are neighbours if they share a scope; lists are sorted and contain no loops.
struct Graph {
  std::vector<double> size;
  std::vector<std::vector<Vertex>> neighbours;
  Vertex count() const { return static_cast<Vertex>(size.size()); }
};

// Returns the graph in which two variables are neighbours if they share a scope. Scopes come in compressed rows: scope
// i is members[offsets[i] .. offsets[i + 1]).
Graph moral_graph(std::vector<double> sizes, const std::vector<std::int64_t>& offsets,
                  const std::vector<Vertex>& members);

// Returns the subgraph of the vertices `keep`; vertex i of the result is keep[i].
Graph induced(const Graph& graph, const std::vector<Vertex>& keep);

std::vector<std::vector<Vertex>> components(const Graph& graph);

// Removes scopes one by one, as long as there is one whose own variable (`children`) is in no other remaining scope and
// is not wanted. Returns the numbers of the remaining scopes, ascending. `wanted`: a mark for each variable.
std::vector<Vertex> without_barren(const std::vector<std::int64_t>& offsets, const std::vector<Vertex>& members,
                                   const std::vector<Vertex>& children, const std::vector<char>& wanted);

// Separators (in no particular order) and parents of all vertices if the graph is eliminated along an order.
struct EliminationTree {
  std::vector<Vertex> position, parent;
  std::vector<std::size_t> starts{0};  // starts of the separators, in elimination order
  std::vector<Vertex> members;

  std::span<const Vertex> separator(Vertex v) const {
    return {members.data() + starts[position[v]], members.data() + starts[position[v] + 1]};
  }
};
EliminationTree eliminate(const Graph& graph, const Order& order);

// Returns another order of the same tree: each subtree is finished before the next one begins, and siblings come by
// ascending number. A walk through the variables in this order mostly hits the cache.
Order in_postorder(const EliminationTree& tree);

// log2 of the cells of all buckets and of the largest message: the numbers themselves would overflow.
struct Cost {
  double total = -std::numeric_limits<double>::infinity();
  double largest = 0;
};
Cost cost_of(const Graph& graph, const EliminationTree& tree);
Cost cost_of(const Graph& graph, const Order& order);

// Returns log2(2^a + 2^b).
double log2_sum(double a, double b);

// True if `a` is better: its largest table is smaller (tables within the limit count as equal) or, if these are equal,
// its work is less.
inline bool better(const Cost& a, const Cost& b, double limit) {
  const double excess_a = a.largest > limit ? a.largest : limit, excess_b = b.largest > limit ? b.largest : limit;
  return excess_a != excess_b ? excess_a < excess_b : a.total < b.total;
}

// Multiple of the time limit at which a clock stops a search before its counted work ends; only busy or slow machines
// reach it.
inline constexpr double slowest = 10;

// Stop condition of a search. Time is counted as work of one thread, so that a search ends at the same place in every
// run.
class Clock {
 public:
  using Time = std::chrono::steady_clock;
  explicit Clock(double seconds, double slowdown = slowest)
      : start_(Time::now()), seconds_(seconds), longest_(slowdown * seconds) {}
  // A share of another clock's time, for one thread.
  Clock(const Clock& whole, double seconds) : whole_(&whole), seconds_(seconds), longest_(whole.longest_) {}
  void count(double seconds) { counted_ += seconds; }
  double counted() const { return counted_; }
  double seconds() const { return seconds_; }
  double remaining() const { return seconds_ - counted_; }
  bool expired() const { return remaining() <= 0 || is_stopped(); }
  void stop() { stop_.store(true, std::memory_order_relaxed); }
  bool is_asked() const { return stop_.load(std::memory_order_relaxed) || stopped() || (whole_ && whole_->is_asked()); }
  // Throws `Stopped` on a stop request. An incomplete order is of no use: its tables may be too large to be counted.
  void check() const {
    if (is_asked()) throw Stopped{};
  }

 private:
  bool is_stopped() const {
    if (is_asked()) return true;
    if (whole_) return whole_->is_stopped();
    // A clock without a limit is not read: reading it takes longer than an order of a small graph.
    return longest_ < std::numeric_limits<double>::infinity() &&
           std::chrono::duration<double>(Time::now() - start_).count() > longest_;
  }

  const Clock* whole_ = nullptr;
  Time::time_point start_;
  double seconds_, longest_, counted_ = 0;
  std::atomic<bool> stop_{false};
};

// xoshiro256** (Blackman and Vigna, 2018), seeded by splitmix64; a seed has any number of independent streams.
class Random {
 public:
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0) {
    std::uint64_t counter = scramble(seed) ^ stream;
    for (auto& word : state_) word = scramble(counter += 0x9e3779b97f4a7c15ULL);
  }
  std::uint64_t next() {
    const std::uint64_t result = rotate(state_[1] * 5, 7) * 9, t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotate(state_[3], 45);
    return result;
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  Vertex below(Vertex bound) { return static_cast<Vertex>(((next() >> 32) * bound) >> 32); }

 private:
  static std::uint64_t scramble(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  static std::uint64_t rotate(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  std::uint64_t state_[4];
};

}  // namespace elimina::order
