// Items in bins: filters loads by the required and possible items of each bin, and by the possible sums of its items.
#include <algorithm>
#include <bit>
#include <memory>
#include <span>

#include "cp/constraint_call.hpp"

namespace elimina::cp {

namespace {

using Words = std::vector<std::uint64_t>;

// Possible sums of the items of one bin. They show which items the load of the bin requires or excludes (Trick, 2003).
// Bit s of row i of `from_` is set if the first i items may have the sum s. Bit s of row i of `to_` is set if the
// remaining items can raise s to a possible load.
class Sums {
 public:
  static constexpr Value kMost = 4096;

  // Finds the possible sums. `sizes`: sizes of the possible items, in any order; `lo` and `hi`: bounds of the load
  // minus the sizes of the required items, at most `kMost`. Returns false if no sum lies within the bounds.
  bool find(std::span<const Value> sizes, Value lo, Value hi) {
    words_ = static_cast<std::size_t>(hi) / 64 + 1;
    count_ = sizes.size();
    for (auto* rows : {&from_, &to_}) rows->assign((count_ + 1) * words_, 0);
    row(from_, 0)[0] = 1;
    for (std::size_t i = 0; i < count_; ++i) either(row(from_, i), sizes[i], row(from_, i + 1));
    for (Value sum = lo; sum <= hi; ++sum) row(to_, count_)[word(sum)] |= row(from_, count_)[word(sum)] & bit(sum);
    const auto last = row(to_, count_);
    low_ = high_ = -1;
    for (std::size_t w = 0; w < words_; ++w) {
      if (!last[w]) continue;
      if (low_ < 0) low_ = static_cast<Value>(w * 64) + std::countr_zero(last[w]);
      high_ = static_cast<Value>(w * 64) + 63 - std::countl_zero(last[w]);
    }
    if (low_ < 0) return false;
    for (std::size_t i = count_; i-- > 0;) before(row(to_, i + 1), sizes[i], row(to_, i));
    return true;
  }

  Value low() const { return low_; }
  Value high() const { return high_; }
  bool can_have(std::size_t i, Value size) const {
    for (std::size_t w = 0; w < words_; ++w)
      if (row(from_, i)[w] & lowered(row(to_, i + 1), size, w)) return true;
    return false;
  }
  bool can_miss(std::size_t i) const {
    for (std::size_t w = 0; w < words_; ++w)
      if (row(from_, i)[w] & row(to_, i + 1)[w]) return true;
    return false;
  }

 private:
  static std::size_t word(Value sum) { return static_cast<std::size_t>(sum) / 64; }
  static std::uint64_t bit(Value sum) { return std::uint64_t{1} << (sum % 64); }
  std::span<std::uint64_t> row(Words& rows, std::size_t i) const { return {rows.data() + i * words_, words_}; }
  std::span<const std::uint64_t> row(const Words& rows, std::size_t i) const {
    return {rows.data() + i * words_, words_};
  }

  // Returns word w of the bits of `sums` after subtracting `size` from each sum.
  std::uint64_t lowered(std::span<const std::uint64_t> sums, Value size, std::size_t w) const {
    const std::size_t source = w + word(size), shift = static_cast<std::size_t>(size) % 64;
    if (source >= words_) return 0;
    const std::uint64_t above = shift && source + 1 < words_ ? sums[source + 1] << (64 - shift) : 0;
    return sums[source] >> shift | above;
  }

  void either(std::span<const std::uint64_t> sums, Value size, std::span<std::uint64_t> result) const {
    const std::size_t word_shift = word(size), shift = static_cast<std::size_t>(size) % 64;
    for (std::size_t w = 0; w < words_; ++w) {
      result[w] = sums[w];
      if (w < word_shift) continue;
      result[w] |= sums[w - word_shift] << shift;
      if (shift && w > word_shift) result[w] |= sums[w - word_shift - 1] >> (64 - shift);
    }
  }

  void before(std::span<const std::uint64_t> sums, Value size, std::span<std::uint64_t> result) const {
    for (std::size_t w = 0; w < words_; ++w) result[w] = sums[w] | lowered(sums, size, w);
  }

