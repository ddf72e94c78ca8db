#include "domains.hpp"

#include <algorithm>
#include <bit>
#include <string>

namespace elimina::cp {

namespace {

// A range of width `kWidest` (greatest minus least value) or more never has a row of bits. A range narrower than
// `kNarrow`, but of more than two values, has a row from the beginning.
constexpr Value kWidest = Value{1} << 20, kNarrow = 256;

Value base_of(Value lo) { return floor_div(lo, 64) * 64; }

}  // namespace

int Domains::make(Value lo, Value hi) {
  if (lo > hi) throw Refused("a domain has at least one value, not " + std::to_string(lo) + ".." + std::to_string(hi));
  if (lo < -kLimit || hi > kLimit)
    throw Refused("a bound is at most 2^52 in absolute value, not " + std::to_string(lo) + ".." + std::to_string(hi));
  domains_.push_back({lo, hi, hi - lo + 1, 0, kNoRow, -1, 0});
  events_.push_back(0);
  if (hi - lo >= 2 && hi - lo < kNarrow) build_row(count() - 1);
  return count() - 1;
}

void Domains::materialise(int v) {
  const Domain& d = domains_[v];
  if (!is_logged() && d.row == kNoRow && d.hi - d.lo < kWidest) build_row(v);
}

void Domains::build_row(int v) {
  Domain& d = domains_[v];
  if (is_logged()) log(v, kRowBuilt);
  d.base = base_of(d.lo);
  d.row = rows_.size();
  rows_.resize(rows_.size() + bit_of(d.base, d.hi) / 64 + 1, ~std::uint64_t{0});
  for (std::int32_t i = d.holes; i >= 0; i = holes_[i].next) {
    const Value x = holes_[i].value;
    if (x >= d.lo && x <= d.hi)
      rows_[d.row + bit_of(d.base, x) / 64] &= ~(std::uint64_t{1} << (bit_of(d.base, x) % 64));
  }
}

bool Domains::is_hole(int v, Value x) const {
  const Domain& d = domains_[v];
  if (d.row != kNoRow) {
    const std::size_t bit = bit_of(d.base, x);
    return !(rows_[d.row + bit / 64] >> (bit % 64) & 1);
  }
  return d.holes >= 0 && known_holes_.contains({v, x});
}

bool Domains::has(int v, Value x) const {
  const Domain& d = domains_[v];
  return x >= d.lo && x <= d.hi && (d.size == d.hi - d.lo + 1 || !is_hole(v, x));
}

Value Domains::above(int v, Value x) const {
  const Domain& d = domains_[v];
  ++x;
  if (d.size == d.hi - d.lo + 1) return x;
  if (d.row == kNoRow) {
    while (is_hole(v, x)) ++x;
    return x;
  }
  std::size_t bit = bit_of(d.base, x);
  std::uint64_t word = rows_[d.row + bit / 64] & from_bit(bit);
  std::size_t i = bit / 64;
  while (!word) word = rows_[d.row + ++i];
  return d.base + static_cast<Value>(i * 64) + std::countr_zero(word);
}

Value Domains::below(int v, Value x) const {
  const Domain& d = domains_[v];
  --x;
  if (d.size == d.hi - d.lo + 1) return x;
  if (d.row == kNoRow) {
    while (is_hole(v, x)) --x;
    return x;
  }
  std::size_t bit = bit_of(d.base, x);
  std::uint64_t word = rows_[d.row + bit / 64] & to_bit(bit);
  std::size_t i = bit / 64;
  while (!word) word = rows_[d.row + --i];
  return d.base + static_cast<Value>(i * 64) + 63 - std::countl_zero(word);
}

Value Domains::above(View x, Value value) const {
  const Value inner = (value - x.offset) / x.scale;
  return x.scale * (x.scale > 0 ? above(x.var, inner) : below(x.var, inner)) + x.offset;
}

Value Domains::below(View x, Value value) const {
  const Value inner = (value - x.offset) / x.scale;
  return x.scale * (x.scale > 0 ? below(x.var, inner) : above(x.var, inner)) + x.offset;
}

// Returns the number of values from `from` to `to`, both within the bounds.
Value Domains::count_between(int v, Value from, Value to) const {
  const Domain& d = domains_[v];
  if (from > to) return 0;
  const Value holes = d.hi - d.lo + 1 - d.size;
  if (holes == 0) return to - from + 1;
  if (d.row == kNoRow) {
    Value count = to - from + 1;
    if (count < holes) {
      for (Value x = from; x <= to; ++x) count -= is_hole(v, x);
      return count;
    }
    for (std::int32_t i = d.holes; i >= 0; i = holes_[i].next)
      count -= holes_[i].value >= from && holes_[i].value <= to;
    return count;
  }
  const std::size_t first = bit_of(d.base, from), last = bit_of(d.base, to);
  Value count = 0;
  for (std::size_t i = first / 64; i <= last / 64; ++i) {
    std::uint64_t word = rows_[d.row + i];
    if (i == first / 64) word &= from_bit(first);
    if (i == last / 64) word &= to_bit(last);
    count += std::popcount(word);
  }
  return count;
}

inline void Domains::record_events(int v, Events events) {
  if (!events_[v]) changed_.push_back(v);
  events_[v] |= events | kDomain;
  if (changes_) changes_->see(v);
}

Domains::Domain& Domains::with_saved_bounds(int v, Events events) {
  Domain& d = domains_[v];
  if (is_logged() && d.stamp != trail_.stamp()) {
    for (const Value x : {d.lo, d.hi, d.size}) log_.push_back(static_cast<std::uint64_t>(x));
    log(v, kBoundsSaved);
    d.stamp = trail_.stamp();
  }
  record_events(v, events);
  return d;
}

inline void Domains::move_lo(int v, Value x, Value size) {
  Domain& d = with_saved_bounds(v, size == 1 ? kLower | kFix : kLower);
  d.lo = x;
  d.size = size;
}

inline void Domains::move_hi(int v, Value x, Value size) {
  Domain& d = with_saved_bounds(v, size == 1 ? kUpper | kFix : kUpper);
  d.hi = x;
  d.size = size;
}

bool Domains::set_lo(int v, Value x) {
  const Domain& old = domains_[v];
  if (x <= old.lo) return true;
  if (x > old.hi) return false;
  if (x == old.hi) return assign(v, x);
  if (old.size != old.hi - old.lo + 1 && is_hole(v, x)) x = above(v, x);
  move_lo(v, x, old.size - count_between(v, old.lo, x - 1));
  return true;
}

bool Domains::set_hi(int v, Value x) {
  const Domain& old = domains_[v];
  if (x >= old.hi) return true;
  if (x < old.lo) return false;
  if (x == old.lo) return assign(v, x);
  if (old.size != old.hi - old.lo + 1 && is_hole(v, x)) x = below(v, x);
  move_hi(v, x, old.size - count_between(v, x + 1, old.hi));
  return true;
}

bool Domains::assign(int v, Value x) {
  const Domain& old = domains_[v];
  if (!has(v, x)) return false;
  if (old.lo == old.hi) return true;
  Domain& d = with_saved_bounds(v, static_cast<Events>(kFix | (x != old.lo ? kLower : 0) | (x != old.hi ? kUpper : 0)));
  d.lo = d.hi = x;
  d.size = 1;
  return true;
}

bool Domains::remove(int v, Value x) {
  if (!has(v, x)) return true;
  const Domain& old = domains_[v];
  if (old.lo == old.hi) return false;
  if (x == old.lo) {
    move_lo(v, above(v, x), old.size - 1);
    return true;
  }
  if (x == old.hi) {
    move_hi(v, below(v, x), old.size - 1);
    return true;
  }
  record_events(v, 0);
  if (old.row == kNoRow && old.hi - old.lo <= kListed) build_row(v);
  Domain& d = domains_[v];
  --d.size;
  if (d.row == kNoRow) {
    holes_.push_back({x, d.holes});
    d.holes = static_cast<std::int32_t>(holes_.size() - 1);
    known_holes_.insert({v, x});
    if (is_logged()) log(v, kHoleMade);
    return true;
  }
  const std::size_t bit = bit_of(d.base, x);
  rows_[d.row + bit / 64] &= ~(std::uint64_t{1} << (bit % 64));
  if (is_logged()) log(v, static_cast<std::uint32_t>(bit));
  if (changes_) changes_->see_word(v, d.row + bit / 64);
  return true;
}

void Domains::mark() {
  marks_.push_back({log_.size(), rows_.size(), holes_.size()});
  trail_.mark();
}

void Domains::undo() {
  const Mark mark = marks_.back();
  marks_.pop_back();
  while (log_.size() > mark.log) revert(popped());
  rows_.resize(mark.rows);
  holes_.resize(mark.holes);
  trail_.undo();
  forget();
}

std::uint64_t Domains::popped() {
  const std::uint64_t entry = log_.back();
  log_.pop_back();
  return entry;
}

void Domains::revert(std::uint64_t entry) {
  const auto v = static_cast<int>(entry >> 32);
  Domain& d = domains_[v];
  const auto change = static_cast<std::uint32_t>(entry);
  if (change == kBoundsSaved) {
    if (changes_) changes_->see(v);
    for (Value* x : {&d.size, &d.hi, &d.lo}) *x = static_cast<Value>(popped());
  } else if (change == kRowBuilt) {
    d.row = kNoRow;
  } else {
    ++d.size;
    if (change == kHoleMade) {
      known_holes_.erase({v, holes_[d.holes].value});
      d.holes = holes_[d.holes].next;
    } else {
      rows_[d.row + change / 64] |= std::uint64_t{1} << (change % 64);
    }
    if (changes_ && change != kHoleMade) changes_->see_word(v, d.row + change / 64);
  }
}

std::uint64_t Domains::listed_word(View x, Value base) const {
  std::uint64_t result = 0;
  if (is_interval(x)) {
    const Value first = std::max<Value>(0, lo(x) - base), last = std::min<Value>(63, hi(x) - base);
    return first > last ? 0 : from_bit(static_cast<std::size_t>(first)) & to_bit(static_cast<std::size_t>(last));
  }
  for (Value k = std::max<Value>(0, lo(x) - base); k < 64 && base + k <= hi(x); ++k)
    result |= static_cast<std::uint64_t>(has(x, base + k)) << k;
  return result;
}

bool Domains::meets(View x, Value base, std::span<const std::uint64_t> words) const {
  const Value least = std::max<Value>(lo(x) - base, 0),
              last = std::min(hi(x) - base, static_cast<Value>(words.size() * 64) - 1);
  if (least > last) return false;
  for (Value i = least / 64; i <= last / 64; ++i)
    if (words[static_cast<std::size_t>(i)] && (words[static_cast<std::size_t>(i)] & row_word(x, base + i * 64)))
      return true;
  return false;
}

void Domains::read_row(View x, Value base, std::span<std::uint64_t> words) const {
  std::fill(words.begin(), words.end(), 0);
  const Value least = std::max<Value>(lo(x) - base, 0),
              last = std::min(hi(x) - base, static_cast<Value>(words.size() * 64) - 1);
  if (least > last) return;
  std::uint64_t* const to = words.data();
  each_word(x, base, least / 64, last / 64, [to](Value i, std::uint64_t word) { to[i] = word; });
}

}  // namespace elimina::cp
