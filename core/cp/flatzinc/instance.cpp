// Translation of items to variables and constraints of the solver.
#include "instance.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace elimina::cp::flatzinc {

namespace {

// Prefixes of the names of constraints in the libraries of MiniZinc and of solvers.
constexpr std::string_view kPrefixes[] = {"fzn_",     "elimina_", "jacop_",   "gecode_",
                                          "chuffed_", "ortools_", "minicpp_", "huub_"};

std::string_view without_prefix(std::string_view name) {
  for (const std::string_view prefix : kPrefixes)
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  return name;
}

bool is_constraint(std::string_view name) {
  static const auto table = [] {
    const auto names = constraint_names();
    return std::unordered_set<std::string>(names.begin(), names.end());
  }();
  for (const std::string_view suffix : {"_reif", "_imp"})
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  return table.contains(std::string(name));
}

constexpr std::string_view kAssume = "assume";

bool is_variable(const Term& t) { return t.kind == Kind::variable; }
std::int32_t number(const Term& t) { return static_cast<std::int32_t>(t.value); }

Value within_limits(Value value, Position position) {
  if (value > kLimit || value < -kLimit)
    throw Malformed(position, "unsupported: the integer " + std::to_string(value) + " is beyond 2^52");
  return value;
}

// Advice for constraints that no longer occur if MiniZinc compiles the model with the library of this solver.
constexpr const char* kCompile =
    "; compile the MiniZinc model for this solver: elimina install-minizinc, then minizinc -c --solver elimina "
    "MODEL.mzn";

// Returns advice for a constraint without a counterpart in the solver. Compiling the model again does not help if the
// constraint runs code during the search, because MiniZinc's library does not replace such constraints.
std::string advice_for(std::string_view name) {
  if (name.starts_with("on_restart_"))
    return "; no function runs at restarts: to search near the best solution, use the annotation relax_and_reconstruct "
           "or the option --lns";
  if (name.starts_with("blackbox")) return "; functions outside the model are not called";
  return kCompile;
}

// Bounds of a variable, which has no value if `lo` is greater than `hi`.
struct Bounds {
  Value lo = -kFree, hi = kFree;
};

// Calls the poll once for every 256 items.
void look_up(std::size_t item, const Poll& poll) {
  constexpr std::size_t kPatience = 255;
  if ((item & kPatience) == 0 && poll && !poll()) throw Abandoned{};
}

}  // namespace

Instance::Instance(const Document& document, Sink& solver, const Poll& poll,
                   const std::optional<std::vector<std::size_t>>& assumed)
    : document_(document), solver_(solver), sets_(document.variables.size()) {
  for (const Variable& v : document.variables) {
    if (v.type == Type::set) unsupported(v.position, "the set variable " + std::string(v.name) + kCompile);
  }
  tie_all();
  if (!make_variables(poll)) {
    solver_.post("int_lt", {{constant(0)}, {constant(0)}});
    return;
  }
  if (float_variable()) make_floats();
  restrict_domains(poll);
  post_constraints(poll);
  if (floats_) floats_->post_constraints(poll);
  const std::vector<Term> terms = assumed_terms();
  for (std::size_t i = 0; i < terms.size(); ++i)
    if (!assumed || std::find(assumed->begin(), assumed->end(), i) != assumed->end())
      solver_.post("int_eq", {{view(terms[i], document_.solve.position, "an assumption")}, {constant(1)}});
}

// Returns the Booleans that are assumed: first those of `assume` constraints, then those of the solve item.
std::vector<Term> Instance::assumed_terms() const {
  std::vector<Term> result;
  const auto add = [&](Terms arguments, Position position) {
    if (arguments.size() != 1 || arguments[0].kind != Kind::array)
      throw Malformed(position, "expected an array of Booleans in assume");
    for (const Term& t : document_.items(arguments[0])) {
      const bool is_boolean =
          t.kind == Kind::boolean ||
          (is_variable(t) && document_.variables[static_cast<std::size_t>(t.value)].type == Type::boolean);
      if (!is_boolean) throw Malformed(position, "expected Booleans in assume");
      result.push_back(t);
    }
  };
  for (const Constraint& c : document_.constraints)
    if (without_prefix(c.name) == kAssume) add(document_.items(c.arguments), c.position);
  for (const Term& t : document_.items(document_.solve.annotations))
    if (t.kind == Kind::call && document_.text(t) == kAssume) add(document_.items(t), document_.solve.position);
  return result;
}

