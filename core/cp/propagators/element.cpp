// z = table[index].
#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <numeric>

#include "cp/constraints.hpp"
#include "supported_values.hpp"

namespace elimina::cp {

namespace {

// Sorts places (indices of the table) by their values, 8 bits at a time (radix sort), because there may be thousands of
// long tables.
template <class Place>
void sort_by(const Values& table, std::vector<Place>& order) {
  if (table.empty()) return;
  const auto [least, largest] = std::minmax_element(table.begin(), table.end());
  const auto base = static_cast<std::uint64_t>(*least), range = static_cast<std::uint64_t>(*largest) - base;
  std::vector<Place> from(order.size());
  for (int shift = 0; shift < 64 && range >> shift; shift += 8) {
    const auto digit = [&](Place i) { return (static_cast<std::uint64_t>(table[i]) - base) >> shift & 255; };
    std::array<std::size_t, 257> begins{};
    for (const Place i : order) ++begins[digit(i) + 1];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    from.swap(order);
    for (const Place i : from) order[begins[digit(i)]++] = i;
  }
}

// The constraint z = table[index]. The state of the last call is valid until a level is undone, so a call costs only as
// much as has changed. New bounds of z are found in the sorted table.
//
// If z is narrow at the root, a copy of the index's row shows which values the index has lost, and values of z without
// a remaining place are removed. If z is wider at the root, it keeps values between those of the table, even once its
// domain is narrow, because they could only be removed one by one.
//
// All values of the index are visited only after holes from other constraints, and in the first call after an undone
// level. `Cell` and `Place` are types that can hold a value and a place of the table.
template <class Cell, class Place>
class ElementOfValues final : public Propagator {
 public:
  ElementOfValues(View index, const Values& table, View z)
      : Propagator(Priority::linear), index_(index), z_(z), order_(table.size()), rank_(table.size()) {
    std::iota(order_.begin(), order_.end(), Place{0});
    sort_by(table, order_);
    sorted_.reserve(table.size());
    for (std::size_t k = 0; k < table.size(); ++k) {
      sorted_.push_back(static_cast<Cell>(table[order_[k]]));
      rank_[order_[k]] = static_cast<Place>(k);
    }
  }

  void attach(Engine& engine) override {
    engine.subscribe(*this, index_, kDomain);
    engine.subscribe(*this, z_, kDomain);
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    is_at_root_ = engine.level() == 0;
    const bool is_known = undone_ == engine.trail().undone() && !is_at_root_ && index_.var != z_.var;
    undone_ = engine.trail().undone();
    if (!(is_known ? keep_up(d) : look_at_all(d))) return Outcome::failed;
    if (index_.var == z_.var) return Outcome::again;
    return d.fixed(z_) ? Outcome::entailed : Outcome::fixpoint;
  }

 private:
  Value at(Value i) const { return sorted_[rank_[static_cast<std::size_t>(i)]]; }

  bool look_at_all(Domains& d) {
    if (!d.set_lo(index_, 0) || !d.set_hi(index_, static_cast<Value>(sorted_.size()) - 1)) return false;
    Value lo = kLimit * 2, hi = -kLimit * 2;
    const bool is_whole = d.is_interval(z_);
    const Value first = d.lo(z_), last = d.hi(z_);
    bool alive = true;
    d.each(index_, [&](Value i) {
      const Value value = at(i);
      if (value < first || value > last || !(is_whole || d.has(z_, value))) {
        alive = alive && d.remove(index_, i);
        return;
      }
      lo = std::min(lo, value);
      hi = std::max(hi, value);
    });
    if (!alive || !d.set_lo(z_, lo) || !d.set_hi(z_, hi)) return false;
    begin_ = static_cast<std::size_t>(std::lower_bound(sorted_.begin(), sorted_.end(), lo) - sorted_.begin());
    end_ = static_cast<std::size_t>(std::upper_bound(sorted_.begin(), sorted_.end(), hi) - sorted_.begin());
    update_ends();
    if (is_at_root_) is_listed_ = hi - lo <= kListed;
    if (!is_listed_ || d.fixed(z_)) return true;
    kept_.begin(lo, hi);
    d.each(index_, [&](Value i) { kept_.add(at(i)); });
    if (!kept_.apply(d, z_)) return false;
    values_ = d.size(z_);
    row_.resize((sorted_.size() + 63) / 64);
    d.read_row(index_, 0, row_);
    return true;
  }

