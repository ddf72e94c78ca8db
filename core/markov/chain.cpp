#include "markov/chain.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>

#include "exec/run_threads.hpp"
#include "stop.hpp"
#include "versions.hpp"

namespace elimina::markov {
namespace {

// Vectors of AVX2's width, because GCC keeps wider ones in memory.
typedef double Vector __attribute__((vector_size(32), aligned(8), may_alias));
typedef long long Numbers __attribute__((vector_size(32)));
constexpr i64 kWidth = 4;
constexpr int kMaxLanes = 2 * kWidth;
static_assert(Panels::kColumns == 2 * kWidth);

// Number of products between two calls of `poll`, whose time is then negligible.
constexpr i64 kProductsPerPoll = i64(1) << 24;

// Smallest number of sequences that run in all lanes, although some lanes are empty.
constexpr i64 kMinLanes = 3;

// Smaller probabilities may lose digits or become 0.
constexpr double kSmall = 1e-280;

// The product of a total of at least this size with a probability of at least kSmall is a normal number.
constexpr double kSmallTotal = 1e-20;

// Smallest transition probability with which underflows are negligible: the message of each state is then at least
// 1e-150 times any other.
constexpr double kMixing = 1e-150;

// Least predicted probability that is used as a divisor: quotients by smaller ones may overflow.
constexpr double kMinPrediction = 1e-290;

// Number of steps whose products are added together to the counts of moves.
constexpr i64 kMovesTogether = 4;

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

#define ELIMINA_INLINE inline __attribute__((always_inline))

inline const Vector& at(const double* from) { return *reinterpret_cast<const Vector*>(from); }
inline Vector& at(double* to) { return *reinterpret_cast<Vector*>(to); }

// Transposes the square whose rows are these vectors.
ELIMINA_INLINE void transpose(Vector& a, Vector& b, Vector& c, Vector& d) {
  const Vector p = __builtin_shufflevector(a, b, 0, 4, 2, 6), q = __builtin_shufflevector(a, b, 1, 5, 3, 7),
               r = __builtin_shufflevector(c, d, 0, 4, 2, 6), s = __builtin_shufflevector(c, d, 1, 5, 3, 7);
  a = __builtin_shufflevector(p, r, 0, 1, 4, 5);
  b = __builtin_shufflevector(q, s, 0, 1, 4, 5);
  c = __builtin_shufflevector(p, r, 2, 3, 6, 7);
  d = __builtin_shufflevector(q, s, 2, 3, 6, 7);
}

// Reads rows of numbers, one for each lane: act(j, low, high) gets the numbers j of all lanes.
template <class Act>
ELIMINA_INLINE void read_rows(const double* const* rows, i64 states, const Act& act) {
  const i64 rest = states % kWidth;
  for (i64 j = 0; j + kWidth <= states; j += kWidth) {
    Vector a = at(rows[0] + j), b = at(rows[1] + j), c = at(rows[2] + j), d = at(rows[3] + j);
    Vector e = at(rows[4] + j), f = at(rows[5] + j), g = at(rows[6] + j), h = at(rows[7] + j);
    transpose(a, b, c, d);
    transpose(e, f, g, h);
    act(j, a, e), act(j + 1, b, f), act(j + 2, c, g), act(j + 3, d, h);
  }
  if (rest == 0) return;
  if (states < kWidth) {
    for (i64 j = 0; j < states; ++j)
      act(j, Vector{rows[0][j], rows[1][j], rows[2][j], rows[3][j]},
          Vector{rows[4][j], rows[5][j], rows[6][j], rows[7][j]});
    return;
  }
  // The last numbers are read together with the ones before them, which takes a third of the time of reading each.
  const i64 j = states - kWidth;
  Vector a = at(rows[0] + j), b = at(rows[1] + j), c = at(rows[2] + j), d = at(rows[3] + j);
  Vector e = at(rows[4] + j), f = at(rows[5] + j), g = at(rows[6] + j), h = at(rows[7] + j);
  transpose(a, b, c, d);
  transpose(e, f, g, h);
  if (rest > 2) act(j + 1, b, f);
  if (rest > 1) act(j + 2, c, g);
  act(j + 3, d, h);
}

// Sets y[j] to the sum of x[i] * matrix[i][j]. One sequence: a panel's columns are the lanes of vectors.
ELIMINA_FUSED_VERSIONS void multiply_one(const double* panels, i64 states, i64 padded, const double* x, double* y) {
  for (i64 first = 0; first < padded; first += Panels::kColumns) {
    const double* cells = panels + first * states;
    Vector a{}, b{}, c{}, d{}, e{}, f{}, g{}, h{};
    i64 i = 0;
    for (; i + 4 <= states; i += 4, cells += 4 * Panels::kColumns) {
      a += x[i] * at(cells);
      b += x[i] * at(cells + 4);
      c += x[i + 1] * at(cells + 8);
      d += x[i + 1] * at(cells + 12);
      e += x[i + 2] * at(cells + 16);
      f += x[i + 2] * at(cells + 20);
      g += x[i + 3] * at(cells + 24);
      h += x[i + 3] * at(cells + 28);
    }
    for (; i < states; ++i, cells += Panels::kColumns) {
      a += x[i] * at(cells);
      b += x[i] * at(cells + 4);
    }
    at(y + first) = (a + c) + (e + g);
    at(y + first + kWidth) = (b + d) + (f + h);
  }
}

// Computes the same sums for eight sequences, which are the lanes of two vectors.
ELIMINA_FUSED_VERSIONS void multiply_all(const double* panels, i64 states, const double* x, double* y) {
  for (i64 first = 0; first < states; first += 4) {
    const double* cells = panels + first / Panels::kColumns * Panels::kColumns * states + first % Panels::kColumns;
    Vector a{}, b{}, c{}, d{}, e{}, f{}, g{}, h{};
    for (i64 i = 0; i < states; ++i, cells += Panels::kColumns) {
      const Vector low = at(x + i * kMaxLanes), high = at(x + i * kMaxLanes + kWidth);
      a += low * cells[0];
      b += high * cells[0];
      c += low * cells[1];
      d += high * cells[1];
      e += low * cells[2];
      f += high * cells[2];
      g += low * cells[3];
      h += high * cells[3];
    }
    double* to = y + first * kMaxLanes;
    at(to) = a, at(to + 4) = b, at(to + 8) = c, at(to + 12) = d;
    at(to + 16) = e, at(to + 20) = f, at(to + 24) = g, at(to + 28) = h;
  }
}

// Sets y[j] to the largest x[i] + matrix[i][j].
ELIMINA_VERSIONS void maximise_one(const double* panels, i64 states, i64 padded, const double* x, double* y) {
  for (i64 first = 0; first < padded; first += Panels::kColumns) {
    const double* cells = panels + first * states;
    Vector a = Vector{} + kMinusInfinity, b = a, c = a, d = a;
    i64 i = 0;
    for (; i + 2 <= states; i += 2, cells += 2 * Panels::kColumns) {
      const Vector p = x[i] + at(cells), q = x[i] + at(cells + 4);
      const Vector r = x[i + 1] + at(cells + 8), s = x[i + 1] + at(cells + 12);
      a = p > a ? p : a;
      b = q > b ? q : b;
      c = r > c ? r : c;
      d = s > d ? s : d;
    }
    if (i < states) {
      const Vector p = x[i] + at(cells), q = x[i] + at(cells + 4);
      a = p > a ? p : a;
      b = q > b ? q : b;
    }
    at(y + first) = c > a ? c : a;
    at(y + first + kWidth) = d > b ? d : b;
  }
}

ELIMINA_VERSIONS void maximise_all(const double* panels, i64 states, const double* x, double* y) {
  for (i64 first = 0; first < states; first += 2) {
    const double* cells = panels + first / Panels::kColumns * Panels::kColumns * states + first % Panels::kColumns;
    Vector a = Vector{} + kMinusInfinity, b = a, c = a, d = a;
    for (i64 i = 0; i < states; ++i, cells += Panels::kColumns) {
      const Vector low = at(x + i * kMaxLanes), high = at(x + i * kMaxLanes + kWidth);
      const Vector p = low + cells[0], q = high + cells[0], r = low + cells[1], s = high + cells[1];
      a = p > a ? p : a;
      b = q > b ? q : b;
      c = r > c ? r : c;
      d = s > d ? s : d;
    }
    double* to = y + first * kMaxLanes;
    at(to) = a, at(to + 4) = b, at(to + 8) = c, at(to + 12) = d;
  }
}

// Multiplies y[j] by row[j] for each lane, and sets `totals` to the sums.
ELIMINA_FUSED_VERSIONS void weight_all(const double* const* rows, i64 states, double* y, double* totals) {
  Vector low_total{}, high_total{};
  read_rows(rows, states, [&](i64 j, const Vector& low, const Vector& high) {
    double* to = y + j * kMaxLanes;
    low_total += at(to) *= low;
    high_total += at(to + kWidth) *= high;
  });
  at(totals) = low_total, at(totals + kWidth) = high_total;
}

// Adds row[j] to y[j] for each lane.
ELIMINA_VERSIONS void add_all(const double* const* rows, i64 states, double* y) {
  read_rows(rows, states, [&](i64 j, const Vector& low, const Vector& high) {
    double* to = y + j * kMaxLanes;
    at(to) += low;
    at(to + kWidth) += high;
  });
}

// Writes the numbers of each lane into a row.
ELIMINA_VERSIONS void write_rows(const double* y, i64 states, double* const* rows) {
  i64 j = 0;
  for (; j + kWidth <= states; j += kWidth)
    for (int half = 0; half < kMaxLanes; half += kWidth) {
      const double* from = y + j * kMaxLanes + half;
      Vector a = at(from), b = at(from + kMaxLanes), c = at(from + 2 * kMaxLanes), d = at(from + 3 * kMaxLanes);
      transpose(a, b, c, d);
      at(rows[half] + j) = a, at(rows[half + 1] + j) = b, at(rows[half + 2] + j) = c, at(rows[half + 3] + j) = d;
    }
  for (; j < states; ++j)
    for (int lane = 0; lane < kMaxLanes; ++lane) rows[lane][j] = y[j * kMaxLanes + lane];
}

// Sets z[j] to row[j] * x[j] for each lane, and `totals` to the sums.
ELIMINA_FUSED_VERSIONS void product_all(const double* const* rows, i64 states, const double* x, double* z,
                                        double* totals) {
  Vector low_total{}, high_total{};
  read_rows(rows, states, [&](i64 j, const Vector& low, const Vector& high) {
    low_total += at(z + j * kMaxLanes) = low * at(x + j * kMaxLanes);
    high_total += at(z + j * kMaxLanes + kWidth) = high * at(x + j * kMaxLanes + kWidth);
  });
  at(totals) = low_total, at(totals + kWidth) = high_total;
}

// Sets `totals` to the sums of y[j] for each lane.
ELIMINA_VERSIONS void sum_all(const double* y, i64 states, double* totals) {
  Vector low{}, high{};
  for (i64 j = 0; j < states; ++j) low += at(y + j * kMaxLanes), high += at(y + j * kMaxLanes + kWidth);
  at(totals) = low, at(totals + kWidth) = high;
}

// Multiplies y[j] by the factor of each lane.
ELIMINA_VERSIONS void multiply_by_all(const double* factors, i64 states, double* y) {
  const Vector low = at(factors), high = at(factors + kWidth);
  for (i64 j = 0; j < states; ++j) at(y + j * kMaxLanes) *= low, at(y + j * kMaxLanes + kWidth) *= high;
}

// Finds the largest sum of message and move for each lane, and the first state with it; each lane has a row of moves.
ELIMINA_VERSIONS void best_all(const double* const* moves, i64 states, const double* message, double* highest,
                               long long* best) {
  Vector low_high = Vector{} + kMinusInfinity, high_high = low_high;
  Numbers low_best{}, high_best{};
  read_rows(moves, states, [&](i64 i, const Vector& low, const Vector& high) {
    const Vector p = at(message + i * kMaxLanes) + low, q = at(message + i * kMaxLanes + kWidth) + high;
    low_best = p > low_high ? Numbers{} + i : low_best;
    high_best = q > high_high ? Numbers{} + i : high_best;
    low_high = p > low_high ? p : low_high;
    high_high = q > high_high ? q : high_high;
  });
  at(highest) = low_high, at(highest + kWidth) = high_high;
  std::memcpy(best, &low_best, sizeof(low_best));
  std::memcpy(best + kWidth, &high_best, sizeof(high_best));
}

// Sets q[j] to after[j] / predicted[j], and to 0 where after[j] is 0; returns false if a divisor is too small.
ELIMINA_VERSIONS bool divide_rows(const double* after, const double* predicted, i64 states, double* q) {
  bool is_safe = true;
  for (i64 j = 0; j < states; ++j) {
    const bool is_used = after[j] > 0;
    is_safe &= !is_used || predicted[j] >= kMinPrediction;
    q[j] = is_used ? after[j] / predicted[j] : 0;
  }
  return is_safe;
}

// Adds x[k][i] * y[k][j], summed over `rows` numbers k, to total[i][j]; rows of y and total have `padded` numbers.
ELIMINA_FUSED_VERSIONS void add_products(const double* const* x, i64 rows, i64 states, i64 padded, const double* y,
                                         double* total) {
  i64 k = 0;
  for (; k + 4 <= rows; k += 4) {
    const double *a = y + k * padded, *b = a + padded, *c = b + padded, *d = c + padded;
    for (i64 i = 0; i < states; ++i) {
      double* to = total + i * padded;
      const double p = x[k][i], q = x[k + 1][i], r = x[k + 2][i], s = x[k + 3][i];
      for (i64 j = 0; j < padded; j += kWidth)
        at(to + j) += (p * at(a + j) + q * at(b + j)) + (r * at(c + j) + s * at(d + j));
    }
  }
  for (; k < rows; ++k)
    for (i64 i = 0; i < states; ++i)
      for (i64 j = 0; j < padded; j += kWidth) at(total + i * padded + j) += x[k][i] * at(y + k * padded + j);
}

template <int kLanes>
void multiply(const Panels& panels, const double* x, double* y) {
  if constexpr (kLanes == 1) multiply_one(panels.panel(0), panels.states(), panels.padded(), x, y);
  else multiply_all(panels.panel(0), panels.states(), x, y);
}

template <int kLanes>
void maximise(const Panels& panels, const double* x, double* y) {
  if constexpr (kLanes == 1) maximise_one(panels.panel(0), panels.states(), panels.padded(), x, y);
  else maximise_all(panels.panel(0), panels.states(), x, y);
}

}  // namespace

// Sequences that run side by side, at any of their steps.
template <int kLanes>
struct Lanes {
  const Steps& steps;
  std::span<const i64> sequences;
  i64 longest = 0;

