// Sorts rows by key: distributes rows to buckets by the most significant differing bits, and then sorts each bucket in
// the cache, by a radix sort from the least significant digit.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <vector>

#include "exec/paths.hpp"
#include "exec/share.hpp"
#include "exec/sparse/rows.hpp"

namespace elimina::sparse {

template <int W>
class Sorter {
 public:
  Sorter(const Key<W>* keys, i64 rows, int threads)
      : keys_(keys), rows_(rows), threads_(threads), blocks_(int(std::clamp<i64>(rows / kLeast, 1, threads))) {}

  bool sorted() const {
    const Key<W> all = all_but<W>(0);
    std::atomic<bool> out_of_order = false;
    each_part(rows_, [&](int, i64 begin, i64 end) {
      bool is_unsorted = out_of_order;
      for (i64 i = std::max<i64>(1, begin); i < end && !is_unsorted; ++i)
        is_unsorted = less(keys_[i], keys_[i - 1], all);
      if (is_unsorted) out_of_order = true;
    });
    return !out_of_order;
  }

  // Returns the sorted rows. V stands for the type of the values: they are only moved, so any type of their size will
  // do.
  template <class V>
  OwnedTable run(const V* values) const {
    OwnedTable table = room<V>(rows_);
    const Rows<V> from{const_cast<Key<W>*>(keys_), const_cast<V*>(values), rows_}, to = rows_of<V>(table);
    Bits differing = differing_bits();
    if (rows_ <= kBucket || std::all_of(differing.begin(), differing.end(), [](u64 bits) { return bits == 0; })) {
      count_path(Path::rows_sort_small);
      std::copy_n(from.keys, rows_, to.keys);
      std::copy_n(from.values, rows_, to.values);
      OwnedTable spare = room<V>(rows_);
      sort_bucket(to, rows_of<V>(spare), digits_of(differing));
      return table;
    }
    count_path(Path::rows_sort_dealt);
    const std::vector<i64> starts = deal(take_top(differing), from, to);
    const std::vector<Digit> digits = digits_of(differing);
    const i64 buckets = i64(starts.size()) - 1;
    const auto bucket = [&](i64 n) {
      const i64 start = starts[std::size_t(n)];
      return Rows<V>{to.keys + start, to.values + start, starts[std::size_t(n) + 1] - start};
    };
    std::vector<OwnedTable> spares(static_cast<std::size_t>(threads_));
    for (OwnedTable& spare : spares) spare = room<V>(kBucket);
    share(threads_, 0, buckets, [&](i64 n, int thread) {
      patience_.check();
      if (bucket(n).rows <= kBucket) sort_bucket(bucket(n), rows_of<V>(spares[std::size_t(thread)]), digits);
    });
    for (i64 n = 0; n < buckets; ++n)
      if (bucket(n).rows > kBucket) sort_large(bucket(n), digits);
    return table;
  }

 private:
  static constexpr i64 kLeast = 1 << 14, kBucket = 1 << 16;
  static constexpr int kMostBits = 10, kBucketBits = 13;

  struct Digit {
    int word, shift, bits;
    i64 kinds() const { return i64(1) << bits; }
    i64 of(const Key<W>& key) const { return i64(key.word[word] >> shift & u64(kinds() - 1)); }
    u64 mask() const { return u64(kinds() - 1) << shift; }
  };
  using Bits = std::array<u64, W>;

  template <class V>
  struct Rows {
    Key<W>* keys;
    V* values;
    i64 rows;
  };

  template <class V>
  static OwnedTable room(i64 rows) {
    OwnedTable table;
    table.rows = rows;
    table.keys = Buffer(rows * i64(sizeof(Key<W>)));
    table.values = Buffer(rows * i64(sizeof(V)));
    return table;
  }

  template <class V>
  static Rows<V> rows_of(const OwnedTable& table) {
    return {table.keys.template as<Key<W>>(), table.values.template as<V>(), table.rows};
  }

  // Calls `work(part, begin, end)` for pieces of each part of some rows; the pieces of a part come in ascending order,
  // on one thread.
  template <class Work>
  void each_part(i64 rows, const Work& work) const {
    share(threads_, 0, blocks_, [&](i64 block, int) {
      each_look(patience_, rows * block / blocks_, rows * (block + 1) / blocks_,
                [&](i64 begin, i64 end) { work(int(block), begin, end); });
    });
  }

