// Executing one step of a program on the CPU: the tile plan of elimina/program.hpp with rows in L1 and B tiles in L2.
#pragma once
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "dense.hpp"
#include "elimina/program.hpp"
#include "elimina/semiring.hpp"
#include "dense_vector.hpp"

namespace elimina::ELIMINA_ISA {

constexpr i64 kSmallWork = 4096;          // below: plain loops on one thread
constexpr double kParallelWork = 1e6;     // below: tiles, but on one thread
constexpr i64 kRowBytes = 32768;           // of a row of running marginals
constexpr i64 kTileBytes = 256 * 1024;    // of a B tile
constexpr i64 kShortestChunk = 128;       // of a row
constexpr i64 kCachedBytes = 8 << 20;     // larger outputs are written past the caches
constexpr double kPollWork = 2e8;         // work between two polls

// What a step reads, with the scale of each message.
template <class V>
struct Source {
  const V* data;
  i64 domain_stride;
  V scale;
  bool dense;         // lo strides are the output's
  const i32* lo;      // otherwise: offset of each lo cell
  TableView view;
};

template <class R>
class Executor {
  using V = typename R::Value;
  using Sum = typename R::Sum;

 public:
  Executor(const DenseRun& run, R ring) : run_(run), ring_(ring), arena_(static_cast<V*>(run.arena)) {}

  bool eliminate() {
    double done = 0, unpolled = 0;
    for (i64 turn = 0; turn < run_.steps; ++turn) {
      const i64 number = run_.sequence[turn];
      const StepView step = view(number);
      const double work = double(step.cells()) * double(step[kDomain]);
      prepare(step);
      Peak<V> peak;
      if (work < kSmallWork) {
        peak = small_step(step);
      } else if (!large_step(step, work, done, peak)) {
        return false;
      }
      if constexpr (R::scaled) {
        run_.peaks[2 * number] = peak.high;
        run_.peaks[2 * number + 1] = peak.high > 0 ? peak.low : 0;
      }
      done += work;
      unpolled += work + 1000;
      if (unpolled > kPollWork) {
        unpolled = 0;
        if (!run_.poll(done)) return false;
      }
    }
    return true;
  }

  void decode() {
    for (i64 turn = run_.steps - 1; turn >= 0; --turn) {
      const StepView step = view(run_.sequence[turn]);
      if (step[kVariable] < 0) continue;
      prepare(step);
      for (auto& source : sources_)
        for (i64 axis = 0; axis < step[kAxes]; ++axis)
          source.data += i64(run_.assignment[step.variable(axis)]) * source.view.stride(axis);
      i64 best = 0;
      V best_value = value_at(0);
      for (i64 d = 1; d < step[kDomain]; ++d) {
        const V value = value_at(d);
        if (ring_.better(value, best_value)) best = d, best_value = value;
      }
      run_.assignment[step[kVariable]] = int(best);
    }
  }

 private:
  StepView view(i64 number) const { return {run_.words + run_.starts[number]}; }

  void prepare(StepView step) {
    tables_ = step[kTables];
    a_ = step[kTablesA];
    b_ = a_ + step[kTablesB];
    sources_.resize(tables_);
    for (i64 t = 0; t < tables_; ++t) {
      const TableView table = step.table(t);
      V scale = V(1);
      if constexpr (R::scaled) {
        const double high = table.source() < 0 ? 0.0 : run_.peaks[2 * table.source()];
        scale = V(std::ldexp(1.0, -scale_exponent<V>(high)));
      }
      sources_[t] = {arena_ + table.offset(), table.domain_stride(), scale, false, nullptr, table};
    }
  }

  V read(const Source<V>& source, i64 index) const {
    if constexpr (R::scaled)
      return source.data[index] * source.scale;
    else
      return source.data[index];
  }

