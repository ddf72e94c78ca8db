#include "order/greedy.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>
#include <utility>

#include "order/reduce.hpp"

namespace elimina::order {
namespace {

// A new neighbour of a vertex, and the next entry of the vertex's list.
struct Gained {
  Vertex neighbour;
  std::uint32_t next;
};

// The cost of a vertex when it was pushed, and the tie-breaker. Only the newest entry of a vertex is valid.
struct Entry {
  double key;
  std::uint32_t tie;
  Vertex vertex;

  bool operator<(const Entry& other) const {
    return std::tie(other.key, other.tie, other.vertex) <
           std::tie(key, tie, vertex);  // the cheapest entry is the first of a heap
  }
};

// A large graph has a heap for each pair of a key, rounded down, and a block of consecutive vertices, so that the
// active heaps fit in the cache. A small graph has one heap.
class Queue {
 public:
  // `count`: number of vertices; 0: one heap for any number.
  explicit Queue(Vertex count)
      : is_split_(count >= many_vertices), blocks_(is_split_ ? (count >> block_bits) + 1 : 1),
        heaps_(is_split_ ? blocks_ * keys : 1) {
    filled_.resize(heaps_.size() / 64 + 1);
  }

  static constexpr int block_bits = 12;  // log2 of the number of vertices in a block

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  void push(const Entry& entry) {
    const std::size_t number = number_of(entry), word = number / 64;
    heaps_[number].push_back(entry);
    std::push_heap(heaps_[number].begin(), heaps_[number].end());
    filled_[word] |= std::uint64_t{1} << (number % 64);
    first_ = std::min(first_, word);
    ++size_;
  }

  // Removes and returns the cheapest entry; in large graphs, keys are rounded down before they are compared. The queue
  // must not be empty.
  Entry pop() {
    while (!filled_[first_]) ++first_;
    auto& heap = heaps_[first_ * 64 + static_cast<std::size_t>(std::countr_zero(filled_[first_]))];
    std::pop_heap(heap.begin(), heap.end());
    const Entry entry = heap.back();
    heap.pop_back();
    if (heap.empty()) filled_[first_] &= filled_[first_] - 1;
    --size_;
    return entry;
  }

  template <class Stale>
  void drop(Stale is_stale) {
    size_ = first_ = 0;
    for (std::size_t number = 0; number < heaps_.size(); ++number) {
      auto& heap = heaps_[number];
      std::erase_if(heap, is_stale);
      std::make_heap(heap.begin(), heap.end());
      size_ += heap.size();
      if (heap.empty()) filled_[number / 64] &= ~(std::uint64_t{1} << (number % 64));
    }
  }

 private:
  static constexpr std::size_t keys = 64;  // the last one stands for all larger keys, and its heap holds all blocks

  std::size_t number_of(const Entry& entry) const {
    if (!is_split_) return 0;
    return entry.key < keys - 1
               ? static_cast<std::size_t>(std::max(entry.key, 0.0)) * blocks_ + (entry.vertex >> block_bits)
               : (keys - 1) * blocks_;
  }

  bool is_split_;
  std::size_t blocks_, size_ = 0, first_ = 0;
  std::vector<std::vector<Entry>> heaps_;
  std::vector<std::uint64_t> filled_;  // bit set of the heaps with entries
};

class GreedyRun {
 public:
  GreedyRun(const Graph& graph, Rule rule, double noise, Random& random)
      : rest_(graph), rule_(rule), noise_(noise), random_(random), score_(graph.count()), newest_(graph.count()),
        first_gained_(graph.count(), none), credited_(graph.count(), 0), joined_(graph.count(), 0),
        max_entries_(2 * std::size_t{graph.count()} + 1), queue_(rule == Rule::sweep ? 0 : graph.count()) {}