  Bits differing_bits() const {
    std::vector<Bits> bits_of_blocks(std::size_t(blocks_), Bits{});
    each_part(rows_, [&](int block, i64 begin, i64 end) {
      Bits bits = bits_of_blocks[std::size_t(block)];
      for (i64 i = begin; i < end; ++i)
        for (int w = 0; w < W; ++w) bits[std::size_t(w)] |= keys_[i].word[w] ^ keys_[0].word[w];
      bits_of_blocks[std::size_t(block)] = bits;
    });
    for (const Bits& bits : bits_of_blocks)
      for (std::size_t w = 0; w < W; ++w) bits_of_blocks[0][w] |= bits[w];
    return bits_of_blocks[0];
  }

  // Returns the most significant digit of the bits in which keys differ, and removes it from these bits.
  Digit take_top(Bits& differing) const {
    int word = 0;
    while (!differing[std::size_t(word)]) ++word;
    u64& bits = differing[std::size_t(word)];
    const int end = int(std::bit_width(bits)),
              wanted = std::clamp(int(std::bit_width(u64(rows_))) - kBucketBits, 1, 11);
    const int shift = std::max(end - wanted, int(std::countr_zero(bits)));
    const Digit top{word, shift, end - shift};
    bits &= ~top.mask();
    return top;
  }

  static std::vector<Digit> digits_of(Bits differing) {
    std::vector<Digit> digits;
    for (int w = W - 1; w >= 0; --w)
      for (u64 bits = differing[std::size_t(w)]; bits;) {
        const int shift = std::countr_zero(bits), span = int(std::bit_width(bits)) - shift;
        const int passes = (span + kMostBits - 1) / kMostBits;
        digits.push_back({w, shift, (span + passes - 1) / passes});
        bits &= ~digits.back().mask();
      }
    return digits;
  }

  // Sorts rows stably by one digit on all threads. Returns the first row of each value of the digit, and the number of
  // rows.
  template <class V>
  std::vector<i64> deal(Digit digit, const Rows<V>& from, const Rows<V>& to) const {
    const i64 kinds = digit.kinds();
    std::vector<i64> next(std::size_t(blocks_ * kinds)), starts(std::size_t(kinds) + 1);
    each_part(from.rows, [&](int block, i64 begin, i64 end) {
      i64* count = next.data() + block * kinds;
      for (i64 i = begin; i < end; ++i) ++count[digit.of(from.keys[i])];
    });
    i64 start = 0;
    for (i64 kind = 0; kind < kinds; ++kind) {
      starts[std::size_t(kind)] = start;
      for (int block = 0; block < blocks_; ++block)
        start += std::exchange(next[std::size_t(block * kinds + kind)], start);
    }
    starts[std::size_t(kinds)] = start;
    each_part(from.rows, [&](int block, i64 begin, i64 end) {
      scatter(digit, from, begin, end, next.data() + block * kinds, to);
    });
    return starts;
  }

  template <class V>
  static void scatter(Digit digit, const Rows<V>& from, i64 begin, i64 end, i64* next, const Rows<V>& to) {
    for (i64 i = begin; i < end; ++i) {
      const i64 row = next[digit.of(from.keys[i])]++;
      to.keys[row] = from.keys[i];
      to.values[row] = from.values[i];
    }
  }

  template <class V>
  static void sort_bucket(const Rows<V>& rows, Rows<V> spare, const std::vector<Digit>& digits) {
    std::array<i64, std::size_t(1) << kMostBits> next;
    Rows<V> from = rows, to = spare;
    for (const Digit& digit : digits) {
      std::fill_n(next.begin(), digit.kinds(), 0);
      for (i64 i = 0; i < rows.rows; ++i) ++next[std::size_t(digit.of(from.keys[i]))];
      i64 start = 0;
      for (i64 kind = 0; kind < digit.kinds(); ++kind) start += std::exchange(next[std::size_t(kind)], start);
      from.rows = rows.rows;
      scatter(digit, from, 0, rows.rows, next.data(), to);
      std::swap(from, to);
    }
    copy_back(from, rows);
  }

  // Sorts a bucket of more than kBucket rows, digit by digit; all threads work on the same digit.
  template <class V>
  void sort_large(const Rows<V>& rows, const std::vector<Digit>& digits) const {
    count_path(Path::rows_sort_large_bucket);
    OwnedTable spare = room<V>(rows.rows);
    Rows<V> from = rows, to = rows_of<V>(spare);
    for (const Digit& digit : digits) {
      deal(digit, from, to);
      std::swap(from, to);
    }
    copy_back(from, rows);
  }

  template <class V>
  static void copy_back(const Rows<V>& from, const Rows<V>& rows) {
    if (from.keys == rows.keys) return;
    std::copy_n(from.keys, rows.rows, rows.keys);
    std::copy_n(from.values, rows.rows, rows.values);
  }

  const Patience patience_ = patience;
  const Key<W>* keys_;
  i64 rows_;
  int threads_, blocks_;
};

}  // namespace elimina::sparse
