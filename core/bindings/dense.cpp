#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "cases/columns.hpp"
#include "cases/network.hpp"
#include "cases/plan.hpp"
#include "exec/dense/dense.hpp"
#include "exec/exact_count.hpp"
#include "kinds.hpp"
#include "module.hpp"
#include "plan/records.hpp"
#include "stop.hpp"
#include "table_list.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace elimina {
namespace {

template <class T>
using Rows = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using AnyRows = nb::ndarray<nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Arena = nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void make_planner(CasePlanner* to, Words<const i64> sizes, Words<const i64> starts, Words<const int> members,
                  Words<const i64> strides, Words<const i64> offsets, Words<const double> least, Words<const i64> asked,
                  Words<const i64> answer_offsets, i64 first, i64 last) {
  new (to) CasePlanner({list_of(sizes),
                        {list_of(starts), list_of(members)},
                        list_of(strides),
                        list_of(offsets),
                        list_of(least),
                        list_of(asked),
                        list_of(answer_offsets),
                        first,
                        last});
}

struct CaseWork {
  double combinations;
  i64 steps;
};

// Plans a case (a set of observed values); returns its work, or nullopt if no plan fits.
std::optional<CaseWork> measure(CasePlanner& planner, Words<const int> values) {
  const CaseProgram* program = planner.plan(values.data());
  if (!program) return std::nullopt;
  return CaseWork{program->work, program->steps()};
}

// Raises the cause of a run's end: a request to stop, or the exception of the listener or of Ctrl-C.
[[noreturn]] void raise() {
  if (PyErr_Occurred()) throw nb::python_error();
  throw Stopped{};
}

DensePoll poll_of(nb::object progress) {
  return [progress](double finished_work) {
    if (stopped()) return false;
    nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) return false;
    if (progress.is_none()) return true;
    PyObject* answer = PyObject_CallFunction(progress.ptr(), "d", finished_work);
    Py_XDECREF(answer);
    return answer != nullptr;
  };
}

void make_network(CaseNetwork* to, const TableList& tables, const std::string& sense, const std::string& rule,
                  std::vector<i64> sizes, i64 cells, double work, bool posteriors) {
  new (to) CaseNetwork(tables.tables, sense_of(sense), rule_of(rule), std::move(sizes), cells, work, posteriors);
}

struct NetworkAnswer {
  Array<double> shares;
  double log_sum, sum;
  i64 width, largest, work, cells;
};

// Answers a case; returns nullopt if that takes too much memory or time, or if a product may not fit a double.
std::optional<NetworkAnswer> answer_case(CaseNetwork& network, nb::dict evidence) {
  std::vector<int> values(network.sizes().size(), -1);
  for (const auto& [variable, value] : evidence) values.at(nb::cast<std::size_t>(variable)) = nb::cast<int>(value);
  std::optional<CasePosteriors> posteriors;
  const DensePoll poll = poll_of(nb::none());
  try {
    nb::gil_scoped_release release;
    posteriors = network.answer(values.data(), poll);
  } catch (const Stopped&) {
    raise();
  }
  if (!posteriors) return std::nullopt;
  return NetworkAnswer{array_of(std::move(posteriors->shares)),
                       posteriors->log_sum,
                       posteriors->sum,
                       posteriors->width,
                       posteriors->largest,
                       i64(posteriors->work),
                       posteriors->cells};
}

bool keep_plan(CaseNetwork& network, const std::vector<int>& order) {
  std::vector<char> seen(network.sizes().size());
  for (const int v : order)
    if (v < 0 || std::size_t(v) >= seen.size() || std::exchange(seen[v], 1))
      throw nb::value_error("an order names each variable once");
  if (order.size() != seen.size()) throw nb::value_error("an order names all variables");
  return unlocked([&] { return network.keep(order); });
}

nb::bytes count_exactly(Words<const i64> words, Words<const i64> starts, Words<const i64> roots,
                        Words<const u64> factors) {
  LongInteger count = unlocked([&] {
    return exact_count({words.data(), words.size()}, {starts.data(), starts.size()}, {roots.data(), roots.size()},
                       factors.data());
  });
  return nb::bytes(reinterpret_cast<const char*>(count.data()), count.size() * sizeof(u64));
}

// A session of a program: it keeps the program's arrays alive.
class DenseSession {
 public:
  DenseSession(const std::string& semiring, double parameter, i64 integer_parameter, Words<const i64> words,
               Words<const i64> starts, Words<const i64> outputs, Arena arena, Words<double> peaks, int threads)
      : words_(words), starts_(starts), arena_(arena), peaks_(peaks) {
    start(semiring, parameter, integer_parameter, i64(starts.size()), outputs, threads);
  }

