#include "order/search.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <system_error>
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

constexpr double worth_a_thread = 5e-3;  // seconds of a search before it starts threads, which takes 0.05 ms each
constexpr int most_threads = 8;          // 16 take as long as 4 where pieces are annealed half of the time, and slow other processes down
constexpr std::size_t most_ahead = 4;    // annealings that were made and are not wanted yet, for each thread
constexpr auto between_looks = std::chrono::milliseconds(20);

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
// The first annealings are short ones: a small problem's run is over before a long one ends.
// Those of whole trees depend on nothing before them: other threads make them ahead of their rounds, so that the result is
// the same for any number of threads.
class ComponentSearch {
 public:
  ComponentSearch(Graph graph, const Options& options, std::uint64_t number)
      : graph_(std::move(graph)), options_(options), number_(number) {}
  ComponentSearch(ComponentSearch&&) = default;
  ~ComponentSearch() {
    for (const Ahead& ahead : ahead_) ahead.clock->stop();
  }

  void step(Clock& clock) {
    if (round_ < warm_up || !options_.anneal || cost().largest > annealable)
      greedy_step(clock);
    else if (is_whole(round_))
      whole_step(clock);
    else
      pieces_step(clock);
    ++round_;
    look_ahead(clock);
  }

  const Order& best() const { return elite_[best_].order; }
  const Cost& cost() const { return elite_[best_].cost; }
  std::int64_t rounds() const { return round_; }

 private:
  struct Candidate {
    Order order;
    Cost cost;
  };

  // An annealing of a later round.
  struct Ahead {
    std::int64_t round;
    std::unique_ptr<Clock> clock;
    std::future<Candidate> found;
  };

  static constexpr Vertex whole_first = 1000;
  static constexpr std::int64_t warm_up = 2;      // greedy runs before the first annealing: more of them find little
  static constexpr std::int64_t short_turns = 2;  // of three rounds each
  static constexpr std::size_t elite_size = 2;
  static constexpr double entry_seconds = 40e-9;  // of an entry of a separator, to make it and to add up its cost: VM

  // Share of an annealing's full length: it doubles with every third round.
  static double share_of(std::int64_t round) { return std::min(1.0, std::exp2(static_cast<double>((round - warm_up) / 3 - short_turns))); }

  bool is_whole(std::int64_t round) const {
    const std::int64_t turn = round - warm_up;
    return graph_.count() <= whole_first ? turn % 3 == 0 : turn % 3 == 2 && graph_.count() <= largest_patch;
  }

  Random random_for(std::int64_t round) const {
    return Random(options_.seed, (number_ << 40) + (static_cast<std::uint64_t>(round) << 10));
  }

  void greedy_step(Clock& clock) {
    const auto kinds = static_cast<std::int64_t>(options_.rules.size());
    const Rule rule = options_.rules[static_cast<std::size_t>(round_ % kinds)];
    const double noise = round_ < kinds ? 0 : 0.05 * static_cast<double>(round_ / kinds % 4);
    Random random = random_for(round_);
    // Under a limit an order of more work may still be the better one.
    const bool bounded = !elite_.empty() && std::isinf(options_.limit);
    auto order = greedy(graph_, rule, noise, bounded ? cost().total : unbounded, random, clock);
    clock.check();
    if (!order) return;
    keep(0, candidate(std::move(*order), clock));
  }

  void pieces_step(Clock& clock) {
    Random random = random_for(round_);
    const std::size_t slot = random.below(static_cast<Vertex>(elite_.size()));
    const Vertex piece = 30 + random.below(120);
    Order order = anneal_pieces(graph_, elite_[slot].order, piece, {0.5, 0.03, std::llround(300 * share_of(round_))}, options_.limit, random, clock);
    keep(slot, candidate(std::move(order), clock));
  }