std::vector<std::string> Instance::assumptions() const {
  std::vector<std::string> names;
  for (const Term& t : assumed_terms()) {
    const bool value = t.value != 0;
    names.emplace_back(is_variable(t) ? document_.variables[static_cast<std::size_t>(t.value)].name
                       : value        ? "true"
                                      : "false");
  }
  return names;
}

const Variable* Instance::float_variable() const {
  for (const Variable& v : document_.variables)
    if (v.type == Type::real) return &v;
  return nullptr;
}

// Makes the float variables, and marks those without bounds in `is_free_`, as for integers.
void Instance::make_floats() {
  floats_.emplace(document_, solver_, views_, bounds_, kFree);
  floats_->make_variables();
  is_free_.resize(static_cast<std::size_t>(solver_.variables()), false);
  for (const int var : floats_->free_variables()) is_free_[static_cast<std::size_t>(var)] = true;
}

void Instance::unsupported(Position position, const std::string& what) const {
  throw Malformed(position, "unsupported: " + what);
}

void Instance::tie_all() {
  for (std::size_t v = 0; v < document_.variables.size(); ++v)
    tie_value(document_.variables[v], static_cast<std::int32_t>(v));
  for (const Constraint& c : document_.constraints) is_posted_.push_back(tie_constraint(c));
}

void Instance::tie_value(const Variable& v, std::int32_t variable) {
  if (is_variable(v.value) && v.type != Type::real) sets_.join(variable, number(v.value), 1, 0);
}

// Adds a constraint to the disjoint sets if it is an equation that they can express; returns true if they now express
// it.
bool Instance::tie_constraint(const Constraint& c) {
  const Terms arguments = document_.items(c.arguments);
  if (c.name == "int_lin_eq") return tie_sum(arguments);
  if (arguments.size() != 2 || !is_variable(arguments[0]) || !is_variable(arguments[1])) return false;
  if (c.name == "bool2int" || c.name == "int_eq" || c.name == "bool_eq")
    return sets_.join(number(arguments[0]), number(arguments[1]), 1, 0);
  const auto is_boolean = [&](const Term& t) {
    return document_.variables[static_cast<std::size_t>(t.value)].type == Type::boolean;
  };
  if ((c.name != "bool_not" && c.name != "bool_ne") || !is_boolean(arguments[0]) || !is_boolean(arguments[1]))
    return false;
  return sets_.join(number(arguments[0]), number(arguments[1]), -1, 1);
}

bool Instance::tie_sum(Terms arguments) {
  if (arguments.size() != 3 || arguments[0].kind != Kind::array || arguments[1].kind != Kind::array ||
      arguments[2].kind != Kind::integer)
    return false;
  const Terms factors = document_.items(arguments[0]), xs = document_.items(arguments[1]);
  if (factors.size() != 2 || xs.size() != 2 || !is_variable(xs[0]) || !is_variable(xs[1])) return false;
  for (const Term& f : factors)
    if (f.kind != Kind::integer || (f.value != 1 && f.value != -1)) return false;
  const Value a = factors[0].value, b = factors[1].value, sum = arguments[2].value;
  if (sum > kFree || sum < -kFree) return false;
  return sets_.join(number(xs[0]), number(xs[1]), static_cast<std::int32_t>(-a * b), a * sum);
}

