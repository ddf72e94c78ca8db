#include "filter.hpp"

#include <chrono>
#include <limits>
#include <numeric>
#include <utility>

#include "dominance.hpp"
#include "elimination.hpp"
#include "network/local_search.hpp"
#include "shift.hpp"
#include "stop.hpp"

namespace elimina::filter {

namespace {

constexpr int kBits = 12;                // mini-buckets have at most 2^kBits cells
constexpr int kLeastBits = 4;            // the limit on cells never falls below 2^kLeastBits, however small the memory
constexpr std::size_t kTupleBytes = 64;  // bytes of a tuple under construction
constexpr std::size_t kLeastBytes = 1 << 23;  // bytes that slices and bounds may always take
constexpr std::size_t kFewSlices = 2;         // number of slices that are always allowed
constexpr std::size_t kFirstRows = 1 << 15;   // rows of a message in the first attempt
constexpr std::size_t kMostRows = 1 << 24;    // rows in the last attempt before the problem is sliced
constexpr Cost kRungs = 8;  // attempts end if more than this many, with the last one's gain, would be needed
constexpr std::size_t kSliceRows = 1 << 14;  // rows of a message in a slice; a slice that needs more is divided
constexpr double kSliceCells = 1e9;          // a slice is eliminated if its dense tables have at most this many cells
constexpr Cost kPatience = 50;               // cost shifting stops when a pass gains less than the gap divided by this
constexpr Cost kUnit = 1000;                 // costs are shifted in multiples of 1 / kUnit of the network's unit
constexpr std::uint64_t kVisits = 5000;      // visits of a local search for each value of a variable
constexpr std::uint64_t kMostVisits = 10'000'000;
constexpr int kOrders = 20;     // number of min-fill orders
constexpr double kPasses = 16;  // number of passes over a slice's cells that shifting is estimated to take

// A network with fewer values than the original one. `name`, `values`: numbers of its variables and of their values in
// the original network.
struct Subproblem {
  Network network;
  std::vector<Var> name;
  std::vector<std::vector<int>> values;
  std::vector<int> fixed;  // values of original variables outside of the network, -1 for all others
};

Subproblem narrow(const Subproblem& subproblem, const Network& shifted,
                  const std::vector<std::vector<int>>& remaining_values) {
  Subproblem out{restrict(shifted, remaining_values), {}, {}, subproblem.fixed};
  absorb(out.network);
  for (Var v = 0; v < shifted.count(); ++v) {
    std::vector<int> values;
    for (int x : remaining_values[v]) values.push_back(subproblem.values[v][x]);
    if (values.size() == 1) {
      out.fixed[subproblem.name[v]] = values[0];
    } else {
      out.name.push_back(subproblem.name[v]);
      out.values.push_back(std::move(values));
    }
  }
  return out;
}

Subproblem reorder(const Subproblem& subproblem, const std::vector<Var>& order) {
  Subproblem out{renumber(subproblem.network, order), {}, {}, subproblem.fixed};
  for (Var v : order) {
    out.name.push_back(subproblem.name[v]);
    out.values.push_back(subproblem.values[v]);
  }
  return out;
}

class Solver {
 public:
  Solver(const Network& network, const Options& options)
      : options_(options), original_(network), network_(network), best_(options.count) {
    absorb(network_);
  }

  Report run() {
    const TimeLimit limit(options_.seconds);
    try {
      search();
    } catch (const Stopped&) {
      // A step that a stop request interrupts changes neither the bounds nor the solutions, so both hold.
    }
    report_.solutions = best_.solutions();
    report_.bound = lower_;
    return report_;
  }

 private:
  void search() {
    blame_.assign(network_.count(), 1);
    prepare();
    Subproblem subproblem{network_, std::vector<Var>(network_.count()), {}, std::vector<int>(network_.count(), -1)};
    std::iota(subproblem.name.begin(), subproblem.name.end(), 0);
    for (int s : network_.size) {
      subproblem.values.emplace_back(s);
      std::iota(subproblem.values.back().begin(), subproblem.values.back().end(), 0);
    }
    solve_subproblem(subproblem);
  }

  double now() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  double timed(double& total, double since) const { return total += now() - since, now(); }

  bool goes_on() {
    const Solution* first = best_.solutions().empty() ? nullptr : &best_.solutions().front();
    const bool is_new = first && reported_ != first->cost;
    if (first) reported_ = first->cost;
    return now() < options_.seconds &&
           options_.poll(lower_, first ? first->cost : upper_, is_new ? &first->value : nullptr);
  }

