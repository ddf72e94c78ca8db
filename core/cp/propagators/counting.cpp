// Numbers of occurrences of values, and numbers of different values.
#include <algorithm>
#include <map>
#include <memory>
#include <numeric>

#include "cp/constraint_call.hpp"
#include "global_cardinality.hpp"

namespace elimina::cp {

namespace {

// The number of variables with a value. Variables that have the value, or cannot have it, are swapped to the front.
class CountOfValue final : public Propagator {
 public:
  CountOfValue(Views xs, Value value, View count)
      : Propagator(Priority::linear), xs_(std::move(xs)), value_(value), count_(count) {
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
    const bool excludes_value = d.hi(count_) == sure, requires_value = d.lo(count_) == sure + open;
    if (!excludes_value && !requires_value) return repeats_ ? Outcome::again : Outcome::fixpoint;
    for (std::size_t i = first; i < xs_.size(); ++i)
      if (!(excludes_value ? d.remove(xs_[i], value_) : d.assign(xs_[i], value_))) return Outcome::failed;
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
  CountOfVariable(Views xs, View y, View count)
      : Propagator(Priority::quadratic), xs_(std::move(xs)), y_(y), count_(count) {}

  void attach(Engine& engine) override {
    engine.subscribe(*this, count_, kBounds);
    engine.subscribe(*this, y_, kDomain);
    for (const View x : xs_) engine.subscribe(*this, x, kDomain);
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    if (d.hi(y_) - d.lo(y_) > kListed)
      return d.set_lo(count_, 0) && d.set_hi(count_, static_cast<Value>(xs_.size())) ? Outcome::again : Outcome::failed;
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
    const bool excludes_value = d.hi(count_) == sure, requires_value = d.lo(count_) == possible;
    for (const View x : xs_) {
      if (d.fixed(x) || !d.has(x, value)) continue;
      if ((excludes_value && !d.remove(x, value)) || (requires_value && !d.assign(x, value))) return Outcome::failed;
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
    assigned_.clear();
    Value open = 0;
    for (const View x : xs_)
      if (d.fixed(x)) assigned_.push_back(d.lo(x));
    std::sort(assigned_.begin(), assigned_.end());
    assigned_.erase(std::unique(assigned_.begin(), assigned_.end()), assigned_.end());
    bool elsewhere = false;
    for (const View x : xs_) {
      open += !d.fixed(x);
      elsewhere = elsewhere || !has_taken(d, x);
    }
    const Value sure = static_cast<Value>(assigned_.size());
    if (!d.set_lo(count_, sure + elsewhere) || !d.set_hi(count_, sure + open)) return Outcome::failed;
    if (open == 0) return Outcome::entailed;
    return d.hi(count_) > sure || keep_taken(d) ? Outcome::again : Outcome::failed;
  }

 private:
  bool has_taken(const Domains& d, View x) const {
    return std::any_of(assigned_.begin(), assigned_.end(), [&](Value value) { return d.has(x, value); });
  }

  bool keep_taken(Domains& d) const {
    if (assigned_.empty()) return false;
    bool alive = true;
    for (const View x : xs_) {
      if (!d.set_lo(x, assigned_.front()) || !d.set_hi(x, assigned_.back())) return false;
      if (d.hi(x) - d.lo(x) > kListed) continue;
      d.each(x, [&](Value value) {
        if (alive && !std::binary_search(assigned_.begin(), assigned_.end(), value)) alive = d.remove(x, value);
      });
    }
    return alive;
  }

  Views xs_;
  View count_;
  Values assigned_;
};

// Posts counts of values. Counting single values and summing the counts is cheap and mostly sufficient; the flow-based
// propagator is posted last.
void post_counts_of_values(Engine& engine, const Views& xs, const Values& values, const Views& counts, bool closed) {
  for (std::size_t k = 0; k < values.size(); ++k) engine.post(std::make_unique<CountOfValue>(xs, values[k], counts[k]));
  post_linear(engine, closed ? Relation::equal : Relation::at_most, Values(counts.size(), 1), counts,
              static_cast<Value>(xs.size()));
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
  if (GlobalCardinality::fits(xs, sorted)) engine.post(std::make_unique<GlobalCardinality>(xs, sorted, theirs));
}

// Posts the counts of several values. Arguments: variables, values, their counts.
void post_cardinality(ConstraintCall& call, bool closed) {
  call.same_length(1, 2);
  const Values listed = call.values(1);
  const Views counts = call.views(2);
  // A value listed twice is counted once, and both counts are equal.
  std::map<Value, View> by_value;
  for (std::size_t i = 0; i < listed.size(); ++i)
    if (const auto [first, is_new] = by_value.emplace(listed[i], counts[i]); !is_new)
      post_equal(call.engine(), first->second, counts[i]);
  Values values;
  Views distinct;
  for (const auto& [value, count] : by_value) {
    values.push_back(value);
    distinct.push_back(count);
  }
  post_counts_of_values(call.engine(), call.views(0), values, distinct, closed);
}

}  // namespace

// Posts the count of one value. Arguments: variables, the value, its count.
void post_count(ConstraintCall& call) {
  const Views xs = call.views(0);
  const View y = call.view(1), count = call.view(2);
  const Domains& d = call.engine().domains();
  if (d.fixed(y)) call.engine().post(std::make_unique<CountOfValue>(xs, d.lo(y), count));
  else call.engine().post(std::make_unique<CountOfVariable>(xs, y, count));
}

void post_open_cardinality(ConstraintCall& call) { post_cardinality(call, false); }
void post_closed_cardinality(ConstraintCall& call) { post_cardinality(call, true); }

// Posts the number of different values that occur. Arguments: this number, variables.
void post_distinct_values(ConstraintCall& call) {
  call.engine().post(std::make_unique<DistinctValues>(call.views(1), call.view(0)));
}

}  // namespace elimina::cp
