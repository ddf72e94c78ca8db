#include "floats.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>

#include "decimals.hpp"
#include "exact_floats.hpp"

namespace elimina::cp::flatzinc {

namespace {

using Form = FloatConstraint::Form;
using Relation = FloatConstraint::Relation;
using Control = FloatConstraint::Control;

// Decimals of a float that is a factor of a product. They are fewer than others have, because the product has twice as
// many.
constexpr int kFactorDecimals = 4;
// Decimals of a float that is the result of an inexact sum.
constexpr int kInexactDecimals = 8;
// Error passed to `post_ranges` for a float on the grid. It is too small to move a bound, but makes the function round
// the bounds outward to the grid.
constexpr double kGridOutward = 1e-300;

// Lower and upper bounds of ranges in turn: floats, stored as bits.
using Ranges = std::span<const std::int64_t>;

bool is_finite_set(Ranges numbers) {
  for (std::size_t i = 0; i + 1 < numbers.size(); i += 2) {
    const Decimal d = decimal_of(std::bit_cast<double>(numbers[i]));
    if (numbers[i] != numbers[i + 1] || d.error > 0) return false;
  }
  return true;
}

int most_decimals(Ranges numbers) {
  int result = 0;
  for (const std::int64_t bits : numbers) result = std::max(result, decimal_of(std::bit_cast<double>(bits)).decimals);
  return result;
}

Value round_to_value(long double x) { return static_cast<Value>(std::llround(x)); }

bool take_end(std::string_view& name, std::string_view end) {
  if (!name.ends_with(end)) return false;
  name.remove_suffix(end.size());
  return true;
}

bool take_start(std::string_view& name, std::string_view start) {
  if (!name.starts_with(start)) return false;
  name.remove_prefix(start.size());
  return true;
}

// The sum factors * xs of integers, in units of 10^-`decimals`.
struct Scaled {
  Values factors;
  Argument xs;
  int decimals = 0;
  bool is_exact = true;
  double error = 0;  // in units of the float
};

// Returns the sum of factors times quantities, with at most `most_decimals` decimals and no more than the solver can
// add up. Sets `scaled_constant` to the constant in the same unit.
Scaled scaled(const std::vector<std::pair<double, Quantity>>& summands, double constant, int most_decimals,
              Value& scaled_constant) {
  int decimals = decimal_of(constant).decimals;
  double total = std::abs(constant);
  for (const auto& [factor, x] : summands) {
    decimals = std::max(decimals, decimal_of(factor).decimals + x.decimals);
    total += std::abs(factor) * x.size();
  }
  decimals = std::min(decimals, most_decimals);
  while (decimals > 0 && total * power(decimals) > kGreatestSum) --decimals;
  if (total * power(decimals) > kGreatestSum) throw Refused("sums of floats have to stay below 10^17");
  Scaled result;
  result.decimals = decimals;
  for (const auto& [factor, x] : summands) {
    const Decimal a = decimal_of(factor);
    const int shift = decimals - a.decimals - x.decimals;
    const long double exact =
        static_cast<long double>(a.numerator) *
        (shift >= 0 ? static_cast<long double>(power(shift)) : 1 / static_cast<long double>(power(-shift)));
    const Value rounded = round_to_value(exact);
    const bool is_exact = static_cast<long double>(rounded) == exact && a.error == 0 && x.error == 0;
    if (!is_exact) {
      result.is_exact = false;
      const double off = static_cast<double>(std::abs(exact - static_cast<long double>(rounded))) / power(decimals) *
                         power(x.decimals);
      result.error += kOutward * (std::abs(factor) * x.error + (a.error + off) * x.size());
    }
    result.factors.push_back(rounded);
    result.xs.push_back(x.n);
  }
  const Decimal c = decimal_of(constant);
  const long double exact = static_cast<long double>(c.numerator) * std::pow(10.0L, decimals - c.decimals);
  scaled_constant = round_to_value(exact);
  if (static_cast<long double>(scaled_constant) != exact || c.error > 0) {
    result.is_exact = false;
    result.error +=
        kOutward *
        (c.error + static_cast<double>(std::abs(exact - static_cast<long double>(scaled_constant))) / power(decimals));
  }
  return result;
}

}  // namespace

double Quantity::size() const { return std::max(std::abs(lo), std::abs(hi)) + error; }

Floats::Floats(const Document& document, Sink& sink, std::vector<View>& views,
               const std::vector<std::pair<Value, Value>>& bounds, Value free)
    : document_(document), sink_(sink), views_(views), bounds_(bounds), free_(free),
      occurrences_(document.variables.size()), is_multiplied_(document.variables.size()),
      quantities_(document.variables.size()) {
  for (std::size_t i = 0; i < document.variables.size(); ++i) {
    const Variable& v = document.variables[i];
    if (v.type != Type::real || v.value.kind == Kind::none) continue;
    FloatConstraint c;
    c.summands = {{1, {Kind::variable, 0, static_cast<std::int64_t>(i)}}, {-1, v.value}};
    c.position = v.position;
    add(std::move(c));
  }
  for (const Constraint& c : document.constraints)
    if (is_float(c.name)) {
      try {
        read(c);
      } catch (const Refused& error) {
        throw Malformed(c.position, "constraint " + std::string(c.name) + ": " + error.what());
      }
    }
}

bool Floats::is_float(std::string_view name) {
  if (name.starts_with("fzn_")) name.remove_prefix(4);
  return name == "int2float" || name.starts_with("float_") || name.starts_with("array_float_") ||
         name.starts_with("array_var_float_");
}

void Floats::unsupported(Position position, const std::string& what) const {
  throw Malformed(position, "unsupported: " + what);
}

void Floats::read(const Constraint& c) {
  std::string_view name = c.name;
  take_start(name, "fzn_");
  const Terms arguments = document_.items(c.arguments);
  FloatConstraint result;
  result.position = c.position;
  const auto expect = [&](std::size_t count) {
    if (arguments.size() != count)
      throw Refused("expected " + std::to_string(count) + " arguments, found " + std::to_string(arguments.size()));
  };
  const auto list = [&](std::size_t i) {
    if (arguments[i].kind != Kind::array) throw Refused("argument " + std::to_string(i + 1) + " is an array");
    const Terms items = document_.items(arguments[i]);
    return std::vector<Term>(items.begin(), items.end());
  };
  if (name == "int2float" || name == "float_plus" || name == "float_minus") {
    expect(name == "int2float" ? 2 : 3);
    result.summands = {{1, arguments[0]}};
    if (arguments.size() == 3) result.summands.push_back({name == "float_plus" ? 1.0 : -1.0, arguments[1]});
    result.summands.push_back({-1, arguments.back()});
    return add(std::move(result));
  }
  if (name == "float_times" || name == "float_div") {
    expect(3);
    const bool divides = name == "float_div";
    const Term a = divides ? arguments[2] : arguments[0], b = arguments[1];
    result.result = divides ? arguments[0] : arguments[2];
    if (divides) {
      // a / b = c is posted as a = b * c and b != 0.
      FloatConstraint nonzero;
      nonzero.position = c.position;
      nonzero.relation = Relation::different;
      nonzero.summands = {{1, b}};
      add(std::move(nonzero));
    }
    if (a.kind != Kind::variable || b.kind != Kind::variable) {
      const bool is_first = a.kind != Kind::variable;
      result.summands = {{real(is_first ? a : b), is_first ? b : a}, {-1, result.result}};
      return add(std::move(result));
    }
    result.form = Form::product;
    result.inputs = {a, b};
    return add(std::move(result));
  }
  if (name == "float_sqrt") {
    expect(2);
    FloatConstraint positive;
    positive.position = c.position;
    positive.relation = Relation::at_most;
    positive.summands = {{-1, arguments[1]}};
    add(std::move(positive));
    result.form = Form::product;
    result.inputs = {arguments[1], arguments[1]};
    result.result = arguments[0];
    return add(std::move(result));
  }
  if (name == "float_max" || name == "float_min") {
    expect(3);
    result.form = name == "float_max" ? Form::maximum : Form::minimum;
    result.inputs = {arguments[0], arguments[1]};
    result.result = arguments[2];
    return add(std::move(result));
  }
  if (name == "array_float_maximum" || name == "array_float_minimum") {
    expect(2);
    result.form = name == "array_float_maximum" ? Form::maximum : Form::minimum;
    result.inputs = list(1);
    if (result.inputs.empty()) throw Refused("an extreme of no values");
    result.result = arguments[0];
    return add(std::move(result));
  }
  if (name == "float_abs") {
    expect(2);
    result.form = Form::absolute;
    result.inputs = {arguments[0]};
    result.result = arguments[1];
    return add(std::move(result));
  }
  if (name == "array_float_element" || name == "array_var_float_element") {
    expect(3);
    result.form = Form::element;
    result.index = arguments[0];
    result.inputs = list(1);
    result.result = arguments[2];
    return add(std::move(result));
  }
  read_comparison(c, name);
}

void Floats::read_comparison(const Constraint& c, std::string_view name) {
  const std::string_view full = name;
  Terms arguments = document_.items(c.arguments);
  FloatConstraint result;
  result.position = c.position;
  if (take_end(name, "_reif")) result.control = Control::reified;
  else if (take_end(name, "_imp")) result.control = Control::implied;
  const bool has_boolean = result.control != Control::always;
  if (has_boolean) {
    if (arguments.empty()) throw Refused("expected a Boolean");
    result.b = arguments.back();
    arguments = arguments.first(arguments.size() - 1);
  }
  if (name == "float_in" || name == "float_dom") return read_ranges(std::move(result), arguments);
  const bool is_sum = take_start(name, "float_lin_");
  if (!is_sum && !take_start(name, "float_")) unsupported(c.position, "the constraint " + std::string(full));
  constexpr std::pair<std::string_view, Relation> kRelations[] = {
      {"le", Relation::at_most}, {"lt", Relation::less}, {"eq", Relation::equal}, {"ne", Relation::different}};
  const auto* relation =
      std::find_if(std::begin(kRelations), std::end(kRelations), [&](const auto& each) { return each.first == name; });
  if (relation == std::end(kRelations))
    unsupported(c.position,
                "the constraint " + std::string(full) +
                    "; on floats there are sums, products, quotients, square roots, comparisons, ranges, extremes and "
                    "elements");
  result.relation = relation->second;
  if (arguments.size() != (is_sum ? 3U : 2U)) throw Refused("it has another number of arguments");
  if (!is_sum) {
    result.summands = {{1, arguments[0]}, {-1, arguments[1]}};
    return add(std::move(result));
  }
  const Terms factors = document_.items(arguments[0]), xs = document_.items(arguments[1]);
  if (arguments[0].kind != Kind::array || arguments[1].kind != Kind::array || factors.size() != xs.size())
    throw Refused("expected as many coefficients as variables");
  for (std::size_t i = 0; i < xs.size(); ++i) result.summands.push_back({real(factors[i]), xs[i]});
  result.bound = real(arguments[2]);
  add(std::move(result));
}

void Floats::read_ranges(FloatConstraint c, Terms arguments) {
  const bool has_list = arguments.size() == 2 && arguments[1].kind == Kind::array;
  if (!has_list && arguments.size() != 3)
    throw Refused("expected a float, and the ends of a range or an array of the ends of ranges");
  const Terms ends = has_list ? document_.items(arguments[1]) : arguments.last(2);
  if (ends.size() % 2 != 0) throw Refused("each range has two ends");
  const auto is_number = [](const Term& t) { return t.kind == Kind::real || t.kind == Kind::integer; };
  if (!std::all_of(ends.begin(), ends.end(), is_number)) throw Refused("the ends of a range are numbers");
  for (std::size_t i = 0; i < ends.size(); i += 2) c.ranges.push_back({real(ends[i]), real(ends[i + 1])});
  c.form = Form::ranges;
  c.summands = {{1, arguments[0]}};
  add(std::move(c));
}

// Adds a constraint, after moving numbers among the summands to the bound and adding up the summands of each variable.
void Floats::add(FloatConstraint c) {
  std::vector<FloatConstraint::Summand> summands;
  std::unordered_map<std::int64_t, std::size_t> positions;
  for (const auto& [factor, x] : c.summands) {
    if (x.kind == Kind::variable) {
      const auto [position, is_new] = positions.try_emplace(x.value, summands.size());
      if (is_new) summands.push_back({factor, x});
      else summands[position->second].factor = sum_of_decimals(summands[position->second].factor, factor);
      continue;
    }
    if (x.kind != Kind::real && x.kind != Kind::integer && x.kind != Kind::boolean) throw Refused("expected floats");
    c.bound = sum_of_decimals(c.bound, -factor * real(x));
  }
  std::erase_if(summands, [](const auto& each) { return each.factor == 0; });
  c.summands = std::move(summands);
  const std::size_t number = constraints_.size();
  const auto occurs = [&](const Term& t) {
    if (t.kind != Kind::variable) return;
    auto& list = occurrences_[static_cast<std::size_t>(t.value)];
    if (list.empty() || list.back() != number) list.push_back(number);
    if (c.form == Form::product) is_multiplied_[static_cast<std::size_t>(t.value)] = 1;
  };
  for (const auto& summand : c.summands) occurs(summand.x);
  for (const Term& t : c.inputs) occurs(t);
  occurs(c.result);
  constraints_.push_back(std::move(c));
  is_definition_.push_back(0);
}

bool Floats::is_unknown(const Term& t) const {
  if (t.kind != Kind::variable) return false;
  const auto i = static_cast<std::size_t>(t.value);
  return document_.variables[i].type == Type::real && !quantities_[i];
}

// Returns the only variable of a constraint whose quantity is unknown, if the constraint defines it by the other
// quantities; otherwise nullopt.
std::optional<std::size_t> Floats::definable(const FloatConstraint& c) const {
  if (c.form != Form::linear) {
    if (!is_unknown(c.result) ||
        std::any_of(c.inputs.begin(), c.inputs.end(), [&](const Term& t) { return is_unknown(t); }))
      return std::nullopt;
    return static_cast<std::size_t>(c.result.value);
  }
  if (c.relation != Relation::equal || c.control != Control::always) return std::nullopt;
  std::optional<std::size_t> result;
  for (const auto& [factor, x] : c.summands) {
    if (!is_unknown(x)) continue;
    // A factor such as 3 has an inverse with too many decimals, so the variable would not be exact.
    const Decimal inverse = decimal_of(1 / factor);
    if (result || inverse.error > 0 || inverse.decimals > 3) return std::nullopt;
    result = static_cast<std::size_t>(x.value);
  }
  return result;
}

void Floats::make_variables() {
  for (std::size_t i = 0; i < constraints_.size(); ++i) waiting_.push_back(i);
  define_all();
  exact_ = exact_floats(document_, constraints_, is_definition_, quantities_);
  // Floats that no constraint defines become free, one at a time; after each, all floats that now follow from
  // constraints are defined. Floats marked `is_defined_var`, and those that only one equation has, become free last.
  for (const bool may_be_defined : {false, true})
    for (std::size_t i = 0; i < document_.variables.size(); ++i) {
      const Variable& v = document_.variables[i];
      if (v.type != Type::real || quantities_[i]) continue;
      const Terms notes = document_.items(v.annotations);
      const bool is_defined = exact_.is_result[i] || std::any_of(notes.begin(), notes.end(), [&](const Term& t) {
                                return t.kind == Kind::atom && document_.text(t) == "is_defined_var";
                              });
      if (is_defined && !may_be_defined) continue;
      make_free(i);
      define_all();
    }
}

void Floats::define_all() {
  while (!waiting_.empty()) {
    const std::size_t i = waiting_.back();
    waiting_.pop_back();
    if (is_definition_[i]) continue;
    if (const auto variable = definable(constraints_[i])) define(*variable, i);
  }
}

void Floats::define(std::size_t variable, std::size_t constraint) {
  const FloatConstraint& c = constraints_[constraint];
  is_definition_[constraint] = 1;
  try {
    const Quantity x =
        c.form == Form::linear ? sum_of(constraint, variable) : function_of(c, declared(document_.variables[variable]));
    post_ranges(document_.variables[variable], x, x.error);
    set(variable, x);
  } catch (const Refused& error) {
    throw Malformed(c.position, "the float " + std::string(document_.variables[variable].name) + ": " + error.what());
  }
}

void Floats::set(std::size_t variable, Quantity value) {
  views_[variable] = value.n;
  quantities_[variable] = value;
  waiting_.insert(waiting_.end(), occurrences_[variable].begin(), occurrences_[variable].end());
}

Quantity Floats::value_of(const Term& t) const {
  if (t.kind == Kind::variable) {
    const auto i = static_cast<std::size_t>(t.value);
    if (quantities_[i]) return *quantities_[i];
    const auto [lo, hi] = bounds_[i];
    return {views_[i], 0, 0, static_cast<double>(lo), static_cast<double>(hi)};
  }
  const double x = real(t);
  const Decimal d = decimal_of(x);
  return {constant(d.numerator), d.decimals, d.error, x, x};
}

Floats::Range Floats::declared(const Variable& v) const {
  if (v.domain.kind != Kind::real || v.domain.size == 0) return {};
  const auto numbers = document_.values(v.domain);
  return {std::bit_cast<double>(numbers.front()), std::bit_cast<double>(numbers.back())};
}

// Makes a variable for those numbers of the range `values` that lie within the bounds `within`. If there are none, the
// model becomes infeasible.
Quantity Floats::new_quantity(Range values, Range within, int decimals, double error) {
  double lo = std::max(values.lo, within.lo - error), hi = std::min(values.hi, within.hi + error);
  if (lo > hi) {
    sink_.post("int_lt", {{constant(0)}, {constant(0)}});
    lo = hi = 0;
  }
  const double unit = power(decimals);
  if (std::max(std::abs(lo), std::abs(hi)) * unit > kGreatestNumber)
    throw Refused("its values are too large: give the floats that it depends on smaller bounds");
  const auto outward = [&](double x, double sign) {
    const double scaled = x * unit;
    return static_cast<Value>(is_whole(scaled) ? std::round(scaled) : sign * std::ceil(sign * scaled));
  };
  return {sink_.new_variable(outward(lo - error, -1), outward(hi + error, 1)), decimals, error, lo, hi};
}

// Solves a linear equation for a variable, and returns the quantity that this sum defines.
Quantity Floats::sum_of(std::size_t constraint, std::size_t variable) {
  const FloatConstraint& c = constraints_[constraint];
  double coefficient = 1;
  for (const auto& [factor, x] : c.summands)
    if (x.value == static_cast<std::int64_t>(variable)) coefficient = factor;
  std::vector<std::pair<double, Quantity>> summands;
  double lo = c.bound / coefficient, hi = lo, size = std::abs(lo);
  for (const auto& [factor, x] : c.summands) {
    if (x.value == static_cast<std::int64_t>(variable)) continue;
    const double a = -factor / coefficient;
    const Quantity& q = summands.emplace_back(a, value_of(x)).second;
    lo += std::min(a * q.lo, a * q.hi);
    hi += std::max(a * q.lo, a * q.hi);
    size += std::abs(a) * q.size();
  }
  if (summands.size() == 1 && summands[0].first == 1 && c.bound == 0) return summands[0].second;
  const double rounding = 1e-15 * size;
  const Range values{lo - rounding, hi + rounding}, within = declared(document_.variables[variable]);
  const Decimal constant_part = decimal_of(c.bound / coefficient);
  const bool is_exact = constant_part.error == 0 && std::all_of(summands.begin(), summands.end(), [](const auto& each) {
                          return each.second.error == 0 && decimal_of(each.first).error == 0;
                        });
  int decimals = constant_part.decimals;
  for (const auto& [factor, x] : summands) decimals = std::max(decimals, decimal_of(factor).decimals + x.decimals);
  const auto fits = [&](int d) { return size * power(d) <= kGreatestNumber; };
  if (!is_exact || !fits(decimals)) {
    // A rounded sum does not define the variable. Instead, the equation remains a constraint, which is posted with a
    // tolerance for the rounding.
    decimals = is_multiplied_[variable] ? kFactorDecimals : kInexactDecimals;
    while (decimals > 0 && !fits(decimals)) --decimals;
    Quantity result = new_quantity(values, within, decimals, 0.5 / power(decimals));
    is_definition_[constraint] = 0;
    return result;
  }
  Value shift = 0;
  const Scaled sum = scaled(summands, c.bound / coefficient, decimals, shift);
  Quantity result = new_quantity(values, within, sum.decimals, sum.error);
  Argument xs = sum.xs, factors;
  for (const Value factor : sum.factors) factors.push_back(constant(factor));
  xs.push_back(result.n);
  factors.push_back(constant(-1));
  sink_.post("int_lin_eq", {factors, xs, {constant(-shift)}});
  return result;
}

// Returns the same quantity in smaller units.
Quantity Floats::aligned(const Quantity& x, int decimals) {
  if (x.decimals == decimals) return x;
  const auto factor = static_cast<Value>(power(decimals - x.decimals));
  if (x.n.var < 0) return {constant(x.n.offset * factor), decimals, x.error, x.lo, x.hi};
  const Quantity result = new_quantity({x.lo, x.hi}, {}, decimals, x.error);
  sink_.post("int_lin_eq", {{constant(factor), constant(-1)}, {x.n, result.n}, {constant(0)}});
  return result;
}

Quantity Floats::function_of(const FloatConstraint& c, Range within) {
  std::vector<Quantity> inputs;
  for (const Term& t : c.inputs) inputs.push_back(value_of(t));
  if (c.form == Form::product) {
    const Quantity &a = inputs[0], &b = inputs[1];
    const double corners[] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi};
    const double error = kOutward * (a.size() * b.error + b.size() * a.error);
    const auto [least, greatest] = std::minmax_element(corners, corners + 4);
    Quantity result = new_quantity({*least, *greatest}, within, a.decimals + b.decimals, error);
    sink_.post("int_times", {{a.n}, {b.n}, {result.n}});
    return result;
  }
  int decimals = 0;
  double error = 0, lo = 0, hi = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Quantity& x = inputs[i];
    decimals = std::max(decimals, x.decimals);
    error = std::max(error, x.error);
    const bool is_first = i == 0;
    const bool is_maximum = c.form == Form::maximum, is_minimum = c.form == Form::minimum;
    lo = is_first ? x.lo : is_maximum ? std::max(lo, x.lo) : std::min(lo, x.lo);
    hi = is_first ? x.hi : is_minimum ? std::min(hi, x.hi) : std::max(hi, x.hi);
  }
  for (Quantity& x : inputs) x = aligned(x, decimals);
  if (c.form == Form::absolute) {
    hi = std::max(std::abs(lo), std::abs(hi));
    lo = inputs[0].lo > 0 ? inputs[0].lo : inputs[0].hi < 0 ? -inputs[0].hi : 0;
  }
  const Quantity result = new_quantity({lo, hi}, within, decimals, error);
  Argument xs;
  for (const Quantity& x : inputs) xs.push_back(x.n);
  switch (c.form) {
    case Form::maximum: sink_.post("array_int_maximum", {{result.n}, xs}); break;
    case Form::minimum: sink_.post("array_int_minimum", {{result.n}, xs}); break;
    case Form::absolute: sink_.post("int_abs", {xs, {result.n}}); break;
    default: sink_.post("array_var_int_element", {{value_of(c.index).n}, xs, {result.n}});
  }
  return result;
}