  // The value of one combination where every source already points at the output cell: (A...) x (B...) x S...
  V value_at(i64 d) const {
    V a = ring_.one(), b = ring_.one();
    for (i64 t = 0; t < a_; ++t) a = ring_.combine(a, read(sources_[t], d * sources_[t].domain_stride));
    for (i64 t = a_; t < b_; ++t) b = ring_.combine(b, read(sources_[t], d * sources_[t].domain_stride));
    V value = ring_.combine(a, b);
    for (i64 t = b_; t < tables_; ++t) value = ring_.combine(value, read(sources_[t], d * sources_[t].domain_stride));
    return value;
  }

  Peak<V> small_step(StepView step) {
    Peak<V> peak;
    V* out = arena_ + step[kOut];
    const i64 axes = step[kAxes];
    digits_.assign(axes, 0);
    for (i64 cell = step.cells(); cell > 0; --cell) {
      Sum sum = ring_.start();
      for (i64 d = 0; d < step[kDomain]; ++d) ring_.add(sum, value_at(d));
      const V value = ring_.finish(sum);
      *out = value;
      if constexpr (R::scaled) peak.see(&value, 1);
      for (i64 axis = axes - 1; axis >= 0; --axis) {
        const bool wraps = ++digits_[axis] == step.size(axis);
        const i64 moves = wraps ? 1 - step.size(axis) : 1;
        out += moves * step.out_stride(axis);
        for (auto& source : sources_) source.data += moves * source.view.stride(axis);
        if (!wraps) break;
        digits_[axis] = 0;
      }
    }
    return peak;
  }

  bool large_step(StepView step, double work, double done, Peak<V>& peak) {
    index_lo(step);
    index_mid(step);
    const i64 domain = step[kDomain];
    const i64 chunk_limit = std::max(kShortestChunk, std::min(kRowBytes / i64(sizeof(Sum)), kTileBytes / (domain * i64(sizeof(V)))));
    const i64 chunk = std::min(step[kLoCells], chunk_limit / kShortestChunk * kShortestChunk);
    const i64 chunks = (step[kLoCells] + chunk - 1) / chunk;
    const i64 tiles = step[kOuterCells] * chunks;
    const i64 mids = step[kMidCells];
    past_caches_ = !R::scaled && step.cells() * i64(sizeof(V)) > kCachedBytes;
    const int threads = work < kParallelWork ? 1 : run_.threads;
    const i64 wanted = threads > 1 ? 4 * i64(threads) : 1;
    const i64 mid_parts = tiles >= wanted ? 1 : std::min(mids, (wanted + tiles - 1) / tiles);
    const i64 mid_part = (mids + mid_parts - 1) / mid_parts;
    const i64 items = tiles * mid_parts;
    const i64 slice = std::max<i64>(wanted, i64(double(items) * std::min(1.0, kPollWork / work)));
    for (i64 first = 0; first < items; first += slice) {
      const i64 last = std::min(items, first + slice);
#pragma omp parallel num_threads(threads)
      {
        Workspace space(domain, chunk, tables_);
        Peak<V> own;
#pragma omp for schedule(dynamic, 1)
        for (i64 item = first; item < last; ++item) {
          const i64 part = item % mid_parts, tile = item / mid_parts;
          const i64 lo = tile % chunks * chunk;
          tile_rows(step, tile / chunks, lo, std::min(chunk, step[kLoCells] - lo), part * mid_part,
                    std::min(mids, (part + 1) * mid_part), space, own);
        }
        if (past_caches_) finish_stores_past_caches();
#pragma omp critical
        peak.see(own.high, own.low);
      }
      if (last < items && !run_.poll(done + work * double(last) / double(items))) return false;
    }
    return true;
  }

  struct Workspace {
    Workspace(i64 domain, i64 chunk, i64 tables)
        : a(domain), b(domain * chunk), row(chunk), sums(chunk), base(tables), rows(tables) {}
    std::vector<V> a, b, row;
    std::vector<Sum> sums;
    std::vector<i64> base;
    std::vector<const V*> rows;
  };