  void whole_step(Clock& clock) {
    if (!ahead_.empty() && ahead_.front().round == round_) {
      // The next one is made here meanwhile.
      if (!is_ready(ahead_.front()) && clock.left() > 2 * last_counted_) add_ahead(clock, std::launch::deferred);
      while (!is_ready(ahead_.front(), between_looks)) clock.check();
      Ahead ahead = std::move(ahead_.front());
      ahead_.pop_front();
      last_counted_ = ahead.clock->counted();
      // Else it would have been cut off.
      if (last_counted_ < clock.left()) {
        clock.count(last_counted_);
        keep(elite_size, ahead.found.get());
        return;
      }
    }
    Clock own(clock, clock.left());
    keep(elite_size, anneal_whole(round_, own));
    clock.count(own.counted());
  }

  static bool is_ready(const Ahead& ahead, std::chrono::milliseconds patience = {}) {
    return ahead.found.wait_for(patience) == std::future_status::ready;
  }

  // Keeps the other threads busy with annealings of later rounds.
  void look_ahead(Clock& clock) {
    const int threads = std::min(options_.threads, most_threads);
    if (threads == 1 || !options_.anneal || graph_.count() > largest_patch) return;
    if (cost().largest > annealable || clock.counted() < worth_a_thread) return;
    auto idle = threads - 1 - std::count_if(ahead_.begin(), ahead_.end(), [](const Ahead& ahead) { return !is_ready(ahead); });
    for (; idle > 0 && ahead_.size() < most_ahead * static_cast<std::size_t>(threads) && !clock.expired(); --idle) {
      try {
        add_ahead(clock, std::launch::async);
      } catch (const std::system_error&) {  // there are no more threads
        return;
      }
    }
  }

  void add_ahead(Clock& clock, std::launch policy) {
    std::int64_t round = std::max(round_, ahead_.empty() ? warm_up : ahead_.back().round + 1);
    while (!is_whole(round)) ++round;
    auto own = std::make_unique<Clock>(clock, unbounded);
    auto found = std::async(policy, [this, round, &own = *own] { return anneal_whole(round, own); });
    if (policy == std::launch::deferred) found.wait();
    ahead_.push_back({round, std::move(own), std::move(found)});
  }

  Candidate anneal_whole(std::int64_t round, Clock& clock) const {
    Random random = random_for(round);
    const double length = share_of(round) * static_cast<double>(luby(std::max<std::int64_t>(1, (round - warm_up) / 3 + 1 - short_turns)));
    const Rule rule = options_.rules[random.below(static_cast<Vertex>(options_.rules.size()))];
    auto start = greedy(graph_, rule, 0.2, unbounded, random, clock);
    auto annealer = make_annealer({graph_, graph_.count(), std::move(*start)}, options_.limit);
    const double sweeps = std::clamp(4e5 / graph_.count(), 200.0, 1000.0);
    annealer->anneal({0.8, 0.05, std::llround(sweeps * length)}, random, clock);
    return candidate(annealer->best(), clock);
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
  std::deque<Ahead> ahead_;   // by rounds
  double last_counted_ = 0;  // time of the last one
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

double cells_of_part(std::span<const double> sizes, std::span<const std::int64_t> offsets, std::span<const Vertex> members, std::span<const std::uint8_t> bits) {
  std::vector<Vertex> place(sizes.size(), none), own;
  std::vector<std::int64_t> starts{0};
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    if (!(bits[i / 8] >> (i % 8) & 1)) continue;
    own.insert(own.end(), members.begin() + offsets[i], members.begin() + offsets[i + 1]);
    starts.push_back(static_cast<std::int64_t>(own.size()));
  }
  for (const Vertex v : own) place[v] = 0;
  std::vector<double> part;
  for (Vertex v = 0; v < sizes.size(); ++v) {
    if (place[v] == none) continue;
    place[v] = static_cast<Vertex>(part.size());
    part.push_back(sizes[v]);
  }
  for (Vertex& v : own) v = place[v];
  const Graph graph = moral_graph(std::move(part), starts, own);
  Options quick;
  quick.rules = {Rule::min_fill};
  quick.anneal = false;
  quick.rounds = 0;
  Clock clock(unbounded);
  return std::exp2(cost_of(graph, search(graph, quick, clock)).total);
}

}  // namespace elimina::order
