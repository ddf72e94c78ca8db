// Domains of all variables: bounds, and a row of bits once there are holes (for huge ranges, a list of the holes).
#pragma once
#include <algorithm>
#include <bit>
#include <span>
#include <unordered_set>
#include <vector>

#include "trail.hpp"
#include "types.hpp"

namespace elimina::cp {

// Variables and words of rows that have changed, so that a copy of the domains can be updated.
struct Changes {
  static constexpr std::uint8_t kOthers = 0, kUnseen = 1, kSeen = 2;
  std::vector<std::uint8_t> state;   // for each variable, whether it is copied and has changed
  std::vector<int> variables;        // changed variables, each once
  std::vector<std::uint32_t> words;  // changed words, some more than once; at most `max_words` of them
  std::size_t max_words = 0;
  bool overflown = false;

  void see(int v) {
    if (state[v] != kUnseen) return;
    state[v] = kSeen;
    variables.push_back(v);
  }
  void see_word(int v, std::size_t word) {
    if (state[v] == kOthers) return;
    if (words.size() < max_words) words.push_back(static_cast<std::uint32_t>(word));
    else overflown = true;
  }
  void forget() {
    for (const int v : variables) state[v] = kUnseen;
    variables.clear();
    words.clear();
    overflown = false;
  }
};

class Domains {
 public:
  explicit Domains(Trail& trail) : trail_(trail) {}

  int make(Value lo, Value hi);
  int count() const { return static_cast<int>(domains_.size()); }

  // Builds the row of bits of a variable, which is kept from then on. Does nothing if the range is huge. Call it only
  // at the root.
  void materialise(int v);

  bool has(int v, Value x) const;
  bool has(View x, Value value) const {
    value -= x.offset;
    if (x.scale == 1) return has(x.var, value);
    return value % x.scale == 0 && has(x.var, value / x.scale);
  }

  Value lo(int v) const { return domains_[v].lo; }
  Value hi(int v) const { return domains_[v].hi; }
  Value lo(View x) const {
    const Domain& d = domains_[x.var];
    return x.scale > 0 ? x.scale * d.lo + x.offset : x.scale * d.hi + x.offset;
  }
  Value hi(View x) const {
    const Domain& d = domains_[x.var];
    return x.scale > 0 ? x.scale * d.hi + x.offset : x.scale * d.lo + x.offset;
  }
  Value size(int v) const { return domains_[v].size; }
  Value size(View x) const { return domains_[x.var].size; }
  bool fixed(int v) const { return domains_[v].lo == domains_[v].hi; }
  bool fixed(View x) const { return fixed(x.var); }
  bool is_interval(View x) const { return hi(x.var) - lo(x.var) + 1 == size(x.var) && (x.scale == 1 || x.scale == -1); }

  // Return the next value of the domain above, or below, a number. Such a value must exist.
  Value above(int v, Value x) const;
  Value below(int v, Value x) const;
  Value above(View x, Value value) const;
  Value below(View x, Value value) const;

  // Narrow a domain; return false if no value remains. The domain is then undefined until the level is undone.
  [[nodiscard]] bool set_lo(int v, Value x);
  [[nodiscard]] bool set_hi(int v, Value x);
  [[nodiscard]] bool assign(int v, Value x);
  [[nodiscard]] bool remove(int v, Value x);
  [[nodiscard]] bool set_lo(View x, Value value) {
    if (value <= lo(x)) return true;
    value -= x.offset;
    if (x.scale == 1) return set_lo(x.var, value);
    return x.scale > 0 ? set_lo(x.var, ceil_div(value, x.scale)) : set_hi(x.var, floor_div(value, x.scale));
  }
  [[nodiscard]] bool set_hi(View x, Value value) {
    if (value >= hi(x)) return true;
    value -= x.offset;
    if (x.scale == 1) return set_hi(x.var, value);
    return x.scale > 0 ? set_hi(x.var, floor_div(value, x.scale)) : set_lo(x.var, ceil_div(value, x.scale));
  }
  [[nodiscard]] bool assign(View x, Value value) {
    value -= x.offset;
    if (x.scale == 1) return assign(x.var, value);
    return value % x.scale == 0 && assign(x.var, value / x.scale);
  }
  [[nodiscard]] bool remove(View x, Value value) {
    value -= x.offset;
    if (x.scale == 1) return remove(x.var, value);
    return value % x.scale != 0 || remove(x.var, value / x.scale);
  }

