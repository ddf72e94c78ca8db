// Fast, strict reading of numbers and words from a buffer of text.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace elimina {

// Malformed input; Scanner::line() returns its line.
struct TextError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Rules of tokens: blanks separate tokens, each mark is a token by itself, '"' quotes, all other characters form words.
struct TextStyle {
  std::string blanks = " \t\r\n\v\f";
  std::string marks;
  bool quotes = false;
  bool block_comments = false;  // /* ... */
  // # ... and // ...; inside a word, // starts a comment but # does not.
  bool line_comments = false;
  bool glued_minus = false;  // "29-1" is two integers
};

class Scanner {
 public:
  Scanner(std::string_view text, const TextStyle& style);

  bool at_end();             // also skips blanks and comments
  bool at_line_end() const;  // true if no token follows on this line; comments count as tokens here
  std::size_t remaining() const { return static_cast<std::size_t>(end_ - at_); }
  std::int64_t line() const;                    // line of the last token, from 1
  std::string_view token(const char* what);     // the next token, without its quotes
  bool quoted() const { return quoted_; }       // true if the last token was in quotes
  void skip_past(char mark, const char* what);  // skips text up to and with the first `mark` outside quotes
  std::string_view peek();                      // the next token, which stays unread; empty at the end

  std::int64_t integer(const char* what);
  double real(const char* what);
  // Fails unless the rest of the text can hold `count` more tokens: call it before allocating by a declared size.
  void need(std::uint64_t count, const char* what);
  void integers(std::span<std::int64_t> out, const char* what);
  void reals(std::span<double> out, const char* what);

  // Reads `count` lists, each "k i1 .. ik" of distinct numbers below `bound`, as count + 1 offsets and the concatenated
  // members.
  struct Lists {
    std::vector<std::int64_t> offsets, members;
  };
  Lists lists(std::uint64_t count, std::int64_t bound, const char* what);
  // Reads tables, each "k v1 .. vk" with non-negative values, where table i must have k == sizes[i].
  void tables(std::span<const std::int64_t> sizes, std::span<double> out);
  // Reads tuples "i1 .. ik cost" with each i below its size, and no negative numbers.
  void tuples(std::span<const std::int64_t> sizes, std::span<std::int32_t> rows, std::span<std::int64_t> costs);
  // Reads up to `max_functions` cost functions, each "arity i1 .. ik default count" and then `count` tuples, as dense
  // tables; costs from `bound` on are forbidden. Ends before the first function with an error or over 32 variables, or
  // with so many cells that it is better kept as a list: more than `dense`, and more than `ratio` for each tuple.
  // Shared and global functions end the reading, too.
  struct Functions {
    std::vector<std::int64_t> starts{0}, members;  // starts and members of the scopes
    std::vector<std::int64_t> costs;
  };
  struct Dense {
    std::int64_t bound, forbidden, dense, ratio;
  };
  Functions functions(std::uint64_t max_functions, std::span<const std::int64_t> sizes, const Dense& rule);

  [[noreturn]] void fail(const std::string& what_was_expected, std::string_view text);

 private:
  void skip();
  void skip_block_comment();
  bool opens_comment(const char* slash) const;
  bool add_function(Functions& functions, std::span<const std::int64_t> sizes, const Dense& rule);
  const char* word_end(const char* p) const;
  std::string_view number_token(const char* what);

  const char *begin_, *at_, *end_, *mark_;
  std::array<std::uint8_t, 256> kind_{};
  TextStyle style_;
  bool quoted_ = false;
};

// Contents of a "probability" block of a BIF file, up to its closing brace, which is read, too.
struct ConditionalRows {
  std::vector<std::int64_t> parents;  // index of the parents' values for each row, the last parent fastest
  std::vector<double> values;         // child_size values for each row
  std::vector<double> defaults, table;
};
using LabelIndex = std::unordered_map<std::string, std::int64_t>;
ConditionalRows bif_rows(Scanner& scanner, std::size_t child_size, const std::vector<LabelIndex>& labels);

// Items of a list up to its closing bracket, "]" or "}", which is read, too; items may be quoted.
struct Items {
  std::vector<std::int64_t> integers;  // filled if all items are integers
  std::vector<double> reals;           // filled if all items are numbers
  std::vector<std::string> words;      // filled otherwise, and on request
};
Items bracket_items(Scanner& scanner, bool as_words);

}  // namespace elimina