  Lanes(const Steps& all, std::span<const i64> members) : steps(all), sequences(members) {
    for (const i64 s : members) longest = std::max(longest, length(s));
  }
  i64 length(i64 sequence) const { return steps.starts[sequence + 1] - steps.starts[sequence]; }
  bool has(int lane, i64 t) const { return lane < int(sequences.size()) && t < length(sequences[lane]); }
  i64 step(int lane, i64 t) const { return steps.starts[sequences[lane]] + t; }
  // Rows of the table for the lanes; a lane whose sequence has ended reads any row.
  void find_rows(i64 t, i64 states, const double** rows) const {
    for (int lane = 0; lane < kLanes; ++lane)
      rows[lane] = steps.table + (has(lane, t) ? i64(steps.rows[step(lane, t)]) * states : 0);
  }
  // Rows of `filtered` for the lanes; those of lanes whose sequence has ended are `spare_row`.
  void find_rows(i64 t, i64 states, double* filtered, double* spare_row, double** rows) const {
    for (int lane = 0; lane < kLanes; ++lane) rows[lane] = has(lane, t) ? filtered + step(lane, t) * states : spare_row;
  }
  // Writes the numbers of each lane into its row of `filtered`.
  void write(i64 t, i64 states, const double* y, double* filtered, double* spare_row) const {
    double* rows[kLanes];
    find_rows(t, states, filtered, spare_row, rows);
    if constexpr (kLanes == 1) std::copy_n(y, states, rows[0]);
    else write_rows(y, states, rows);
  }
};

class Poller {
 public:
  Poller(i64 products, Poll poll)
      : poll_(poll), interval_(std::max<i64>(1, kProductsPerPoll / std::max<i64>(1, products))) {}
  void look() {
    if (++count_ % interval_ == 0 && !poll_()) throw Stopped{};
  }

