// Reductions by Bodlaender, Koster and van den Eijkhof (2005), with domain sizes as weights.
#include "order/reduce.hpp"

#include <algorithm>
#include <deque>
#include <queue>
#include <utility>

namespace elimina::order {
namespace {

// Returns a lower bound on log2 of the cells of any order's largest bucket: the weighted degeneracy, found by removing
// the vertex with the smallest bucket again and again.
double largest_bucket_bound(const Remainder& rest, Vertex count) {
  using Entry = std::pair<double, Vertex>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap;
  std::vector<double> log(count, -1);
  for (Vertex v = 0; v < count; ++v)
    if (!rest.gone(v)) heap.emplace(log[v] = rest.log_bucket(v), v);
  double bound = 0;
  std::vector<char> removed(count, 0);
  while (!heap.empty()) {
    const auto [key, v] = heap.top();
    heap.pop();
    if (removed[v] || key != log[v]) continue;
    removed[v] = 1;
    bound = std::max(bound, key);
    for (Vertex u : rest.neighbours(v))
      if (!removed[u]) heap.emplace(log[u] -= rest.log_size(v), u);
  }
  return bound;
}

class Reducer {
 public:
  Reducer(Remainder& rest, Clock& clock)
      : rest_(rest), clock_(clock), count_(rest.remaining()), queued_(count_, 0), odd_(count_, none) {}

  Order run() {
    for (Vertex v = 0; v < count_; ++v) enqueue(v);
    drain_simplicial();
    if (rest_.remaining() == 0) return std::move(order_);
    const double bound = largest_bucket_bound(rest_, count_);
    for (bool changed = true; changed && !is_over();) {
      changed = false;
      for (Vertex v = 0; v < count_ && !is_over(); ++v) {
        const Vertex odd = odd_[v];
        if (rest_.gone(v) || odd == none || rest_.size(odd) > rest_.size(v) || rest_.log_bucket(v) > bound) continue;
        remove(v);
        drain_simplicial();
        changed = true;
      }
    }
    return std::move(order_);
  }

 private:
  bool is_over() {
    // Reading the clock takes as long as a visit to a small vertex, so most calls do not read it.
    if (is_over_ || ++looks_ % between_looks) return is_over_;
    rest_.count_visits(clock_);
    return is_over_ = clock_.expired();
  }

  void enqueue(Vertex v) {
    if (queued_[v] || rest_.gone(v)) return;
    queued_[v] = 1;
    queue_.push_back(v);
  }

  void drain_simplicial() {
    while (!queue_.empty() && !is_over()) {
      const Vertex v = queue_.front();
      queue_.pop_front();
      queued_[v] = 0;
      if (rest_.gone(v)) continue;
      odd_[v] = rest_.neighbours(v).size() < 2 ? v : rest_.odd_neighbour(v);
      if (odd_[v] == v) remove(largest_twin(v));
    }
  }

  // Returns the vertex with the largest domain among the simplicial vertices with v's closed neighbourhood: it is
  // eliminated first, so that the other buckets do not contain it.
  Vertex largest_twin(Vertex v) const {
    Vertex best = v;
    for (Vertex u : rest_.neighbours(v))
      if (rest_.neighbours(u).size() == rest_.neighbours(v).size() && rest_.size(u) > rest_.size(best)) best = u;
    return best;
  }

  void remove(Vertex v) {
    const std::vector<Vertex> around = rest_.eliminate(v);
    order_.push_back(v);
    for (Vertex u : around) enqueue(u);
    if (rest_.fill().empty()) return;
    for (Vertex u : around)
      for (Vertex w : rest_.neighbours(u)) enqueue(w);
  }

  static constexpr std::uint32_t between_looks = 16;
  Remainder& rest_;
  Clock& clock_;
  bool is_over_ = false;
  std::uint32_t looks_ = 0;
  Vertex count_;
  std::vector<char> queued_;
  std::vector<Vertex> odd_;  // result of `odd_neighbour` for vertices that are not queued
  std::deque<Vertex> queue_;
  Order order_;
};

}  // namespace

Order reduce(Remainder& rest, Clock& clock) {
  Order order = Reducer(rest, clock).run();
  rest.count_visits(clock);
  return order;
}

}  // namespace elimina::order
