// A FlatZinc model as read: its items, and one list with the terms of all items. Names are parts of the text, which
// must outlive the document.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace elimina::cp::flatzinc {

// Position in a text: lines and columns count from 1, and columns count bytes.
struct Position {
  std::uint32_t line = 1, column = 1;
};

// An error in a text. The message has the form "LINE:COLUMN: ...", and nothing but printable characters.
struct Malformed : std::invalid_argument {
  Malformed(Position position, std::string problem) : std::invalid_argument(message(position, std::move(problem))) {}

 private:
  static std::string message(Position position, std::string problem) {
    for (char& c : problem)
      if (c < ' ' || c > '~') c = '?';
    return std::to_string(position.line) + ":" + std::to_string(position.column) + ": " + problem;
  }
};

// A function that is called now and then while a file is read and posted; if it returns false, reading ends with
// `Abandoned`.
using Poll = std::function<bool()>;
struct Abandoned {};

enum class Kind : std::uint8_t { none, boolean, integer, real, range, set, string, atom, call, variable, array };

// A term of a model. The meaning of `value` depends on the kind:
// - `boolean`, `integer`: the value.
// - `real`: the bits of the value. In a set of floats (`size` above 0), the position of the bounds of its ranges, which
//   are stored as bits.
// - `range`, `set`: the position of the first of `size` numbers (of a range: its bounds).
// - `string`, `atom`: the position of the text.
// - `variable`: the number of the variable.
// - `array`: the position of the first element.
// - `call`: the position of the first argument. The term before it is an atom with the name of the call.
struct Term {
  Kind kind = Kind::none;
  std::uint32_t size = 0;
  std::int64_t value = 0;
};

struct List {
  std::uint32_t first = 0, count = 0;
};

enum class Type : std::uint8_t { boolean, integer, real, set };

// True for a value of the type, or a variable. An integer is also a value of the type `real`. A set of floats has the
// kind `real` and a size, and fits no type.
inline bool fits(const Term& t, Type type) {
  switch (t.kind) {
    case Kind::variable: return true;
    case Kind::boolean: return type == Type::boolean;
    case Kind::integer: return type == Type::integer || type == Type::real;
    case Kind::real: return type == Type::real && t.size == 0;
    case Kind::range:
    case Kind::set: return type == Type::set;
    default: return false;
  }
}

struct Variable {
  std::string_view name;
  Type type;
  Term domain;  // none, a range or a set
  Term value;   // none, or the term that the variable equals
  List annotations;
  Position position;
};

struct Constraint {
  std::string_view name;
  List arguments, annotations;
  Position position;
};

// An item of the output of a solution.
struct Output {
  std::string_view name;
  Term value;
  Term index_sets;  // of an array: an array of ranges; none: indices from 1
};

enum class Goal : std::uint8_t { satisfy, minimise, maximise };

struct Solve {
  Goal goal = Goal::satisfy;
  Term objective;
  List annotations;
  Position position;
};

// Hash table from names to terms, with open addressing.
class Names {
 public:
  Names() : slots_(1024) {}
  // The term of a name; nullptr if there is none.
  const Term* find(std::string_view name) const;
  // Returns false if the name is taken.
  bool add(std::string_view name, const Term& term);

 private:
  struct Slot {
    std::string_view name;
    Term term;
    std::uint64_t hash = 0;
  };
  std::size_t position(std::string_view name, std::uint64_t hash) const;
  void grow();

  std::vector<Slot> slots_;
  std::size_t used_ = 0;
};

struct Document {
  std::vector<Term> terms;
  std::vector<std::int64_t> numbers;
  std::vector<std::string_view> texts;
  std::vector<Variable> variables;
  std::vector<Constraint> constraints;
  std::vector<Output> outputs;
  Solve solve;
  Names names;

  std::span<const Term> items(List list) const { return {terms.data() + list.first, list.count}; }
  std::span<const Term> items(const Term& t) const { return {terms.data() + t.value, t.size}; }
  std::span<const std::int64_t> values(const Term& t) const { return {numbers.data() + t.value, t.size}; }
  // Text of a string or an atom, or the name of a call.
  std::string_view text(const Term& t) const {
    return texts[static_cast<std::size_t>(t.kind == Kind::call ? terms[static_cast<std::size_t>(t.value) - 1].value
                                                               : t.value)];
  }

  // Reserves memory for a file of `bytes` bytes; unused pages are never touched.
  void reserve(std::size_t bytes);

  Term text_term(Kind kind, std::string_view text);
  Term numbers_term(Kind kind, std::span<const std::int64_t> values);
  Term array_term(std::span<const Term> elements);
  Term call_term(std::string_view name, std::span<const Term> arguments);
  List list(std::span<const Term> elements);

  // Declares a variable, and an output if its annotations say so.
  void declare_variable(const Variable& variable);
  // Declares a parameter or an array.
  void declare(std::string_view name, const Term& value, List annotations, Position position);
};

// Parses a model. Throws `Malformed`, with the expected item and its position, or `Abandoned` if the poll returns
// false.
Document parse_text(std::string_view text, const Poll& poll);

// Returns the name or the character at `start`, for a message.
std::string token_at(std::string_view text, std::size_t start);

}  // namespace elimina::cp::flatzinc
