// Places of the tables in the arena.
#pragma once
#include <utility>

#include "plan/lists.hpp"

namespace elimina::plan {

// Computes the strides of a table's axes, slow to fast, and returns the number of elements. Rows are padded to whole
// vectors, long rows to multiples of `kLongRowBytes`. `rows`: position of the rows' first axis; -1: chosen by
// `row_axes`.
i64 lay_out_table(std::span<const i64> sizes, i64 itemsize, int rows, std::span<i64> strides);

// A free span.
struct Gap {
  i64 offset, size;
  i64 end() const { return offset + size; }
};

// Free spans in the order of their offsets. The largest span of each chunk of spans, and of each group of chunks, is
// recorded, so the first span that fits is found without visiting all spans.
class Gaps {
 public:
  struct Position {
    std::size_t chunk, at;
  };

  // `unit`: a power of two. Wide spans start at its multiples, others at the beginning of a gap.
  explicit Gaps(i64 unit) : unit_(unit) {}

  bool empty() const { return chunks_.empty(); }
  void clear();
  const Gap& operator[](Position position) const { return chunks_[position.chunk][position.at]; }
  const Gap& back() const { return chunks_.back().back(); }
  // True if there is a gap for a span; `position` becomes the position of the first one.
  bool find(i64 span, bool is_wide, Position& position) const;
  // Replaces a gap by others, or by none.
  void replace(Position position, std::span<const Gap> gaps);
  void push_back(Gap gap);
  void pop_back();
  // Adds a gap, joined with its neighbours.
  void add(Gap gap);

 private:
  struct Capacity {
    i64 any = 0, wide = 0;
    void include(const Capacity& other) { any = std::max(any, other.any), wide = std::max(wide, other.wide); }
    bool operator==(const Capacity&) const = default;
  };
  Capacity capacity_of(const Gap& gap) const { return {gap.size, gap.end() - ((gap.offset + unit_ - 1) & -unit_)}; }
  Capacity of_chunk(std::size_t chunk) const;
  Capacity of_group(std::size_t group) const;
  void split(std::size_t chunk);
  void regroup(std::size_t chunk);

  i64 unit_;
  std::vector<std::vector<Gap>> chunks_;  // chunks are never empty
  std::vector<Capacity> largest_, tops_;  // capacities of each chunk, and of each group of chunks
};

// Allocator of spans of one block of memory, which reuses freed spans and records its peak. Small spans are contiguous,
// so that a chain of small messages stays in few cache lines; others start at multiples of 256 bytes.
class Arena {
 public:
  explicit Arena(i64 itemsize);

  // Allocates the first free span that fits; if none does, the height grows. Returns the offset.
  i64 allocate(i64 span);
  // Abandons the spans that are now free: later spans start at the height, or reuse spans that are freed after this
  // call.
  void seal() { free_.clear(); }
  // Frees a span and merges it with its free neighbours.
  void give_back(i64 offset, i64 span);
  i64 height() const { return height_; }

 private:
  i64 rounded(i64 span) const;

  i64 item_, height_ = 0;
  Gaps free_;
};

}  // namespace elimina::plan