 private:
  Poll poll_;
  const i64 interval_;
  i64 count_ = 0;
};

// Memory of a thread, reused for each block of sequences: new memory would cost page faults for every block.
class Scratch {
 public:
  // Returns memory for uninitialised numbers; memory that was returned earlier becomes invalid.
  double* room(i64 numbers) {
    if (numbers > size_) cells_ = std::make_unique_for_overwrite<double[]>(std::size_t(size_ = numbers));
    return cells_.get();
  }

 private:
  std::unique_ptr<double[]> cells_;
  i64 size_ = 0;
};

namespace {

// Returns the divisor of a row with this total; 1 if the total is 0.
inline double divisor(double total) { return total > 0 ? total : 1; }

// Multiplies y[j] by row[j] for each lane, and sets `totals` to the sums.
template <int kLanes>
void weight(const double* const* rows, i64 states, double* y, double* totals) {
  if constexpr (kLanes == kMaxLanes) return weight_all(rows, states, y, totals);
  double sums[kLanes] = {};
  for (i64 j = 0; j < states; ++j)
    for (int lane = 0; lane < kLanes; ++lane) {
      y[j * kLanes + lane] *= rows[lane][j];
      sums[lane] += y[j * kLanes + lane];
    }
  std::copy_n(sums, kLanes, totals);
}

// Sets z[j] to row[j] * x[j] for each lane, and `totals` to the sums.
template <int kLanes>
void product(const double* const* rows, i64 states, const double* x, double* z, double* totals) {
  if constexpr (kLanes == kMaxLanes) return product_all(rows, states, x, z, totals);
  totals[0] = 0;
  for (i64 j = 0; j < states; ++j) totals[0] += z[j] = rows[0][j] * x[j];
}

template <int kLanes>
void divide(i64 states, const double* totals, double* y) {
  double by[kLanes];
  bool is_normal = true;
  for (int lane = 0; lane < kLanes; ++lane) {
    by[lane] = divisor(totals[lane]);
    is_normal &= by[lane] > kSmall;
  }
  if (is_normal) {
    for (double& divisor : by) divisor = 1 / divisor;
    if constexpr (kLanes == kMaxLanes) return multiply_by_all(by, states, y);
    for (i64 j = 0; j < states; ++j)
      for (int lane = 0; lane < kLanes; ++lane) y[j * kLanes + lane] *= by[lane];
    return;
  }
  for (i64 j = 0; j < states; ++j)
    for (int lane = 0; lane < kLanes; ++lane) y[j * kLanes + lane] /= by[lane];
}

// Finds the largest sum of message and move for each lane, and the first state with it.
template <int kLanes>
void best(const double* const* moves, i64 states, const double* message, double* highest, long long* best) {
  if constexpr (kLanes == kMaxLanes) return best_all(moves, states, message, highest, best);
  double high = kMinusInfinity;
  i64 state = 0;
  for (i64 i = 0; i < states; ++i) {
    const double value = message[i] + moves[0][i];
    // Selects without a branch, which would often be mispredicted.
    const bool is_better = value > high;
    high = is_better ? value : high;
    state = is_better ? i : state;
  }
  *highest = high, *best = state;
}

// Runs lanes of sequences of similar length on several threads.
template <class All, class One>
void spread(const Steps& steps, int threads, Poll poll, const All& run_all, const One& run_one) {
  const i64 count = steps.sequences();
  std::vector<i64> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), i64(0));
  const auto length = [&](i64 s) { return steps.starts[s + 1] - steps.starts[s]; };
  std::stable_sort(order.begin(), order.end(), [&](i64 a, i64 b) { return length(a) > length(b); });
  std::vector<std::span<const i64>> blocks;
  for (i64 first = 0; first < count;) {
    const i64 size = count - first >= kMinLanes ? std::min<i64>(kMaxLanes, count - first) : 1;
    blocks.push_back({order.data() + first, std::size_t(size)});
    first += size;
  }
  const auto run = [&](std::span<const i64> block, Scratch& scratch, Poll look) {
    if (block.size() == 1) run_one(block, scratch, look);
    else run_all(block, scratch, look);
  };
  if (threads <= 1 || blocks.size() < 2) {
    Scratch scratch;
    for (const auto& block : blocks) run(block, scratch, poll);
    return;
  }
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> is_over = false;
  const auto goes_on = [&] { return !is_over.load(std::memory_order_relaxed); };
  const auto work = [&](int) {
    Scratch scratch;
    for (std::size_t number; (number = next++) < blocks.size() && goes_on();) run(blocks[number], scratch, goes_on);
  };
  bool is_interrupted = false;
  const auto end = [&] { is_over = true; };
  const auto look = [&] {
    if (!is_interrupted && !poll()) {
      is_interrupted = true;
      end();
    }
  };
  run_threads(int(std::min<std::size_t>(std::size_t(threads), blocks.size())), work, look, end, 1);
  if (is_interrupted) throw Stopped{};
}

}  // namespace

