// z = table[index].
#include <algorithm>
#include <bit>
#include <memory>
#include <span>

#include "cp/constraints.hpp"

namespace elimina::cp {

namespace {

// Values of z in a range, as bits: only those that are set stay.
class Kept {
 public:
  void begin(Value lo, Value hi) {
    base_ = lo;
    words_.assign(static_cast<std::size_t>(hi - lo) / 64 + 1, 0);
  }
  Value base() const { return base_; }
  std::span<std::uint64_t> words() { return words_; }
  void add(Value value) {
    const auto bit = static_cast<std::size_t>(value - base_);
    words_[bit / 64] |= std::uint64_t{1} << (bit % 64);
  }

  bool apply(Domains& d, View x) const {
    if (!d.set_lo(x, base_) || !d.set_hi(x, base_ + static_cast<Value>(words_.size() * 64) - 1)) return false;
    for (std::size_t w = 0; w < words_.size(); ++w) {
      const Value from = base_ + static_cast<Value>(w * 64);
      for (std::uint64_t lost = d.row_word(x, from) & ~words_[w]; lost; lost &= lost - 1)
        if (!d.remove(x, from + std::countr_zero(lost))) return false;
    }
    return true;
  }

 private:
  Value base_ = 0;
  std::vector<std::uint64_t> words_;
};

class ElementOfValues final : public Propagator {
 public:
  ElementOfValues(View index, Values table, View z) : Propagator(Priority::linear), index_(index), table_(std::move(table)), z_(z) {}

  void attach(Engine& engine) override {
    engine.subscribe(*this, index_, kDomain);
    engine.subscribe(*this, z_, kDomain);
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    if (!d.set_lo(index_, 0) || !d.set_hi(index_, static_cast<Value>(table_.size()) - 1)) return Outcome::failed;
    Value lo = kLimit * 2, hi = -kLimit * 2;
    const bool is_whole = d.is_interval(z_);
    const Value first = d.lo(z_), last = d.hi(z_);
    bool alive = true;
    d.each(index_, [&](Value i) {
      const Value value = table_[static_cast<std::size_t>(i)];
      if (value < first || value > last || !(is_whole || d.has(z_, value))) {
        alive = alive && d.remove(index_, i);
        return;
      }
      lo = std::min(lo, value);
      hi = std::max(hi, value);
    });
    if (!alive || !d.set_lo(z_, lo) || !d.set_hi(z_, hi)) return Outcome::failed;
    // Views of one variable: what z has lost, the index has lost, too.
    const Outcome done = index_.var == z_.var ? Outcome::again : Outcome::fixpoint;
    if (d.fixed(z_) && d.fixed(index_) && done == Outcome::fixpoint) return Outcome::entailed;
    // Wide domains keep what is between two values of the table.
    if (hi - lo > kListed || d.fixed(z_)) return done;
    kept_.begin(lo, hi);
    d.each(index_, [&](Value i) { kept_.add(table_[static_cast<std::size_t>(i)]); });
    return kept_.apply(d, z_) ? done : Outcome::failed;
  }

 private:
  View index_;
  Values table_;
  View z_;
  Kept kept_;
};

}  // namespace

void post_element(Engine& engine, View index, const Values& table, View z) {
  engine.post(std::make_unique<ElementOfValues>(index, table, z));
}

}  // namespace elimina::cp
