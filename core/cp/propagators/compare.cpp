// Comparisons of two variables, and membership of a variable in a set.
#include <algorithm>
#include <memory>

#include "cp/constraints.hpp"

namespace elimina::cp {

namespace {

Value width(const Domains& d, View x) { return d.hi(x.var) - d.lo(x.var); }

bool keep_common(Domains& d, View x, View y) {
  bool alive = true;
  d.each(x, [&](Value value) {
    if (alive && !d.has(y, value)) alive = d.remove(x, value);
  });
  return alive;
}

bool have_common(const Domains& d, View x, View y) {
  if (d.size(x) > d.size(y)) std::swap(x, y);
  if (d.lo(x) > d.hi(y) || d.hi(x) < d.lo(y)) return false;
  if (width(d, x) > kListed || (d.is_interval(x) && d.is_interval(y))) return true;
  for (Value value = d.lo(x);; value = d.above(x, value)) {
    if (d.has(y, value)) return true;
    if (value == d.hi(x)) return false;
  }
}

class Equal final : public Propagator {
 public:
  Equal(View x, View y, Control control, bool equal)
      : Propagator(Priority::binary), x_(x), y_(y), control_(control), equal_(equal) {}

  void attach(Engine& engine) override {
    control_.attach(engine, *this);
    const bool only_different = !equal_ && control_.mode == Control::Mode::always;
    engine.subscribe(*this, x_, only_different ? kFix : kDomain);
    engine.subscribe(*this, y_, only_different ? kFix : kDomain);
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    if (control_.idle(d)) return Outcome::entailed;
    if (control_.demanded(d)) return equal_ ? unite(d) : separate(d);
    if (control_.denied(d)) return equal_ ? separate(d) : unite(d);
    if (d.fixed(x_) && d.fixed(y_)) return control_.settle(d, (d.lo(x_) == d.lo(y_)) == equal_);
    if (!have_common(d, x_, y_)) return control_.settle(d, !equal_);
    return Outcome::fixpoint;
  }

 private:
  Outcome unite(Domains& d) const {
    if (!d.set_lo(x_, d.lo(y_)) || !d.set_hi(x_, d.hi(y_)) || !d.set_lo(y_, d.lo(x_)) || !d.set_hi(y_, d.hi(x_)))
      return Outcome::failed;
    if (d.lo(x_) != d.lo(y_) || d.hi(x_) != d.hi(y_)) return Outcome::again;
    if (d.fixed(x_)) return Outcome::entailed;
    if (d.is_interval(x_) && d.is_interval(y_)) return Outcome::fixpoint;
    if (width(d, x_) > kListed || width(d, y_) > kListed) return Outcome::fixpoint;
    return keep_common(d, x_, y_) && keep_common(d, y_, x_) ? Outcome::fixpoint : Outcome::failed;
  }

  Outcome separate(Domains& d) const {
    if (d.fixed(x_)) return d.remove(y_, d.lo(x_)) ? Outcome::entailed : Outcome::failed;
    if (d.fixed(y_)) return d.remove(x_, d.lo(y_)) ? Outcome::entailed : Outcome::failed;
    return have_bounds_in_common(d) ? Outcome::fixpoint : Outcome::entailed;
  }

  bool have_bounds_in_common(const Domains& d) const { return d.lo(x_) <= d.hi(y_) && d.lo(y_) <= d.hi(x_); }

  View x_, y_;
  Control control_;
  bool equal_;
};

class AtMost final : public Propagator {
 public:
  AtMost(View x, View y, Control control) : Propagator(Priority::binary), x_(x), y_(y), control_(control) {}

  void attach(Engine& engine) override {
    control_.attach(engine, *this);
    const bool two_ways = control_.mode != Control::Mode::always;
    engine.subscribe(*this, x_, two_ways ? kBounds : kLower);
    engine.subscribe(*this, y_, two_ways ? kBounds : kUpper);
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    if (control_.idle(d)) return Outcome::entailed;
    if (d.hi(x_) <= d.lo(y_)) return control_.settle(d, true);
    if (d.lo(x_) > d.hi(y_)) return control_.settle(d, false);
    if (control_.demanded(d)) return order(d, x_, y_);
    if (control_.denied(d)) return order(d, y_ + 1, x_);
    return Outcome::fixpoint;
  }

 private:
  static Outcome order(Domains& d, View x, View y) {
    if (!d.set_hi(x, d.hi(y)) || !d.set_lo(y, d.lo(x))) return Outcome::failed;
    return d.hi(x) <= d.lo(y) ? Outcome::entailed : Outcome::fixpoint;
  }

  View x_, y_;
  Control control_;
};

class Member final : public Propagator {
 public:
  Member(View x, Values set, Control control)
      : Propagator(Priority::binary), x_(x), set_(std::move(set)), control_(control) {
    std::sort(set_.begin(), set_.end());
    set_.erase(std::unique(set_.begin(), set_.end()), set_.end());
  }

  void attach(Engine& engine) override {
    control_.attach(engine, *this);
    engine.subscribe(*this, x_, control_.mode == Control::Mode::always ? kBounds : kDomain);
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    if (control_.idle(d)) return Outcome::entailed;
    if (control_.demanded(d)) return keep(d);
    if (control_.denied(d)) return drop(d) ? Outcome::entailed : Outcome::failed;
    Value inside = 0;
    for (const Value value : set_) inside += d.has(x_, value);
    if (inside == 0) return control_.settle(d, false);
    return inside == d.size(x_) ? control_.settle(d, true) : Outcome::fixpoint;
  }

 private:
  // Removes all values between consecutive members of the set; if the domain is too wide for that, only moves its
  // bounds to members.
  Outcome keep(Domains& d) const {
    const auto above = std::lower_bound(set_.begin(), set_.end(), d.lo(x_));
    if (above == set_.end() || !d.set_lo(x_, *above)) return Outcome::failed;
    const auto beyond = std::upper_bound(set_.begin(), set_.end(), d.hi(x_));
    if (beyond == set_.begin() || !d.set_hi(x_, *(beyond - 1))) return Outcome::failed;
    if (width(d, x_) > kListed) return Outcome::again;
    for (auto i = above; i + 1 < beyond; ++i)
      for (Value value = *i + 1; value < *(i + 1); ++value)
        if (!d.remove(x_, value)) return Outcome::failed;
    return Outcome::entailed;
  }

  bool drop(Domains& d) const {
    return std::all_of(set_.begin(), set_.end(), [&](Value value) { return d.remove(x_, value); });
  }

  View x_;
  Values set_;
  Control control_;
};

}  // namespace

// An equation or inequality of two views of one variable is posted as a linear constraint on this variable, because the
// bounds of both views move together.
void post_equal(Engine& engine, View x, View y, Control control) {
  if (x.var == y.var) return post_linear(engine, Relation::equal, {1, -1}, {x, y}, 0, control);
  engine.post(std::make_unique<Equal>(x, y, control, true));
}

void post_different(Engine& engine, View x, View y, Control control) {
  if (x.var == y.var) return post_linear(engine, Relation::different, {1, -1}, {x, y}, 0, control);
  engine.post(std::make_unique<Equal>(x, y, control, false));
}

void post_at_most(Engine& engine, View x, View y, Control control) {
  if (x.var == y.var) return post_linear(engine, Relation::at_most, {1, -1}, {x, y}, 0, control);
  engine.post(std::make_unique<AtMost>(x, y, control));
}

void post_member(Engine& engine, View x, Values set, Control control) {
  engine.post(std::make_unique<Member>(x, std::move(set), control));
}

}  // namespace elimina::cp
