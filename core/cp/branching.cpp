#include "branching.hpp"

#include <cstdlib>
#include <unordered_map>

namespace elimina::cp {

namespace {

template <class T>
T lookup(const std::unordered_map<std::string, T>& table, const std::string& name, const char* what) {
  const auto entry = table.find(name);
  if (entry == table.end()) throw Refused(std::string("unknown ") + what + " ordering " + name);
  return entry->second;
}

// Returns the value at position `steps` of the domain in ascending order; the least value has position 0.
Value nth(const Domains& d, View x, Value steps) {
  if (d.is_interval(View{x.var})) return d.lo(x) + std::abs(x.scale) * steps;
  Value value = d.lo(x);
  while (steps-- > 0) value = d.above(x, value);
  return value;
}

// Returns the value closest to the middle of the bounds. If two are equally close, returns the one where the variable
// itself (not its view) is smaller.
Value middle(const Domains& d, View x) {
  const Value goal = floor_div(d.lo(x.var) + d.hi(x.var), 2);
  const auto outer = [&](Value inner) { return x.scale * inner + x.offset; };
  if (d.has(x.var, goal)) return outer(goal);
  const Value below = d.below(x.var, goal), above = d.above(x.var, goal);
  return outer(goal - below <= above - goal ? below : above);
}

// Returns the last value of the domain's first interval; the middle of the bounds if the domain is one interval.
Value end_of_interval(const Domains& d, View x) {
  if (d.is_interval(x)) return floor_div(d.lo(x) + d.hi(x), 2);
  Value value = d.lo(x);
  while (d.has(x, value + 1)) ++value;
  return value;
}

// Returns the value at which to split a wide domain with holes: a random one below the upper bound, or the middle of
// the bounds. Propagation removes few of the excluded values from inside such a domain. If values were tried one by
// one, each of these would cost a step.
Value within(const Domains& d, View x, ValueOrdering ordering, Random& random) {
  const Value width = d.hi(x) - d.lo(x);
  return d.lo(x) + (ordering == ValueOrdering::random
                        ? static_cast<Value>(random.below(static_cast<std::uint64_t>(width)))
                        : width / 2);
}

}  // namespace

VariableOrdering variable_ordering_of(const std::string& name) {
  using enum VariableOrdering;
  static const std::unordered_map<std::string, VariableOrdering> table{
      {"input_order", input_order}, {"first_fail", first_fail}, {"anti_first_fail", anti_first_fail},
      {"smallest", smallest},       {"largest", largest},       {"occurrence", occurrence},
      {"dom_w_deg", dom_w_deg},     {"max_regret", max_regret}, {"most_constrained", most_constrained}};
  return lookup(table, name, "variable");
}

ValueOrdering value_ordering_of(const std::string& name) {
  using enum ValueOrdering;
  static const std::unordered_map<std::string, ValueOrdering> table{{"indomain", min},
                                                                    {"indomain_min", min},
                                                                    {"indomain_max", max},
                                                                    {"indomain_median", median},
                                                                    {"indomain_middle", middle},
                                                                    {"indomain_random", random},
                                                                    {"indomain_split", split},
                                                                    {"indomain_reverse_split", reverse_split},
                                                                    {"indomain_interval", interval},
                                                                    {"outdomain_min", not_min},
                                                                    {"outdomain_max", not_max}};
  return lookup(table, name, "value");
}

Decision Decision::negated() const {
  switch (test) {
    case Test::is: return {x, Test::is_not, value};
    case Test::is_not: return {x, Test::is, value};
    case Test::at_most: return {x, Test::at_least, value + 1};
    default: return {x, Test::at_most, value - 1};
  }
}

bool Decision::apply(Domains& d) const {
  switch (test) {
    case Test::is: return d.assign(x, value);
    case Test::is_not: return d.remove(x, value);
    case Test::at_most: return value >= d.lo(x) && d.set_hi(x, value);
    default: return value <= d.hi(x) && d.set_lo(x, value);
  }
}

bool Decision::holds(const Domains& d) const {
  switch (test) {
    case Test::is: return d.fixed(x) && d.lo(x) == value;
    case Test::is_not: return !d.has(x, value);
    case Test::at_most: return d.hi(x) <= value;
    default: return d.lo(x) >= value;
  }
}

std::uint64_t Random::below(std::uint64_t count) {
  state_ ^= state_ << 13;
  state_ ^= state_ >> 7;
  state_ ^= state_ << 17;
  return (state_ >> 16) % count;
}

Decision decide_value(const Domains& d, View x, ValueOrdering ordering, Random& random) {
  const Value lo = d.lo(x), hi = d.hi(x);
  const bool is_inner = ordering == ValueOrdering::median || ordering == ValueOrdering::middle ||
                        ordering == ValueOrdering::random || ordering == ValueOrdering::interval;
  const bool is_wide = !d.has_row(x.var) || hi - lo > kListed;
  if (is_inner && is_wide && !d.is_interval(View{x.var})) return {x, Test::at_most, within(d, x, ordering, random)};
  switch (ordering) {
    case ValueOrdering::min: return {x, Test::is, lo};
    case ValueOrdering::max: return {x, Test::is, hi};
    case ValueOrdering::median: return {x, Test::is, nth(d, x, (d.size(x) - 1) / 2)};
    case ValueOrdering::middle: return {x, Test::is, middle(d, x)};
    case ValueOrdering::random:
      return {x, Test::is, nth(d, x, static_cast<Value>(random.below(static_cast<std::uint64_t>(d.size(x)))))};
    case ValueOrdering::split: return {x, Test::at_most, floor_div(lo + hi, 2)};
    case ValueOrdering::reverse_split: return {x, Test::at_least, floor_div(lo + hi, 2) + 1};
    case ValueOrdering::interval: return {x, Test::at_most, end_of_interval(d, x)};
    case ValueOrdering::not_min: return {x, Test::is_not, lo};
    default: return {x, Test::is_not, hi};
  }
}

Brancher::Brancher(Engine& engine, Rule rule) : rule_(std::move(rule)), first_(engine.trail().make(1, 0)) {
  for (const std::vector<Rule>& group : rule_.groups) {
    groups_.emplace_back();
    for (const Rule& each : group) groups_.back().emplace_back(engine, each);
  }
}

double Brancher::rank(const Engine& engine, View x) const {
  const Domains& d = engine.domains();
  switch (rule_.variable_ordering) {
    case VariableOrdering::first_fail: return static_cast<double>(d.size(x));
    case VariableOrdering::anti_first_fail: return -static_cast<double>(d.size(x));
    case VariableOrdering::smallest: return static_cast<double>(d.lo(x));
    case VariableOrdering::largest: return -static_cast<double>(d.hi(x));
    case VariableOrdering::occurrence: return -static_cast<double>(engine.degree(x.var));
    case VariableOrdering::most_constrained:
      return static_cast<double>(d.size(x)) - static_cast<double>(engine.degree(x.var)) * 0x1p-32;
    case VariableOrdering::max_regret: return d.fixed(x) ? 0 : -static_cast<double>(d.above(x, d.lo(x)) - d.lo(x));
    default: return static_cast<double>(d.size(x)) / (std::max(engine.weight(x.var), 0.0) + 1);
  }
}

// Returns the position, from `first` on, of the open variable of least rank (of several, the first one). With the
// ordering `input_order`, returns `first`.
std::size_t Brancher::pick(Engine& engine, std::size_t first) const {
  if (rule_.variable_ordering == VariableOrdering::input_order) return first;
  if (rule_.variable_ordering == VariableOrdering::dom_w_deg) engine.weigh_active();
  const Domains& d = engine.domains();
  std::size_t best = first;
  double least = rank(engine, rule_.xs[first]);
  for (std::size_t i = first + 1; i < rule_.xs.size(); ++i) {
    if (d.fixed(rule_.xs[i])) continue;
    const double value = rank(engine, rule_.xs[i]);
    if (value >= least) continue;
    least = value;
    best = i;
  }
  return best;
}

// Picks one of the groups with variables to decide: the first one for the ordering `input_order`, else the one whose
// key has the least rank. Returns the number of groups if every variable is decided.
std::size_t Brancher::pick_group(const Engine& engine) const {
  const Domains& d = engine.domains();
  std::size_t best = groups_.size();
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const bool is_open = std::any_of(rule_.groups[i].begin(), rule_.groups[i].end(), [&](const Rule& rule) {
      return std::any_of(rule.xs.begin(), rule.xs.end(), [&](View x) { return !d.fixed(x); });
    });
    if (!is_open) continue;
    if (rule_.variable_ordering == VariableOrdering::input_order) return i;
    if (best == groups_.size() || rank(engine, rule_.keys[i]) < rank(engine, rule_.keys[best])) best = i;
  }
  return best;
}

