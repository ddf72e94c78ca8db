// Sparse tables: rows of a packed key and a value, sorted by key. This header has the operations on single rows, for
// the CPU core and the kernels.
//
// A key is W words, the first one the most significant; each variable of the scope is a field of bits of one word,
// which holds its value index. Bits outside all fields are zero, so the keys of two tables in one layout are joined by
// `or`.
#pragma once
#include "semiring.hpp"

namespace elimina::sparse {

template <int W>
struct Key {
  u64 word[W];
};

template <int W>
ELIMINA_HD Key<W> operator|(const Key<W>& a, const Key<W>& b) {
  Key<W> out;
  for (int w = 0; w < W; ++w) out.word[w] = a.word[w] | b.word[w];
  return out;
}

template <int W>
ELIMINA_HD Key<W> operator&(const Key<W>& a, const Key<W>& b) {
  Key<W> out;
  for (int w = 0; w < W; ++w) out.word[w] = a.word[w] & b.word[w];
  return out;
}

template <int W>
ELIMINA_HD bool agree(const Key<W>& a, const Key<W>& b, const Key<W>& mask) {
  u64 differing = 0;
  for (int w = 0; w < W; ++w) differing |= (a.word[w] ^ b.word[w]) & mask.word[w];
  return differing == 0;
}

template <int W>
ELIMINA_HD bool less(const Key<W>& a, const Key<W>& b, const Key<W>& mask) {
  for (int w = 0; w < W - 1; ++w)
    if ((a.word[w] ^ b.word[w]) & mask.word[w]) return (a.word[w] & mask.word[w]) < (b.word[w] & mask.word[w]);
  return (a.word[W - 1] & mask.word[W - 1]) < (b.word[W - 1] & mask.word[W - 1]);
}

// Mask of all bits but those of the eliminated variable, which are the lowest ones of the last word.
template <int W>
ELIMINA_HD Key<W> all_but(u64 low) {
  Key<W> mask;
  for (int w = 0; w < W; ++w) mask.word[w] = ~u64(0);
  mask.word[W - 1] = ~low;
  return mask;
}

// Adjacent bits of a key that stay together when it moves from one layout to another.
enum SegmentWord : int { kFromWord, kFromShift, kSegmentMask, kToWord, kToShift, kSegmentWords };

template <int A, int B>
ELIMINA_HD Key<B> move_key(const Key<A>& key, const i64* segments, i64 count) {
  Key<B> out{};
  for (i64 n = 0; n < count; ++n, segments += kSegmentWords) {
    const u64 bits = key.word[A == 1 ? 0 : segments[kFromWord]] >> segments[kFromShift] & u64(segments[kSegmentMask]);
    out.word[B == 1 ? 0 : segments[kToWord]] |= bits << segments[kToShift];
  }
  return out;
}

// The words of a term. The position of a key's cell in a dense table is a sum of terms, each a field of the key times a
// stride.
enum TermWord : int { kTermWord, kTermShift, kTermMask, kTermStride, kTermWords };

template <int W>
ELIMINA_HD i64 cell_of(const Key<W>& key, const i64* terms, i64 count) {
  i64 cell = 0;
  for (i64 n = 0; n < count; ++n, terms += kTermWords)
    cell +=
        i64(key.word[W == 1 ? 0 : terms[kTermWord]] >> terms[kTermShift] & u64(terms[kTermMask])) * terms[kTermStride];
  return cell;
}

template <class R>
ELIMINA_HD bool feasible(const R& ring, typename R::Value value) {
  return ring.better(value, ring.finish(ring.start()));
}

// Dense tables for the checks of a new row, in 64-bit words: the number of joined tables; the number of tables that bound the rest
// of the problem (-1: there is no budget); then for each of these tables the address of its values, its number of terms, and the
// terms.
template <class R, int W>
struct Stage {
  using Value = typename R::Value;
  R ring;
  const i64* words;
  Value budget;

  // Adds the joined tables' values at this key to the row's value. Returns true if the row stays feasible, and its
  // value plus the bounds stays within the budget. Integers do not overflow: stored values are feasible, and infinity
  // is at most half of the largest integer.
  ELIMINA_HD bool admits(const Key<W>& key, Value& value) const {
    const i64* at = words + 2;
    return admits(value, [&](i64) {
      const Value read = reinterpret_cast<const Value*>(at[0])[cell_of(key, at + 2, at[1])];
      at += 2 + at[1] * kTermWords;
      return read;
    });
  }

  // Does the same for the union of two keys. The address of the union's cell in each table is the sum of the parts that
  // find_cells returns for the two keys.
  ELIMINA_HD bool admits(const i64* first, const i64* other, Value& value) const {
    return admits(value, [&](i64 n) { return *reinterpret_cast<const Value*>(first[n] + other[n]); });
  }

  ELIMINA_HD i64 tables() const { return words[0] + (words[1] > 0 ? words[1] : 0); }

  // Finds the part of a cell's address in each table that a key contributes. With `base` 1, the address of the table is
  // included.
  ELIMINA_HD void find_cells(const Key<W>& key, i64 base, i64* cells) const {
    const i64* at = words + 2;
    for (i64 n = 0, all = tables(); n < all; ++n, at += 2 + at[1] * kTermWords)
      cells[n] = base * at[0] + cell_of(key, at + 2, at[1]) * i64(sizeof(Value));
  }

 private:
  template <class Read>
  ELIMINA_HD bool admits(Value& value, Read&& read) const {
    i64 n = 0;
    for (; n < words[0] && feasible(ring, value); ++n) value = ring.combine(value, read(n));
    if (!feasible(ring, value)) return false;
    Value total = value;
    for (const i64 all = tables(); n < all; ++n) {
      if (ring.better(budget, total)) return false;
      total = ring.combine(total, read(n));
    }
    return words[1] < 0 || !ring.better(budget, total);
  }
};

template <class R, int W>
struct Side {
  const Key<W>* keys;
  const typename R::Value* values;
};

// Joins the rows [i, i_end) of a with the rows [j, j_end) of b. The rows of each table differ only in the low field.
// Calls visit(key, value), in ascending order, for each pair with equal low fields that the stage admits.
template <class R, int W, class Visit>
ELIMINA_HD void meet(const Stage<R, W>& stage, u64 low, const Side<R, W>& a, i64 i, i64 i_end, const Side<R, W>& b,
                     i64 j, i64 j_end, Visit&& visit) {
  while (i < i_end && j < j_end) {
    const u64 x = a.keys[i].word[W - 1] & low, y = b.keys[j].word[W - 1] & low;
    if (x == y) {
      const Key<W> key = a.keys[i] | b.keys[j];
      typename R::Value value = stage.ring.combine(a.values[i], b.values[j]);
      if (stage.admits(key, value)) visit(key, value);
    }
    i += x <= y;
    j += y <= x;
  }
}

// The marginal over rows that arrive one by one.
template <class R>
struct Marginal {
  typename R::Sum sum;
  bool any = false;
  ELIMINA_HD explicit Marginal(const R& ring) : sum(ring.start()) {}
  ELIMINA_HD void add(const R& ring, typename R::Value value) {
    ring.add(sum, value);
    any = true;
  }
};

}  // namespace elimina::sparse
