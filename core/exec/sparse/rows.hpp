// Sparse tables on the CPU for the bindings; elimina/rows.hpp defines a row.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <utility>

#include "elimina/rows.hpp"
#include "exec/dense/dense.hpp"
#include "exec/pages.hpp"
#include "stop.hpp"

namespace elimina::sparse {

// Memory that is allocated on first touch, because only a bound on a result's size is known at first.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(i64 bytes) : bytes_(bytes) {
    if (bytes < kMapped) {
      at_ = std::malloc(std::size_t(bytes ? bytes : 1));
      if (!at_) throw std::bad_alloc();
      return;
    }
    at_ = map_pages(std::size_t(bytes));
    if (!at_) throw std::bad_alloc();
  }
  Buffer(Buffer&& other) noexcept : at_(std::exchange(other.at_, nullptr)), bytes_(other.bytes_) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Buffer() {
    if (at_ && bytes_ >= kMapped) unmap_pages(at_, std::size_t(bytes_));
    else std::free(at_);
  }
  // Frees whole pages after the first `bytes` bytes; a small buffer keeps its memory.
  void shrink(i64 bytes) {
    if (bytes_ < kMapped) return;
    const i64 page = i64(kHugePage), kept = (bytes + page - 1) / page * page;
    if (kept >= kMapped && kept < bytes_) bytes_ = i64(cut_pages(at_, std::size_t(bytes_), std::size_t(kept)));
  }
  template <class T>
  T* as() const {
    return static_cast<T*>(at_);
  }

 private:
  static constexpr i64 kMapped = i64(1) << 22;
  void* at_ = nullptr;
  i64 bytes_ = 0;
};

constexpr int kMostWords = 4;
// Number of rows between two checks for a stop request; each row may touch a new page.
constexpr i64 kRowsPerLook = i64(1) << 14;

// Calls `work(begin, end)` for pieces of some rows, with a check for a stop request in between.
template <class Work>
void each_look(const Patience& caller, i64 begin, i64 end, Work&& work) {
  for (; begin < end; begin += kRowsPerLook) {
    caller.check();
    work(begin, std::min(end, begin + kRowsPerLook));
  }
}

// Largest number of candidates of a join. The bytes of as many rows still fit the address space.
constexpr i64 kMostPairs = i64(1) << 41;

struct Table {
  const u64* keys;     // [rows][words]
  const void* values;  // [rows]
  i64 rows;
};

// A table that owns its memory: the result of an operation.
struct OwnedTable {
  Buffer keys, values;
  i64 rows = 0;
  i64 candidates = 0;  // number of rows, or pairs of runs, that were considered
};

struct Ring {
  SemiringKind semiring;
  ValueKind value;
  double parameter;  // parameter of the semiring, as in DenseRun
  i64 integer_parameter;
};

struct JoinOrder {
  const u64* group;  // [words]: bits of the shared variables outside of the low field
  u64 low;           // bits of the least significant variable, if both tables have it; 0: none
  bool eliminate;    // true if that variable is eliminated
  i64 max_rows;      // largest number of output rows; beyond it std::overflow_error is thrown
  // Gets the number of candidates of each block, on the block's thread; if it returns false, Stopped is thrown.
  std::function<bool(i64)> goes_on{};
};

struct StageOrder {
  const i64* words;  // words of a `Stage` (elimina/rows.hpp)
  double budget;
  i64 integer_budget;
};

// Operations on tables whose keys have one number of words; at most `threads` threads work on a call.
class RowsFunctions {
 public:
  virtual ~RowsFunctions() = default;
  virtual OwnedTable join(const Ring& ring, const Table& left, const Table& right, const JoinOrder& order,
                          const StageOrder& stage, int threads) const = 0;
  virtual OwnedTable project(const Ring& ring, const Table& rows, u64 low, int threads) const = 0;
  virtual OwnedTable semi_join(const Table& left, int value_bytes, const Table& right, const u64* group,
                               int threads) const = 0;
  virtual OwnedTable sort(const Table& rows, int value_bytes, int threads) const = 0;
  virtual bool sorted(const u64* keys, i64 rows, int threads) const = 0;
  // Makes rows of dense cells. `axes`: terms, the most significant field first; `sizes`: sizes of these axes.
  virtual OwnedTable from_dense(const Ring& ring, const void* cells, const i64* axes, const i64* sizes,
                                int count) const = 0;
  // Writes rows to dense cells, which contain the semiring's zero before the call.
  virtual void to_dense(const Table& rows, int value_bytes, const i64* terms, i64 count, void* cells) const = 0;
  // Converts `keys` to keys of `words` words.
  virtual Buffer move(const u64* keys, i64 rows, const i64* segments, i64 count, int words, int threads) const = 0;
};

// Returns the operations on keys of `words` words; nullptr beyond kMostWords.
const RowsFunctions* rows_functions(int words);

}  // namespace elimina::sparse
