// Occurrences of values, numbers of different values, and sums of sizes in bins.
#include <algorithm>
#include <memory>
#include <numeric>

#include "cp/constraints.hpp"
#include "value_flow.hpp"

namespace elimina::cp {

namespace {

// Variables that have the value, or cannot have it, are swapped to the front.
class CountOfValue final : public Propagator {
 public:
  CountOfValue(Views xs, Value value, View count) : Propagator(Priority::linear), xs_(std::move(xs)), value_(value), count_(count) {
    Views all = xs_;
    all.push_back(count_);
    repeats_ = repeats(all);
  }

  void attach(Engine& engine) override {
    done_ = engine.trail().make(2, 0);
    engine.subscribe(*this, count_, kBounds);
    for (const View x : xs_) engine.subscribe(*this, x, kDomain);
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    Trail& trail = engine.trail();
    auto first = static_cast<std::size_t>(trail.get(done_));
    Value sure = trail.number(done_ + 1);
    for (std::size_t i = first; i < xs_.size(); ++i) {
      const bool has = d.has(xs_[i], value_);
      if (has && !d.fixed(xs_[i])) continue;
      sure += has;
      std::swap(xs_[i], xs_[first++]);
    }
    trail.set(done_, first);
    trail.set_number(done_ + 1, sure);
    const Value open = static_cast<Value>(xs_.size() - first);
    if (!d.set_lo(count_, sure) || !d.set_hi(count_, sure + open)) return Outcome::failed;
    if (open == 0) return Outcome::entailed;
    const bool none = d.hi(count_) == sure, all = d.lo(count_) == sure + open;
    if (!none && !all) return repeats_ ? Outcome::again : Outcome::fixpoint;
    for (std::size_t i = first; i < xs_.size(); ++i)
      if (!(none ? d.remove(xs_[i], value_) : d.assign(xs_[i], value_))) return Outcome::failed;
    return repeats_ ? Outcome::again : Outcome::entailed;
  }

 private:
  Views xs_;
  Value value_;
  View count_;
  bool repeats_;
  std::size_t done_ = 0;
};

class CountOfVariable final : public Propagator {
 public:
  CountOfVariable(Views xs, View y, View count) : Propagator(Priority::quadratic), xs_(std::move(xs)), y_(y), count_(count) {}

  void attach(Engine& engine) override {
    engine.subscribe(*this, count_, kBounds);
    engine.subscribe(*this, y_, kDomain);
    for (const View x : xs_) engine.subscribe(*this, x, kDomain);
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    if (d.hi(y_) - d.lo(y_) > kListed) return d.set_lo(count_, 0) && d.set_hi(count_, static_cast<Value>(xs_.size())) ? Outcome::again : Outcome::failed;
    Value lo = static_cast<Value>(xs_.size()), hi = 0;
    bool alive = true;
    d.each(y_, [&](Value value) {
      const auto [sure, possible] = limits(d, value);
      if (sure > d.hi(count_) || possible < d.lo(count_)) {
        alive = alive && d.remove(y_, value);
        return;
      }
      lo = std::min(lo, sure);
      hi = std::max(hi, possible);
    });
    if (!alive || !d.set_lo(count_, lo) || !d.set_hi(count_, hi)) return Outcome::failed;
    return d.fixed(y_) ? with_value(d, d.lo(y_)) : Outcome::again;
  }

 private:
  std::pair<Value, Value> limits(const Domains& d, Value value) const {
    Value sure = 0, possible = 0;
    for (const View x : xs_) {
      const bool has = d.has(x, value);
      possible += has;
      sure += has && d.fixed(x);
    }
    return {sure, possible};
  }

  Outcome with_value(Domains& d, Value value) {
    const auto [sure, possible] = limits(d, value);
    const bool none = d.hi(count_) == sure, all = d.lo(count_) == possible;
    for (const View x : xs_) {
      if (d.fixed(x) || !d.has(x, value)) continue;
      if ((none && !d.remove(x, value)) || (all && !d.assign(x, value))) return Outcome::failed;
    }
    return Outcome::again;
  }

  Views xs_;
  View y_, count_;
};

class DistinctValues final : public Propagator {
 public:
  DistinctValues(Views xs, View count) : Propagator(Priority::quadratic), xs_(std::move(xs)), count_(count) {}

  void attach(Engine& engine) override {
    engine.subscribe(*this, count_, kBounds);
    for (const View x : xs_) engine.subscribe(*this, x, kFix);
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    taken_.clear();
    Value open = 0;
    for (const View x : xs_)
      if (d.fixed(x)) taken_.push_back(d.lo(x));
    std::sort(taken_.begin(), taken_.end());
    taken_.erase(std::unique(taken_.begin(), taken_.end()), taken_.end());
    bool elsewhere = false;
    for (const View x : xs_) {
      open += !d.fixed(x);
      elsewhere = elsewhere || !has_taken(d, x);
    }
    const Value sure = static_cast<Value>(taken_.size());
    if (!d.set_lo(count_, sure + elsewhere) || !d.set_hi(count_, sure + open)) return Outcome::failed;
    if (open == 0) return Outcome::entailed;
    return d.hi(count_) > sure || keep_taken(d) ? Outcome::again : Outcome::failed;
  }

 private:
  bool has_taken(const Domains& d, View x) const {
    return std::any_of(taken_.begin(), taken_.end(), [&](Value value) { return d.has(x, value); });
  }

  bool keep_taken(Domains& d) const {
    if (taken_.empty()) return false;
    bool alive = true;
    for (const View x : xs_) {
      if (!d.set_lo(x, taken_.front()) || !d.set_hi(x, taken_.back())) return false;
      if (d.hi(x) - d.lo(x) > kListed) continue;
      d.each(x, [&](Value value) {
        if (alive && !std::binary_search(taken_.begin(), taken_.end(), value)) alive = d.remove(x, value);
      });
    }
    return alive;
  }

  Views xs_;
  View count_;
  Values taken_;
};

}  // namespace

void post_count(Engine& engine, const Views& xs, View y, View count) {
  const Domains& d = engine.domains();
  if (d.fixed(y)) engine.post(std::make_unique<CountOfValue>(xs, d.lo(y), count));
  else engine.post(std::make_unique<CountOfVariable>(xs, y, count));
}

// Single counts and their sum are cheap, and mostly enough; the flow comes last.
void post_cardinality(Engine& engine, const Views& xs, const Values& values, const Views& counts, bool closed) {
  for (std::size_t k = 0; k < values.size(); ++k) engine.post(std::make_unique<CountOfValue>(xs, values[k], counts[k]));
  post_linear(engine, closed ? Relation::equal : Relation::at_most, Values(counts.size(), 1), counts, static_cast<Value>(xs.size()));
  if (closed)
    for (const View x : xs) post_member(engine, x, values);
  if (xs.size() < 2 || values.empty()) return;
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  Values sorted;
  Views theirs;
  for (const std::size_t k : order) {
    sorted.push_back(values[k]);
    theirs.push_back(counts[k]);
  }
  if (ValueFlow::fits(xs, sorted)) engine.post(std::make_unique<ValueFlow>(xs, sorted, theirs));
}

void post_distinct_values(Engine& engine, const Views& xs, View count) { engine.post(std::make_unique<DistinctValues>(xs, count)); }

}  // namespace elimina::cp
