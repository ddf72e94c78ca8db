#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "interruptible.hpp"
#include "module.hpp"
#include "network/incumbent.hpp"
#include "table_list.hpp"
#include "tables/encode.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace elimina::tables {
namespace {

// First members of NumPy's array interface, which describes an array.
struct Described {
  int two, axes;
  char kind;
  int itemsize, flags;
  Py_intptr_t *shape, *strides;
  void* data;
};

// Returns the name of an attribute as an interned Python string.
nb::handle name_of(const char* name) {
  PyObject* interned = PyUnicode_InternFromString(name);
  if (!interned) throw nb::python_error();
  return interned;
}

// A view of a NumPy array. The buffer protocol would allocate a description, which is freed only with the array.
class View {
 public:
  explicit View(nb::handle array) {
    static const nb::handle name = name_of("__array_struct__");
    capsule_ = nb::getattr(array, name);
    array_ = static_cast<const Described*>(PyCapsule_GetPointer(capsule_.ptr(), nullptr));
    if (!array_) throw nb::python_error();
  }

  std::span<const Py_intptr_t> shape() const { return {array_->shape, std::size_t(array_->axes)}; }
  std::span<const Py_intptr_t> strides() const { return {array_->strides, std::size_t(array_->axes)}; }
  const char* data() const { return static_cast<const char*>(array_->data); }

  Type type() const {
    if (array_->kind == 'i' && array_->itemsize == 8) return Type::i64;
    if (array_->kind == 'f' && array_->itemsize == 8) return Type::f64;
    if (array_->kind == 'f' && array_->itemsize == 4) return Type::f32;
    throw nb::type_error("a table's values are neither int64, float32 nor float64");
  }

 private:
  nb::object capsule_;
  const Described* array_;
};

// Data read from the attributes of a table.
struct Read {
  Source source;
  std::vector<int> scope;
  std::vector<i64> sizes, strides;
  nb::object arrays;
};

// Returns a variable or a size; -1, which no model has, if it is beyond 31 or 63 bits.
template <class T>
T number_in_model(nb::handle number) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (value == -1 && PyErr_Occurred()) throw nb::python_error();
  return overflow || value != T(value) ? T(-1) : T(value);
}

void read_table(nb::handle table, Read& read) {
  static const nb::handle values_name = name_of("values"), rows_name = name_of("rows"), scope_name = name_of("scope");
  auto& [source, scope, sizes, strides, arrays] = read;
  const nb::object values = nb::getattr(table, values_name), rows = nb::getattr(table, rows_name);
  scope.clear();
  sizes.clear();
  strides.clear();
  for (const nb::handle v : nb::borrow<nb::tuple>(nb::getattr(table, scope_name)))
    scope.push_back(number_in_model<int>(v));
  const View view(values);
  source = {};
  arrays = values;
  source.type = view.type();
  source.values = view.data();
  if (rows.is_none()) {
    sizes.assign(view.shape().begin(), view.shape().end());
    strides.assign(view.strides().begin(), view.strides().end());
  } else {
    for (const nb::handle size : nb::borrow<nb::tuple>(nb::getattr(table, "sizes")))
      sizes.push_back(number_in_model<i64>(size));
    const View listed(rows);
    Listing listing;
    listing.rows = listed.data();
    listing.tuples = view.shape()[0];
    listing.value_step = view.strides()[0];
    listing.row_step = listed.strides()[0];
    listing.column_step = listed.strides()[1];
    const nb::object other = nb::getattr(table, "default");
    if (source.type == Type::i64) listing.integer_default = nb::cast<i64>(other);
    else listing.real_default = nb::cast<double>(nb::float_(other));
    source.listing = std::make_shared<const Listing>(listing);
    arrays = nb::make_tuple(values, rows);
  }
}

void make(TableList* list, nb::iterable tables) {
  TableList new_list;
  const std::size_t count = nb::len_hint(tables);
  new_list.tables.reserve(count);
  new_list.arrays.reserve(count);
  Read read;
  Turns turns;
  for (const nb::handle table : tables) {
    turns.look();
    read_table(table, read);
    new_list.tables.add(read.source, read.scope, read.sizes, read.strides);
    new_list.arrays.push_back(read.arrays);
  }
  new (list) TableList(std::move(new_list));
}

void replace(TableList& list, i64 number, nb::handle table) {
  Read read;
  read_table(table, read);
  if (number < 0 || number >= list.tables.size() || !std::ranges::equal(read.scope, list.tables.scope(number)) ||
      !std::ranges::equal(read.sizes, list.tables.sizes(number)))
    throw nb::value_error("a table is replaced by one of another scope");
  list.tables.replace(number, read.source, read.strides);
  list.arrays[number] = read.arrays;
}