  // Shifts costs in fractions of the network's unit. The fractions are as small as the number type of the tables allows
  // for the remaining gap.
  void prepare() {
    unit_ = kUnit;
    for (bool is_first = true;; is_first = false) {
      if (!is_first) {
        unit_ = std::max<Cost>(1, never / 4 / (upper_ - lower_));
        network_ = original_;
        absorb(network_);
      }
      // A copy of the tables may take a second, so a request to stop is obeyed between copies.
      check_stop();
      scale(network_, unit_);
      double t = now();
      Shifter shifter(network_);
      shifter.run(100, unit_ / 20);
      lower_ = (shifter.bound() + unit_ - 1) / unit_;
      t = timed(report_.shifting, t);
      if (is_first) {
        find_incumbent(shifter);
        timed(report_.climbing, t);
        if (!goes_on()) throw Stopped{};
      }
      network_ = shifter.network();
      if (unit_ == 1 || upper_ == forbidden || (upper_ - lower_) * unit_ < never / 2) return;
    }
  }

  void find_incumbent(const Shifter& shifter) {
    upper_ = original_.upper;
    if (options_.start.empty()) search_locally(shifter);
    else offer(options_.start);
    if (options_.count == 1) return;
    const auto touching = original_.touching();
    add_nearby(best_, original_.size, upper_, [&](std::vector<int>& value, Var v, std::vector<Cost>& costs) {
      original_.list_costs(value, v, touching[v], costs);
    });
    upper_ = std::min(upper_, best_.limit());
  }

  void search_locally(const Shifter& shifter) {
    std::vector<int> start;
    for (Var v = 0; v < network_.count(); ++v) {
      const auto& unary = shifter.unary(v);
      start.push_back(static_cast<int>(std::min_element(unary.begin(), unary.end()) - unary.begin()));
    }
    check_stop();
    const Network shifted = shifter.network();
    network::LocalSearch local(shifted.view(), options_.seed);
    local.start(start);
    const auto values = std::accumulate(shifted.size.begin(), shifted.size.end(), std::uint64_t{0});
    local.run(std::min(kMostVisits, kVisits * values));
    offer(local.best());
  }

  void solve_subproblem(const Subproblem& subproblem) {
    std::size_t rows = std::min(kFirstRows, options_.most_rows);
    // The first attempt takes the lower bound as its limit: if the bound is tight, few tuples pass.
    Cost limit = lower_;
    open(subproblem);
    while (lower_ < upper_ && goes_on()) {
      limit = std::clamp(limit, lower_, upper_ - 1);
      const Cost upper_before = upper_, bound = lower_;
      const double began = work();
      const Attempt a = attempt(subproblem, limit, rows, 512 * static_cast<std::uint64_t>(rows));
      lower_ = std::min(upper_, a.exact ? std::max(lower_, limit + 1) : std::max(lower_, a.bound));
      if (a.exact) {
        limit = upper_ - 1;
        continue;
      }
      // Slices alternate with attempts, and get as much work as the last attempt took.
      slice(work() + (work() - began));
      if (lower_ >= upper_ || (limit == lower_ && !a.ran) || (a.ran && rows >= std::min(kMostRows, options_.most_rows)))
        break;
      if (rows > kFirstRows && (upper_ - lower_) / kRungs > lower_ - bound) break;
      if (a.ran) rows = std::min(rows * 8, options_.most_rows);
      // After a better incumbent, the next attempt covers the whole gap again; otherwise its limit comes closer to the
      // lower bound.
      limit = upper_ < upper_before ? upper_ - 1 : lower_ + (limit - lower_) / 4;
    }
    if (lower_ < upper_) slice(std::numeric_limits<double>::infinity());
  }

  struct Attempt {
    bool ran = false, exact = false;
    Cost bound = 0;
  };

  // Shifts, shrinks and eliminates with a limit on the rows of a message. Solutions above the cost limit are lost.
  Attempt attempt(const Subproblem& subproblem, Cost limit, std::size_t rows, std::uint64_t most_made) {
    Subproblem reduced;
    if (!shrink(subproblem, limit, reduced)) return {true, true, limit + 1};
    return eliminate_subproblem(reduced, limit, rows, most_made);
  }

