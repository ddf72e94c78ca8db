// Parses FlatZinc by recursive descent. Also accepts arrays of variables without values, as in old files.
#include <algorithm>
#include <array>

#include "reader.hpp"

namespace elimina::cp::flatzinc {

namespace {

constexpr const char* kTypeNames[] = {"a Boolean", "an integer", "a float", "a set of integers"};

bool begins_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word(char c) { return begins_word(c) || (c >= '0' && c <= '9'); }
bool begins_number(char c) { return (c >= '0' && c <= '9') || c == '-'; }

class Parser : public Reader {
 public:
  Parser(std::string_view text, const Poll& poll) : Reader(text, poll) {}

  Document run() {
    doc_.reserve(text_.size());
    bool solved = false;
    if (peek() == '{')
      throw Malformed(
          position(),
          "unsupported: FlatZinc as JSON; compile the MiniZinc model to text: minizinc -c --solver elimina MODEL.mzn");
    for (char c = peek(); at_ < end_; c = peek()) {
      look_up();
      const Position item_position = position();
      const Spot start = spot();
      const std::string_view keyword = begins_word(c) ? word() : "";
      if (keyword == "constraint") {
        constraint();
      } else if (keyword == "var") {
        variable();
      } else if (keyword == "array") {
        array(item_position);
      } else if (keyword == "predicate") {
        predicate();
      } else if (keyword == "solve") {
        if (solved) throw Malformed(item_position, "a second solve item");
        solved = true;
        solve(item_position);
      } else {
        go_to(start);
        parameter(item_position);
      }
      expect(';');
    }
    if (!solved) fail("a solve item");
    return std::move(doc_);
  }

 private:
  std::string_view word() {
    const char* begin = at_;
    while (at_ < end_ && is_word(*at_)) ++at_;
    return {begin, static_cast<std::size_t>(at_ - begin)};
  }

  std::string_view name(const char* what) {
    if (!begins_word(peek())) fail(what);
    return word();
  }

  bool accept_word(std::string_view expected) {
    if (!begins_word(peek())) return false;
    const Spot start = spot();
    if (word() == expected) return true;
    go_to(start);
    return false;
  }

  void expect_word(std::string_view expected) {
    if (!accept_word(expected)) fail("'" + std::string(expected) + "'");
  }

  bool accept_dots() {
    if (peek() != '.' || end_ - at_ < 2 || at_[1] != '.') return false;
    at_ += 2;
    return true;
  }

  void expect_dots() {
    if (!accept_dots()) fail("'..'");
  }

  std::int64_t integer(const char* what) {
    if (!begins_number(peek())) fail(what);
    const Spot start = spot();
    const Term t = number();
    if (t.kind == Kind::integer) return t.value;
    go_to(start);
    fail(what);
  }

  // The type of an item, and the values that it allows.
  struct Kinds {
    Type type;
    Term domain;
  };

  Kinds type() {
    if (accept_word("set")) {
      expect_word("of");
      const Kinds of = type();
      if (of.type != Type::integer) fail("a set of integers");
      return {Type::set, of.domain};
    }
    if (accept_word("bool")) return {Type::boolean, {}};
    if (accept_word("int")) return {Type::integer, {}};
    if (accept_word("float")) return {Type::real, {}};
    const char c = peek();
    if (!begins_number(c) && c != '{') fail("a type");
    const Spot start = spot();
    const Term domain = expression(0);
    if (domain.kind == Kind::real && domain.size > 0) return {Type::real, domain};
    if (domain.kind == Kind::range || domain.kind == Kind::set) return {Type::integer, domain};
    go_to(start);
    fail("a type");
  }

  // Reads "[1..n] of" after "array" and returns n. For "[int] of" and for several index sets, returns -1.
  std::int64_t length() {
    expect('[');
    std::int64_t result = -1;
    if (!accept_word("int")) {
      const std::int64_t first = integer("an index set, 1..n or int");
      expect_dots();
      result = integer("an integer");
      if (first != 1 || result < 0) fail("an index set from 1 on before this");
    }
    while (accept(',')) {
      if (accept_word("int")) continue;
      integer("an index set");
      expect_dots();
      integer("an integer");
      result = -1;
    }
    expect(']');
    expect_word("of");
    return result;
  }

