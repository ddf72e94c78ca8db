#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cmath>
#include <deque>
#include <memory>
#include <string>

#include "arrays.hpp"
#include "cp/flatzinc/instance.hpp"
#include "cp/flatzinc/record.hpp"
#include "cp/flatzinc/translations.hpp"
#include "device_kind.hpp"
#include "module.hpp"
#include "searching.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace elimina::cp {
namespace {

// Returns an array with a row for each view: its variable (-1: a constant), scale and offset.
Array<std::int64_t, 2> rows_of(const Argument& views) {
  Values rows;
  for (const View x : views) rows.insert(rows.end(), {x.var, x.scale, x.offset});
  return array_of(std::move(rows), std::array<std::size_t, 2>{views.size(), 3});
}

// An output: its elements, which are numbers or variables, and the bounds of its index sets.
struct RecordedOutput {
  nb::str name;
  bool is_array;
  nb::object views;
  nb::list index_sets;
};

struct Recording {
  nb::list bounds, posts, names;
  std::vector<RecordedOutput> outputs;
  int sign;
  nb::object objective;
};

RecordedOutput shown(const flatzinc::Document& document, const flatzinc::Instance& instance,
                     const flatzinc::Output& output) {
  const bool is_array = output.value.kind == flatzinc::Kind::array;
  Argument views;
  for (const flatzinc::Term& t : is_array ? document.items(output.value) : std::span(&output.value, 1))
    if (flatzinc::fits(t, flatzinc::Type::boolean) || t.kind == flatzinc::Kind::integer)
      views.push_back(instance.view(t, {}, "an output"));
  nb::list index_sets;
  if (output.index_sets.kind == flatzinc::Kind::array)
    for (const flatzinc::Term& set : document.items(output.index_sets)) {
      const auto values = document.values(set);
      if (set.kind == flatzinc::Kind::range) index_sets.append(nb::make_tuple(values[0], values[1]));
    }
  return {nb::str(output.name.data(), output.name.size()), is_array, nb::cast(rows_of(views)), index_sets};
}

// Returns a document's variables and outputs, with the constraints that the instance posted to a record.
Recording recording_of(const flatzinc::Document& document, const flatzinc::Instance& instance,
                       const flatzinc::Record& record) {
  nb::list posts, names;
  std::vector<RecordedOutput> outputs;
  for (const auto& post : record.posts) {
    nb::list arguments;
    for (const Argument& a : post.arguments) arguments.append(rows_of(a));
    posts.append(nb::make_tuple(post.name, arguments));
  }
  for (std::size_t i = 0; i < document.variables.size(); ++i) {
    const auto name = document.variables[i].name;
    const flatzinc::Term variable{flatzinc::Kind::variable, 0, static_cast<std::int64_t>(i)};
    names.append(
        nb::make_tuple(nb::str(name.data(), name.size()), rows_of({instance.view(variable, {}, "a variable")})));
  }
  for (const auto& output : document.outputs) outputs.push_back(shown(document, instance, output));
  nb::list bounds;
  for (const auto& [lo, hi] : record.bounds) bounds.append(nb::make_tuple(lo, hi));
  const int sign = instance.goal() == flatzinc::Goal::satisfy    ? 0
                   : instance.goal() == flatzinc::Goal::minimise ? 1
                                                                 : -1;
  nb::object objective = nb::none();
  if (sign != 0)
    objective = nb::cast(rows_of({instance.view(document.solve.objective, document.solve.position, "the objective")}));
  return {bounds, posts, names, std::move(outputs), sign, objective};
}

// The text, the items (which point into the text), and the solver with the items' constraints.
class FlatZinc {
 public:
  FlatZinc(nb::bytes text, nb::object poll, std::optional<std::vector<std::size_t>> assumed)
      : text_(std::move(text)), assumed_(std::move(assumed)) {
    Ended ended;
    const flatzinc::Poll go_on = [&] { return report(poll, ended); };
    try {
      nb::gil_scoped_release release;
      const auto start = std::chrono::steady_clock::now();
      const std::string_view view(text_.c_str(), text_.size());
      document_ = flatzinc::parse_text(view, go_on);
      parse_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      instance_ = std::make_unique<flatzinc::Instance>(document_, solver_, go_on, assumed_);
      options_ = instance_->options();
    } catch (const flatzinc::Abandoned&) {
      if (ended.raised) throw nb::python_error();
      throw nb::stop_iteration("reading was ended");
    }
  }

  Searching* search(bool free, std::uint64_t seed, double seconds, int threads, bool relax, nb::object poll,
                    bool portfolio, std::vector<double> pauses) {
    if (threads < 1) throw nb::value_error("there is at least one thread");
    if (searched_) throw nb::value_error("the model is searched already");
    if (std::isnan(seconds)) throw nb::value_error("the seconds are a number");
    searched_ = true;
    options_.free = free;
    options_.seed = seed;
    options_.seconds = seconds;
    // Annotations of restarts and neighbourhoods form a schedule of their own, which replaces the portfolio.
    options_.portfolio = portfolio && !free && !relax && !instance_->is_relaxed() && !instance_->has_restarts();
    if (options_.portfolio) options_.pauses = std::move(pauses);
    if (!options_.portfolio && !relax && !instance_->is_relaxed()) options_.relax.reset();
    copy(threads - 1, poll);
    std::vector<Solver*> solvers{&solver_};
    for (Copy& copy : copies_) solvers.push_back(&copy.solver);
    return new Searching(solvers, std::move(options_));
  }