nb::list ends(const TableList& self, const std::string& sense) {
  const std::vector<Ends>* ranges = nullptr;
  {
    nb::gil_scoped_release release;
    ranges = &self.tables.ends(sense_of(sense));
  }
  nb::list pairs;
  Turns turns;
  for (i64 number = 0; number < self.tables.size(); ++number) {
    turns.look();
    const Ends& range = (*ranges)[number];
    if (!range.any) pairs.append(nb::none());
    else if (self.tables.source(number).type == Type::i64) pairs.append(nb::make_tuple(range.least, range.largest));
    else pairs.append(nb::make_tuple(range.low, range.high));
  }
  return pairs;
}

// Returns the kind of each table: 0 if it allows nothing, 1 for integers, 2 for floats; and its smallest and largest
// allowed number.
nb::tuple all_ends(const TableList& self, const std::string& sense) {
  const auto count = std::size_t(self.tables.size());
  std::vector<std::uint8_t> kinds(count);
  std::vector<i64> integers(2 * count);
  std::vector<double> reals(2 * count);
  {
    nb::gil_scoped_release release;
    const std::vector<Ends>& ranges = self.tables.ends(sense_of(sense));
    for (std::size_t number = 0; number < count; ++number) {
      const Ends& range = ranges[number];
      kinds[number] = std::uint8_t(range.any ? self.tables.source(i64(number)).type == Type::i64 ? 1 : 2 : 0);
      integers[2 * number] = range.least;
      integers[2 * number + 1] = range.largest;
      reals[2 * number] = range.low;
      reals[2 * number + 1] = range.high;
    }
  }
  const std::array<std::size_t, 2> shape{count, 2};
  return nb::make_tuple(array_of(std::move(kinds)), array_of(std::move(integers), shape),
                        array_of(std::move(reals), shape));
}

Array<i64> forbidding(const TableList& self, const std::string& sense) {
  std::vector<i64> numbers;
  {
    nb::gil_scoped_release release;
    const std::vector<Ends>& ranges = self.tables.ends(sense_of(sense));
    for (i64 number = 0; number < self.tables.size(); ++number)
      if (ranges[number].forbids) numbers.push_back(number);
  }
  return array_of(std::move(numbers));
}

i64 first_mismatch(const TableList& self, Words<const i64> sizes) {
  nb::gil_scoped_release release;
  return self.tables.first_mismatch(span_of(sizes));
}

Array<i64> unusual(const TableList& self, const std::string& sense, double low, double high) {
  std::vector<i64> numbers;
  {
    nb::gil_scoped_release release;
    numbers = self.tables.unusual(sense_of(sense), low, high);
  }
  return array_of(std::move(numbers));
}

TableList chosen(const TableList& self, Words<const i64> numbers) {
  TableList list;
  list.tables.reserve(numbers.size());
  list.arrays.reserve(numbers.size());
  Turns turns;
  for (const i64 number : span_of(numbers)) {
    turns.look();
    if (number < 0 || number >= self.tables.size()) throw nb::index_error("there is no such table");
    list.tables.add(self.tables.source(number), self.tables.scope(number), self.tables.sizes(number),
                    self.tables.strides(number));
    list.arrays.push_back(self.arrays[number]);
  }
  return list;
}

nb::list values(const TableList& self, const std::vector<i64>& assignment) {
  const Tables& tables = self.tables;
  nb::list entries;
  Turns turns;
  for (i64 number = 0; number < tables.size(); ++number) {
    turns.look();
    const auto scope = tables.scope(number);
    const auto sizes = tables.sizes(number);
    for (std::size_t a = 0; a < scope.size(); ++a) {
      if (scope[a] >= int(assignment.size()))
        throw nb::value_error(("there is no value of variable " + std::to_string(scope[a])).c_str());
      const i64 value = assignment[scope[a]];
      if (value < 0 || value >= sizes[a])
        throw nb::value_error(("variable " + std::to_string(scope[a]) + " has the values 0 to " +
                               std::to_string(sizes[a] - 1) + ", not " + std::to_string(value))
                                  .c_str());
    }
    const Source& source = tables.source(number);
    const char* entry = tables.at(number, assignment);
    switch (source.type) {
      case Type::f64: entries.append(nb::float_(entry ? load<double>(entry) : source.listing->real_default)); break;
      case Type::f32:
        entries.append(nb::float_(entry ? double(load<float>(entry)) : source.listing->real_default));
        break;
      case Type::i64: entries.append(nb::int_(entry ? load<i64>(entry) : source.listing->integer_default)); break;
    }
  }
  return entries;
}

// Groups of tables with nested scopes: the scope and the tables of each group.
struct GroupArrays {
  Array<i64> scope_starts;
  Array<i64> scope_variables;
  Array<i64> starts;
  Array<int> members;
};

