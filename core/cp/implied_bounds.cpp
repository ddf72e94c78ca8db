// Interval propagation that starts from infinite ranges: first over all constraints, then in each case of a clause or a
// Boolean.
#include "implied_bounds.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <string_view>

namespace elimina::cp {

namespace {

using Wide = __int128;

// Bounds beyond 2^62 count as infinite, so that products of a coefficient and a bound stay within 128 bits.
constexpr Wide kLargest = Wide{1} << 62, kInfinite = Wide{1} << 100;

constexpr bool is_infinite(Wide x) { return x > kLargest || x < -kLargest; }
constexpr Wide clamped(Wide x) { return x > kLargest ? kInfinite : x < -kLargest ? -kInfinite : x; }
constexpr Wide product(Wide a, Wide b) {
  if (a == 0 || b == 0) return 0;
  if (is_infinite(a) || is_infinite(b)) return (a > 0) == (b > 0) ? kInfinite : -kInfinite;
  return clamped(a * b);
}
constexpr Wide magnitude(Wide x) { return x < 0 ? -x : x; }
constexpr Wide quotient_down(Wide a, Wide b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }
constexpr Wide quotient_up(Wide a, Wide b) { return a / b + ((a % b != 0) && ((a < 0) == (b < 0))); }

struct Range {
  Wide lo = -kInfinite, hi = kInfinite;

  bool is_fixed() const { return lo == hi; }
  bool has(Wide x) const { return lo <= x && x <= hi; }
  Wide size() const { return std::max(magnitude(lo), magnitude(hi)); }
  Range operator-() const { return {-hi, -lo}; }
  static Range hull(Range a, Range b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }
};

enum class Compare : std::uint8_t { at_most, equal, different };

// Comparison of a sum with 0. The terms of the sum are factors times views.
struct Linear {
  Compare compare;
  std::vector<std::pair<Wide, View>> terms;

  Linear negated() const {
    if (compare != Compare::at_most) return {compare == Compare::equal ? Compare::different : Compare::equal, terms};
    Linear result{compare, {{1, constant(1)}}};
    for (const auto& [factor, x] : terms) result.terms.emplace_back(-factor, x);
    return result;
  }
};

enum class Control : std::uint8_t { none, reified, implied };

Control control_of(std::string_view& name) {
  for (const auto& [suffix, control] : {std::pair{"_reif", Control::reified}, {"_imp", Control::implied}})
    if (name.ends_with(suffix)) {
      name.remove_suffix(std::string_view(suffix).size());
      return control;
    }
  return Control::none;
}

std::optional<Linear> linear_of(std::string_view name, const std::vector<Argument>& a) {
  const auto pair = [&](Compare compare, int sign, Value gap) {
    return Linear{compare, {{sign, a[0][0]}, {-sign, a[1][0]}, {1, constant(gap)}}};
  };
  if (name == "bool_not") return pair(Compare::different, 1, 0);
  if (name == "bool2int") return pair(Compare::equal, 1, 0);
  if (name == "int_plus" || name == "int_minus")
    return Linear{Compare::equal, {{1, a[0][0]}, {name == "int_plus" ? 1 : -1, a[1][0]}, {-1, a[2][0]}}};
  for (const std::string_view kind : {"int_", "bool_"}) {
    if (!name.starts_with(kind)) continue;
    std::string_view rest = name.substr(kind.size());
    if (rest == "eq") return pair(Compare::equal, 1, 0);
    if (rest == "ne") return pair(Compare::different, 1, 0);
    if (rest == "le") return pair(Compare::at_most, 1, 0);
    if (rest == "lt") return pair(Compare::at_most, 1, 1);
    if (rest == "ge") return pair(Compare::at_most, -1, 0);
    if (rest == "gt") return pair(Compare::at_most, -1, 1);
    if (!rest.starts_with("lin_")) continue;
    rest.remove_prefix(4);
    if (rest != "eq" && rest != "eq_domain" && rest != "ne" && rest != "le") return std::nullopt;
    Linear result{rest == "le"   ? Compare::at_most
                  : rest == "ne" ? Compare::different
                                 : Compare::equal,
                  {{-1, a[2][0]}}};
    for (std::size_t i = 0; i < a[0].size(); ++i) result.terms.emplace_back(a[0][i].offset, a[1][i]);
    return result;
  }
  return std::nullopt;
}

class Propagation {
 public:
  explicit Propagation(const Statements& statements)
      : statements_(statements), users_(statements.bounds.size()), updates_(statements.bounds.size()) {
    for (std::size_t v = 0; v < statements.bounds.size(); ++v) {
      const auto& [lo, hi] = statements.bounds[v];
      ranges_.push_back(statements.is_open[v] ? Range{} : Range{lo, hi});
    }
    for (std::size_t s = 0; s < statements.posts.size(); ++s) {
      for (const Argument& argument : statements.posts[s].arguments)
        for (const View x : argument)
          if (x.var >= 0 && (users_[index(x)].empty() || users_[index(x)].back() != s)) users_[index(x)].push_back(s);
      queue_.push_back(s);
    }
    is_queued_.assign(statements.posts.size(), 1);
  }

