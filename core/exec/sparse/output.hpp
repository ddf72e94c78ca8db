// Rows that several threads make block by block, joined in the blocks' order without gaps.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>

#include "call.hpp"
#include "exec/sparse/rows.hpp"

namespace elimina::sparse {

// Buffer of a block's tuples: private to a thread and small enough for its cache.
struct BlockRows {
  void* keys;
  void* values;
  i64 rows = 0;
  i64 candidates = 0;
};

struct RowBytes {
  i64 key, value;
};

// Collects the rows of `blocks` blocks: `produce(block, rows)` makes at most `bound(block)` of them. Throws
// std::overflow_error if they are more than `max_rows` in total. `goes_on`, if any, gets the number of candidates of
// each block; if it returns false, Stopped is thrown.
OwnedTable put_together(RowBytes bytes, i64 blocks, int threads, Call<i64(i64)> bound,
                        Call<void(i64, BlockRows&)> produce, i64 all_at_most, i64 max_rows,
                        const std::function<bool(i64)>& goes_on);

template <int W, class V>
struct Writer {
  Key<W>* keys;
  V* values;
  i64 rows = 0;
  i64 candidates = 0;

  void put(const Key<W>& key, V value) {
    keys[rows] = key;
    values[rows] = value;
    ++rows;
  }
};

// Calls put_together() with a `produce` that takes a block and a Writer. `all_at_most`: bound on the rows of all
// blocks.
template <int W, class V, class Produce>
OwnedTable write_blocks(i64 blocks, int threads, Call<i64(i64)> bound, const Produce& produce, i64 all_at_most,
                        i64 max_rows = std::numeric_limits<i64>::max(), const std::function<bool(i64)>& goes_on = {}) {
  return put_together(
      {i64(sizeof(Key<W>)), i64(sizeof(V))}, blocks, threads, bound,
      [&](i64 block, BlockRows& made) {
        Writer<W, V> writer{static_cast<Key<W>*>(made.keys), static_cast<V*>(made.values)};
        produce(block, writer);
        made.rows = writer.rows;
        made.candidates = writer.candidates;
      },
      std::min(all_at_most, max_rows), max_rows, goes_on);
}

}  // namespace elimina::sparse
