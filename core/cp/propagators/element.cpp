// z = table[index].
#include <algorithm>
#include <memory>

#include "cp/constraints.hpp"

namespace elimina::cp {

namespace {

class ElementOfValues final : public Propagator {
 public:
  ElementOfValues(View index, Values table, View z) : Propagator(Priority::linear), index_(index), table_(std::move(table)), z_(z) {
    values_ = table_;
    std::sort(values_.begin(), values_.end());
    values_.erase(std::unique(values_.begin(), values_.end()), values_.end());
    for (const Value value : table_)
      rank_.push_back(static_cast<int>(std::lower_bound(values_.begin(), values_.end(), value) - values_.begin()));
    supported_.resize(values_.size());
  }

  void attach(Engine& engine) override {
    engine.subscribe(*this, index_, kDomain);
    engine.subscribe(*this, z_, kDomain);
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    if (!d.set_lo(index_, 0) || !d.set_hi(index_, static_cast<Value>(table_.size()) - 1)) return Outcome::failed;
    std::fill(supported_.begin(), supported_.end(), 0);
    bool alive = true;
    d.each(index_, [&](Value i) {
      if (d.has(z_, table_[static_cast<std::size_t>(i)])) supported_[static_cast<std::size_t>(rank_[static_cast<std::size_t>(i)])] = 1;
      else alive = alive && d.remove(index_, i);
    });
    if (!alive || !keep_supported(d)) return Outcome::failed;
    return d.fixed(z_) && d.fixed(index_) ? Outcome::entailed : Outcome::fixpoint;
  }

 private:
  // Wide domains keep what is between two values of the table.
  bool keep_supported(Domains& d) const {
    const auto first = std::find(supported_.begin(), supported_.end(), 1);
    const auto last = std::find(supported_.rbegin(), supported_.rend(), 1);
    if (first == supported_.end()) return false;
    if (!d.set_lo(z_, values_[static_cast<std::size_t>(first - supported_.begin())])) return false;
    if (!d.set_hi(z_, values_[static_cast<std::size_t>(supported_.rend() - last) - 1])) return false;
    if (d.hi(z_) - d.lo(z_) > kListed) return true;
    std::size_t at = static_cast<std::size_t>(first - supported_.begin());
    bool alive = true;
    d.each(z_, [&](Value value) {
      while (at + 1 < values_.size() && values_[at] < value) ++at;
      if (values_[at] != value || !supported_[at]) alive = alive && d.remove(z_, value);
    });
    return alive;
  }

  View index_;
  Values table_;
  View z_;
  Values values_;
  std::vector<int> rank_;
  std::vector<std::uint8_t> supported_;
};

// Domain consistent where rows are short, else by bounds of z.
class ElementOfViews final : public Propagator {
 public:
  ElementOfViews(const Domains& d, View index, Views xs, View z)
      : Propagator(Priority::linear), index_(index), xs_(std::move(xs)), z_(z), has_rows_(d.hi(z) - d.lo(z) < kShort) {
    Views all = xs_;
    all.insert(all.end(), {index_, z_});
    repeats_ = repeats(all);
  }

  void attach(Engine& engine) override {
    const Events events = has_rows_ ? kDomain : kBounds;
    engine.subscribe(*this, index_, kDomain);
    engine.subscribe(*this, z_, events);
    for (const View x : xs_) engine.subscribe(*this, x, events);
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    if (!d.set_lo(index_, 0) || !d.set_hi(index_, static_cast<Value>(xs_.size()) - 1)) return Outcome::failed;
    if (!keep_possible(d) || (has_rows_ && !keep_supported(d))) return Outcome::failed;
    if (!d.fixed(index_)) return has_rows_ && !repeats_ ? Outcome::fixpoint : Outcome::again;
    const View x = xs_[static_cast<std::size_t>(d.lo(index_))];
    if (!d.set_lo(x, d.lo(z_)) || !d.set_hi(x, d.hi(z_)) || !d.set_lo(z_, d.lo(x)) || !d.set_hi(z_, d.hi(x))) return Outcome::failed;
    if (has_rows_ && !keep_both(d, x)) return Outcome::failed;
    return d.fixed(x) && d.fixed(z_) ? Outcome::entailed : Outcome::again;
  }

 private:
  static constexpr Value kShort = 512;

  bool keep_possible(Domains& d) const {
    bool alive = true;
    Value lo = kLimit * 2, hi = -kLimit * 2;
    d.each(index_, [&](Value i) {
      const View x = xs_[static_cast<std::size_t>(i)];
      if (d.hi(x) < d.lo(z_) || d.lo(x) > d.hi(z_) || (d.fixed(x) && !d.has(z_, d.lo(x))) || (d.fixed(z_) && !d.has(x, d.lo(z_)))) {
        alive = alive && d.remove(index_, i);
        return;
      }
      lo = std::min(lo, d.lo(x));
      hi = std::max(hi, d.hi(x));
    });
    return alive && d.set_lo(z_, lo) && d.set_hi(z_, hi);
  }

  bool keep_supported(Domains& d) {
    const Value base = d.lo(z_);
    const auto words = static_cast<std::size_t>(d.hi(z_) - base) / 64 + 1;
    wanted_.resize(words);
    union_.assign(words, 0);
    d.read_row(z_, base, wanted_);
    bool alive = true;
    d.each(index_, [&](Value i) {
      std::uint64_t common = 0;
      for (std::size_t w = 0; w < words; ++w) {
        const std::uint64_t word = wanted_[w] & d.row_word(xs_[static_cast<std::size_t>(i)], base + static_cast<Value>(w * 64));
        common |= word;
        union_[w] |= word;
      }
      if (!common) alive = alive && d.remove(index_, i);
    });
    return alive && keep(d, z_, base);
  }

  // The view keeps what is in both, and so does z.
  bool keep_both(Domains& d, View x) {
    const Value base = d.lo(z_);
    union_.assign(static_cast<std::size_t>(d.hi(z_) - base) / 64 + 1, 0);
    d.read_row(z_, base, union_);
    return keep(d, x, base);
  }

  bool keep(Domains& d, View x, Value base) const {
    bool alive = true;
    d.each(x, [&](Value value) {
      const auto bit = static_cast<std::size_t>(value - base);
      const bool is_kept = value >= base && bit / 64 < union_.size() && (union_[bit / 64] >> (bit % 64) & 1);
      if (!is_kept) alive = alive && d.remove(x, value);
    });
    return alive;
  }

  View index_;
  Views xs_;
  View z_;
  bool has_rows_, repeats_ = false;
  std::vector<std::uint64_t> wanted_, union_;
};

}  // namespace

void post_element(Engine& engine, View index, const Values& table, View z) {
  engine.post(std::make_unique<ElementOfValues>(index, table, z));
}

void post_element(Engine& engine, View index, const Views& xs, View z) {
  engine.post(std::make_unique<ElementOfViews>(engine.domains(), index, xs, z));
}

}  // namespace elimina::cp