  // Eliminates vertices until a bucket has more than 2^log_cells cells.
  PartialOrder run_up_to(double log_cells, Clock& clock) {
    PartialOrder partial;
    for (Vertex v = 0; v < rest_.count(); ++v) {
      if (v % 64 == 0) clock.check();
      rescore(v);
    }
    while (partial.order.size() < rest_.count()) {
      clock.check();
      const Entry entry = queue_.pop();
      if (is_stale(entry)) continue;
      if (rest_.log_bucket(entry.vertex) > log_cells) {
        partial.widest = entry.vertex;
        partial.separator = rest_.neighbours(entry.vertex);
        sweep(entry.vertex, partial.order);
        break;
      }
      partial.order.push_back(entry.vertex);
      if (!step(entry.vertex, clock)) clock.check();
    }
    rest_.count_visits(clock);
    return partial;
  }

  std::optional<Order> run(double bound, Clock& clock) {
    const Vertex n = rest_.remaining();
    Order order;
    double spent = 0;
    for (Vertex v = 0; v < n && rule_ != Rule::sweep; ++v) {
      if ((v % 64 == 0 && is_over(clock)) || clock.is_asked()) return finish(std::move(order));
      rescore(v);
    }
    while (order.size() < n) {
      if (order.size() % 16 == 0 && is_over(clock)) return finish(std::move(order));
      if (queue_.empty()) rescore(far_end());
      const Entry entry = queue_.pop();
      const Vertex v = entry.vertex;
      if (is_stale(entry)) continue;
      spent += std::exp2(rest_.log_bucket(v) - bound);
      if (spent >= 1) {
        // Setting up a run visits each vertex. These visits are counted: otherwise, runs that end at once would repeat
        // until the wall clock ends the search.
        rest_.visit(push_visits * n);
        rest_.count_visits(clock);
        return std::nullopt;
      }
      order.push_back(v);
      if (!step(v, clock)) return finish(std::move(order));
    }
    return order;
  }

 private:
  static constexpr std::uint64_t push_visits = 40;  // visits that take as long as a push (VM of bench/RESULTS.md)

  bool is_over(Clock& clock) {
    rest_.count_visits(clock);
    return clock.expired();
  }

  void push(Vertex v) {
    rest_.visit(push_visits);
    double key = score_[v];
    if (noise_ > 0) key = (key + 1) * std::exp2(-noise_ * std::log(-std::log(random_.uniform() * 0.999999 + 5e-7)));
    // In a sweep, vertices leave the front in the order in which they joined it, so that the front stays straight.
    if (rule_ == Rule::sweep && joined_[v] == 0) joined_[v] = ++front_;
    const std::uint32_t tie = rule_ == Rule::sweep ? joined_[v] : random_tie(v);
    newest_[v] = {key, tie};
    if (queue_.size() == max_entries_) queue_.drop([&](const Entry& entry) { return is_stale(entry); });
    queue_.push({key, tie, v});
  }

  // Draws the tie-breaker of a vertex: vertices of a large graph with equal keys are eliminated in blocks of 4,096
  // consecutive numbers, at random within a block.
  std::uint32_t random_tie(Vertex v) {
    constexpr int bits = 14;
    const auto drawn = static_cast<std::uint32_t>(random_.next() >> 32);
    return score_.size() < many_vertices ? drawn : (v >> Queue::block_bits) << bits | drawn >> (32 - bits);
  }

  bool is_stale(const Entry& entry) const {
    return rest_.gone(entry.vertex) || newest_[entry.vertex] != std::pair(entry.key, entry.tie);
  }

  // Returns the last vertex in a breadth-first search from a random one.
  Vertex far_end() {
    Vertex v = random_.below(static_cast<Vertex>(score_.size()));
    while (rest_.gone(v)) v = (v + 1) % static_cast<Vertex>(score_.size());
    std::vector<Vertex> queue{v};
    std::vector<char> seen(score_.size(), 0);
    seen[v] = 1;
    for (std::size_t i = 0; i < queue.size(); ++i)
      for (Vertex u : rest_.neighbours(queue[i]))
        if (!std::exchange(seen[u], 1)) queue.push_back(u);
    return queue.back();
  }

