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

// Malformed input; Scanner::line() gives the place.
struct TextError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Rules of tokens: blanks separate, each mark is a token of its own, '"' quotes, the rest form words.
struct TextStyle {
  std::string blanks = " \t\r\n\v\f";
  std::string marks;
  bool quotes = false;
  bool block_comments = false;  // /* ... */
  bool line_comments = false;   // # ... and // ...; as block comments, // may end a word, # not
  bool glued_minus = false;     // "29-1" are two integers
};

class Scanner {
 public:
  Scanner(std::string_view text, const TextStyle& style);

  bool at_end();             // also skips blanks and comments
  bool at_line_end() const;  // whether no token follows on this line; comments are tokens here
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  std::int64_t line() const;                    // of the last token read, from 1
  std::string_view token(const char* what);     // the next token, without its quotes
  bool quoted() const { return quoted_; }       // whether the last token was in quotes
  void skip_past(char mark, const char* what);  // skips raw text outside quotes
  std::string_view peek();                      // the next token, empty at the end; it stays unread

  std::int64_t integer(const char* what);
  double real(const char* what);
  // Fails unless `count` more tokens can be in the rest of the text: call it before allocating from a declared size.
  void need(std::uint64_t count, const char* what);
  void integers(std::span<std::int64_t> out, const char* what);
  void reals(std::span<double> out, const char* what);

  // `count` lists, each "k i1 .. ik" of distinct numbers below `bound`: offsets (count + 1) and the concatenated members.
  struct Lists {
    std::vector<std::int64_t> offsets, members;
  };
  Lists lists(std::uint64_t count, std::int64_t bound, const char* what);
  // Tables, each "k v1 .. vk" with non-negative values, where table i must have k == sizes[i].
  void tables(std::span<const std::int64_t> sizes, std::span<double> out);
  // Lines "i1 .. ik cost" with each i below its size and cost >= 0.
  void tuples(std::span<const std::int64_t> sizes, std::span<std::int32_t> rows, std::span<std::int64_t> costs);
  // Up to `most` cost functions "arity i1 .. ik default count" and so many tuples, as dense tables, in which costs from `bound` on are
  // forbidden. Ends before the first function that is malformed, shared, global, of many variables, or better listed: one of over `dense`
  // cells and over `ratio` times as many as tuples.
  struct Functions {
    std::vector<std::int64_t> starts{0}, members;  // of the scopes
    std::vector<std::int64_t> costs;
  };
  struct Dense {
    std::int64_t bound, forbidden, dense, ratio;
  };
  Functions functions(std::uint64_t most, std::span<const std::int64_t> sizes, const Dense& rule);

  [[noreturn]] void fail(const std::string& what_was_expected, std::string_view found);

 private:
  void skip();
  void skip_block_comment();
  bool opens_comment(const char* slash) const;
  bool add_function(Functions& found, std::span<const std::int64_t> sizes, const Dense& rule);
  const char* word_end(const char* p) const;
  std::string_view number_token(const char* what);

  const char *begin_, *at_, *end_, *mark_;
  std::array<std::uint8_t, 256> kind_{};
  TextStyle style_;
  bool quoted_ = false;
};

// Contents of a "probability" block of a BIF file, up to and with its closing brace.
struct ConditionalRows {
  std::vector<std::int64_t> parents;  // flat index of the parents' values, one a row, the last parent fastest
  std::vector<double> values;         // child_size values a row
  std::vector<double> defaults, table;
};
using LabelIndex = std::unordered_map<std::string, std::int64_t>;
ConditionalRows bif_rows(Scanner& scanner, std::size_t child_size, const std::vector<LabelIndex>& labels);

// The items of a list up to and with its closing bracket, "]" or "}"; they may be quoted.
struct Items {
  std::vector<std::int64_t> integers;  // filled if every item is an integer
  std::vector<double> reals;           // filled if every item is a number
  std::vector<std::string> words;      // filled otherwise, and on demand
};
Items bracket_items(Scanner& scanner, bool as_words);

}  // namespace elimina