GroupArrays groups(const TableList& self) {
  Lists grouping;
  std::vector<i64> starts{0}, variables;
  {
    nb::gil_scoped_release release;
    grouping = self.tables.groups();
    for (i64 group = 0; group < grouping.size(); ++group) {
      const auto scope = self.tables.scope(grouping[group].front());
      variables.insert(variables.end(), scope.begin(), scope.end());
      starts.push_back(i64(variables.size()));
    }
  }
  return {array_of(std::move(starts)), array_of(std::move(variables)), array_of(std::move(grouping.starts)),
          array_of(std::move(grouping.items))};
}

std::vector<i64> constants(const TableList& self) {
  std::vector<i64> numbers;
  for (i64 number = 0; number < self.tables.size(); ++number)
    if (self.tables.scope(number).empty()) numbers.push_back(number);
  return numbers;
}

nb::list idle(const TableList& self) {
  std::vector<std::pair<i64, std::vector<int>>> idle_axes;
  {
    nb::gil_scoped_release release;
    Looks looks;
    for (i64 number = 0; number < self.tables.size(); ++number) {
      looks.look();
      if (std::vector<int> axes = self.tables.idle(number); !axes.empty())
        idle_axes.emplace_back(number, std::move(axes));
    }
  }
  return nb::cast<nb::list>(nb::cast(idle_axes));
}

i64 largest(const TableList& self) {
  i64 best = -1;
  for (i64 number = 0; number < self.tables.size(); ++number)
    if (best < 0 || self.tables.cells(number) > self.tables.cells(best)) best = number;
  return best;
}

using Arena = nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Number number_of(const Arena& arena) {
  if (arena.dtype() == nb::dtype<double>()) return Number::f64;
  if (arena.dtype() == nb::dtype<float>()) return Number::f32;
  if (arena.dtype() == nb::dtype<i64>()) return Number::i64;
  if (arena.dtype() == nb::dtype<u64>()) return Number::u64;
  if (arena.dtype() == nb::dtype<i32>()) return Number::i32;
  if (arena.dtype() == nb::dtype<i16>()) return Number::i16;
  throw nb::type_error("no arena has this dtype");
}

// Encodes all tables as one factor, its last variable fastest.
void join(const TableList& self, const std::string& sense, const std::string& rule, i64 limit,
          const std::vector<int>& scope, const std::vector<i64>& sizes, Arena arena, i64 block) {
  std::vector<int> members(self.tables.size());
  std::iota(members.begin(), members.end(), 0);
  std::vector<i64> strides(sizes.size());
  i64 cells = 1;
  for (std::size_t a = sizes.size(); a-- > 0; cells *= sizes[a]) strides[a] = cells;
  if (i64(arena.size()) != cells) throw nb::value_error("the arena has another number of cells than the factor");
  const std::array<i64, 2> member_starts{0, i64(members.size())}, starts{0, i64(scope.size())};
  const std::array<i64, 1> offsets{0}, numbers{0};
  const Number type = number_of(arena);
  unlocked([&] {
    return encode(self.tables, sense_of(sense), rule_of(rule), limit,
                  {member_starts, members, starts, scope, sizes, strides, offsets}, numbers, type,
                  static_cast<char*>(arena.data()), block, 1);
  });
}

struct EncodedFactors {
  Array<double, 2> ranges;
  Array<i64> exponents;
  Array<char> exact;
};

EncodedFactors encode_factors(const TableList& self, const std::string& sense, const std::string& rule, i64 limit,
                              Words<const i64> member_starts, Words<const int> members, Words<const i64> starts,
                              Words<const int> scopes, Words<const i64> sizes, Words<const i64> strides,
                              Words<const i64> offsets, std::optional<Words<const i64>> numbers, Arena arena, i64 block,
                              int threads) {
  const Number type = number_of(arena);
  const FactorArrays factors{span_of(member_starts), span_of(members), span_of(starts), span_of(scopes),
                             span_of(sizes),         span_of(strides), span_of(offsets)};
  std::vector<i64> all;
  if (!numbers)
    for (i64 number = 0; number < i64(offsets.size()); ++number) all.push_back(number);
  const std::span<const i64> wanted = numbers ? span_of(*numbers) : std::span<const i64>(all);
  Written written = unlocked([&] {
    return encode(self.tables, sense_of(sense), rule_of(rule), limit, factors, wanted, type,
                  static_cast<char*>(arena.data()), block, threads);
  });
  const std::size_t count = written.exponents.size();
  return {array_of(std::move(written.ranges), std::array<std::size_t, 2>{count, 2}),
          array_of(std::move(written.exponents)), array_of(std::move(written.exact))};
}

}  // namespace

