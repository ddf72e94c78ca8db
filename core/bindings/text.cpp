#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "module.hpp"
#include "tables/csv.hpp"
#include "tables/text.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace elimina::text {
namespace {

// A scanner together with the bytes that it reads.
struct Text {
  nb::bytes data;
  Scanner scanner;

  Text(nb::bytes bytes, const elimina::TextStyle& style)
      : data(std::move(bytes)), scanner({data.c_str(), data.size()}, style) {}
};

nb::bytes as_bytes(std::string_view text) { return nb::bytes(text.data(), text.size()); }

template <class T, class Read>
Array<T> numbers(Text& text, std::uint64_t count, const char* what, Read read) {
  std::vector<T> out;
  {
    nb::gil_scoped_release release;
    text.scanner.need(count, what);
    out.resize(count);
    read(std::span<T>(out));
  }
  return array_of(std::move(out));
}

std::pair<Array<std::int64_t>, Array<std::int64_t>> lists(Text& text, std::uint64_t count, std::int64_t bound,
                                                          const char* what) {
  Scanner::Lists result = unlocked([&] { return text.scanner.lists(count, bound, what); });
  return {array_of(std::move(result.offsets)), array_of(std::move(result.members))};
}

std::pair<Array<std::int32_t>, Array<std::int64_t>> tuples(Text& text, std::uint64_t count,
                                                           const Words<const std::int64_t>& sizes) {
  std::vector<std::int32_t> rows;
  std::vector<std::int64_t> costs;
  {
    nb::gil_scoped_release release;
    text.scanner.need(count, "a tuple");
    text.scanner.need(count * (sizes.size() + 1), "a state or cost of a tuple");
    rows.resize(count * sizes.size());
    costs.resize(count);
    text.scanner.tuples(span_of(sizes), rows, costs);
  }
  return {array_of(std::move(rows)), array_of(std::move(costs))};
}

// Cost functions as dense tables.
struct FunctionArrays {
  Array<std::int64_t> starts, members, costs;
};

FunctionArrays functions(Text& text, std::uint64_t max_functions, const Words<const std::int64_t>& sizes,
                         std::int64_t bound, std::int64_t forbidden, std::int64_t dense, std::int64_t ratio) {
  Scanner::Functions functions =
      unlocked([&] { return text.scanner.functions(max_functions, span_of(sizes), {bound, forbidden, dense, ratio}); });
  return {array_of(std::move(functions.starts)), array_of(std::move(functions.members)),
          array_of(std::move(functions.costs))};
}

struct RowArrays {
  Array<std::int64_t> parents;
  Array<double> values, defaults, table;
};

RowArrays bif_rows(Text& text, std::size_t child_size, const std::vector<std::vector<std::string>>& labels) {
  elimina::ConditionalRows rows;
  {
    nb::gil_scoped_release release;
    std::vector<elimina::LabelIndex> index(labels.size());
    for (std::size_t p = 0; p < labels.size(); ++p)
      for (std::size_t i = 0; i < labels[p].size(); ++i) index[p].emplace(labels[p][i], i);
    rows = elimina::bif_rows(text.scanner, child_size, index);
  }
  return {array_of(std::move(rows.parents)), array_of(std::move(rows.values)), array_of(std::move(rows.defaults)),
          array_of(std::move(rows.table))};
}

nb::object bracket_items(Text& text, bool as_words) {
  elimina::Items items = unlocked([&] { return elimina::bracket_items(text.scanner, as_words); });
  if (as_words || !items.words.empty()) {
    nb::list words;
    for (const auto& word : items.words) words.append(as_bytes(word));
    return words;
  }
  if (items.integers.size() == items.reals.size()) return nb::cast(array_of(std::move(items.integers)));
  return nb::cast(array_of(std::move(items.reals)));
}

}  // namespace