  double device_delay() { return solver_.device_delay(); }
  void accelerate_later(nb::object find) { solver_.accelerate_later(finder_of(std::move(find))); }

  void accelerate(const DeviceKind& kind, bool measures) {
    if (searched_) throw nb::value_error("the model is searched already");
    solver_.accelerate(kind.make(), measures);
  }

  nb::bytes show(const Searching& search) const {
    const std::string text = instance_->show(values(search));
    return nb::bytes(text.data(), text.size());
  }

  Value objective(const Searching& search) const {
    if (is_satisfaction()) throw nb::value_error("the model has no objective");
    return instance_->objective(values(search));
  }

  std::optional<Value> bound(const Searching& search) const {
    const auto bound = search.bound();
    if (!bound || is_satisfaction()) return std::nullopt;
    const Value value = instance_->goal() == flatzinc::Goal::minimise ? *bound : -*bound;
    return instance_->is_proven_bound(value) ? std::optional(value) : std::nullopt;
  }

  std::vector<std::string> unproven_limits(const Searching& search) const {
    return instance_->unproven_limits(search.values().empty() ? nullptr : &values(search));
  }
  bool is_unbounded() const { return instance_->is_unbounded(); }

  // Returns the model's variables, constraints and outputs. Floats are recorded as integers in units of their last
  // decimal.
  Recording record(nb::object poll) const {
    Ended ended;
    const flatzinc::Poll go_on = [&] { return report(poll, ended); };
    try {
      flatzinc::Record record;
      std::unique_ptr<flatzinc::Instance> copy;
      {
        nb::gil_scoped_release release;
        copy = std::make_unique<flatzinc::Instance>(document_, record, go_on, assumed_);
      }
      return recording_of(document_, *copy, record);
    } catch (const flatzinc::Abandoned&) {
      if (ended.raised) throw nb::python_error();
      throw nb::stop_iteration("recording was ended");
    }
  }

  int objective_decimals() const { return instance_->objective_decimals(); }
  bool is_satisfaction() const { return instance_->goal() == flatzinc::Goal::satisfy; }
  std::vector<std::string> assumptions() const { return instance_->assumptions(); }
  const std::vector<std::string>& notes() const { return instance_->notes(); }
  double parse_seconds() const { return parse_seconds_; }
  int variables() const { return solver_.variables(); }
  std::size_t propagators() { return solver_.engine().propagators(); }

 private:
  struct Copy {
    Solver solver;
    std::unique_ptr<flatzinc::Instance> instance;
  };

  // Makes `count` further solvers, one for each further thread, and posts the same items to each.
  void copy(int count, const nb::object& poll) {
    Ended ended;
    const flatzinc::Poll go_on = [&] { return report(poll, ended); };
    try {
      nb::gil_scoped_release release;
      for (int i = 0; i < count; ++i) {
        Copy& copy = copies_.emplace_back();
        copy.instance = std::make_unique<flatzinc::Instance>(document_, copy.solver, go_on, assumed_);
        copy.instance->options();
      }
    } catch (const flatzinc::Abandoned&) {
      if (ended.raised) throw nb::python_error();
      throw nb::stop_iteration("posting was ended");
    }
  }

  const Values& values(const Searching& search) const {
    if (search.values().size() != static_cast<std::size_t>(solver_.variables()))
      throw nb::value_error("there is no solution of this model");
    return search.values();
  }

  nb::bytes text_;
  std::optional<std::vector<std::size_t>> assumed_;
  flatzinc::Document document_;
  Solver solver_;
  std::unique_ptr<flatzinc::Instance> instance_;
  std::deque<Copy> copies_;
  Options options_;
  double parse_seconds_ = 0;
  bool searched_ = false;
};

Recording read_record(const nb::bytes& text) {
  const std::string_view view(text.c_str(), text.size());
  const auto document = flatzinc::parse_text(view, {});
  // A record accepts any arguments, so the constraints are first posted to a solver, which checks them.
  Solver solver;
  flatzinc::Instance(document, solver, {}).options();
  flatzinc::Record record;
  const flatzinc::Instance instance(document, record, {});
  if (const auto* v = instance.float_variable())
    throw flatzinc::Malformed(v->position, "unsupported: the float variable " + std::string(v->name) +
                                               " of a model that is not searched; fzn-elimina solves it");
  return recording_of(document, instance, record);
}

}  // namespace

