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

constexpr int kBits = 12;                     // mini-buckets have at most 2^kBits cells
constexpr int kLeastBits = 4;                 // mini-buckets have at least 2^kLeastBits cells, however small the memory
constexpr std::size_t kTupleBytes = 64;       // bytes of a tuple under construction
constexpr std::size_t kLeastBytes = 1 << 23;  // bytes that slices and bounds may always take
constexpr std::size_t kFewSlices = 2;         // number of slices that are always allowed
constexpr std::size_t kFirstRows = 1 << 15;   // rows of a message in the first attempt
constexpr std::size_t kMostRows = 1 << 24;    // rows in the last attempt before the problem is sliced
constexpr Cost kRungs = 8;  // the problem is sliced if more attempts with the last one's gain were needed
constexpr std::size_t kSliceRows = 1 << 14;  // rows of a message in a slice; a slice that needs more is divided
constexpr double kSliceCells = 1e9;          // a slice is eliminated if its dense tables have at most this many cells
constexpr Cost kPatience = 50;               // cost shifting stops when a pass gains less than the gap divided by this
constexpr Cost kUnit = 1000;                 // costs are shifted in fractions of 1 / kUnit of the network's unit
constexpr std::uint64_t kVisits = 5000;      // visits of a local search for each value of a variable
constexpr std::uint64_t kMostVisits = 10'000'000;
constexpr int kOrders = 20;     // number of min-fill orders
constexpr double kPasses = 16;  // number of passes over a slice's cells that shifting is estimated to take

// A network with fewer values than the original, with its variables' and values' names in the original.
struct Part {
  Network network;
  std::vector<Var> name;
  std::vector<std::vector<int>> values;
  std::vector<int> fixed;  // values of original variables outside of the network, -1 for all others
};

Part narrow(const Part& part, const Network& shifted, const std::vector<std::vector<int>>& kept) {
  Part out{restrict(shifted, kept), {}, {}, part.fixed};
  absorb(out.network);
  for (Var v = 0; v < shifted.count(); ++v) {
    std::vector<int> values;
    for (int x : kept[v]) values.push_back(part.values[v][x]);
    if (values.size() == 1) {
      out.fixed[part.name[v]] = values[0];
    } else {
      out.name.push_back(part.name[v]);
      out.values.push_back(std::move(values));
    }
  }
  return out;
}

Part reorder(const Part& part, const std::vector<Var>& order) {
  Part out{renumber(part.network, order), {}, {}, part.fixed};
  for (Var v : order) {
    out.name.push_back(part.name[v]);
    out.values.push_back(part.values[v]);
  }
  return out;
}

class Solver {
 public:
  Solver(const Network& network, const Options& options) : options_(options), network_(network) { absorb(network_); }

  Report run() {
    const Network original = network_;
    const TimeLimit limit(options_.seconds);
    try {
      search();
    } catch (const Stopped&) {
      // An abandoned step has changed nothing, so bounds and solution hold.
    }
    report_.cost = report_.value.empty() ? forbidden : original.at(report_.value);
    report_.bound = lower_;
    return report_;
  }

 private:
  void search() {
    blame_.assign(network_.count(), 1);
    prepare();
    Part part{network_, std::vector<Var>(network_.count()), {}, std::vector<int>(network_.count(), -1)};
    std::iota(part.name.begin(), part.name.end(), 0);
    for (int s : network_.size) {
      part.values.emplace_back(s);
      std::iota(part.values.back().begin(), part.values.back().end(), 0);
    }
    solve_part(part);
  }

  double now() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  double timed(double& total, double since) const { return total += now() - since, now(); }

  bool goes_on() {
    const bool is_new = told_ != upper_ && !report_.value.empty();
    told_ = upper_;
    return now() < options_.seconds && options_.poll(lower_, upper_, is_new ? &report_.value : nullptr);
  }

  // Shifts costs in fractions of the network's unit, as fine as the tables' type allows for the remaining gap.
  void prepare() {
    const Network plain = network_;
    for (unit_ = kUnit;; unit_ = std::max<Cost>(1, never / 4 / (upper_ - lower_))) {
      network_ = plain;
      scale(network_, unit_);
      double t = now();
      Shifter shifter(network_);
      shifter.run(100, unit_ / 20);
      lower_ = (shifter.bound() + unit_ - 1) / unit_;
      t = timed(report_.shifting, t);
      if (report_.value.empty()) {
        find_incumbent(shifter);
        timed(report_.climbing, t);
        if (!goes_on()) throw Stopped{};
      }
      network_ = shifter.network();
      if (unit_ == 1 || upper_ == forbidden || (upper_ - lower_) * unit_ < never / 2) return;
    }
  }