  // Calls `f(value)` for each value from the smallest on; `f` may remove the value that it gets.
  template <class F>
  void each(View x, F f) const {
    if (x.scale == 1 && domains_[x.var].row != kNoRow) return each_bit(x, f);
    const Value last = hi(x);
    const bool is_whole = is_interval(x);
    for (Value value = lo(x);;) {
      const bool has_next = value < last;
      const Value next = !has_next ? value : is_whole ? value + 1 : above(x, value);
      f(value);
      if (!has_next) return;
      value = next;
    }
  }

  // Writes the domain as bits: bit k of `words` is set if `base + k` is a value.
  void read_row(View x, Value base, std::span<std::uint64_t> words) const;

  // `row_word`: the 64 numbers from `base` on as bits, set for values of x. `meets`: true if bit k of `words` is set
  // for a value `base + k` of x.
  std::uint64_t row_word(View x, Value base) const {
    const Domain& d = domains_[x.var];
    return x.scale == 1 && d.row != kNoRow ? row_bits(d, base - x.offset - d.base) : listed_word(x, base);
  }
  bool meets(View x, Value base, std::span<const std::uint64_t> words) const;

  // Prefetches a domain. Loops over thousands of variables prefetch the domains that they visit a few iterations later.
  void prefetch(View x) const { __builtin_prefetch(&domains_[x.var]); }

  // Variables that changed since the last `forget`, and the events of each.
  std::span<const int> changed() const { return changed_; }
  Events events(int v) const { return events_[v]; }
  void forget() {
    for (const int v : changed_) events_[v] = 0;
    changed_.clear();
  }

  // Records further changes in `changes`; nullptr ends the recording.
  void tell_changes(Changes* changes) { changes_ = changes; }

  // `rows`: the rows of all variables, one after another; `row_place`: position of a variable's first word in them;
  // `row_base`: value of this word's first bit.
  std::span<const std::uint64_t> rows() const { return rows_; }
  bool has_row(int v) const { return domains_[v].row != kNoRow; }
  std::size_t row_place(int v) const { return domains_[v].row; }
  Value row_base(int v) const { return domains_[v].base; }

  void mark();
  void undo();

 private:
  static constexpr std::size_t kNoRow = ~std::size_t{0};

  struct Domain {
    Value lo, hi, size;
    Value base;           // value of the row's first bit, a multiple of 64
    std::size_t row;      // first word in `rows_`, or `kNoRow`; bits beyond the bounds are undefined
    std::int32_t holes;   // latest hole, if there is no row
    std::uint64_t stamp;  // stamp of the level when the bounds were last saved
  };
  struct Hole {
    Value value;
    std::int32_t next;
  };
  // Key of the hash set of holes in domains without a row; `holes_` lists the holes in order of creation.
  struct HoleOf {
    int var;
    Value value;
    bool operator==(const HoleOf&) const = default;
  };
  struct HashOfHole {
    std::size_t operator()(const HoleOf& h) const {
      const auto x =
          (static_cast<std::uint64_t>(h.value) ^ static_cast<std::uint64_t>(h.var) << 40) * 0x9e3779b97f4a7c15U;
      return static_cast<std::size_t>(x ^ x >> 32);
    }
  };
  struct Mark {
    std::size_t log, rows, holes;
  };

  // The log, latest entry last. An entry has a variable and the number of a bit removed from its row, or a variable and
  // one of these codes, which are above all numbers of bits.
  static constexpr std::uint32_t kBoundsSaved = ~0U, kRowBuilt = ~0U - 1, kHoleMade = ~0U - 2;

