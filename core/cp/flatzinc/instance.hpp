// A FlatZinc model in a solver: its constraints, its search, and the output of solutions.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cp/implied_bounds.hpp"
#include "cp/search.hpp"
#include "disjoint_sets.hpp"
#include "document.hpp"
#include "floats.hpp"
#include "translations.hpp"

namespace elimina::cp::flatzinc {

// Integers without bounds get the bounds -kFree and kFree.
inline constexpr Value kFree = Value{1} << 42;

class Record;

class Instance {
 public:
  // Posts all items. `assumed`: numbers of the assumptions that hold; if not given, all of them hold. Throws
  // `Abandoned`, and `Malformed`; its message says "unsupported" if an item is well formed.
  Instance(const Document& document, Sink& solver, const Poll& poll,
           const std::optional<std::vector<std::size_t>>& assumed = std::nullopt);

  Goal goal() const { return document_.solve.goal; }
  // Returns the options of the search: rules, restarts, the objective, and the variables that a search near a solution
  // relaxes.
  Options options();
  // Value of the objective in a solution; if the objective is a float, in units of 10^-`objective_decimals`.
  Value objective(const Values& solution) const;
  int objective_decimals() const;
  // The first float variable; nullptr if there is none.
  const Variable* float_variable() const;
  // Returns names of variables without bounds that may be beyond their default limits in a solution. If `incumbent` is
  // given, only solutions better than it count. If no name is returned, a complete search within the limits is a proof.
  std::vector<std::string> unproven_limits(const Values* incumbent) const;
  // True if no solution beyond the default limits of variables can be better than `bound`.
  bool is_proven_bound(Value bound) const { return beyond_limits(bound).empty(); }
  // True if every solution can be improved.
  bool is_unbounded() const;
  // Returns the sink's view of a term: a variable of the document, or a constant integer or Boolean.
  View view(const Term& t, Position position, const char* what) const;
  // Returns a solution in FlatZinc's form, up to the line of dashes.
  std::string show(const Values& solution) const;

  // Names of the Booleans that are assumed.
  std::vector<std::string> assumptions() const;

  // True if an annotation asks for large neighbourhood search.
  bool is_relaxed() const { return relaxation_.has_value(); }
  // True if an annotation says how to restart, or not to.
  bool has_restarts() const { return has_restarts_; }

  // Search annotations that are ignored, and replacements of unknown orderings; each once.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  using Terms = std::span<const Term>;

  [[noreturn]] void unsupported(Position position, const std::string& what) const;
  void tie_all();
  void tie_value(const Variable& v, std::int32_t number);
  bool tie_constraint(const Constraint& c);
  bool tie_sum(Terms arguments);
  bool make_variables(const Poll& poll);
  void restrict_domains(const Poll& poll);
  void restrict_variable(std::size_t number);
  void post_constraints(const Poll& poll);
  std::vector<Term> assumed_terms() const;
  void post(const Constraint& c);
  void post_named(const std::string& name, const std::vector<Argument>& arguments);
  void post_member(const Constraint& c);
  std::string first_of(const Constraint& c,
                       std::initializer_list<std::pair<std::string_view, const char*>> endings) const;
  std::string consistency(const Constraint& c) const;
  std::string side(const Constraint& c) const;
  Argument argument(const Term& t, Position position, const char* what) const;
  Ends ends_of(const Term& range, Position position) const;
  // Returns the items of a record that this instance was posted to.
  Statements recorded(Record& record) const;
  std::vector<std::string> beyond_limits(std::optional<Value> value) const;
  void add_note(const std::string& text);

  void add_rules(Terms annotations);
  void add_annotation(const Term& annotation);
  void add_search(Terms arguments);
  void add_priorities(Terms arguments);
  void add_relaxation(Terms arguments);
  void add_hints(Terms arguments);
  void add_restarts(const std::string& kind, Terms arguments);
  std::vector<bool> defined_variables() const;
  void add_default_rules(const std::optional<View>& objective);
  std::string known_choice(const std::string& kind, const Term& choice, const std::string& instead);

  void make_floats();
  void show_term(const Term& t, const Values& solution, std::string& out) const;
  void show_array(const Output& output, const Values& solution, std::string& out) const;

  const Document& document_;
  Sink& solver_;
  DisjointSets sets_;
  std::optional<Floats> floats_;                 // set if there are float variables
  std::vector<std::pair<Value, Value>> bounds_;  // declared bounds of each variable of the document
  std::vector<View> views_;                      // view of each variable, once made
  std::vector<bool> is_free_;                    // for each of the sink's variables, true if nothing bounds it
  std::vector<bool> is_posted_;                  // for each constraint, true if the disjoint sets express it
  std::vector<Rule> rules_;
  std::vector<Hint> hints_;
  Restarts restarts_;
  bool has_restarts_ = false;
  std::optional<Relaxation> relaxation_;
  std::vector<std::string> notes_;
};

}  // namespace elimina::cp::flatzinc
