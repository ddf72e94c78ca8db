// Decodes assignments from the tables of buckets, variable after variable in reverse elimination order.
#pragma once
#include <limits>
#include <span>
#include <vector>

#include "elimina/config.hpp"
#include "stop.hpp"

namespace elimina {

// Factors and messages, sorted by the bucket that reads them: the arrays of planning/bucket_tables.py.
struct BucketTables {
  std::span<const i64> sizes, table_starts, offsets, strides, axis_starts, axis_variables, axis_strides;
};

// Gives each variable its value of least cost, the first one of equals. A value's cost is the sum of its cells in the
// bucket's tables, times `sign`, minus noise; it is infinite if one of these cells is `forbidden`. `noise`: a number
// for each value of each variable, or nothing.
template <class Value>
void decode_buckets(std::span<const Value> arena, const BucketTables& tables, Value forbidden, double sign,
                    std::span<const double> noise, std::span<int> assignment) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> costs;
  Looks looks;
  i64 states = 0;
  for (const i64 size : tables.sizes) states += size;
  for (std::size_t v = tables.sizes.size(); v-- > 0;) {
    looks.look();
    const i64 size = tables.sizes[v];
    states -= size;
    costs.assign(std::size_t(size), 0.0);
    if (!noise.empty())
      for (i64 x = 0; x < size; ++x) costs[std::size_t(x)] = -noise[std::size_t(states + x)];
    for (i64 t = tables.table_starts[v]; t < tables.table_starts[v + 1]; ++t) {
      const std::size_t table = std::size_t(t);
      i64 first = tables.offsets[table];
      for (i64 axis = tables.axis_starts[table]; axis < tables.axis_starts[table + 1]; ++axis)
        first +=
            assignment[std::size_t(tables.axis_variables[std::size_t(axis)])] * tables.axis_strides[std::size_t(axis)];
      for (i64 x = 0; x < size; ++x) {
        const Value cell = arena[std::size_t(first + x * tables.strides[table])];
        costs[std::size_t(x)] += cell == forbidden ? infinity : sign * double(cell);
      }
    }
    i64 best = 0;
    for (i64 x = 1; x < size; ++x)
      if (costs[std::size_t(x)] < costs[std::size_t(best)]) best = x;
    assignment[v] = int(best);
  }
}

}  // namespace elimina