void Floats::make_free(std::size_t variable) {
  const Variable& v = document_.variables[variable];
  const auto numbers = document_.values(v.domain);
  const bool is_bounded = v.domain.kind == Kind::real && !numbers.empty();
  const int exact_decimals = exact_.decimals[variable];
  int decimals = exact_decimals > 0 ? exact_decimals : is_multiplied_[variable] ? kFactorDecimals : kGridDecimals;
  double lo = 0, hi = 0;
  bool is_exact = exact_decimals > 0;
  if (is_bounded) {
    lo = std::bit_cast<double>(numbers.front());
    hi = std::bit_cast<double>(numbers.back());
    while (decimals > 0 && std::max(std::abs(lo), std::abs(hi)) * power(decimals) > kGreatestGrid) --decimals;
    if (is_finite_set(numbers)) {
      decimals = most_decimals(numbers);
      is_exact = true;
    }
  } else {
    hi = static_cast<double>(free_) / power(decimals);
    lo = -hi;
  }
  try {
    // If a float is within bounds on the grid, so is its rounded value. The bounds are therefore not widened by the
    // error.
    Quantity x = new_quantity({lo, hi}, {}, decimals, 0);
    x.error = is_exact ? 0 : 0.5 / power(decimals);
    if (!is_bounded && v.domain.kind == Kind::none) free_variables_.push_back(x.n.var);
    set(variable, x);
    if (is_bounded && numbers.size() > 2) post_ranges(v, x, is_exact ? 0 : kGridOutward);
  } catch (const Refused& error) {
    throw Malformed(v.position, "the float " + std::string(v.name) + ": " + error.what());
  }
}