  void rescore(Vertex v) {
    switch (rule_) {
      case Rule::min_degree: score_[v] = static_cast<double>(rest_.neighbours(v).size()); break;
      case Rule::min_weight:
      case Rule::sweep: score_[v] = rest_.log_bucket(v); break;
      default: score_[v] = rest_.missing(v, rule_ == Rule::weighted_min_fill);
    }
    push(v);
  }

  // Eliminates v and updates keys; returns false on a stop request, which is checked here because a step takes half a
  // second on dense graphs of a thousand vertices.
  bool step(Vertex v, const Clock& clock) {
    if (rule_ != Rule::min_fill && rule_ != Rule::weighted_min_fill) {
      for (Vertex u : rest_.eliminate(v)) rescore(u);
      return true;
    }
    rest_.find_fill(v);
    if (!credit_common_neighbours(v, clock)) return false;
    gained_.clear();
    for (const auto& [a, b] : rest_.fill()) {
      gain(a, b);
      gain(b, a);
    }
    double clique = 0;
    const std::vector<Vertex> around = rest_.join(v);
    for (Vertex u : around) clique += weight(u);
    for (Vertex u : around) {
      if (clock.is_asked()) return false;
      // u loses the missing pairs of the eliminated vertex and u's neighbours outside the clique.
      double others = weight(u) - clique;
      for (Vertex w : rest_.neighbours(u)) others += weight(w);
      score_[u] -= others * weight(v);
      score_[u] += missed_with_gained(u);
      push(u);
    }
    return true;
  }

  double weight(Vertex v) const { return rule_ == Rule::min_fill ? 1 : rest_.size(v); }

  void gain(Vertex v, Vertex neighbour) {
    gained_.push_back({neighbour, first_gained_[v]});
    first_gained_[v] = static_cast<std::uint32_t>(gained_.size() - 1);
  }

  // Counts the missing pairs of a new neighbour and another neighbour of a vertex. New neighbours are joined to each
  // other, so no pair counts twice.
  double missed_with_gained(Vertex v) {
    common_.clear();
    for (std::uint32_t i = std::exchange(first_gained_[v], none); i != none; i = gained_[i].next)
      common_.push_back(gained_[i].neighbour);
    return common_.empty() ? 0 : rest_.missing_around(v, common_, rule_ == Rule::weighted_min_fill);
  }

  // Subtracts a missing pair from the common neighbours of both ends of each new edge. The eliminated vertex's
  // neighbours draw random tie-breakers here and again in `step`: the order of a seed depends on both draws. Returns
  // false on a stop request.
  bool credit_common_neighbours(Vertex v, const Clock& clock) {
    constexpr std::size_t between_looks = 1024;  // edges between checks for a stop request: some milliseconds
    ++stamp_;
    touched_.clear();
    credited_[v] = stamp_;
    for (Vertex u : rest_.neighbours(v)) {
      credited_[u] = stamp_;
      if (!ends_all_new_edges(u)) touched_.push_back(u);
    }
    std::size_t edges = 0;
    for (const auto& [a, b] : rest_.fill()) {
      if (++edges % between_looks == 0 && clock.is_asked()) return false;
      const double weight = this->weight(a) * this->weight(b);
      common_.clear();
      rest_.common(a, b, common_);
      for (Vertex u : common_) {
        score_[u] -= weight;
        if (std::exchange(credited_[u], stamp_) != stamp_) touched_.push_back(u);
      }
    }
    std::sort(touched_.begin(), touched_.end());
    for (Vertex u : touched_) push(u);
    return true;
  }

