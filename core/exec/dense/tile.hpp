// The tile plan of elimina/program.hpp for steps of many combinations, with rows in L1 and rhs tiles in L2. Streamed
// tables that are not contiguous in the fast axes are packed row by row, or read along the eliminated variable if all
// tables are contiguous in it.
#pragma once
#include <algorithm>
#include <vector>

#include "elimina/program.hpp"
#include "elimina/semiring.hpp"
#include "exec/dense/dot.hpp"
#include "exec/dense/layout.hpp"
#include "exec/dense/pack.hpp"
#include "exec/dense/plain.hpp"
#include "exec/dense/vector.hpp"
#include "exec/paths.hpp"

namespace elimina::ELIMINA_ISA {

template <class T>
class Buffer : Scratch {
 public:
  T* reserve(i64 count) { return static_cast<T*>(Scratch::reserve(count * i64(sizeof(T)))); }
  T* data() const { return static_cast<T*>(Scratch::data()); }
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
class TileStep : public TileLayout {
  using V = typename R::Value;
  using Sum = typename R::Sum;
  static constexpr int lanes = kLanes<V>;

 public:
  TileStep(R ring, V* arena)
      : TileLayout({sizeof(V), sizeof(Sum), lanes, Wide<R>::available, kPermutes, !R::scaled}), ring_(ring),
        arena_(arena) {}

  void begin(StepView step, const std::vector<Source<V>>& sources, i64 wanted_items) {
    ring_ = weighed(ring_, step.weight());
    sources_ = sources.data();
    lay_out(step, wanted_items);
    count_paths_taken();
  }

  // Items are independent, so threads may share them.
  void run(i64 first, i64 last, Workspace<R>& space, Peak& peak) const {
    const i64 widest = std::max(domain_ * chunk_stride_, padded_ * chunk_);
    space.a.reserve(padded_);
    space.b.reserve(b_ > a_ ? widest : 0);
    space.packed.reserve(packed_ * domain_ * chunk_stride_);
    space.row.reserve(2 * chunk_stride_);
    space.sums.reserve(chunk_);
    space.base.reserve(tables_);
    space.strides.reserve(tables_);
    space.rows.reserve(tables_);
    for (i64 item = first; item < last; ++item) {
      const i64 mid_block = item % mid_parts_, tile = item / mid_parts_, lo = tile % chunks_ * chunk_;
      rows(tile / chunks_, lo, std::min(chunk_, step_[kLoCells] - lo), mid_block * mid_part_,
           std::min(mids_, (mid_block + 1) * mid_part_), space, peak);
    }
    if (past_caches_) finish_stores_past_caches();
  }

 private:
  void count_paths_taken() const {
    if (!are_paths_counted()) return;
    count_path(Path::tile);
    if (past_caches_) count_path(Path::tile_past_caches);
    if (dot_) return count_path(b_ > a_ ? Path::tile_dot_rhs : Path::tile_dot);
    if (b_ > a_) count_path(Path::tile_rhs);
    for (i64 t = a_; t < tables_; ++t)
      if (!dense_[t])
        Packer<V>(lo_[t], 0, step_[kLoCells], domain_, sources_[t].domain_stride, nullptr, 0).count_paths_taken();
    if (a_ == tables_) count_path(Path::tile_constant);
    else if (!Wide<R>::available) count_path(Path::tile_scalar);
    else if (tables_ - b_ >= kMostStreamed) count_path(Path::tile_many_streamed);
    else count_path(tables_ > b_ && domain_ > kStreams ? Path::tile_turns : Path::tile_rows);
  }

  V scaled(V value, i64 t) const {
    if constexpr (R::scaled) return value * sources_[t].scale;
    else return (void)t, value;
  }

