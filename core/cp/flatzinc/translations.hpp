// Translations of constraints from MiniZinc's library and other solvers to this solver's names and arguments, or to
// several constraints.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cp/solver.hpp"

namespace elimina::cp::flatzinc {

// First and last integer of a set argument that the file writes as a range.
using Ends = std::pair<Value, Value>;

// Returns the integers of a range. Throws `Refused` if there are more than 2^24.
Argument listed(const Ends& range);

// A constraint of the file, and the sink to post it to. An argument that is a range may have millions of values, so its
// values are listed only when `list` is called.
class Translation {
 public:
  Translation(Sink& sink, std::vector<Argument> arguments, std::vector<std::optional<Ends>> ranges,
              std::string consistency, std::string side)
      : sink_(sink), arguments_(std::move(arguments)), ranges_(std::move(ranges)), consistency_(std::move(consistency)),
        side_(std::move(side)) {}

  // Suffixes of the names of constraints: the consistency of an all_different, and the processor that filters a
  // circuit.
  const std::string& consistency() const { return consistency_; }
  const std::string& side() const { return side_; }

  void expect(std::size_t count) const;
  const Argument& list(std::size_t i) const;
  // Returns the least and the greatest integer of an argument that is a range, or a set without gaps; nullopt for any
  // other set.
  std::optional<Ends> range(std::size_t i) const;
  View view(std::size_t i) const;
  Value value(std::size_t i) const;
  Argument shifted(std::size_t i, Value by) const;

  void post(const std::string& name, const std::vector<Argument>& arguments) const { sink_.post(name, arguments); }
  View boolean() const { return sink_.new_variable(0, 1); }
  View integer(Value lo, Value hi) const { return sink_.new_variable(lo, hi); }
  // Posts the reified form of a constraint, and returns its Boolean, which is 1 exactly if the constraint holds.
  View truth(const std::string& name, std::vector<Argument> arguments) const;

 private:
  Sink& sink_;
  mutable std::vector<Argument> arguments_;
  std::vector<std::optional<Ends>> ranges_;
  std::string consistency_, side_;
};

using Translate = void (*)(const Translation&);

// Returns the translation of a name; nullptr if the name is not translated.
Translate translation_of(std::string_view name);
// Returns all translated names.
std::vector<std::string> translated_names();

}  // namespace elimina::cp::flatzinc
