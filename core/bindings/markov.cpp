#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>

#include "arrays.hpp"
#include "markov/chain.hpp"
#include "module.hpp"
#include "stop.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace elimina::markov {
namespace {

template <class T>
using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

std::span<const double> square(const Matrix<const double>& matrix) {
  if (matrix.shape(0) != matrix.shape(1) || matrix.shape(0) == 0) throw nb::value_error("the matrix is not square");
  return {matrix.data(), matrix.size()};
}

Steps steps_of(const Matrix<const double>& table, const Words<const int>& rows, const Words<const i64>& starts,
               i64 states) {
  if (i64(table.shape(1)) != states) throw nb::value_error("the table has a column for each state");
  if (std::ranges::any_of(span_of(rows), [&](int row) { return row < 0 || std::size_t(row) >= table.shape(0); }))
    throw nb::value_error("the table has no such row");
  const auto ends = span_of(starts);
  if (ends.empty() || ends.front() != 0 || ends.back() != i64(rows.size()) ||
      std::ranges::adjacent_find(ends, std::ranges::greater_equal{}) != ends.end())
    throw nb::value_error("sequences follow each other, and none is empty");
  return {table.data(), span_of(rows), ends};
}

template <class T>
void check_rows(const Matrix<T>& rows, i64 count, i64 states) {
  if (i64(rows.shape(0)) != count || i64(rows.shape(1)) != states) throw nb::value_error("an array has another shape");
}

void check_size(std::size_t size, i64 expected) {
  if (i64(size) != expected) throw nb::value_error("an array has another length");
}

// Runs work without the interpreter's lock; raises the exception of a signal's handler.
template <class Work>
void run(const Work& work) {
  const auto poll = [] {
    if (stopped()) return false;
    nb::gil_scoped_acquire gil;
    return PyErr_CheckSignals() == 0;
  };
  try {
    nb::gil_scoped_release release;
    work(Poll(poll));
  } catch (const Stopped&) {
    if (PyErr_Occurred()) throw nb::python_error();
    throw;
  }
}

void forward(const Chain& chain, Matrix<const double> table, Words<const int> rows, Words<const i64> starts, bool first,
             Matrix<double> messages, nb::object filtered, Words<double> totals, Words<unsigned char> underflows,
             int threads) {
  const Steps steps = steps_of(table, rows, starts, chain.states());
  check_rows(messages, steps.sequences(), chain.states());
  check_size(totals.size(), i64(rows.size()));
  check_size(underflows.size(), steps.sequences());
  double* kept = nullptr;
  if (!filtered.is_none()) {
    const auto matrix = nb::cast<Matrix<double>>(filtered);
    check_rows(matrix, i64(rows.size()), chain.states());
    kept = matrix.data();
  }
  run([&](Poll poll) {
    chain.forward(steps, first, messages.data(), kept, totals.data(), underflows.data(), threads, poll);
  });
}

void backward(const Chain& chain, Matrix<const double> table, Words<const int> rows, Words<const i64> starts,
              bool first, Matrix<double> messages, Matrix<double> filtered, Words<double> scales, int threads) {
  const Steps steps = steps_of(table, rows, starts, chain.states());
  check_rows(messages, steps.sequences(), chain.states());
  check_rows(filtered, i64(rows.size()), chain.states());
  check_size(scales.size(), i64(rows.size()));
  run([&](Poll poll) { chain.backward(steps, first, messages.data(), filtered.data(), scales.data(), threads, poll); });
}

void smooth(const Chain& chain, Matrix<const double> table, Words<const int> rows, Words<const i64> starts,
            Matrix<double> messages, Matrix<double> ratios, Matrix<double> filtered, Words<double> totals,
            Words<double> scales, Words<unsigned char> underflows, int threads) {
  const Steps steps = steps_of(table, rows, starts, chain.states());
  check_rows(messages, steps.sequences(), chain.states());
  check_rows(ratios, steps.sequences(), chain.states());
  check_rows(filtered, i64(rows.size()), chain.states());
  check_size(totals.size(), i64(rows.size()));
  check_size(scales.size(), i64(rows.size()));
  check_size(underflows.size(), steps.sequences());
  run([&](Poll poll) {
    chain.smooth(steps, messages.data(), ratios.data(), filtered.data(), totals.data(), scales.data(),
                 underflows.data(), threads, poll);
  });
}

void count_moves(const Chain& chain, Words<const i64> starts, Matrix<const double> filtered,
                 Matrix<const double> smoothed, Matrix<double> counts, Words<unsigned char> lost, int threads) {
  check_rows(filtered, i64(lost.size()), chain.states());
  check_rows(smoothed, i64(lost.size()), chain.states());
  check_rows(counts, chain.states(), chain.states());
  const auto ends = span_of(starts);
  if (ends.empty() || ends.front() < 0 || ends.back() > i64(lost.size()) || !std::ranges::is_sorted(ends))
    throw nb::value_error("sequences follow each other");
  const Steps steps{nullptr, {}, ends};
  run([&](Poll poll) {
    chain.count_moves(steps, filtered.data(), smoothed.data(), counts.data(), lost.data(), threads, poll);
  });
}

void best_path(const BestPath& chain, Matrix<const double> table, Words<const int> rows, Words<const i64> starts,
               Words<const double> start, Words<int> states, Words<double> scores, i64 cells, int threads) {
  const Steps steps = steps_of(table, rows, starts, chain.states());
  check_size(start.size(), chain.states());
  check_size(states.size(), i64(rows.size()));
  check_size(scores.size(), steps.sequences());
  run([&](Poll poll) { chain.run(steps, span_of(start), states.data(), scores.data(), cells, threads, poll); });
}

}  // namespace

