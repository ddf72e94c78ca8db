#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "module.hpp"
#include "plan/arena.hpp"
#include "plan/contents.hpp"
#include "plan/mini_buckets.hpp"
#include "plan/records.hpp"
#include "stop.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace elimina::plan {
namespace {

// Returns a view of one of a layout's vectors, which keeps the layout alive.
template <auto kMember>
auto view_of(nb::handle_t<LaidOutSteps> self) {
  auto& items = nb::cast<LaidOutSteps&>(self).*kMember;
  using T = typename std::remove_reference_t<decltype(items)>::value_type;
  return Array<T>(items.data(), {items.size()}, self);
}

// Returns a view of one of a layout's vectors or, if records are deferred, an array that is made on demand.
template <auto kMember, auto kMake>
auto view_or_make(nb::handle_t<LaidOutSteps> self) {
  const auto& laid_out = nb::cast<LaidOutSteps&>(self);
  return laid_out.is_deferred ? array_of(unlocked([&] { return (laid_out.*kMake)(); })) : view_of<kMember>(self);
}

std::vector<std::vector<std::vector<int>>> partition(const std::vector<int>& sizes,
                                                     std::vector<std::vector<int>> scopes,
                                                     const std::vector<Words<const double>>& tables, int ibound,
                                                     double infinite_sum, int threads) {
  if (scopes.size() != tables.size()) throw nb::value_error("as many scopes as tables are needed");
  std::vector<Costs> costs;
  for (std::size_t n = 0; n < tables.size(); ++n)
    costs.push_back({std::move(scopes[n]), Values(tables[n].data(), tables[n].data() + tables[n].size())});
  nb::gil_scoped_release release;
  return partition_by_content(sizes, std::move(costs), ibound, infinite_sum, threads);
}

struct PlannedSteps {
  std::shared_ptr<PlannedTree> tree;
  std::shared_ptr<Steps> steps;
};

void check_variables(const std::vector<int>& variables, std::size_t count) {
  for (const int v : variables)
    if (v < 0 || static_cast<std::size_t>(v) >= count) throw nb::index_error("a scope or the order names no variable");
}

std::shared_ptr<PlannedTree> make_tree(Words<const i64> sizes, Words<const i64> starts, Words<const int> members,
                                       Words<const int> order, Words<const int> kept, std::optional<int> ibound,
                                       const std::optional<Partition>& partition) {
  Lists listed;
  listed.starts = list_of(starts);
  listed.items = list_of(members);
  std::vector<i64> domain_sizes = list_of(sizes);
  std::vector<int> along = list_of(order), rest = list_of(kept);
  check_variables(listed.items, domain_sizes.size());
  check_variables(along, domain_sizes.size());
  check_variables(rest, domain_sizes.size());
  nb::gil_scoped_release release;
  return std::make_shared<PlannedTree>(plan_tree(std::move(listed), std::move(domain_sizes), std::move(along),
                                                 std::move(rest), ibound, partition ? &*partition : nullptr));
}

nb::tuple lists_of(const Lists& lists) { return nb::make_tuple(array_of(lists.starts), array_of(lists.items)); }

// Maximal cliques; scopes and separators as starts and members.
struct PlannedCliques {
  nb::tuple scopes, separators;
  Array<int> parents;
};

PlannedSteps make_steps(std::shared_ptr<PlannedTree> tree, const std::string& passes, int tables, bool matched,
                        Words<const double> weights, Words<const int> wanted, bool products, bool fused,
                        const std::vector<std::vector<int>>& families) {
  PlannedSteps made{tree, std::make_shared<Steps>()};
  const std::vector<double> weight_list = list_of(weights);
  const std::vector<int> asked = list_of(wanted);
  const Lists joint = Lists::of(families);
  check_variables(joint.items, tree->sizes.size());
  const StepRules rules{tables, products, fused};
  nb::gil_scoped_release release;
  check_stop();
  if (passes == "both") {
    // If a message fits no memory, only the figures of the plan are of use. Its downward pass is not planned, because
    // that would take minutes.
    const bool is_possible = tree->largest() < kMostCells;
    *made.steps = both_passes(tree->tree, tree->scopes, tree->sizes, rules, is_possible ? asked : std::vector<int>(),
                              is_possible ? joint : Lists());
  } else if (passes == "joint") {
    *made.steps = joint_steps(tree->tree, tree->scopes, tree->sizes, rules);
  } else {
    std::vector<int> sequence;
    if (passes == "postorder") {
      sequence = tree->tree.postorder();
    } else {
      for (int number = 0; number < int(tree->tree.size()); ++number) sequence.push_back(number);
    }
    *made.steps =
        upward_steps(tree->tree, tree->scopes, tree->sizes, sequence, rules, matched, weight_list, passes == "lasting");
  }
  return made;
}

// `plan::RowBounds` for Python: for each node, the tables that bound its message (`upward`) and the cost outside its
// subtree (`downward`), as starts and members.
struct BoundSteps {
  PlannedSteps steps;
  nb::tuple upward, downward;
};

BoundSteps make_bounds(std::shared_ptr<PlannedTree> tree, int tables, i64 cells) {
  RowBounds bounds = unlocked([&] { return row_bounds(tree->tree, tree->scopes, tree->sizes, tables, cells); });
  return {PlannedSteps{tree, std::make_shared<Steps>(std::move(bounds.steps))}, lists_of(bounds.upward),
          lists_of(bounds.rest)};
}

PlannedSteps move_steps(const PlannedSteps& planned, Words<const int> sequence) {
  return {planned.tree, std::make_shared<Steps>(planned.steps->moved({sequence.data(), sequence.size()}))};
}

LaidOutSteps lay_out_steps(const PlannedSteps& planned, i64 itemsize, i64 kept_from, Words<const int> levels,
                           Words<const double> runs, const Words<const double>& speed, i64 most_words,
                           i64 deferred_words) {
  if (speed.size() != 7) throw nb::value_error("a speed is seven numbers");
  const double* const figures_of_speed = speed.data();
  const Speed figures{figures_of_speed[0], figures_of_speed[1], figures_of_speed[2], figures_of_speed[3],
                      figures_of_speed[4], figures_of_speed[5], figures_of_speed[6]};
  const std::vector<int> level_list = list_of(levels);
  const std::vector<double> times = list_of(runs);
  nb::gil_scoped_release release;
  check_stop();
  const i64 factors = planned.tree->scopes.size();
  LaidOutSteps laid_out{lay_out(*planned.steps, factors, planned.tree->sizes, itemsize, kept_from, level_list, times,
                                figures, most_words, deferred_words),
                        {},
                        {},
                        itemsize};
  if (laid_out.is_deferred) laid_out.steps = planned.steps, laid_out.sizes = planned.tree->sizes;
  return laid_out;
}

Array<i64> first_sizes(const LaidOutSteps& self, Words<const i64> steps) {
  if (!self.steps) throw nb::value_error("the records are not deferred");
  std::vector<i64> sizes;
  for (const i64 number : span_of(steps))
    sizes.push_back(self.sizes[self.steps->scopes[self.steps->steps.at(std::size_t(number)).scope]
                                                 [self.steps->axes_of(number).front()]]);
  return array_of(std::move(sizes));
}

struct StepTables {
  Array<i64> starts;
  Array<int> sources, factors;
  Array<double> combinations;
};

StepTables tables_of(const PlannedSteps& planned) {
  std::vector<int> sources, factors;
  for (const Read& read : planned.steps->reads) {
    sources.push_back(read.source);
    factors.push_back(read.factor());
  }
  std::vector<double> work;
  for (const Step& step : planned.steps->steps) {
    work.push_back(double(step.domain));
    for (const int v : planned.steps->scopes[step.scope]) work.back() *= double(planned.tree->sizes[v]);
  }
  return {array_of(planned.steps->first), array_of(std::move(sources)), array_of(std::move(factors)),
          array_of(std::move(work))};
}

}  // namespace