Panels::Panels(std::span<const double> matrix, i64 states, bool transposed, double filling)
    : states_(states), padded_((states + kColumns - 1) / kColumns * kColumns) {
  cells_.assign(std::size_t(padded_ * states), filling);
  for (i64 i = 0; i < states; ++i)
    for (i64 j = 0; j < states; ++j) {
      const i64 row = transposed ? j : i, column = transposed ? i : j;
      cells_[std::size_t(column / kColumns * kColumns * states + row * kColumns + column % kColumns)] =
          matrix[std::size_t(i * states + j)];
    }
}

Chain::Chain(std::span<const double> transition, i64 states)
    : forward_(transition, states, false, 0), backward_(transition, states, true, 0) {
  mixes_ = std::ranges::all_of(transition, [](double p) { return p >= kMixing; });
}

template <int kLanes>
void Chain::forward_lanes(const Steps& steps, std::span<const i64> sequences, bool first, double* messages,
                          double* filtered, double* totals, unsigned char* underflows, Poll poll) const {
  const i64 count = states();
  const Lanes<kLanes> lanes(steps, sequences);
  Poller poller(count * count * kLanes, poll);
  std::vector<double> x(std::size_t(forward_.padded() * kLanes)), y(x), spare_row(std::size_t(count), 1.0);
  for (int lane = 0; lane < int(sequences.size()); ++lane)
    for (i64 j = 0; j < count; ++j) x[std::size_t(j * kLanes + lane)] = messages[sequences[lane] * count + j];
  const double* rows[kLanes];
  double sums[kLanes];
  for (i64 t = 0; t < lanes.longest; ++t) {
    poller.look();
    const bool moves = t > 0 || !first;
    if (moves) multiply<kLanes>(forward_, x.data(), y.data());
    else y = x;
    lanes.find_rows(t, count, rows);
    weight<kLanes>(rows, count, y.data(), sums);
    divide<kLanes>(count, sums, y.data());
    if (filtered) lanes.write(t, count, y.data(), filtered, spare_row.data());
    for (int lane = 0; lane < int(sequences.size()); ++lane) {
      if (!lanes.has(lane, t)) continue;
      const i64 step = lanes.step(lane, t), sequence = sequences[lane];
      totals[step] = sums[lane];
      if (t + 1 == lanes.length(sequence))
        for (i64 j = 0; j < count; ++j) messages[sequence * count + j] = y[std::size_t(j * kLanes + lane)];
      if (mixes_ || underflows[sequence]) continue;
      // The numbers were divided by the total. If that is small, the number before the division must not be small
      // either.
      const double least = sums[lane] < kSmallTotal ? kSmall / divisor(sums[lane]) : kSmall;
      // An underflow counts only if the exact number is positive: the state has a likelihood, and a path leads to it.
      for (i64 j = 0; j < count; ++j) {
        if (y[std::size_t(j * kLanes + lane)] >= least || !(rows[lane][j] > 0)) continue;
        bool is_reached = !moves && x[std::size_t(j * kLanes + lane)] > 0;
        for (i64 i = 0; moves && !is_reached && i < count; ++i)
          is_reached = x[std::size_t(i * kLanes + lane)] > 0 && forward_.at(i, j) > 0;
        if (is_reached) underflows[sequence] = 1;
      }
    }
    std::swap(x, y);
  }
}

