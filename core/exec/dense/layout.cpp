#include "exec/dense/layout.hpp"

#include <algorithm>

namespace elimina {
namespace {

constexpr i64 kRowBytes = 32768;         // bytes of a row of running marginals
constexpr i64 kTileBytes = 256 * 1024;   // bytes of an rhs tile
constexpr i64 kPackedBytes = 24 * 1024;  // bytes of the packed rows of streamed tables
constexpr i64 kShortestChunk = 128;      // smallest number of cells of a chunk; larger ones are multiples of it
constexpr i64 kShortestPackedChunk = 64;
constexpr i64 kShortestDot = 4;        // smallest number of values of the eliminated variable in a dot product
constexpr i64 kCachedBytes = 8 << 20;  // larger outputs are written past the caches

}  // namespace

void CellIndex::fill(StepView step, TableView table) {
  offsets.resize(step[kLoCells]);
  fill_offsets(offsets.data(), step, step.lo_axis(), step[kAxes], [&](i64 axis) { return table.stride(axis); });
}

void CellIndex::find_runs(StepView step, TableView table, int window_lanes) {
  run = 1;
  i64 span = 0;  // distance from the first to the last cell of the visited axes
  bool ascending = true, contiguous = true;
  for (i64 axis = step[kAxes] - 1; axis >= step.lo_axis(); --axis) {
    contiguous = contiguous && (step.size(axis) == 1 || table.stride(axis) == run);
    if (contiguous) run *= step.size(axis);
    ascending = ascending && (step.size(axis) == 1 || table.stride(axis) >= span);
    span += (step.size(axis) - 1) * table.stride(axis);
  }
  if (window_lanes) find_windows(step[kLoCells], ascending, window_lanes);
}

void CellIndex::find_windows(i64 cells, bool ascending, int lanes) {
  window_first.clear();
  window_cells.clear();
  for (i64 i = 0; i < cells; i += lanes) {
    const i64 end = std::min<i64>(cells, i + lanes);
    i32 low = offsets[i], high = offsets[end - 1];
    for (i64 cell = i; cell < end && !ascending; ++cell)
      low = std::min(low, offsets[cell]), high = std::max(high, offsets[cell]);
    window_first.push_back(low);
    window_cells.push_back(high - low < kWindows * lanes ? high - low + 1 : 0);
  }
}

Scratch::~Scratch() = default;

void* Scratch::grow(i64 bytes) {
  data_ = std::make_unique_for_overwrite<std::byte[]>(std::size_t(bytes_ = bytes + bytes / 2));
  return data_.get();
}

TileLayout::~TileLayout() = default;

void TileLayout::lay_out(StepView step, i64 wanted_items) {
  step_ = step;
  domain_ = step[kDomain], tables_ = step[kTables], a_ = step[kTablesA], b_ = a_ + step[kTablesB];
  mids_ = step[kMidCells];
  padded_ = whole_vectors(domain_);
  index_lo();
  index_mid();
  chunk_ = chunk_cells();
  chunk_stride_ = whole_vectors(chunk_);
  chunks_ = (step[kLoCells] + chunk_ - 1) / chunk_;
  past_caches_ = kind_.past_caches && !dot_ && step.cells() * kind_.value_bytes > kCachedBytes;
  const i64 tiles = step[kOuterCells] * chunks_;
  mid_parts_ = tiles >= wanted_items ? 1 : std::min(mids_, (wanted_items + tiles - 1) / tiles);
  mid_part_ = (mids_ + mid_parts_ - 1) / mid_parts_;
  items_ = tiles * mid_parts_;
}

i64 TileLayout::chunk_cells() const {
  const i64 row = kRowBytes / kind_.sum_bytes, tile = kTileBytes / (domain_ * kind_.value_bytes);
  const i64 dense = std::max(kShortestChunk, std::min(row, tile) / kShortestChunk * kShortestChunk);
  const i64 fitting_cells = kPackedBytes / (domain_ * kind_.value_bytes * std::max<i64>(packed_, 1));
  const i64 packed = std::max(kShortestPackedChunk, fitting_cells / kShortestPackedChunk * kShortestPackedChunk);
  return std::min(step_[kLoCells], packed_ ? std::min(dense, packed) : dense);
}

bool TileLayout::dense_in_lo(i64 t) const {
  for (i64 axis = step_.lo_axis(); axis < step_[kAxes]; ++axis)
    if (step_.size(axis) > 1 && step_.table(t).stride(axis) != step_.out_stride(axis)) return false;
  return true;
}

// Finds the layout of each table with fast axes: contiguous, or offsets of its fast cells.
void TileLayout::index_lo() {
  dense_.resize(tables_);
  if (i64(lo_.size()) < tables_) lo_.resize(tables_);
  packed_ = 0;
  for (i64 t = a_; t < tables_; ++t) {
    dense_[t] = dense_in_lo(t);
    packed_ += !dense_[t] && t >= b_;
  }
  dot_ = kind_.vectors && packed_ > 0 && domain_ >= kShortestDot && tables_ - b_ < kMostStreamed;
  for (i64 t = 0; t < tables_; ++t)
    dot_ = dot_ && (step_.table(t).domain_stride() == 0 || step_.table(t).domain_stride() == 1);
  if (dot_) packed_ = 0;
  for (i64 t = a_; t < tables_; ++t) {
    if (dot_ || !dense_[t]) lo_[t].fill(step_, step_.table(t));
    if (!dot_ && !dense_[t]) lo_[t].find_runs(step_, step_.table(t), kind_.permutes ? kind_.lanes : 0);
  }
}

// Lists the offsets of the middle cells of each table, and of the output.
void TileLayout::index_mid() {
  const i64 first = step_[kOuterAxes], last = step_.lo_axis();
  mid_.resize((tables_ + 1) * mids_);
  for (i64 t = 0; t <= tables_; ++t)
    fill_offsets(mid_.data() + t * mids_, step_, first, last,
                 [&](i64 axis) { return t < tables_ ? step_.table(t).stride(axis) : step_.out_stride(axis); });
}

}  // namespace elimina