  void find_incumbent(const Shifter& shifter) {
    std::vector<int> start;
    for (Var v = 0; v < network_.count(); ++v) {
      const auto& unary = shifter.unary(v);
      start.push_back(static_cast<int>(std::min_element(unary.begin(), unary.end()) - unary.begin()));
    }
    const Network shifted = shifter.network();
    network::LocalSearch local(shifted.view(), options_.seed);
    local.start(start);
    const auto values = std::accumulate(shifted.size.begin(), shifted.size.end(), std::uint64_t{0});
    local.run(std::min(kMostVisits, kVisits * values));
    const Cost cost = shifted.at(local.best());
    upper_ = network_.upper == forbidden ? forbidden : network_.upper / unit_;
    if (cost >= upper_ * unit_) return;
    upper_ = cost / unit_;
    report_.value = local.best();
  }

  void solve_part(const Part& part) {
    std::size_t rows = std::min(kFirstRows, options_.most_rows);
    // If cost shifting is tight, few tuples pass at its bound.
    Cost limit = lower_;
    open(part);
    while (lower_ < upper_ && goes_on()) {
      limit = std::clamp(limit, lower_, upper_ - 1);
      const Cost known = upper_, bound = lower_;
      const double began = work();
      const Attempt a = attempt(part, limit, rows, 512 * static_cast<std::uint64_t>(rows));
      lower_ = std::min(upper_, a.exact ? std::max(lower_, limit + 1) : std::max(lower_, a.bound));
      if (a.exact) {
        limit = upper_ - 1;
        continue;
      }
      // Slices alternate with attempts, so that neither starves the other.
      slice(work() + (work() - began));
      if (lower_ >= upper_ || (limit == lower_ && !a.ran) || (a.ran && rows >= std::min(kMostRows, options_.most_rows)))
        break;
      if (rows > kFirstRows && (upper_ - lower_) / kRungs > lower_ - bound) break;
      if (a.ran) rows = std::min(rows * 8, options_.most_rows);
      // A better incumbent justifies another attempt on the whole rest; otherwise the gap is too large.
      limit = upper_ < known ? upper_ - 1 : lower_ + (limit - lower_) / 4;
    }
    if (lower_ < upper_) slice(std::numeric_limits<double>::infinity());
  }

  struct Attempt {
    bool ran = false, exact = false;
    Cost bound = 0;
  };

  // Shifts, shrinks and eliminates with a limit on the rows of a message. Solutions above the cost limit are lost.
  Attempt attempt(const Part& part, Cost limit, std::size_t rows, std::uint64_t most_made) {
    Part left;
    if (!shrink(part, limit, left)) return {true, true, limit + 1};
    return eliminate_part(left, limit, rows, most_made);
  }

  bool shrink(const Part& part, Cost limit, Part& left) {
    double t = now();
    left = part;
    for (const Function& f : part.network.functions) shifted_ += kPasses * double(f.cost.size());
    for (int round = 0; round < 4; ++round) {
      Shifter shifter(left.network);
      shifter.set_limit(limit * unit_);
      shifter.run(30, std::max<Cost>(unit_ / 20, (limit * unit_ - left.network.constant) / kPatience));
      timed(report_.shifting, t);
      if (shifter.infeasible()) {
        if (shifter.blamed() >= 0) ++blame_[left.name[shifter.blamed()]];
        return false;
      }
      const Network shifted = shifter.network();
      auto kept = shifter.kept();
      const std::size_t before = std::accumulate(left.network.size.begin(), left.network.size.end(), std::size_t{0});
      Part next = narrow(left, shifted, kept);
      auto strong = std::vector<std::vector<int>>(next.network.count());
      for (Var v = 0; v < next.network.count(); ++v) {
        strong[v].resize(next.network.size[v]);
        std::iota(strong[v].begin(), strong[v].end(), 0);
      }
      const bool dropped = drop_dominated(next.network, strong);
      left = dropped ? narrow(next, next.network, strong) : std::move(next);
      const std::size_t after = std::accumulate(left.network.size.begin(), left.network.size.end(), std::size_t{0});
      t = now();
      if (!dropped || after * 10 > before * 9) break;
    }
    return true;
  }

