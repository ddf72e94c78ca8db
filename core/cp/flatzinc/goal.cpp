// The solve item's annotations, and solutions as text.
#include <algorithm>
#include <bit>
#include <charconv>
#include <unordered_map>

#include "instance.hpp"
#include "record.hpp"

namespace elimina::cp::flatzinc {

namespace {

Value value_of(View x, const Values& solution) {
  return x.var < 0 ? x.offset : x.scale * solution[static_cast<std::size_t>(x.var)] + x.offset;
}

void append(std::string& out, Value value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, end);
}

}  // namespace

Options Instance::options() {
  const Solve& solve = document_.solve;
  Options options;
  if (solve.goal != Goal::satisfy) {
    View objective = view(solve.objective, solve.position, "the objective");
    if (objective.var < 0) objective = solver_.fixed(objective.offset);
    options.minimise = solve.goal == Goal::minimise ? objective : -objective;
  }
  add_rules(document_.items(solve.annotations));
  const std::size_t rule_count = rules_.size();
  add_default_rules(options.minimise);
  options.relax = relaxation_.value_or(Relaxation{});
  if (!relaxation_)
    for (std::size_t i = 0; i < (rule_count > 0 ? rule_count : 2); ++i)
      options.relax->xs.insert(options.relax->xs.end(), rules_[i].xs.begin(), rules_[i].xs.end());
  options.rules = rules_;
  options.has_orderings = rule_count > 0;
  options.hints = hints_;
  options.restarts = restarts_;
  return options;
}

Value Instance::objective(const Values& solution) const {
  return value_of(view(document_.solve.objective, {}, "the objective"), solution);
}

int Instance::objective_decimals() const {
  const Term& t = document_.solve.objective;
  const bool is_float =
      floats_ && t.kind == Kind::variable && document_.variables[static_cast<std::size_t>(t.value)].type == Type::real;
  return is_float ? floats_->quantity(static_cast<std::size_t>(t.value)).decimals : 0;
}

Statements Instance::recorded(Record& record) const {
  Statements result{std::move(record.bounds), {is_free_.begin(), is_free_.end()}, std::move(record.posts)};
  result.is_open.resize(result.bounds.size(), 0);
  return result;
}

std::vector<std::string> Instance::unproven_limits(const Values* incumbent) const {
  if (!incumbent || goal() == Goal::satisfy) return beyond_limits(std::nullopt);
  return beyond_limits(objective(*incumbent));
}

// Returns names of variables without bounds that may be beyond their default limits in a solution. If `value` is given,
// only solutions with a better objective than this value count.
std::vector<std::string> Instance::beyond_limits(std::optional<Value> value) const {
  if (std::find(is_free_.begin(), is_free_.end(), true) == is_free_.end()) return {};
  // The model is posted again, to a record. A solver may number the variables differently, because constraints may add
  // variables to it.
  Record record;
  const Instance copy(document_, record, {});
  Statements all = copy.recorded(record);
  if (value) {
    const View x = copy.view(document_.solve.objective, {}, "the objective");
    all.posts.push_back({goal() == Goal::minimise ? "int_lt" : "int_gt", {{x}, {constant(*value)}}});
  }
  std::vector<std::string> names;
  for (const int var : variables_beyond_limits(all)) {
    std::string name;
    for (std::size_t i = 0; i < copy.views_.size(); ++i) {
      const std::string_view declared = document_.variables[i].name;
      // Names that MiniZinc introduced mean nothing to the user, so declared names replace them.
      if (copy.views_[i].var == var && (name.empty() || name.starts_with("X_INTRODUCED_"))) name = declared;
    }
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return !name.starts_with("X_INTRODUCED_"); });
  return names;
}

bool Instance::is_unbounded() const {
  if (goal() == Goal::satisfy) return false;
  Record record;
  const Instance copy(document_, record, {});
  const View x = copy.view(document_.solve.objective, {}, "the objective");
  return falls_without_end(copy.recorded(record), goal() == Goal::minimise ? x : -x);
}