  bool has_failed() const { return has_failed_; }
  Range range_of(int v) const { return ranges_[static_cast<std::size_t>(v)]; }

  void lower(View x, Wide hi) { narrow(x, {-kInfinite, hi}); }
  void raise(View x, Wide lo) { narrow(x, {lo, kInfinite}); }

  void run() {
    while (!queue_.empty() && !has_failed_) {
      const std::size_t s = queue_.front();
      queue_.pop_front();
      is_queued_[s] = 0;
      propagate(statements_.posts[s]);
    }
    if (has_failed_) clear_queue();
  }

  // Constructive disjunction: propagates under each literal of a clause and under both values of a Boolean, and narrows
  // each range to the hull of its ranges in these cases.
  void run_by_cases() {
    constexpr std::size_t kMostCopies = std::size_t{1} << 25;  // largest number of ranges that are copied
    std::size_t copies = 0;
    const auto probe = [&](const Views& literals) {
      std::vector<Range> hull;
      const std::vector<Range> before = ranges_;
      copies += before.size() * literals.size();
      for (const View literal : literals) {
        raise(literal, 1);
        run();
        const bool is_possible = !std::exchange(has_failed_, false);
        if (is_possible && hull.empty()) hull = ranges_;
        for (std::size_t v = 0; is_possible && v < ranges_.size(); ++v) hull[v] = Range::hull(hull[v], ranges_[v]);
        ranges_ = before;
      }
      has_failed_ = hull.empty();
      bool changes = false;
      for (std::size_t v = 0; v < hull.size(); ++v) {
        changes |= hull[v].lo > ranges_[v].lo || hull[v].hi < ranges_[v].hi;
        narrow({static_cast<std::int32_t>(v)}, hull[v]);
      }
      run();
      return changes;
    };
    const std::vector<Views> clauses = open_clauses();
    for (bool changes = true; changes && !has_failed_ && copies < kMostCopies;) {
      changes = false;
      for (const Views& clause : clauses)
        if (!has_failed_ && copies < kMostCopies && is_undecided(clause)) changes |= probe(clause);
    }
  }

 private:
  static std::size_t index(View x) { return static_cast<std::size_t>(x.var); }

  Range range(View x) const {
    if (x.var < 0) return {x.offset, x.offset};
    const Range r = ranges_[index(x)];
    const auto end = [&](Wide value) {
      return is_infinite(value) ? product(x.scale, value) : clamped(x.scale * value + x.offset);
    };
    const Wide a = end(r.lo), b = end(r.hi);
    return {std::min(a, b), std::max(a, b)};
  }