  // The session writes the records from the layout when they are needed, so the caller keeps the layout alive.
  DenseSession(const std::string& semiring, double parameter, i64 integer_parameter, const plan::LaidOutSteps& layout,
               Words<const i64> outputs, Arena arena, Words<double> peaks, int threads)
      : arena_(arena), peaks_(peaks) {
    if (!layout.is_deferred) throw nb::value_error("the layout's records are not deferred");
    recorder_ = std::make_unique<plan::Recorder>(layout);
    start(semiring, parameter, integer_parameter, i64(layout.out_spans.size()), outputs, threads);
  }

  void fix(Words<const int> values) { executor_->fix(values.data(), i64(values.size())); }

  Array<int> decode(i64 variables, i64 first) {
    std::vector<int> assignment(static_cast<std::size_t>(variables));
    {
      nb::gil_scoped_release release;
      executor_->decode(assignment.data(), std::max<i64>(first, 0));
    }
    return array_of(std::move(assignment));
  }

  void run_cases(Words<const int> variables, Rows<const int> values, Words<int> evidence, i64 first, AnyRows zones,
                 Rows<double> peaks) {
    const size_t bytes = zones.shape(1) * zones.itemsize();
    const char* zone = static_cast<const char*>(arena_.data()) + first * zones.itemsize();
    for (size_t n = 0; n < values.shape(0); ++n) {
      for (size_t i = 0; i < variables.size(); ++i) evidence(variables(i)) = values(n, i);
      executor_->fix(evidence.data(), i64(evidence.size()));
      run(std::nullopt, nb::none());
      std::memcpy(static_cast<char*>(zones.data()) + n * bytes, zone, bytes);
      std::copy_n(peaks_.data(), peaks_.size(), peaks.data() + n * peaks_.size());
    }
  }

  void run_planned(CasePlanner& planner, Words<const int> variables, Rows<const int> values, Words<int> evidence,
                   AnyRows zones, Words<double> logs, Words<bool> sound) {
    const size_t bytes = zones.shape(1) * zones.itemsize();
    const DensePoll poll = poll_of(nb::none());
    std::vector<double> peaks;
    bool finished = true;
    {
      nb::gil_scoped_release release;
      for (size_t n = 0; finished && n < values.shape(0); ++n) {
        for (size_t i = 0; i < variables.size(); ++i) evidence(variables(i)) = values(n, i);
        const CaseProgram* program = planner.plan(evidence.data());
        sound(n) = program != nullptr;
        if (!program) continue;
        peaks.resize(2 * program->steps());
        finished =
            executor_->run_other(program->words.data(), program->starts.data(), program->steps(), peaks.data(), poll);
        const CaseAnswer answer = read_case(*program, planner.tables(), evidence.data(), kind_, arena_.data(),
                                            peaks.data(), static_cast<char*>(zones.data()) + n * bytes);
        logs(n) = answer.log_sum;
        sound(n) = answer.sound;
      }
    }
    if (!finished) raise();
  }

  void run(std::optional<Words<const i64>> steps, nb::object progress) {
    const i64* sequence = steps ? steps->data() : nullptr;
    const i64 count = steps ? i64(steps->size()) : steps_;
    for (i64 index = 0; sequence && index < count; ++index)
      if (sequence[index] < 0 || sequence[index] >= steps_) throw nb::index_error("the program has no such step");
    bool finished = false;
    const DensePoll poll = poll_of(progress);
    {
      nb::gil_scoped_release release;
      finished = executor_->run(sequence, count, poll);
    }
    if (!finished) raise();
  }

 private:
  void start(const std::string& semiring, double parameter, i64 integer_parameter, i64 steps, Words<const i64> outputs,
             int threads) {
    const SemiringKind kind = semiring_kind(semiring);
    kind_ = value_kind(arena_.dtype(), kind);
    steps_ = steps;
    const bool is_deferred = recorder_ != nullptr;
    const DenseRun run{kind,
                       kind_,
                       parameter,
                       integer_parameter,
                       is_deferred ? nullptr : words_.data(),
                       is_deferred ? nullptr : starts_.data(),
                       steps,
                       arena_.data(),
                       peaks_.data(),
                       threads,
                       recorder_.get()};
    nb::gil_scoped_release release;
    executor_ = std::make_unique<DenseExecutor>(run, std::span(outputs.data(), outputs.size()));
  }

