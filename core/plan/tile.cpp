#include "plan/tile.hpp"

#include <numeric>
#include <optional>

namespace elimina::plan {
namespace {

// Constants tuned on the CPU and on the GPU (bench/kernels.py, bench/cpu.py).
constexpr i64 kRowPadding = 64;    // with fewer cells behind the first axis, rows are not padded
constexpr i64 kLoCells = 32;       // fewest cells of fast axes that a split should have
constexpr i64 kLoLimit = 16384;    // with more cells of fast axes, the search for a split ends
constexpr i64 kMidLimit = 1024;    // largest number of cells of several middle axes
constexpr double kGathered = 4.0;  // cost of a gathered read, relative to a read along a row
constexpr double kRowOverhead = 64.0;

// Search for the split of a step with at most 64 axes; a step with more is not worth a split.
class Split {
 public:
  Split(const StepShape& shape, int rows) : shape_(shape), rows_(rows) {
    for (const auto& axes : shape.members) {
      u64 mask = 0;
      for (const int a : axes) mask |= u64{1} << a;
      members_.push_back(mask);
    }
  }

  Tile best() {
    i64 lo_cells = 1;
    for (int first = count() - 1; first >= rows_; --first) {
      lo_cells *= shape_.sizes[first];
      if (has_split_ && lo_cells > kLoLimit) break;
      if (lo_cells < kLoCells && first > rows_) continue;
      try_mid_axes(first, lo_cells);
    }
    return tile();
  }

 private:
  int count() const { return int(shape_.sizes.size()); }

  // Tries growing sets of middle axes, along which rhs tables stay the same. Each time, the axis is added that the
  // fewest of the rhs tables have.
  void try_mid_axes(int first, i64 lo_cells) {
    const u64 lo = ~u64{0} << first & (count() == 64 ? ~u64{0} : (u64{1} << count()) - 1);
    std::vector<u64> touching;
    for (const u64 m : members_)
      if (m & lo) touching.push_back(m);
    if (first == 0) return consider(0, lo, 1, lo_cells);
    std::vector<int> remaining(first);
    std::iota(remaining.begin(), remaining.end(), 0);
    u64 mid = 0;
    i64 cells = 1;
    while (!remaining.empty()) {
      // Ties go to the last axis.
      auto best = remaining.begin();
      int fewest = tables_with(touching, *best);
      for (auto axis = remaining.begin() + 1; axis != remaining.end(); ++axis)
        if (const int tables = tables_with(touching, *axis); tables <= fewest) best = axis, fewest = tables;
      cells = times(cells, shape_.sizes[*best]);
      if (mid && cells > kMidLimit) return;
      mid |= u64{1} << *best;
      std::erase_if(touching, [&](u64 m) { return m >> *best & 1; });
      remaining.erase(best);
      consider(mid, lo, cells, lo_cells);
    }
  }

  static int tables_with(const std::vector<u64>& tables, int axis) {
    int number = 0;
    for (const u64 m : tables) number += m >> axis & 1;
    return number;
  }

  // Compares a split with the best one so far by the relative cost of one combination. Streamed tables are read for
  // each combination; the cost of reading the others is divided among the combinations of a tile.
  void consider(u64 mid, u64 lo, i64 mid_cells, i64 lo_cells) {
    double streamed = 0;
    int tables_a = 0, tables_b = 0;
    for (const u64 m : members_) {
      if (!(m & lo)) {
        ++tables_a;
      } else if (mid && !(m & mid)) {
        ++tables_b;
      } else {
        streamed += (m & lo) == lo ? 1.0 : kGathered;
      }
    }
    const double build = kGathered * tables_b / double(mid_cells) + 2.0 * tables_a / double(lo_cells);
    const double cells = 0.5 + streamed + build + kRowOverhead / double(lo_cells * std::min<i64>(shape_.domain, 16));
    const double cost = cells * (1 + double(kLoCells) / double(lo_cells));
    if (has_split_ && cost >= cost_) return;
    has_split_ = true, cost_ = cost, mid_ = mid, lo_ = lo;
  }

  Tile tile() const {
    Tile tile;
    for (int axis = 0; axis < count(); ++axis) {
      const u64 bit = u64{1} << axis;
      (lo_ & bit ? tile.lo : mid_ & bit ? tile.mid : tile.outer).push_back(axis);
    }
    return tile;
  }

  const StepShape& shape_;
  int rows_;
  std::vector<u64> members_;
  bool has_split_ = false;
  double cost_ = 0;
  u64 mid_ = 0, lo_ = 0;
};

}  // namespace

int row_axes(std::span<const i64> sizes) {
  i64 cells = 1;
  for (int axis = int(sizes.size()) - 1; axis > 0; --axis) {
    cells = times(cells, sizes[axis]);
    if (cells >= kRowCells && cells % kLongRowBytes) return axis;
  }
  return sizes.size() > 1 && cells >= kRowPadding ? 1 : 0;
}

Tile choose_tile(const StepShape& shape, int rows) {
  if (rows < 0) rows = row_axes(shape.sizes);
  i64 work = shape.domain;
  for (const i64 size : shape.sizes) work = times(work, size);
  Tile tile;
  if (!shape.sizes.empty() && shape.sizes.size() <= 64 && kSmallWork <= work && work <= kHopelessWork) {
    tile = Split(shape, rows).best();
  } else {
    for (int axis = 0; axis < int(shape.sizes.size()); ++axis) (axis < rows ? tile.outer : tile.lo).push_back(axis);
  }
  classify(tile, shape);
  return tile;
}

void classify(Tile& tile, const StepShape& shape) {
  enum Group : char { outer, mid, lo };
  std::vector<char> group(shape.sizes.size(), outer);
  for (const int axis : tile.mid) group[axis] = mid;
  for (const int axis : tile.lo) group[axis] = lo;
  tile.tables_a.clear(), tile.tables_b.clear(), tile.streamed.clear();
  for (int number = 0; number < int(shape.members.size()); ++number) {
    bool has_lo = false, has_mid = false;
    for (const int axis : shape.members[number]) has_lo |= group[axis] == lo, has_mid |= group[axis] == mid;
    (!has_lo ? tile.tables_a : !tile.mid.empty() && !has_mid ? tile.tables_b : tile.streamed).push_back(number);
  }
}

}  // namespace elimina::plan
