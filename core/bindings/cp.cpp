#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

#include "cheapest_words.hpp"
#include "cp/implied_bounds.hpp"
#include "device_kind.hpp"
#include "module.hpp"
#include "searching.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace elimina::cp {
namespace {

// An argument of a constraint: an array of k constants, or an array with a row for each of k views. A row has the
// view's variable (-1: a constant), scale and offset.
using Numbers = nb::ndarray<const std::int64_t, nb::c_contig, nb::device::cpu>;
using RuleOfSearch = std::tuple<Numbers, std::string, std::string>;
using RelaxationOfSearch = std::tuple<Numbers, std::optional<double>>;
using HintsOfSearch = std::tuple<Numbers, Numbers>;
using RestartsOfSearch = std::tuple<std::string, double, double>;

struct DeviceCalls {
  std::uint64_t count = 0;
  double seconds = 0;
};

constexpr std::int64_t kMostVariables = std::int64_t{1} << 27;

View view_of(const std::int64_t* row) {
  if (row[0] < 0) return constant(row[2]);
  if (row[0] > kMostVariables || row[1] < INT32_MIN / 2 || row[1] > INT32_MAX / 2)
    throw nb::value_error("a view's variable or scale is too large");
  return {static_cast<std::int32_t>(row[0]), static_cast<std::int32_t>(row[1]), row[2]};
}

Argument argument_of(const Numbers& numbers) {
  Argument result;
  if (numbers.ndim() == 1)
    for (std::size_t i = 0; i < numbers.shape(0); ++i) result.push_back(constant(numbers.data()[i]));
  else if (numbers.ndim() == 2 && numbers.shape(1) == 3)
    for (std::size_t i = 0; i < numbers.shape(0); ++i) result.push_back(view_of(numbers.data() + 3 * i));
  else throw nb::value_error("an argument is k numbers, or k rows of variable, scale and offset");
  return result;
}

// A solver. The first search closes it: nothing can be added afterwards.
struct Model {
  Solver solver;
  bool searched = false;

  void open() const {
    if (searched) throw nb::value_error("the solver is searched already");
  }

  View known(View x) {
    if (x.var < 0) return solver.fixed(x.offset);
    if (x.var >= solver.variables()) throw nb::index_error("there is no such variable");
    if (x.scale == 0) throw nb::value_error("a view's scale is not 0");
    return x;
  }

  void check_count(std::int64_t count) const {
    open();
    if (count < 1 || count > kMostVariables - solver.variables())
      throw nb::value_error("there are too many variables, or none");
  }

  int make(std::int64_t count, Value lo, Value hi) {
    check_count(count);
    const int first = solver.variables();
    for (std::int64_t i = 0; i < count; ++i) solver.new_variable(lo, hi);
    return first;
  }

  int make_of(const Numbers& values) {
    check_count(1);
    if (values.ndim() != 1) throw nb::value_error("values are one array");
    return solver.new_variable(Values(values.data(), values.data() + values.shape(0))).var;
  }

