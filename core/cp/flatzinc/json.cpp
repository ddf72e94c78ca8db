// FlatZinc's JSON form. The members of an object come in any order: their places are noted first.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "reader.hpp"

namespace elimina::cp::flatzinc {

namespace {

class Json : public Reader {
 public:
  Json(std::string_view text, const Poll& poll) : Reader(text, poll, false) {}

  Document run() {
    doc_.reserve(text_.size());
    const Members top = members();
    if (peek(); at_ < end_) fail("the end of the file");
    at(top, "variables", [&] { each_member([&](std::string_view name, Place here) { variable(name, here); }); });
    at(top, "arrays", [&] { each_member([&](std::string_view name, Place here) { array(name, here); }); });
    at(top, "constraints", [&] { each_element([&] { constraint(); }); });
    at(top, "output", [&] { each_element([&] { output(); }); });
    if (!at(top, "solve", [&] { solve(); })) fail("a member \"solve\"");
    return std::move(doc_);
  }

 private:
  using Members = std::map<std::string_view, Spot>;

  std::string_view string() {
    skip();
    const Spot start = spot();
    expect('"');
    const char* begin = at_;
    bool plain = true;
    for (; at_ < end_ && *at_ != '"' && static_cast<unsigned char>(*at_) >= 32; ++at_) {
      if (*at_ != '\\') continue;
      plain = false;
      if (++at_ >= end_) break;
    }
    if (at_ >= end_ || *at_ != '"') fail("'\"' at the end of a string");
    const std::string_view inside(begin, static_cast<std::size_t>(at_++ - begin));
    if (plain) return inside;
    return doc_.made.emplace_back(unescaped(inside, start));
  }

  std::string unescaped(std::string_view inside, const Spot& start) {
    std::string result;
    for (std::size_t i = 0; i < inside.size(); ++i) {
      if (inside[i] != '\\') {
        result += inside[i];
        continue;
      }
      const char c = inside[++i];
      static constexpr std::string_view kLetters = "bfnrt", kMeanings = "\b\f\n\r\t";
      const auto letter = kLetters.find(c);
      if (letter != std::string_view::npos) {
        result += kMeanings[letter];
      } else if (c == '"' || c == '\\' || c == '/') {
        result += c;
      } else {
        go_to(start);
        fail("no escapes but \\\" \\\\ \\/ \\b \\f \\n \\r \\t in this string");
      }
    }
    return result;
  }

  template <class F>
  void each_member(F f) {
    expect('{');
    while (!accept('}')) {
      look_up();
      const Place here = place();
      const std::string_view name = string();
      expect(':');
      f(name, here);
      if (peek() != '}') expect(',');
    }
  }

  template <class F>
  void each_element(F f) {
    expect('[');
    while (!accept(']')) {
      look_up();
      f();
      if (peek() != ']') expect(',');
    }
  }

  // Goes over a value, and over the whole object whose members it returns.
  void pass(int depth) {
    if (depth > kDeepest) fail("at most 100 levels of nesting");
    const char c = peek();
    if (c == '{') return each_member([&](std::string_view, Place) { pass(depth + 1); });
    if (c == '[') return each_element([&] { pass(depth + 1); });
    if (c == '"') {
      string();
    } else if (c == '-' || (c >= '0' && c <= '9')) {
      number();
    } else if (!accept_literal("null")) {
      boolean();
    }
  }

  Members members() {
    Members result;
    each_member([&](std::string_view name, Place here) {
      skip();
      if (!result.emplace(name, spot()).second) throw Malformed(here, "a second member \"" + std::string(name) + "\"");
      pass(0);
    });
    return result;
  }

  template <class F>
  bool at(const Members& where, std::string_view name, F f) {
    const auto member = where.find(name);
    if (member == where.end()) return false;
    const Spot after = spot();
    go_to(member->second);
    f();
    go_to(after);
    return true;
  }