void Instance::add_note(const std::string& text) {
  if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) notes_.push_back(text);
}

void Instance::add_rules(Terms annotations) {
  for (const Term& annotation : annotations) add_annotation(annotation);
}

void Instance::add_annotation(const Term& annotation) {
  if (annotation.kind != Kind::atom && annotation.kind != Kind::call) return;
  const std::string name(document_.text(annotation));
  const Terms arguments = annotation.kind == Kind::call ? document_.items(annotation) : Terms{};
  if ((name == "seq_search" || name == "warm_start_array") && arguments.size() == 1 && arguments[0].kind == Kind::array)
    return add_rules(document_.items(arguments[0]));
  if ((name == "int_search" || name == "bool_search") && arguments.size() >= 3) return add_search(arguments);
  // The second argument of a search on floats is a precision. It is dropped, because the grid of floats has its own
  // precision.
  if (name == "float_search" && arguments.size() >= 4) {
    const Term without_precision[] = {arguments[0], arguments[2], arguments[3]};
    return add_search(without_precision);
  }
  if (name == "priority_search" && arguments.size() >= 3 && arguments[1].kind == Kind::array)
    return add_priorities(arguments);
  if (name == "assume" && arguments.size() == 1) return;  // assumptions are posted as constraints
  if (name == "relax_and_reconstruct" && arguments.size() >= 2) return add_relaxation(arguments);
  if ((name == "warm_start" || name == "warm_start_int" || name == "warm_start_bool") && arguments.size() == 2)
    return add_hints(arguments);
  if (name.starts_with("restart_")) return add_restarts(name.substr(8), arguments);
  add_note("the annotation " + name + " of the solve item is ignored");
}

void Instance::add_search(Terms arguments) {
  Rule rule;
  for (const View x : argument(arguments[0], document_.solve.position, "what is searched"))
    if (x.var >= 0) rule.xs.push_back(x);
  rule.variable_ordering = variable_ordering_of(known_choice("variable", arguments[1], "dom_w_deg"));
  rule.value_ordering = value_ordering_of(known_choice("value", arguments[2], "indomain_min"));
  rules_.push_back(std::move(rule));
}

// Adds a rule for a priority search, with keys and a search annotation for each key (Feydy, Goldwaser, Schutt, Stuckey
// and Young, ModRef 2017).
void Instance::add_priorities(Terms arguments) {
  const Position position = document_.solve.position;
  const Terms annotations = document_.items(arguments[1]);
  Rule rule;
  for (const View x : argument(arguments[0], position, "a priority"))
    rule.keys.push_back(x.var >= 0 ? x : solver_.fixed(x.offset));
  if (rule.keys.size() != annotations.size())
    throw Malformed(position, "expected as many searches as variables in a priority_search, found " +
                                  std::to_string(annotations.size()) + " for " + std::to_string(rule.keys.size()));
  rule.variable_ordering = variable_ordering_of(known_choice("variable", arguments[2], "dom_w_deg"));
  std::vector<Rule> outer;
  outer.swap(rules_);
  for (const Term& annotation : annotations) {
    add_annotation(annotation);
    for (const Rule& each : rules_) rule.xs.insert(rule.xs.end(), each.xs.begin(), each.xs.end());
    rule.groups.push_back(std::move(rules_));
    rules_.clear();
  }
  rules_.swap(outer);
  if (!rule.groups.empty()) rules_.push_back(std::move(rule));
}

// Returns the name of the choice; if it is unknown, adds a note and returns `instead`.
std::string Instance::known_choice(const std::string& kind, const Term& choice, const std::string& instead) {
  if (choice.kind != Kind::atom)
    throw Malformed(document_.solve.position, "expected the name of a " + kind + " ordering in a search annotation");
  const std::string name(document_.text(choice));
  try {
    if (kind == "variable") variable_ordering_of(name);
    if (kind == "value") value_ordering_of(name);
    return name;
  } catch (const Refused&) {
    add_note("unknown " + kind + " ordering " + name + ": " + instead + " is used instead");
    return instead;
  }
}

