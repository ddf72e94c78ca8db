#include "order/search.hpp"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "order/anneal.hpp"
#include "order/exact.hpp"

namespace elimina::order {
namespace {

// A search that compares its time with the run's ends when nothing has improved for so many times as long as it took to get there, but
// not before so many seconds.
constexpr double stagnation = 20;
constexpr double shortest_stagnation = 0.1;
constexpr double unbounded = std::numeric_limits<double>::infinity();

// 1 1 2 1 1 2 4 ... (Luby, Sinclair, Zuckerman, 1993).
std::int64_t luby(std::int64_t i) {
  for (std::int64_t k = 1;; ++k) {
    const std::int64_t full = (std::int64_t{1} << k) - 1;
    if (i == full) return std::int64_t{1} << (k - 1);
    if (i < full) return luby(i - (full >> 1));
  }
}

// One connected component of what the reductions leave. After some greedy runs, annealings of whole trees from fresh
// greedy orders (to find good regions) take turns with annealings of the best trees piece by piece (to exploit them).
class ComponentSearch {
 public:
  ComponentSearch(Graph graph, const Options& options, std::uint64_t number)
      : graph_(std::move(graph)), options_(options), number_(number) {}

  void step(Clock& clock) {
    const std::int64_t warm_up = graph_.count() <= whole_first ? 10 : 8;
    if (round_ < warm_up || !options_.anneal || cost().largest > annealable) {
      greedy_step(clock);
    } else {
      const std::int64_t turn = round_ - warm_up;
      const bool whole =
          graph_.count() <= whole_first ? turn % 3 == 0 : turn % 3 == 2 && graph_.count() <= largest_patch;
      anneal_step(whole, turn / 3 + 1, clock);
    }
    ++round_;
  }

  const Order& best() const { return elite_[best_].order; }
  const Cost& cost() const { return elite_[best_].cost; }
  std::int64_t rounds() const { return round_; }

 private:
  struct Candidate {
    Order order;
    Cost cost;
  };

  static constexpr Vertex whole_first = 1000;
  static constexpr std::size_t elite_size = 2;
  static constexpr double entry_seconds = 40e-9;  // of an entry of a separator, to make it and to add up its cost: VM

  Random random_for(std::uint64_t thread) const {
    return Random(options_.seed, (number_ << 40) + (static_cast<std::uint64_t>(round_) << 10) + thread);
  }

  void greedy_step(Clock& clock) {
    const auto kinds = static_cast<std::int64_t>(options_.rules.size());
    const Rule rule = options_.rules[static_cast<std::size_t>(round_ % kinds)];
    const double noise = round_ < kinds ? 0 : 0.05 * static_cast<double>(round_ / kinds % 4);
    Random random = random_for(0);
    // Under a limit an order of more work may still be the better one.
    const bool bounded = !elite_.empty() && std::isinf(options_.limit);
    auto order = greedy(graph_, rule, noise, bounded ? cost().total : unbounded, random, clock);
    clock.check();
    if (!order) return;
    keep(0, candidate(std::move(*order), clock));
  }

  void anneal_step(bool whole, std::int64_t turn, Clock& clock) {
    std::vector<std::pair<std::size_t, Candidate>> jobs(static_cast<std::size_t>(options_.threads));
    std::vector<double> counted(jobs.size());
    const auto work = [&](std::size_t thread) {
      Random random = random_for(thread);
      Clock own(clock, clock.left());
      auto& [slot, found] = jobs[thread];
      slot = whole ? elite_size : random.below(static_cast<Vertex>(elite_.size()));
      found = candidate(whole ? anneal_whole(luby(turn), random, own) : anneal_parts(elite_[slot].order, random, own), own);
      counted[thread] = own.counted();
    };
    std::vector<std::thread> helpers;
    for (std::size_t i = 1; i < jobs.size(); ++i) helpers.emplace_back(work, i);
    work(0);
    for (auto& helper : helpers) helper.join();
    clock.count(*std::max_element(counted.begin(), counted.end()));
    for (auto& [slot, found] : jobs) keep(slot, std::move(found));
  }

  Order anneal_whole(std::int64_t length, Random& random, Clock& clock) const {
    const Rule rule = options_.rules[random.below(static_cast<Vertex>(options_.rules.size()))];
    auto start = greedy(graph_, rule, 0.2, unbounded, random, clock);
    auto annealer = make_annealer({graph_, graph_.count(), std::move(*start)}, options_.limit);
    const std::int64_t sweeps = std::clamp<std::int64_t>(400'000 / graph_.count(), 200, 1000);
    annealer->anneal({0.8, 0.05, sweeps * length}, random, clock);
    return annealer->best();
  }

  Order anneal_parts(const Order& order, Random& random, Clock& clock) const {
    return anneal_pieces(graph_, order, 30 + random.below(120), {0.5, 0.03, 300}, options_.limit, random, clock);
  }

  Candidate candidate(Order order, Clock& clock) const {
    const EliminationTree tree = eliminate(graph_, order);
    std::size_t entries = order.size();
    for (const auto& separator : tree.separator) entries += separator.size();
    clock.count(entry_seconds * static_cast<double>(entries));
    return {std::move(order), cost_of(graph_, tree)};
  }

  // An order made from an elite one takes its place; a fresh order takes a free place or the worst one's.
  void keep(std::size_t slot, Candidate found) {
    const auto ahead = [&](const Candidate& a, const Candidate& b) { return better(a.cost, b.cost, options_.limit); };
    if (slot == elite_size && elite_.size() == elite_size)
      slot = static_cast<std::size_t>(std::max_element(elite_.begin(), elite_.end(), ahead) - elite_.begin());
    if (slot >= elite_.size())
      elite_.push_back(std::move(found));
    else if (ahead(found, elite_[slot]))
      elite_[slot] = std::move(found);
    best_ = static_cast<std::size_t>(std::min_element(elite_.begin(), elite_.end(), ahead) - elite_.begin());
  }

  Graph graph_;
  const Options& options_;
  std::uint64_t number_;
  std::int64_t round_ = 0;
  std::vector<Candidate> elite_;
  std::size_t best_ = 0;
};

class Search {
 public:
  Search(const Graph& graph, const Options& options, Clock& clock)
      : graph_(graph), options_(options), clock_(clock) {}

