// The tile plan of elimina/program.hpp for steps of many combinations, with rows in L1 and rhs tiles in L2. Streamed tables
// that are not contiguous in the fast axes are packed row by row, or, where all tables are contiguous in the eliminated
// variable, read along it.
#pragma once
#include <algorithm>
#include <bit>
#include <memory>
#include <vector>

#include "exec/dense/dot.hpp"
#include "exec/dense/pack.hpp"
#include "exec/dense/vector.hpp"
#include "elimina/program.hpp"
#include "elimina/semiring.hpp"

namespace elimina::ELIMINA_ISA {

constexpr i64 kRowBytes = 32768;           // of a row of running marginals
constexpr i64 kTileBytes = 256 * 1024;     // of an rhs tile
constexpr i64 kPackedBytes = 24 * 1024;    // of the packed rows of streamed tables
constexpr i64 kShortestChunk = 128;        // of a row
constexpr i64 kShortestPackedChunk = 64;
constexpr i64 kShortestDot = 4;            // values of the eliminated variable
constexpr i64 kCachedBytes = 8 << 20;      // larger outputs are written past the caches

// Factor by which readers multiply a message with this largest value.
template <class V>
V message_scale(double peak) {
  return V(std::bit_cast<double>(u64(1023 - scale_exponent<V>(peak)) << 52));
}

// Operands of a step, with the scale of each message.
template <class V>
struct Source {
  const V* data;
  i64 domain_stride;
  V scale;
  TableView view;
};

// Memory that is kept from step to step; its contents are not.
template <class T>
class Buffer {
 public:
  T* take(i64 count) {
    if (count > count_) data_ = std::make_unique_for_overwrite<T[]>(count_ = count + count / 2);
    return data_.get();
  }
  T* data() const { return data_.get(); }

 private:
  std::unique_ptr<T[]> data_;
  i64 count_ = 0;
};

template <class R>
struct Workspace {
  using V = typename R::Value;
  Buffer<V> a, b, row, packed;
  Buffer<typename R::Sum> sums;
  Buffer<i64> base, strides;
  Buffer<i32> offsets;
  Buffer<const V*> rows;
};

template <class R>
class TileStep {
  using V = typename R::Value;
  using Sum = typename R::Sum;
  static constexpr int lanes = kLanes<V>;

 public:
  TileStep(R ring, V* arena) : ring_(ring), arena_(arena) {}

  void begin(StepView step, const std::vector<Source<V>>& sources, i64 wanted_items) {
    step_ = step;
    ring_ = weighed(ring_, step.weight());
    sources_ = sources.data();
    domain_ = step[kDomain], tables_ = step[kTables], a_ = step[kTablesA], b_ = a_ + step[kTablesB];
    mids_ = step[kMidCells];
    index_lo();
    index_mid();
    chunk_ = chunk_cells();
    chunk_stride_ = whole_vectors(chunk_);
    chunks_ = (step[kLoCells] + chunk_ - 1) / chunk_;
    past_caches_ = !R::scaled && !dot_ && step.cells() * i64(sizeof(V)) > kCachedBytes;
    const i64 tiles = step[kOuterCells] * chunks_;
    mid_parts_ = tiles >= wanted_items ? 1 : std::min(mids_, (wanted_items + tiles - 1) / tiles);
    mid_part_ = (mids_ + mid_parts_ - 1) / mid_parts_;
    items_ = tiles * mid_parts_;
  }

  i64 items() const { return items_; }

  // Items are independent of one another.
  void run(i64 first, i64 last, Workspace<R>& space, Peak<V>& peak) const {
    const i64 padded = whole_vectors(domain_), widest = std::max(domain_ * chunk_stride_, padded * chunk_);
    space.a.take(padded);
    space.b.take(b_ > a_ ? widest : 0);
    space.packed.take(packed_ * domain_ * chunk_stride_);
    space.row.take(2 * chunk_stride_);
    space.sums.take(chunk_);
    space.base.take(tables_);
    space.strides.take(tables_);
    space.rows.take(tables_);
    for (i64 item = first; item < last; ++item) {
      const i64 part = item % mid_parts_, tile = item / mid_parts_, lo = tile % chunks_ * chunk_;
      rows(tile / chunks_, lo, std::min(chunk_, step_[kLoCells] - lo), part * mid_part_, std::min(mids_, (part + 1) * mid_part_), space, peak);
    }
    if (past_caches_) finish_stores_past_caches();
  }