void bind_text(nb::module_& m) {
  m.def(
      "csv_lines",
      [](const nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>& values,
         const Words<const double>& ends, int digits) {
        if (values.shape(0) != ends.size()) throw nb::value_error("each row needs a last number");
        const std::string text =
            unlocked([&] { return elimina::csv_lines({values.data(), values.size()}, span_of(ends), digits); });
        return as_bytes(text);
      },
      "values"_a, "ends"_a, "digits"_a,
      "Lines of a CSV file: the numbers of a row and one of `ends`, empty cells for NaN. 0 digits: as few as needed.");
  nb::exception<elimina::TextError>(m, "TextError", PyExc_ValueError);
  nb::class_<FunctionArrays>(m, "FunctionArrays", "Cost functions as dense tables.")
      .def_ro("starts", &FunctionArrays::starts, nb::rv_policy::reference, "Starts of the scopes.")
      .def_ro("members", &FunctionArrays::members, nb::rv_policy::reference, "Variables of the scopes.")
      .def_ro("costs", &FunctionArrays::costs, nb::rv_policy::reference, "Costs of all cells.");
  nb::class_<RowArrays>(m, "ConditionalRows", "Probabilities of a BIF block.")
      .def_ro("parents", &RowArrays::parents, nb::rv_policy::reference, "Flat index of the parents in each row.")
      .def_ro("values", &RowArrays::values, nb::rv_policy::reference, "Probabilities of the rows.")
      .def_ro("defaults", &RowArrays::defaults, nb::rv_policy::reference, "Default row.")
      .def_ro("table", &RowArrays::table, nb::rv_policy::reference, "Whole table, in place of rows.");
  nb::class_<Text>(m, "Text", "A reader of tokens and numbers from bytes; every method but 'line' raises TextError.")
      .def(
          "__init__",
          [](Text* self, nb::bytes data, const std::string& blanks, const std::string& marks, bool quotes,
             bool block_comments, bool line_comments, bool glued_minus) {
            elimina::TextStyle style;
            style.blanks += blanks;
            style.marks = marks;
            style.quotes = quotes;
            style.block_comments = block_comments;
            style.line_comments = line_comments;
            style.glued_minus = glued_minus;
            new (self) Text(std::move(data), style);
          },
          "data"_a, nb::kw_only(), "blanks"_a = "", "marks"_a = "", "quotes"_a = false, "block_comments"_a = false,
          "line_comments"_a = false, "glued_minus"_a = false)
      .def_prop_ro(
          "line", [](const Text& t) { return t.scanner.line(); }, "Line of the last token read, from 1.")
      .def_prop_ro(
          "remaining", [](const Text& t) { return t.scanner.remaining(); }, "Number of bytes not yet read.")
      .def_prop_ro(
          "quoted", [](const Text& t) { return t.scanner.quoted(); }, "True if the last token was in quotes.")
      .def(
          "at_end", [](Text& t) { return t.scanner.at_end(); }, "Return whether only blanks and comments are left.")
      .def(
          "at_line_end", [](const Text& t) { return t.scanner.at_line_end(); },
          "Return whether no token follows on this line.")
      .def(
          "peek", [](Text& t) { return as_bytes(t.scanner.peek()); },
          "Return the next token without reading it; b'' at the end.")
      .def(
          "token", [](Text& t, const char* what) { return as_bytes(t.scanner.token(what)); }, "what"_a)
      .def(
          "skip_past", [](Text& t, char mark, const char* what) { t.scanner.skip_past(mark, what); }, "mark"_a,
          "what"_a, "Skip text up to and with the first `mark` outside quotes.")
      .def(
          "integer", [](Text& t, const char* what) { return t.scanner.integer(what); }, "what"_a)
      .def(
          "real", [](Text& t, const char* what) { return t.scanner.real(what); }, "what"_a)
      .def(
          "need", [](Text& t, std::uint64_t count, const char* what) { t.scanner.need(count, what); }, "count"_a,
          "what"_a, "Raise TextError unless the rest of the text can hold `count` more tokens.")
      .def(
          "integers",
          [](Text& t, std::uint64_t count, const char* what) {
            return numbers<std::int64_t>(t, count, what, [&](auto out) { t.scanner.integers(out, what); });
          },
          "count"_a, "what"_a)
      .def(
          "reals",
          [](Text& t, std::uint64_t count, const char* what) {
            return numbers<double>(t, count, what, [&](auto out) { t.scanner.reals(out, what); });
          },
          "count"_a, "what"_a)
      .def("lists", &lists, "count"_a, "bound"_a, "what"_a,
           "Read lists 'k i1 .. ik' of distinct indices below `bound`; return offsets and concatenated "
           "members.")
      .def(
          "tables",
          [](Text& t, const Words<const std::int64_t>& sizes, std::uint64_t total) {
            return numbers<double>(t, total, "the tables' entries",
                                   [&](auto out) { t.scanner.tables(span_of(sizes), out); });
          },
          "sizes"_a, "total"_a,
          "Read tables 'k v1 .. vk' with k == sizes[i]; return the concatenated values, `total` in number.")
      .def("tuples", &tuples, "count"_a, "sizes"_a,
           "Read tuples 'i1 .. ik cost'; return flat int32 rows and int64 costs.")
      .def("functions", &functions, "max_functions"_a, "sizes"_a, "bound"_a, "forbidden"_a, "dense"_a, "ratio"_a,
           "Read cost functions 'arity i1 .. ik default count' with `count` tuples each, as dense tables. Ends "
           "before the first function that is malformed, shared or global, or that has over `dense` cells and over "
           "`ratio` "
           "cells for each tuple.")
      .def("bif_rows", &bif_rows, "child_size"_a, "labels"_a, "Read the rest of a BIF probability block.")
      .def("bracket_items", &bracket_items, "as_words"_a = false,
           nb::sig("def bracket_items(self, as_words: bool = False) -> "
                   "NDArray[numpy.int64] | NDArray[numpy.float64] | list[bytes]"),
           "Read items up to the closing bracket; return an int64 array if all are integers, a float64 array "
           "if all are numbers, else a list of bytes.");
}

}  // namespace elimina::text
