// Computes rows of a step in explicit vectors. The marginals of a block of cells stay in registers while d runs over
// the values of the eliminated variable. Each value of d is then a separate stream; memory reads kStreams streams at
// once faster than one after another.
#pragma once
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#if defined(__AVX512BW__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "elimina/semiring.hpp"
#include "exec/dense/isa.hpp"
#include "exec/dense/lanes.hpp"
#include "exec/dense/layout.hpp"

namespace elimina::ELIMINA_ISA {

constexpr int kBlockVectors = 4;
constexpr i64 kStreams = 32;

// An integer type as wide as the value.
template <class V>
struct IndexOf {
  using type = std::conditional_t<sizeof(V) == 2, i16, std::conditional_t<sizeof(V) == 4, i32, i64>>;
};

template <class V>
inline Vector<V> load(const V* from) {
  Vector<V> value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class V>
inline void store(V* to, const Vector<V>& value) {
  std::memcpy(to, &value, sizeof value);
}

// Loads the first `count` lanes, 0 <= count <= kLanes, without touching other addresses; the remaining lanes are 0.
template <class V>
inline Vector<V> load_part(const V* from, int count) {
#if defined(__AVX512BW__)
  if constexpr (sizeof(V) == 8)
    return reinterpret_cast<Vector<V>>(_mm512_maskz_loadu_epi64(__mmask8((1u << count) - 1), from));
  if constexpr (sizeof(V) == 4)
    return reinterpret_cast<Vector<V>>(_mm512_maskz_loadu_epi32(__mmask16((1u << count) - 1), from));
  if constexpr (sizeof(V) == 2)
    return reinterpret_cast<Vector<V>>(_mm512_maskz_loadu_epi16(__mmask32((u64(1) << count) - 1), from));
#else
  Vector<V> value{};
  std::memcpy(&value, from, count * sizeof(V));
  return value;
#endif
}

template <class V>
inline void store_part(V* to, const Vector<V>& value, int count) {
#if defined(__AVX512BW__)
  if constexpr (sizeof(V) == 8)
    _mm512_mask_storeu_epi64(to, __mmask8((1u << count) - 1), reinterpret_cast<__m512i>(value));
  if constexpr (sizeof(V) == 4)
    _mm512_mask_storeu_epi32(to, __mmask16((1u << count) - 1), reinterpret_cast<__m512i>(value));
  if constexpr (sizeof(V) == 2)
    _mm512_mask_storeu_epi16(to, __mmask32((u64(1) << count) - 1), reinterpret_cast<__m512i>(value));
#else
  std::memcpy(to, &value, count * sizeof(V));
#endif
}

template <class Index, std::size_t... lane>
inline Vector<Index> lane_numbers(std::index_sequence<lane...>) {
  return Vector<Index>{Index(lane)...};
}

// Returns the first `count` lanes of `first`, and the remaining lanes of `rest`.
template <class Vec>
inline Vec first_lanes(int count, const Vec& first, const Vec& rest) {
  using V = std::remove_cvref_t<decltype(first[0])>;
  using Index = typename IndexOf<V>::type;
  return lane_numbers<Index>(std::make_index_sequence<kLanes<V>>{}) < Index(count) ? first : rest;
}

template <class V>
inline Vector<V> broadcast(V value) {
  return Vector<V>{} + value;
}

// Stores past the caches, to addresses that are multiples of kVectorBytes.
template <class V>
inline void store_past_caches(V* to, const Vector<V>& value) {
#if defined(__SSE2__)
  __m128i pieces[kVectorBytes / 16];
  std::memcpy(pieces, &value, sizeof value);
  for (int i = 0; i < kVectorBytes / 16; ++i) _mm_stream_si128(reinterpret_cast<__m128i*>(to) + i, pieces[i]);
#else
  std::memcpy(to, &value, sizeof value);
#endif
}

inline void finish_stores_past_caches() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

// Operations on vectors, for semirings of plain arithmetic.
template <class R>
struct Wide;
template <template <class> class R, class T>
struct Wide<R<T>> {
  static constexpr bool available = R<T>::is_arithmetic && kHasVectors;
  static R<Vector<T>> ring(R<T> narrow) {
    if constexpr (requires { narrow.infinity; }) return {broadcast(narrow.infinity)};
    else return {};
  }
};

// Operands of a row: for each d, a scalar and the rows of the tables, the first of which may be the rhs. More than
// kStreams values of d are taken in several turns, since memory serves only a limited number of streams at once.
template <class V>
struct Row {
  const V* a;
  i64 domain;
  i64 streamed;
  const V* tables[kMostStreamed];
  i64 strides[kMostStreamed];
  V scale[kMostStreamed];
  const V* before;  // marginals over earlier values of d, or nullptr
};

template <class R, int fixed_streamed>
class RowKernel {
  using V = typename R::Value;
  using Vec = Vector<V>;
  static constexpr int lanes = kLanes<V>;

 public:
  RowKernel(R ring, const Row<V>& row) : narrow_(ring), ring_(Wide<R>::ring(ring)), row_(row) {}

  // Computes a row. Computing its last cells twice is safe: the output is not read.
  void run(i64 cells, V* __restrict out, bool past_caches) const {
    if (cells < lanes) {
      Vec partial[1];
      compute<1, true>(0, partial, int(cells));
      return store_part(out, partial[0], int(cells));
    }
    if constexpr (!R::scaled)  // scaled outputs are read again for their range
      if (past_caches) return run_past_caches(cells, out);
    i64 i = 0;
    for (; i + kBlockVectors * lanes <= cells; i += kBlockVectors * lanes) {
      Vec block[kBlockVectors];
      compute<kBlockVectors>(i, block);
      std::memcpy(out + i, block, sizeof block);
    }
    for (; i < cells; i += lanes) {
      i = i + lanes <= cells ? i : cells - lanes;
      Vec block[1];
      compute<1>(i, block);
      std::memcpy(out + i, block, sizeof block);
    }
  }

 private:
  void run_past_caches(i64 cells, V* __restrict out) const {
    Vec edge[1];
    const i64 head = i64(-(reinterpret_cast<std::uintptr_t>(out) / sizeof(V)) % lanes);
    if (head) {
      compute<1>(0, edge);
      std::memcpy(out, edge, std::min<i64>(head, cells) * sizeof(V));
    }
    i64 i = head;
    for (; i + kBlockVectors * lanes <= cells; i += kBlockVectors * lanes) {
      Vec block[kBlockVectors];
      compute<kBlockVectors>(i, block);
#pragma GCC unroll 4
      for (int v = 0; v < kBlockVectors; ++v) store_past_caches(out + i + v * lanes, block[v]);
    }
    for (; i + lanes <= cells; i += lanes) {
      compute<1>(i, edge);
      store_past_caches(out + i, edge[0]);
    }
    if (i < cells) {
      compute<1>(cells - lanes, edge);
      std::memcpy(out + i, reinterpret_cast<const V*>(edge) + (i - (cells - lanes)), (cells - i) * sizeof(V));
    }
  }

  Vec scaled(Vec value, i64 which) const {
    if constexpr (R::scaled) return value * row_.scale[which];
    return value;
  }

  template <bool is_partial>
  static Vec fetch(const V* from, int count) {
    if constexpr (is_partial) return load_part(from, count);
    return (void)count, load(from);
  }

  template <int vectors, bool is_partial = false>
  __attribute__((always_inline)) void compute(i64 i, Vec* out, int count = lanes) const {
    constexpr bool any = fixed_streamed < 0;
    const i64 streamed = any ? row_.streamed : fixed_streamed;
    Vec sums[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v)
      sums[v] = row_.before ? fetch<is_partial>(row_.before + i + v * lanes, count) : broadcast(narrow_.start());
    const V* s[any ? kMostStreamed : fixed_streamed + 1];
    for (i64 t = 0; t < streamed; ++t) s[t] = row_.tables[t] + i;
    for (i64 d = 0; d < row_.domain; ++d) {
      Vec values[vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) values[v] = broadcast(row_.a[d]);
      for (i64 t = 0; t < streamed; ++t) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v)
          values[v] = ring_.combine(values[v], scaled(fetch<is_partial>(s[t] + v * lanes, count), t));
        s[t] += row_.strides[t];
      }
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) ring_.add(sums[v], values[v]);
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) out[v] = ring_.finish(sums[v]);
  }

  R narrow_;
  decltype(Wide<R>::ring(R{})) ring_;
  const Row<V>& row_;
};

