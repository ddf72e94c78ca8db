// Inverse functions.
#include <memory>

#include "cp/constraint_call.hpp"

namespace elimina::cp {

namespace {

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
  // x is variable i of one side, and `others` are the variables of the other side. For each value k that x has lost,
  // removes i from variable k of the other side.
  static bool carry_over(Domains& d, View x, std::size_t i, const Views& others) {
    const auto number = static_cast<Value>(i), n = static_cast<Value>(others.size());
    if (!d.set_lo(x, 0) || !d.set_hi(x, n - 1)) return false;
    for (Value k = 0; k < n; ++k)
      if (!d.has(x, k) && !d.remove(others[static_cast<std::size_t>(k)], number)) return false;
    return !d.fixed(x) || d.assign(others[static_cast<std::size_t>(d.lo(x))], number);
  }

  Views xs_, ys_;
};

}  // namespace

// Posts channelling and an AllDifferent, because channelling considers only one value at a time.
void post_inverse(ConstraintCall& call) {
  call.same_length(0, 1);
  const Views xs = call.views(0);
  call.engine().post(std::make_unique<Inverse>(xs, call.views(1)));
  post_all_different(call.engine(), xs, Consistency::domain);
}

}  // namespace elimina::cp