void bind_tables(nb::module_& m) {
  nb::class_<network::Incumbent>(m, "TableIncumbent", "An assignment that a local search on tables has found.")
      .def_ro("values", &network::Incumbent::values, "Pairs of a variable of the copied tables and its value.")
      .def_ro("cost", &network::Incumbent::cost,
              "Cost above the sum of the tables' least costs; None if a table is left out or has floats, or if the "
              "assignment is forbidden.");
  nb::class_<GroupArrays>(m, "GroupArrays", "Groups of tables with nested scopes.")
      .def_ro("scope_starts", &GroupArrays::scope_starts, nb::rv_policy::reference, "Starts of the groups' scopes.")
      .def_ro("scope_variables", &GroupArrays::scope_variables, nb::rv_policy::reference, "Variables of the scopes.")
      .def_ro("starts", &GroupArrays::starts, nb::rv_policy::reference, "Starts of the groups.")
      .def_ro("members", &GroupArrays::members, nb::rv_policy::reference,
              "Tables of the groups; the first one's scope contains all others.");
  nb::class_<EncodedFactors>(m, "EncodedFactors", "Figures of factors that were written to an arena.")
      .def_ro("ranges", &EncodedFactors::ranges, nb::rv_policy::reference,
              "Largest and smallest positive value of each factor.")
      .def_ro("exponents", &EncodedFactors::exponents, nb::rv_policy::reference,
              "Exponents of the powers of two that were divided out.")
      .def_ro("exact", &EncodedFactors::exact, nb::rv_policy::reference,
              "1 for each factor whose positive products are all normal numbers, else 0.");
  nb::class_<TableList>(
      m, "TableList",
      "Tables as the core reads them. It keeps their arrays; later changes of a table's attributes have "
      "no effect.")
      .def("__init__", &make, "tables"_a, "List objects with the attributes of `elimina.model.table.Table`.")
      .def("replace", &replace, "number"_a, "table"_a, "Replace a table by another one with the same scope.")
      .def("ends", &ends, "sense"_a,
           "Return the smallest and the largest allowed value of each table; None for a table that allows "
           "nothing.")
      .def("all_ends", &all_ends, "sense"_a,
           "Return the same as arrays: for each table 0 (allows nothing), 1 (integers) or 2 (floats), its two "
           "values if they are integers, and its two values if they are floats.")
      .def("forbidding", &forbidding, "sense"_a, "Return the numbers of the tables that forbid some of their tuples.")
      .def("first_mismatch", &first_mismatch, "sizes"_a,
           "Return the number of the first table with a variable that is not in the model, or of another size than in "
           "the model; -1 if there is none.")
      .def("unusual", &unusual, "sense"_a, "low"_a, "high"_a,
           "Return the numbers of the tables with NaN, or with allowed values or a default outside a range.")
      .def("chosen", &chosen, "numbers"_a, "Return a list of the tables with these numbers.")
      .def("values", &values, "assignment"_a,
           "Return each table's value at an assignment, which has the index of a value for each variable.")
      .def("groups", &groups, "Return groups of tables with nested scopes. Tables without variables are left out.")
      .def("constants", &constants, "Return the numbers of the tables without variables.")
      .def("idle", &idle,
           "Return the dense tables of at most 2^20 cells whose values are the same along some of their axes, "
           "but not all: number and these axes.")
      .def("largest", &largest,
           "Return the number of the first table with the most cells (counted up to 2^62); -1 if there are no "
           "tables.")
      .def(
          "incumbent",
          [](const TableList& self, const std::string& sense, u64 descent, u64 moves, i64 table, i64 listed_table,
             i64 all) {
            return unlocked([&] {
              return network::incumbent(self.tables, sense_of(sense), {descent, moves, table, listed_table, all});
            });
          },
          "sense"_a, "descent"_a, "moves"_a, "table"_a, "listed_table"_a, "all"_a,
          "Find an assignment by a descent that visits at most `descent` cells, and tabu moves that visit at "
          "most `moves`, on copies of tables with at most `table` cells (sparse ones: `listed_table`; all "
          "copies: `all`).")
      .def("join", &join, "sense"_a, "rule"_a, "limit"_a, "scope"_a, "sizes"_a, "arena"_a, "block"_a,
           "Write all tables to an arena as one factor over a scope that contains theirs, the last variable "
           "fastest: see `encode`.")
      .def("encode", &encode_factors, "sense"_a, "rule"_a, "limit"_a, "member_starts"_a, "members"_a, "starts"_a,
           "scopes"_a, "sizes"_a, "strides"_a, "offsets"_a, "numbers"_a.none(), "arena"_a, "block"_a, "threads"_a,
           "Write factors to an arena: those with these numbers; None: all. `rule`: `support`, `distances` (of "
           "integers up to `limit`), `costs`, `logs` or `products`; `block`: largest number of cells that are "
           "encoded at a time by a thread. Return figures for `products`.");
}

}  // namespace elimina::tables
