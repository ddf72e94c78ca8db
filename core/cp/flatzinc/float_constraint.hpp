// Floats as integers, and the forms of constraints on them.
#pragma once
#include <vector>

#include "cp/types.hpp"
#include "document.hpp"

namespace elimina::cp::flatzinc {

// A float: `n` / 10^`decimals`, with an error of at most `error`.
struct Quantity {
  View n;  // a constant has the variable -1
  int decimals = 0;
  double error = 0;
  double lo = 0, hi = 0;  // bounds of the float

  double size() const;
};

// A float constraint in one of a few forms.
struct FloatConstraint {
  enum class Form : std::uint8_t { linear, ranges, product, maximum, minimum, absolute, element };
  enum class Relation : std::uint8_t { at_most, less, equal, different };
  enum class Control : std::uint8_t { always, reified, implied };
  struct Summand {
    double factor;
    Term x;  // a variable, a float, an integer or a Boolean
  };
  struct Range {
    double lo, hi;
  };

  Form form = Form::linear;
  Relation relation = Relation::equal;
  Control control = Control::always;
  Term b;                         // Boolean of a reified or half-reified constraint
  double bound = 0;               // right-hand side of a linear constraint; added to the ends of all ranges
  std::vector<Summand> summands;  // terms of a linear constraint, or of the sum that lies in one of the ranges
  std::vector<Range> ranges;
  std::vector<Term> inputs;  // arguments of a function, or items of an element
  Term result, index;
  Position position;
};

}  // namespace elimina::cp::flatzinc
