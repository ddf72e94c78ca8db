// Joins pairs of runs (see join.hpp) that have rows for many of the low field's values. Right runs are spread over
// arrays with a cell for each value, so several of them are joined at once, without searches and branches.
#pragma once
#include <vector>

#include "exec/sparse/output.hpp"

namespace elimina::sparse {

template <class R, int W>
class Grid {
 public:
  using Value = typename R::Value;

  Grid(const R& ring, u64 low) : ring_(ring), low_(low), zero_(ring.finish(ring.start())), domain_(i64(low) + 1) {}

  // True if a grid pays: the domain is small, and the rows fill enough cells of the runs.
  bool worth(i64 rows, std::size_t runs) const {
    if constexpr (!R::is_empty_zero) return false;
    return low_ < kMostDomain && rows * kLeastShare >= i64(runs) * domain_;
  }

  // Writes one row for each pair of runs with a common value.
  void eliminate(const Side<R, W>& left, const std::vector<i64>& left_starts, const Side<R, W>& right,
                 const std::vector<i64>& right_starts, Writer<W, Value>& writer) {
    spread(right, right_starts);
    for (std::size_t m = 0; m + 1 < left_starts.size(); ++m) write(left, left_starts[m], left_starts[m + 1], writer);
  }

  // Writes one row for each common value of a pair of runs.
  void keep(const Side<R, W>& left, const std::vector<i64>& left_starts, const Side<R, W>& right,
            const std::vector<i64>& right_starts, Writer<W, Value>& writer) {
    spread(right, right_starts);
    const R ring = ring_;
    Key<W>* keys = writer.keys;
    Value* values = writer.values;
    i64 rows = writer.rows;
    for (std::size_t m = 0; m + 1 < left_starts.size(); ++m)
      for (i64 n = 0, runs = runs_; n < runs; ++n)
        for (i64 i = left_starts[m]; i < left_starts[m + 1]; ++i) {
          const Value value =
              ring.combine(left.values[i], right_[std::size_t(i64(left.keys[i].word[W - 1] & low_) * runs + n)]);
          keys[rows] = left.keys[i] | keys_[std::size_t(n)];
          values[rows] = value;
          rows += feasible(ring, value);
        }
    writer.rows = rows;
  }

 private:
  static constexpr u64 kMostDomain = 64;
  static constexpr i64 kLeastShare = 6;

  // Writes the right runs as columns, with zeros for missing rows.
  void spread(const Side<R, W>& right, const std::vector<i64>& starts) {
    runs_ = i64(starts.size()) - 1;
    right_.assign(std::size_t(domain_ * runs_), zero_);
    keys_.resize(std::size_t(runs_));
    for (i64 n = 0; n < runs_; ++n) {
      for (i64 j = starts[std::size_t(n)]; j < starts[std::size_t(n) + 1]; ++j)
        right_[std::size_t(i64(right.keys[j].word[W - 1] & low_) * runs_ + n)] = right.values[j];
      keys_[std::size_t(n)] = without_low(right.keys[starts[std::size_t(n)]]);
    }
  }

  Key<W> without_low(Key<W> key) const {
    key.word[W - 1] &= ~low_;
    return key;
  }

  void write(const Side<R, W>& left, i64 i, i64 i_end, Writer<W, Value>& writer) {
    const R ring = ring_;
    const i64 runs = runs_;
    const Key<W> left_key = without_low(left.keys[i]);
    sums_.assign(std::size_t(runs), ring.start());
    typename R::Sum* sums = sums_.data();
    for (; i < i_end; ++i) {
      const i64 x = i64(left.keys[i].word[W - 1] & low_);
      const Value value = left.values[i];
      const Value* row = right_.data() + x * runs;
      for (i64 n = 0; n < runs; ++n) ring.add(sums[n], ring.combine(value, row[n]));
    }
    Key<W>* keys = writer.keys + writer.rows;
    Value* values = writer.values + writer.rows;
    const Key<W>* right_keys = keys_.data();
    i64 rows = 0;
    for (i64 n = 0; n < runs; ++n) {
      const Value value = ring.finish(sums[n]);
      keys[rows] = left_key | right_keys[n];
      values[rows] = value;
      rows += feasible(ring, value);
    }
    writer.rows += rows;
  }

  R ring_;
  u64 low_;
  Value zero_;
  i64 domain_, runs_ = 0;
  std::vector<Value> right_;  // [value of the low field][right run]
  std::vector<typename R::Sum> sums_;
  std::vector<Key<W>> keys_;
};

}  // namespace elimina::sparse