  void narrow(View x, Range to) {
    to = {std::min(to.lo, kLargest), std::max(to.hi, -kLargest)};
    if (x.var < 0) {
      has_failed_ |= !to.has(x.offset);
      return;
    }
    if (x.scale < 0) {
      to = -to;
      x = -x;
    }
    if (!is_infinite(to.lo)) to.lo = quotient_up(to.lo - x.offset, x.scale);
    if (!is_infinite(to.hi)) to.hi = quotient_down(to.hi - x.offset, x.scale);
    Range& now = ranges_[index(x)];
    const bool raises = to.lo > now.lo, lowers = to.hi < now.hi;
    if (!raises && !lowers) return;
    // Two constraints may raise each other's bounds without end, so a variable's finite bounds may change only so many
    // times.
    constexpr int kMostSteps = 1000;
    const bool is_new = (raises && is_infinite(now.lo)) || (lowers && is_infinite(now.hi));
    if (!is_new && ++updates_[index(x)] > kMostSteps) return;
    now = {std::max(now.lo, to.lo), std::min(now.hi, to.hi)};
    has_failed_ |= now.lo > now.hi;
    for (const std::size_t s : users_[index(x)])
      if (!std::exchange(is_queued_[s], 1)) queue_.push_back(s);
  }

  void clear_queue() {
    for (const std::size_t s : queue_) is_queued_[s] = 0;
    queue_.clear();
  }

  bool is_true(View b) const { return range(b).lo >= 1; }
  bool is_false(View b) const { return range(b).hi <= 0; }

  void at_most(const Linear& sum, int sign) {
    Wide finite = 0;
    int infinite = 0;
    const auto least = [&](Wide factor, View x) {
      const Range r = range(x);
      return product(sign * factor, sign * factor > 0 ? r.lo : r.hi);
    };
    for (const auto& [factor, x] : sum.terms) {
      const Wide low = least(factor, x);
      is_infinite(low) ? static_cast<void>(++infinite) : static_cast<void>(finite += low);
    }
    if (infinite > 1) return;
    for (const auto& [factor, x] : sum.terms) {
      const Wide low = least(factor, x), a = sign * factor;
      if (a == 0 || (infinite == 1 && !is_infinite(low))) continue;
      const Wide room = is_infinite(low) ? -finite : low - finite;
      a > 0 ? lower(x, quotient_down(room, a)) : raise(x, quotient_up(room, a));
    }
    if (infinite == 0 && finite > 0) has_failed_ = true;
  }

  void differ(const Linear& sum) {
    Wide rest = 0;
    const std::pair<Wide, View>* open = nullptr;
    for (const auto& term : sum.terms) {
      const Range r = range(term.second);
      if (r.is_fixed()) {
        rest += term.first * r.lo;
      } else if (std::exchange(open, &term)) {
        return;
      }
    }
    if (!open) {
      has_failed_ |= rest == 0;
    } else if (open->first != 0 && rest % open->first == 0) {
      const Wide excluded = -rest / open->first;
      const Range r = range(open->second);
      if (r.lo == excluded) raise(open->second, excluded + 1);
      if (r.hi == excluded) lower(open->second, excluded - 1);
    }
  }

  void enforce(const Linear& sum) {
    if (sum.compare == Compare::different) return differ(sum);
    at_most(sum, 1);
    if (sum.compare == Compare::equal) at_most(sum, -1);
  }

  // Returns the truth of the comparison: 1 if true, 0 if false, -1 if it depends on values.
  int truth(const Linear& sum) const {
    Wide lo = 0, hi = 0;
    for (const auto& [factor, x] : sum.terms) {
      const Range r = range(x);
      const Wide a = product(factor, r.lo), b = product(factor, r.hi);
      lo = lo < -kLargest || is_infinite(std::min(a, b)) ? -kInfinite : lo + std::min(a, b);
      hi = hi > kLargest || is_infinite(std::max(a, b)) ? kInfinite : hi + std::max(a, b);
    }
    if (sum.compare == Compare::at_most) return hi <= 0 ? 1 : lo > 0 ? 0 : -1;
    const int equal = lo > 0 || hi < 0 ? 0 : lo == 0 && hi == 0 ? 1 : -1;
    return sum.compare == Compare::equal || equal < 0 ? equal : 1 - equal;
  }