  void rows(i64 outer, i64 lo, i64 cells, i64 mid_first, i64 mid_last, Workspace<R>& space, Peak& peak) const {
    const i64 mid_axis = step_[kOuterAxes];
    i64* base = space.base.data();
    for (i64 t = 0; t < tables_; ++t) base[t] = step_.table_index(sources_[t].view, outer, 0, mid_axis);
    const V* b = b_ == a_ ? nullptr : dot_ ? build_b_by_cell(lo, cells, space) : build_b(lo, cells, space);
    const i64 out_base = step_[kOut] + step_.out_index(outer, 0, mid_axis) + lo;
    for (i64 mid = mid_first; mid < mid_last; ++mid) {
      build_a(mid, space);
      V* out = arena_ + out_base + mid_[tables_ * mids_ + mid];
      if (dot_) dot_row(space, b, lo, cells, mid, out);
      else lo_row(space, b, lo, cells, mid, out);
      if constexpr (R::scaled) see(peak, out, cells);
    }
  }

  void build_a(i64 mid, Workspace<R>& space) const {
    V* a = space.a.data();
    std::fill(a, a + (dot_ ? padded_ : domain_), ring_.one());
    for (i64 t = 0; t < a_; ++t) {
      const V* data = sources_[t].data + space.base.data()[t] + mid_[t * mids_ + mid];
      for (i64 d = 0; d < domain_; ++d) a[d] = ring_.combine(a[d], scaled(data[d * sources_[t].domain_stride], t));
    }
  }

  // Returns the product of the rhs tables as rhs[d][fast].
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
        V* to = packed.reserve(domain_ * chunk_stride_);
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

  // Returns the product of the rhs tables as rhs[fast][d], with each cell's values padded to whole vectors.
  const V* build_b_by_cell(i64 lo, i64 cells, Workspace<R>& space) const {
    V* b = space.b.data();
    std::fill(b, b + cells * padded_, ring_.one());
    for (i64 t = a_; t < b_; ++t) {
      const i64 stride = sources_[t].domain_stride;
      for (i64 i = 0; i < cells; ++i) {
        const V* from = sources_[t].data + space.base.data()[t] + lo_[t].offsets[lo + i];
        V* row = b + i * padded_;
        for (i64 d = 0; d < domain_; ++d)
          row[d] = t == a_ ? scaled(from[d * stride], t) : ring_.combine(row[d], scaled(from[d * stride], t));
      }
    }
    return b;
  }

  void dot_row(Workspace<R>& space, const V* b, i64 lo, i64 cells, i64 mid, V* out) const {
    if constexpr (Wide<R>::available) {
      const i64 has_b = b != nullptr;
      Dot<V> dot{space.a.data(), domain_, tables_ - b_ + has_b, {}, {}, {}, {}};
      if (b) {
        i32* offsets = space.offsets.reserve(cells);
        for (i64 i = 0; i < cells; ++i) offsets[i] = i32(i * padded_);
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
    if constexpr (Wide<R>::available) vector_row(space, b, cells, out);
    else general_row(space, b, cells, out);
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

  [[gnu::cold]] void constant_row(const V* a, i64 cells, V* out) const {
    Sum sum = ring_.start();
    for (i64 d = 0; d < domain_; ++d) ring_.add(sum, ring_.combine(a[d], ring_.one()));
    std::fill(out, out + cells, ring_.finish(sum));
  }

  // Computes a row with more tables than a kernel takes, one cell after another.
  [[gnu::cold]] void cell_by_cell(const Workspace<R>& space, const V* b, i64 cells, V* out) const {
    for (i64 i = 0; i < cells; ++i) {
      Sum sum = ring_.start();
      for (i64 d = 0; d < domain_; ++d) {
        V value = ring_.combine(space.a.data()[d], b ? b[d * chunk_stride_ + i] : ring_.one());
        for (i64 t = b_; t < tables_; ++t)
          value = ring_.combine(value, scaled(space.rows.data()[t - b_][d * space.strides.data()[t - b_] + i], t));
        ring_.add(sum, value);
      }
      out[i] = ring_.finish(sum);
    }
  }

  // Computes a row in a semiring without vector operations.
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
  const Source<V>* sources_ = nullptr;
};

}  // namespace elimina::ELIMINA_ISA
