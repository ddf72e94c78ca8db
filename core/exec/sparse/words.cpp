// The operations on keys of one to four words.
#include "exec/sparse/rows.hpp"

#include "exec/sparse/cells.hpp"
#include "exec/sparse/sort.hpp"

namespace elimina::sparse {
namespace {

// Calls a function with the semiring. Values of sparse tables have 4 or 8 bytes.
template <class Use>
auto with_ring(const Ring& ring, Use&& use) {
  return with_semiring<4>(ring, use);
}

template <class V>
V budget_of(const StageOrder& stage) {
  if constexpr (std::numeric_limits<V>::is_integer) return V(stage.integer_budget);
  else return V(stage.budget);
}

template <int W>
class Functions final : public RowsFunctions {
 public:
  OwnedTable join(const Ring& ring, const Table& left, const Table& right, const JoinOrder& order,
                  const StageOrder& stage, int threads) const override {
    const std::vector<Block> blocks = JoinBlocks<W>(left, right, order, threads).cut();
    return with_ring(ring, [&]<class R>(const R& r) {
      return Join<R, W>({r, stage.words, budget_of<typename R::Value>(stage)}, left, right, order).run(blocks, threads);
    });
  }

  OwnedTable project(const Ring& ring, const Table& rows, u64 low, int threads) const override {
    return with_ring(ring,
                     [&](const auto& r) { return project_rows<std::decay_t<decltype(r)>, W>(r, rows, low, threads); });
  }

  OwnedTable semi_join(const Table& left, int value_bytes, const Table& right, const u64* group,
                       int threads) const override {
    return value_bytes == 4 ? semi_join_rows<W, u32>(left, right, group, threads)
                            : semi_join_rows<W, u64>(left, right, group, threads);
  }

  OwnedTable sort(const Table& rows, int value_bytes, int threads) const override {
    const Sorter<W> sorter(reinterpret_cast<const Key<W>*>(rows.keys), rows.rows, threads);
    return value_bytes == 4 ? sorter.run(static_cast<const u32*>(rows.values))
                            : sorter.run(static_cast<const u64*>(rows.values));
  }

  bool sorted(const u64* keys, i64 rows, int threads) const override {
    return Sorter<W>(reinterpret_cast<const Key<W>*>(keys), rows, threads).sorted();
  }

  OwnedTable from_dense(const Ring& ring, const void* cells, const i64* axes, const i64* sizes,
                        int count) const override {
    return with_ring(ring, [&]<class R>(const R& r) {
      using V = typename R::Value;
      return rows_of_cells<V>(W, static_cast<const V*>(cells), r.finish(r.start()), r.better(V(1), V(0)), axes, sizes,
                              count);
    });
  }

  void to_dense(const Table& rows, int value_bytes, const i64* terms, i64 count, void* cells) const override {
    if (value_bytes == 4) cells_of_rows<W>(rows, terms, count, static_cast<u32*>(cells));
    else cells_of_rows<W>(rows, terms, count, static_cast<u64*>(cells));
  }

  Buffer move(const u64* keys, i64 rows, const i64* segments, i64 count, int words, int threads) const override {
    switch (words) {
      case 1: return move_rows<W, 1>(keys, rows, segments, count, threads);
      case 2: return move_rows<W, 2>(keys, rows, segments, count, threads);
      case 3: return move_rows<W, 3>(keys, rows, segments, count, threads);
      default: return move_rows<W, kMostWords>(keys, rows, segments, count, threads);
    }
  }
};

const Functions<1> one_word;
const Functions<2> two;
const Functions<3> three;
const Functions<kMostWords> four;

}  // namespace

const RowsFunctions* rows_functions(int words) {
  switch (words) {
    case 1: return &one_word;
    case 2: return &two;
    case 3: return &three;
    case kMostWords: return &four;
  }
  return nullptr;
}

}  // namespace elimina::sparse