 private:
  static i64 whole_vectors(i64 cells) { return (cells + lanes - 1) / lanes * lanes; }

  i64 chunk_cells() const {
    const i64 row = kRowBytes / i64(sizeof(Sum)), tile = kTileBytes / (domain_ * i64(sizeof(V)));
    const i64 dense = std::max(kShortestChunk, std::min(row, tile) / kShortestChunk * kShortestChunk);
    const i64 one = kPackedBytes / (domain_ * i64(sizeof(V)) * std::max<i64>(packed_, 1));
    const i64 packed = std::max(kShortestPackedChunk, one / kShortestPackedChunk * kShortestPackedChunk);
    return std::min(step_[kLoCells], packed_ ? std::min(dense, packed) : dense);
  }

  bool dense_in_lo(i64 t) const {
    for (i64 axis = step_.lo_axis(); axis < step_[kAxes]; ++axis)
      if (step_.size(axis) > 1 && sources_[t].view.stride(axis) != step_.out_stride(axis)) return false;
    return true;
  }

  // Layout of each table with fast axes: contiguous, or the places of its fast cells.
  void index_lo() {
    dense_.resize(tables_);
    if (i64(lo_.size()) < tables_) lo_.resize(tables_);
    packed_ = 0;
    for (i64 t = a_; t < tables_; ++t) {
      dense_[t] = dense_in_lo(t);
      packed_ += !dense_[t] && t >= b_;
    }
    dot_ = Wide<R>::available && packed_ > 0 && domain_ >= kShortestDot && tables_ - b_ < kMostStreamed;
    for (i64 t = 0; t < tables_; ++t) dot_ = dot_ && (sources_[t].domain_stride == 0 || sources_[t].domain_stride == 1);
    if (dot_) packed_ = 0;
    for (i64 t = a_; t < tables_; ++t)
      if (dot_ || !dense_[t]) lo_[t].fill(step_, sources_[t].view, dot_);
  }

  // Places of the middle cells of each table, and then of the output.
  void index_mid() {
    const i64 first = step_[kOuterAxes], last = step_.lo_axis();
    mid_.resize((tables_ + 1) * mids_);
    for (i64 t = 0; t <= tables_; ++t)
      fill_offsets(mid_.data() + t * mids_, step_, first, last, [&](i64 axis) { return t < tables_ ? sources_[t].view.stride(axis) : step_.out_stride(axis); });
  }

  V scaled(V value, i64 t) const {
    if constexpr (R::scaled)
      return value * sources_[t].scale;
    else
      return (void)t, value;
  }

  void rows(i64 outer, i64 lo, i64 cells, i64 mid_first, i64 mid_last, Workspace<R>& space, Peak<V>& peak) const {
    const i64 mid_axis = step_[kOuterAxes];
    i64* base = space.base.data();
    for (i64 t = 0; t < tables_; ++t) base[t] = step_.table_index(sources_[t].view, outer, 0, mid_axis);
    const V* b = b_ == a_ ? nullptr : dot_ ? build_b_by_cell(lo, cells, space) : build_b(lo, cells, space);
    const i64 out_base = step_[kOut] + step_.out_index(outer, 0, mid_axis) + lo;
    for (i64 mid = mid_first; mid < mid_last; ++mid) {
      build_a(mid, space);
      V* out = arena_ + out_base + mid_[tables_ * mids_ + mid];
      if (dot_)
        dot_row(space, b, lo, cells, mid, out);
      else
        lo_row(space, b, lo, cells, mid, out);
      if constexpr (R::scaled) peak.see(out, cells);
    }
  }