// Posts the declared ranges of a variable, or its declared bounds if it was made with other bounds.
void Floats::post_ranges(const Variable& v, const Quantity& x, double error) {
  if (v.domain.kind != Kind::real) return;
  const auto numbers = document_.values(v.domain);
  const double unit = power(x.decimals);
  const auto limit = [&](std::int64_t bits, double sign) {
    const double scaled = (std::bit_cast<double>(bits) + sign * error) * unit;
    // Bounds are rounded outward if there is an error, otherwise inward. They are cut to the limits of the solver,
    // beyond which there are no values.
    const double side = error > 0 ? sign : -sign;
    const double rounded = is_whole(scaled) ? std::round(scaled) : side * std::ceil(side * scaled);
    return static_cast<Value>(std::clamp(rounded, -static_cast<double>(kLimit), static_cast<double>(kLimit)));
  };
  if (numbers.empty()) return sink_.post("int_lt", {{constant(0)}, {constant(0)}});
  Argument clause;
  for (std::size_t i = 0; i + 1 < numbers.size(); i += 2) {
    const Value lo = limit(numbers[i], -1), hi = limit(numbers[i + 1], 1);
    if (numbers.size() == 2) {
      sink_.post("int_le", {{constant(lo)}, {x.n}});
      return sink_.post("int_le", {{x.n}, {constant(hi)}});
    }
    const View b = sink_.new_variable(0, 1);
    sink_.post("int_le_imp", {{constant(lo)}, {x.n}, {b}});
    sink_.post("int_le_imp", {{x.n}, {constant(hi)}, {b}});
    clause.push_back(b);
  }
  sink_.post("bool_clause", {clause, {}});
}

