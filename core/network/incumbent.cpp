#include "network/incumbent.hpp"

#include <numeric>

#include "network/local_search.hpp"
#include "tables/encode.hpp"

namespace elimina::network {

namespace {

constexpr i64 kForbidden = i64{1} << 40;  // differences from here on count as forbidden: sums of thousands are exact as floats
constexpr i64 kBlock = 1 << 16;           // cells that are encoded at a time

}  // namespace

std::optional<i64> incumbent_cost(const tables::Tables& tables, tables::Sense sense, u64 visits) {
  const i64 count = tables.size();
  for (const tables::Ends& ends : tables.ends(sense))
    if (!ends.any) return std::nullopt;
  View view{{Type::int64, 1, double(kForbidden)}, {}, {}};
  std::vector<int> members(count), variables, number;
  std::iota(members.begin(), members.end(), 0);
  std::vector<i64> starts{0}, sizes, strides, offsets;
  i64 cells = 0;
  for (i64 table = 0; table < count; ++table) {
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
  std::vector<i64> member_starts(count + 1), arena(cells);
  std::iota(member_starts.begin(), member_starts.end(), 0);
  const tables::Places places{member_starts, members, starts, variables, sizes, strides, offsets};
  encode(tables, sense, tables::Rule::distances, kForbidden, places, {member_starts.data(), std::size_t(count)}, tables::Number::i64,
         reinterpret_cast<char*>(arena.data()), kBlock);
  for (i64 table = 0; table < count; ++table) {
    view.functions.push_back({arena.data() + offsets[table], {}});
    for (i64 axis = starts[table]; axis < starts[table + 1]; ++axis) {
      const auto v = std::size_t(variables[axis]);
      if (v >= number.size()) number.resize(v + 1, -1);
      if (number[v] < 0) {
        number[v] = int(view.sizes.size());
        view.sizes.push_back(int(sizes[axis]));
      }
      view.functions.back().axes.push_back({number[v], strides[axis]});
    }
  }
  const std::vector<View::Function> functions = view.functions;
  LocalSearch local(std::move(view), 0);
  local.start(std::vector<int>(local.count()));
  local.descend(visits);
  local.run(visits);
  i64 total = 0;
  for (const View::Function& function : functions) {
    const auto* cell = static_cast<const i64*>(function.cells);
    for (const auto& [v, stride] : function.axes) cell += stride * local.best()[v];
    total += *cell;
    if (total >= kForbidden) return std::nullopt;
  }
  return total;
}

}  // namespace elimina::network