  void predicate() {
    name("a predicate's name");
    expect('(');
    while (!accept(')')) {
      if (accept_word("array")) length();
      accept_word("var");
      type();
      expect(':');
      name("a parameter's name");
      annotations();
      if (peek() != ')') expect(',');
    }
    annotations();
  }

  void parameter(Position item_position) {
    if (!begins_word(peek()) && !begins_number(peek()) && peek() != '{')
      fail("an item: a declaration, constraint or solve");
    const Spot start = spot();
    static constexpr std::string_view kTypes[] = {"bool", "int", "float", "set"};
    if (begins_word(peek()) && std::find(std::begin(kTypes), std::end(kTypes), word()) == std::end(kTypes)) {
      go_to(start);
      fail("an item: a declaration, constraint or solve");
    }
    go_to(start);
    const Kinds kinds = type();
    expect(':');
    const std::string_view id = name("a name");
    const List notes = annotations();
    expect('=');
    const Term value = value_of(kinds.type);
    doc_.declare(id, value, notes, item_position);
  }

  // Reads a value of a type, or a variable of any type.
  Term value_of(Type type) {
    skip();
    const Spot start = spot();
    const Term t = expression(0);
    if (fits(t, type)) return t;
    go_to(start);
    fail(kTypeNames[static_cast<int>(type)]);
  }

  void variable() {
    const Kinds kinds = type();
    expect(':');
    const Position item_position = position();
    Variable v{name("a name"), kinds.type, kinds.domain, {}, {}, item_position};
    v.annotations = annotations();
    if (accept('=')) v.value = value_of(kinds.type);
    doc_.declare_variable(v);
  }

  void array(Position item_position) {
    const std::int64_t count = length();
    const bool is_var = accept_word("var");
    const Kinds kinds = type();
    expect(':');
    const std::string_view id = name("a name");
    const List notes = annotations();
    if (!accept('=')) {
      if (!is_var || count < 0) fail("'='");
      doc_.declare(id, anonymous(kinds, count, id, item_position), notes, item_position);
      return;
    }
    const Position value_position = position();
    const Term value = expression(0);
    if (value.kind != Kind::array) throw Malformed(value_position, "expected an array, found a single value");
    for (std::uint32_t i = 0; i < value.size; ++i)
      if (!fits(doc_.items(value)[i], kinds.type))
        throw Malformed(value_position, std::string("expected ") + kTypeNames[static_cast<int>(kinds.type)] +
                                            " as element " + std::to_string(i + 1) + " of " + std::string(id));
    if (count >= 0 && value.size != static_cast<std::uint64_t>(count))
      throw Malformed(value_position, "expected " + std::to_string(count) + " elements of " + std::string(id) +
                                          ", found " + std::to_string(value.size));
    doc_.declare(id, value, notes, item_position);
  }

  Term anonymous(const Kinds& kinds, std::int64_t count, std::string_view id, Position item_position) {
    // The size is limited, because a short line can declare an array that exceeds the memory.
    constexpr std::int64_t kMost = 1 << 24;
    if (count > kMost)
      throw Malformed(item_position, "an array of " + std::to_string(count) + " variables is too long: at most 2^24");
    std::vector<Term> elements;
    for (std::int64_t i = 0; i < count; ++i) {
      look_up();
      elements.push_back({Kind::variable, 0, static_cast<std::int64_t>(doc_.variables.size())});
      doc_.variables.push_back({id, kinds.type, kinds.domain, {}, {}, item_position});
    }
    return doc_.array_term(elements);
  }

  void constraint() {
    const Position item_position = position();
    Constraint c{name("a constraint's name"), {}, {}, item_position};
    expect('(');
    c.arguments = gathered(&Document::list, [&] { arguments(')', 0, false); });
    c.annotations = annotations();
    doc_.constraints.push_back(c);
  }

  void solve(Position item_position) {
    doc_.solve.position = item_position;
    doc_.solve.annotations = annotations();
    if (accept_word("satisfy")) return;
    const bool least = accept_word("minimize");
    if (!least && !accept_word("maximize")) fail("'satisfy', 'minimize' or 'maximize'");
    doc_.solve.goal = least ? Goal::minimise : Goal::maximise;
    doc_.solve.objective = expression(0);
  }

