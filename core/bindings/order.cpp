#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <tuple>

#include "module.hpp"
#include "order_search.hpp"

namespace nb = nanobind;
using namespace elimina::order;

namespace {

Rule rule_of(const std::string& name) {
  if (name == "min-fill") return Rule::min_fill;
  if (name == "weighted-min-fill") return Rule::weighted_min_fill;
  if (name == "min-degree") return Rule::min_degree;
  if (name == "min-weight") return Rule::min_weight;
  if (name == "sweep") return Rule::sweep;
  throw nb::value_error("unknown greedy rule");
}

// Runs the search on a thread of its own while this one looks for Ctrl-C and requests to stop.
Order search_interruptibly(const Graph& graph, const Options& options, double seconds) {
  Clock clock(seconds);
  Order order;
  std::exception_ptr failure;
  std::mutex mutex;
  std::condition_variable finished;
  bool done = false;
  std::thread worker([&] {
    try {
      order = search(graph, options, clock);
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    done = true;
    finished.notify_one();
  });
  bool interrupted = false, stopped = false;
  {
    nb::gil_scoped_release release;
    std::unique_lock lock(mutex);
    while (!finished.wait_for(lock, std::chrono::milliseconds(20), [&] { return done; })) {
      if (!stopped && elimina::stopped()) {
        stopped = true;
        clock.stop();
      }
      nb::gil_scoped_acquire acquire;
      if (!interrupted && PyErr_CheckSignals() != 0) {
        interrupted = true;
        clock.stop();
      }
    }
    lock.unlock();
    worker.join();
  }
  if (interrupted) throw nb::python_error();
  if (stopped) throw elimina::Stopped{};
  if (failure) std::rethrow_exception(failure);
  return order;
}

Order find_order(const std::vector<double>& sizes, const std::vector<std::int64_t>& offsets,
                 const std::vector<Vertex>& members, const std::vector<std::string>& rules, bool anneal,
                 std::int64_t rounds, double seconds, double patience, double limit, std::uint64_t seed, int threads) {
  Options options;
  for (const auto& rule : rules) options.rules.push_back(rule_of(rule));
  options.anneal = anneal;
  options.rounds = rounds;
  options.patience = patience;
  options.limit = limit;
  options.seed = seed;
  options.threads = threads;
  const auto begun = Clock::Time::now();
  Graph graph;
  {
    nb::gil_scoped_release release;
    graph = moral_graph(sizes, offsets, members);
  }
  const double spent = std::chrono::duration<double>(Clock::Time::now() - begun).count();
  return search_interruptibly(graph, options, std::max(0.0, seconds - spent));
}

// Of every variable along an order: how many others (of several values) its message has, the message's cells (0 if they
// exceed 64 bits), and the separators of just those messages, one after the other.
std::tuple<std::vector<Vertex>, std::vector<std::uint64_t>, std::vector<std::vector<Vertex>>> messages(
    const std::vector<double>& sizes, const std::vector<std::int64_t>& offsets, const std::vector<Vertex>& members,
    const Order& order) {
  const nb::gil_scoped_release release;
  const Graph graph = moral_graph(sizes, offsets, members);
  const auto tree = eliminate(graph, order);
  std::vector<Vertex> widths;
  std::vector<std::uint64_t> cells;
  std::vector<std::vector<Vertex>> wide;
  for (const auto& separator : tree.separator) {
    Vertex width = 0;
    unsigned __int128 product = 1;
    for (Vertex u : separator) {
      width += graph.size[u] > 1;
      product *= static_cast<std::uint64_t>(graph.size[u]);
      if (product >> 64) break;
    }
    if (product >> 64) {
      width = static_cast<Vertex>(
          std::count_if(separator.begin(), separator.end(), [&](Vertex u) { return graph.size[u] > 1; }));
      wide.push_back(separator);
    }
    widths.push_back(width);
    cells.push_back(product >> 64 ? 0 : static_cast<std::uint64_t>(product));
  }
  return {widths, cells, wide};
}

}  // namespace

void bind_order(nb::module_& m) {
  m.def("find_order", &find_order, nb::arg("sizes"), nb::arg("offsets"), nb::arg("members"), nb::kw_only(),
        nb::arg("rules"), nb::arg("anneal"), nb::arg("rounds"), nb::arg("seconds"), nb::arg("patience"),
        nb::arg("limit"), nb::arg("seed"), nb::arg("threads"),
        "An elimination order of little work; the arguments are trusted.");
  m.def("messages", &messages, nb::arg("sizes"), nb::arg("offsets"), nb::arg("members"), nb::arg("order"),
        "Widths and cells of the messages along an order, and the separators of those above 64 bits.");
}
