// Lexicographic order (Frisch and others, Artificial Intelligence 170, 2006).
#include <algorithm>
#include <memory>

#include "cp/constraint_call.hpp"

namespace elimina::cp {

namespace {

class Lexicographic final : public Propagator {
 public:
  Lexicographic(Views xs, Views ys, bool strict)
      : Propagator(Priority::linear), xs_(std::move(xs)), ys_(std::move(ys)) {
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

}  // namespace

void post_lex_less(ConstraintCall& call) {
  call.engine().post(std::make_unique<Lexicographic>(call.views(0), call.views(1), true));
}
void post_lex_less_or_equal(ConstraintCall& call) {
  call.engine().post(std::make_unique<Lexicographic>(call.views(0), call.views(1), false));
}

}  // namespace elimina::cp