template <int kLanes>
void Chain::backward_lanes(const Steps& steps, std::span<const i64> sequences, bool first, double* messages,
                           double* filtered, double* scales, Poll poll) const {
  const i64 count = states();
  const Lanes<kLanes> lanes(steps, sequences);
  Poller poller(count * count * kLanes, poll);
  std::vector<double> x(std::size_t(backward_.padded() * kLanes)), y(x), spare_row(std::size_t(count), 1.0);
  const double* rows[kLanes];
  double sums[kLanes];
  for (i64 t = lanes.longest - 1; t >= 0; --t) {
    poller.look();
    for (int lane = 0; lane < int(sequences.size()); ++lane) {
      if (!lanes.has(lane, t)) continue;
      const i64 sequence = sequences[lane];
      if (t + 1 == lanes.length(sequence))
        for (i64 j = 0; j < count; ++j) x[std::size_t(j * kLanes + lane)] = messages[sequence * count + j];
    }
    double* posteriors[kLanes];
    lanes.find_rows(t, count, filtered, spare_row.data(), posteriors);
    double* posterior = kLanes == 1 ? posteriors[0] : y.data();
    product<kLanes>(posteriors, count, x.data(), posterior, sums);
    divide<kLanes>(count, sums, posterior);
    if constexpr (kLanes > 1) write_rows(posterior, count, posteriors);
    if (t == 0 && first)
      for (int lane = 0; lane < int(sequences.size()); ++lane) scales[lanes.step(lane, t)] = sums[lane];
    if (t == 0 && first) break;
    lanes.find_rows(t, count, rows);
    weight<kLanes>(rows, count, x.data(), sums);
    multiply<kLanes>(backward_, x.data(), y.data());
    double totals[kLanes] = {};
    if constexpr (kLanes == kMaxLanes) sum_all(y.data(), count, totals);
    else totals[0] = std::accumulate(y.begin(), y.begin() + count, 0.0);
    divide<kLanes>(count, totals, y.data());
    for (int lane = 0; lane < int(sequences.size()); ++lane) {
      if (!lanes.has(lane, t)) continue;
      scales[lanes.step(lane, t)] = totals[lane];
      if (t == 0)
        for (i64 j = 0; j < count; ++j) messages[sequences[lane] * count + j] = y[std::size_t(j * kLanes + lane)];
    }
    std::swap(x, y);
  }
}