  bool accept_literal(std::string_view word) {
    skip();
    if (!std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  bool boolean() {
    if (accept_literal("true")) return true;
    if (!accept_literal("false")) fail("a value");
    return false;
  }

  std::int64_t integer() {
    skip();
    const Spot start = spot();
    const Term t = number();
    if (t.kind == Kind::integer) return t.value;
    go_to(start);
    fail("an integer");
  }

  // [[1, 3], [5, 5]]: a range, or a set; `real` where a bound is.
  Term ranges() {
    constexpr std::int64_t kMost = 1 << 24;
    std::vector<std::int64_t> bounds;
    const Place here = place();
    bool real = false;
    each_element([&] {
      expect('[');
      for (int side = 0; side < 2; ++side) {
        const Term t = number();
        real |= t.kind == Kind::real;
        bounds.push_back(t.value);
        if (side == 0) expect(',');
      }
      expect(']');
    });
    if (real) return {Kind::real, 1, 0};
    if (bounds.size() == 2) return doc_.numbers_term(Kind::range, bounds);
    std::vector<std::int64_t> values;
    for (std::size_t i = 0; i < bounds.size(); i += 2) {
      const auto count = static_cast<__int128>(bounds[i + 1]) - bounds[i] + 1;
      if (count + static_cast<__int128>(values.size()) > kMost) throw Malformed(here, "a set of several ranges has at most 2^24 values");
      for (std::int64_t k = 0; k < static_cast<std::int64_t>(count); ++k) values.push_back(bounds[i] + k);
    }
    return set_of(values);
  }

  Term expression(int depth, bool annotated) {
    if (depth > kDeepest) fail("at most 100 levels of nesting");
    const char c = peek();
    if (c == '-' || (c >= '0' && c <= '9')) return number();
    if (c == '"') return named(annotated);
    if (c == '[') return gathered(&Document::array_term, [&] { elements(depth + 1, annotated); });
    if (c == '{') return object(depth, annotated);
    return {Kind::boolean, 0, boolean()};
  }

  // The expressions of an array, on the stack.
  void elements(int depth, bool annotated) {
    each_element([&] {
      const Term t = expression(depth, annotated);
      stack_.push_back(t);
    });
  }

  Term named(bool annotated) {
    const Place here = place();
    const std::string_view name = string();
    if (const Term* known = doc_.names.find(name)) return *known;
    if (annotated) return doc_.text_term(Kind::atom, name);
    throw Malformed(here, "expected a declared name, found \"" + std::string(name.substr(0, 40)) + "\"");
  }

  // {"set": ...}, {"string": ...}, or an annotation {"id": ..., "args": [...]}.
  Term object(int depth, bool annotated) {
    const Place here = place();
    const Members parts = members();
    Term result;
    if (at(parts, "set", [&] { result = ranges(); })) return result;
    if (at(parts, "string", [&] { result = doc_.text_term(Kind::string, string()); })) return result;
    std::string_view id;
    if (!annotated || !at(parts, "id", [&] { id = string(); })) throw Malformed(here, "expected a value, found an object without \"set\" or \"string\"");
    return call_of(id, [&] { at(parts, "args", [&] { elements(depth + 1, true); }); });
  }

  List expressions(const Members& parts, std::string_view member, bool annotated) {
    // An annotation's own name may be that of a variable.
    const auto element = [&] {
      const Term t = annotated && peek() == '"' ? doc_.text_term(Kind::atom, string()) : expression(0, annotated);
      stack_.push_back(t);
    };
    return gathered(&Document::list, [&] { at(parts, member, [&] { each_element(element); }); });
  }

  void variable(std::string_view name, Place here) {
    const Members parts = members();
    std::string_view type;
    if (!at(parts, "type", [&] { type = string(); })) throw Malformed(here, "expected a member \"type\" of " + std::string(name));
    static constexpr std::array<std::string_view, 4> kTypes = {"bool", "int", "float", "set of int"};
    const auto kind = std::find(kTypes.begin(), kTypes.end(), type);
    if (kind == kTypes.end()) throw Malformed(here, "expected the type bool, int, float or set of int, found " + std::string(type.substr(0, 40)));
    Variable v{name, static_cast<Type>(kind - kTypes.begin()), {}, {}, {}, here};
    at(parts, "domain", [&] { v.domain = ranges(); });
    if (v.domain.kind == Kind::real) v = {name, Type::real, {}, {}, {}, here};
    at(parts, "rhs", [&] { v.value = expression(0, false); });
    v.annotations = expressions(parts, "ann", true);
    if (defined(parts)) {
      doc_.terms.push_back(doc_.text_term(Kind::atom, "is_defined_var"));
      ++v.annotations.count;
    }
    doc_.declare_variable(v);
  }

  bool defined(const Members& parts) {
    bool result = false;
    at(parts, "defined", [&] { result = boolean(); });
    return result;
  }

  void array(std::string_view name, Place here) {
    const Members parts = members();
    Term value;
    if (!at(parts, "a", [&] { value = expression(0, false); }) || value.kind != Kind::array)
      throw Malformed(here, "expected an array as the member \"a\" of " + std::string(name));
    for (const Term& t : doc_.items(value)) {
      const bool is_value = fits(t, Type::boolean) || fits(t, Type::real) || fits(t, Type::set);
      if (!is_value) throw Malformed(here, "expected Booleans, numbers, sets of integers or variables as elements of " + std::string(name));
    }
    doc_.declare(name, value, expressions(parts, "ann", true), here);
  }

  void constraint() {
    const Place here = place();
    const Members parts = members();
    Constraint c{{}, {}, {}, here};
    if (!at(parts, "id", [&] { c.name = string(); })) throw Malformed(here, "expected a member \"id\" of a constraint");
    c.arguments = expressions(parts, "args", false);
    c.annotations = expressions(parts, "ann", true);
    doc_.constraints.push_back(c);
  }

  void output() {
    const Place here = place();
    const std::string_view name = string();
    const Term* known = doc_.names.find(name);
    if (!known) throw Malformed(here, "expected a declared name, found \"" + std::string(name.substr(0, 40)) + "\"");
    if (shown_.empty())
      for (const Output& o : doc_.outputs) shown_.insert(o.name);
    if (shown_.insert(name).second) doc_.outputs.push_back({name, *known, {}});
  }

  void solve() {
    doc_.solve.place = place();
    const Members parts = members();
    std::string_view method;
    at(parts, "method", [&] { method = string(); });
    if (method != "satisfy" && method != "minimize" && method != "maximize")
      throw Malformed(doc_.solve.place, "expected the method satisfy, minimize or maximize, found \"" + std::string(method.substr(0, 40)) + "\"");
    doc_.solve.annotations = expressions(parts, "ann", true);
    if (method == "satisfy") return;
    doc_.solve.goal = method == "minimize" ? Goal::minimise : Goal::maximise;
    if (!at(parts, "objective", [&] { doc_.solve.objective = expression(0, false); })) throw Malformed(doc_.solve.place, "expected a member \"objective\"");
  }

  std::set<std::string_view> shown_;
};

}  // namespace

Document parse_json(std::string_view text, const Poll& poll) { return Json(text, poll).run(); }

}  // namespace elimina::cp::flatzinc