  void linear(const Linear& sum, Control control, const Statement& post) {
    if (control == Control::none) return enforce(sum);
    const View b = post.arguments.back()[0];
    if (is_true(b)) return enforce(sum);
    if (is_false(b)) {
      if (control == Control::reified) enforce(sum.negated());
      return;
    }
    const int value = truth(sum);
    if (value == 0) lower(b, 0);
    if (value == 1 && control == Control::reified) raise(b, 1);
  }

  // Propagates a disjunction. `b`: Boolean that equals or implies the disjunction; nullptr if there is none and the
  // disjunction has to hold.
  void clause(const Views& literals, const View* b, Control control) {
    const bool any = std::any_of(literals.begin(), literals.end(), [&](View x) { return is_true(x); });
    Views open;
    for (const View x : literals)
      if (!is_false(x)) open.push_back(x);
    if (b && control == Control::reified && any) raise(*b, 1);
    if (b && open.empty()) lower(*b, 0);
    if (b && control == Control::reified && is_false(*b))
      for (const View x : literals) lower(x, 0);
    if (any || (b && !is_true(*b))) return;
    if (open.empty()) has_failed_ = true;
    if (open.size() == 1) raise(open[0], 1);
  }

  static Views negations(const Views& xs) {
    Views result;
    for (const View x : xs) result.push_back(negation(x));
    return result;
  }

  // A disjunction of literals, and the Boolean that equals or implies it, if there is one. A conjunction becomes the
  // disjunction of its negated literals; nullopt for other constraints.
  struct Disjunction {
    Views literals;
    std::optional<View> value;
    Control control = Control::none;
  };
  static std::optional<Disjunction> disjunction_of(std::string_view name, Control control,
                                                   const std::vector<Argument>& a) {
    const std::optional<View> last = control == Control::none ? std::nullopt : std::optional(a.back()[0]);
    if (name == "bool_clause") {
      Views literals = a[0];
      for (const View x : negations(a[1])) literals.push_back(x);
      return Disjunction{literals, last, control};
    }
    const bool is_or = name == "array_bool_or" || name == "bool_or",
               is_and = name == "array_bool_and" || name == "bool_and";
    if (!is_or && !is_and) return std::nullopt;
    Views xs = a[0];
    if (!name.starts_with("array")) xs.push_back(a[1][0]);
    const View value = a.back()[0];
    if (is_or) return Disjunction{xs, value, control == Control::none ? Control::reified : control};
    // An equivalence with a conjunction is also one of the negations, and a negated conjunction is a disjunction. An
    // implication cannot be turned round in this way.
    if (control == Control::implied) return std::nullopt;
    return Disjunction{negations(xs), negation(value), Control::reified};
  }

  std::vector<Views> open_clauses() const {
    std::vector<Views> result;
    for (const Statement& post : statements_.posts) {
      std::string_view name = post.name;
      const Control control = control_of(name);
      const auto parts = disjunction_of(name, control, post.arguments);
      if (parts && (!parts->value || is_true(*parts->value))) result.push_back(parts->literals);
    }
    for (std::size_t v = 0; v < ranges_.size(); ++v)
      if (ranges_[v].lo == 0 && ranges_[v].hi == 1) {
        const View b{static_cast<std::int32_t>(v)};
        result.push_back({b, negation(b)});
      }
    return result;
  }

  bool is_undecided(const Views& clause) const {
    return std::none_of(clause.begin(), clause.end(), [&](View x) { return is_true(x); });
  }

  void maximum(View z, Views xs, bool least) {
    if (least) {
      z = -z;
      for (View& x : xs) x = -x;
    }
    Range all{-kInfinite, -kInfinite};
    for (const View x : xs) {
      all = {std::max(all.lo, range(x).lo), std::max(all.hi, range(x).hi)};
      lower(x, range(z).hi);
    }
    narrow(z, all);
  }