void bind_plan(nb::module_& m) {
  nb::class_<PlannedCliques>(m, "PlannedCliques", "Maximal cliques of a tree's triangulation.")
      .def_ro("scopes", &PlannedCliques::scopes, "Starts and members of the cliques.")
      .def_ro("separators", &PlannedCliques::separators, "Starts and members of the separators from their parents.")
      .def_ro("parents", &PlannedCliques::parents, nb::rv_policy::reference, "Parent of each clique; -1 for a root.");
  nb::class_<PlannedTree>(m, "PlannedTree",
                          "A bucket tree over the scopes of a problem's factors, in elimination order.")
      .def(nb::new_(&make_tree), "sizes"_a, "starts"_a, "members"_a, "order"_a, "kept"_a, "ibound"_a.none(),
           "partition"_a.none(),
           "Eliminate symbolically; the arguments are trusted. Scope `f` is `members[starts[f]:starts[f + 1]]`.")
      .def_prop_ro(
          "width", [](const PlannedTree& self) { return self.tree.width(); }, "Induced width.")
      .def_prop_ro(
          "depth", [](const PlannedTree& self) { return self.tree.depth(); },
          "Number of nodes on the longest path from a root.")
      .def_prop_ro(
          "order", [](const PlannedTree& self) { return self.tree.order; }, "Eliminated variables, in order.")
      .def_prop_ro(
          "scopes", [](const PlannedTree& self) { return lists_of(self.scopes); },
          "Starts and members of the scopes, sorted by the order.")
      .def_prop_ro(
          "variables", [](const PlannedTree& self) { return array_of(self.tree.variables); }, nb::rv_policy::reference,
          "Variable that each node eliminates.")
      .def_prop_ro(
          "parents", [](const PlannedTree& self) { return array_of(self.tree.parents); }, nb::rv_policy::reference,
          "Parent of each node; -1 for a root.")
      .def_prop_ro(
          "separators", [](const PlannedTree& self) { return lists_of(self.tree.separators); },
          "Starts and members of the nodes' separators.")
      .def_prop_ro(
          "factors", [](const PlannedTree& self) { return lists_of(self.tree.factors); },
          "Starts and members of the nodes' factors.")
      .def_prop_ro(
          "children", [](const PlannedTree& self) { return lists_of(self.tree.children); },
          "Starts and members of the nodes' children.")
      .def_prop_ro(
          "postorder", [](const PlannedTree& self) { return array_of(self.tree.postorder()); },
          nb::rv_policy::reference,
          "Nodes in an order in which each subtree is finished before the next begins, so that few messages "
          "coexist.")
      .def(
          "cliques",
          [](const PlannedTree& self) {
            const Cliques cliques = junction_tree(self.tree);
            return PlannedCliques{lists_of(cliques.scopes), lists_of(cliques.separators), array_of(cliques.parents)};
          },
          "Return the maximal cliques.")
      .def(
          "central_order",
          [](const PlannedTree& self) {
            nb::gil_scoped_release release;
            return central_order(self.tree, self.sizes);
          },
          "Return an order of the same triangulation whose junction tree has the fewest levels.");
  nb::class_<StepTables>(m, "StepTables", "Tables that the steps of a plan read, those of one step after another.")
      .def_ro("starts", &StepTables::starts, nb::rv_policy::reference, "Starts of the steps' tables.")
      .def_ro("sources", &StepTables::sources, nb::rv_policy::reference, "Step that writes each table; -1: a factor.")
      .def_ro("factors", &StepTables::factors, nb::rv_policy::reference, "Factor of each table; -1: a message.")
      .def_ro("combinations", &StepTables::combinations, nb::rv_policy::reference, "Combinations of each step.");
  nb::class_<PlannedSteps>(m, "PlannedSteps", "The steps of a plan before memory is laid out.")
      .def_prop_ro(
          "most_tables", [](const PlannedSteps& self) { return self.steps->most_tables; },
          "Largest number of tables that a step reads.")
      .def_prop_ro(
          "outputs",
          [](const PlannedSteps& self) {
            std::vector<i64> numbers;
            for (const Output& output : self.steps->outputs)
              numbers.insert(numbers.end(), {output.step, output.variable});
            return array_of(std::move(numbers));
          },
          nb::rv_policy::reference,
          "Step of each part of the answer, and the variable whose marginal it is (-1: none); families come "
          "last.")
      .def_prop_ro("tables", &tables_of, nb::rv_policy::move, "Tables that each step reads.")
      .def("moved", &move_steps, "sequence"_a, "Return the same steps in another sequence.")
      .def("lay_out", &lay_out_steps, "itemsize"_a, "kept_from"_a, "levels"_a, "runs"_a, "speed"_a, "most_words"_a,
           "deferred_words"_a,
           "Lay the steps' tables out in memory. `kept_from`: first step whose tables stay after it has read them. "
           "`levels`: level of each step; empty: all 0. `runs`: number of "
           "runs of each level's steps. `speed`: bytes and combinations a second, seconds of a step, bytes and "
           "combinations a second of one thread, combinations of the smallest step that threads share, and "
           "combinations a second of a matrix product, relative to those of other steps. "
           "`most_words`: largest number of words of records; more are left out. `deferred_words`: smallest "
           "number of words of records that are written when they are read.");
  m.def(
      "mini_buckets",
      [](const std::vector<std::vector<int>>& scopes, int ibound) {
        const std::vector<std::span<const int>> spans(scopes.begin(), scopes.end());
        return MiniBuckets().divide(spans, ibound + 1);
      },
      "scopes"_a, "ibound"_a,
      "Partition a bucket: each table, the largest first, joins the mini-bucket to which it adds the "
      "fewest variables.");
  m.def(
      "mini_buckets_of_cells",
      [](const std::vector<std::vector<int>>& scopes, const std::vector<std::vector<i64>>& shapes, i64 cells) {
        const std::vector<std::span<const int>> spans(scopes.begin(), scopes.end());
        std::vector<int> weights;
        for (std::size_t n = 0; n < scopes.size(); ++n)
          for (std::size_t axis = 0; axis < scopes[n].size(); ++axis) {
            weights.resize(std::max(weights.size(), std::size_t(scopes[n][axis]) + 1));
            weights[scopes[n][axis]] = cell_weight(shapes[n][axis]);
          }
        return MiniBuckets().divide(spans, cell_weight(cells), weights);
      },
      "scopes"_a, "shapes"_a, "cells"_a,
      "Partition tables of some shapes in the same way, into mini-buckets of at most `cells` cells.");
  m.def("partition_by_content", &partition, "sizes"_a, "scopes"_a, "tables"_a, "ibound"_a, "infinite_sum"_a,
        "threads"_a,
        "Partition each bucket by the contents of its tables: see `contents.hpp`. Variables are places in "
        "the order of elimination.");
  m.def("plan_steps", &make_steps, "tree"_a, "passes"_a, "tables"_a, "matched"_a, "weights"_a, "wanted"_a,
        "products"_a = false, "fused"_a = false, "families"_a = std::vector<std::vector<int>>(),
        "Return the steps over a tree. `passes`: `upward`, `lasting` (upward, and messages stay), "
        "`postorder`, `both` or `joint`. `products`: steps may be matrix products, so even small buckets "
        "join the tables of each side. `fused`: upward, a step may eliminate several variables. `families`: "
        "sets of variables whose joint marginals are wanted, too, each of them within the scope of a table.");
  nb::class_<BoundSteps>(m, "BoundSteps", "Steps that bound messages, and the tables of each node's bounds.")
      .def_ro("steps", &BoundSteps::steps, "The steps.")
      .def_ro("upward", &BoundSteps::upward, "Starts and tables of each node's message.")
      .def_ro("downward", &BoundSteps::downward, "Starts and tables of the rest of the problem, at each node.");
  m.def("row_bounds", &make_bounds, "tree"_a, "tables"_a, "cells"_a,
        "Return the bounds with which steps on tuples prune: the steps that compute them, and for each node "
        "the tables that bound its message, and those that bound the cost outside its subtree. A factor is "
        "its number, a message -1 minus the number of its step.");
  nb::class_<Arena>(m, "Arena",
                    "Allocator of spans of one block of memory, which reuses freed spans and records its peak.")
      .def(nb::init<i64>(), "itemsize"_a)
      .def("allocate", &Arena::allocate, "span"_a,
           "Return the offset of the first free span that fits; if none does, the height grows.")
      .def("seal", &Arena::seal, "Leave free spans below the height unused.")
      .def("give_back", &Arena::give_back, "offset"_a, "span"_a,
           "Make a span free again, merged with its free neighbours.")
      .def_prop_ro("height", &Arena::height, "Number of elements up to the end of the highest span so far.");
  nb::class_<LaidOutSteps>(m, "PlannedLayout", "Offsets of a plan's tables, and its steps as records.")
      .def_ro("record_words", &Layout::record_words, "Number of words of all records, also if they are left out.")
      .def_ro("factor_cells", &Layout::factor_cells, "Number of elements of the factors.")
      .def_ro("arena_cells", &Layout::arena_cells, "Number of elements of the arena.")
      .def_ro("largest", &Layout::largest, "Number of cells of the largest table.")
      .def_ro("work", &Layout::work, "Combinations of output cells and eliminated values, over all runs.")
      .def_ro("operations", &Layout::operations, "Combinations times the tables that they read, over all runs.")
      .def_ro("seconds", &Layout::seconds, "Estimated time of the steps, over all runs.")
      .def_prop_ro("offsets", &view_of<&Layout::offsets>, "Offset of each factor.")
      .def_prop_ro("spans", &view_of<&Layout::spans>, "Number of elements of each factor.")
      .def_prop_ro("strides", &view_of<&Layout::strides>, "Strides of the factors' axes, one factor after another.")
      .def_ro("is_deferred", &Layout::is_deferred,
              "True if records are written when they are read; then each access to a property of records writes "
              "them again.")
      .def_prop_ro("words", &view_or_make<&Layout::words, &LaidOutSteps::all_words>, nb::rv_policy::reference,
                   "Records, one after another.")
      .def_prop_ro("starts", &view_or_make<&Layout::starts, &LaidOutSteps::all_starts>, nb::rv_policy::reference,
                   "Start of each record.")
      .def_prop_ro("factors", &view_or_make<&Layout::factors, &LaidOutSteps::all_factors>, nb::rv_policy::reference,
                   "Factor of each table that is read; -1: a message.")
      .def_prop_ro("out_spans", &view_of<&Layout::out_spans>, "Number of elements of each step's output.")
      .def_prop_ro("out_offsets", &view_of<&Layout::out_offsets>,
                   "Start of each step's output in the arena; empty unless records are deferred.")
      .def_prop_ro(
          "most_tables", [](const LaidOutSteps& self) { return self.steps ? self.steps->most_tables : 0; },
          "Largest number of tables that a step reads; 0 unless records are deferred.")
      .def("first_sizes", &first_sizes, "steps"_a,
           "Return the number of values of the first variable of each of these steps' outputs, which must have "
           "one; the records must be deferred.");
}

}  // namespace elimina::plan
