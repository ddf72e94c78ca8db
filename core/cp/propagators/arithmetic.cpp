// Products, quotients, remainders, powers, absolute values and maxima, by bounds.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "cp/constraints.hpp"

namespace elimina::cp {

namespace {

constexpr Value kHuge = Value{1} << 61;

Value product(Value a, Value b) {
  const __int128 p = static_cast<__int128>(a) * b;
  return p > kHuge ? kHuge : p < -kHuge ? -kHuge : static_cast<Value>(p);
}

struct Range {
  Value lo, hi;
  bool holds(Value x) const { return lo <= x && x <= hi; }
};

Range range(const Domains& d, View x) { return {d.lo(x), d.hi(x)}; }
bool narrow(Domains& d, View x, Range to) { return d.set_lo(x, to.lo) && d.set_hi(x, to.hi); }
Value largest(Range x) { return std::max(std::abs(x.lo), std::abs(x.hi)); }
Value smallest(Range x) { return x.holds(0) ? 0 : std::min(std::abs(x.lo), std::abs(x.hi)); }

// Moves the bounds of x to numbers whose absolute value is in a range.
bool narrow_absolute(Domains& d, View x, Range to) {
  if (!narrow(d, x, {-to.hi, to.hi})) return false;
  return (d.lo(x) <= -to.lo || d.set_lo(x, to.lo)) && (d.hi(x) >= to.lo || d.set_hi(x, -to.lo));
}

Range product(Range x, Range y) {
  const std::array<Value, 4> corners{product(x.lo, y.lo), product(x.lo, y.hi), product(x.hi, y.lo),
                                     product(x.hi, y.hi)};
  const auto [lo, hi] = std::minmax_element(corners.begin(), corners.end());
  return {*lo, *hi};
}

class Ternary : public Propagator {
 public:
  void attach(Engine& engine) override {
    for (const View v : {x_, y_, z_}) engine.subscribe(*this, v, kBounds);
  }

 protected:
  Ternary(View x, View y, View z) : Propagator(Priority::ternary), x_(x), y_(y), z_(z) {}
  View x_, y_, z_;
};

class Times final : public Ternary {
 public:
  Times(View x, View y, View z) : Ternary(x, y, z) {}

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    if (x_.var == y_.var && x_.scale == y_.scale && x_.offset == y_.offset)
      return square(d) ? Outcome::again : Outcome::failed;
    if (!narrow(d, z_, product(range(d, x_), range(d, y_))) || !divide(d, y_, x_) || !divide(d, x_, y_))
      return Outcome::failed;
    return Outcome::again;
  }

 private:
  bool square(Domains& d) const {
    const Range x = range(d, x_);
    if (!narrow(d, z_, {product(smallest(x), smallest(x)), product(largest(x), largest(x))})) return false;
    return narrow_absolute(d, x_, {d.lo(z_) > 0 ? root(d.lo(z_) - 1) + 1 : 0, root(d.hi(z_))});
  }

  // Returns the largest integer whose square is at most z, for z from 0 to 2^62.
  static Value root(Value z) {
    auto r = static_cast<Value>(std::sqrt(static_cast<double>(z)));
    while (r * r > z) --r;
    while ((r + 1) * (r + 1) <= z) ++r;
    return r;
  }

  // Moves the bounds of x to possible quotients z / y; returns false if no value remains.
  bool divide(Domains& d, View y, View x) const {
    Range by = range(d, y);
    const Range z = range(d, z_);
    if (by.holds(0)) {
      if (z.holds(0)) return true;
      if (!d.remove(y, 0)) return false;
      by = range(d, y);
      if (by.holds(0)) return narrow(d, x, {-largest(z), largest(z)});
    }
    const std::array<Value, 4> low{ceil_div(z.lo, by.lo), ceil_div(z.lo, by.hi), ceil_div(z.hi, by.lo),
                                   ceil_div(z.hi, by.hi)};
    const std::array<Value, 4> high{floor_div(z.lo, by.lo), floor_div(z.lo, by.hi), floor_div(z.hi, by.lo),
                                    floor_div(z.hi, by.hi)};
    return narrow(d, x, {*std::min_element(low.begin(), low.end()), *std::max_element(high.begin(), high.end())});
  }
};

class Divide final : public Ternary {
 public:
  Divide(View x, View y, View z) : Ternary(x, y, z) {}

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    if (d.fixed(y_) && d.lo(y_) > 0) return by_constant(d, d.lo(y_)) ? Outcome::again : Outcome::failed;
    if (!d.remove(y_, 0) || !quotient(d) || !dividend(d) || !divisor(d)) return Outcome::failed;
    return Outcome::again;
  }

 private:
  bool by_constant(Domains& d, Value by) const {
    if (!d.set_lo(z_, d.lo(x_) / by) || !d.set_hi(z_, d.hi(x_) / by)) return false;
    const Value lo = d.lo(z_), hi = d.hi(z_);
    return d.set_lo(x_, product(lo, by) - (lo > 0 ? 0 : by - 1)) &&
           d.set_hi(x_, product(hi, by) + (hi < 0 ? 0 : by - 1));
  }