  void element(View index, const Views& items, View z) {
    narrow(index, {1, static_cast<Wide>(items.size())});
    if (has_failed_) return;
    const Range indices = range(index);
    Range all = range(items[static_cast<std::size_t>(indices.lo - 1)]);
    for (Wide i = indices.lo; i < indices.hi; ++i) all = Range::hull(all, range(items[static_cast<std::size_t>(i)]));
    narrow(z, all);
    if (indices.is_fixed()) narrow(items[static_cast<std::size_t>(indices.lo - 1)], range(z));
  }

  void times(View x, View y, View z) {
    const Range a = range(x), b = range(y);
    const Wide ends[] = {product(a.lo, b.lo), product(a.lo, b.hi), product(a.hi, b.lo), product(a.hi, b.hi)};
    const bool is_square = x.var == y.var && x.scale == y.scale && x.offset == y.offset;
    narrow(z, {is_square ? 0 : *std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4)});
    const Range c = range(z);
    if (is_infinite(c.size())) return;
    if (is_square) {
      const auto root = static_cast<Wide>(std::sqrt(static_cast<double>(c.size()))) + 1;
      narrow(x, {-root, root});
      return;
    }
    // In absolute value, a factor is at most the product if the other factor is not 0.
    for (const auto& [factor, other] : {std::pair{x, b}, {y, a}}) {
      if (other.has(0)) continue;
      const Wide largest = c.size() / std::min(magnitude(other.lo), magnitude(other.hi));
      narrow(factor, {-largest, largest});
    }
  }

  void divide(View x, View y, View z) {
    const Range a = range(x), b = range(y);
    narrow(z, {a.lo >= 0 && b.lo >= 0 ? 0 : -a.size(), a.size()});
    const Range c = range(z);
    if (is_infinite(b.size()) || is_infinite(c.size())) return;
    const Wide largest = product(b.size(), c.size() + 1);
    narrow(x, {-largest, largest});
  }

  void remainder(View x, View y, View z) {
    const Range a = range(x), b = range(y);
    const Wide largest = std::min(a.size(), is_infinite(b.size()) ? kInfinite : b.size() - 1);
    narrow(z, {a.lo >= 0 ? 0 : -largest, a.hi <= 0 ? 0 : largest});
  }

  void power(View x, View y, View z) {
    const Range a = range(x), b = range(y);
    // If y is 1 or more, the power is at least x in absolute value.
    if (b.lo >= 1 && !is_infinite(range(z).size())) narrow(x, {-range(z).size(), range(z).size()});
    if (is_infinite(a.size()) || is_infinite(b.hi)) return;
    Wide largest = 1;
    for (Wide i = 0; i < b.hi && a.size() > 1 && !is_infinite(largest); ++i) largest = product(largest, a.size());
    narrow(z, {a.lo >= 0 ? 0 : -largest, largest});
  }

  void columns(const Views& xs, const Argument& rows) {
    for (std::size_t i = 0; i < xs.size(); ++i) {
      Range all{kInfinite, -kInfinite};
      for (std::size_t k = i; k < rows.size(); k += xs.size()) all = Range::hull(all, {rows[k].offset, rows[k].offset});
      narrow(xs[i], all);
    }
  }

  void within(const Views& xs, Wide lo, Wide hi) {
    for (const View x : xs) narrow(x, {lo, hi});
  }