  std::size_t words_ = 0, count_ = 0;
  Words from_, to_;
  Value low_ = 0, high_ = 0;
};

class BinPacking final : public Propagator {
 public:
  BinPacking(Views loads, Views bins, Values sizes)
      : Propagator(Priority::quadratic), loads_(std::move(loads)), bins_(std::move(bins)), sizes_(std::move(sizes)) {}

  void attach(Engine& engine) override {
    for (const View x : loads_) engine.subscribe(*this, x, kBounds);
    for (const View x : bins_) engine.subscribe(*this, x, kDomain);
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    for (const View x : bins_)
      if (!d.set_lo(x, 0) || !d.set_hi(x, static_cast<Value>(loads_.size()) - 1)) return Outcome::failed;
    for (std::size_t b = 0; b < loads_.size(); ++b)
      if (!fill(d, b)) return Outcome::failed;
    return Outcome::again;
  }

 private:
  bool fill(Domains& d, std::size_t b) {
    const auto bin = static_cast<Value>(b);
    Value sure = 0, possible = 0;
    open_.clear();
    open_sizes_.clear();
    for (std::size_t i = 0; i < bins_.size(); ++i) {
      if (!d.has(bins_[i], bin)) continue;
      possible += sizes_[i];
      if (d.fixed(bins_[i])) {
        sure += sizes_[i];
      } else if (sizes_[i] > 0) {
        open_.push_back(i);
        open_sizes_.push_back(sizes_[i]);
      }
    }
    const View load = loads_[b];
    if (!d.set_lo(load, sure) || !d.set_hi(load, possible)) return false;
    if (open_.empty() || (d.lo(load) == sure && d.hi(load) == possible)) return true;
    return d.hi(load) - sure <= Sums::kMost ? by_sums(d, bin, sure) : by_bounds(d, bin, sure, possible);
  }

  bool by_bounds(Domains& d, Value bin, Value sure, Value possible) const {
    const View load = loads_[static_cast<std::size_t>(bin)];
    for (const std::size_t i : open_) {
      if (sure + sizes_[i] > d.hi(load) && !d.remove(bins_[i], bin)) return false;
      if (possible - sizes_[i] < d.lo(load) && !d.assign(bins_[i], bin)) return false;
    }
    return true;
  }

  bool by_sums(Domains& d, Value bin, Value sure) {
    const View load = loads_[static_cast<std::size_t>(bin)];
    if (!sums_.find(open_sizes_, d.lo(load) - sure, d.hi(load) - sure)) return false;
    if (!d.set_lo(load, sure + sums_.low()) || !d.set_hi(load, sure + sums_.high())) return false;
    for (std::size_t k = 0; k < open_.size(); ++k) {
      const View x = bins_[open_[k]];
      if (!sums_.can_have(k, open_sizes_[k])) {
        if (!d.remove(x, bin)) return false;
      } else if (!sums_.can_miss(k) && !d.assign(x, bin)) {
        return false;
      }
    }
    return true;
  }

  Views loads_, bins_;
  Values sizes_, open_sizes_;
  std::vector<std::size_t> open_;
  Sums sums_;
};

// Returns the sum of the sizes; refuses a negative size, and a sum above 2^52.
Value total_size(const ConstraintCall& call, const Values& sizes) {
  __int128 total = 0;
  for (const Value size : sizes) {
    if (size < 0) call.refuse("a size is at least 0, not " + std::to_string(size));
    total += size;
  }
  if (total > kLimit) call.refuse("the sizes add up to more than 2^52");
  return static_cast<Value>(total);
}

}  // namespace

// Posts that the load of each bin is the sum of the sizes of its items. Arguments: loads of the bins, bins of the items
// (from 0 on), sizes of the items.
void post_bin_packing(ConstraintCall& call) {
  call.same_length(1, 2);
  const Views loads = call.views(0), bins = call.views(1);
  const Values sizes = call.values(2);
  const Value total = total_size(call, sizes);
  call.engine().post(std::make_unique<BinPacking>(loads, bins, sizes));
  post_linear(call.engine(), Relation::equal, Values(loads.size(), 1), loads, total);
}

}  // namespace elimina::cp
