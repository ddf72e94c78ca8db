#include "exec/sparse/decode.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "arrays.hpp"
#include "exec/paths.hpp"
#include "kinds.hpp"
#include "module.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace elimina::sparse {
namespace {

template <class T>
using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Keys = Matrix<const u64>;
using Values = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MadeKeys = nb::ndarray<nb::numpy, u64, nb::ndim<2>>;
using MadeValues = nb::ndarray<nb::numpy, nb::ndim<1>>;

struct Rows {
  MadeKeys keys;
  MadeValues values;
  i64 candidates;
};

Ring ring_of(const std::string& semiring, double parameter, i64 integer_parameter, nb::dlpack::dtype dtype) {
  const SemiringKind kind = semiring_kind(semiring);
  const ValueKind value = value_kind(dtype, kind);
  if (value == ValueKind::int16) throw nb::value_error("sparse tables have no 16-bit values");
  return {kind, value, parameter, integer_parameter};
}

const RowsFunctions& functions_of(std::size_t words) {
  const RowsFunctions* functions = rows_functions(int(std::min<std::size_t>(words, 1000)));
  if (!functions) throw nb::value_error("keys have 1 to 4 words");
  return *functions;
}

int value_bytes(const Values& values) {
  const std::size_t bytes = values.itemsize();
  if (bytes != 4 && bytes != 8) throw nb::value_error("values have 4 or 8 bytes");
  return int(bytes);
}

Table table_of(const Keys& keys, const Values& values) {
  if (keys.shape(0) != values.shape(0)) throw nb::value_error("there must be as many values as keys");
  return {keys.data(), values.data(), i64(values.shape(0))};
}

nb::capsule owner_of(Buffer&& buffer) {
  return nb::capsule(new Buffer(std::move(buffer)), [](void* at) noexcept { delete static_cast<Buffer*>(at); });
}

MadeKeys made_keys(Buffer&& buffer, i64 rows, std::size_t words) {
  u64* data = buffer.as<u64>();
  return MadeKeys(data, {std::size_t(rows), words}, owner_of(std::move(buffer)));
}

Rows rows_of(OwnedTable&& table, std::size_t words, nb::dlpack::dtype dtype) {
  const std::size_t rows = std::size_t(table.rows);
  void* values = table.values.as<void>();
  return {made_keys(std::move(table.keys), table.rows, words),
          MadeValues(values, {rows}, owner_of(std::move(table.values)), {}, dtype), table.candidates};
}

void check_words(const Words<const u64>& mask, std::size_t words) {
  if (mask.size() != words) throw nb::value_error("a mask has as many words as a key");
}

Rows join(const std::string& semiring, double parameter, i64 integer_parameter, Keys left_keys, Values left_values,
          Keys right_keys, Values right_values, Words<const u64> group, u64 low, bool eliminate, Words<const i64> stage,
          double budget, i64 integer_budget, i64 max_rows, int threads) {
  const std::size_t words = left_keys.shape(1);
  if (right_keys.shape(1) != words || left_values.dtype() != right_values.dtype())
    throw nb::value_error("both tables must have the same words and dtype");
  check_words(group, words);
  const Ring ring = ring_of(semiring, parameter, integer_parameter, left_values.dtype());
  const Table left = table_of(left_keys, left_values), right = table_of(right_keys, right_values);
  const RowsFunctions& functions = functions_of(words);
  const JoinOrder order{group.data(), low, eliminate, max_rows};
  const StageOrder limits{stage.data(), budget, integer_budget};
  return rows_of(unlocked([&] { return functions.join(ring, left, right, order, limits, threads); }), words,
                 left_values.dtype());
}

Rows project(const std::string& semiring, double parameter, i64 integer_parameter, Keys keys, Values values, u64 low,
             int threads) {
  const Ring ring = ring_of(semiring, parameter, integer_parameter, values.dtype());
  const Table table = table_of(keys, values);
  const RowsFunctions& functions = functions_of(keys.shape(1));
  return rows_of(unlocked([&] { return functions.project(ring, table, low, threads); }), keys.shape(1), values.dtype());
}

Rows semi_join(Keys keys, Values values, Keys others, Words<const u64> group, int threads) {
  if (others.shape(1) != keys.shape(1)) throw nb::value_error("both tables must have the same words");
  check_words(group, keys.shape(1));
  const Table left = table_of(keys, values), right{others.data(), nullptr, i64(others.shape(0))};
  const RowsFunctions& functions = functions_of(keys.shape(1));
  const int bytes = value_bytes(values);
  return rows_of(unlocked([&] { return functions.semi_join(left, bytes, right, group.data(), threads); }),
                 keys.shape(1), values.dtype());
}

bool sorted(Keys keys, int threads) {
  const RowsFunctions& functions = functions_of(keys.shape(1));
  nb::gil_scoped_release release;
  return functions.sorted(keys.data(), i64(keys.shape(0)), threads);
}

Rows sort(Keys keys, Values values, int threads) {
  const Table table = table_of(keys, values);
  const RowsFunctions& functions = functions_of(keys.shape(1));
  const int bytes = value_bytes(values);
  return rows_of(unlocked([&] { return functions.sort(table, bytes, threads); }), keys.shape(1), values.dtype());
}

MadeKeys move(Keys keys, Matrix<const i64> segments, int words, int threads) {
  if (segments.shape(1) != kSegmentWords) throw nb::value_error("a segment has five words");
  functions_of(std::size_t(std::max(words, 0)));
  const RowsFunctions& functions = functions_of(keys.shape(1));
  const i64 rows = i64(keys.shape(0));
  return made_keys(unlocked([&] {
                     return functions.move(keys.data(), rows, segments.data(), i64(segments.shape(0)), words, threads);
                   }),
                   rows, std::size_t(words));
}

Rows from_dense(const std::string& semiring, double parameter, i64 integer_parameter, Values cells,
                Matrix<const i64> axes, Words<const i64> sizes, int words) {
  if (axes.shape(1) != kTermWords || axes.shape(0) != sizes.size())
    throw nb::value_error("an axis has a term and a size");
  i64 all = 1;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) all *= sizes(axis);
  if (all != i64(cells.size())) throw nb::value_error("the sizes do not make up the table");
  const Ring ring = ring_of(semiring, parameter, integer_parameter, cells.dtype());
  const RowsFunctions& functions = functions_of(std::size_t(std::max(words, 0)));
  return rows_of(
      unlocked([&] { return functions.from_dense(ring, cells.data(), axes.data(), sizes.data(), int(sizes.size())); }),
      std::size_t(words), cells.dtype());
}