  void build_a(i64 mid, Workspace<R>& space) const {
    V* a = space.a.data();
    std::fill(a, a + (dot_ ? whole_vectors(domain_) : domain_), ring_.one());
    for (i64 t = 0; t < a_; ++t) {
      const V* data = sources_[t].data + space.base.data()[t] + mid_[t * mids_ + mid];
      for (i64 d = 0; d < domain_; ++d) a[d] = ring_.combine(a[d], scaled(data[d * sources_[t].domain_stride], t));
    }
  }

  // rhs[d][fast] = rhs_1 x rhs_2 ...
  const V* build_b(i64 lo, i64 cells, Workspace<R>& space) const {
    V* b = space.b.data();
    Buffer<V> packed;
    for (i64 t = a_; t < b_; ++t) {
      const auto& source = sources_[t];
      const V* data = source.data + space.base.data()[t];
      i64 stride = source.domain_stride;
      if (dense_[t]) {
        data += lo;
      } else {
        V* to = packed.take(domain_ * chunk_stride_);
        Packer<V>(lo_[t], lo, cells, domain_, stride, to, chunk_stride_).pack(data);
        data = to, stride = chunk_stride_;
      }
      for (i64 d = 0; d < domain_; ++d) {
        V* __restrict row = b + d * chunk_stride_;
        const V* __restrict from = data + d * stride;
        if (t == a_)
          for (i64 i = 0; i < cells; ++i) row[i] = scaled(from[i], t);
        else
          for (i64 i = 0; i < cells; ++i) row[i] = ring_.combine(row[i], scaled(from[i], t));
      }
    }
    return b;
  }

  // rhs[fast][d], each cell's values padded to whole vectors.
  const V* build_b_by_cell(i64 lo, i64 cells, Workspace<R>& space) const {
    const i64 padded = whole_vectors(domain_);
    V* b = space.b.data();
    std::fill(b, b + cells * padded, ring_.one());
    for (i64 t = a_; t < b_; ++t) {
      const i64 stride = sources_[t].domain_stride;
      for (i64 i = 0; i < cells; ++i) {
        const V* from = sources_[t].data + space.base.data()[t] + lo_[t].offsets[lo + i];
        V* row = b + i * padded;
        for (i64 d = 0; d < domain_; ++d) row[d] = t == a_ ? scaled(from[d * stride], t) : ring_.combine(row[d], scaled(from[d * stride], t));
      }
    }
    return b;
  }

  void dot_row(Workspace<R>& space, const V* b, i64 lo, i64 cells, i64 mid, V* out) const {
    if constexpr (Wide<R>::available) {
      const i64 has_b = b != nullptr;
      Dot<V> dot{space.a.data(), domain_, tables_ - b_ + has_b, {}, {}, {}, {}};
      if (b) {
        i32* offsets = space.offsets.take(cells);
        for (i64 i = 0; i < cells; ++i) offsets[i] = i32(i * whole_vectors(domain_));
        dot.tables[0] = b, dot.offsets[0] = offsets, dot.varies[0] = true, dot.scale[0] = V(1);
      }
      for (i64 t = b_; t < tables_; ++t) {
        const i64 s = t - b_ + has_b;
        dot.tables[s] = sources_[t].data + space.base.data()[t] + mid_[t * mids_ + mid];
        dot.offsets[s] = lo_[t].offsets.data() + lo;
        dot.varies[s] = sources_[t].domain_stride != 0;
        dot.scale[s] = sources_[t].scale;
      }
      run_dot(ring_, dot, cells, out);
    }
  }

