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
  most_.clear();
  tops_.clear();
}

Gaps::Capacity Gaps::of_chunk(std::size_t chunk) const {
  Capacity most;
  for (const Gap& gap : chunks_[chunk]) most.include(capacity_of(gap));
  return most;
}

Gaps::Capacity Gaps::of_group(std::size_t group) const {
  Capacity most;
  for (std::size_t chunk = group * kGroup; chunk < std::min(most_.size(), (group + 1) * kGroup); ++chunk)
    most.include(most_[chunk]);
  return most;
}

// Updates the capacities of the groups from a chunk's group on, after chunks were added or removed.
void Gaps::regroup(std::size_t chunk) {
  tops_.resize((most_.size() + kGroup - 1) / kGroup);
  for (std::size_t group = chunk / kGroup; group < tops_.size(); ++group) tops_[group] = of_group(group);
}

bool Gaps::find(i64 span, bool is_wide, Place& place) const {
  const auto holds = [&](const Capacity& capacity) { return (is_wide ? capacity.wide : capacity.any) >= span; };
  const auto group = std::find_if(tops_.begin(), tops_.end(), holds);
  if (group == tops_.end()) return false;
  const auto chunk = std::find_if(most_.begin() + (group - tops_.begin()) * std::ptrdiff_t(kGroup), most_.end(), holds);
  place.chunk = std::size_t(chunk - most_.begin());
  const auto& gaps = chunks_[place.chunk];
  place.at = std::size_t(
      std::find_if(gaps.begin(), gaps.end(), [&](const Gap& gap) { return holds(capacity_of(gap)); }) - gaps.begin());
  return true;
}

void Gaps::split(std::size_t chunk) {
  auto& own = chunks_[chunk];
  std::vector<Gap> rest(own.begin() + kChunk / 2, own.end());
  own.resize(kChunk / 2);
  const auto next = std::ptrdiff_t(chunk) + 1;
  chunks_.insert(chunks_.begin() + next, std::move(rest));
  most_.insert(most_.begin() + next, of_chunk(chunk + 1));
  most_[chunk] = of_chunk(chunk);
  regroup(chunk);
}

void Gaps::replace(Place place, std::span<const Gap> gaps) {
  auto& own = chunks_[place.chunk];
  const auto at = own.begin() + std::ptrdiff_t(place.at);
  const Capacity gone = capacity_of(*at);
  if (gaps.empty()) {
    own.erase(at);
  } else {
    *at = gaps.front();
    own.insert(at + 1, gaps.begin() + 1, gaps.end());
  }
  if (own.empty()) {
    chunks_.erase(chunks_.begin() + std::ptrdiff_t(place.chunk));
    most_.erase(most_.begin() + std::ptrdiff_t(place.chunk));
    return regroup(place.chunk);
  }
  if (own.size() > kChunk) return split(place.chunk);
  Capacity come;
  for (const Gap& gap : gaps) come.include(capacity_of(gap));
  // A capacity is measured again only if the removed gap had it and no new gap has as much.
  const auto changed = [&](Capacity& most, auto measured) {
    const Capacity before = most;
    most.include(come);
    if ((gone.any == before.any && come.any < gone.any) || (gone.wide == before.wide && come.wide < gone.wide))
      most = measured();
    return most != before;
  };
  if (changed(most_[place.chunk], [&] { return of_chunk(place.chunk); })) {
    const std::size_t group = place.chunk / kGroup;
    changed(tops_[group], [&] { return of_group(group); });
  }
}

void Gaps::push_back(Gap gap) {
  if (chunks_.empty()) {
    chunks_.push_back({gap});
    most_.push_back(capacity_of(gap));
    return regroup(0);
  }
  const Gap both[] = {back(), gap};
  replace({chunks_.size() - 1, chunks_.back().size() - 1}, both);
}

void Gaps::pop_back() { replace({chunks_.size() - 1, chunks_.back().size() - 1}, {}); }

void Gaps::add(Gap gap) {
  // Find the last gap before the new one, and the gap after it.
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
  Place place{std::size_t(chunk - chunks_.begin()) - 1, 0};
  const auto after =
      std::partition_point(gaps.begin(), gaps.end(), [&](const Gap& known) { return known.offset < gap.offset; });
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
