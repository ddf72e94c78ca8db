#include "exact_floats.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "decimals.hpp"
#include "disjoint_sets.hpp"

namespace elimina::cp::flatzinc {

namespace {

using Form = FloatConstraint::Form;

class Analysis {
 public:
  Analysis(const Document& document, const std::vector<FloatConstraint>& constraints,
           const std::vector<char>& is_definition, const std::vector<std::optional<Quantity>>& quantities)
      : document_(document), constraints_(constraints), quantities_(quantities), is_ignored_(is_definition),
        components_(document.variables.size()), decimals_(document.variables.size()), sizes_(document.variables.size()),
        is_inexact_(document.variables.size()) {
    result_.decimals.resize(document.variables.size());
    result_.is_result.resize(document.variables.size());
  }

  ExactFloats run() {
    ignore_results();
    for (std::size_t i = 0; i < constraints_.size(); ++i)
      if (!is_ignored_[i]) join(open_variables(constraints_[i]));
    for (std::size_t i = 0; i < constraints_.size(); ++i) {
      const std::vector<std::size_t> open = open_variables(constraints_[i]);
      if (!is_ignored_[i] && !open.empty()) require(open[0], decimals_of(constraints_[i]));
    }
    for (std::size_t v = 0; v < document_.variables.size(); ++v) {
      if (!is_open(v) || result_.is_result[v]) continue;
      ++sizes_[root(v)];
      require(v, decimals_of_domain(document_.variables[v]));
    }
    grids_.resize(document_.variables.size(), kMostDecimals);
    for (std::size_t v = 0; v < document_.variables.size(); ++v)
      if (is_open(v) && !result_.is_result[v]) grids_[root(v)] = std::min(grids_[root(v)], most_decimals(v));
    for (std::size_t v = 0; v < document_.variables.size(); ++v) {
      if (!is_open(v) || result_.is_result[v] || is_inexact_[root(v)]) continue;
      const int least = least_decimals(root(v));
      if (least <= grids_[root(v)]) result_.decimals[v] = std::min(grids_[root(v)], std::max(least, kGridDecimals));
    }
    return std::move(result_);
  }

 private:
  static constexpr int kInexact = -1;

  std::size_t root(std::size_t v) {
    return static_cast<std::size_t>(components_.find(static_cast<std::int32_t>(v)).var);
  }

  bool is_open(std::size_t v) const { return document_.variables[v].type == Type::real && !quantities_[v]; }
  bool is_open(const Term& t) const { return t.kind == Kind::variable && is_open(static_cast<std::size_t>(t.value)); }

  std::vector<std::size_t> open_variables(const FloatConstraint& c) const {
    std::vector<std::size_t> result;
    const auto add = [&](const Term& t) {
      if (is_open(t)) result.push_back(static_cast<std::size_t>(t.value));
    };
    for (const auto& summand : c.summands) add(summand.x);
    for (const Term& t : c.inputs) add(t);
    add(c.result);
    return result;
  }

  void join(const std::vector<std::size_t>& variables) {
    for (const std::size_t v : variables)
      components_.join(static_cast<std::int32_t>(variables[0]), static_cast<std::int32_t>(v), 1, 0);
  }

  void require(std::size_t v, int decimals) {
    if (decimals == kInexact) is_inexact_[root(v)] = 1;
    decimals_[root(v)] = std::max(decimals_[root(v)], decimals);
  }

  // Ignores equations that define an unused float without restricting the others. An objective is often such a float.
  void ignore_results() {
    std::vector<int> uses(document_.variables.size());
    for (std::size_t i = 0; i < constraints_.size(); ++i)
      if (!is_ignored_[i])
        for (const std::size_t v : open_variables(constraints_[i])) ++uses[v];
    for (bool changes = true; std::exchange(changes, false);)
      for (std::size_t i = 0; i < constraints_.size(); ++i) {
        const FloatConstraint& c = constraints_[i];
        const bool is_equation = c.form == Form::linear && c.relation == FloatConstraint::Relation::equal &&
                                 c.control == FloatConstraint::Control::always;
        if (is_ignored_[i] || !is_equation) continue;
        const auto result = std::find_if(c.summands.begin(), c.summands.end(), [&](const auto& each) {
          return is_open(each.x) && uses[static_cast<std::size_t>(each.x.value)] == 1 && is_free_result(c, each.x);
        });
        if (result == c.summands.end()) continue;
        result_.is_result[static_cast<std::size_t>(result->x.value)] = 1;
        is_ignored_[i] = 1;
        for (const std::size_t v : open_variables(c)) --uses[v];
        changes = true;
      }
  }

  // True if the declared bounds of a float contain all its values in an equation.
  bool is_free_result(const FloatConstraint& c, const Term& x) const {
    const FloatConstraint::Range within = declared(x);
    if (std::isinf(within.lo) && std::isinf(within.hi)) return true;
    if (document_.values(document_.variables[static_cast<std::size_t>(x.value)].domain).size() > 2) return false;
    double factor = 1, lo = c.bound, hi = c.bound;
    for (const auto& summand : c.summands) {
      if (is_open(summand.x) && summand.x.value == x.value) {
        factor = summand.factor;
        continue;
      }
      const FloatConstraint::Range range = range_of(summand.x);
      const double a = -summand.factor * range.lo, b = -summand.factor * range.hi;
      lo += std::min(a, b);
      hi += std::max(a, b);
    }
    lo /= factor;
    hi /= factor;
    return std::min(lo, hi) >= within.lo && std::max(lo, hi) <= within.hi;
  }