  Attempt eliminate_part(const Part& left, Cost limit, std::size_t rows, std::uint64_t most_made) {
    double t = now();
    const Part part = reorder(left, min_fill(left.network, kOrders, options_.seed));
    Network network = part.network;
    network.upper = limit * unit_ + 1;
    if (network.upper - network.constant > never / 2) return {};
    const Tree tree = tables_in_tree(network);
    for (const Node& node : tree.nodes)
      if (tree.fields.bits(node.cluster) > 63) return {};
    const std::size_t most = std::max(kLeastBytes, memory() / 4);
    int bits = kBits;
    std::optional<Bounds> made;
    while (!(made = bound_tree(tree, bits, bits > kLeastBits ? most : SIZE_MAX))) bits -= 2;
    const Bounds& bounds = *made;
    t = timed(report_.bounding, t);
    if (bounds.total > tree.budget) return {true, true, limit + 1};
    Filter filter;
    filter.bits = bits;
    filter.most = rows;
    filter.most_made = most_made;
    const std::size_t held = open_bytes_ + bounds.bytes;
    filter.most_stored = (memory() - std::min(memory(), held)) / kTupleBytes;
    filter.goes_on = [this] { return goes_on(); };
    const Outcome out = filtered_elimination(tree, bounds, filter);
    timed(report_.eliminating, t);
    ++report_.eliminations;
    report_.made += out.made;
    report_.kept += out.kept;
    report_.bytes = std::max(report_.bytes, out.bytes);
    report_.largest = std::max(report_.largest, out.largest);
    const Cost found = out.value ? network.at(*out.value) / unit_ : limit + 1;
    if (out.value) take(part, *out.value, found);
    const Cost unseen =
        (network.constant + std::min(out.unseen, bounds.total > out.unseen ? bounds.total : out.unseen) + unit_ - 1) /
        unit_;
    if (out.unseen > tree.budget) return {true, true, limit + 1};
    return {true, false, std::min(limit + 1, std::min(unseen, found))};
  }

  void take(const Part& part, const std::vector<int>& value, Cost cost) {
    if (cost >= upper_) return;
    upper_ = cost;
    report_.value = part.fixed;
    for (std::size_t v = 0; v < value.size(); ++v) report_.value[part.name[v]] = part.values[v][value[v]];
  }

  // Counts work, not time, so that every run gives the same answer.
  double work() const { return double(report_.made) + shifted_; }

  std::size_t memory() const { return options_.most_rows * kTupleBytes; }

  static std::size_t bytes_of(const Part& part) {
    std::size_t bytes = 0;
    for (const Function& f : part.network.functions)
      bytes += sizeof(f) + f.scope.size() * (sizeof(Var) + sizeof(std::size_t)) + f.cost.size() * sizeof(Cost);
    return bytes;
  }

  void open(Part part) {
    open_bytes_ += bytes_of(part);
    open_.push_back(std::move(part));
  }

  bool is_crowded() const { return open_.size() > kFewSlices && open_bytes_ > std::max(kLeastBytes, memory() / 2); }

  // Divides the problem until the slices can be eliminated, or the limit on work is reached; a slice with too high a
  // bound is dropped.
  void slice(double until) {
    while (!open_.empty() && work() < until && !is_crowded() && goes_on()) {
      const Part part = std::move(open_.back());
      open_.pop_back();
      open_bytes_ -= bytes_of(part);
      ++report_.slices;
      Part left;
      if (!shrink(part, upper_ - 1, left)) continue;
      if (left.network.count() == 0) {
        take(left, {}, left.network.constant / unit_);
        continue;
      }
      if (cells(left.network) <= kSliceCells &&
          eliminate_part(left, upper_ - 1, std::min(kSliceRows, options_.most_rows), 64 * kSliceRows).exact)
        continue;
      const Var v = divide_on(left);
      std::vector<std::vector<int>> kept;
      for (int s : left.network.size) {
        kept.emplace_back(s);
        std::iota(kept.back().begin(), kept.back().end(), 0);
      }
      const int x = cheapest(left.network, v);
      std::erase(kept[v], x);
      open(narrow(left, left.network, kept));
      kept[v] = {x};
      open(narrow(left, left.network, kept));
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

  // Mean cost of each value of each variable in the functions.
  static std::vector<std::vector<double>> weights(const Network& network, double cap) {
    std::vector<std::vector<double>> out;
    for (int s : network.size) out.emplace_back(s, 0.0);
    for (const Function& f : network.functions) {
      for (int p = f.arity(); p-- > 0;) {
        const Var v = f.scope[p];
        for (std::size_t c = 0; c < f.cost.size(); ++c)
          out[v][c / f.stride[p] % network.size[v]] +=
              std::min(cap, static_cast<double>(f.cost[c])) / (static_cast<double>(f.cost.size()) / network.size[v]);
      }
    }
    return out;
  }

  Var divide_on(const Part& part) const {
    const Network& network = part.network;
    const auto weight = weights(network, static_cast<double>(upper_ * unit_ - network.constant));
    Var best = 0;
    double most = -1;
    for (Var v = 0; v < network.count(); ++v) {
      const double mean = std::accumulate(weight[v].begin(), weight[v].end(), 1.0) / network.size[v];
      const double score = mean * blame_[part.name[v]] / network.size[v];
      if (score > most) {
        most = score;
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
  Network network_;
  Report report_;
  std::vector<double> blame_;  // number of slices that each variable's costs closed
  std::vector<Part> open_;     // open slices
  std::size_t open_bytes_ = 0;
  double shifted_ = 0;  // cells that were shifted
  Cost unit_ = 1, upper_ = forbidden, lower_ = 0;
  Cost told_ = forbidden;  // upper bound of the last report
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

Report minimise(const Network& network, const Options& options) { return Solver(network, options).run(); }

}  // namespace elimina::filter
