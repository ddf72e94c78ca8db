#include "order_search.hpp"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "order_anneal.hpp"

namespace elimina::order {
namespace {

constexpr double shortest_search = 20e-3;
constexpr std::int64_t greedy_rounds = 24;

// 1 1 2 1 1 2 4 ... (Luby, Sinclair, Zuckerman, 1993).
std::int64_t luby(std::int64_t i) {
  for (std::int64_t k = 1;; ++k) {
    const std::int64_t full = (std::int64_t{1} << k) - 1;
    if (i == full) return std::int64_t{1} << (k - 1);
    if (i < full) return luby(i - (full >> 1));
  }
}

// One connected component of what the reductions leave.
class ComponentSearch {
 public:
  ComponentSearch(Graph graph, const Options& options, std::uint64_t seed)
      : graph_(std::move(graph)), options_(options), seed_(seed) {}

  void step(const Clock& clock) {
    if (round_ < greedy_rounds || !options_.anneal || cost_.total > annealable || graph_.count() > largest_patch)
      greedy_step(clock);
    else
      anneal_step(clock);
    ++round_;
  }

  const Order& best() const { return best_; }
  const Cost& cost() const { return cost_; }
  std::int64_t rounds() const { return round_; }
  const Graph& graph() const { return graph_; }

 private:
  void greedy_step(const Clock& clock) {
    const auto kinds = static_cast<std::int64_t>(options_.rules.size());
    const Rule rule = options_.rules[static_cast<std::size_t>(round_ % kinds)];
    const double noise = round_ < kinds ? 0 : 0.05 * static_cast<double>(round_ / kinds % 4);
    Random random(seed_ + static_cast<std::uint64_t>(round_));
    const bool first = best_.empty();
    auto order = greedy(graph_, rule, noise, first ? std::numeric_limits<double>::infinity() : cost_.total, random, clock);
    if (order) offer(*order);
  }

  void anneal_step(const Clock& clock) {
    const std::int64_t length = luby(round_ - greedy_rounds + 1);
    std::vector<Order> found(static_cast<std::size_t>(options_.threads));
    const auto work = [&](int thread) {
      Random random(seed_ + static_cast<std::uint64_t>(round_) * 1024 + static_cast<std::uint64_t>(thread));
      auto start = greedy(graph_, options_.rules[random.below(static_cast<Vertex>(options_.rules.size()))], 0.2,
                          std::numeric_limits<double>::infinity(), random, clock);
      auto annealer = make_annealer({graph_, graph_.count(), std::move(*start)}, options_.limit);
      annealer->anneal({0.5, 0.05, 1000 * length}, random, clock);
      found[static_cast<std::size_t>(thread)] = annealer->best();
    };
    std::vector<std::thread> helpers;
    for (int i = 1; i < options_.threads; ++i) helpers.emplace_back(work, i);
    work(0);
    for (auto& helper : helpers) helper.join();
    for (const auto& order : found) offer(order);
  }

  void offer(const Order& order) {
    const Cost cost = cost_of(graph_, order);
    if (!best_.empty() && !better(cost, cost_, options_.limit)) return;
    best_ = order;
    cost_ = cost;
  }

  Graph graph_;
  const Options& options_;
  std::uint64_t seed_;
  std::int64_t round_ = 0;
  Order best_;
  Cost cost_;
};

class Search {
 public:
  Search(const Graph& graph, const Options& options, const Clock& clock) : graph_(graph), options_(options), clock_(clock) {}

  Order run() {
    std::vector<Vertex> several, single;
    for (Vertex v = 0; v < graph_.count(); ++v) (graph_.size[v] > 1 ? several : single).push_back(v);
    const Graph real = induced(graph_, several);
    Remainder rest(real);
    Order order = reduce(rest, clock_);
    if (rest.left() > 0) {
      const Order searched = search_rest(rest);
      order.insert(order.end(), searched.begin(), searched.end());
    }
    if (options_.anneal && !order.empty() && cost_of(real, order).largest < annealable) order = polish(real, std::move(order));
    for (Vertex& v : order) v = several[v];
    // A variable of one value adds nothing to a table, so it waits until it cannot join others.
    order.insert(order.end(), single.begin(), single.end());
    return order;
  }

 private:
  // Reductions are safe for the width but can cost a little work; a descent over the whole tree takes it back.
  Order polish(const Graph& graph, Order order) const {
    Random random(options_.seed);
    const std::int64_t sweeps = std::max<std::int64_t>(40, 40000 / graph.count());
    for (const Vertex piece : {192, 128})
      order = anneal_pieces(graph, order, piece, {0.3, 0.003, sweeps}, options_.limit, random, clock_);
    return order;
  }

  Order search_rest(const Remainder& rest) {
    Graph graph;
    std::vector<Vertex> local(rest.count(), none), name;
    for (Vertex v = 0; v < local.size(); ++v)
      if (!rest.gone(v)) {
        local[v] = static_cast<Vertex>(name.size());
        name.push_back(v);
      }
    for (Vertex v : name) {
      graph.size.push_back(rest.size(v));
      auto& list = graph.neighbours.emplace_back();
      for (Vertex u : rest.neighbours(v)) list.push_back(local[u]);
    }
    const auto names = components(graph);
    std::vector<ComponentSearch> parts;
    for (std::size_t i = 0; i < names.size(); ++i)
      parts.emplace_back(induced(graph, names[i]), options_, options_.seed + (static_cast<std::uint64_t>(i) << 40));
    for (auto& part : parts) part.step(clock_);
    improve(parts);
    Order order;
    for (std::size_t i = 0; i < parts.size(); ++i)
      for (Vertex v : parts[i].best()) order.push_back(name[names[i][v]]);
    return order;
  }

  // The next round goes to the component with the most work for the rounds it has had.
  void improve(std::vector<ComponentSearch>& parts) {
    for (std::int64_t round = static_cast<std::int64_t>(parts.size()); options_.rounds < 0 || round < options_.rounds; ++round) {
      if (clock_.expired()) return;
      double work = -std::numeric_limits<double>::infinity();
      for (const auto& part : parts) work = log2_sum(work, part.cost().total);
      const double enough = options_.patience * std::exp2(work);
      if (options_.patience > 0 && clock_.elapsed() > std::max(shortest_search, enough)) return;
      const auto urgency = [](const ComponentSearch& part) {
        return part.cost().total - std::log2(static_cast<double>(part.rounds()));
      };
      std::max_element(parts.begin(), parts.end(), [&](const auto& a, const auto& b) { return urgency(a) < urgency(b); })
          ->step(clock_);
    }
  }

  const Graph& graph_;
  const Options& options_;
  const Clock& clock_;
};

}  // namespace

Order search(const Graph& graph, const Options& options, const Clock& clock) { return Search(graph, options, clock).run(); }

}  // namespace elimina::order