void Floats::post_constraints(const Poll& poll) {
  for (std::size_t i = 0; i < constraints_.size(); ++i) {
    if (poll && i % 256 == 0 && !poll()) throw Abandoned{};
    if (is_definition_[i]) continue;
    try {
      post(constraints_[i]);
    } catch (const Refused& error) {
      throw Malformed(constraints_[i].position, std::string("a constraint on floats: ") + error.what());
    }
  }
}

void Floats::post(const FloatConstraint& c) {
  const View b = c.control == Control::always ? constant(1)
                 : c.b.kind == Kind::variable ? views_[static_cast<std::size_t>(c.b.value)]
                                              : constant(c.b.value);
  if (c.form == Form::linear) return post_linear(c, b);
  if (c.form == Form::ranges) return post_in_ranges(c, b);
  // The result has its own quantity already, so a constraint makes it equal to the function.
  const Quantity x = function_of(c, {}), y = value_of(c.result);
  Value bound = 0;
  const Scaled sum = scaled({{1, x}, {-1, y}}, 0, kMostDecimals, bound);
  const auto room = static_cast<Value>(std::floor(sum.error * power(sum.decimals) + 1e-6));
  Argument factors, opposite;
  for (const Value factor : sum.factors) {
    factors.push_back(constant(factor));
    opposite.push_back(constant(-factor));
  }
  if (sum.is_exact) return sink_.post("int_lin_eq", {factors, sum.xs, {constant(0)}});
  sink_.post("int_lin_le", {factors, sum.xs, {constant(room)}});
  sink_.post("int_lin_le", {opposite, sum.xs, {constant(room)}});
}