void Chain::forward(const Steps& steps, bool first, double* messages, double* filtered, double* totals,
                    unsigned char* underflows, int threads, Poll poll) const {
  spread(
      steps, threads, poll,
      [&](std::span<const i64> block, Scratch&, Poll look) {
        forward_lanes<kMaxLanes>(steps, block, first, messages, filtered, totals, underflows, look);
      },
      [&](std::span<const i64> block, Scratch&, Poll look) {
        forward_lanes<1>(steps, block, first, messages, filtered, totals, underflows, look);
      });
}

void Chain::backward(const Steps& steps, bool first, double* messages, double* filtered, double* scales, int threads,
                     Poll poll) const {
  spread(
      steps, threads, poll,
      [&](std::span<const i64> block, Scratch&, Poll look) {
        backward_lanes<kMaxLanes>(steps, block, first, messages, filtered, scales, look);
      },
      [&](std::span<const i64> block, Scratch&, Poll look) {
        backward_lanes<1>(steps, block, first, messages, filtered, scales, look);
      });
}

void Chain::smooth(const Steps& steps, double* messages, double* ratios, double* filtered, double* totals,
                   double* scales, unsigned char* underflows, int threads, Poll poll) const {
  spread(
      steps, threads, poll,
      [&](std::span<const i64> block, Scratch&, Poll look) {
        forward_lanes<kMaxLanes>(steps, block, true, messages, filtered, totals, underflows, look);
        backward_lanes<kMaxLanes>(steps, block, true, ratios, filtered, scales, look);
      },
      [&](std::span<const i64> block, Scratch&, Poll look) {
        forward_lanes<1>(steps, block, true, messages, filtered, totals, underflows, look);
        backward_lanes<1>(steps, block, true, ratios, filtered, scales, look);
      });
}

