// Messages along a Markov chain whose states are the joint states of a slice's interface: forward and backward passes
// in scaled form, and the most probable sequence of states (Rabiner 1989, "A tutorial on hidden Markov models").
// Several sequences run side by side.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "call.hpp"

namespace elimina::markov {

using i64 = std::int64_t;

// Steps of sequences, one sequence after another.
struct Steps {
  const double* table;        // rows of one number for each state: the likelihoods of observations, or their logarithms
  std::span<const int> rows;  // row of the table for each step
  std::span<const i64> starts;  // first step of each sequence, and the end; sequences have at least one step
  i64 sequences() const { return i64(starts.size()) - 1; }
};

// Called regularly; if it returns false, the pass throws Stopped.
using Poll = Call<bool()>;

// A square matrix in panels of columns, so that a product with a row of numbers reads it from beginning to end.
class Panels {
 public:
  static constexpr i64 kColumns = 8;
  // Columns beyond the last one contain `filling`.
  Panels(std::span<const double> matrix, i64 states, bool transposed, double filling);
  i64 states() const { return states_; }
  i64 padded() const { return padded_; }
  const double* panel(i64 number) const { return cells_.data() + number * states_ * kColumns; }
  // The first cell of a column; the next ones follow at distances of kColumns.
  const double* column(i64 number) const { return panel(number / kColumns) + number % kColumns; }
  double at(i64 row, i64 number) const { return column(number)[row * kColumns]; }

 private:
  i64 states_, padded_;
  std::vector<double> cells_;
};

// Forward and backward passes: messages are probabilities, computed as sums of products.
class Chain {
 public:
  // `transition`: row i is the distribution of the next state after state i.
  Chain(std::span<const double> transition, i64 states);

  i64 states() const { return forward_.states(); }

  // Runs forward passes. `messages`: a row for each sequence. On entry, it has the distribution before the first
  // observation (if `first`) or at the previous step; on return, that at the last step. `filtered`: the distribution at
  // each step given the observations up to it; null: not wanted. `totals`: probability of each step's observation given
  // the earlier ones. `underflows`: set for a sequence in which a positive probability became too small and may matter.
  void forward(const Steps& steps, bool first, double* messages, double* filtered, double* totals,
               unsigned char* underflows, int threads, Poll poll) const;

  // Runs backward passes. `messages`: a row for each sequence. On entry, it has the likelihood of all later
  // observations for each state of the last step. On return, unless `first`, it has this likelihood for each state of
  // the step before the first one. `filtered` becomes the distribution given all observations. `scales`: divisor of the
  // message after each step; if `first`, the entry of the first step is the sum of the product of both messages.
  void backward(const Steps& steps, bool first, double* messages, double* filtered, double* scales, int threads,
                Poll poll) const;

  // Runs both passes over whole sequences: a sequence's second pass begins while its messages are in a cache.
  // `messages`: see `forward`. `ratios`: the messages of `backward`.
  void smooth(const Steps& steps, double* messages, double* ratios, double* filtered, double* totals, double* scales,
              unsigned char* underflows, int threads, Poll poll) const;

  // Sets `counts` (a row for each state before) to the expected number of moves between each two states, given all
  // observations. `filtered`, `smoothed`: the distribution at each step given the observations up to it, and given all.
  // `lost`: set for a step that is not counted, because a predicted probability is too small to divide by; not written
  // for the first step of a sequence.
  void count_moves(const Steps& steps, const double* filtered, const double* smoothed, double* counts,
                   unsigned char* lost, int threads, Poll poll) const;

 private:
  template <int kLanes>
  void forward_lanes(const Steps& steps, std::span<const i64> sequences, bool first, double* messages, double* filtered,
                     double* totals, unsigned char* underflows, Poll poll) const;
  template <int kLanes>
  void backward_lanes(const Steps& steps, std::span<const i64> sequences, bool first, double* messages,
                      double* filtered, double* scales, Poll poll) const;

  Panels forward_, backward_;
  bool mixes_;  // true if each state leads to each other one in one step, with a probability above underflow
};

class Scratch;

// Most probable paths, from maxima of sums of logarithms.
class BestPath {
 public:
  BestPath(std::span<const double> log_transition, i64 states);

  i64 states() const { return panels_.states(); }

  // Finds the best path of each sequence. `start`: logarithms before the first observation. `states`: state at each
  // step of the best path. `scores`: logarithm of the best path for each sequence. Messages of more than `cells`
  // numbers on a thread are computed twice, from checkpoints.
  void run(const Steps& steps, std::span<const double> start, int* states, double* scores, i64 cells, int threads,
           Poll poll) const;

 private:
  template <int kLanes>
  void run_lanes(const Steps& steps, std::span<const double> start, std::span<const i64> sequences, int* states,
                 double* scores, i64 cells, Scratch& scratch, Poll poll) const;

  Panels panels_;
  std::vector<double> columns_;  // moves to each state from all others, one state after another
};

}  // namespace elimina::markov