  FloatConstraint::Range declared(const Term& x) const {
    const Variable& v = document_.variables[static_cast<std::size_t>(x.value)];
    constexpr double kInfinite = std::numeric_limits<double>::infinity();
    if (v.domain.kind != Kind::real || v.domain.size == 0) return {-kInfinite, kInfinite};
    const auto numbers = document_.values(v.domain);
    return {std::bit_cast<double>(numbers.front()), std::bit_cast<double>(numbers.back())};
  }

  FloatConstraint::Range range_of(const Term& x) const {
    if (x.kind != Kind::variable) return {real(x), real(x)};
    if (is_open(x)) return declared(x);
    if (const auto& q = quantities_[static_cast<std::size_t>(x.value)]) return {q->lo, q->hi};
    constexpr double kInfinite = std::numeric_limits<double>::infinity();
    return {-kInfinite, kInfinite};
  }

  // Returns the decimals of a known term times a factor.
  int decimals_of(double factor, const Term& x) const {
    const Decimal product = decimal_of(x.kind == Kind::variable ? factor : factor * real(x));
    if (product.error > 0) return kInexact;
    const auto& q = x.kind == Kind::variable ? quantities_[static_cast<std::size_t>(x.value)] : std::nullopt;
    if (q && q->error > 0) return kInexact;
    return product.decimals + (q ? q->decimals : 0);
  }

  // Returns the decimals of the numbers that a constraint compares its open variables with, or `kInexact`.
  int decimals_of(const FloatConstraint& c) const {
    int result = 0;
    const auto require = [&](int decimals) {
      result = decimals == kInexact || result == kInexact ? kInexact : std::max(result, decimals);
    };
    if (c.form == Form::product || c.form == Form::absolute) return kInexact;
    for (const Term& t : c.inputs)
      if (!is_open(t)) require(decimals_of(1, t));
    if (c.result.kind != Kind::none && !is_open(c.result)) require(decimals_of(1, c.result));
    double unit = 0;
    for (const auto& [factor, x] : c.summands) {
      if (!is_open(x)) continue;
      // Three floats, or two with different factors, may have solutions between the points of any grid.
      const auto open = open_variables(c);
      if (open.size() > 2 || (unit != 0 && std::abs(factor) != std::abs(unit))) return kInexact;
      unit = factor;
    }
    if (unit == 0) return result;
    for (const auto& [factor, x] : c.summands)
      if (!is_open(x)) require(decimals_of(factor / unit, x));
    const auto require_number = [&](double x) {
      const Decimal d = decimal_of(x / unit);
      require(d.error > 0 ? kInexact : d.decimals);
    };
    require_number(c.bound);
    for (const auto& [lo, hi] : c.ranges) {
      require_number(lo);
      require_number(hi);
    }
    return result;
  }

  int decimals_of_domain(const Variable& v) const {
    if (v.domain.kind != Kind::real) return 0;
    int result = 0;
    for (const std::int64_t bits : document_.values(v.domain)) {
      const Decimal d = decimal_of(std::bit_cast<double>(bits));
      if (d.error > 0) return kInexact;
      result = std::max(result, d.decimals);
    }
    return result;
  }

  // Returns the least decimals of a grid that has solutions of a component.
  int least_decimals(std::size_t component) const {
    const double points = 4.0 * static_cast<double>(sizes_[component]) + 2;
    return decimals_[component] + static_cast<int>(std::ceil(std::log10(points)));
  }

  // Returns the most decimals that a float may have.
  int most_decimals(std::size_t v) const {
    const Variable& variable = document_.variables[v];
    if (variable.domain.kind != Kind::real) return kGridDecimals;
    double size = 0;
    for (const std::int64_t bits : document_.values(variable.domain))
      size = std::max(size, std::abs(std::bit_cast<double>(bits)));
    int result = kMostDecimals;
    while (result > 0 && size * power(result) > kGreatestGrid) --result;
    return result;
  }

  const Document& document_;
  const std::vector<FloatConstraint>& constraints_;
  const std::vector<std::optional<Quantity>>& quantities_;
  std::vector<char> is_ignored_;  // for each constraint
  DisjointSets components_;
  std::vector<int> decimals_, sizes_, grids_;  // of each component, by its root
  std::vector<char> is_inexact_;               // of each component, by its root
  ExactFloats result_;
};

}  // namespace

ExactFloats exact_floats(const Document& document, const std::vector<FloatConstraint>& constraints,
                         const std::vector<char>& is_definition,
                         const std::vector<std::optional<Quantity>>& quantities) {
  return Analysis(document, constraints, is_definition, quantities).run();
}

}  // namespace elimina::cp::flatzinc
