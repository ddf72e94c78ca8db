// Sums of coefficients times variables. Fixed variables are swapped to the front, and their part of the sum is kept. If
// every variable has two values, a call visits only the variables fixed since the last call. A dive to a solution then
// takes linear time in the number of terms.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>

#include "cp/constraints.hpp"

namespace elimina::cp {

namespace {

struct Term {
  Value factor;
  int var;
  int position = 0;  // position of its subscription
  Value least = 0;   // least value of factor * variable when the propagator was attached
};

class Linear final : public Propagator {
 public:
  Linear(Relation relation, std::vector<Term> terms, Value bound, Control control)
      : Propagator(terms.size() <= 3 ? Priority::ternary : Priority::linear), relation_(relation),
        terms_(std::move(terms)), bound_(bound), control_(control) {}

  void attach(Engine& engine) override {
    done_ = engine.trail().make(4, 0);
    control_.attach(engine, *this);
    const bool always = control_.mode == Control::Mode::always;
    begin(engine, !always || relation_ != Relation::at_most);
    for (const Term& t : terms_) {
      Events events = kBounds;
      if (always && relation_ == Relation::different) events = kFix;
      if (always && relation_ == Relation::at_most) events = t.factor > 0 ? kLower : kUpper;
      engine.subscribe(*this, View{t.var}, events, binary_ ? t.position : -1);
    }
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    if (control_.idle(d)) return Outcome::entailed;
    sum_up(engine);
    scanned_ = false;
    const Outcome outcome = compare(d);
    // The engine does not tell a propagator about its own changes, so terms fixed in this call are counted here.
    if (binary_ && scanned_ && outcome != Outcome::failed && outcome != Outcome::entailed) count_all(engine);
    return outcome;
  }

 private:
  Outcome compare(Domains& d) {
    switch (relation_) {
      case Relation::at_most: return at_most(d);
      case Relation::equal: return equal(d, true);
      default: return equal(d, false);
    }
  }

  Value lo(const Domains& d, const Term& t) const { return t.factor * (t.factor > 0 ? d.lo(t.var) : d.hi(t.var)); }
  Value hi(const Domains& d, const Term& t) const { return t.factor * (t.factor > 0 ? d.hi(t.var) : d.lo(t.var)); }

  // Stores the least value of each term, and the largest width of a term. If `calls_for_all` (the propagator is called
  // when any term is fixed) and all variables have two neighbouring values, also sums the free terms.
  void begin(Engine& engine, bool calls_for_all) {
    const Domains& d = engine.domains();
    binary_ = calls_for_all;
    for (std::size_t i = 0; i < terms_.size(); ++i) {
      Term& t = terms_[i];
      t.position = static_cast<int>(i);
      t.least = lo(d, t);
      binary_ = binary_ && d.hi(t.var) - d.lo(t.var) == 1;
      widest_ = std::max(widest_, hi(d, t) - lo(d, t));
    }
    if (!binary_) return;
    for (std::size_t i = 0; i < terms_.size(); ++i) index_of_.push_back(i);
    sum_free(d);
    engine.trail().set_number(done_ + 2, lo_);
    engine.trail().set_number(done_ + 3, hi_);
  }

  void sum_up(Engine& engine) {
    if (!binary_) return sum_all(engine);
    load(engine.trail());
    for (const int position : touched) count(engine.domains(), index_of_[static_cast<std::size_t>(position)]);
    save(engine.trail());
    rest_ = bound_ - fixed_;
  }

  void count_all(Engine& engine) {
    load(engine.trail());
    for (std::size_t i = first_; i < terms_.size(); ++i) count(engine.domains(), i);
    save(engine.trail());
  }

  void load(const Trail& trail) {
    first_ = static_cast<std::size_t>(trail.get(done_));
    fixed_ = trail.number(done_ + 1), lo_ = trail.number(done_ + 2), hi_ = trail.number(done_ + 3);
  }

  void save(Trail& trail) const {
    trail.set(done_, first_);
    trail.set_number(done_ + 1, fixed_);
    trail.set_number(done_ + 2, lo_);
    trail.set_number(done_ + 3, hi_);
  }

  // Moves the two-valued term at an index to the fixed ones, if its variable is fixed.
  void count(const Domains& d, std::size_t index) {
    const Term t = terms_[index];
    if (index < first_ || !d.fixed(t.var)) return;
    fixed_ += t.factor * d.lo(t.var);
    lo_ -= t.least;
    hi_ -= t.least + std::abs(t.factor);
    std::swap(terms_[index], terms_[first_]);
    index_of_[static_cast<std::size_t>(terms_[index].position)] = index;
    index_of_[static_cast<std::size_t>(t.position)] = first_++;
  }

