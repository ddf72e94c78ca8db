#include "plan/arena.hpp"

#include "plan/tile.hpp"

namespace elimina::plan {
namespace {

constexpr i64 kRowCells = 1024;  // cells of a row from which it starts at multiples of kLongRowBytes
constexpr i64 kLongRowBytes = 64, kVectorBytes = 16, kAlignmentBytes = 256;

i64 round_up(i64 value, i64 unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

TableLayout lay_out_table(std::span<const i64> sizes, i64 itemsize, int rows) {
  TableLayout layout;
  if (sizes.empty()) return layout;
  if (rows < 0) rows = row_axes(sizes);
  layout.strides.assign(sizes.size(), 1);
  for (int axis = int(sizes.size()) - 2; axis >= 0; --axis) {
    i64& stride = layout.strides[axis];
    stride = times(layout.strides[axis + 1], sizes[axis + 1]);
    if (axis == rows - 1 && stride < kMostCells) stride = round_up(stride, (stride >= kRowCells ? kLongRowBytes : kVectorBytes) / itemsize);
  }
  layout.span = times(layout.strides.front(), sizes.front());
  return layout;
}

i64 Arena::rounded(i64 span) const { return round_up(std::max<i64>(span, 1), kVectorBytes / item_); }

i64 Arena::take(i64 span) {
  const i64 unit = (span * item_ >= kAlignmentBytes ? kAlignmentBytes : kVectorBytes) / item_;
  span = rounded(span);
  for (std::size_t i = 0; i < free_.size(); ++i) {
    const auto [offset, size] = free_[i];
    const i64 start = round_up(offset, unit), rest = offset + size - start - span;
    if (rest < 0) continue;
    free_.erase(free_.begin() + std::ptrdiff_t(i));
    if (rest > 0) free_.insert(free_.begin() + std::ptrdiff_t(i), {start + span, rest});
    if (start > offset) free_.insert(free_.begin() + std::ptrdiff_t(i), {offset, start - offset});
    return start;
  }
  i64 start = height_;
  if (!free_.empty() && free_.back().end() == height_) {
    start = free_.back().offset;
    free_.pop_back();
  }
  const i64 offset = round_up(start, unit);
  if (offset > start) free_.push_back({start, offset - start});
  height_ = offset + span;
  return offset;
}

void Arena::give_back(i64 offset, i64 span) {
  Part part{offset, rounded(span)};
  auto at = std::lower_bound(free_.begin(), free_.end(), offset, [](const Part& known, i64 value) { return known.offset < value; });
  if (at != free_.end() && at->offset == part.end()) {
    part.size += at->size;
    at = free_.erase(at);
  }
  if (at != free_.begin() && (at - 1)->end() == part.offset) {
    (at - 1)->size += part.size;
  } else {
    free_.insert(at, part);
  }
}

}  // namespace elimina::plan
