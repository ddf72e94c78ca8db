#include "tables/text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>

namespace elimina {
namespace {

constexpr std::uint8_t kWord = 0, kBlank = 1, kMark = 2, kQuote = 3, kSlash = 4;

std::uint8_t byte(char c) { return static_cast<std::uint8_t>(c); }

std::string quote(std::string_view text) {
  constexpr std::size_t longest = 40;
  std::string shown;
  for (char c : text.substr(0, longest)) shown += (byte(c) < 32 || byte(c) > 126) ? '?' : c;
  return "'" + shown + (text.size() > longest ? "..." : "") + "'";
}

std::string_view without_plus(std::string_view text) {
  const bool plus = text.size() > 1 && text[0] == '+' && text[1] != '-' && text[1] != '+';
  return plus ? text.substr(1) : text;
}

enum class Number { ok, not_a_number, out_of_range };

// Parses a number. A positive literal below the smallest double is also out of range: a silent 0 would mean
// 'impossible'.
template <class T>
Number parse(std::string_view text, T& value) {
  text = without_plus(text);
  const auto [last, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (last != text.data() + text.size() || error == std::errc::invalid_argument) return Number::not_a_number;
  if (error != std::errc()) return Number::out_of_range;
  if constexpr (std::is_floating_point_v<T>) return std::isfinite(value) ? Number::ok : Number::not_a_number;
  return Number::ok;
}

template <class T>
T number_of(Scanner& scanner, std::string_view text, const char* what, const char* range) {
  T value = 0;
  const Number kind = parse(text, value);
  if (kind == Number::out_of_range) scanner.fail(std::string(what) + range, text);
  if (kind != Number::ok) scanner.fail(what, text);
  return value;
}

}  // namespace

Scanner::Scanner(std::string_view text, const TextStyle& style)
    : begin_(text.data()), at_(begin_), end_(begin_ + text.size()), mark_(begin_), style_(style) {
  for (char c : style.blanks) kind_[byte(c)] = kBlank;
  for (char c : style.marks) kind_[byte(c)] = kMark;
  if (style.quotes) kind_[byte('"')] = kQuote;
  if (style.block_comments || style.line_comments) kind_[byte('/')] = kSlash;
}

std::int64_t Scanner::line() const {
  const char* here = mark_;
  if (here == end_)
    while (here > begin_ && kind_[byte(here[-1])] == kBlank) --here;
  return 1 + std::count(begin_, here, '\n');
}

void Scanner::fail(const std::string& expected, std::string_view text) {
  throw TextError("expected " + expected + (text.empty() ? ", but the file ends here" : ", found " + quote(text)));
}

void Scanner::skip_block_comment() {
  const std::string_view rest(at_ + 2, remaining() - 2);
  const auto close = rest.find("*/");
  mark_ = at_;
  if (close == std::string_view::npos) throw TextError("the comment that starts here has no end");
  at_ += close + 4;
}

bool Scanner::opens_comment(const char* slash) const {
  if (end_ - slash < 2) return false;
  return (style_.block_comments && slash[1] == '*') || (style_.line_comments && slash[1] == '/');
}

void Scanner::skip() {
  while (at_ < end_) {
    if (kind_[byte(*at_)] == kBlank) {
      ++at_;
    } else if (kind_[byte(*at_)] == kSlash && opens_comment(at_)) {
      if (at_[1] == '*') {
        skip_block_comment();
      } else {
        at_ = std::find(at_, end_, '\n');
      }
    } else if (style_.line_comments && *at_ == '#') {
      at_ = std::find(at_, end_, '\n');
    } else {
      return;
    }
  }
}

bool Scanner::at_end() {
  skip();
  mark_ = at_;
  return at_ == end_;
}

bool Scanner::at_line_end() const {
  // The scanner may have skipped the end of the line already, so the blanks before its position are searched, too.
  const char *first = at_, *p = at_;
  while (first > begin_ && kind_[byte(first[-1])] == kBlank) --first;
  while (p < end_ && kind_[byte(*p)] == kBlank) ++p;
  return p == end_ || std::find(first, p, '\n') != p;
}

const char* Scanner::word_end(const char* p) const {
  while (p < end_ && (kind_[byte(*p)] == kWord || (kind_[byte(*p)] == kSlash && !opens_comment(p)))) ++p;
  return p;
}

std::string_view Scanner::token(const char* what) {
  if (at_end()) fail(what, {});
  const std::uint8_t kind = kind_[byte(*at_)];
  quoted_ = kind == kQuote;
  if (kind == kMark) return {at_++, 1};
  if (kind != kQuote) {
    at_ = word_end(at_);
    return {mark_, static_cast<std::size_t>(at_ - mark_)};
  }
  for (const char* p = at_ + 1; p < end_ && *p != '\n'; ++p) {
    if (*p == '\\' && p + 1 < end_) {
      ++p;
    } else if (*p == '"') {
      at_ = p + 1;
      return {mark_ + 1, static_cast<std::size_t>(p - mark_ - 1)};
    }
  }
  throw TextError("the quotation that starts here has no end on its line");
}

void Scanner::skip_past(char mark, const char* what) {
  mark_ = at_;
  while (at_ < end_ && *at_ != mark) {
    const char* line_end = std::find(at_, end_, '\n');
    const char* close = kind_[byte(*at_)] == kQuote ? std::find(at_ + 1, line_end, '"') : line_end;
    at_ = close == line_end ? at_ + 1 : close + 1;
  }
  if (at_ == end_) fail(what, {});
  mark_ = at_++;
}

std::string_view Scanner::peek() {
  if (at_end()) return {};
  const char* start = at_;
  const std::string_view next = token("a token");
  at_ = start;
  return next;
}

std::string_view Scanner::number_token(const char* what) {
  if (at_end()) fail(what, {});
  at_ = word_end(at_);
  if (at_ == mark_) fail(what, {mark_, 1});
  return {mark_, static_cast<std::size_t>(at_ - mark_)};
}

std::int64_t Scanner::integer(const char* what) {
  std::string_view text = number_token(what);
  if (style_.glued_minus) {
    const auto minus = text.find('-', 1);
    if (minus != std::string_view::npos && minus + 1 < text.size()) {
      text = text.substr(0, minus);
      at_ = mark_ + minus;
    }
  }
  return number_of<std::int64_t>(*this, text, what, " that fits 64 bits");
}

double Scanner::real(const char* what) {
  return number_of<double>(*this, number_token(what), what, " within the range of a double");
}

void Scanner::need(std::uint64_t count, const char* what) {
  skip();
  if (count <= (remaining() + 1) / 2) return;
  mark_ = at_;
  throw TextError("expected " + std::to_string(count) + " more items, each " + what + ", but only " +
                  std::to_string(remaining()) + " bytes follow");
}

void Scanner::integers(std::span<std::int64_t> out, const char* what) {
  for (auto& value : out) value = integer(what);
}

void Scanner::reals(std::span<double> out, const char* what) {
  for (auto& value : out) value = real(what);
}

Scanner::Lists Scanner::lists(std::uint64_t count, std::int64_t bound, const char* what) {
  need(count, what);
  Lists result;
  result.offsets.reserve(count + 1);
  result.offsets.push_back(0);
  std::vector<std::uint64_t> seen_in(static_cast<std::size_t>(bound), count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::int64_t size = integer("a number of variables");
    if (size < 0 || size > bound)
      fail("a number of variables from 0 to " + std::to_string(bound), std::to_string(size));
    for (std::int64_t k = 0; k < size; ++k) {
      const std::int64_t member = integer("a variable's index");
      if (member < 0 || member >= bound)
        fail("a variable's index from 0 to " + std::to_string(bound - 1), std::to_string(member));
      auto& seen = seen_in[static_cast<std::size_t>(member)];
      if (seen == i) fail("distinct variables in " + std::string(what), std::to_string(member) + " twice");
      seen = i;
      result.members.push_back(member);
    }
    result.offsets.push_back(static_cast<std::int64_t>(result.members.size()));
  }
  return result;
}

void Scanner::tables(std::span<const std::int64_t> sizes, std::span<double> out) {
  auto next = out.begin();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::int64_t size = integer("a number of table entries");
    if (size != sizes[i])
      fail(std::to_string(sizes[i]) + " entries in table " + std::to_string(i), std::to_string(size));
    for (std::int64_t k = 0; k < size; ++k, ++next) {
      *next = real("a non-negative number");
      if (*next < 0) fail("a non-negative number", {mark_, static_cast<std::size_t>(at_ - mark_)});
    }
  }
}

void Scanner::tuples(std::span<const std::int64_t> sizes, std::span<std::int32_t> rows, std::span<std::int64_t> costs) {
  auto next = rows.begin();
  for (auto& cost : costs) {
    for (const std::int64_t size : sizes) {
      const std::int64_t value = integer("a value");
      if (value < 0 || value >= size) fail("a value from 0 to " + std::to_string(size - 1), std::to_string(value));
      *next++ = static_cast<std::int32_t>(value);
    }
    cost = integer("a cost");
    if (cost < 0) fail("a cost of at least 0", std::to_string(cost));
  }
}

Scanner::Functions Scanner::functions(std::uint64_t max_functions, std::span<const std::int64_t> sizes,
                                      const Dense& rule) {
  Functions functions;
  for (std::uint64_t number = 0; number < max_functions; ++number) {
    const auto before = std::tuple(at_, mark_, quoted_);
    const std::size_t members = functions.members.size(), cells = functions.costs.size();
    bool is_read = false;
    try {
      is_read = add_function(functions, sizes, rule);
    } catch (const TextError&) {
      // The general reader continues at this cost function, and reports the error.
    }
    if (!is_read) {
      std::tie(at_, mark_, quoted_) = before;
      functions.members.resize(members);
      functions.costs.resize(cells);
      break;
    }
    functions.starts.push_back(static_cast<std::int64_t>(functions.members.size()));
  }
  return functions;
}

bool Scanner::add_function(Functions& functions, std::span<const std::int64_t> sizes, const Dense& rule) {
  constexpr std::int64_t kMostVariables = 32;  // largest number of axes of an array in NumPy 1
  const std::int64_t arity = integer("a function's arity");
  if (arity < 0 || arity > kMostVariables) return false;
  std::int64_t cells = 1;
  const std::size_t first = functions.members.size();
  for (std::int64_t i = 0; i < arity; ++i) {
    const std::int64_t v = integer("a variable's index");
    if (v < 0 || v >= static_cast<std::int64_t>(sizes.size())) return false;
    if (std::find(functions.members.begin() + static_cast<std::ptrdiff_t>(first), functions.members.end(), v) !=
        functions.members.end())
      return false;
    if (__builtin_mul_overflow(cells, sizes[static_cast<std::size_t>(v)], &cells)) return false;
    functions.members.push_back(v);
  }
  const std::int64_t other = integer("a default cost");
  if (other < 0) return false;
  const std::int64_t count = integer("a number of tuples");
  if (count < 0 || (arity == 0 && count > 0)) return false;
  need(static_cast<std::uint64_t>(count), "a tuple");
  if (cells > std::max(rule.dense, rule.ratio * count)) return false;
  const auto cost_of = [&](std::int64_t cost) { return cost >= rule.bound ? rule.forbidden : cost; };
  constexpr std::int64_t kUnlisted = -1;
  const std::size_t start = functions.costs.size();
  functions.costs.resize(start + static_cast<std::size_t>(cells), kUnlisted);
  const std::span<std::int64_t> table(functions.costs.data() + start, static_cast<std::size_t>(cells));
  for (std::int64_t tuple = 0; tuple < count; ++tuple) {
    std::int64_t cell = 0;
    for (std::int64_t i = 0; i < arity; ++i) {
      const std::int64_t size = sizes[static_cast<std::size_t>(functions.members[first + static_cast<std::size_t>(i)])],
                         value = integer("a value");
      if (value < 0 || value >= size) return false;
      cell = cell * size + value;
    }
    const std::int64_t cost = integer("a cost");
    std::int64_t& entry = table[static_cast<std::size_t>(cell)];
    if (cost < 0 || (entry != kUnlisted && entry != cost_of(cost))) return false;
    entry = cost_of(cost);
  }
  std::replace(table.begin(), table.end(), kUnlisted, cost_of(other));
  return true;
}

namespace {

constexpr std::size_t kLabelsShown = 8;

// Returns the first few labels, in the order of their numbers.
std::string labels_of(const LabelIndex& indices) {
  std::vector<std::string_view> sorted(indices.size());
  for (const auto& [label, index] : indices) sorted[index] = label;
  std::string text;
  for (std::size_t i = 0; i < std::min(sorted.size(), kLabelsShown); ++i) (text += i ? ", " : "") += sorted[i];
  return sorted.size() > kLabelsShown ? text + ", ..." : text;
}

}  // namespace

ConditionalRows bif_rows(Scanner& scanner, std::size_t child_size, const std::vector<LabelIndex>& labels) {
  ConditionalRows result;
  const auto is_mark = [&](std::string_view word, std::string_view mark) { return word == mark && !scanner.quoted(); };
  const auto reals = [&](std::vector<double>& out) {
    while (!is_mark(scanner.peek(), ";")) {
      const double value = scanner.real("a probability or ';'");
      if (value < 0) scanner.fail("a non-negative probability", std::to_string(value));
      out.push_back(value);
    }
    scanner.token("';'");
  };
  for (;;) {
    const std::string_view word = scanner.token("'(', 'table', 'default' or '}'");
    if (is_mark(word, "}")) return result;
    if (is_mark(word, "(")) {
      std::int64_t index = 0;
      for (const auto& indices : labels) {
        const std::string label(scanner.token("a parent's value"));
        const auto entry = indices.find(label);
        if (entry == indices.end())
          scanner.fail("a state of the parent in this place (" + labels_of(indices) + ")", label);
        index = index * static_cast<std::int64_t>(indices.size()) + entry->second;
      }
      if (const auto close = scanner.token("')'"); !is_mark(close, ")"))
        scanner.fail("')' after the parents' values", close);
      result.parents.push_back(index);
      reals(result.values);
      if (result.values.size() != result.parents.size() * child_size)
        throw TextError("expected " + std::to_string(child_size) + " probabilities in a row, found " +
                        std::to_string(result.values.size() + child_size - result.parents.size() * child_size));
    } else if (word == "table") {
      reals(result.table);
    } else if (word == "default") {
      reals(result.defaults);
    } else if (word == "property") {
      scanner.skip_past(';', "';' after the property");
    } else {
      scanner.fail("'(', 'table', 'default' or '}'", word);
    }
  }
}

Items bracket_items(Scanner& scanner, bool as_words) {
  Items items;
  bool integral = !as_words, numeric = !as_words;
  std::vector<std::string_view> seen;
  for (;;) {
    const std::string_view word = scanner.token("a list item or its closing bracket");
    if (!scanner.quoted() && (word == "]" || word == "}")) break;
    if (!scanner.quoted() && (word == "[" || word == "{")) scanner.fail("a list item or its closing bracket", word);
    seen.push_back(word);
    if (!numeric) continue;
    std::int64_t whole = 0;
    double real = 0;
    integral = integral && parse(word, whole) == Number::ok;
    const Number kind = parse(word, real);
    if (kind == Number::out_of_range) scanner.fail("a number within the range of a double", word);
    numeric = kind == Number::ok;
    if (integral) items.integers.push_back(whole);
    if (numeric) items.reals.push_back(real);
  }
  if (!integral) items.integers.clear();
  if (!numeric) {
    items.reals.clear();
    items.words.assign(seen.begin(), seen.end());
  }
  return items;
}

}  // namespace elimina