  // Sets `first_` (the terms before it are fixed), `lo_` and `hi_` (bounds of the sum of the other terms) and `rest_`
  // (the bound minus the sum of the fixed terms).
  void sum_all(Engine& engine) {
    Trail& trail = engine.trail();
    const Domains& d = engine.domains();
    first_ = static_cast<std::size_t>(trail.get(done_));
    Value fixed = trail.number(done_ + 1);
    lo_ = hi_ = 0;
    for (std::size_t i = first_; i < terms_.size(); ++i) {
      const Term t = terms_[i];
      if (d.fixed(t.var)) {
        fixed += t.factor * d.lo(t.var);
        std::swap(terms_[i], terms_[first_++]);
        continue;
      }
      lo_ += lo(d, t);
      hi_ += hi(d, t);
    }
    trail.set(done_, first_);
    trail.set_number(done_ + 1, fixed);
    rest_ = bound_ - fixed;
  }

  Outcome at_most(Domains& d) {
    if (hi_ <= rest_) return control_.settle(d, true);
    if (lo_ > rest_) return control_.settle(d, false);
    if (control_.demanded(d)) return keep_below(d, rest_) ? Outcome::fixpoint : Outcome::failed;
    if (control_.denied(d)) return keep_above(d, rest_ + 1) ? Outcome::fixpoint : Outcome::failed;
    return Outcome::fixpoint;
  }

  Outcome equal(Domains& d, bool holds) {
    const std::size_t unfixed = terms_.size() - first_;
    if (unfixed == 0) return control_.settle(d, (rest_ == 0) == holds);
    const bool possible = lo_ <= rest_ && rest_ <= hi_ && (unfixed > 1 || is_possible(d, terms_[first_]));
    if (!possible) return control_.settle(d, !holds);
    const bool demanded = control_.demanded(d), denied = control_.denied(d);
    if (!demanded && !denied) return Outcome::fixpoint;
    if (demanded == holds) return meet(d);
    if (unfixed > 1) return Outcome::fixpoint;
    return d.remove(terms_[first_].var, rest_ / terms_[first_].factor) ? Outcome::entailed : Outcome::failed;
  }

  bool is_possible(const Domains& d, const Term& t) const {
    return rest_ % t.factor == 0 && d.has(t.var, rest_ / t.factor);
  }

  // Keep the sum below or above a bound. `lo_` stays valid in `keep_below`, which only lowers terms' upper bounds;
  // `hi_` stays valid in `keep_above`.
  bool keep_below(Domains& d, Value bound) {
    return keep_within(d, bound - lo_,
                       [&](const Term& t, Value slack) { return limit(d, t, lo(d, t) + slack, t.factor > 0); });
  }

  bool keep_above(Domains& d, Value least) {
    return keep_within(d, hi_ - least,
                       [&](const Term& t, Value slack) { return limit(d, t, hi(d, t) - slack, t.factor < 0); });
  }

  template <class Cut>
  bool keep_within(const Domains& d, Value slack, Cut cut) {
    if (slack >= widest_) return true;
    scanned_ = true;
    for (std::size_t i = first_; i < terms_.size(); ++i)
      if (const Term t = terms_[i]; hi(d, t) - lo(d, t) > slack && !cut(t, slack)) return false;
    return true;
  }

  static bool limit(Domains& d, const Term& t, Value to, bool is_most) {
    return is_most ? d.set_hi(t.var, floor_div(to, t.factor)) : d.set_lo(t.var, ceil_div(to, t.factor));
  }

  // Keeps the sum both below and above the bound, until the bounds of the sum no longer change, for a few rounds at
  // most.
  Outcome meet(Domains& d) {
    constexpr int kRounds = 3;
    if (std::min(rest_ - lo_, hi_ - rest_) >= widest_) return Outcome::fixpoint;
    for (int round = 0; round < kRounds; ++round) {
      if (!keep_below(d, rest_)) return Outcome::failed;
      const Value hi_before = hi_, lo_before = lo_;
      sum_free(d);
      if (lo_ > rest_ || hi_ < rest_ || !keep_above(d, rest_)) return Outcome::failed;
      sum_free(d);
      if (lo_ > rest_ || hi_ < rest_) return Outcome::failed;
      if (lo_ == hi_) return Outcome::entailed;
      if (lo_ == lo_before && hi_ == hi_before) return Outcome::fixpoint;
    }
    return Outcome::again;
  }

  void sum_free(const Domains& d) {
    lo_ = hi_ = 0;
    for (std::size_t i = first_; i < terms_.size(); ++i) {
      lo_ += lo(d, terms_[i]);
      hi_ += hi(d, terms_[i]);
    }
  }

  Relation relation_;
  std::vector<Term> terms_;
  Value bound_;
  Control control_;
  std::size_t done_ = 0, first_ = 0;
  Value lo_ = 0, hi_ = 0, rest_ = 0, fixed_ = 0, widest_ = 0;
  std::vector<std::size_t> index_of_;  // index of each term, by the position of its subscription
  bool binary_ = false, scanned_ = false;
};

// A sum of three variables, filtered by all pairs of values of the two smaller domains, if these are not too many.
class SumOfDomains final : public Propagator {
 public:
  SumOfDomains(std::vector<Term> terms, Value bound)
      : Propagator(Priority::quadratic), terms_(std::move(terms)), bound_(bound) {}

