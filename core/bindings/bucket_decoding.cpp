#include "exec/bucket_decoding.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>

#include <array>
#include <vector>

#include "arrays.hpp"
#include "module.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace elimina {
namespace {

using CellArray = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using NoiseRows = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

Array<int, 2> decoded_buckets(const CellArray& arena, const std::array<Words<const i64>, 7>& arrays,
                              const nb::object& forbidden, int sign, const NoiseRows& noise) {
  const auto& [sizes, table_starts, offsets, strides, axis_starts, axis_variables, axis_strides] = arrays;
  const BucketTables tables{span_of(sizes),       span_of(table_starts),   span_of(offsets),     span_of(strides),
                            span_of(axis_starts), span_of(axis_variables), span_of(axis_strides)};
  const std::size_t variables = tables.sizes.size(), states = noise.shape(1), count = noise.shape(0) + 1;
  std::vector<int> assignments(count * variables);
  const auto run = [&]<class Value>() {
    if (arena.dtype() != nb::dtype<Value>()) return false;
    const auto never = nb::cast<Value>(forbidden);
    const std::span<const Value> cells{static_cast<const Value*>(arena.data()), arena.size()};
    unlocked([&] {
      for (std::size_t number = 0; number < count; ++number) {
        const double* row = noise.data() + (number - 1) * states;
        decode_buckets(cells, tables, never, double(sign),
                       number == 0 ? std::span<const double>{} : std::span<const double>{row, states},
                       std::span(assignments).subspan(number * variables, variables));
      }
    });
    return true;
  };
  if (!(run.operator()<i16>() || run.operator()<i32>() || run.operator()<i64>() || run.operator()<float>() ||
        run.operator()<double>()))
    throw nb::value_error("buckets have costs or logarithms");
  return array_of(std::move(assignments), std::array{count, variables});
}

}  // namespace

void bind_bucket_decoding(nb::module_& m) {
  m.def("decode_buckets", &decoded_buckets, "arena"_a, "tables"_a, "forbidden"_a, "sign"_a, "noise"_a,
        "Return a row for each assignment, decoded from the tables of buckets: one without noise, and one for each row "
        "of noise. See core/exec/bucket_decoding.hpp.");
}

}  // namespace elimina