  Order run() {
    std::vector<Vertex> several, single;
    for (Vertex v = 0; v < graph_.count(); ++v) (graph_.size[v] > 1 ? several : single).push_back(v);
    const Graph part = single.empty() ? Graph{} : induced(graph_, several);
    const Graph& real = single.empty() ? graph_ : part;
    Order order = search_real(real);
    if (options_.anneal && real.count() <= exact_size && is_worth_more(cost_of(real, order))) order = exact_order(real, options_.limit);
    for (Vertex& v : order) v = several[v];
    // A variable of one value adds nothing to a table, so it waits until it cannot join others.
    order.insert(order.end(), single.begin(), single.end());
    return order;
  }

 private:
  Order search_real(const Graph& real) {
    Remainder rest(real);
    Order order = reduce(rest, clock_);
    clock_.check();
    if (rest.left() > 0) {
      const Order searched = search_rest(rest);
      order.insert(order.end(), searched.begin(), searched.end());
    }
    if (options_.anneal && real.count() > exact_size) {
      const Cost cost = cost_of(real, order);
      if (cost.largest < annealable && is_worth_more(cost)) order = polish(real, std::move(order), run_seconds(cost));
    }
    return order;
  }

  // Estimated time of a run; infinity if the search ignores it.
  double run_seconds(const Cost& cost) const { return options_.patience > 0 ? options_.patience * std::exp2(cost.total) : unbounded; }
  bool is_worth_more(const Cost& cost) const { return run_seconds(cost) > worth_a_search; }

  // Reductions are safe for the width but can cost a little work; a descent over the whole tree takes it back.
  Order polish(const Graph& graph, Order order, double run) const {
    const double left = std::max(0.0, search_share * run - clock_.counted());
    Clock clock(clock_, std::min(0.02 + 0.05 * clock_.seconds(), left));
    Random random(options_.seed);
    const std::int64_t sweeps = std::max<std::int64_t>(40, 40000 / graph.count());
    for (const Vertex piece : {192, 128})
      order = anneal_pieces(graph, order, piece, {0.3, 0.003, sweeps}, options_.limit, random, clock);
    clock_.count(clock.counted());
    return order;
  }

  Order search_rest(const Remainder& rest) {
    auto [graph, name] = rest.graph();
    const auto names = components(graph);
    std::vector<ComponentSearch> parts;
    for (std::size_t i = 0; i < names.size(); ++i)
      parts.emplace_back(names.size() == 1 ? std::move(graph) : induced(graph, names[i]), options_, i);
    for (auto& part : parts) part.step(clock_);
    improve(parts);
    Order order;
    for (std::size_t i = 0; i < parts.size(); ++i)
      for (Vertex v : parts[i].best()) order.push_back(name[names[i][v]]);
    return order;
  }

  // The next round goes to the component with the most work for the rounds it has had.
  void improve(std::vector<ComponentSearch>& parts) {
    double least = unbounded, improved = 0;
    for (std::int64_t round = static_cast<std::int64_t>(parts.size()); options_.rounds < 0 || round < options_.rounds;
         ++round) {
      if (clock_.expired()) return;
      double work = -std::numeric_limits<double>::infinity();
      for (const auto& part : parts) work = log2_sum(work, part.cost().total);
      if (work < least) {
        least = work;
        improved = clock_.counted();
      }
      const double run = options_.patience * std::exp2(work);
      const double enough = std::min(search_share * run / 2, std::max(stagnation * improved, shortest_stagnation));
      if (options_.patience > 0 && (run < worth_a_search || clock_.counted() > enough)) return;
      const auto urgency = [](const ComponentSearch& part) {
        return part.cost().total - std::log2(static_cast<double>(part.rounds()));
      };
      std::max_element(parts.begin(), parts.end(), [&](const auto& a, const auto& b) {
        return urgency(a) < urgency(b);
      })->step(clock_);
    }
  }

  const Graph& graph_;
  const Options& options_;
  Clock& clock_;
};

}  // namespace

Order search(const Graph& graph, const Options& options, Clock& clock) {
  return Search(graph, options, clock).run();
}

}  // namespace elimina::order
