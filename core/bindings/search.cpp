#include "search/search.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "arrays.hpp"
#include "listener.hpp"
#include "module.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace elimina::search {
namespace {

using Cells = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Arena arena_of(const Cells& cells, double forbidden) {
  if (std::isnan(forbidden)) throw nb::value_error("what is forbidden is a number");
  Arena arena{{Type::float64, forbidden}, cells.data(), static_cast<std::int64_t>(cells.size())};
  const nb::dlpack::dtype type = cells.dtype();
  if (type == nb::dtype<std::int16_t>()) arena.type = Type::int16;
  else if (type == nb::dtype<std::int32_t>()) arena.type = Type::int32;
  else if (type == nb::dtype<std::int64_t>()) arena.type = Type::int64;
  else if (type == nb::dtype<float>()) arena.type = Type::float32;
  else if (type != nb::dtype<double>())
    throw nb::value_error("the arena's dtype is int16, int32, int64, float32 or float64");
  return arena;
}

Lists contexts_of(const Words<const std::int64_t>& starts, const Words<const std::int32_t>& members) {
  Lists lists{list_of(starts), list_of(members)};
  if (lists.starts.empty() || lists.starts.front() != 0 || !std::is_sorted(lists.starts.begin(), lists.starts.end()) ||
      lists.starts.back() != static_cast<std::int64_t>(lists.items.size()))
    throw nb::value_error("the contexts' starts go from 0 to the number of their members");
  return lists;
}

Options options_of(const Problem& problem, double upper, std::optional<std::vector<int>> start, double seconds,
                   double nodes, int threads, double memory, std::uint64_t seed) {
  if (std::isnan(upper) || std::isnan(seconds)) throw nb::value_error("the upper bound and the seconds are numbers");
  if (!(nodes >= 0) || !(memory >= 0) || memory > 1e18) throw nb::value_error("nodes and memory are at least 0");
  if (threads < 1 || threads > 1024) throw nb::value_error("1 to 1024 threads are possible");
  Options options{upper,   std::move(start).value_or(std::vector<int>{}),
                  seconds, static_cast<std::uint64_t>(std::min(nodes, 1e18)),
                  threads, static_cast<std::size_t>(memory),
                  seed,    nullptr};
  if (options.start.empty()) return options;
  if (options.start.size() + 1 != problem.size.size())
    throw nb::value_error("the start has other variables than the model");
  for (std::size_t v = 0; v < options.start.size(); ++v)
    if (options.start[v] < 0 || options.start[v] >= problem.size[v])
      throw nb::index_error("the start has a value that is none");
  return options;
}

nb::dict result_of(Report& report) {
  nb::dict result;
  result["value"] = report.value;
  result["cost"] = report.cost;
  result["bound"] = report.bound;
  result["nodes"] = report.nodes;
  result["hits"] = report.hits;
  result["entries"] = report.entries;
  result["bytes"] = report.bytes;
  result["seconds"] = report.seconds;
  result["first"] = report.first;
  nb::list events;
  for (Event& event : report.events) events.append(nb::cast(std::move(event)));
  result["events"] = events;
  return result;
}

nb::dict search_tree(const Cells& cells, const Words<const std::int64_t>& tables, const std::vector<int>& sizes,
                     const std::vector<Var>& parents, const Words<const std::int64_t>& starts,
                     const Words<const std::int32_t>& contexts, double forbidden, bool integral, double upper,
                     std::optional<std::vector<int>> start, double seconds, double nodes, int threads, double memory,
                     std::uint64_t seed, nb::object poll) {
  const Problem problem(arena_of(cells, forbidden), span_of(tables), sizes, parents, contexts_of(starts, contexts),
                        integral);
  Options options = options_of(problem, upper, std::move(start), seconds, nodes, threads, memory, seed);
  Ended ended;
  options.poll = listener_of(poll, ended);
  Report report = unlocked([&] { return search(problem, options); });
  if (ended.raised) throw nb::python_error();
  nb::dict result = result_of(report);
  result["interrupted"] = ended.interrupted;
  return result;
}

}  // namespace

void bind_search(nb::module_& m) {
  nb::class_<Event>(m, "SearchEvent", "Bounds at a time of a search.")
      .def_ro("seconds", &Event::seconds, "Seconds since the search began.")
      .def_ro("lower", &Event::lower, "Lower bound.")
      .def_ro("upper", &Event::upper, "Upper bound.")
      .def_ro("nodes", &Event::nodes, "Number of visited nodes.");
  m.def("search_tree", &search_tree, "arena"_a, "tables"_a, "sizes"_a, "parents"_a, "starts"_a, "contexts"_a,
        "forbidden"_a, "integral"_a, "upper"_a, "start"_a.none(), "seconds"_a, "nodes"_a, "threads"_a, "memory"_a,
        "seed"_a, "poll"_a,
        "Return the least sum of costs below `upper`, by AND/OR branch and bound with the messages of "
        "mini-buckets as bounds. `poll` gets both bounds, the nodes and the best value if it is new (else "
        "None) now and then, and ends the search by False; so does an interruption. For each table, "
        "`tables` has: offset, home, the home's stride, origin (-1: a factor), k, and k times a variable "
        "and its stride. `starts`: starts of each variable's ancestors in `contexts`, and the end.");
}

}  // namespace elimina::search
