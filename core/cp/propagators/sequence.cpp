// Lexicographic order (Frisch and others, Artificial Intelligence 170, 2006), and inverse functions.
#include <algorithm>
#include <memory>

#include "cp/constraints.hpp"

namespace elimina::cp {

namespace {

class Lexicographic final : public Propagator {
 public:
  Lexicographic(Views xs, Views ys, bool strict) : Propagator(Priority::linear), xs_(std::move(xs)), ys_(std::move(ys)) {
    count_ = std::min(xs_.size(), ys_.size());
    if_equal_ = strict ? xs_.size() < ys_.size() : xs_.size() <= ys_.size();
  }

  void attach(Engine& engine) override {
    for (std::size_t i = 0; i < count_; ++i) {
      engine.subscribe(*this, xs_[i], kBounds);
      engine.subscribe(*this, ys_[i], kBounds);
    }
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    for (std::size_t i = 0; i < count_; ++i) {
      const View x = xs_[i], y = ys_[i];
      if (!d.set_hi(x, d.hi(y)) || !d.set_lo(y, d.lo(x))) return Outcome::failed;
      if (d.hi(x) < d.lo(y)) return Outcome::entailed;
      if (d.fixed(x) && d.fixed(y)) continue;
      if (rest_may_follow(d, i + 1)) return Outcome::again;
      return d.set_hi(x, d.hi(y) - 1) && d.set_lo(y, d.lo(x) + 1) ? Outcome::again : Outcome::failed;
    }
    return if_equal_ ? Outcome::entailed : Outcome::failed;
  }

 private:
  bool rest_may_follow(const Domains& d, std::size_t from) const {
    for (std::size_t i = from; i < count_; ++i) {
      if (d.lo(xs_[i]) < d.hi(ys_[i])) return true;
      if (d.lo(xs_[i]) > d.hi(ys_[i])) return false;
    }
    return if_equal_;
  }

  Views xs_, ys_;
  std::size_t count_;
  bool if_equal_;
};

class Inverse final : public Propagator {
 public:
  Inverse(Views xs, Views ys) : Propagator(Priority::quadratic), xs_(std::move(xs)), ys_(std::move(ys)) {}

  void attach(Engine& engine) override {
    const auto n = static_cast<int>(xs_.size());
    for (int i = 0; i < n; ++i) {
      engine.subscribe(*this, xs_[static_cast<std::size_t>(i)], kDomain, i);
      engine.subscribe(*this, ys_[static_cast<std::size_t>(i)], kDomain, n + i);
    }
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    const std::size_t n = xs_.size();
    for (const int position : touched) {
      const auto i = static_cast<std::size_t>(position);
      if (!(i < n ? carry_over(d, xs_[i], i, ys_) : carry_over(d, ys_[i - n], i - n, xs_))) return Outcome::failed;
    }
    return Outcome::again;
  }

 private:
  // A value that left the domain of x, the variable i, removes i from the other side's variables.
  static bool carry_over(Domains& d, View x, std::size_t i, const Views& others) {
    const auto own = static_cast<Value>(i), n = static_cast<Value>(others.size());
    if (!d.set_lo(x, 0) || !d.set_hi(x, n - 1)) return false;
    for (Value k = 0; k < n; ++k)
      if (!d.has(x, k) && !d.remove(others[static_cast<std::size_t>(k)], own)) return false;
    return !d.fixed(x) || d.assign(others[static_cast<std::size_t>(d.lo(x))], own);
  }

  Views xs_, ys_;
};

}  // namespace

void post_lexicographic(Engine& engine, const Views& xs, const Views& ys, bool strict) {
  engine.post(std::make_unique<Lexicographic>(xs, ys, strict));
}

// The channel alone sees one value at a time.
void post_inverse(Engine& engine, const Views& xs, const Views& ys) {
  engine.post(std::make_unique<Inverse>(xs, ys));
  post_all_different(engine, xs, Consistency::domain);
}

}  // namespace elimina::cp