  bool shrink(const Subproblem& subproblem, Cost limit, Subproblem& reduced) {
    double t = now();
    check_stop();
    reduced = subproblem;
    for (const Function& f : subproblem.network.functions) shifted_ += kPasses * double(f.cost.size());
    for (int round = 0; round < 4; ++round) {
      Shifter shifter(reduced.network);
      shifter.set_limit(limit * unit_);
      shifter.run(30, std::max<Cost>(unit_ / 20, (limit * unit_ - reduced.network.constant) / kPatience));
      timed(report_.shifting, t);
      if (shifter.infeasible()) {
        if (shifter.blamed() >= 0) ++blame_[reduced.name[shifter.blamed()]];
        return false;
      }
      check_stop();
      const Network shifted = shifter.network();
      auto remaining_values = shifter.kept();
      const std::size_t before =
          std::accumulate(reduced.network.size.begin(), reduced.network.size.end(), std::size_t{0});
      Subproblem next = narrow(reduced, shifted, remaining_values);
      auto strong = std::vector<std::vector<int>>(next.network.count());
      for (Var v = 0; v < next.network.count(); ++v) {
        strong[v].resize(next.network.size[v]);
        std::iota(strong[v].begin(), strong[v].end(), 0);
      }
      // A dominated value is part of no better solution, but it may be part of the next best one.
      const bool dropped = options_.count == 1 && drop_dominated(next.network, strong);
      reduced = dropped ? narrow(next, next.network, strong) : std::move(next);
      const std::size_t after =
          std::accumulate(reduced.network.size.begin(), reduced.network.size.end(), std::size_t{0});
      t = now();
      if (!dropped || after * 10 > before * 9) break;
    }
    return true;
  }

  Attempt eliminate_subproblem(const Subproblem& reduced, Cost limit, std::size_t rows, std::uint64_t most_made) {
    double t = now();
    check_stop();
    const Subproblem subproblem = reorder(reduced, min_fill(reduced.network, kOrders, options_.seed));
    Network network = subproblem.network;
    network.upper = limit * unit_ + 1;
    if (network.upper - network.constant > never / 2) return {};
    const Tree tree = tables_in_tree(network);
    for (const Node& node : tree.nodes)
      if (tree.fields.bits(node.cluster) > 63) return {};
    const std::size_t max_bytes = std::max(kLeastBytes, memory() / 4);
    int bits = kBits;
    std::optional<Bounds> made;
    while (!(made = bound_tree(tree, bits, bits > kLeastBits ? max_bytes : SIZE_MAX))) bits -= 2;
    const Bounds& bounds = *made;
    t = timed(report_.bounding, t);
    if (bounds.total > tree.budget) return {true, true, limit + 1};
    Filter filter;
    filter.bits = bits;
    filter.max_rows = rows;
    filter.most_made = most_made;
    const std::size_t held_bytes = open_bytes_ + bounds.bytes;
    filter.most_stored = (memory() - std::min(memory(), held_bytes)) / kTupleBytes;
    filter.count = options_.count;
    filter.goes_on = [this] { return goes_on(); };
    const Outcome out = filtered_elimination(tree, bounds, filter);
    timed(report_.eliminating, t);
    ++report_.eliminations;
    report_.made += out.made;
    report_.kept += out.kept;
    report_.bytes = std::max(report_.bytes, out.bytes);
    report_.largest = std::max(report_.largest, out.largest);
    const Cost cost = out.values.empty() ? limit + 1 : network.at(out.values.front()) / unit_;
    for (const std::vector<int>& value : out.values) offer_part(subproblem, value);
    const Cost unseen =
        (network.constant + std::min(out.unseen, bounds.total > out.unseen ? bounds.total : out.unseen) + unit_ - 1) /
        unit_;
    if (out.unseen > tree.budget) return {true, true, limit + 1};
    return {true, false, std::min(limit + 1, std::min(unseen, cost))};
  }

  // Keeps a solution if it is one of the best.
  void offer(const std::vector<int>& value) {
    const Cost cost = original_.at(value);
    if (cost < upper_ && best_.offer(cost, value)) upper_ = std::min(upper_, best_.limit());
  }

  // Keeps a solution of a subproblem, completed by the fixed values, if it is one of the best.
  void offer_part(const Subproblem& subproblem, const std::vector<int>& value) {
    std::vector<int> whole = subproblem.fixed;
    for (std::size_t v = 0; v < value.size(); ++v) whole[subproblem.name[v]] = subproblem.values[v][value[v]];
    offer(whole);
  }

  // Counts work, not time, so that every run gives the same answer.
  double work() const { return double(report_.made) + shifted_; }

  std::size_t memory() const { return options_.most_rows * kTupleBytes; }