  void post(const std::string& name, const std::vector<Numbers>& arguments) {
    open();
    std::vector<Argument> plain;
    for (const Numbers& a : arguments) plain.push_back(argument_of(a));
    solver.post(name, plain);
  }
};

Restarts restarts_of(const std::optional<RestartsOfSearch>& restarts) {
  if (!restarts) return {};
  const auto& [name, scale, growth] = *restarts;
  if (!(scale >= 1) || !(growth >= 1)) throw nb::value_error("a restart's scale and growth are at least 1");
  const std::pair<const char*, Restarts::Kind> kinds[] = {{"constant", Restarts::Kind::constant},
                                                          {"linear", Restarts::Kind::linear},
                                                          {"geometric", Restarts::Kind::geometric},
                                                          {"luby", Restarts::Kind::luby}};
  for (const auto& [text, kind] : kinds)
    if (name == text) return {kind, scale, growth};
  throw nb::value_error(("there are no restarts " + name + ": constant, linear, geometric, luby").c_str());
}

std::uint64_t limit_of(double limit) {
  if (!(limit >= 0)) throw nb::value_error("a limit is at least 0");
  return static_cast<std::uint64_t>(std::min(limit, 1e18));
}

Relaxation relaxation_of(Model& model, const RelaxationOfSearch& relaxation) {
  const auto& [xs, kept] = relaxation;
  if (kept && !(*kept >= 0 && *kept <= 1))
    throw nb::value_error("the share of variables that keep their values is from 0 to 1");
  Relaxation result{argument_of(xs), kept};
  for (View& x : result.xs) x = model.known(x);
  return result;
}

std::vector<Hint> hints_of(Model& model, const HintsOfSearch& hints) {
  const auto& [xs, values] = hints;
  const Argument views = argument_of(xs);
  if (values.ndim() != 1 || values.shape(0) != views.size()) throw nb::value_error("each hinted view has one value");
  std::vector<Hint> result;
  for (std::size_t i = 0; i < views.size(); ++i) result.push_back({model.known(views[i]), values.data()[i]});
  return result;
}

// Returns the options of a search. Raises ValueError if the model has already been searched.
Options options_of(Model& model, const std::vector<RuleOfSearch>& rules, const std::optional<Numbers>& minimise,
                   const std::optional<RestartsOfSearch>& restarts, const std::optional<RelaxationOfSearch>& relax,
                   bool free, std::uint64_t seed, double seconds, double nodes, double failures) {
  model.open();
  Options options;
  for (const auto& [xs, variable_ordering, value_ordering] : rules) {
    Rule rule{argument_of(xs), variable_ordering_of(variable_ordering), value_ordering_of(value_ordering)};
    for (View& x : rule.xs) x = model.known(x);
    options.rules.push_back(std::move(rule));
  }
  if (minimise) {
    const Argument objective = argument_of(*minimise);
    if (objective.size() != 1) throw nb::value_error("the objective is one view");
    options.minimise = model.known(objective[0]);
  }
  if (std::isnan(seconds)) throw nb::value_error("the seconds are a number");
  options.restarts = restarts_of(restarts);
  if (relax) options.relax = relaxation_of(model, *relax);
  options.free = free;
  options.seed = seed;
  options.seconds = seconds;
  options.nodes = limit_of(nodes);
  options.failures = limit_of(failures);
  model.searched = true;
  return options;
}

void check_variable(const Model& model, int var) {
  if (var < 0 || var >= model.solver.variables()) throw nb::index_error("there is no such variable");
}

Values values_of(const Model& model, int var) {
  check_variable(model, var);
  Values result;
  model.solver.domains().each(View{var}, [&](Value x) { result.push_back(x); });
  return result;
}

std::pair<Value, Value> bounds_of(const Model& model, int var) {
  check_variable(model, var);
  return {model.solver.domains().lo(var), model.solver.domains().hi(var)};
}

void accelerate(Model& model, const DeviceKind& kind, bool measures) {
  model.open();
  model.solver.accelerate(kind.make(), measures);
}

// Lists the remaining values of each variable.
nb::list domains(const Model& model) {
  nb::list result;
  for (int v = 0; v < model.solver.variables(); ++v) result.append(values_of(model, v));
  return result;
}

Values sizes(const Model& model) {
  Values result;
  for (int v = 0; v < model.solver.variables(); ++v) result.push_back(model.solver.domains().size(v));
  return result;
}

// Propagates to a fixpoint; returns nullopt if the time limit comes first. Raises the exception of a signal's handler.
std::optional<bool> propagate(Model& model, double seconds) {
  model.searched = true;
  Engine& engine = model.solver.engine();
  const auto start = std::chrono::steady_clock::now();
  bool is_interrupted = false, is_consistent = false;
  // Bounds of wide domains may change by one at a time, so a fixpoint may take long.
  engine.watch([&] {
    const nb::gil_scoped_acquire gil;
    is_interrupted = PyErr_CheckSignals() != 0;
    return !is_interrupted &&
           std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() <= seconds;
  });
  try {
    const nb::gil_scoped_release release;
    is_consistent = engine.propagate();
  } catch (...) {
    engine.watch({});
    throw;
  }
  const bool is_late = engine.stopped();
  engine.watch({});
  if (is_interrupted) throw nb::python_error();
  if (is_late) return std::nullopt;
  return is_consistent;
}

// Opens a level, makes the decision on it, and propagates; returns false after a conflict. The level stays open in any
// case.
bool decide(Model& model, int var, Value value, bool is) {
  model.searched = true;
  const View x = model.known({var < 0 ? INT32_MAX : var});
  Engine& engine = model.solver.engine();
  engine.mark();
  return Decision{x, is ? Test::is : Test::is_not, value}.apply(engine.domains()) && engine.propagate();
}

void undo(Model& model) {
  if (model.solver.engine().level() == 0) throw nb::value_error("no decision is left to undo");
  model.solver.engine().undo();
}

Statements statements_of(std::vector<std::pair<Value, Value>> bounds, const std::vector<int>& open,
                         const std::vector<std::pair<std::string, std::vector<Numbers>>>& posts) {
  Statements result{std::move(bounds), {}, {}};
  result.is_open.resize(result.bounds.size(), 0);
  for (const int var : open) result.is_open.at(static_cast<std::size_t>(var)) = 1;
  for (const auto& [name, arguments] : posts) {
    Statement& post = result.posts.emplace_back(Statement{name, {}});
    for (const Numbers& a : arguments) post.arguments.push_back(argument_of(a));
  }
  return result;
}

}  // namespace