void Instance::add_relaxation(Terms arguments) {
  Relaxation relaxation;
  for (const View x : argument(arguments[0], document_.solve.position, "what is relaxed"))
    if (x.var >= 0) relaxation.xs.push_back(x);
  const Term& share = arguments[1];
  if (share.kind != Kind::integer || share.value < 0 || share.value > 100)
    throw Malformed(document_.solve.position,
                    "expected the share of variables that keep their values in relax_and_reconstruct, from 0 to 100");
  relaxation.kept = static_cast<double>(share.value) / 100;
  relaxation_ = std::move(relaxation);
}

// Adds hints. If a variable has several hints, the search follows the first one in the file. MiniZinc lists annotations
// from the last to the first, so this is the last one of the model.
void Instance::add_hints(Terms arguments) {
  const Position position = document_.solve.position;
  const Argument xs = argument(arguments[0], position, "what is hinted"),
                 values = argument(arguments[1], position, "a hint");
  if (xs.size() != values.size())
    throw Malformed(position, "expected as many values as variables in a warm_start, found " +
                                  std::to_string(values.size()) + " for " + std::to_string(xs.size()));
  for (std::size_t i = 0; i < xs.size(); ++i) {
    if (values[i].var >= 0) throw Malformed(position, "expected numbers or Booleans as the values of a warm_start");
    if (xs[i].var >= 0) hints_.push_back({xs[i], values[i].offset});
  }
}

void Instance::add_restarts(const std::string& kind, Terms arguments) {
  static const std::unordered_map<std::string, Restarts::Kind> kinds{{"constant", Restarts::Kind::constant},
                                                                     {"linear", Restarts::Kind::linear},
                                                                     {"geometric", Restarts::Kind::geometric},
                                                                     {"luby", Restarts::Kind::luby},
                                                                     {"none", Restarts::Kind::none}};
  const auto entry = kinds.find(kind);
  if (entry == kinds.end()) {
    add_note("the annotation restart_" + kind + " of the solve item is ignored");
    return;
  }
  restarts_ = {entry->second, 100, 1.5};
  has_restarts_ = true;
  const auto value = [&](const Term& t) {
    const double result = t.kind == Kind::real      ? std::bit_cast<double>(t.value)
                          : t.kind == Kind::integer ? static_cast<double>(t.value)
                                                    : 0;
    if (!(result >= 1))
      throw Malformed(document_.solve.position, "expected numbers from 1 on as arguments of restart_" + kind);
    return result;
  };
  if (!arguments.empty()) restarts_.scale = value(arguments.back());
  if (arguments.size() == 2) restarts_.growth = value(arguments.front());
}

// Returns true for each variable that a constraint defines. MiniZinc also marks variables whose definitions it has
// dropped, such as the Booleans of a set, so the variables' own annotations do not count.
std::vector<bool> Instance::defined_variables() const {
  std::vector<bool> result(document_.variables.size(), false);
  for (const Constraint& constraint : document_.constraints)
    for (const Term& note : document_.items(constraint.annotations)) {
      if (note.kind != Kind::call || document_.text(note) != "defines_var") continue;
      for (const Term& t : document_.items(note))
        if (t.kind == Kind::variable) result[static_cast<std::size_t>(t.value)] = true;
    }
  return result;
}