  bool quotient(Domains& d) const {
    const Range x = range(d, x_), y = range(d, y_);
    Range z{kHuge, -kHuge};
    const auto corner = [&](Value by) {
      for (const Value q : {x.lo / by, x.hi / by}) z = {std::min(z.lo, q), std::max(z.hi, q)};
    };
    for (const Value by : {y.lo, y.hi}) corner(by);
    if (y.lo < 0 && y.hi > 0) {
      corner(-1);
      corner(1);
    }
    return narrow(d, z_, z);
  }

  // Narrows x: |x| is from |z| |y| to (|z| + 1) |y| - 1, and its sign is that of z y unless z is 0. Returns false if no
  // value remains.
  bool dividend(Domains& d) const {
    const Range y = range(d, y_), z = range(d, z_);
    const Value beyond = largest(y) - 1;
    const Range zy = product(z, y);
    const bool never_below = z.lo > 0 && y.lo > 0, never_above = z.hi < 0 && y.lo > 0;
    if (never_below) return narrow(d, x_, {zy.lo, zy.hi + beyond});
    if (never_above) return narrow(d, x_, {zy.lo - beyond, zy.hi});
    return narrow(d, x_, {zy.lo - beyond, zy.hi + beyond});
  }

  bool divisor(Domains& d) const {
    const Range x = range(d, x_), z = range(d, z_);
    if (smallest(z) > 0) {
      const Value largest_value = largest(x) / smallest(z);
      if (!narrow(d, y_, {-largest_value, largest_value})) return false;
    }
    const Value least = smallest(x) / (largest(z) + 1) + 1;
    const Range y = range(d, y_);
    if (y.lo > 0 && !d.set_lo(y_, least)) return false;
    return y.hi >= 0 || d.set_hi(y_, -least);
  }
};

class Remainder final : public Ternary {
 public:
  Remainder(View x, View y, View z) : Ternary(x, y, z) {}

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    if (!d.remove(y_, 0)) return Outcome::failed;
    const Range x = range(d, x_), y = range(d, y_);
    const Value largest_value = std::min(largest(x), largest(y) - 1);
    if (!narrow(d, z_, {x.lo < 0 ? -largest_value : 0, x.hi > 0 ? largest_value : 0})) return Outcome::failed;
    const Range z = range(d, z_);
    if (z.lo > 0 && !d.set_lo(x_, z.lo)) return Outcome::failed;
    if (z.hi < 0 && !d.set_hi(x_, z.hi)) return Outcome::failed;
    if (y.lo > 0 && !d.set_lo(y_, smallest(z) + 1)) return Outcome::failed;
    if (y.hi < 0 && !d.set_hi(y_, -smallest(z) - 1)) return Outcome::failed;
    if (d.fixed(y_) && d.fixed(x_)) return d.assign(z_, d.lo(x_) % d.lo(y_)) ? Outcome::entailed : Outcome::failed;
    if (d.lo(x_) < 0 && d.hi(x_) > 0) return Outcome::again;
    // A remainder does not depend on the sign of y, and has the sign of x.
    if (d.lo(y_) < 0 && d.hi(y_) > 0) return Outcome::again;
    const View by = d.lo(y_) > 0 ? y_ : -y_, whole = d.lo(x_) < 0 ? -x_ : x_, rest = d.lo(x_) < 0 ? -z_ : z_;
    return by_quotient(d, whole, by, rest) && (!d.fixed(by) || in_blocks(d, whole, d.lo(by), rest)) ? Outcome::again
                                                                                                    : Outcome::failed;
  }

 private:
  // Narrows x, y and z in x = q y + z by the bounds of the quotient q. Requires x, z >= 0 and y > 0.
  static bool by_quotient(Domains& d, View x, View y, View z) {
    const Value largest_value = std::min(d.hi(x), d.hi(x) - d.lo(z)) / d.lo(y);
    const Value least = std::max(d.lo(x) / d.hi(y), ceil_div(d.lo(x) - d.hi(z), d.hi(y)));
    if (least > largest_value) return false;
    if (!d.set_lo(z, d.lo(x) - product(largest_value, d.hi(y))) || !d.set_hi(z, d.hi(x) - product(least, d.lo(y))))
      return false;
    if (!d.set_lo(x, d.lo(z) + product(least, d.lo(y))) || !d.set_hi(x, d.hi(z) + product(largest_value, d.hi(y))))
      return false;
    if (least > 0 && !d.set_hi(y, (d.hi(x) - d.lo(z)) / least)) return false;
    return largest_value == 0 || d.set_lo(y, ceil_div(d.lo(x) - d.hi(z), largest_value));
  }

  // Moves the bounds of x inwards, to values whose remainders modulo y lie within the bounds of z. If x spans exactly
  // two blocks of y values, also narrows z.
  static bool in_blocks(Domains& d, View x, Value y, View z) {
    const Value lo = d.lo(z), hi = d.hi(z), first = d.lo(x) % y, last = d.hi(x) % y;
    if (d.hi(x) / y == d.lo(x) / y + 1 && last < first) {
      if (lo > last && !d.set_lo(z, first)) return false;
      if (hi < first && !d.set_hi(z, last)) return false;
    }
    if (first < lo && !d.set_lo(x, d.lo(x) + lo - first)) return false;
    if (first > hi && !d.set_lo(x, d.lo(x) + y - first + lo)) return false;
    if (last > hi && !d.set_hi(x, d.hi(x) - (last - hi))) return false;
    return last >= lo || d.set_hi(x, d.hi(x) - (last + y - hi));
  }
};

