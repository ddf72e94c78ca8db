// Rows of a step in explicit vectors: the marginals of a block of cells stay in registers while d runs, so each value of d is a
// stream of its own from memory; that many streams at once are read faster than one after another.
#pragma once
#include <cstring>
#include <limits>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "elimina/semiring.hpp"

namespace elimina::ELIMINA_ISA {

constexpr int kVectorBytes = 64;
constexpr int kBlockVectors = 4;
constexpr i64 kStreams = 32;

template <class V>
struct VectorOf {
  typedef V type __attribute__((vector_size(kVectorBytes)));
};
template <class V>
using Vector = typename VectorOf<V>::type;
template <class V>
constexpr int kLanes = kVectorBytes / sizeof(V);

template <class V>
inline Vector<V> load(const V* from) {
  Vector<V> value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class V>
inline Vector<V> broadcast(V value) {
  return Vector<V>{} + value;
}

// Past the caches, for 64-byte aligned addresses.
template <class V>
inline void store_past_caches(V* to, const Vector<V>& value) {
#if defined(__SSE2__)
  __m128i parts[kVectorBytes / 16];
  std::memcpy(parts, &value, sizeof value);
  for (int i = 0; i < kVectorBytes / 16; ++i) _mm_stream_si128(reinterpret_cast<__m128i*>(to) + i, parts[i]);
#else
  std::memcpy(to, &value, sizeof value);
#endif
}

inline void finish_stores_past_caches() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

// The semirings whose operations are plain arithmetic, on vectors.
template <class R>
struct Wide {
  static constexpr bool available = false;
};
template <class T>
struct Wide<MinSum<T>> {
  static constexpr bool available = true;
  static MinSum<Vector<T>> ring(MinSum<T> narrow) { return {broadcast(narrow.infinity)}; }
};
template <class T>
struct Wide<MaxSum<T>> {
  static constexpr bool available = true;
  static MaxSum<Vector<T>> ring(MaxSum<T> narrow) { return {broadcast(narrow.infinity)}; }
};
template <class T>
struct Wide<MaxProduct<T>> {
  static constexpr bool available = true;
  static MaxProduct<Vector<T>> ring(MaxProduct<T>) { return {}; }
};
template <class T>
struct Wide<SumProduct<T>> {
  static constexpr bool available = true;
  static SumProduct<Vector<T>> ring(SumProduct<T>) { return {}; }
};

// What one row reads: for each d, a scalar, a row of B (or none), and up to two streamed rows. More values of d than
// kStreams are taken in turns, since memory serves only so many streams at once.
template <class V>
struct Row {
  const V* a;
  const V* b;
  i64 b_stride;
  const V* streamed[2];
  i64 stride[2];
  V scale[2];
  i64 domain;
  const V* before;  // marginals over earlier values of d, or none
};

template <class R, int streamed, bool has_b>
class RowKernel {
  using V = typename R::Value;
  using Vec = Vector<V>;
  static constexpr int lanes = kLanes<V>;

 public:
  RowKernel(R ring, const Row<V>& row) : narrow_(ring), ring_(Wide<R>::ring(ring)), row_(row) {}

  // `cells` is at least one vector's. Cells computed twice (at the end) do no harm: the output is not read.
  void run(i64 cells, V* __restrict out, bool past_caches) const {
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

  Vec scaled(Vec value, int which) const {
    if constexpr (R::scaled) return value * row_.scale[which];
    return value;
  }

  template <int vectors>
  __attribute__((always_inline)) void compute(i64 i, Vec* out) const {
    Vec sums[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) sums[v] = row_.before ? load(row_.before + i + v * lanes) : ring_.start();
    const V* __restrict s0 = streamed > 0 ? row_.streamed[0] + i : nullptr;
    const V* __restrict s1 = streamed > 1 ? row_.streamed[1] + i : nullptr;
    const V* __restrict b = has_b ? row_.b + i : nullptr;
    for (i64 d = 0; d < row_.domain; ++d) {
      const Vec a = broadcast(has_b ? row_.a[d] : narrow_.combine(row_.a[d], narrow_.one()));
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        Vec value = a;
        if constexpr (has_b) value = ring_.combine(value, load(b + v * lanes));
        if constexpr (streamed > 0) value = ring_.combine(value, scaled(load(s0 + v * lanes), 0));
        if constexpr (streamed > 1) value = ring_.combine(value, scaled(load(s1 + v * lanes), 1));
        ring_.add(sums[v], value);
      }
      if constexpr (has_b) b += row_.b_stride;
      if constexpr (streamed > 0) s0 += row_.stride[0];
      if constexpr (streamed > 1) s1 += row_.stride[1];
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) out[v] = ring_.finish(sums[v]);
  }

  R narrow_;
  decltype(Wide<R>::ring(R{})) ring_;
  const Row<V>& row_;
};

// Largest value, and smallest positive one.
template <class V>
struct Peak {
  double high = 0, low = std::numeric_limits<double>::infinity();

  void see(const V* values, i64 count) {
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
      for (int lane = 0; lane < kLanes<V>; ++lane) see(double(highs[lane]), double(lows[lane]));
    }
    for (; i < count; ++i) see(double(values[i]), values[i] > 0 ? double(values[i]) : double(infinity));
  }
  void see(double higher, double lower) {
    high = higher > high ? higher : high;
    low = lower < low ? lower : low;
  }
};

}  // namespace elimina::ELIMINA_ISA
