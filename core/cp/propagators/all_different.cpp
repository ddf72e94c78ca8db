// AllDifferent by values and by bounds.
#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>

#include "cp/constraint_call.hpp"
#include "cp/propagators/matching.hpp"

namespace elimina::cp {

namespace {

// AllDifferent by values: removes the value of each fixed variable from the domains of the others, unless the value is
// the exception. Processed variables are swapped to the front.
class DifferentByValue final : public Propagator {
 public:
  DifferentByValue(Views xs, std::optional<Value> except)
      : Propagator(Priority::linear), xs_(std::move(xs)), except_(except) {
    order_.resize(xs_.size());
    std::iota(order_.begin(), order_.end(), 0);
    positions_ = order_;
    repeats_ = repeats(xs_);
  }

  void attach(Engine& engine) override {
    done_ = engine.trail().make(1, 0);
    for (std::size_t i = 0; i < xs_.size(); ++i) engine.subscribe(*this, xs_[i], kFix, static_cast<int>(i));
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    fixed_.clear();
    for (const int i : touched)
      if (d.fixed(xs_[static_cast<std::size_t>(i)])) fixed_.push_back(static_cast<std::size_t>(i));
    std::size_t processed = static_cast<std::size_t>(engine.trail().get(done_));
    for (std::size_t k = 0; k < fixed_.size(); ++k)
      if (!remove_value_of(d, fixed_[k], processed)) return Outcome::failed;
    engine.trail().set(done_, processed);
    if (repeats_) return Outcome::again;
    return processed == xs_.size() ? Outcome::entailed : Outcome::fixpoint;
  }

 private:
  bool remove_value_of(Domains& d, std::size_t i, std::size_t& processed) {
    if (positions_[i] < processed) return true;
    const Value value = d.lo(xs_[i]);
    swap(positions_[i], processed++);
    if (value == except_) return true;
    for (std::size_t p = processed; p < order_.size(); ++p) {
      const std::size_t other = order_[p];
      const bool was_fixed = d.fixed(xs_[other]);
      if (!d.remove(xs_[other], value)) return false;
      if (!was_fixed && d.fixed(xs_[other])) fixed_.push_back(other);
    }
    return true;
  }

  void swap(std::size_t p, std::size_t q) {
    std::swap(order_[p], order_[q]);
    positions_[order_[p]] = p;
    positions_[order_[q]] = q;
  }

  Views xs_;
  std::optional<Value> except_;
  bool repeats_;
  std::vector<std::size_t> order_, positions_, fixed_;
  std::size_t done_ = 0;
};

// AllDifferent by bounds (Lopez-Ortiz, Quimper, Tromp and van Beek, IJCAI 2003): finds Hall intervals by path
// compression.
class DifferentByBounds final : public Propagator {
 public:
  explicit DifferentByBounds(Views xs) : Propagator(Priority::quadratic), xs_(std::move(xs)) {
    const std::size_t n = xs_.size();
    for (auto* array : {&lo_, &hi_}) array->resize(n);
    for (auto* array : {&by_lo_, &by_hi_, &lo_rank_, &hi_rank_}) array->resize(n);
    std::iota(by_lo_.begin(), by_lo_.end(), 0);
    std::iota(by_hi_.begin(), by_hi_.end(), 0);
    bounds_.resize(2 * n + 2);
    for (auto* array : {&tree_, &hall_}) array->resize(2 * n + 2);
    slack_.resize(2 * n + 2);
  }

  void attach(Engine& engine) override {
    for (const View x : xs_) engine.subscribe(*this, x, kBounds);
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    for (const bool mirrored : {false, true}) {
      for (std::size_t i = 0; i < xs_.size(); ++i) {
        lo_[i] = mirrored ? -d.hi(xs_[i]) : d.lo(xs_[i]);
        hi_[i] = mirrored ? -d.lo(xs_[i]) : d.hi(xs_[i]);
      }
      rank();
      if (!raise()) return Outcome::failed;
      for (std::size_t i = 0; i < xs_.size(); ++i)
        if (!(mirrored ? d.set_hi(xs_[i], -lo_[i]) : d.set_lo(xs_[i], lo_[i]))) return Outcome::failed;
    }
    return Outcome::again;
  }