  static std::size_t bytes_of(const Subproblem& subproblem) {
    std::size_t bytes = 0;
    for (const Function& f : subproblem.network.functions)
      bytes += sizeof(f) + f.scope.size() * (sizeof(Var) + sizeof(std::size_t)) + f.cost.size() * sizeof(Cost);
    return bytes;
  }

  void open(Subproblem subproblem) {
    open_bytes_ += bytes_of(subproblem);
    open_.push_back(std::move(subproblem));
  }

  bool is_crowded() const { return open_.size() > kFewSlices && open_bytes_ > std::max(kLeastBytes, memory() / 2); }

  // Divides open subproblems into slices until the slices can be eliminated, or the limit on work is reached. A slice
  // with too high a bound is dropped.
  void slice(double until) {
    while (!open_.empty() && work() < until && !is_crowded() && goes_on()) {
      const Subproblem subproblem = std::move(open_.back());
      open_.pop_back();
      open_bytes_ -= bytes_of(subproblem);
      ++report_.slices;
      Subproblem reduced;
      if (!shrink(subproblem, upper_ - 1, reduced)) continue;
      if (reduced.network.count() == 0) {
        offer_part(reduced, {});
        continue;
      }
      if (cells(reduced.network) <= kSliceCells &&
          eliminate_subproblem(reduced, upper_ - 1, std::min(kSliceRows, options_.most_rows), 64 * kSliceRows).exact)
        continue;
      const Var v = divide_on(reduced);
      std::vector<std::vector<int>> remaining_values;
      for (int s : reduced.network.size) {
        remaining_values.emplace_back(s);
        std::iota(remaining_values.back().begin(), remaining_values.back().end(), 0);
      }
      const int x = cheapest(reduced.network, v);
      std::erase(remaining_values[v], x);
      open(narrow(reduced, reduced.network, remaining_values));
      remaining_values[v] = {x};
      open(narrow(reduced, reduced.network, remaining_values));
    }
    if (open_.empty()) lower_ = upper_;
  }

  static double cells(const Network& network) {
    const Network ordered = renumber(network, min_fill(network, 1, 1));
    const plan::Tree tree = plan_tree(ordered);
    double total = 0;
    for (int b = 0; b < ordered.count(); ++b) {
      double cluster = ordered.size[b];
      for (const Var v : tree.separators[b]) cluster *= ordered.size[v];
      total += cluster;
    }
    return total;
  }

  // Returns, for each value of each variable, the sum of its mean costs in the functions; single costs count as at most
  // `cap`.
  static std::vector<std::vector<double>> weights(const Network& network, double cap) {
    std::vector<std::vector<double>> out;
    for (int s : network.size) out.emplace_back(s, 0.0);
    for (const Function& f : network.functions) {
      for (int p = f.arity(); p-- > 0;) {
        check_stop();
        const Var v = f.scope[p];
        for (std::size_t c = 0; c < f.cost.size(); ++c)
          out[v][c / f.stride[p] % network.size[v]] +=
              std::min(cap, static_cast<double>(f.cost[c])) / (static_cast<double>(f.cost.size()) / network.size[v]);
      }
    }
    return out;
  }

  Var divide_on(const Subproblem& subproblem) const {
    const Network& network = subproblem.network;
    const auto weight = weights(network, static_cast<double>(upper_ * unit_ - network.constant));
    Var best = 0;
    double best_score = -1;
    for (Var v = 0; v < network.count(); ++v) {
      const double mean = std::accumulate(weight[v].begin(), weight[v].end(), 1.0) / network.size[v];
      const double score = mean * blame_[subproblem.name[v]] / network.size[v];
      if (score > best_score) {
        best_score = score;
        best = v;
      }
    }
    return best;
  }

  int cheapest(const Network& network, Var v) const {
    const auto weight = weights(network, static_cast<double>(upper_ * unit_ - network.constant))[v];
    return static_cast<int>(std::min_element(weight.begin(), weight.end()) - weight.begin());
  }

  Options options_;
  const Network& original_;
  Network network_;
  Report report_;
  std::vector<double> blame_;     // 1 + number of subproblems that each variable's costs closed
  std::vector<Subproblem> open_;  // open slices
  std::size_t open_bytes_ = 0;
  double shifted_ = 0;  // number of cells that cost shifting visited
  Cost unit_ = 1, upper_ = forbidden, lower_ = 0;
  BestSolutions best_;
  Cost reported_ = forbidden;  // best cost in the last report
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

Report minimise(const Network& network, const Options& options) { return Solver(network, options).run(); }

}  // namespace elimina::filter