// Adds rules for variables without a rule, in this order: integers and Booleans that no constraint defines, by
// dom/wdeg, those without bounds last; the objective; floats that no constraint defines; variables that constraints
// define, which mostly follow from the others.
void Instance::add_default_rules(const std::optional<View>& objective) {
  std::vector<bool> has_rule(static_cast<std::size_t>(solver_.variables()), false);
  for (const Rule& rule : rules_)
    for (const View x : rule.xs) has_rule[static_cast<std::size_t>(x.var)] = true;
  if (objective) has_rule[static_cast<std::size_t>(objective->var)] = true;
  Rule decided{{}, VariableOrdering::dom_w_deg, ValueOrdering::min};
  Rule unbounded{{}, VariableOrdering::dom_w_deg, ValueOrdering::split};
  Rule floats{{}, VariableOrdering::dom_w_deg, ValueOrdering::split};
  Rule defined{{}, VariableOrdering::input_order, ValueOrdering::split};
  const std::vector<bool> is_defined = defined_variables();
  for (const bool now : {false, true})
    for (std::size_t i = 0; i < views_.size(); ++i) {
      const auto var = static_cast<std::size_t>(views_[i].var);
      if (views_[i].var < 0) continue;
      if (is_defined[i] != now || has_rule[var]) continue;
      has_rule[var] = true;
      const bool is_float = document_.variables[i].type == Type::real;
      (now ? defined : is_float ? floats : is_free_[var] ? unbounded : decided).xs.push_back({views_[i].var});
    }
  rules_.push_back(std::move(decided));
  rules_.push_back(std::move(unbounded));
  if (objective) rules_.push_back({{*objective}, VariableOrdering::input_order, ValueOrdering::split});
  // Floats follow the objective. Once it has a value, halving the domain of a float fixes it in a few steps, instead of
  // one step for each value of the grid.
  rules_.push_back(std::move(floats));
  rules_.push_back(std::move(defined));
}

std::string Instance::show(const Values& solution) const {
  std::string out;
  for (const Output& output : document_.outputs) {
    out.append(output.name);
    out += " = ";
    if (output.value.kind == Kind::array) show_array(output, solution, out);
    else show_term(output.value, solution, out);
    out += ";\n";
  }
  return out += "----------\n";
}

void Instance::show_term(const Term& t, const Values& solution, std::string& out) const {
  switch (t.kind) {
    case Kind::boolean: out += t.value ? "true" : "false"; return;
    case Kind::integer: return append(out, t.value);
    case Kind::variable: {
      const auto i = static_cast<std::size_t>(t.value);
      const Value value = value_of(views_[i], solution);
      if (document_.variables[i].type == Type::real) {
        out += floats_->show(i, value);
        return;
      }
      if (document_.variables[i].type == Type::boolean) {
        out += value ? "true" : "false";
        return;
      }
      return append(out, value);
    }
    case Kind::range:
    case Kind::set: {
      const auto values = document_.values(t);
      const bool is_range = t.kind == Kind::range;
      if (!is_range) out += '{';
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (i > 0) out += is_range ? ".." : ",";
        append(out, values[i]);
      }
      if (!is_range) out += '}';
      return;
    }
    case Kind::real: {
      char digits[40];
      const auto end = std::to_chars(digits, digits + sizeof digits, std::bit_cast<double>(t.value)).ptr;
      out.append(digits, end);
      return;
    }
    default: out += '"', out += document_.text(t), out += '"';
  }
}

void Instance::show_array(const Output& output, const Values& solution, std::string& out) const {
  const auto elements = document_.items(output.value);
  const auto index_sets = output.index_sets.kind == Kind::array ? document_.items(output.index_sets) : Terms{};
  out += "array";
  append(out, static_cast<Value>(std::max<std::size_t>(index_sets.size(), 1)));
  out += "d(";
  for (const Term& set : index_sets) {
    show_term(set, solution, out);
    out += ", ";
  }
  if (index_sets.empty()) {
    out += "1..";
    append(out, static_cast<Value>(elements.size()));
    out += ", ";
  }
  out += '[';
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (i > 0) out += ", ";
    show_term(elements[i], solution, out);
  }
  out += "])";
}

}  // namespace elimina::cp::flatzinc
