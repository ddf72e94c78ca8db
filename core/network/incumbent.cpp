#include "network/incumbent.hpp"

#include <algorithm>
#include <numeric>

#include "network/local_search.hpp"
#include "tables/encode.hpp"

namespace elimina::network {

namespace {

// Costs that exceed the best possible cost by at least this much count as forbidden. Doubles hold sums of thousands of
// smaller costs exactly.
constexpr i64 kForbidden = i64{1} << 40;
constexpr i64 kBlock = 1 << 16;  // number of cells that are encoded at a time
constexpr u64 kVisits = 10'000;  // visits of each cell: more tabu moves do not improve small models

// Copies of tables, one after the other, the last variable fastest.
struct Copies {
  std::vector<int> members, variables;
  std::vector<i64> starts{0}, sizes, strides, offsets;
  i64 cells = 0;

  Copies(const tables::Tables& tables, const Effort& effort) {
    for (i64 table = 0; table < tables.size(); ++table) {
      const i64 max_cells = tables.source(table).listing ? effort.listed_table : effort.table;
      if (tables.cells(table) > std::min(max_cells, effort.all - cells)) continue;
      members.push_back(int(table));
      offsets.push_back(cells);
      const auto scope = tables.scope(table);
      variables.insert(variables.end(), scope.begin(), scope.end());
      sizes.insert(sizes.end(), tables.sizes(table).begin(), tables.sizes(table).end());
      strides.resize(sizes.size());
      i64 stride = 1;
      for (i64 axis = i64(sizes.size()); axis-- > starts.back(); stride *= sizes[axis]) strides[axis] = stride;
      starts.push_back(i64(sizes.size()));
      cells += stride;
    }
  }

  std::vector<char> encoded(const tables::Tables& tables, tables::Sense sense, tables::Number number) const {
    std::vector<char> arena(std::size_t(cells) * sizeof(double));
    std::vector<i64> numbers(members.size() + 1);
    std::iota(numbers.begin(), numbers.end(), 0);
    const tables::FactorArrays factors{numbers, members, starts, variables, sizes, strides, offsets};
    encode(tables, sense, tables::Rule::distances, kForbidden, factors, {numbers.data(), members.size()}, number,
           arena.data(), kBlock, 1);
    return arena;
  }
};

}  // namespace

Incumbent incumbent(const tables::Tables& tables, tables::Sense sense, const Effort& effort) {
  const auto is_allowed = [](const tables::Ends& ends) { return ends.any; };
  if (!std::ranges::all_of(tables.ends(sense), is_allowed)) return {};
  bool is_integer = true;
  for (i64 table = 0; table < tables.size(); ++table)
    is_integer = is_integer && tables.source(table).type == tables::Type::i64;
  const Copies copies(tables, effort);
  const std::vector<char> arena = copies.encoded(tables, sense, is_integer ? tables::Number::i64 : tables::Number::f64);
  View view{{Type::int64, double(kForbidden)}, {}, {}};
  if (!is_integer) view.numbers = {Type::float64, infinite};
  std::vector<int> number, name;
  view.functions.reserve(copies.members.size());
  for (std::size_t copy = 0; copy < copies.members.size(); ++copy) {
    view.functions.push_back({arena.data() + sizeof(double) * std::size_t(copies.offsets[copy]), {}});
    view.functions.back().axes.reserve(std::size_t(copies.starts[copy + 1] - copies.starts[copy]));
    for (i64 axis = copies.starts[copy]; axis < copies.starts[copy + 1]; ++axis) {
      const int v = copies.variables[axis];
      if (std::size_t(v) >= number.size()) number.resize(std::size_t(v) + 1, -1);
      if (number[v] < 0) {
        number[v] = int(name.size());
        name.push_back(v);
        view.sizes.push_back(int(copies.sizes[axis]));
      }
      view.functions.back().axes.push_back({number[v], copies.strides[axis]});
    }
  }
  LocalSearch local(std::move(view), 0);
  local.start(std::vector<int>(local.count()));
  local.descend(effort.descent);
  // The copies hold distances from each table's least cost, so an assignment of cost 0 is optimal.
  const u64 moves = std::min(effort.moves, kVisits * u64(copies.cells));
  if (moves > 0 && local.cost() > 0) local.run(moves);
  Incumbent incumbent;
  for (std::size_t v = 0; v < name.size(); ++v) incumbent.values.emplace_back(name[v], local.best()[v]);
  if (!is_integer || i64(copies.members.size()) < tables.size()) return incumbent;
  i64 total = 0;
  for (std::size_t copy = 0; copy < copies.members.size(); ++copy) {
    i64 cell = copies.offsets[copy];
    for (i64 axis = copies.starts[copy]; axis < copies.starts[copy + 1]; ++axis)
      cell += copies.strides[axis] * local.best()[number[copies.variables[axis]]];
    total += tables::load<i64>(arena.data() + sizeof(i64) * std::size_t(cell));
    if (total >= kForbidden) return incumbent;
  }
  incumbent.cost = total;
  return incumbent;
}

}  // namespace elimina::network