 private:
  using Indices = std::vector<std::size_t>;

  // Sorts all distinct bounds, and finds the positions of each variable's bounds among them.
  void rank() {
    std::sort(by_lo_.begin(), by_lo_.end(), [&](std::size_t a, std::size_t b) { return lo_[a] < lo_[b]; });
    std::sort(by_hi_.begin(), by_hi_.end(), [&](std::size_t a, std::size_t b) { return hi_[a] < hi_[b]; });
    const std::size_t n = xs_.size();
    Value last = lo_[by_lo_[0]] - 2;
    bounds_[0] = last;
    count_ = 0;
    for (std::size_t i = 0, k = 0; k < n;) {
      const bool is_lo = i < n && lo_[by_lo_[i]] <= hi_[by_hi_[k]] + 1;
      const Value bound = is_lo ? lo_[by_lo_[i]] : hi_[by_hi_[k]] + 1;
      if (bound != last) bounds_[++count_] = last = bound;
      if (is_lo) lo_rank_[by_lo_[i++]] = count_;
      else hi_rank_[by_hi_[k++]] = count_;
    }
    bounds_[count_ + 1] = bounds_[count_] + 2;
  }

  static void point(Indices& links, std::size_t from, std::size_t to, std::size_t target) {
    for (std::size_t i = from; i != to;) {
      const std::size_t next = links[i];
      links[i] = target;
      i = next;
    }
  }
  static std::size_t climb(const Indices& links, std::size_t i) {
    while (links[i] > i) i = links[i];
    return i;
  }

  // Raises lower bounds; returns false if an interval has more variables than values.
  bool raise() {
    for (std::size_t i = 1; i <= count_ + 1; ++i) {
      tree_[i] = hall_[i] = i - 1;
      slack_[i] = bounds_[i] - bounds_[i - 1];
    }
    for (const std::size_t i : by_hi_) {
      const std::size_t x = lo_rank_[i], y = hi_rank_[i];
      std::size_t z = climb(tree_, x + 1);
      const std::size_t j = tree_[z];
      if (--slack_[z] == 0) {
        tree_[z] = z + 1;
        z = climb(tree_, z + 1);
        tree_[z] = j;
      }
      point(tree_, x + 1, z, z);
      if (slack_[z] < bounds_[z] - bounds_[y]) return false;
      if (hall_[x] > x) {
        const std::size_t w = climb(hall_, hall_[x]);
        lo_[i] = bounds_[w];
        point(hall_, x, w, w);
      }
      if (slack_[z] == bounds_[z] - bounds_[y]) {
        point(hall_, hall_[y], j - 1, y);
        hall_[y] = j - 1;
      }
    }
    return true;
  }

  Views xs_;
  Values lo_, hi_, bounds_, slack_;
  Indices by_lo_, by_hi_, lo_rank_, hi_rank_, tree_, hall_;
  std::size_t count_ = 0;
};

}  // namespace

void post_all_different(Engine& engine, const Views& xs, Consistency consistency, Side side) {
  if (xs.size() < 2) return;
  if (consistency == Consistency::domain && Matching::fits(engine.domains(), xs))
    return Matching::post(engine, xs, side);
  engine.post(std::make_unique<DifferentByValue>(xs, std::nullopt));
  if (consistency != Consistency::value) engine.post(std::make_unique<DifferentByBounds>(xs));
}

void post_all_different_except_0(ConstraintCall& call) {
  call.engine().post(std::make_unique<DifferentByValue>(call.views(0), Value{0}));
}

}  // namespace elimina::cp
