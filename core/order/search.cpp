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
#include "order/reduce.hpp"

namespace elimina::order {
namespace {

// With `patience`, a search ends once it has taken this multiple of its time up to the last improvement, but not before
// `shortest_stagnation` seconds.
constexpr double stagnation = 20;
constexpr double shortest_stagnation = 0.1;
constexpr double unbounded = std::numeric_limits<double>::infinity();

constexpr double worth_a_thread = 5e-3;  // seconds of a search before it starts threads, which takes 0.05 ms each
// More threads hardly help: half of the time may go to annealing pieces, which one thread does. Then 16 threads take as
// long as 4, and slow other processes down.
constexpr int most_threads = 8;
constexpr std::size_t most_ahead = 4;  // annealings that a thread may make ahead of their rounds
constexpr auto between_looks = std::chrono::milliseconds(20);

// Returns term i, counted from 1, of the sequence 1 1 2 1 1 2 4 ... (Luby, Sinclair, Zuckerman, 1993).
std::int64_t luby(std::int64_t i) {
  for (std::int64_t k = 1;; ++k) {
    const std::int64_t full = (std::int64_t{1} << k) - 1;
    if (i == full) return std::int64_t{1} << (k - 1);
    if (i < full) return luby(i - (full >> 1));
  }
}

// A connected component of the reduced graph. After a greedy run by each rule, annealings of whole trees alternate with
// annealings of the best trees piece by piece (to exploit them). The first annealings of the best tree are short,
// because a small problem's run is over before a long one ends. Long annealings of whole trees begin with fresh greedy
// orders (to explore) and depend on no earlier result, so other threads make them ahead of their rounds, and the result
// is the same for any number of threads.
class ComponentSearch {
 public:
  ComponentSearch(Graph graph, const Options& options, std::uint64_t number)
      : graph_(std::move(graph)), options_(options), number_(number) {}
  ComponentSearch(ComponentSearch&&) = default;
  ~ComponentSearch() {
    for (const Ahead& ahead : ahead_) ahead.clock->stop();
  }

  void step(Clock& clock) {
    if (round_ < warm_up() || !options_.anneal || cost().largest > annealable) greedy_step(clock);
    else if (is_whole(round_)) whole_step(clock);
    else pieces_step(clock);
    ++round_;
    look_ahead(clock);
  }

  // Finds the best order of a small graph if that takes at most `seconds`; then no rounds follow.
  void solve(double seconds, Clock& clock) {
    const double needed = exact_seconds * graph_.count() * std::exp2(graph_.count());
    if (!options_.anneal || graph_.count() > exact_size || needed > std::min(seconds, clock.remaining())) return;
    clock.count(needed);
    keep(best_, candidate(exact_order(graph_, options_.limit), clock));
    is_solved_ = true;
  }

  bool is_solved() const { return is_solved_; }
  const Order& best() const { return elite_[best_].order; }
  const Cost& cost() const { return elite_[best_].cost; }
  std::int64_t rounds() const { return round_; }

 private:
  struct Candidate {
    Order order;
    Cost cost;
  };

  // An annealing for a later round.
  struct Ahead {
    std::int64_t round;
    std::unique_ptr<Clock> clock;
    std::future<Candidate> candidate;
  };

  static constexpr Vertex whole_first = 1000;
  static constexpr std::int64_t short_turns = 4, lone_turns = 2;
  static constexpr std::size_t elite_size = 2;
  static constexpr double entry_seconds = 40e-9;  // seconds for an entry of a separator (VM of bench/RESULTS.md)
  // seconds for each pair of a set and a vertex (VM of bench/RESULTS.md)
  static constexpr double exact_seconds = 60e-9;

  std::int64_t warm_up() const { return static_cast<std::int64_t>(options_.rules.size()); }
  // A turn is an annealing of the whole tree and two of pieces. The shortest turns of small graphs leave out pieces,
  // because these gain little there.
  struct RoundPhase {
    std::int64_t turn, phase;
  };
  RoundPhase phase_of(std::int64_t round) const {
    const std::int64_t since = round - warm_up(), alone = graph_.count() <= whole_first ? lone_turns : 0;
    if (since < alone) return {since, 0};
    return {alone + (since - alone) / 3, (since - alone) % 3};
  }

