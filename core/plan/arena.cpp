#include "plan/arena.hpp"

#include "plan/tile.hpp"

namespace elimina::plan {
namespace {

constexpr i64 kVectorBytes = 16, kAlignmentBytes = 256;
constexpr std::size_t kChunk = 64, kGroup = 64;  // largest number of gaps in a chunk, and of chunks in a group

i64 round_up(i64 value, i64 unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

i64 lay_out_table(std::span<const i64> sizes, i64 itemsize, int rows, std::span<i64> strides) {
  if (sizes.empty()) return 1;
  if (rows < 0) rows = row_axes(sizes);
  strides.back() = 1;
  for (int axis = int(sizes.size()) - 2; axis >= 0; --axis) {
    i64& stride = strides[axis];
    stride = times(strides[axis + 1], sizes[axis + 1]);
    if (axis == rows - 1 && stride < kMostCells)
      stride = round_up(stride, (stride >= kRowCells ? kLongRowBytes : kVectorBytes) / itemsize);
  }
  return times(strides.front(), sizes.front());
}

void Gaps::clear() {
  chunks_.clear();
  largest_.clear();
  tops_.clear();
}

Gaps::Capacity Gaps::of_chunk(std::size_t chunk) const {
  Capacity largest;
  for (const Gap& gap : chunks_[chunk]) largest.include(capacity_of(gap));
  return largest;
}

Gaps::Capacity Gaps::of_group(std::size_t group) const {
  Capacity largest;
  for (std::size_t chunk = group * kGroup; chunk < std::min(largest_.size(), (group + 1) * kGroup); ++chunk)
    largest.include(largest_[chunk]);
  return largest;
}

// Updates the capacities of the groups from a chunk's group on, after chunks were added or removed.
void Gaps::regroup(std::size_t chunk) {
  tops_.resize((largest_.size() + kGroup - 1) / kGroup);
  for (std::size_t group = chunk / kGroup; group < tops_.size(); ++group) tops_[group] = of_group(group);
}

bool Gaps::find(i64 span, bool is_wide, Position& position) const {
  const auto holds = [&](const Capacity& capacity) { return (is_wide ? capacity.wide : capacity.any) >= span; };
  const auto group = std::find_if(tops_.begin(), tops_.end(), holds);
  if (group == tops_.end()) return false;
  const auto chunk =
      std::find_if(largest_.begin() + (group - tops_.begin()) * std::ptrdiff_t(kGroup), largest_.end(), holds);
  position.chunk = std::size_t(chunk - largest_.begin());
  const auto& gaps = chunks_[position.chunk];
  position.at = std::size_t(
      std::find_if(gaps.begin(), gaps.end(), [&](const Gap& gap) { return holds(capacity_of(gap)); }) - gaps.begin());
  return true;
}

void Gaps::split(std::size_t chunk) {
  auto& gaps_of_chunk = chunks_[chunk];
  std::vector<Gap> rest(gaps_of_chunk.begin() + kChunk / 2, gaps_of_chunk.end());
  gaps_of_chunk.resize(kChunk / 2);
  const auto next = std::ptrdiff_t(chunk) + 1;
  chunks_.insert(chunks_.begin() + next, std::move(rest));
  largest_.insert(largest_.begin() + next, of_chunk(chunk + 1));
  largest_[chunk] = of_chunk(chunk);
  regroup(chunk);
}

void Gaps::replace(Position position, std::span<const Gap> gaps) {
  auto& gaps_of_chunk = chunks_[position.chunk];
  const auto old_gap = gaps_of_chunk.begin() + std::ptrdiff_t(position.at);
  const Capacity old_capacity = capacity_of(*old_gap);
  if (gaps.empty()) {
    gaps_of_chunk.erase(old_gap);
  } else {
    *old_gap = gaps.front();
    gaps_of_chunk.insert(old_gap + 1, gaps.begin() + 1, gaps.end());
  }
  if (gaps_of_chunk.empty()) {
    chunks_.erase(chunks_.begin() + std::ptrdiff_t(position.chunk));
    largest_.erase(largest_.begin() + std::ptrdiff_t(position.chunk));
    return regroup(position.chunk);
  }
  if (gaps_of_chunk.size() > kChunk) return split(position.chunk);
  Capacity new_capacity;
  for (const Gap& gap : gaps) new_capacity.include(capacity_of(gap));
  // The largest gap of a chunk or group is searched for again only if the removed gap was as large and all new gaps are
  // smaller.
  const auto changed = [&](Capacity& largest, auto measured) {
    const Capacity before = largest;
    largest.include(new_capacity);
    if ((old_capacity.any == before.any && new_capacity.any < old_capacity.any) ||
        (old_capacity.wide == before.wide && new_capacity.wide < old_capacity.wide))
      largest = measured();
    return largest != before;
  };
  if (changed(largest_[position.chunk], [&] { return of_chunk(position.chunk); })) {
    const std::size_t group = position.chunk / kGroup;
    changed(tops_[group], [&] { return of_group(group); });
  }
}

void Gaps::push_back(Gap gap) {
  if (chunks_.empty()) {
    chunks_.push_back({gap});
    largest_.push_back(capacity_of(gap));
    return regroup(0);
  }
  const Gap both[] = {back(), gap};
  replace({chunks_.size() - 1, chunks_.back().size() - 1}, both);
}

void Gaps::pop_back() { replace({chunks_.size() - 1, chunks_.back().size() - 1}, {}); }

void Gaps::add(Gap gap) {
  // Finds the last gap before the new one, and the gap after it.
  const auto chunk = std::partition_point(chunks_.begin(), chunks_.end(),
                                          [&](const auto& gaps) { return gaps.front().offset < gap.offset; });
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
  Position position{std::size_t(chunk - chunks_.begin()) - 1, 0};
  const auto after =
      std::partition_point(gaps.begin(), gaps.end(), [&](const Gap& other) { return other.offset < gap.offset; });
  position.at = std::size_t(after - gaps.begin()) - 1;
  const bool is_last = position.at + 1 == gaps.size();
  const Position follower = is_last ? Position{position.chunk + 1, 0} : Position{position.chunk, position.at + 1};
  if (follower.chunk < chunks_.size() && (*this)[follower].offset == gap.end()) {
    gap.size += (*this)[follower].size;
    replace(follower, {});
  }
  const Gap before = (*this)[position];
  if (before.end() == gap.offset) {
    const Gap joined[] = {{before.offset, before.size + gap.size}};
    replace(position, joined);
  } else {
    const Gap both[] = {before, gap};
    replace(position, both);
  }
}

Arena::Arena(i64 itemsize) : item_(itemsize), free_(kAlignmentBytes / itemsize) {}

i64 Arena::rounded(i64 span) const { return round_up(std::max<i64>(span, 1), kVectorBytes / item_); }

i64 Arena::allocate(i64 span) {
  const bool is_wide = span * item_ >= kAlignmentBytes;
  const i64 unit = (is_wide ? kAlignmentBytes : kVectorBytes) / item_;
  span = rounded(span);
  Gaps::Position position;
  if (free_.find(span, is_wide, position)) {
    const Gap gap = free_[position];
    const i64 offset = round_up(gap.offset, unit), end = offset + span;
    Gap pieces[2];
    std::size_t count = 0;
    if (offset > gap.offset) pieces[count++] = {gap.offset, offset - gap.offset};
    if (gap.end() > end) pieces[count++] = {end, gap.end() - end};
    free_.replace(position, {pieces, count});
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