  bool keep_up(Domains& d) {
    if ((d.lo(z_) > lo_ || d.hi(z_) < hi_) && !remove_ends(d)) return false;
    if (is_listed_ ? d.size(z_) != values_ : !d.is_interval(z_)) return look_at_all(d);
    lost_.clear();
    if (is_listed_) find_lost(d);
    if ((!d.has(index_, first_) || !d.has(index_, last_)) && !find_ends(d)) return false;
    if (!d.set_lo(z_, lo_) || !d.set_hi(z_, hi_)) return false;
    for (const Place i : lost_)
      if (at(i) > lo_ && at(i) < hi_ && !has_equal(d, rank_[i]) && !d.remove(z_, at(i))) return false;
    values_ = d.size(z_);
    return true;
  }

  // Removes places with values beyond the bounds of z, and lowers `values_` by the number of values that z loses.
  bool remove_ends(Domains& d) {
    const Value lo = d.lo(z_), hi = d.hi(z_);
    Value last = lo;
    for (; begin_ < end_ && sorted_[begin_] < lo; ++begin_)
      if (!remove_index(d, begin_, last)) return false;
    for (last = hi; begin_ < end_ && sorted_[end_ - 1] > hi; --end_)
      if (!remove_index(d, end_ - 1, last)) return false;
    if (begin_ == end_) return false;
    update_ends();
    return true;
  }

  // Finds the least and the greatest value of the remaining places.
  bool find_ends(const Domains& d) {
    while (begin_ < end_ && !d.has(index_, order_[begin_])) ++begin_;
    while (begin_ < end_ && !d.has(index_, order_[end_ - 1])) --end_;
    if (begin_ == end_) return false;
    update_ends();
    return true;
  }

  void update_ends() {
    lo_ = sorted_[begin_];
    hi_ = sorted_[end_ - 1];
    first_ = order_[begin_];
    last_ = order_[end_ - 1];
  }

  bool remove_index(Domains& d, std::size_t rank, Value& last) {
    const auto i = static_cast<std::size_t>(order_[rank]);
    const std::uint64_t bit = std::uint64_t{1} << (i % 64);
    if (is_listed_ && row_[i / 64] & bit) {
      row_[i / 64] &= ~bit;
      values_ -= sorted_[rank] != last;
      last = sorted_[rank];
    }
    return d.remove(index_, static_cast<Value>(i));
  }

  void find_lost(const Domains& d) {
    for (std::size_t w = 0; w < row_.size(); ++w) {
      if (!row_[w]) continue;
      std::uint64_t lost = row_[w] & ~d.row_word(index_, static_cast<Value>(w * 64));
      row_[w] &= ~lost;
      for (; lost; lost &= lost - 1)
        lost_.push_back(static_cast<Place>(w * 64 + static_cast<std::size_t>(std::countr_zero(lost))));
    }
  }

  bool has_equal(const Domains& d, std::size_t rank) const {
    const Cell value = sorted_[rank];
    for (std::size_t k = rank + 1; k < end_ && sorted_[k] == value; ++k)
      if (d.has(index_, order_[k])) return true;
    for (std::size_t k = rank; k-- > begin_ && sorted_[k] == value;)
      if (d.has(index_, order_[k])) return true;
    return false;
  }

  // Fields that every call reads come first and long arrays last, because there may be thousands of elements. The
  // remaining places have ranks from `begin_` to `end_` - 1. Their least value `lo_` is at the place `first_`, and
  // their greatest value `hi_` at `last_`.
  View index_, z_;
  std::uint64_t undone_ = ~std::uint64_t{0};
  Value lo_ = 0, hi_ = 0, values_ = 0;  // `values_`: number of values of z
  Place first_ = 0, last_ = 0;
  bool is_at_root_ = true, is_listed_ = false;
  std::vector<std::uint64_t> row_;  // row of the index
  std::size_t begin_ = 0, end_ = 0;
  std::vector<Cell> sorted_;         // the table's values
  std::vector<Place> order_, rank_;  // places by rank; rank of each place
  std::vector<Place> lost_;
  SupportedValues kept_;
};

}  // namespace

void post_element(Engine& engine, View index, const Values& table, View z) {
  const auto fits = [](Value value) { return value >= INT32_MIN && value <= INT32_MAX; };
  if (table.size() <= 1 << 16 && std::all_of(table.begin(), table.end(), fits))
    engine.post(std::make_unique<ElementOfValues<std::int32_t, std::uint16_t>>(index, table, z));
  else engine.post(std::make_unique<ElementOfValues<Value, std::uint32_t>>(index, table, z));
}

}  // namespace elimina::cp