  std::int64_t turn_of(std::int64_t round) const { return phase_of(round).turn; }
  // Returns the length of an annealing, as a fraction of its full length.
  double share_of(std::int64_t round) const {
    return std::min(1.0, std::exp2(static_cast<double>(turn_of(round) - short_turns)));
  }
  bool is_short(std::int64_t round) const { return turn_of(round) < short_turns; }

  bool is_whole(std::int64_t round) const {
    const std::int64_t phase = phase_of(round).phase;
    return graph_.count() <= whole_first ? phase == 0 : phase == 2 && graph_.count() <= largest_patch;
  }

  Random random_for(std::int64_t round) const {
    return Random(options_.seed, (number_ << 40) + (static_cast<std::uint64_t>(round) << 10));
  }

  void greedy_step(Clock& clock) {
    const auto kinds = static_cast<std::int64_t>(options_.rules.size());
    const Rule rule = options_.rules[static_cast<std::size_t>(round_ % kinds)];
    const double noise = round_ < kinds ? 0 : 0.05 * static_cast<double>(round_ / kinds % 4);
    Random random = random_for(round_);
    // With a limit on tables, an order of more work may still be better.
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
    Order order = anneal_pieces(graph_, elite_[slot].order, piece, {0.5, 0.03, std::llround(600 * share_of(round_))},
                                options_.limit, random, clock);
    keep(slot, candidate(std::move(order), clock));
  }

  void whole_step(Clock& clock) {
    if (!ahead_.empty() && ahead_.front().round == round_) {
      // While this annealing is unfinished, the calling thread makes one for a later round.
      if (!is_ready(ahead_.front()) && clock.remaining() > 2 * last_counted_) add_ahead(clock, std::launch::deferred);
      while (!is_ready(ahead_.front(), between_looks)) clock.check();
      Ahead ahead = std::move(ahead_.front());
      ahead_.pop_front();
      last_counted_ = ahead.clock->counted();
      // If this annealing took longer than the remaining time, it is made again with that time as its limit.
      if (last_counted_ < clock.remaining()) {
        clock.count(last_counted_);
        keep(elite_size, ahead.candidate.get());
        return;
      }
    }
    Clock step_clock(clock, clock.remaining());
    keep(elite_size, anneal_whole(round_, step_clock));
    clock.count(step_clock.counted());
  }

  static bool is_ready(const Ahead& ahead, std::chrono::milliseconds patience = {}) {
    return ahead.candidate.wait_for(patience) == std::future_status::ready;
  }

  // Lets idle threads make the annealings of later rounds.
  void look_ahead(Clock& clock) {
    const int threads = std::min(options_.threads, most_threads);
    if (threads == 1 || !options_.anneal || graph_.count() > largest_patch) return;
    if (cost().largest > annealable || clock.counted() < worth_a_thread) return;
    auto idle =
        threads - 1 - std::count_if(ahead_.begin(), ahead_.end(), [](const Ahead& ahead) { return !is_ready(ahead); });
    for (; idle > 0 && ahead_.size() < most_ahead * static_cast<std::size_t>(threads) && !clock.expired(); --idle) {
      try {
        add_ahead(clock, std::launch::async);
      } catch (const std::system_error&) {  // the system has no more threads
        return;
      }
    }
  }

  void add_ahead(Clock& clock, std::launch policy) {
    std::int64_t round = std::max(round_, ahead_.empty() ? warm_up() : ahead_.back().round + 1);
    while (!is_whole(round) || is_short(round)) ++round;
    auto ahead_clock = std::make_unique<Clock>(clock, unbounded);
    auto candidate = std::async(
        policy, [this, round, &candidate_clock = *ahead_clock] { return anneal_whole(round, candidate_clock); });
    if (policy == std::launch::deferred) candidate.wait();
    ahead_.push_back({round, std::move(ahead_clock), std::move(candidate)});
  }