void Floats::post_in_ranges(const FloatConstraint& c, View b) {
  FloatConstraint end = c;
  end.form = Form::linear;
  end.relation = Relation::at_most;
  // Unless it is reified, a constraint with a single range needs only two inequalities.
  if (c.ranges.size() != 1) end.control = Control::reified;
  const bool is_clause = end.control == Control::reified;
  Argument insides;
  for (const auto& [lo, hi] : c.ranges) {
    const View above = is_clause ? sink_.new_variable(0, 1) : b, below = is_clause ? sink_.new_variable(0, 1) : b;
    end.summands = c.summands;
    end.bound = sum_of_decimals(c.bound, hi);
    post_linear(end, below);
    for (auto& [factor, x] : end.summands) factor = -factor;
    end.bound = -sum_of_decimals(c.bound, lo);
    post_linear(end, above);
    if (!is_clause) return;
    insides.push_back(sink_.new_variable(0, 1));
    sink_.post("array_bool_and", {{above, below}, {insides.back()}});
  }
  if (c.control == Control::reified) return sink_.post("array_bool_or", {insides, {b}});
  sink_.post("bool_clause", {insides, {b}});
}

void Floats::post_linear(const FloatConstraint& c, View b) {
  std::vector<std::pair<double, Quantity>> summands;
  for (const auto& [factor, x] : c.summands) summands.emplace_back(factor, value_of(x));
  Value bound = 0;
  const Scaled sum = scaled(summands, c.bound, kMostDecimals, bound);
  Argument factors, opposite;
  for (const Value factor : sum.factors) {
    factors.push_back(constant(factor));
    opposite.push_back(constant(-factor));
  }
  const View not_b = b.var < 0 ? constant(1 - b.offset) : negation(b);
  const Value room = sum.is_exact ? 0 : static_cast<Value>(std::floor(sum.error * power(sum.decimals) + 1e-6));
  // Posts that the sum, or its opposite, is at most a number: implied by `if_b`, unless the constraint always has to
  // hold.
  const auto at_most = [&](const Argument& each, Value bound, View if_b) {
    if (c.control == Control::always) return sink_.post("int_lin_le", {each, sum.xs, {constant(bound)}});
    sink_.post("int_lin_le_imp", {each, sum.xs, {constant(bound)}, {if_b}});
  };
  if (sum.is_exact) {
    const char* names[] = {"int_lin_le", "int_lin_le", "int_lin_eq", "int_lin_ne"};
    std::string name = names[static_cast<std::size_t>(c.relation)];
    std::vector<Argument> arguments{factors, sum.xs, {constant(bound - (c.relation == Relation::less))}};
    if (c.control != Control::always) {
      name += c.control == Control::reified ? "_reif" : "_imp";
      arguments.push_back({b});
    }
    return sink_.post(name, arguments);
  }
  const bool is_reified = c.control == Control::reified;
  switch (c.relation) {
    case Relation::at_most:
    case Relation::less:
      at_most(factors, bound + room, b);
      if (is_reified) at_most(opposite, room - bound, not_b);
      return;
    case Relation::equal: at_most(factors, bound + room, b); return at_most(opposite, room - bound, b);
    case Relation::different:
      if (!is_reified) return;
      at_most(factors, bound + room, not_b);
      at_most(opposite, room - bound, not_b);
  }
}

std::string Floats::show(std::size_t variable, Value n) const {
  const Quantity& x = quantity(variable);
  int decimals = x.decimals;
  long double scaled = static_cast<long double>(n);
  // Digits smaller than the error have no meaning, so they are left out.
  const double unit = power(x.decimals);
  while (decimals > 0 && x.error * power(decimals) > 0.500001) --decimals;
  const auto shorter = static_cast<Value>(std::llround(scaled * static_cast<long double>(power(decimals)) / unit));
  const Value whole = shorter / static_cast<Value>(power(decimals));
  Value rest = std::abs(shorter % static_cast<Value>(power(decimals)));
  std::string result = shorter < 0 ? "-" : "";
  result += std::to_string(std::abs(whole)) + ".";
  std::string digits = std::to_string(rest);
  digits.insert(0, static_cast<std::size_t>(std::max(0, decimals - static_cast<int>(digits.size()))), '0');
  while (digits.size() > 1 && digits.back() == '0') digits.pop_back();
  return result + digits;
}

}  // namespace elimina::cp::flatzinc