// Makes a variable for each root of the disjoint sets, with the common bounds of its members; returns false if there is
// no common value.
bool Instance::make_variables(const Poll& poll) {
  const std::size_t count = document_.variables.size();
  std::vector<Bounds> bounds(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Variable& v = document_.variables[i];
    if (v.type == Type::real) continue;
    Bounds declared;
    if (v.type == Type::boolean) declared = {0, 1};
    if (v.domain.kind == Kind::range || v.domain.kind == Kind::set) {
      const auto values = document_.values(v.domain);
      declared = values.empty()
                     ? Bounds{1, 0}
                     : Bounds{within_limits(values.front(), v.position), within_limits(values.back(), v.position)};
    }
    const View x = sets_.find(static_cast<std::int32_t>(i));
    Bounds& root = bounds[static_cast<std::size_t>(x.var)];
    if (declared.lo == -kFree && declared.hi == kFree) continue;
    // Default limits are replaced, not intersected: declared bounds may lie beyond them.
    const Bounds moved = x.scale > 0 ? Bounds{declared.lo - x.offset, declared.hi - x.offset}
                                     : Bounds{x.offset - declared.hi, x.offset - declared.lo};
    const bool is_new = root.lo == -kFree && root.hi == kFree;
    root = is_new ? moved : Bounds{std::max(root.lo, moved.lo), std::min(root.hi, moved.hi)};
  }
  views_.resize(count);
  bounds_.resize(count);
  bool empty = false;
  for (std::size_t i = 0; i < count; ++i) {
    look_up(i, poll);
    if (document_.variables[i].type == Type::real) continue;
    if (sets_.find(static_cast<std::int32_t>(i)).var != static_cast<std::int32_t>(i)) continue;
    const Bounds b = bounds[i];
    empty |= b.lo > b.hi;
    try {
      views_[i] = solver_.new_variable(std::min(b.lo, b.hi), b.hi);
      is_free_.push_back(b.lo == -kFree && b.hi == kFree);
    } catch (const Refused& error) {
      throw Malformed(document_.variables[i].position, error.what());
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (document_.variables[i].type == Type::real) continue;
    const View x = sets_.find(static_cast<std::int32_t>(i));
    views_[i] = {views_[static_cast<std::size_t>(x.var)].var, x.scale, x.offset};
    const Bounds root = bounds[static_cast<std::size_t>(x.var)];
    bounds_[i] = x.scale > 0 ? std::pair(root.lo + x.offset, root.hi + x.offset)
                             : std::pair(x.offset - root.hi, x.offset - root.lo);
  }
  return !empty;
}

void Instance::restrict_domains(const Poll& poll) {
  for (std::size_t i = 0; i < document_.variables.size(); ++i) {
    look_up(i, poll);
    restrict_variable(i);
  }
}

void Instance::restrict_variable(std::size_t i) {
  const Variable& v = document_.variables[i];
  if (v.type == Type::real) return;
  const View x = views_[i];
  if (v.domain.kind == Kind::set) {
    const auto values = document_.values(v.domain);
    const bool is_interval = values.empty() || values.back() - values.front() + 1 == static_cast<Value>(values.size());
    Argument set;
    for (const Value value : values) set.push_back(constant(value));
    if (!is_interval) solver_.post("set_in", {{x}, set});
  }
  if (v.value.kind == Kind::none) return;
  const View value = view(v.value, v.position, "a value");
  const bool is_tied = value.var == x.var && value.scale == x.scale && value.offset == x.offset;
  if (!is_tied) solver_.post("int_eq", {{x}, {value}});
}

void Instance::post_constraints(const Poll& poll) {
  for (std::size_t i = 0; i < document_.constraints.size(); ++i) {
    look_up(i, poll);
    if (is_posted_[i] || (floats_ && Floats::is_float(document_.constraints[i].name))) continue;
    const Constraint& c = document_.constraints[i];
    if (without_prefix(c.name) == kAssume) continue;
    try {
      post(c);
    } catch (const Refused& error) {
      const std::string problem(error.what()), name(c.name);
      throw Malformed(c.position, "constraint " + (problem.starts_with(name + ":") ? problem : name + ": " + problem));
    }
  }
}

void Instance::post(const Constraint& c) {
  const std::string_view plain = without_prefix(c.name);
  const Translate special = translation_of(c.name), translate = special ? special : translation_of(plain);
  const std::string name(is_constraint(plain) ? plain : c.name);
  if (!translate && !is_constraint(name))
    unsupported(c.position, "the constraint " + name.substr(0, 80) + advice_for(plain));
  if (name.starts_with("set_in")) return post_member(c);
  std::vector<Argument> arguments;
  std::vector<std::optional<Ends>> ranges;
  for (const Term& t : document_.items(c.arguments)) {
    const bool is_kept = translate && t.kind == Kind::range;
    arguments.push_back(is_kept ? Argument{} : argument(t, c.position, "an argument"));
    ranges.push_back(is_kept ? std::optional(ends_of(t, c.position)) : std::nullopt);
  }
  if (translate)
    return translate(Translation(solver_, std::move(arguments), std::move(ranges), consistency(c), side(c)));
  post_named(name == "int_lin_eq" ? name + first_of(c, {{"domain", "_domain"}}) : name, arguments);
}

// Posts a constraint whose name or arguments may differ between the file and the solver.
void Instance::post_named(const std::string& name, const std::vector<Argument>& arguments) {
  if (name == "bool_xor" && arguments.size() == 2) return solver_.post("bool_ne", arguments);
  const bool is_implied = name == "bool_and_imp" || name == "bool_or_imp" || name == "bool_xor_imp";
  if (!is_implied) return solver_.post(name, arguments);
  if (arguments.size() != 3 || arguments[0].size() != 1 || arguments[1].size() != 1)
    throw Refused("expected three Booleans");
  if (name == "bool_xor_imp") return solver_.post("bool_ne_imp", arguments);
  solver_.post("array_" + name, {{arguments[0][0], arguments[1][0]}, arguments[2]});
}

// Posts a membership in a set; membership in a range becomes two comparisons.
void Instance::post_member(const Constraint& c) {
  const Terms terms = document_.items(c.arguments);
  const std::string suffix(without_prefix(c.name).substr(6));
  const std::size_t count = suffix.empty() ? 2 : 3;
  if (terms.size() != count)
    throw Refused("expected " + std::to_string(count) + " arguments, found " + std::to_string(terms.size()));
  const Argument x{view(terms[0], c.position, "what is in a set")};
  const Argument b = suffix.empty() ? Argument{} : Argument{view(terms[2], c.position, "a Boolean")};
  const auto post = [&](const std::string& name, std::vector<Argument> arguments) {
    if (!suffix.empty()) arguments.push_back(b);
    solver_.post(name + suffix, arguments);
  };
  if (terms[1].kind == Kind::set) return post("set_in", {x, argument(terms[1], c.position, "a set")});
  if (terms[1].kind != Kind::range) throw Refused("the second argument is a set of integers");
  const auto [first, last] = ends_of(terms[1], c.position);
  const Argument lo{constant(first)}, hi{constant(last)};
  if (suffix == "_reif") {
    const Argument above{solver_.new_variable(0, 1)}, below{solver_.new_variable(0, 1)};
    solver_.post("int_le_reif", {lo, x, above});
    solver_.post("int_le_reif", {x, hi, below});
    return solver_.post("bool_and", {above, below, b});
  }
  post("int_le", {lo, x});
  post("int_le", {x, hi});
}

// Returns the suffix that belongs to the constraint's first annotation among `endings`; empty if it has none of them.
std::string Instance::first_of(const Constraint& c,
                               std::initializer_list<std::pair<std::string_view, const char*>> endings) const {
  for (const Term& annotation : document_.items(c.annotations))
    for (const auto& [text, end] : endings)
      if (annotation.kind == Kind::atom && document_.text(annotation) == text) return end;
  return "";
}

std::string Instance::side(const Constraint& c) const { return first_of(c, {{"cpu", "_cpu"}, {"gpu", "_gpu"}}); }

std::string Instance::consistency(const Constraint& c) const {
  const std::string ending = first_of(c, {{"value", "_value"},
                                          {"value_propagation", "_value"},
                                          {"bounds", "_bounds"},
                                          {"boundsZ", "_bounds"},
                                          {"bounds_propagation", "_bounds"}});
  return ending.empty() ? "_domain" + side(c) : ending;
}

View Instance::view(const Term& t, Position position, const char* what) const {
  switch (t.kind) {
    case Kind::boolean:
    case Kind::integer: return constant(within_limits(t.value, position));
    case Kind::variable: return views_[static_cast<std::size_t>(t.value)];
    case Kind::real: unsupported(position, std::string("a float as ") + what);
    case Kind::range:
    case Kind::set: unsupported(position, std::string("an array of sets as ") + what);
    default:
      throw Malformed(position,
                      std::string("expected an integer, a Boolean, a variable, a set or an array of them as ") + what);
  }
}

Ends Instance::ends_of(const Term& range, Position position) const {
  const auto ends = document_.values(range);
  return {within_limits(ends[0], position), within_limits(ends[1], position)};
}

Argument Instance::argument(const Term& t, Position position, const char* what) const {
  Argument result;
  if (t.kind == Kind::array) {
    for (const Term& element : document_.items(t)) result.push_back(view(element, position, what));
  } else if (t.kind == Kind::set) {
    for (const Value value : document_.values(t)) result.push_back(constant(within_limits(value, position)));
  } else if (t.kind == Kind::range) {
    try {
      return listed(ends_of(t, position));
    } catch (const Refused& error) {
      unsupported(position, std::string(error.what()) + ", as " + what);
    }
  } else {
    result.push_back(view(t, position, what));
  }
  return result;
}

}  // namespace elimina::cp::flatzinc