void bind_markov(nb::module_& m) {
  nb::class_<Chain>(m, "Chain", "Forward and backward passes over sequences of a Markov chain with observations.")
      .def(
          "__init__",
          [](Chain* self, Matrix<const double> transition) {
            new (self) Chain(square(transition), i64(transition.shape(0)));
          },
          "transition"_a,
          "Prepare the passes: row i of `transition` is the distribution of the next state after state i.")
      .def("forward", &forward, "table"_a, "rows"_a, "starts"_a, "first"_a, "messages"_a, "filtered"_a.none(),
           "totals"_a, "underflows"_a, "threads"_a,
           "Filter sequences; likelihoods are rows of a table. `messages` is replaced by the last distribution "
           "of each sequence.")
      .def("backward", &backward, "table"_a, "rows"_a, "starts"_a, "first"_a, "messages"_a, "filtered"_a, "scales"_a,
           "threads"_a,
           "Smooth the filtered distributions in place. `messages` is replaced by the messages for the step "
           "before each sequence.")
      .def("smooth", &smooth, "table"_a, "rows"_a, "starts"_a, "messages"_a, "ratios"_a, "filtered"_a, "totals"_a,
           "scales"_a, "underflows"_a, "threads"_a,
           "Run both passes over whole sequences: `messages` are those of `forward`, `ratios` those of `backward`.")
      .def("count_moves", &count_moves, "starts"_a, "filtered"_a, "smoothed"_a, "counts"_a, "lost"_a, "threads"_a,
           "Count the expected moves between states, from filtered and smoothed distributions; steps with a prediction "
           "that is too small to divide by are marked in `lost`, and not counted.");
  nb::class_<BestPath>(m, "BestPath", "Most probable states of sequences of a Markov chain with observations.")
      .def(
          "__init__",
          [](BestPath* self, Matrix<const double> log_transition) {
            new (self) BestPath(square(log_transition), i64(log_transition.shape(0)));
          },
          "log_transition"_a,
          "Prepare the search: row i of `log_transition` has the logarithms of the distribution of the next "
          "state after state i.")
      .def("run", &best_path, "table"_a, "rows"_a, "starts"_a, "start"_a, "states"_a, "scores"_a, "cells"_a,
           "threads"_a, "Find the best path of each sequence; the table holds logarithms of likelihoods.");
}

}  // namespace elimina::markov