  List annotations() {
    return gathered(&Document::list, [&] {
      while (peek() == ':' && end_ - at_ >= 2 && at_[1] == ':') {
        at_ += 2;
        const std::string_view id = name("an annotation");
        const Term t = peek() == '(' ? call(id, 0) : doc_.text_term(Kind::atom, id);
        stack_.push_back(t);
      }
    });
  }

  Term call(std::string_view id, int depth) {
    expect('(');
    return call_of(id, [&] { arguments(')', depth + 1, true); });
  }

  // Reads expressions up to the character `close`, and pushes them onto the stack.
  void arguments(char close, int depth, bool annotated) {
    while (!accept(close)) {
      const Term t = expression(depth, annotated);
      stack_.push_back(t);
      if (peek() != close) expect(',');
    }
  }

  Term expression(int depth, bool annotated = false) {
    if (depth > kDeepest) fail("at most 100 levels of nesting");
    const char c = peek();
    if (begins_number(c)) return number_or_range();
    if (begins_word(c)) return named(depth, annotated);
    if (c == '{') return set();
    if (c == '"') return string();
    if (!accept('[')) fail("an expression");
    return gathered(&Document::array_term, [&] { arguments(']', depth + 1, annotated); });
  }

  // Returns a number as the bits of a float.
  static std::int64_t bits(const Term& t) {
    return t.kind == Kind::real ? t.value : std::bit_cast<std::int64_t>(static_cast<double>(t.value));
  }

  Term number_or_range() {
    const Term first = number();
    if (!accept_dots()) return first;
    const Position last_position = position();
    const Term last = number();
    if (first.kind == Kind::real || last.kind == Kind::real)
      return doc_.numbers_term(Kind::real, std::array{bits(first), bits(last)});
    if (last.value == INT64_MAX)
      throw Malformed(last_position, "unsupported: the integer 9223372036854775807 is beyond 2^52");
    return doc_.numbers_term(Kind::range, std::array{first.value, last.value});
  }

  Term set() {
    expect('{');
    values_.clear();
    bool is_real = false;
    std::vector<Term> elements;
    while (!accept('}')) {
      if (!begins_number(peek())) fail("a number or '}'");
      const Term t = number();
      is_real |= t.kind == Kind::real;
      elements.push_back(t);
      values_.push_back(t.value);
      if (peek() != '}') expect(',');
    }
    if (is_real) {
      std::sort(elements.begin(), elements.end(), [](const Term& a, const Term& b) {
        return std::bit_cast<double>(bits(a)) < std::bit_cast<double>(bits(b));
      });
      values_.clear();
      for (const Term& t : elements) values_.insert(values_.end(), 2, bits(t));
      return doc_.numbers_term(Kind::real, values_);
    }
    return set_of(values_);
  }

  Term string() {
    const char* begin = ++at_;
    for (; at_ < end_ && *at_ != '"' && *at_ != '\n'; ++at_)
      if (*at_ == '\\' && at_ + 1 < end_ && at_[1] != '\n') ++at_;
    if (at_ >= end_ || *at_ != '"') fail("'\"' at the end of a string");
    return doc_.text_term(Kind::string, {begin, static_cast<std::size_t>(at_++ - begin)});
  }

  Term named(int depth, bool annotated) {
    const Spot start = spot();
    const std::string_view id = word();
    if (id == "true" || id == "false") return {Kind::boolean, 0, id == "true"};
    if (annotated && peek() == '(') return call(id, depth);
    const Term* term = doc_.names.find(id);
    if (term && peek() == '[') return element(*term);
    if (term) return *term;
    if (annotated) return doc_.text_term(Kind::atom, id);
    go_to(start);
    throw Malformed(position(), "expected a declared name, found '" + std::string(id.substr(0, 40)) + "'");
  }

  Term element(const Term& array) {
    expect('[');
    if (array.kind != Kind::array) fail("an array before '['");
    const Position index_position = position();
    const std::int64_t i = integer("an index");
    if (i < 1 || i > static_cast<std::int64_t>(array.size))
      throw Malformed(index_position,
                      "expected an index from 1 to " + std::to_string(array.size) + ", found " + std::to_string(i));
    expect(']');
    return doc_.items(array)[static_cast<std::size_t>(i - 1)];
  }

  std::vector<std::int64_t> values_;
};

}  // namespace

Document parse_text(std::string_view text, const Poll& poll) { return Parser(text, poll).run(); }

}  // namespace elimina::cp::flatzinc