void bind_flatzinc(nb::module_& m) {
  nb::class_<FlatZinc>(m, "FlatZinc", "A FlatZinc model, read and posted.")
      .def(nb::init<nb::bytes, nb::object, std::optional<std::vector<std::size_t>>>(), "text"_a, "poll"_a,
           "assumed"_a = nb::none(),
           "Read and post a model. `assumed`: numbers of the assumptions that hold; None: all of them. Raises "
           "ValueError ('LINE:COLUMN: problem'), or StopIteration if `poll` returned False.")
      .def("search", &FlatZinc::search, nb::rv_policy::take_ownership, nb::keep_alive<0, 1>(), "free"_a, "seed"_a,
           "seconds"_a, "threads"_a, "relax"_a, "poll"_a, "portfolio"_a = false, "pauses"_a = std::vector<double>{},
           "Return a search by the model's annotations or, with `portfolio`, by a schedule that begins with "
           "them; only once. `pauses`: seconds after which a search by the schedule pauses. Raises StopIteration if "
           "`poll` returned False.")
      .def("bound", &FlatZinc::bound, "search"_a,
           "Return a bound on the objective that no solution is beyond, or None.")
      .def("record", &FlatZinc::record, "poll"_a,
           "Return the items of the model; floats are integers in units of their last decimal. Raises StopIteration if "
           "`poll` returned False.")
      .def("device_delay", &FlatZinc::device_delay,
           "Return the seconds of search after which a device is worth looking for, as `CpSolver.device_delay` does.")
      .def("accelerate_later", &FlatZinc::accelerate_later, "find"_a,
           "Look for a device after that time, as `CpSolver.accelerate_later` does.")
      .def("accelerate", &FlatZinc::accelerate, "device"_a, "measures"_a,
           "Use a device for the posted constraints, as `CpSolver.accelerate` does.")
      .def("show", &FlatZinc::show, "search"_a, "Return the last solution in FlatZinc's form.")
      .def("objective", &FlatZinc::objective, "search"_a, "Return the objective's value in the last solution.")
      .def("unproven_limits", &FlatZinc::unproven_limits, "search"_a,
           "Return the names of variables without bounds beyond whose limits a complete search may have missed "
           "solutions, or better ones.")
      .def("is_unbounded", &FlatZinc::is_unbounded, "Return whether every solution can be improved.")
      .def_prop_ro("is_satisfaction", &FlatZinc::is_satisfaction)
      .def_prop_ro("objective_decimals", &FlatZinc::objective_decimals,
                   "Decimals of a float objective: its value is an integer in units of the last decimal.")
      .def_prop_ro("assumptions", &FlatZinc::assumptions, "Names of the Booleans that are assumed.")
      .def_prop_ro("notes", &FlatZinc::notes, "Notes on ignored annotations.")
      .def_prop_ro("parse_seconds", &FlatZinc::parse_seconds)
      .def_prop_ro("variables", &FlatZinc::variables)
      .def_prop_ro("propagators", &FlatZinc::propagators);
  m.def("flatzinc_translated_names", &flatzinc::translated_names,
        "Return the names of constraints of MiniZinc and other solvers that are read, besides the core's.");
  nb::class_<RecordedOutput>(m, "FlatZincOutput", "An output of a FlatZinc model.")
      .def_prop_ro(
          "name", [](const RecordedOutput& output) { return output.name; }, "Name of the variable or the array.")
      .def_ro("is_array", &RecordedOutput::is_array, "True for an array.")
      .def_prop_ro(
          "views", [](const RecordedOutput& output) { return output.views; },
          nb::for_getter(nb::sig("def views(self) -> NDArray[numpy.int64]")),
          "View of the variable, or of each element of the array.")
      .def_prop_ro(
          "index_sets", [](const RecordedOutput& output) { return output.index_sets; },
          nb::for_getter(nb::sig("def index_sets(self) -> list[tuple[int, int]]")),
          "First and last index along each axis.");
  nb::class_<Recording>(
      m, "FlatZincRecord",
      "Items of a FlatZinc model. Views are rows of a variable (-1: a constant), a scale and an offset.")
      .def_prop_ro(
          "bounds", [](const Recording& recording) { return recording.bounds; },
          nb::for_getter(nb::sig("def bounds(self) -> list[tuple[int, int]]")), "Bounds of each variable.")
      .def_prop_ro(
          "posts", [](const Recording& recording) { return recording.posts; },
          nb::for_getter(nb::sig("def posts(self) -> list[tuple[str, list[NDArray[numpy.int64]]]]")),
          "Name and arguments of each constraint.")
      .def_prop_ro(
          "names", [](const Recording& recording) { return recording.names; },
          nb::for_getter(nb::sig("def names(self) -> list[tuple[str, NDArray[numpy.int64]]]")),
          "Declared names, and the views that they stand for.")
      .def_prop_ro(
          "outputs", [](const Recording& recording) { return recording.outputs; }, "Outputs in their order.")
      .def_ro("sign", &Recording::sign, "1 to minimise the objective, -1 to maximise it, 0 if there is none.")
      .def_prop_ro(
          "objective", [](const Recording& recording) { return recording.objective; },
          nb::for_getter(nb::sig("def objective(self) -> NDArray[numpy.int64] | None")), "View of the objective.");
  m.def("flatzinc_record", &read_record, "text"_a,
        "Return the items of a FlatZinc model without floats; raise ValueError if it cannot be read.");
}

}  // namespace elimina::cp