  bool is_logged() const { return trail_.level() > 0; }
  void log(int v, std::uint32_t what) { log_.push_back(static_cast<std::uint64_t>(v) << 32 | what); }
  void record_events(int v, Events events);
  Domain& with_saved_bounds(int v, Events events);
  // Make `x` a bound of a domain that has `size` values from then on.
  void move_lo(int v, Value x, Value size);
  void move_hi(int v, Value x, Value size);
  void revert(std::uint64_t entry);
  std::uint64_t popped();

  void build_row(int v);
  bool is_hole(int v, Value x) const;
  Value count_between(int v, Value from, Value to) const;

  static std::size_t bit_of(Value base, Value x) { return static_cast<std::size_t>(x - base); }
  static std::uint64_t from_bit(std::size_t bit) { return ~std::uint64_t{0} << (bit % 64); }
  static std::uint64_t to_bit(std::size_t bit) { return ~std::uint64_t{0} >> (63 - bit % 64); }

  // Returns 64 bits of the row, beginning at a bit that may lie before the row; bits beyond the bounds are 0.
  std::uint64_t row_bits(const Domain& d, Value bit) const {
    const Value least = d.lo - d.base - bit, last = d.hi - d.base - bit;  // bits of the bounds
    if (last < 0 || least > 63) return 0;
    const std::uint64_t* const words = rows_.data() + d.row;
    const Value word = bit >> 6;
    const int shift = static_cast<int>(bit & 63);
    // A word is read only if it has bits within the bounds.
    std::uint64_t bits = least < 64 - shift ? words[word] >> shift : 0;
    if (shift && last >= 64 - shift) bits |= words[word + 1] << (64 - shift);
    if (least > 0) bits &= ~std::uint64_t{0} << least;
    if (last < 63) bits &= ~std::uint64_t{0} >> (63 - last);
    return bits;
  }

  std::uint64_t listed_word(View x, Value base) const;

  // Calls `f(i, word)` for each i from `first` to `last`; the word has the values from `base + 64 * i` on as bits.
  // Words inside the bounds need no masks.
  template <class F>
  void each_word(View x, Value base, Value first, Value last, F f) const {
    const Domain& d = domains_[x.var];
    Value from = last + 1, to = last;  // words without masks
    if (x.scale == 1 && d.row != kNoRow) {
      const Value bit = base - x.offset - d.base, at = bit >> 6;
      const int bits = static_cast<int>(bit & 63);
      const std::size_t row = d.row + static_cast<std::size_t>(at);
      from = std::clamp<Value>(static_cast<Value>(bit_of(d.base, d.lo) / 64) + 1 - at, first, last + 1);
      to = std::clamp<Value>(static_cast<Value>(bit_of(d.base, d.hi) / 64) - 1 - (bits > 0) - at, from - 1, last);
      for (Value i = first; i < from; ++i) f(i, row_bits(d, bit + i * 64));
      for (Value i = from; i <= to; ++i) {
        const std::uint64_t* const words = rows_.data() + (row + static_cast<std::size_t>(i));
        f(i, bits ? words[0] >> bits | words[1] << (64 - bits) : words[0]);
      }
      first = to + 1;
    }
    for (Value i = first; i <= last; ++i) f(i, row_word(x, base + i * 64));
  }

  template <class F>
  void each_bit(View x, F f) const {
    const Value first = domains_[x.var].lo, last = domains_[x.var].hi, base = domains_[x.var].base;
    for (Value word = (first - base) >> 6; word <= (last - base) >> 6; ++word)
      for (std::uint64_t bits = row_bits(domains_[x.var], word * 64); bits; bits &= bits - 1)
        f(base + word * 64 + std::countr_zero(bits) + x.offset);
  }

  Trail& trail_;
  std::vector<Domain> domains_;
  std::vector<Hole> holes_;
  std::unordered_set<HoleOf, HashOfHole> known_holes_;
  std::vector<std::uint64_t> log_, rows_;
  std::vector<Mark> marks_;
  std::vector<Events> events_;
  std::vector<int> changed_;
  Changes* changes_ = nullptr;
};

}  // namespace elimina::cp
