#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "arrays.hpp"
#include "interruptible.hpp"
#include "module.hpp"
#include "order/search.hpp"

namespace nb = nanobind;

namespace elimina::order {
namespace {

Rule rule_of(const std::string& name) {
  if (name == "min-fill") return Rule::min_fill;
  if (name == "weighted-min-fill") return Rule::weighted_min_fill;
  if (name == "min-degree") return Rule::min_degree;
  if (name == "min-weight") return Rule::min_weight;
  if (name == "sweep") return Rule::sweep;
  throw nb::value_error("unknown greedy rule");
}

Order search_interruptibly(Search& search, bool is_begun, Clock& clock) {
  Order order;
  run_interruptibly(
      [&] {
        if (!is_begun) search.begin(clock);
        order = search.improve(clock);
      },
      [&] { clock.stop(); });
  elimina::check_stop();
  return order;
}

Graph graph_of(const Words<const double>& sizes, const Words<const std::int64_t>& offsets,
               const Words<const Vertex>& members) {
  return moral_graph(list_of(sizes), list_of(offsets), list_of(members));
}

// True if reductions and a greedy run end within milliseconds.
bool is_small(const Graph& graph) {
  std::size_t edges = 0;
  for (const auto& neighbours : graph.neighbours) edges += neighbours.size();
  return graph.count() <= 4096 && edges <= 65536;
}

// Longest time in seconds of a search on the caller's thread, because Ctrl-C has to wait until it ends.
constexpr double longest_at_once = 5e-3;

// Searches on the caller's thread, because starting another thread may take longer than a short search. Returns nullopt
// if the search would take long; then only its first part is done.
std::optional<Order> search_at_once(const Graph& graph, const Options& options, Search& search, Clock& clock) {
  Order order = search.begin(clock);
  if (elimina::stopped()) throw elimina::Stopped{};
  if (!options.anneal && (options.rounds == 0 || options.rounds == 1)) return order;
  if (options.patience <= 0) return std::nullopt;
  const Cost cost = cost_of(graph, order);
  const double run = options.patience * std::exp2(cost.total);
  if (run < worth_a_search || clock.counted() > search_share * run) return order;
  if (options.rounds >= 0 || search_share * run > longest_at_once) return std::nullopt;
  const double begun = clock.counted();
  Clock round_clock(clock, begun + std::min(clock.remaining(), longest_at_once));
  round_clock.count(begun);
  Order other = search.improve(round_clock);
  clock.count(round_clock.counted() - begun);
  if (elimina::stopped()) throw elimina::Stopped{};
  // The order of `improve` may be worse: on a loaded machine, the time limit may pass before a greedy run ends.
  return better(cost_of(graph, other), cost, options.limit) ? other : order;
}

// Messages of an order. `width`: largest number of variables in a message, those with a single value not counted;
// `cells`: number of cells of each message, 0 if it exceeds 64 bits; `wide`: variables of each message whose number of
// cells exceeds 64 bits.
struct Messages {
  Vertex width = 0;
  std::vector<std::uint64_t> cells;
  std::vector<std::vector<Vertex>> wide;
};

Messages messages_of(const Graph& graph, const EliminationTree& tree) {
  Messages messages;
  messages.cells.reserve(graph.count());
  for (Vertex v = 0; v < graph.count(); ++v) {
    const auto separator = tree.separator(v);
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
      messages.wide.emplace_back(separator.begin(), separator.end());
    }
    messages.width = std::max(messages.width, width);
    messages.cells.push_back(product >> 64 ? 0 : static_cast<std::uint64_t>(product));
  }
  return messages;
}

// Messages as Python reads them.
struct MessageFigures {
  explicit MessageFigures(Messages messages)
      : width(messages.width), cells(array_of(std::move(messages.cells))), wide(std::move(messages.wide)) {}

