// Float variables as integers: multiples of a power of ten. Floats that follow from integers by sums, products, maxima,
// minima and elements of arrays are exact, and so are those whose solutions lie on a grid (`exact_floats`). Other floats
// are rounded to a grid, and their constraints leave room for the rounding, so that no solution is lost.
#pragma once
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "cp/solver.hpp"
#include "document.hpp"
#include "exact_floats.hpp"
#include "float_constraint.hpp"

namespace elimina::cp::flatzinc {

class Floats {
 public:
  // `views` and `bounds` must already hold those of the integers and Booleans of the document; `make_variables` adds
  // the views of floats. `free`: limit of a variable without bounds.
  Floats(const Document& document, Sink& sink, std::vector<View>& views,
         const std::vector<std::pair<Value, Value>>& bounds, Value free);

  // True if the name is that of a constraint on floats.
  static bool is_float(std::string_view name);
  // Makes the float variables: those that follow from others first, then the rest on a grid.
  void make_variables();
  // Posts the constraints on floats, except those that define a variable.
  void post_constraints(const Poll& poll);

  const Quantity& quantity(std::size_t variable) const { return *quantities_[variable]; }
  // The sink's numbers of the variables that stand for floats without bounds.
  const std::vector<int>& free_variables() const { return free_variables_; }
  // Returns the value of a float as text, with as many decimals as its error allows.
  std::string show(std::size_t variable, Value n) const;

 private:
  using Terms = std::span<const Term>;
  struct Range {
    double lo = -std::numeric_limits<double>::infinity(), hi = std::numeric_limits<double>::infinity();
  };

  void read(const Constraint& c);
  void read_comparison(const Constraint& c, std::string_view name);
  // Reads that a float lies in a range (`float_in`), or in one of several (`float_dom`).
  void read_ranges(FloatConstraint c, Terms arguments);
  void add(FloatConstraint c);
  bool is_unknown(const Term& t) const;
  std::optional<std::size_t> definable(const FloatConstraint& c) const;
  void define_all();
  void define(std::size_t variable, std::size_t constraint);
  void make_free(std::size_t variable);
  void set(std::size_t variable, Quantity value);
  Quantity value_of(const Term& t) const;
  Range declared(const Variable& v) const;
  Quantity sum_of(std::size_t constraint, std::size_t variable);
  Quantity function_of(const FloatConstraint& c, Range within);
  Quantity aligned(const Quantity& x, int decimals);
  Quantity new_quantity(Range values, Range within, int decimals, double error);
  void post(const FloatConstraint& c);
  void post_linear(const FloatConstraint& c, View b);
  void post_in_ranges(const FloatConstraint& c, View b);
  void post_ranges(const Variable& v, const Quantity& x, double error);
  [[noreturn]] void unsupported(Position position, const std::string& what) const;

  const Document& document_;
  Sink& sink_;
  std::vector<View>& views_;
  const std::vector<std::pair<Value, Value>>& bounds_;
  Value free_;
  std::vector<FloatConstraint> constraints_;
  std::vector<char> is_definition_;                    // for each constraint, true if it defined a variable
  std::vector<std::vector<std::size_t>> occurrences_;  // constraints of each variable
  std::vector<char> is_multiplied_;
  std::vector<std::optional<Quantity>> quantities_;  // quantity of each float of the document
  ExactFloats exact_;
  std::vector<std::size_t> waiting_;
  std::vector<int> free_variables_;
};

}  // namespace elimina::cp::flatzinc