  void propagate(const Statement& post) {
    std::string_view name = post.name;
    const std::vector<Argument>& a = post.arguments;
    const Control control = control_of(name);
    if (const auto sum = linear_of(name, a)) return linear(*sum, control, post);
    if (const auto parts = disjunction_of(name, control, a))
      return clause(parts->literals, parts->value ? &*parts->value : nullptr, parts->control);
    if (name == "array_bool_and" && is_true(a[1][0])) return within(a[0], 1, 1);
    const auto count = [&](std::size_t i) { return static_cast<Wide>(a[i].size()); };
    if (name == "set_in") {
      if (control == Control::none || is_true(a.back()[0])) columns({a[0][0]}, a[1]);
    } else if (control != Control::none) {
      return;
    } else if (name == "int_times") {
      times(a[0][0], a[1][0], a[2][0]);
    } else if (name == "int_div") {
      divide(a[0][0], a[1][0], a[2][0]);
    } else if (name == "int_mod") {
      remainder(a[0][0], a[1][0], a[2][0]);
    } else if (name == "int_pow") {
      power(a[0][0], a[1][0], a[2][0]);
    } else if (name == "int_abs") {
      const Range x = range(a[0][0]);
      narrow(a[1][0], {x.has(0) ? 0 : std::min(magnitude(x.lo), magnitude(x.hi)), x.size()});
      narrow(a[0][0], {-range(a[1][0]).hi, range(a[1][0]).hi});
    } else if (name == "int_max" || name == "int_min") {
      maximum(a[2][0], {a[0][0], a[1][0]}, name == "int_min");
    } else if (name == "array_int_maximum" || name == "array_int_minimum") {
      maximum(a[0][0], a[1], name == "array_int_minimum");
    } else if (name.starts_with("array_") && name.ends_with("_element")) {
      element(a[0][0], a[1], a[2][0]);
    } else if (name == "table_int" || name == "table_bool") {
      columns(a[0], a[1]);
    } else if (name == "regular") {
      within(a[0], 1, a[2][0].offset);
    } else if (name.starts_with("circuit") || name.starts_with("subcircuit") || name == "weighted_circuit") {
      within(a[0], 0, count(0) - 1);
    } else if (name == "inverse") {
      within(a[0], 0, count(1) - 1);
      within(a[1], 0, count(0) - 1);
    } else if (name.starts_with("global_cardinality")) {
      within(a[2], 0, count(0));
      if (name.ends_with("_closed"))
        for (const View x : a[0]) columns({x}, a[1]);
    } else if (name == "count_eq") {
      within(a[2], 0, count(0));
    } else if (name == "nvalue") {
      within(a[0], 0, count(1));
    } else if (name == "bin_packing_load") {
      within(a[1], 0, count(0) - 1);
      Wide total = 0;
      for (const View size : a[2]) total += size.offset;
      within(a[0], 0, total);
    } else if (name.starts_with("lex_") && !a[0].empty() && !a[1].empty()) {
      at_most({Compare::at_most, {{1, a[0][0]}, {-1, a[1][0]}}}, 1);
    }
  }

  const Statements& statements_;
  std::vector<std::vector<std::size_t>> users_;
  std::vector<int> updates_;
  std::vector<Range> ranges_;
  std::deque<std::size_t> queue_;
  std::vector<char> is_queued_;
  bool has_failed_ = false;
};

}  // namespace

std::vector<int> variables_beyond_limits(const Statements& statements) {
  Propagation propagation(statements);
  const auto beyond = [&] {
    std::vector<int> result;
    for (std::size_t v = 0; v < statements.bounds.size(); ++v) {
      const Range r = propagation.range_of(static_cast<int>(v));
      const auto& [lo, hi] = statements.bounds[v];
      if (statements.is_open[v] && (r.lo < lo || r.hi > hi)) result.push_back(static_cast<int>(v));
    }
    return propagation.has_failed() ? std::vector<int>{} : result;
  };
  propagation.run();
  if (!beyond().empty()) propagation.run_by_cases();
  return beyond();
}

bool falls_without_end(const Statements& statements, View objective) {
  if (objective.var < 0 || !statements.is_open[static_cast<std::size_t>(objective.var)]) return false;
  const int direction = objective.scale > 0 ? -1 : 1;
  for (const Statement& post : statements.posts) {
    const bool has_it = std::any_of(post.arguments.begin(), post.arguments.end(), [&](const Argument& a) {
      return std::any_of(a.begin(), a.end(), [&](View x) { return x.var == objective.var; });
    });
    if (!has_it) continue;
    const auto sum = linear_of(post.name, post.arguments);
    if (!sum || sum->compare != Compare::at_most) return false;
    Wide slope = 0;
    for (const auto& [factor, x] : sum->terms)
      if (x.var == objective.var) slope += factor * x.scale;
    if (slope * direction > 0) return false;
  }
  return true;
}

}  // namespace elimina::cp