void to_dense(Keys keys, Values values, Matrix<const i64> terms,
              nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu> cells) {
  if (cells.dtype() != values.dtype() || terms.shape(1) != kTermWords)
    throw nb::value_error("cells and values differ in dtype");
  const Table table = table_of(keys, values);
  const RowsFunctions& functions = functions_of(keys.shape(1));
  const int bytes = value_bytes(values);
  nb::gil_scoped_release release;
  functions.to_dense(table, bytes, terms.data(), i64(terms.shape(0)), cells.data());
}

Array<int> decode(const std::string& semiring, int variables, nb::iterable steps) {
  using Read = std::tuple<Matrix<const i64>, std::optional<Keys>, Values>;
  count_path(Path::rows_decode);
  std::vector<int> assignment(std::size_t(variables), 0);
  for (const nb::handle step : steps) {
    const auto& [variable, domain, tables] = nb::cast<std::tuple<i64, i64, std::vector<Read>>>(step);
    if (tables.empty()) continue;
    std::vector<Readable> read;
    for (const auto& [fields, keys, values] : tables) {
      const auto* first = reinterpret_cast<const Readable::Field*>(fields.data());
      read.push_back({{first, first + fields.shape(0)},
                      keys ? keys->data() : nullptr,
                      keys ? i64(keys->shape(1)) : 0,
                      i64(values.size()),
                      values.data()});
    }
    const Ring ring = ring_of(semiring, 0, 0, std::get<2>(tables.front()).dtype());
    assignment[std::size_t(variable)] = int(best_value(ring, variable, domain, read, assignment.data()));
  }
  return array_of(std::move(assignment));
}

}  // namespace

void bind_rows(nb::module_& m) {
  nb::class_<Rows>(m, "TableRows", "Rows of a sparse table.")
      .def_ro("keys", &Rows::keys, nb::rv_policy::reference, "Key of each row.")
      .def_ro("values", &Rows::values, nb::rv_policy::reference, "Value of each row.")
      .def_ro("candidates", &Rows::candidates, "Number of candidates of a join.");
  m.def("rows_join", &join, "semiring"_a, "parameter"_a, "integer_parameter"_a, "left_keys"_a, "left_values"_a,
        "right_keys"_a, "right_values"_a, "group"_a, "low"_a, "eliminate"_a, "stage"_a, "budget"_a, "integer_budget"_a,
        "max_rows"_a, "threads"_a,
        "Join two sorted tables with one layout of keys; return its rows. "
        "`low`: bits of the least significant variable, which may be eliminated. Raises OverflowError for "
        "more than `max_rows` rows.");
  m.def("rows_project", &project, "semiring"_a, "parameter"_a, "integer_parameter"_a, "keys"_a, "values"_a, "low"_a,
        "threads"_a, "Eliminate the least significant variable of a sorted table.");
  m.def("rows_semi_join", &semi_join, "keys"_a, "values"_a, "others"_a, "group"_a, "threads"_a,
        "Keep the rows of a sorted table whose bits of `group` occur in another one.");
  m.def("rows_sorted", &sorted, "keys"_a, "threads"_a, "Return whether no key is less than its predecessor.");
  m.def("rows_sort", &sort, "keys"_a, "values"_a, "threads"_a, "Sort rows by key.");
  m.def("rows_move", &move, "keys"_a, "segments"_a, "words"_a, "threads"_a,
        "Return keys in another layout of `words` words.");
  m.def("rows_from_dense", &from_dense, "semiring"_a, "parameter"_a, "integer_parameter"_a, "cells"_a, "axes"_a,
        "sizes"_a, "words"_a,
        "Return the feasible cells of a dense table as sorted rows; `axes`: terms, the most significant "
        "field first.");
  m.def("rows_to_dense", &to_dense, "keys"_a, "values"_a, "terms"_a, "cells"_a,
        "Write rows into the cells of a dense table.");
  m.def("rows_decode", &decode, "semiring"_a, "variables"_a, "steps"_a,
        "Return the first best value of each variable. `steps`: from the roots on, each a variable, its "
        "domain size and its tables. A table has for each variable its number, word and stride; then sorted "
        "keys, or None if it has all cells; and values, all of one dtype.");
}

}  // namespace elimina::sparse