void bind_cp(nb::module_& m) {
  nb::class_<DeviceCalls>(m, "DeviceCalls", "Calls that a device has answered.")
      .def_ro("count", &DeviceCalls::count, "Number of calls.")
      .def_ro("seconds", &DeviceCalls::seconds, "Seconds of all calls.");
  bind_cheapest_words(m);
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const DeviceFailed& failed) {
      PyErr_SetString(nb::module_::import_("elimina.errors").attr("DeviceError").ptr(), failed.what());
    }
  });
  nb::class_<DeviceKind>(m, "CpDevice", "A device that filters AllDifferent constraints beside the CPU's own search.")
      .def(nb::new_([](unsigned threads) { return DeviceKind{{}, {}, 0, threads}; }), "threads"_a,
           "Run the device's code on threads of this processor, for tests.")
      .def(nb::new_([](int ordinal, nb::bytes module, std::string name) {
             if (module.size() == 0) throw nb::value_error("the kernel's module is empty");
             return DeviceKind{std::string(module.c_str(), module.size()), std::move(name), ordinal, 0};
           }),
           "ordinal"_a, "module"_a, "name"_a,
           "Use a CUDA device; `module`: the compiled kernel, `name`: its name in the module.");
  nb::class_<Model>(m, "CpSolver", "Variables and constraints; closed once it is searched or propagated.")
      .def(nb::init<>())
      .def("new_variables", &Model::make, "count"_a, "lo"_a, "hi"_a,
           "Make variables with the values from `lo` to `hi`; return the number of the first one.")
      .def("new_variable_of", &Model::make_of, "values"_a)
      .def("post", &Model::post, "name"_a, "arguments"_a)
      .def(
          "device_delay", [](Model& m) { return m.solver.device_delay(); },
          "Return the seconds of search after which a device is worth looking for; 0 if an AllDifferent asks "
          "for one.")
      .def(
          "accelerate_later", [](Model& m, nb::object find) { m.solver.accelerate_later(finder_of(std::move(find))); },
          "find"_a, "Look for a device after that time: `find` returns the future of a device or of None.")
      .def("accelerate", &accelerate, "device"_a, "measures"_a,
           "Use a device for the posted constraints. `measures`: only where it turns out to be faster, or is "
           "asked for.")
      .def(
          "device_calls",
          [](const Model& m) {
            return m.solver.batch() ? DeviceCalls{m.solver.batch()->calls(), m.solver.batch()->seconds()}
                                    : DeviceCalls{};
          },
          "Return the calls that a device has answered.")
      .def("propagate", &propagate, "seconds"_a = std::numeric_limits<double>::infinity(),
           "Bring the domains to a fixpoint, and close the solver; return False if the model is infeasible, "
           "None if the time passed.")
      .def("decide", &decide, "var"_a, "value"_a, "is_"_a,
           "Give a variable a value, or remove the value from it, and propagate; return False if that fails. "
           "Each call needs one of `undo`.")
      .def("undo", &undo)
      .def("domains", &domains, "Return the values of each variable.")
      .def("sizes", &sizes, "Return the number of values of each variable.")
      .def("values_of", &values_of, "var"_a)
      .def("bounds_of", &bounds_of, "var"_a);
  nb::class_<Searching>(m, "CpSearch", "A search for one solution after another.")
      .def(
          "__init__",
          [](Searching* self, const nb::tuple& copies, const std::vector<RuleOfSearch>& rules,
             const std::optional<Numbers>& minimise, const std::optional<RestartsOfSearch>& restarts,
             const std::optional<RelaxationOfSearch>& relax, bool free, std::uint64_t seed, double seconds,
             double nodes, double failures, std::optional<std::pair<double, bool>> portfolio,
             const std::optional<HintsOfSearch>& hints) {
            if (copies.size() == 0) throw nb::value_error("a search needs a solver");
            Options options;
            std::vector<Solver*> solvers;
            for (const nb::handle copy : copies) {
              Model& model = nb::cast<Model&>(copy);
              options = options_of(model, rules, minimise, restarts, relax, free, seed, seconds, nodes, failures);
              options.portfolio = portfolio.has_value();
              // Times in seconds at which the search returns to Python without a solution. With several threads, the
              // first such pause comes after 0.1 s, when most searches have a solution; the threads continue during a
              // pause.
              if (portfolio) options.pauses = {copies.size() > 1 ? 0.1 : 0.0, 2};
              if (portfolio) std::tie(options.stretch_scale, options.has_orderings) = *portfolio;
              if (hints) options.hints = hints_of(model, *hints);
              if (!(options.stretch_scale > 0)) throw nb::value_error("the scale of stretches is above 0");
              solvers.push_back(&model.solver);
              if (model.solver.variables() != solvers[0]->variables())
                throw nb::value_error("the solvers are not of one model");
            }
            new (self) Searching(solvers, std::move(options));
          },
          nb::keep_alive<1, 2>(), "solvers"_a, "rules"_a, "minimise"_a.none(), "restarts"_a.none(), "relax"_a.none(),
          "free"_a, "seed"_a, "seconds"_a, "nodes"_a, "failures"_a, "portfolio"_a = nb::none(), "hints"_a = nb::none(),
          "Search in as many threads as there are solvers, each of which was made in the same way. "
          "`portfolio`: search by the schedule, with a factor of the failures of its stretches, and True if "
          "the rules are the model's; `relax` then has the variables of neighbourhoods. `hints`: views, and "
          "the values that are tried first.")
      .def("next", &Searching::next, "poll"_a,
           "Search for the next solution, and return how the search ended. `poll` ends it by False; so does an "
           "interruption. 'paused': after the schedule's first stretch, and once more after two seconds.")
      .def("bound", &Searching::bound, "Return a lower bound on the minimised objective, or None.")
      .def("raise_bound", &Searching::raise_bound, "bound"_a, "Raise the lower bound, between calls of `next`.")
      .def("adopt", &Searching::adopt, "solution"_a,
           "Take over a solution, the values of all variables; later ones have to be better.")
      .def(
          "set_costs",
          [](Searching& search, const Numbers& rows, Value unit, Value offset) {
            if (rows.ndim() != 2 || rows.shape(1) != 3 || unit < 1)
              throw nb::value_error("costs are k rows of variable, value and cost, in units above 0");
            std::vector<ValueCosts::Entry> entries;
            for (std::size_t i = 0; i < rows.shape(0); ++i) {
              const std::int64_t* row = rows.data() + 3 * i;
              if (row[0] < 0 || row[0] > kMostVariables) throw nb::index_error("there is no such variable");
              entries.push_back({static_cast<int>(row[0]), row[1], row[2]});
            }
            search.set_costs(std::move(entries), unit, offset);
          },
          "rows"_a, "unit"_a, "offset"_a,
          "Set costs of values: rows of variable, value and the least cost of solutions with it that are better than "
          "the incumbent. Their objective is at least the cost over the unit, plus the offset.")
      .def("solution", &Searching::solution, "Return the values of all variables in the last solution.")
      .def("origin", &Searching::origin, "Return the name of the schedule's part that reached the solution.")
      .def("statistics", &Searching::statistics);
  m.def("cp_constraint_names", &constraint_names);
  m.def("cp_check_constraint", &check_constraint, "name"_a, "arguments"_a,
        "Refuse an unknown name of a constraint, and a wrong number of its arguments.");
  m.def(
      "cp_variables_beyond_limits",
      [](std::vector<std::pair<Value, Value>> bounds, const std::vector<int>& open,
         const std::vector<std::pair<std::string, std::vector<Numbers>>>& posts) {
        return variables_beyond_limits(statements_of(std::move(bounds), open, posts));
      },
      "bounds"_a, "open"_a, "posts"_a,
      "Return the variables without bounds (`open`) that may have values beyond their limits in a "
      "solution.");
  m.def(
      "cp_falls_without_end",
      [](std::vector<std::pair<Value, Value>> bounds, const std::vector<int>& open,
         const std::vector<std::pair<std::string, std::vector<Numbers>>>& posts, const Numbers& objective) {
        return falls_without_end(statements_of(std::move(bounds), open, posts), argument_of(objective).at(0));
      },
      "bounds"_a, "open"_a, "posts"_a, "objective"_a, "Return whether every solution can be improved without end.");
}

}  // namespace elimina::cp
