#include "dcop/work.hpp"

#include <algorithm>

#include "dcop/team.hpp"

namespace elimina::dcop {
namespace {

// Returns the number of different scopes; `sorted` is overwritten.
int different(const plan::Lists& scopes, std::span<const int> factors, std::vector<int>& sorted) {
  if (factors.size() < 2) return int(factors.size());
  sorted.assign(factors.begin(), factors.end());
  const auto before = [&](int a, int b) { return std::ranges::lexicographical_compare(scopes[a], scopes[b]); };
  const auto same = [&](int a, int b) { return std::ranges::equal(scopes[a], scopes[b]); };
  std::ranges::sort(sorted, before);
  return int(std::unique(sorted.begin(), sorted.end(), same) - sorted.begin());
}

// Returns the narrowest type for sums of this many tables with costs up to `spread` in total; nullopt: none is wide
// enough.
std::optional<int> type_of(const Rules& rules, i64 tables, i64 spread) {
  const i64 operands = std::max<i64>(2, std::min(tables, rules.tables));
  for (std::size_t type = 0; type < rules.types.size(); ++type)
    if (spread < rules.types[type].largest / operands) return int(type);
  return std::nullopt;
}

}  // namespace

std::optional<Work> Work::of(const plan::PlannedTree& planned, const tables::Tables& functions, tables::Sense sense,
                             const Rules& rules) {
  const auto& [sizes, scopes, tree] = planned;
  const std::vector<tables::Ends>& ends = functions.ends(sense);
  if (!std::ranges::all_of(ends, &tables::Ends::any)) return std::nullopt;
  const std::vector<i64> numbers = with_variables(functions);
  Work work;
  std::vector<i64> spreads(tree.size());  // spreads of the messages
  std::vector<int> sorted;
  for (i64 number = 0; number < tree.size(); ++number) {
    Elimination node{.variable = tree.variables[number]};
    i64& spread = spreads[number];
    for (const int factor : tree.factors[number]) {
      const tables::Ends& range = ends[numbers[factor]];
      i64 apart;
      if (__builtin_sub_overflow(range.largest, range.least, &apart) ||
          __builtin_add_overflow(spread, apart, &spread) || spread >= rules.spread)
        return std::nullopt;
    }
    for (const int child : tree.children[number]) {
      if (__builtin_add_overflow(spread, spreads[child], &spread)) return std::nullopt;
      node.held += work.nodes[child].size;
    }
    node.tables = different(scopes, tree.factors[number], sorted) + int(tree.children[number].size());
    const auto type = type_of(rules, node.tables, spread);
    if (!type) return std::nullopt;
    node.type = *type;
    node.width = int(tree.separators[number].size());
    node.cells = plan::cells_of(tree.separators[number], sizes);
    node.combinations = plan::times(node.cells, sizes[tree.variables[number]]);
    node.size = plan::times(node.cells, rules.types[*type].bytes);
    if (node.tables == 0) {
      node.operations = node.bytes = 0;
    } else if (*type + 1 < int(rules.types.size()) && node.combinations <= rules.at_once) {
      node.operations = node.tables * node.combinations;
      node.bytes = rules.cell * node.combinations;
    }
    work.nodes.push_back(node);
  }
  return work;
}

Work::Total Work::total() const {
  Total total;
  for (const Elimination& node : nodes) {
    total.most_combinations = std::max(total.most_combinations, node.combinations);
    total.combinations += double(node.combinations);
    if (node.tables == 0) continue;
    total.cells = std::max(total.cells, node.cells);
    total.operations += node.operations;
    total.bytes = std::max(total.bytes, node.bytes + node.held);
    total.type = std::max(total.type, node.type);
  }
  return total;
}

Mail mail(const Work& work, std::span<Traversal* const> traversals, std::span<const int> owners, Envelope util,
          Envelope value) {
  Mail total;
  for (const Elimination& node : work.nodes) {
    const int parent = traversals[node.variable]->parent();
    if (parent < 0 || owners[parent] == owners[node.variable]) continue;
    const i64 up = node.size + util.around(node.width), down = value.around(node.width);
    ++total.messages;
    total.util += up;
    total.value += down;
    total.largest = std::max({total.largest, up, down});
  }
  return total;
}

}  // namespace elimina::dcop