  Vertex width;
  Array<std::uint64_t> cells;
  std::vector<std::vector<Vertex>> wide;
};

struct FoundOrder {
  Array<Vertex> order;
  MessageFigures messages;
  double seconds;
  bool is_complete;
};

FoundOrder find_order(Words<const double> sizes, Words<const std::int64_t> offsets, Words<const Vertex> members,
                      const std::vector<std::string>& rules, bool anneal, std::int64_t rounds, double seconds,
                      double patience, double limit, std::uint64_t seed, int threads, double slowest) {
  Options options;
  for (const auto& rule : rules) options.rules.push_back(rule_of(rule));
  options.anneal = anneal;
  options.rounds = rounds;
  options.patience = patience;
  options.limit = limit;
  options.seed = seed;
  options.threads = threads;
  Clock clock(seconds, slowest);
  Graph graph;
  std::optional<Search> search;
  std::optional<Order> order;
  bool is_begun;
  {
    nb::gil_scoped_release release;
    graph = graph_of(sizes, offsets, members);
    is_begun = is_small(graph);
    search.emplace(graph, options);
    if (is_begun) order = search_at_once(graph, options, *search, clock);
  }
  if (!order) order = search_interruptibly(*search, is_begun, clock);
  search.reset();
  Messages messages;
  {
    nb::gil_scoped_release release;
    const EliminationTree tree = eliminate(graph, *order);
    messages = messages_of(graph, tree);
    if (graph.count() >= many_vertices) order = in_postorder(tree);
    // Frees up to a million lists while the interpreter's lock is released.
    graph = {};
  }
  return {array_of(std::move(*order)), MessageFigures(std::move(messages)), clock.counted(), true};
}

FoundOrder find_partial_order(Words<const double> sizes, Words<const std::int64_t> offsets, Words<const Vertex> members,
                              double log_cells, std::uint64_t seed) {
  PartialOrder partial;
  Messages messages;
  bool is_complete;
  Clock clock(std::numeric_limits<double>::infinity());
  {
    nb::gil_scoped_release release;
    const Graph graph = graph_of(sizes, offsets, members);
    Random random(seed);
    partial = greedy_up_to(graph, log_cells, random, clock);
    is_complete = partial.widest == none;
    if (is_complete) {
      const EliminationTree tree = eliminate(graph, partial.order);
      messages = messages_of(graph, tree);
      if (graph.count() >= many_vertices) partial.order = in_postorder(tree);
    } else {
      messages.cells.assign(graph.count(), 1);
      messages.cells[partial.widest] = 0;
      messages.width = static_cast<Vertex>(partial.separator.size());
      messages.wide.push_back(std::move(partial.separator));
    }
  }
  return {array_of(std::move(partial.order)), MessageFigures(std::move(messages)), clock.counted(), is_complete};
}

MessageFigures messages(Words<const double> sizes, Words<const std::int64_t> offsets, Words<const Vertex> members,
                        Words<const Vertex> order) {
  Messages messages;
  {
    nb::gil_scoped_release release;
    const Graph graph = graph_of(sizes, offsets, members);
    messages = messages_of(graph, eliminate(graph, list_of(order)));
  }
  return MessageFigures(std::move(messages));
}

Array<Vertex> barren_removed(Words<const std::int64_t> offsets, Words<const Vertex> members,
                             Words<const Vertex> children, Words<const Vertex> wanted) {
  const std::vector<Vertex> all = list_of(members);
  std::vector<char> marks(all.empty() ? 0 : std::size_t(*std::max_element(all.begin(), all.end())) + 1);
  for (const Vertex v : list_of(wanted))
    if (v < marks.size()) marks[v] = 1;
  return array_of(without_barren(list_of(offsets), all, list_of(children), marks));
}

double part_cells(Words<const double> sizes, Words<const std::int64_t> offsets, Words<const Vertex> members,
                  const nb::bytes& bits) {
  const std::span<const std::uint8_t> marks(static_cast<const std::uint8_t*>(bits.data()), bits.size());
  nb::gil_scoped_release release;
  return cells_of_part(span_of(sizes), span_of(offsets), span_of(members), marks);
}

}  // namespace

void bind_order(nb::module_& m) {
  m.attr("WORTH_A_SEARCH") = worth_a_search;
  m.attr("SEARCH_SHARE") = search_share;
  nb::class_<MessageFigures>(m, "OrderMessages", "Messages along an elimination order.")
      .def_ro("width", &MessageFigures::width, "Largest number of variables with several values in a message.")
      .def_prop_ro(
          "cells", [](const MessageFigures& messages) { return messages.cells; }, nb::rv_policy::reference,
          "Cells of each variable's message; 0 if they exceed 64 bits.")
      .def_ro("wide", &MessageFigures::wide, "Separators of the messages whose cells exceed 64 bits.");
  nb::class_<FoundOrder>(m, "FoundOrder", "An elimination order and its messages.")
      .def_prop_ro(
          "order", [](const FoundOrder& self) { return self.order; }, nb::rv_policy::reference, "All variables.")
      .def_ro("messages", &FoundOrder::messages, "Messages along the order.")
      .def_ro("seconds", &FoundOrder::seconds, "Seconds of the search, counted by its work.")
      .def_ro("is_complete", &FoundOrder::is_complete,
              "False if a bucket was too wide to go on: further variables are only listed, and `messages` has "
              "that bucket's message alone.");
  m.def("find_order", &find_order, nb::arg("sizes"), nb::arg("offsets"), nb::arg("members"), nb::kw_only(),
        nb::arg("rules"), nb::arg("anneal"), nb::arg("rounds"), nb::arg("seconds"), nb::arg("patience"),
        nb::arg("limit"), nb::arg("seed"), nb::arg("threads"), nb::arg("slowest") = slowest,
        "Return an elimination order of little work; the arguments are trusted. The clock ends the search "
        "after `slowest` times `seconds`.");
  m.def("find_partial_order", &find_partial_order, nb::arg("sizes"), nb::arg("offsets"), nb::arg("members"),
        nb::arg("log_cells"), nb::arg("seed"),
        "Return an elimination order by fill-in. From a bucket of more than 2^log_cells cells on, or if a part "
        "of the graph has such a bucket, variables are only listed.");
  m.def("messages", &messages, nb::arg("sizes"), nb::arg("offsets"), nb::arg("members"), nb::arg("order"),
        "Return the messages along an order.");
  m.def("cells_of_part", &part_cells, nb::arg("sizes"), nb::arg("offsets"), nb::arg("members"), nb::arg("bits"),
        "Return the number of cells of all buckets of a quick min-fill elimination of the scopes whose bits "
        "are set; the first scope has the lowest bit of the first byte.");
  m.def("without_barren", &barren_removed, nb::arg("offsets"), nb::arg("members"), nb::arg("children"),
        nb::arg("wanted"),
        "Return the numbers of the scopes that remain, ascending, after scopes are removed one by one: a "
        "scope is removed if its own variable is in no other remaining scope and is not wanted. A scope names "
        "each variable once; `children` has the own variables, all different.");
}

}  // namespace elimina::order
