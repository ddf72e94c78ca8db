#include "plan/arena.hpp"

#include "plan/tile.hpp"

namespace elimina::plan {
namespace {

constexpr i64 kVectorBytes = 16, kAlignmentBytes = 256;
constexpr std::size_t kChunk = 256;  // gaps of a chunk at most

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

void Gaps::clear() {
  chunks_.clear();
  most_.clear();
}

Gaps::Capacity Gaps::capacity_of(const Gap& gap) const { return {gap.size, gap.end() - round_up(gap.offset, unit_)}; }

void Gaps::measure(std::size_t chunk) {
  Capacity most{0, 0};
  for (const Gap& gap : chunks_[chunk]) {
    const Capacity own = capacity_of(gap);
    most = {std::max(most.any, own.any), std::max(most.wide, own.wide)};
  }
  most_[chunk] = most;
}

bool Gaps::find(i64 span, bool is_wide, Place& place) const {
  const auto holds = [&](const Capacity& capacity) { return (is_wide ? capacity.wide : capacity.any) >= span; };
  const auto chunk = std::find_if(most_.begin(), most_.end(), holds);
  if (chunk == most_.end()) return false;
  place.chunk = std::size_t(chunk - most_.begin());
  const auto& gaps = chunks_[place.chunk];
  place.at = std::size_t(std::find_if(gaps.begin(), gaps.end(), [&](const Gap& gap) { return holds(capacity_of(gap)); }) - gaps.begin());
  return true;
}

void Gaps::replace(Place place, std::span<const Gap> gaps) {
  auto& own = chunks_[place.chunk];
  own.erase(own.begin() + std::ptrdiff_t(place.at));
  own.insert(own.begin() + std::ptrdiff_t(place.at), gaps.begin(), gaps.end());
  const auto chunk = std::ptrdiff_t(place.chunk);
  if (own.empty()) {
    chunks_.erase(chunks_.begin() + chunk);
    most_.erase(most_.begin() + chunk);
    return;
  }
  if (own.size() > kChunk) {
    std::vector<Gap> rest(own.begin() + kChunk / 2, own.end());
    own.resize(kChunk / 2);
    chunks_.insert(chunks_.begin() + chunk + 1, std::move(rest));
    most_.insert(most_.begin() + chunk + 1, Capacity{0, 0});
    measure(place.chunk + 1);
  }
  measure(place.chunk);
}

void Gaps::push_back(Gap gap) {
  if (chunks_.empty()) {
    chunks_.push_back({gap});
    most_.push_back(capacity_of(gap));
    return;
  }
  const Gap both[] = {back(), gap};
  replace({chunks_.size() - 1, chunks_.back().size() - 1}, both);
}

void Gaps::pop_back() { replace({chunks_.size() - 1, chunks_.back().size() - 1}, {}); }

void Gaps::add(Gap gap) {
  // The last gap before the new one, and the one after it.
  const auto chunk = std::partition_point(chunks_.begin(), chunks_.end(), [&](const auto& gaps) { return gaps.front().offset < gap.offset; });
  if (chunk == chunks_.begin()) {
    if (chunks_.empty()) return push_back(gap);
    const Gap next = chunks_.front().front();
    if (next.offset == gap.end()) {
      const Gap joined[] = {{gap.offset, gap.size + next.size}};
      return replace({0, 0}, joined);
    }
    const Gap both[] = {gap, next};
    return replace({0, 0}, both);
  }
  const auto& gaps = *(chunk - 1);
  Place place{std::size_t(chunk - chunks_.begin()) - 1, 0};
  const auto after = std::partition_point(gaps.begin(), gaps.end(), [&](const Gap& known) { return known.offset < gap.offset; });
  place.at = std::size_t(after - gaps.begin()) - 1;
  const bool is_last = place.at + 1 == gaps.size();
  const Place follower = is_last ? Place{place.chunk + 1, 0} : Place{place.chunk, place.at + 1};
  if (follower.chunk < chunks_.size() && (*this)[follower].offset == gap.end()) {
    gap.size += (*this)[follower].size;
    replace(follower, {});
  }
  const Gap before = (*this)[place];
  if (before.end() == gap.offset) {
    const Gap joined[] = {{before.offset, before.size + gap.size}};
    replace(place, joined);
  } else {
    const Gap both[] = {before, gap};
    replace(place, both);
  }
}

Arena::Arena(i64 itemsize) : item_(itemsize), free_(kAlignmentBytes / itemsize) {}

i64 Arena::rounded(i64 span) const { return round_up(std::max<i64>(span, 1), kVectorBytes / item_); }

i64 Arena::take(i64 span) {
  const bool is_wide = span * item_ >= kAlignmentBytes;
  const i64 unit = (is_wide ? kAlignmentBytes : kVectorBytes) / item_;
  span = rounded(span);
  Gaps::Place place;
  if (free_.find(span, is_wide, place)) {
    const Gap gap = free_[place];
    const i64 offset = round_up(gap.offset, unit), end = offset + span;
    Gap left[2];
    std::size_t count = 0;
    if (offset > gap.offset) left[count++] = {gap.offset, offset - gap.offset};
    if (gap.end() > end) left[count++] = {end, gap.end() - end};
    free_.replace(place, {left, count});
    return offset;
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

void Arena::give_back(i64 offset, i64 span) { free_.add({offset, rounded(span)}); }

}  // namespace elimina::plan
