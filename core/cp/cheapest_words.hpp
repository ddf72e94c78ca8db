// Cheapest words of automata, computed by eliminating one position after another. They are the subproblems of a
// Lagrangian relaxation.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace elimina::cp {

// A sequence of variables whose values spell a word of an automaton. A column is the number of a pair of a variable and
// a value; costs are given for columns.
struct WordSequence {
  std::vector<std::size_t> firsts;  // start of each position's columns in `columns`, and the end
  std::vector<std::int64_t> columns, symbols;
  std::size_t states, alphabet;
  std::vector<std::int64_t> next;  // a state for each state and symbol, or -1
  std::size_t start;
  std::vector<std::uint8_t> is_accepting;

  std::size_t length() const { return firsts.size() - 1; }
};

class CheapestWords {
 public:
  explicit CheapestWords(std::vector<WordSequence> sequences) : sequences_(std::move(sequences)) {}

  // Returns the sum of the least costs of all sequences; nullopt if a sequence has no word. `chosen`: gets the columns
  // that attain the sum, one for each position.
  template <class T>
  std::optional<T> least(const T* costs, std::vector<std::int64_t>& chosen) {
    chosen.clear();
    T sum = 0;
    for (const WordSequence& sequence : sequences_) {
      remaining(sequence, costs);
      const auto* after = after_of<T>().data();
      if (after[sequence.start] >= kInfinite<T>) return std::nullopt;
      sum += after[sequence.start];
      std::size_t state = sequence.start;
      for (std::size_t i = 0; i < sequence.length(); ++i) {
        const std::size_t arc = choices_[i * sequence.states + state];
        chosen.push_back(sequence.columns[arc]);
        state = next_state(sequence, state, arc);
      }
    }
    return sum;
  }

  // Sets result[column] to the cost of the cheapest word with the column minus the cost of the cheapest word of its
  // sequence; infinite if no word has the column.
  template <class T>
  void excess(const T* costs, T* result) {
    for (const WordSequence& sequence : sequences_) {
      remaining(sequence, costs);
      const auto& after = after_of<T>();
      const std::size_t states = sequence.states;
      std::vector<T> before(states, kInfinite<T>), following(states);
      before[sequence.start] = 0;
      for (std::size_t i = 0; i < sequence.length(); ++i) {
        following.assign(states, kInfinite<T>);
        for (std::size_t arc = sequence.firsts[i]; arc < sequence.firsts[i + 1]; ++arc) {
          const T cost = costs[sequence.columns[arc]];
          T least = kInfinite<T>;
          for (std::size_t state = 0; state < states; ++state) {
            const std::size_t to = next_state(sequence, state, arc);
            if (to == kNone || before[state] >= kInfinite<T>) continue;
            following[to] = std::min(following[to], before[state] + cost);
            if (after[(i + 1) * states + to] < kInfinite<T>)
              least = std::min(least, before[state] + cost + after[(i + 1) * states + to]);
          }
          result[sequence.columns[arc]] = least < kInfinite<T> ? least - after[sequence.start] : kInfinite<T>;
        }
        std::swap(before, following);
      }
    }
  }

  template <class T>
  static constexpr T kInfinite = std::numeric_limits<T>::max() / 4;

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  static std::size_t next_state(const WordSequence& sequence, std::size_t state, std::size_t arc) {
    const std::int64_t next =
        sequence.next[state * sequence.alphabet + static_cast<std::size_t>(sequence.symbols[arc])];
    return next < 0 ? kNone : static_cast<std::size_t>(next);
  }

  template <class T>
  std::vector<T>& after_of() {
    if constexpr (std::is_same_v<T, double>) return after_;
    else return exact_after_;
  }

  // Computes, for each position and state, the least cost of the rest of a word, and stores in `choices_` the next
  // column of such a rest.
  template <class T>
  void remaining(const WordSequence& sequence, const T* costs) {
    const std::size_t states = sequence.states, length = sequence.length();
    auto& after = after_of<T>();
    after.assign((length + 1) * states, kInfinite<T>);
    choices_.resize(length * states);
    for (std::size_t state = 0; state < states; ++state)
      if (sequence.is_accepting[state]) after[length * states + state] = 0;
    for (std::size_t i = length; i-- > 0;)
      for (std::size_t arc = sequence.firsts[i]; arc < sequence.firsts[i + 1]; ++arc) {
        const T cost = costs[sequence.columns[arc]];
        for (std::size_t state = 0; state < states; ++state) {
          const std::size_t to = next_state(sequence, state, arc);
          if (to == kNone || after[(i + 1) * states + to] >= kInfinite<T>) continue;
          const T total = cost + after[(i + 1) * states + to];
          if (total >= after[i * states + state]) continue;
          after[i * states + state] = total;
          choices_[i * states + state] = arc;
        }
      }
  }

  std::vector<WordSequence> sequences_;
  std::vector<double> after_;
  std::vector<std::int64_t> exact_after_;
  std::vector<std::size_t> choices_;
};

}  // namespace elimina::cp