  Words<const i64> words_, starts_;
  std::unique_ptr<plan::Recorder> recorder_;
  i64 steps_ = 0;
  Arena arena_;
  ValueKind kind_;
  Words<double> peaks_;
  std::unique_ptr<DenseExecutor> executor_;
};

using Posteriors = nb::ndarray<double, nb::ndim<2>, nb::device::cpu>;

// Divides the columns of all tables by their totals; returns a mask of the tables where this is possible.
Array<bool> normalise_columns(Words<const double> zone, Rows<const i64> tables, Posteriors out) {
  const i64 columns = i64(out.shape(1)), pitch = i64(out.stride(0)), count = i64(tables.shape(0));
  if (tables.shape(1) != 5 || (columns > 1 && out.stride(1) != 1))
    throw nb::value_error("tables need five numbers, and posteriors a step of 1");
  std::vector<char> is_normalised(static_cast<std::size_t>(count));
  {
    nb::gil_scoped_release release;
    std::vector<double> totals;
    for (i64 number = 0; number < count; ++number) {
      const i64* table = tables.data() + 5 * number;
      is_normalised[number] = normalise({zone.data() + table[0], table[1], table[2], table[3]}, columns,
                                        out.data() + table[4] * pitch, pitch, totals);
    }
  }
  auto* flags = new bool[is_normalised.size() + 1];
  std::copy(is_normalised.begin(), is_normalised.end(), flags);
  return Array<bool>(flags, {is_normalised.size()},
                     nb::capsule(flags, [](void* data) noexcept { delete[] static_cast<bool*>(data); }));
}

// The smallest range that contains 1 and several ranges; NaN if an end of one of these is NaN. A range is given by its
// largest and its least value.
struct WidestRange {
  double largest = 1, least = 1;
};

WidestRange widest_range(Rows<const double> ranges) {
  if (ranges.shape(1) != 2) throw nb::value_error("a range has two ends");
  WidestRange widest;
  for (const double* ends = ranges.data(); ends != ranges.data() + 2 * ranges.shape(0); ends += 2) {
    if (ends[0] > widest.largest || std::isnan(ends[0])) widest.largest = ends[0];
    if (ends[1] < widest.least || std::isnan(ends[1])) widest.least = ends[1];
  }
  return widest;
}

}  // namespace

