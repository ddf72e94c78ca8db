#include "tables/csv.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

namespace elimina {
namespace {

constexpr std::size_t kMostLetters = 32;
constexpr int kMostDigits = 17;

// Exponents between which Python writes a number without an exponent.
constexpr int kLeastExponent = -4, kEndOfExponents = 16;

char* put(char* to, const char* text, std::size_t size) {
  std::memcpy(to, text, size);
  return to + size;
}

char* fill_zeros(char* to, int count) {
  for (; count > 0; --count) *to++ = '0';
  return to;
}

// Writes the shortest digits that identify a number, in the form of Python's repr.
char* write_shortest(char* to, double value) {
  std::array<char, kMostLetters> text;
  const char* end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific).ptr;
  const char* letter = text.data();
  if (*letter == '-') *to++ = *letter++;
  // One digit, and after a point more of them; then the exponent.
  std::array<char, kMostDigits> digits;
  int count = 0;
  for (; *letter != 'e'; ++letter)
    if (*letter != '.') digits[std::size_t(count++)] = *letter;
  const char* sign = letter + 1;
  int exponent = 0;
  std::from_chars(sign + (*sign == '+'), end, exponent);
  if (exponent < kLeastExponent || exponent >= kEndOfExponents) {
    *to++ = digits[0];
    if (count > 1) {
      *to++ = '.';
      to = put(to, digits.data() + 1, std::size_t(count - 1));
    }
    return put(to, letter, std::size_t(end - letter));
  }
  if (exponent < 0) {
    to = put(to, "0.", 2);
    to = fill_zeros(to, -exponent - 1);
    return put(to, digits.data(), std::size_t(count));
  }
  const int whole = std::min(count, exponent + 1);
  to = put(to, digits.data(), std::size_t(whole));
  to = fill_zeros(to, exponent + 1 - whole);
  *to++ = '.';
  if (whole == count) *to++ = '0';
  return put(to, digits.data() + whole, std::size_t(count - whole));
}

char* write(char* to, double value, int digits) {
  if (std::isnan(value)) return to;
  if (std::isinf(value)) return put(to, value < 0 ? "-inf" : "inf", value < 0 ? 4 : 3);
  if (digits == 0) return write_shortest(to, value);
  return std::to_chars(to, to + kMostLetters, value, std::chars_format::general, digits).ptr;
}

}  // namespace

std::string csv_lines(std::span<const double> values, std::span<const double> ends, int digits) {
  const std::size_t columns = ends.empty() ? 0 : values.size() / ends.size();
  std::string text(values.size() * kMostLetters + ends.size() * (kMostLetters + 1), '\0');
  char* to = text.data();
  const double* value = values.data();
  for (const double last : ends) {
    for (std::size_t column = 0; column < columns; ++column) {
      to = write(to, *value++, digits);
      *to++ = ',';
    }
    to = write(to, last, digits);
    *to++ = '\n';
  }
  text.resize(std::size_t(to - text.data()));
  return text;
}

}  // namespace elimina