bool Brancher::decide_in_groups(Engine& engine, Random& random, Decision& decision) {
  if (rule_.variable_ordering == VariableOrdering::dom_w_deg) engine.weigh_active();
  for (;;) {
    const auto current = static_cast<std::size_t>(engine.trail().get(first_));
    if (current > 0)
      for (Brancher& brancher : groups_[current - 1])
        if (brancher.decide(engine, random, decision)) return true;
    const std::size_t next = pick_group(engine);
    if (next == groups_.size()) return false;
    engine.trail().set(first_, next + 1);
  }
}

bool Brancher::decide(Engine& engine, Random& random, Decision& decision) {
  if (!groups_.empty()) return decide_in_groups(engine, random, decision);
  const Domains& d = engine.domains();
  auto first = static_cast<std::size_t>(engine.trail().get(first_));
  while (first < rule_.xs.size() && d.fixed(rule_.xs[first])) ++first;
  engine.trail().set(first_, first);
  if (first == rule_.xs.size()) return false;
  decision = decide_value(d, rule_.xs[pick(engine, first)], rule_.value_ordering, random);
  return true;
}

HintBrancher::HintBrancher(Engine& engine, const std::vector<Hint>& hints)
    : hints_(hints), first_(engine.trail().make(1, 0)) {}

bool HintBrancher::decide(Engine& engine, Decision& decision) {
  const Domains& d = engine.domains();
  auto first = static_cast<std::size_t>(engine.trail().get(first_));
  while (first < hints_.size() && (d.fixed(hints_[first].x) || !d.has(hints_[first].x, hints_[first].value))) ++first;
  engine.trail().set(first_, first);
  if (first == hints_.size()) return false;
  decision = {hints_[first].x, Test::is, hints_[first].value};
  return true;
}

}  // namespace elimina::cp