void Chain::count_moves(const Steps& steps, const double* filtered, const double* smoothed, double* counts,
                        unsigned char* lost, int threads, Poll poll) const {
  const i64 count = states(), padded = forward_.padded(), sequences = steps.sequences();
  const int members = int(std::clamp<i64>(threads, 1, std::max<i64>(1, sequences)));
  std::vector<std::vector<double>> totals(std::size_t(members), std::vector<double>(std::size_t(count * padded)));
  std::atomic<i64> next = 0;
  std::atomic<bool> is_over = false;
  const auto work = [&](int member, Poll goes_on) {
    Poller poller(count * count, goes_on);
    std::vector<double> predicted(static_cast<std::size_t>(padded));
    std::vector<double> quotients(std::size_t(kMovesTogether * padded));
    const double* before[kMovesTogether];
    i64 held = 0;
    const auto flush = [&] {
      add_products(before, held, count, padded, quotients.data(), totals[std::size_t(member)].data());
      held = 0;
    };
    for (i64 s; (s = next++) < sequences;)
      for (i64 step = steps.starts[s] + 1; step < steps.starts[s + 1]; ++step) {
        poller.look();
        before[held] = filtered + (step - 1) * count;
        multiply<1>(forward_, before[held], predicted.data());
        double* quotient = quotients.data() + held * padded;
        lost[step] = !divide_rows(smoothed + step * count, predicted.data(), count, quotient);
        if (!lost[step] && ++held == kMovesTogether) flush();
      }
    flush();
  };
  if (members == 1) {
    work(0, poll);
  } else {
    bool is_interrupted = false;
    const auto goes_on = [&] { return !is_over.load(std::memory_order_relaxed); };
    const auto look = [&] {
      if (!is_interrupted && !poll()) is_interrupted = is_over = true;
    };
    run_threads(members, [&](int member) { work(member, goes_on); }, look, [&] { is_over = true; }, 1);
    if (is_interrupted) throw Stopped{};
  }
  for (i64 i = 0; i < count; ++i)
    for (i64 j = 0; j < count; ++j) {
      double sum = 0;
      for (const auto& total : totals) sum += total[std::size_t(i * padded + j)];
      counts[i * count + j] = forward_.at(i, j) * sum;
    }
}

