// Sorting rows by key: a radix sort from the least significant digit, of the bits that differ only.
#pragma once
#include <omp.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "rows.hpp"

namespace elimina::sparse {

struct Digit {
  int word, shift, bits;
};

template <int W>
class Sorter {
 public:
  Sorter(const Key<W>* keys, i64 rows, int threads)
      : keys_(keys), rows_(rows), threads_(int(std::clamp<i64>(rows / kLeast, 1, threads))) {}

  bool sorted() const {
    const Key<W> all = all_but<W>(0);
    bool out_of_order = false;
#pragma omp parallel for num_threads(threads_) reduction(|| : out_of_order)
    for (int part = 0; part < threads_; ++part)
      for (i64 i = std::max<i64>(1, begin(part)); i < begin(part + 1) && !out_of_order; ++i)
        out_of_order = less(keys_[i], keys_[i - 1], all);
    return !out_of_order;
  }

  // Values may be of any type of the size of V.
  template <class V>
  Made run(const V* values) const {
    const std::vector<Digit> digits = differing_digits();
    Made out;
    out.rows = rows_;
    const i64 key_bytes = rows_ * i64(sizeof(Key<W>)), value_bytes = rows_ * i64(sizeof(V));
    out.keys = Buffer(key_bytes);
    out.values = Buffer(value_bytes);
    if (digits.empty()) {
      std::copy_n(keys_, rows_, out.keys.template as<Key<W>>());
      std::copy_n(values, rows_, out.values.template as<V>());
      return out;
    }
    Buffer spare_keys, spare_values;
    if (digits.size() > 1) {
      spare_keys = Buffer(key_bytes);
      spare_values = Buffer(value_bytes);
    }
    const Key<W>* from_keys = keys_;
    const V* from_values = values;
    for (std::size_t n = 0; n < digits.size(); ++n) {
      const bool last = (digits.size() - n) % 2 == 1;
      Key<W>* to_keys = (last ? out.keys : spare_keys).template as<Key<W>>();
      V* to_values = (last ? out.values : spare_values).template as<V>();
      pass(digits[n], from_keys, from_values, to_keys, to_values);
      from_keys = to_keys;
      from_values = to_values;
    }
    return out;
  }

 private:
  static constexpr i64 kLeast = 1 << 14;
  static constexpr int kMostBits = 11;

  i64 begin(int part) const { return rows_ * part / threads_; }

  std::vector<Digit> differing_digits() const {
    u64 differing[W] = {};
    for (i64 i = 1; i < rows_; ++i)
      for (int w = 0; w < W; ++w) differing[w] |= keys_[i].word[w] ^ keys_[0].word[w];
    std::vector<Digit> digits;
    for (int w = W - 1; w >= 0; --w)
      while (differing[w]) {
        const int shift = std::countr_zero(differing[w]), span = int(std::bit_width(differing[w])) - shift;
        const int passes = (span + kMostBits - 1) / kMostBits, bits = (span + passes - 1) / passes;
        digits.push_back({w, shift, bits});
        differing[w] &= ~(((u64(1) << bits) - 1) << shift);
      }
    return digits;
  }

  template <class V>
  void pass(Digit digit, const Key<W>* keys, const V* values, Key<W>* to_keys, V* to_values) const {
    const i64 kinds = i64(1) << digit.bits;
    const u64 mask = u64(kinds - 1);
    std::vector<i64> next(std::size_t(threads_ * kinds));
#pragma omp parallel num_threads(threads_)
    {
#pragma omp for schedule(static, 1)
      for (int part = 0; part < threads_; ++part) {
        i64* count = next.data() + part * kinds;
        for (i64 i = begin(part); i < begin(part + 1); ++i) ++count[keys[i].word[digit.word] >> digit.shift & mask];
      }
#pragma omp single
      {
        i64 start = 0;
        for (i64 kind = 0; kind < kinds; ++kind)
          for (int part = 0; part < threads_; ++part) start += std::exchange(next[std::size_t(part * kinds + kind)], start);
      }
#pragma omp for schedule(static, 1)
      for (int part = 0; part < threads_; ++part) {
        i64* place = next.data() + part * kinds;
        for (i64 i = begin(part); i < begin(part + 1); ++i) {
          const i64 to = place[keys[i].word[digit.word] >> digit.shift & mask]++;
          to_keys[to] = keys[i];
          to_values[to] = values[i];
        }
      }
    }
  }

  const Key<W>* keys_;
  i64 rows_;
  int threads_;
};

}  // namespace elimina::sparse