  // For each table with lo axes: is it contiguous there, and if not, where are its lo cells?
  void index_lo(StepView step) {
    const i64 first = step.lo_axis(), last = step[kAxes], cells = step[kLoCells];
    lo_index_.clear();
    for (i64 t = a_; t < tables_; ++t) {
      auto& source = sources_[t];
      source.dense = true;
      for (i64 axis = first; axis < last; ++axis)
        source.dense = source.dense && (step.size(axis) == 1 || source.view.stride(axis) == step.out_stride(axis));
      if (source.dense) continue;
      auto index = std::make_unique<i32[]>(cells);
      std::vector<i64> digits(last, 0);
      i64 offset = 0;
      for (i64 cell = 0; cell < cells; ++cell) {
        index[cell] = i32(offset);
        for (i64 axis = last - 1; axis >= first; --axis) {
          offset += source.view.stride(axis);
          if (++digits[axis] < step.size(axis)) break;
          offset -= step.size(axis) * source.view.stride(axis);
          digits[axis] = 0;
        }
      }
      source.lo = index.get();
      lo_index_.push_back(std::move(index));
    }
  }

  // For each table, and after them the output: where are its mid cells?
  void index_mid(StepView step) {
    const i64 first = step[kOuterAxes], last = step.lo_axis(), mids = step[kMidCells];
    mid_index_.resize((tables_ + 1) * mids);
    for (i64 t = 0; t <= tables_; ++t)
      for (i64 mid = 0; mid < mids; ++mid)
        mid_index_[t * mids + mid] = t < tables_ ? step.table_index(sources_[t].view, mid, first, last) : step.out_index(mid, first, last);
  }

  void tile_rows(StepView step, i64 outer, i64 lo, i64 cells, i64 mid_first, i64 mid_last, Workspace& space, Peak<V>& peak) {
    const i64 domain = step[kDomain], mid_axis = step[kOuterAxes], mids = step[kMidCells];
    for (i64 t = 0; t < tables_; ++t)
      space.base[t] = step.table_index(sources_[t].view, outer, 0, mid_axis);
    const V* b = build_b(domain, lo, cells, space);
    const i64 out_base = step[kOut] + step.out_index(outer, 0, mid_axis) + lo;
    for (i64 mid = mid_first; mid < mid_last; ++mid) {
      for (i64 d = 0; d < domain; ++d) space.a[d] = ring_.one();
      for (i64 t = 0; t < a_; ++t) {
        const auto& source = sources_[t];
        const i64 base = space.base[t] + mid_index_[t * mids + mid];
        for (i64 d = 0; d < domain; ++d) space.a[d] = ring_.combine(space.a[d], read(source, base + d * source.domain_stride));
      }
      V* out = arena_ + out_base + mid_index_[tables_ * mids + mid];
      bool dense = tables_ - b_ <= 2;
      for (i64 t = b_; t < tables_; ++t) {
        space.rows[t - b_] = sources_[t].data + space.base[t] + mid_index_[t * mids + mid];
        dense = dense && sources_[t].dense;
      }
      if (!b && b_ == tables_)
        constant_row(space.a.data(), domain, cells, out);
      else if (!dense || !vector_row(space, b, lo, domain, cells, out))
        general_row(space, b, lo, domain, cells, out);
      if constexpr (R::scaled) peak.see(out, cells);
    }
  }

  // False if this semiring, or so short a row, has no vectors.
  bool vector_row(Workspace& space, const V* b, i64 lo, i64 domain, i64 cells, V* out) const {
    if constexpr (Wide<R>::available) {
      if (cells < kLanes<V>) return false;
      Row<V> row{space.a.data(), b, cells, {nullptr, nullptr}, {0, 0}, {V(1), V(1)}, domain, nullptr};
      for (i64 t = b_; t < tables_; ++t) {
        row.streamed[t - b_] = space.rows[t - b_] + lo;
        row.stride[t - b_] = sources_[t].domain_stride;
        row.scale[t - b_] = sources_[t].scale;
      }
      const auto run = [&]<int streamed>() {
        const i64 turn = streamed ? kStreams : domain;
        for (i64 left = domain; left > 0; left -= turn) {
          const bool last = left <= turn;
          row.domain = std::min(left, turn);
          V* to = last ? out : space.row.data();
          if (b)
            RowKernel<R, streamed, true>(ring_, row).run(cells, to, last && past_caches_);
          else
            RowKernel<R, streamed, false>(ring_, row).run(cells, to, last && past_caches_);
          row.before = to;
          row.a += turn;
          if (b) row.b += turn * cells;
          for (int s = 0; s < streamed; ++s) row.streamed[s] += turn * row.stride[s];
        }
      };
      if (tables_ - b_ == 2)
        run.template operator()<2>();
      else if (tables_ - b_ == 1)
        run.template operator()<1>();
      else
        run.template operator()<0>();
      return true;
    }
    return false;
  }

