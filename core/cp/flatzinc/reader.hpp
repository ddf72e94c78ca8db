// Lexical part of the parser: a position in the text, white space, comments, numbers.
#pragma once
#include <algorithm>
#include <bit>
#include <charconv>
#include <functional>

#include "document.hpp"

namespace elimina::cp::flatzinc {

class Reader {
 public:
  Reader(std::string_view text, const Poll& poll)
      : text_(text), at_(text.data()), end_(text.data() + text.size()), line_start_(text.data()), poll_(poll) {}

 protected:
  static constexpr int kDeepest = 100;

  struct Spot {
    const char* at;
    const char* line_start;
    std::uint32_t line;
  };
  Spot spot() const { return {at_, line_start_, line_}; }
  void go_to(const Spot& spot) {
    at_ = spot.at;
    line_start_ = spot.line_start;
    line_ = spot.line;
  }

  void skip() {
    for (; at_ < end_; ++at_) {
      const char c = *at_;
      if (c == '\n') {
        ++line_;
        line_start_ = at_ + 1;
      } else if (c == '%') {
        while (at_ < end_ && *at_ != '\n') ++at_;
        --at_;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        return;
      }
    }
  }

  // Returns the next character after white space; 0 at the end.
  char peek() {
    skip();
    return at_ < end_ ? *at_ : '\0';
  }

  bool accept(char c) {
    if (peek() != c || at_ >= end_) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) fail(std::string("'") + c + "'");
  }

  Position position() {
    skip();
    return {line_, static_cast<std::uint32_t>(at_ - line_start_ + 1)};
  }

  [[noreturn]] void fail(const std::string& expected) {
    const Position error_position = position();
    throw Malformed(error_position, "expected " + expected + ", found " +
                                        token_at(text_, static_cast<std::size_t>(at_ - text_.data())));
  }

  // Reads a number: a whole one as `integer`, any other as `real`.
  Term number() {
    skip();
    const char* begin = at_;
    const bool negative = at_ < end_ && *at_ == '-';
    const char* digits = at_ + negative;
    int base = 10;
    if (end_ - digits > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'o')) {
      base = digits[1] == 'x' ? 16 : 8;
      digits += 2;
    }
    std::uint64_t size = 0;
    const auto [stop, error] = std::from_chars(digits, end_, size, base);
    if (error == std::errc::invalid_argument) fail("a number");
    if (base == 10 && is_real(stop)) return real(begin);
    constexpr auto kEnd = std::uint64_t{1} << 63;
    if (error == std::errc::result_out_of_range || size >= kEnd + negative)
      throw Malformed(position(),
                      "the integer " +
                          std::string(begin, std::min<std::size_t>(static_cast<std::size_t>(stop - begin), 40)) +
                          " is beyond 64 bits");
    at_ = stop;
    return {Kind::integer, 0, static_cast<std::int64_t>(negative ? 0 - size : size)};
  }

  // Calls the poll once for every 4,096 items.
  void look_up() const {
    constexpr std::uint32_t kPatience = 4095;
    if ((++items_ & kPatience) == 0 && poll_ && !poll_()) throw Abandoned{};
  }

  // Calls `read`, which pushes terms onto the stack, and lets `make` turn them into a term or a list.
  template <class Make, class Read>
  auto gathered(Make make, Read read) {
    const std::size_t base = stack_.size();
    read();
    const auto result = std::invoke(make, doc_, std::span<const Term>(stack_).subspan(base));
    stack_.resize(base);
    return result;
  }
  template <class Read>
  Term call_of(std::string_view id, Read read) {
    return gathered([&](Document& doc, std::span<const Term> terms) { return doc.call_term(id, terms); }, read);
  }

  // Makes a set from values that may be unsorted and repeated.
  Term set_of(std::vector<std::int64_t>& values) {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return doc_.numbers_term(Kind::set, values);
  }

  Document doc_;
  std::vector<Term> stack_;
  std::string_view text_;
  const char* at_;
  const char* end_;
  const char* line_start_;
  std::uint32_t line_ = 1;

 private:
  // True for a decimal point or an exponent, false for the two dots of a range.
  bool is_real(const char* stop) const {
    if (stop >= end_) return false;
    return *stop == 'e' || *stop == 'E' || (*stop == '.' && stop + 1 < end_ && stop[1] >= '0' && stop[1] <= '9');
  }

  Term real(const char* begin) {
    double value = 0;
    const auto [stop, error] = std::from_chars(begin, end_, value);
    if (error != std::errc{}) fail("a number of 64 bits");
    at_ = stop;
    return {Kind::real, 0, std::bit_cast<std::int64_t>(value)};
  }

  const Poll& poll_;
  mutable std::uint32_t items_ = 0;
};

}  // namespace elimina::cp::flatzinc