  Candidate anneal_whole(std::int64_t round, Clock& clock) const {
    Random random = random_for(round);
    const double length =
        is_short(round) ? share_of(round) : static_cast<double>(luby(turn_of(round) + 1 - short_turns));
    const Rule rule = options_.rules[random.below(static_cast<Vertex>(options_.rules.size()))];
    auto start = is_short(round) ? best() : *greedy(graph_, rule, 0.2, unbounded, random, clock);
    auto annealer = make_annealer({graph_, graph_.count(), std::move(start)}, options_.limit);
    const double sweeps = std::clamp(4e5 / graph_.count(), 200.0, 1000.0);
    annealer->anneal({1.0, 0.05, std::llround(sweeps * length)}, random, clock);
    return candidate(annealer->best(), clock);
  }

  Candidate candidate(Order order, Clock& clock) const {
    const EliminationTree tree = eliminate(graph_, order);
    clock.count(entry_seconds * static_cast<double>(order.size() + tree.members.size()));
    return {std::move(order), cost_of(graph_, tree)};
  }

  // Keeps an order among the elite orders. An order made from an elite order replaces that one if the new order is
  // better; a fresh order takes a free place, or replaces the worst elite order if the fresh one is better.
  void keep(std::size_t slot, Candidate candidate_order) {
    const auto ahead = [&](const Candidate& a, const Candidate& b) { return better(a.cost, b.cost, options_.limit); };
    if (slot == elite_size && elite_.size() == elite_size)
      slot = static_cast<std::size_t>(std::max_element(elite_.begin(), elite_.end(), ahead) - elite_.begin());
    if (slot >= elite_.size()) elite_.push_back(std::move(candidate_order));
    else if (ahead(candidate_order, elite_[slot])) elite_[slot] = std::move(candidate_order);
    best_ = static_cast<std::size_t>(std::min_element(elite_.begin(), elite_.end(), ahead) - elite_.begin());
  }

  Graph graph_;
  const Options& options_;
  std::uint64_t number_;
  std::int64_t round_ = 0;
  std::vector<Candidate> elite_;
  std::size_t best_ = 0;
  bool is_solved_ = false;
  std::deque<Ahead> ahead_;  // in the order of their rounds
  double last_counted_ = 0;  // counted time of the last annealing that was made ahead
};

}  // namespace

class Search::Work {
 public:
  Work(const Graph& graph, const Options& options) : graph_(graph), options_(options) {
    for (Vertex v = 0; v < graph_.count(); ++v) (graph_.size[v] > 1 ? several_ : single_).push_back(v);
    if (!single_.empty()) reduced_graph_ = induced(graph_, several_);
  }

  Order begin(Clock& clock) {
    Remainder rest(real());
    reduced_ = reduce(rest, clock);
    clock.check();
    if (rest.remaining() > 0) {
      auto [graph, name] = std::move(rest).graph();
      names_ = components(graph);
      for (std::size_t i = 0; i < names_.size(); ++i) {
        components_.emplace_back(names_.size() == 1 ? std::move(graph) : induced(graph, names_[i]), options_, i);
        for (Vertex& v : names_[i]) v = name[v];
      }
      for (auto& component : components_) component.step(clock);
    }
    return named(order());
  }

  Order improve(Clock& clock) {
    if (!components_.empty()) improve_parts(clock);
    Order order = this->order();
    components_.clear();  // ends annealings made ahead, which use the clock
    if (options_.anneal && real().count() > exact_size) {
      const Cost cost = cost_of(real(), order);
      if (cost.largest < annealable && is_worth_more(cost)) order = polish(std::move(order), run_seconds(cost), clock);
    }
    if (options_.anneal && real().count() <= exact_size && is_worth_more(cost_of(real(), order)))
      order = exact_order(real(), options_.limit);
    return named(std::move(order));
  }

 private:
  const Graph& real() const { return single_.empty() ? graph_ : reduced_graph_; }

  Order order() const {
    Order order = reduced_;
    for (std::size_t i = 0; i < components_.size(); ++i)
      for (Vertex v : components_[i].best()) order.push_back(names_[i][v]);
    return order;
  }

  Order named(Order order) const {
    for (Vertex& v : order) v = several_[v];
    // A variable of one value does not enlarge a table. Such variables come last, when few tables remain.
    order.insert(order.end(), single_.begin(), single_.end());
    return order;
  }

