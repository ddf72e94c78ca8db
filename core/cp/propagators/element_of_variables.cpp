// z = xs[index], for variables xs.
#include <algorithm>
#include <memory>
#include <span>

#include "cp/constraints.hpp"
#include "supported_values.hpp"

namespace elimina::cp {

namespace {

// The constraint z = xs[index]: domain consistent if z has few values, otherwise by bounds of z. `low_` and `high_` are
// the numbers of the variables that give z its bounds. As long as these two do not change, changes of other variables
// do not cost a visit of all variables. Once the index is fixed, the constraint is z = x.
class ElementOfVariables final : public Propagator {
 public:
  ElementOfVariables(const Domains& d, View index, Views xs, View z)
      : Propagator(Priority::linear), index_(index), xs_(std::move(xs)), z_(z), has_rows_(d.hi(z) - d.lo(z) < kShort) {
    Views all = xs_;
    all.insert(all.end(), {index_, z_});
    repeats_ = repeats(all);
  }

  void attach(Engine& engine) override {
    const Events events = has_rows_ ? kDomain : kBounds;
    const int count = static_cast<int>(xs_.size());
    for (int i = 0; i < count; ++i) engine.subscribe(*this, xs_[static_cast<std::size_t>(i)], events, i);
    engine.subscribe(*this, index_, kDomain, count);
    engine.subscribe(*this, z_, events, count);
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    if (!d.set_lo(index_, 0) || !d.set_hi(index_, static_cast<Value>(xs_.size()) - 1)) return Outcome::failed;
    if (d.fixed(index_)) return follow(d, xs_[static_cast<std::size_t>(d.lo(index_))]);
    if (is_unmoved(d)) return Outcome::fixpoint;
    if (!keep_possible(d) || (has_rows_ && !keep_supported(d))) return Outcome::failed;
    return has_rows_ && !repeats_ && !d.fixed(index_) ? Outcome::fixpoint : Outcome::again;
  }

 private:
  static constexpr Value kShort = 512;

  View x(Value i) const { return xs_[static_cast<std::size_t>(i)]; }

  bool is_possible(const Domains& d, View x) const {
    if (d.hi(x) < d.lo(z_) || d.lo(x) > d.hi(z_)) return false;
    return !(d.fixed(x) && !d.has(z_, d.lo(x))) && !(d.fixed(z_) && !d.has(x, d.lo(z_)));
  }

  // True if the changes since the last call remove nothing. Without rows, changed variables must be possible for z or
  // excluded by the index, and `low_` and `high_` must still give z its bounds; with rows, the index must exclude all
  // changed variables.
  bool is_unmoved(const Domains& d) const {
    for (const int i : touched) {
      if (i == static_cast<int>(xs_.size())) return false;
      if (d.has(index_, i) && (has_rows_ || !is_possible(d, x(i)))) return false;
    }
    return has_rows_ ||
           (d.has(index_, low_) && d.has(index_, high_) && d.lo(x(low_)) <= d.lo(z_) && d.hi(x(high_)) >= d.hi(z_));
  }

  bool keep_possible(Domains& d) {
    bool alive = true;
    Value lo = kLimit * 2, hi = -kLimit * 2;
    d.each(index_, [&](Value i) {
      const View item = x(i);
      if (!is_possible(d, item)) {
        alive = alive && d.remove(index_, i);
        return;
      }
      if (d.lo(item) < lo) lo = d.lo(item), low_ = i;
      if (d.hi(item) > hi) hi = d.hi(item), high_ = i;
    });
    return alive && d.set_lo(z_, lo) && d.set_hi(z_, hi);
  }

  bool keep_supported(Domains& d) {
    const std::span<std::uint64_t> kept = begin(d);
    wanted_.resize(kept.size());
    d.read_row(z_, kept_.base(), wanted_);
    bool alive = true;
    d.each(index_, [&](Value i) {
      std::uint64_t common = 0;
      for (std::size_t w = 0; w < kept.size(); ++w) {
        const std::uint64_t word = wanted_[w] & d.row_word(x(i), kept_.base() + static_cast<Value>(w * 64));
        common |= word;
        kept[w] |= word;
      }
      if (!common) alive = alive && d.remove(index_, i);
    });
    return alive && kept_.apply(d, z_);
  }

  Outcome follow(Domains& d, View x) {
    if (!d.set_lo(x, d.lo(z_)) || !d.set_hi(x, d.hi(z_)) || !d.set_lo(z_, d.lo(x)) || !d.set_hi(z_, d.hi(x)))
      return Outcome::failed;
    if (d.fixed(x) && d.fixed(z_)) return d.lo(x) == d.lo(z_) ? Outcome::entailed : Outcome::failed;
    if (!has_rows_ || d.lo(x) != d.lo(z_) || (d.is_interval(x) && d.is_interval(z_))) return Outcome::again;
    const std::span<std::uint64_t> kept = begin(d);
    d.read_row(z_, kept_.base(), kept);
    for (std::size_t w = 0; w < kept.size(); ++w) kept[w] &= d.row_word(x, kept_.base() + static_cast<Value>(w * 64));
    return kept_.apply(d, x) && kept_.apply(d, z_) ? Outcome::again : Outcome::failed;
  }

  std::span<std::uint64_t> begin(const Domains& d) {
    kept_.begin(d.lo(z_), d.hi(z_));
    return kept_.words();
  }

  View index_;
  Views xs_;
  View z_;
  bool has_rows_, repeats_ = false;
  Value low_ = 0, high_ = 0;  // positions of the variables that give z its bounds
  std::vector<std::uint64_t> wanted_;
  SupportedValues kept_;
};

}  // namespace

void post_element(Engine& engine, View index, const Views& xs, View z) {
  engine.post(std::make_unique<ElementOfVariables>(engine.domains(), index, xs, z));
}

}  // namespace elimina::cp