BestPath::BestPath(std::span<const double> log_transition, i64 states)
    : panels_(log_transition, states, false, kMinusInfinity), columns_(log_transition.size()) {
  for (i64 i = 0; i < states; ++i)
    for (i64 j = 0; j < states; ++j)
      columns_[std::size_t(j * states + i)] = log_transition[std::size_t(i * states + j)];
}

template <int kLanes>
void BestPath::run_lanes(const Steps& steps, std::span<const double> start, std::span<const i64> sequences, int* path,
                         double* scores, i64 cells, Scratch& scratch, Poll poll) const {
  const i64 count = states();
  // Messages of many lanes are made in pairs of states, those of one lane in whole panels.
  const i64 width = kLanes == 1 ? panels_.padded() : (count + count % 2) * kLanes;
  const Lanes<kLanes> lanes(steps, sequences);
  Poller poller(count * count * kLanes, poll);
  // If the messages of all steps take too much memory, only those of one segment are kept, and one before each segment.
  i64 span = lanes.longest;
  if (span * width > cells) span = std::max<i64>(1, i64(std::sqrt(double(span))) + 1);
  const i64 segments = (lanes.longest + span - 1) / span;
  double* const messages = scratch.room((span + segments) * width);
  double* const checkpoints = messages + span * width;
  const double* rows[kLanes];
  const auto advance = [&](i64 t, const double* before, double* after) {
    poller.look();
    if (t > 0) maximise<kLanes>(panels_, before, after);
    else
      for (i64 j = 0; j < count; ++j) std::fill_n(after + j * kLanes, kLanes, start[std::size_t(j)]);
    lanes.find_rows(t, count, rows);
    if constexpr (kLanes == kMaxLanes) return add_all(rows, count, after);
    for (i64 j = 0; j < count; ++j) after[j] += rows[0][j];
  };
  const auto run_segment = [&](i64 segment) {
    const i64 begin = segment * span, end = std::min(begin + span, lanes.longest);
    const double* before = checkpoints + segment * width;
    for (i64 t = begin; t < end; ++t) {
      double* after = messages + (t - begin) * width;
      advance(t, before, after);
      before = after;
    }
    return before;
  };
  for (i64 segment = 0; segment < segments; ++segment) {
    const double* last = run_segment(segment);
    if (segment + 1 < segments) std::copy_n(last, width, checkpoints + (segment + 1) * width);
  }
  const int used = int(sequences.size());
  i64 lengths[kLanes] = {};
  for (int lane = 0; lane < used; ++lane) lengths[lane] = lanes.length(sequences[lane]);
  long long states_after[kLanes] = {};
  double highest[kLanes] = {};
  const double* moves[kLanes];
  const std::vector<double> no_moves(static_cast<std::size_t>(count));
  for (i64 segment = segments - 1; segment >= 0; --segment) {
    if (segment + 1 < segments) run_segment(segment);
    const i64 begin = segment * span, end = std::min(begin + span, lanes.longest);
    for (i64 t = end - 1; t >= begin; --t) {
      for (int lane = 0; lane < kLanes; ++lane)
        moves[lane] = t + 1 < lengths[lane] ? columns_.data() + states_after[lane] * count : no_moves.data();
      best<kLanes>(moves, count, messages + (t - begin) * width, highest, states_after);
      for (int lane = 0; lane < used; ++lane) {
        if (t >= lengths[lane]) continue;
        path[lanes.step(lane, t)] = int(states_after[lane]);
        if (t + 1 == lengths[lane]) scores[sequences[lane]] = highest[lane];
      }
    }
  }
}

void BestPath::run(const Steps& steps, std::span<const double> start, int* states, double* scores, i64 cells,
                   int threads, Poll poll) const {
  spread(
      steps, threads, poll,
      [&](std::span<const i64> block, Scratch& scratch, Poll look) {
        run_lanes<kMaxLanes>(steps, start, block, states, scores, cells, scratch, look);
      },
      [&](std::span<const i64> block, Scratch& scratch, Poll look) {
        run_lanes<1>(steps, start, block, states, scores, cells, scratch, look);
      });
}

}  // namespace elimina::markov
