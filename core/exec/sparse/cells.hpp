// Conversions between rows, dense tables and other layouts of rows, and the elimination of the least significant
// variable of one table.
#pragma once
#include <cstring>
#include <vector>

#include "exec/paths.hpp"
#include "exec/share.hpp"
#include "exec/sparse/join.hpp"
#include "stop.hpp"

namespace elimina::sparse {

template <class R, int W>
OwnedTable project_rows(const R& ring, const Table& table, u64 low, int threads) {
  using Value = typename R::Value;
  count_path(Path::rows_project);
  constexpr i64 block_rows = i64(1) << 15;
  const auto* keys = reinterpret_cast<const Key<W>*>(table.keys);
  const auto* values = static_cast<const Value*>(table.values);
  const Key<W> runs = all_but<W>(low);
  const std::vector<i64> cuts = group_cuts(keys, table.rows, std::max<i64>(1, table.rows / block_rows), runs);
  const auto eliminate = [&](i64 n, Writer<W, Value>& writer) {
    const i64 end = cuts[std::size_t(n) + 1];
    writer.candidates = end - cuts[std::size_t(n)];
    for (i64 i = cuts[std::size_t(n)], i_end; i < end; i = i_end) {
      i_end = run_end(keys, i, end, runs);
      Marginal<R> marginal(ring);
      for (i64 row = i; row < i_end; ++row) marginal.add(ring, values[row]);
      Key<W> key = keys[i];
      key.word[W - 1] &= ~low;
      writer.put(key, ring.finish(marginal.sum));
    }
  };
  const auto bound = [&](i64 n) { return cuts[std::size_t(n) + 1] - cuts[std::size_t(n)]; };
  return write_blocks<W, Value>(i64(cuts.size()) - 1, threads, bound, eliminate, table.rows);
}

// Returns the tuples of the cells above (or below) `zero`, in the order of their keys. `axes`: terms
// (elimina/rows.hpp), the most significant field first.
template <class Value>
OwnedTable rows_of_cells(int words, const Value* cells, Value zero, bool above, const i64* axes, const i64* sizes,
                         int count) {
  count_path(Path::rows_from_dense);
  i64 all = 1;
  for (int axis = 0; axis < count; ++axis) all *= sizes[axis];
  OwnedTable table;
  table.candidates = all;
  const i64 key_bytes = words * i64(sizeof(u64));
  table.keys = Buffer(all * key_bytes);
  table.values = Buffer(all * i64(sizeof(Value)));
  u64* keys = table.keys.as<u64>();
  Value* values = table.values.as<Value>();
  std::vector<i64> digit(std::size_t(count), 0);
  Key<kMostWords> key{};
  for (i64 n = 0, cell = 0; n < all; ++n) {
    if (n % kRowsPerLook == 0) check_stop();
    if (above ? cells[cell] > zero : cells[cell] < zero) {
      keys = std::copy_n(key.word, words, keys);
      *values++ = cells[cell];
    }
    for (int axis = count - 1; axis >= 0; --axis) {
      const i64* term = axes + axis * kTermWords;
      i64& value = digit[std::size_t(axis)];
      const u64 unit = u64(1) << term[kTermShift];
      if (++value < sizes[axis]) {
        key.word[term[kTermWord]] += unit;
        cell += term[kTermStride];
        break;
      }
      key.word[term[kTermWord]] -= u64(value - 1) * unit;
      cell -= (value - 1) * term[kTermStride];
      value = 0;
    }
  }
  table.rows = values - table.values.as<Value>();
  table.keys.shrink(table.rows * key_bytes);
  table.values.shrink(table.rows * i64(sizeof(Value)));
  return table;
}

template <int W, class V>
void cells_of_rows(const Table& table, const i64* terms, i64 count, V* cells) {
  count_path(Path::rows_to_dense);
  const auto* keys = reinterpret_cast<const Key<W>*>(table.keys);
  const auto* values = static_cast<const V*>(table.values);
  for (i64 i = 0; i < table.rows; ++i) {
    if (i % kRowsPerLook == 0) check_stop();
    cells[cell_of(keys[i], terms, count)] = values[i];
  }
}

template <int A, int B>
Buffer move_rows(const u64* words, i64 rows, const i64* segments, i64 count, int threads) {
  const auto* keys = reinterpret_cast<const Key<A>*>(words);
  count_path(Path::rows_move);
  Buffer made(rows * i64(sizeof(Key<B>)));
  auto* to = made.as<Key<B>>();
  const i64 blocks = std::clamp<i64>(rows >> 14, 1, threads);
  share(threads, 0, blocks, [&, caller = patience](i64 block, int) {
    each_look(caller, rows * block / blocks, rows * (block + 1) / blocks, [&](i64 begin, i64 end) {
      for (i64 i = begin; i < end; ++i) to[i] = move_key<A, B>(keys[i], segments, count);
    });
  });
  return made;
}

}  // namespace elimina::sparse