  void attach(Engine& engine) override {
    for (const Term& t : terms_) engine.subscribe(*this, View{t.var}, kDomain);
  }

  Outcome propagate(Engine& engine) override {
    constexpr Value kMostPairs = 4096;
    Domains& d = engine.domains();
    std::sort(terms_.begin(), terms_.end(),
              [&](const Term& a, const Term& b) { return d.size(a.var) < d.size(b.var); });
    if (d.size(terms_[1].var) > kMostPairs || d.size(terms_[0].var) * d.size(terms_[1].var) > kMostPairs)
      return Outcome::fixpoint;
    try_pairs(d);
    for (std::size_t k = 0; k < terms_.size(); ++k)
      if (!keep(d, terms_[k].var, supported_[k])) return Outcome::failed;
    return Outcome::fixpoint;
  }

 private:
  void try_pairs(const Domains& d) {
    for (Values& values : supported_) values.clear();
    d.each(View{terms_[0].var}, [&](Value x) {
      bool any = false;
      d.each(View{terms_[1].var}, [&](Value y) {
        const Value rest = bound_ - terms_[0].factor * x - terms_[1].factor * y;
        if (rest % terms_[2].factor != 0 || !d.has(terms_[2].var, rest / terms_[2].factor)) return;
        any = true;
        supported_[1].push_back(y);
        supported_[2].push_back(rest / terms_[2].factor);
      });
      if (any) supported_[0].push_back(x);
    });
    for (Values& values : supported_) {
      std::sort(values.begin(), values.end());
      values.erase(std::unique(values.begin(), values.end()), values.end());
    }
  }

  // Keeps the supported values. A huge domain keeps all values between the least and the greatest of them. Returns
  // false if none remains.
  static bool keep(Domains& d, int v, const Values& values) {
    if (values.empty() || !d.set_lo(v, values.front()) || !d.set_hi(v, values.back())) return false;
    if (d.hi(v) - d.lo(v) > kListed) return true;
    auto next = values.begin();
    bool alive = true;
    d.each(View{v}, [&](Value value) {
      if (*next == value) ++next;
      else alive = alive && d.remove(v, value);
    });
    return alive;
  }

  std::vector<Term> terms_;
  Value bound_;
  std::array<Values, 3> supported_;
};

// Replaces views by variables, adds up the terms of each variable, and moves constants and fixed variables to the
// bound.
std::vector<Term> gather(const Domains& d, const Values& coefficients, const Views& xs, Value& bound) {
  constexpr __int128 kMost = __int128{1} << 61;
  std::map<int, __int128> factors;
  __int128 rest = bound, total = 0;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const __int128 a = coefficients[i];
    rest -= a * xs[i].offset;
    if (d.fixed(xs[i].var)) rest -= a * xs[i].scale * d.lo(xs[i].var);
    else factors[xs[i].var] += a * xs[i].scale;
  }
  std::vector<Term> terms;
  for (const auto& [var, factor] : factors) {
    if (factor == 0) continue;
    const __int128 size = factor < 0 ? -factor : factor;
    if (size > kMost) throw Refused("a coefficient of a linear constraint is too large: sums have to stay below 2^61");
    total += size * std::max(std::abs(d.lo(var)), std::abs(d.hi(var)));
    terms.push_back({.factor = static_cast<Value>(factor), .var = var});
    if (total > kMost)
      throw Refused("a linear constraint may sum up to more than 2^61: give its variables smaller bounds");
  }
  if (rest > kMost || rest < -kMost) throw Refused("a linear constraint's right-hand side is beyond 2^61");
  bound = static_cast<Value>(rest);
  return terms;
}

bool is_plain(Value factor) { return factor == 1 || factor == -1; }

}  // namespace

void post_linear(Engine& engine, Relation relation, const Values& coefficients, const Views& xs, Value bound,
                 Control control) {
  std::vector<Term> terms = gather(engine.domains(), coefficients, xs, bound);
  // x - y = c is posted as an equality of views, which is domain consistent.
  if (terms.size() == 2 && is_plain(terms[0].factor) && is_plain(terms[1].factor) && std::abs(bound) < kLimit) {
    const View x{terms[0].var},
        y{terms[1].var, static_cast<std::int32_t>(-terms[0].factor * terms[1].factor), terms[0].factor * bound};
    if (relation == Relation::equal) return post_equal(engine, x, y, control);
    if (relation == Relation::different) return post_different(engine, x, y, control);
    return terms[0].factor > 0 ? post_at_most(engine, x, y, control) : post_at_most(engine, y, x, control);
  }
  engine.post(std::make_unique<Linear>(relation, std::move(terms), bound, control));
}

void post_sum_of_domains(Engine& engine, const Values& coefficients, const Views& xs) {
  Value bound = 0;
  std::vector<Term> terms = gather(engine.domains(), coefficients, xs, bound);
  if (terms.size() == 3) engine.post(std::make_unique<SumOfDomains>(std::move(terms), bound));
}

}  // namespace elimina::cp