// Sets `result` to x to the power y; returns false if that is undefined: 0 to a negative power.
bool power(Value x, Value y, Value& result) {
  if (y < 0) {
    result = x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;
    return x != 0;
  }
  if (x == 0 || x == 1 || x == -1) {
    result = y == 0 ? 1 : x == -1 && y % 2 == 0 ? 1 : x;
    return true;
  }
  for (result = 1; y > 0 && std::abs(result) < kHuge; --y) result = product(result, x);
  return true;
}

class Power final : public Ternary {
 public:
  Power(View x, View y, View z) : Ternary(x, y, z) {}

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    Value lo = 0, hi = 0;
    if (d.fixed(x_) && d.fixed(y_))
      return power(d.lo(x_), d.lo(y_), lo) && d.assign(z_, lo) ? Outcome::entailed : Outcome::failed;
    if (d.lo(x_) < 1 || d.lo(y_) < 0) return Outcome::fixpoint;
    power(d.lo(x_), d.lo(y_), lo);
    power(d.hi(x_), d.hi(y_), hi);
    if (!narrow(d, z_, {lo, hi})) return Outcome::failed;
    return narrow_base(d) ? Outcome::again : Outcome::failed;
  }

 private:
  static bool reaches(Value x, Value y, Value least) {
    Value p = 0;
    power(x, y, p);
    return p >= least;
  }

  // Narrows x to a range of bases. The least base reaches min z with some exponent in the domain of y; the greatest
  // base stays within max z with some exponent.
  bool narrow_base(Domains& d) const {
    const Value end = d.hi(x_) + 1;
    const Value lo = first(d.lo(x_), end, [&](Value x) { return reaches(x, d.hi(y_), d.lo(z_)); });
    const Value beyond = first(d.lo(x_), end, [&](Value x) { return reaches(x, d.lo(y_), d.hi(z_) + 1); });
    return narrow(d, x_, {lo, beyond - 1});
  }

  // Returns the first value in [from, end) for which `does` is true, by bisection; `end` if there is none.
  template <class Does>
  static Value first(Value from, Value end, Does does) {
    while (from < end) {
      const Value middle = from + (end - from) / 2;
      if (does(middle)) end = middle;
      else from = middle + 1;
    }
    return from;
  }
};

class Maximum final : public Propagator {
 public:
  Maximum(Views xs, View z)
      : Propagator(xs.size() < 3 ? Priority::ternary : Priority::linear), xs_(std::move(xs)), z_(z) {}

  void attach(Engine& engine) override {
    engine.subscribe(*this, z_, kBounds);
    for (const View x : xs_) engine.subscribe(*this, x, kBounds);
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    Value lo = -kHuge, hi = -kHuge;
    for (const View x : xs_) {
      if (!d.set_hi(x, d.hi(z_))) return Outcome::failed;
      lo = std::max(lo, d.lo(x));
      hi = std::max(hi, d.hi(x));
    }
    if (!narrow(d, z_, {lo, hi})) return Outcome::failed;
    const View* only = nullptr;
    for (const View& x : xs_) {
      if (d.hi(x) < d.lo(z_)) continue;
      if (only) return Outcome::again;
      only = &x;
    }
    return only && d.set_lo(*only, d.lo(z_)) ? Outcome::again : Outcome::failed;
  }

 private:
  Views xs_;
  View z_;
};

class Absolute final : public Propagator {
 public:
  Absolute(View x, View z) : Propagator(Priority::binary), x_(x), z_(z) {}

  void attach(Engine& engine) override {
    for (const View v : {x_, z_}) engine.subscribe(*this, v, kBounds);
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    const Range x = range(d, x_);
    if (!narrow(d, z_, {smallest(x), largest(x)}) || !narrow_absolute(d, x_, range(d, z_))) return Outcome::failed;
    return Outcome::again;
  }

 private:
  View x_, z_;
};

}  // namespace

void post_times(Engine& engine, View x, View y, View z) { engine.post(std::make_unique<Times>(x, y, z)); }
void post_divide(Engine& engine, View x, View y, View z) { engine.post(std::make_unique<Divide>(x, y, z)); }
void post_remainder(Engine& engine, View x, View y, View z) { engine.post(std::make_unique<Remainder>(x, y, z)); }
void post_power(Engine& engine, View x, View y, View z) { engine.post(std::make_unique<Power>(x, y, z)); }
void post_absolute(Engine& engine, View x, View z) { engine.post(std::make_unique<Absolute>(x, z)); }
void post_maximum(Engine& engine, const Views& xs, View z) { engine.post(std::make_unique<Maximum>(xs, z)); }

}  // namespace elimina::cp