  // B[d][lo] = B_1 x B_2 ..., or nullptr if there is no B table.
  const V* build_b(i64 domain, i64 lo, i64 cells, Workspace& space) {
    for (i64 t = a_; t < b_; ++t) {
      const auto& source = sources_[t];
      for (i64 d = 0; d < domain; ++d) {
        const V* data = source.data + space.base[t] + d * source.domain_stride;
        V* b = space.b.data() + d * cells;
        const i32* index = source.lo + lo;
        if (t == a_) {
          if (source.dense)
            for (i64 i = 0; i < cells; ++i) b[i] = scaled(data[lo + i], source);
          else
            for (i64 i = 0; i < cells; ++i) b[i] = scaled(data[index[i]], source);
        } else {
          if (source.dense)
            for (i64 i = 0; i < cells; ++i) b[i] = ring_.combine(b[i], scaled(data[lo + i], source));
          else
            for (i64 i = 0; i < cells; ++i) b[i] = ring_.combine(b[i], scaled(data[index[i]], source));
        }
      }
    }
    return b_ > a_ ? space.b.data() : nullptr;
  }

  V scaled(V value, const Source<V>& source) const {
    if constexpr (R::scaled)
      return value * source.scale;
    else
      return (void)source, value;
  }

  void constant_row(const V* a, i64 domain, i64 cells, V* out) const {
    Sum sum = ring_.start();
    for (i64 d = 0; d < domain; ++d) ring_.add(sum, ring_.combine(a[d], ring_.one()));
    std::fill(out, out + cells, ring_.finish(sum));
  }

  void general_row(Workspace& space, const V* __restrict b, i64 lo, i64 domain, i64 cells, V* __restrict out) const {
    Sum* __restrict sums = space.sums.data();
    V* __restrict row = space.row.data();
    for (i64 i = 0; i < cells; ++i) sums[i] = ring_.start();
    for (i64 d = 0; d < domain; ++d) {
      const V a = space.a[d];
      for (i64 i = 0; i < cells; ++i) row[i] = ring_.combine(a, b ? b[d * cells + i] : ring_.one());
      for (i64 t = b_; t < tables_; ++t) {
        const auto& source = sources_[t];
        const V* __restrict s = space.rows[t - b_] + d * source.domain_stride;
        if (source.dense) {
          for (i64 i = 0; i < cells; ++i) row[i] = ring_.combine(row[i], scaled(s[lo + i], source));
        } else {
          const i32* __restrict index = source.lo + lo;
          for (i64 i = 0; i < cells; ++i) row[i] = ring_.combine(row[i], scaled(s[index[i]], source));
        }
      }
      for (i64 i = 0; i < cells; ++i) ring_.add(sums[i], row[i]);
    }
    for (i64 i = 0; i < cells; ++i) out[i] = ring_.finish(sums[i]);
  }

  const DenseRun& run_;
  R ring_;
  V* arena_;
  i64 tables_ = 0, a_ = 0, b_ = 0;
  bool past_caches_ = false;
  std::vector<Source<V>> sources_;
  std::vector<std::unique_ptr<i32[]>> lo_index_;
  std::vector<i64> digits_, mid_index_;
};

}  // namespace elimina::ELIMINA_ISA