  // Returns the estimated time of a run, which limits the search; infinity: no such limit.
  double run_seconds(const Cost& cost) const {
    return options_.patience > 0 ? options_.patience * std::exp2(cost.total) : unbounded;
  }
  bool is_worth_more(const Cost& cost) const { return run_seconds(cost) > worth_a_search; }

  // Reductions keep the least width possible, but may add a little to the order's work. Annealing all pieces of the
  // tree removes this excess.
  Order polish(Order order, double run, Clock& whole) const {
    const double remaining = std::max(0.0, search_share * run - whole.counted());
    Clock clock(whole, std::min(0.02 + 0.05 * whole.seconds(), remaining));
    Random random(options_.seed);
    const std::int64_t sweeps = std::max<std::int64_t>(40, 10000 / real().count());
    order = anneal_pieces(real(), order, 192, {0.3, 0.003, sweeps}, options_.limit, random, clock);
    whole.count(clock.counted());
    return order;
  }

  // Gives each round to the component with the largest ratio of its work to its number of rounds so far.
  void improve_parts(Clock& clock) {
    double least = unbounded, improved = 0;
    for (auto& component : components_) component.solve(search_share / 2 * run_seconds(component.cost()), clock);
    for (std::int64_t round = static_cast<std::int64_t>(components_.size());
         options_.rounds < 0 || round < options_.rounds; ++round) {
      if (clock.expired() || std::ranges::all_of(components_, &ComponentSearch::is_solved)) return;
      double work = -std::numeric_limits<double>::infinity();
      for (const auto& component : components_) work = log2_sum(work, component.cost().total);
      if (work < least) {
        least = work;
        improved = clock.counted();
      }
      const double run = options_.patience * std::exp2(work);
      const double enough = std::min(search_share * run / 2, std::max(stagnation * improved, shortest_stagnation));
      if (options_.patience > 0 && (run < worth_a_search || clock.counted() > enough)) return;
      const auto urgency = [](const ComponentSearch& component) {
        return component.is_solved() ? -unbounded
                                     : component.cost().total - std::log2(static_cast<double>(component.rounds()));
      };
      std::max_element(components_.begin(), components_.end(), [&](const auto& a, const auto& b) {
        return urgency(a) < urgency(b);
      })->step(clock);
    }
  }

  const Graph& graph_;
  const Options& options_;
  std::vector<Vertex> several_, single_;  // variables of several values, and of one value
  Graph reduced_graph_;                   // the graph without variables of one value, if there are some
  Order reduced_;
  std::vector<std::vector<Vertex>> names_;  // vertices of each component
  std::vector<ComponentSearch> components_;
};

Search::Search(const Graph& graph, const Options& options) : work_(std::make_unique<Work>(graph, options)) {}
Search::~Search() = default;
Order Search::begin(Clock& clock) { return work_->begin(clock); }
Order Search::improve(Clock& clock) { return work_->improve(clock); }

double cells_of_part(std::span<const double> sizes, std::span<const std::int64_t> offsets,
                     std::span<const Vertex> members, std::span<const std::uint8_t> bits) {
  std::vector<Vertex> number(sizes.size(), none), scopes;
  std::vector<std::int64_t> starts{0};
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    if (!(bits[i / 8] >> (i % 8) & 1)) continue;
    scopes.insert(scopes.end(), members.begin() + offsets[i], members.begin() + offsets[i + 1]);
    starts.push_back(static_cast<std::int64_t>(scopes.size()));
  }
  for (const Vertex v : scopes) number[v] = 0;
  std::vector<double> domain_sizes;
  for (Vertex v = 0; v < sizes.size(); ++v) {
    if (number[v] == none) continue;
    number[v] = static_cast<Vertex>(domain_sizes.size());
    domain_sizes.push_back(sizes[v]);
  }
  for (Vertex& v : scopes) v = number[v];
  const Graph graph = moral_graph(std::move(domain_sizes), starts, scopes);
  Options quick;
  quick.rules = {Rule::min_fill};
  quick.anneal = false;
  quick.rounds = 0;
  Clock clock(unbounded);
  return std::exp2(cost_of(graph, Search(graph, quick).begin(clock)).total);
}

}  // namespace elimina::order