  void lo_row(Workspace<R>& space, const V* b, i64 lo, i64 cells, i64 mid, V* out) const {
    if (!b && b_ == tables_) return constant_row(space.a.data(), cells, out);
    V* packed = space.packed.data();
    for (i64 t = b_; t < tables_; ++t) {
      const V* data = sources_[t].data + space.base.data()[t] + mid_[t * mids_ + mid];
      i64 stride = sources_[t].domain_stride;
      if (dense_[t]) {
        data += lo;
      } else {
        Packer<V>(lo_[t], lo, cells, domain_, stride, packed, chunk_stride_).pack(data);
        data = packed, stride = chunk_stride_;
        packed += domain_ * chunk_stride_;
      }
      space.rows.data()[t - b_] = data;
      space.strides.data()[t - b_] = stride;
    }
    if constexpr (Wide<R>::available)
      vector_row(space, b, cells, out);
    else
      general_row(space, b, cells, out);
  }

  void vector_row(Workspace<R>& space, const V* b, i64 cells, V* out) const {
    const i64 has_b = b != nullptr, streamed = tables_ - b_;
    if (streamed >= kMostStreamed) return cell_by_cell(space, b, cells, out);
    Row<V> row{space.a.data(), domain_, streamed + has_b, {}, {}, {}, nullptr};
    if (b) row.tables[0] = b, row.strides[0] = chunk_stride_, row.scale[0] = V(1);
    for (i64 s = 0; s < streamed; ++s) {
      row.tables[s + has_b] = space.rows.data()[s];
      row.strides[s + has_b] = space.strides.data()[s];
      row.scale[s + has_b] = sources_[b_ + s].scale;
    }
    run_row(ring_, row, streamed ? kStreams : domain_, cells, space.row.data(), out, past_caches_);
  }

  void constant_row(const V* a, i64 cells, V* out) const {
    Sum sum = ring_.start();
    for (i64 d = 0; d < domain_; ++d) ring_.add(sum, ring_.combine(a[d], ring_.one()));
    std::fill(out, out + cells, ring_.finish(sum));
  }

  // More tables than a kernel of rows takes, one cell after another.
  void cell_by_cell(const Workspace<R>& space, const V* b, i64 cells, V* out) const {
    for (i64 i = 0; i < cells; ++i) {
      Sum sum = ring_.start();
      for (i64 d = 0; d < domain_; ++d) {
        V value = ring_.combine(space.a.data()[d], b ? b[d * chunk_stride_ + i] : ring_.one());
        for (i64 t = b_; t < tables_; ++t) value = ring_.combine(value, scaled(space.rows.data()[t - b_][d * space.strides.data()[t - b_] + i], t));
        ring_.add(sum, value);
      }
      out[i] = ring_.finish(sum);
    }
  }

  // A row of a semiring without vectors.
  void general_row(Workspace<R>& space, const V* __restrict b, i64 cells, V* __restrict out) const {
    Sum* __restrict sums = space.sums.data();
    V* __restrict row = space.row.data();
    for (i64 i = 0; i < cells; ++i) sums[i] = ring_.start();
    for (i64 d = 0; d < domain_; ++d) {
      const V a = space.a.data()[d];
      for (i64 i = 0; i < cells; ++i) row[i] = ring_.combine(a, b ? b[d * chunk_stride_ + i] : ring_.one());
      for (i64 t = b_; t < tables_; ++t) {
        const V* __restrict s = space.rows.data()[t - b_] + d * space.strides.data()[t - b_];
        for (i64 i = 0; i < cells; ++i) row[i] = ring_.combine(row[i], scaled(s[i], t));
      }
      for (i64 i = 0; i < cells; ++i) ring_.add(sums[i], row[i]);
    }
    for (i64 i = 0; i < cells; ++i) out[i] = ring_.finish(sums[i]);
  }

  R ring_;
  V* arena_;
  StepView step_{};
  const Source<V>* sources_ = nullptr;
  i64 domain_ = 0, tables_ = 0, a_ = 0, b_ = 0, mids_ = 0, packed_ = 0;
  i64 chunk_ = 0, chunk_stride_ = 0, chunks_ = 0, mid_parts_ = 0, mid_part_ = 0, items_ = 0;
  bool past_caches_ = false, dot_ = false;
  std::vector<char> dense_;
  std::vector<CellIndex<V>> lo_;
  std::vector<i64> mid_;
};

}  // namespace elimina::ELIMINA_ISA