// Computes a row in turns of `turn` values of d. `turns`: two rows of cells that pass the marginals from one turn to
// the next. One row would not do: vectors at the end of a row overlap, so cells would be overwritten before they are
// read.
template <class R>
void run_row(R ring, Row<typename R::Value> row, i64 turn, i64 cells, typename R::Value* turns, typename R::Value* out,
             bool past_caches) {
  const auto run = [&]<int streamed>() {
    for (i64 remaining = row.domain; remaining > 0; remaining -= turn) {
      const bool last = remaining <= turn;
      row.domain = std::min(remaining, turn);
      auto* to = last ? out : row.before == turns ? turns + cells : turns;
      RowKernel<R, streamed>(ring, row).run(cells, to, last && past_caches);
      row.before = to;
      row.a += turn;
      for (i64 s = 0; s < row.streamed; ++s) row.tables[s] += turn * row.strides[s];
    }
  };
  switch (row.streamed) {
    case 1: return run.template operator()<1>();
    case 2: return run.template operator()<2>();
    case 3: return run.template operator()<3>();
    default: return run.template operator()<-1>();
  }
}

template <class V>
inline void see(Peak& peak, const V* values, i64 count) {
  const V infinity = std::numeric_limits<V>::infinity();
  i64 i = 0;
  if (count >= kLanes<V>) {
    Vector<V> highs{}, lows = broadcast(infinity);
    for (; i + kLanes<V> <= count; i += kLanes<V>) {
      const Vector<V> value = load(values + i);
      highs = value > highs ? value : highs;
      const Vector<V> positive = value > Vector<V>{} ? value : broadcast(infinity);
      lows = positive < lows ? positive : lows;
    }
    for (int lane = 0; lane < kLanes<V>; ++lane) peak.see(double(highs[lane]), double(lows[lane]));
  }
  for (; i < count; ++i) peak.see(double(values[i]), values[i] > 0 ? double(values[i]) : double(infinity));
}

}  // namespace elimina::ELIMINA_ISA