void bind_dense(nb::module_& m) {
  nb::class_<CaseWork>(m, "CaseWork", "Work of the plan of a case.")
      .def_ro("combinations", &CaseWork::combinations, "Number of combinations of all steps.")
      .def_ro("steps", &CaseWork::steps, "Number of steps.");
  nb::class_<NetworkAnswer>(m, "NetworkAnswer", "The answer of a small network for one set of observations.")
      .def_ro("shares", &NetworkAnswer::shares, nb::rv_policy::reference,
              "Posteriors of all variables, one after another; empty if they are not requested.")
      .def_ro("log_sum", &NetworkAnswer::log_sum, "Natural logarithm of the sum.")
      .def_ro("sum", &NetworkAnswer::sum, "The sum itself; 0 or infinity where no float holds it.")
      .def_ro("width", &NetworkAnswer::width, "Induced width.")
      .def_ro("largest", &NetworkAnswer::largest, "Number of cells of the largest table.")
      .def_ro("work", &NetworkAnswer::work, "Number of combinations.")
      .def_ro("cells", &NetworkAnswer::cells, "Number of cells of all tables.");
  nb::class_<WidestRange>(m, "WidestRange", "The range of numbers from several ranges, and 1.")
      .def_ro("largest", &WidestRange::largest, "Largest number; NaN if any is NaN.")
      .def_ro("least", &WidestRange::least, "Least number; NaN if any is NaN.");
  nb::class_<CasePlanner>(m, "CasePlanner",
                          "A planner for the rest of a network when some variables are observed; one call at a time.")
      .def("__init__", &make_planner, "sizes"_a, "starts"_a, "members"_a, "strides"_a, "offsets"_a, "least"_a,
           "asked"_a, "answer_offsets"_a, "first"_a, "last"_a,
           "Take factors: scopes in compressed rows, their strides and offsets in an arena, and log2 of each "
           "factor's least positive value. `asked`, `answer_offsets`: requested variables, and offsets of their "
           "marginals in the answer. `first`, `last`: range of the arena for messages.")
      .def("measure", &measure, "values"_a,
           "Return the work of the plan for these observed values (-1: not observed), and its number of steps; "
           "None if no plan fits.");
  nb::class_<CaseNetwork>(m, "CaseNetwork",
                          "A small network that answers one set of observations after another; one call at a time.")
      .def("__init__", &make_network, "tables"_a, "sense"_a, "rule"_a, "sizes"_a, "cells"_a, "work"_a, "posteriors"_a,
           "Take the factors of a model and the sizes of all variables. `rule`: `products` of probabilities, "
           "or `support` to count allowed tuples. `cells`: limit on the cells of tables and messages; `work`: "
           "limit on the combinations of a run. `posteriors`: True if answers have them, besides the sum.")
      .def("answer", &answer_case, "evidence"_a,
           "Return the answer for observations, variable -> index of its state; None if that takes too much memory or "
           "time, or if a product may have left the range of doubles.")
      .def("keep", &keep_plan, "order"_a,
           "Keep the plan of an order of all variables for all later answers, which restrict its steps to the "
           "unobserved variables. Return False, and change nothing, if it does not fit.");
  nb::class_<DenseSession>(m, "DenseSession", "A packed program translated for an arena; one run at a time.")
      .def(nb::init<const std::string&, double, i64, Words<const i64>, Words<const i64>, Words<const i64>, Arena,
                    Words<double>, int>(),
           "semiring"_a, "parameter"_a, "integer_parameter"_a, "words"_a, "starts"_a, "outputs"_a, "arena"_a, "peaks"_a,
           "threads"_a)
      .def(nb::init<const std::string&, double, i64, const plan::LaidOutSteps&, Words<const i64>, Arena, Words<double>,
                    int>(),
           "semiring"_a, "parameter"_a, "integer_parameter"_a, "layout"_a, "outputs"_a, "arena"_a, "peaks"_a,
           "threads"_a, nb::keep_alive<1, 5>())
      .def("fix", &DenseSession::fix, "values"_a,
           "Compute only cells with these values from now on (-1: no restriction). Steps that depend on a "
           "changed value must run again.")
      .def("decode", &DenseSession::decode, "variables"_a, "first"_a,
           nb::sig("def decode(self, variables: int, first: int) -> NDArray[numpy.int32]"),
           "Return the best assignment of this many variables. Steps are visited from the roots down to `first`; "
           "each value is the first best one, given the values of the step's axes.")
      .def("run_cases", &DenseSession::run_cases, "variables"_a, "values"_a, "evidence"_a, "first"_a, "zones"_a,
           "peaks"_a,
           "Fix each row of values in turn, run all steps, and copy the arena from `first` on into `zones` and "
           "the peaks into `peaks`.")
      .def("run_planned", &DenseSession::run_planned, "planner"_a, "variables"_a, "values"_a, "evidence"_a, "zones"_a,
           "logs"_a, "sound"_a,
           "Make and run a plan of its own for each row of values, on the factors in the arena (sum-product): "
           "write the marginals into `zones`, the natural logarithm of the sum into `logs`, and whether both "
           "are reliable into `sound`.")
      .def("run", &DenseSession::run, "steps"_a.none() = nb::none(), "progress"_a.none() = nb::none(),
           "Run all steps, or those with these ascending numbers, on the present contents of the arena; "
           "`progress` gets the work done so far.");
  m.def("normalise_columns", &normalise_columns, "zone"_a, "tables"_a, "out"_a,
        "Divide the columns of tables by their totals. Each table is given by its offset in the zone, its "
        "number of values, the cells between two values and between two columns, and its first row in "
        "`out`. Return which tables were written: those whose totals are all large enough.");
  m.def("widest_range", &widest_range, "ranges"_a,
        "Return the maximum of 1 and the first numbers of all pairs, and the minimum of 1 and the second "
        "ones; NaN if any is NaN.");
  m.def("exact_count", &count_exactly, "words"_a, "starts"_a, "roots"_a, "factors"_a,
        "Run a packed program over factors of zeros and ones in integers of any length; return the product of some "
        "steps' outputs, the least byte first.");
  m.attr("SHARED_WORK") = shared_work;
  m.def("dense_instruction_set", &dense_instruction_set, "Return the instruction set that the dense executor uses.");
  m.def("dense_instruction_sets", &dense_instruction_sets,
        "Return all instruction sets that the dense executor can use here, the best one first.");
  m.def(
      "use_dense_instruction_set",
      [](const std::string& name) {
        if (!use_dense_instruction_set(name))
          throw nb::value_error(("no kernels for the instruction set " + name).c_str());
      },
      "name"_a,
      "Use an instruction set in sessions that are made from now on; raise ValueError if there are no "
      "kernels for it.");
}

}  // namespace elimina