  // Appends the remaining vertices breadth first: from `start`, then from each vertex that was not reached.
  void sweep(Vertex start, Order& order) const {
    std::vector<char> is_done(rest_.count(), 0);
    for (const Vertex v : order) is_done[v] = 1;
    std::size_t expanded = order.size();
    const auto append = [&](Vertex v) {
      if (!std::exchange(is_done[v], 1)) order.push_back(v);
    };
    append(start);
    for (Vertex next = 0;; append(next++)) {
      for (; expanded < order.size(); ++expanded)
        for (const Vertex u : rest_.neighbours(order[expanded])) append(u);
      if (next == rest_.count()) return;
    }
  }

  bool ends_all_new_edges(Vertex v) const {
    return std::all_of(rest_.fill().begin(), rest_.fill().end(),
                       [v](const auto& edge) { return edge.first == v || edge.second == v; });
  }

  Order finish(Order order) {
    std::vector<char> done(score_.size(), 0);
    for (Vertex v : order) done[v] = 1;
    const std::size_t first = order.size();
    for (Vertex v = 0; v < score_.size(); ++v)
      if (!done[v]) order.push_back(v);
    std::stable_sort(order.begin() + static_cast<std::ptrdiff_t>(first), order.end(),
                     [&](Vertex a, Vertex b) { return rest_.neighbours(a).size() < rest_.neighbours(b).size(); });
    return order;
  }

  Remainder rest_;
  Rule rule_;
  double noise_;
  Random& random_;
  std::vector<double> score_;
  std::vector<std::pair<double, std::uint32_t>> newest_;
  std::vector<std::uint32_t> first_gained_, credited_, joined_;
  std::vector<Gained> gained_;
  std::uint32_t stamp_ = 0;  // number of the current step
  std::size_t max_entries_;  // number of entries before stale ones are dropped
  Queue queue_;
  std::vector<Vertex> common_, touched_;
  std::uint32_t front_ = 0;
};

}  // namespace

namespace {

// Chooses `count` vertices, each a neighbour of an earlier one where possible.
std::vector<Vertex> nearby(const Graph& graph, Vertex count) {
  std::vector<char> is_listed(graph.count(), 0);
  std::vector<Vertex> listed;
  std::size_t expanded = 0;
  for (Vertex number = 0; number < graph.count() && listed.size() < count; ++number) {
    const Vertex start = (graph.count() / 2 + number) % graph.count();
    if (std::exchange(is_listed[start], 1)) continue;
    listed.push_back(start);
    for (; expanded < listed.size() && listed.size() < count; ++expanded)
      for (const Vertex u : graph.neighbours[listed[expanded]])
        if (!std::exchange(is_listed[u], 1)) listed.push_back(u);
  }
  return listed;
}

}  // namespace

PartialOrder greedy_up_to(Graph graph, double log_cells, Random& random, Clock& clock) {
  // If a part of a large graph is too wide, so is the whole graph.
  constexpr Vertex sample_size = 1 << 15;
  if (graph.count() > 2 * sample_size) {
    const std::vector<Vertex> names = nearby(graph, sample_size);
    PartialOrder of_part = greedy_up_to(induced(graph, names), log_cells, random, clock);
    if (of_part.widest != none) {
      for (Vertex& u : of_part.separator) u = names[u];
      return {nearby(graph, graph.count()), names[of_part.widest], std::move(of_part.separator)};
    }
  }
  Remainder rest(std::move(graph));
  PartialOrder partial{reduce(rest, clock)};
  auto [remaining, names] = std::move(rest).graph();
  PartialOrder further = GreedyRun(remaining, Rule::min_fill, 0, random).run_up_to(log_cells, clock);
  for (const Vertex v : further.order) partial.order.push_back(names[v]);
  if (further.widest != none) partial.widest = names[further.widest];
  for (const Vertex v : further.separator) partial.separator.push_back(names[v]);
  return partial;
}

std::optional<Order> greedy(const Graph& graph, Rule rule, double noise, double bound, Random& random, Clock& clock) {
  return GreedyRun(graph, rule, noise, random).run(bound, clock);
}

}  // namespace elimina::order
