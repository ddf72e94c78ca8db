// Bounds on subtrees by the values of their contexts, in a table of bounded size that threads share.
#pragma once
#include <atomic>
#include <cstdlib>
#include <memory>
#include <vector>

#include "problem.hpp"

namespace elimina::search {

class Cache {
 public:
  using Word = std::uint64_t;

  struct Entry {
    double lower;   // the subtree costs at least this
    bool solved;    // and not more,
    int best;       // with this value of its variable
  };

  // Without locks unless it is shared.
  Cache(const Problem& problem, std::size_t bytes, bool shared);

  // Words of a key. Keys are exact: of each variable another, for all values of its context.
  int words() const { return words_; }
  void pack(Var v, const std::vector<int>& value, Word* key) const;

  void prefetch(const Word* key) const { __builtin_prefetch(bucket(key)); }
  bool find(const Word* key, Entry& entry) const;

  // Keeps the better of two bounds. What cost fewer nodes makes room.
  void store(const Word* key, const Entry& entry, std::uint64_t nodes);

  // True if it is crowded and may become larger; only one thread may use it while it does.
  bool crowded() const { return active_ < buckets_ && entries() > active_ * ways / 2; }
  void grow();

  std::size_t bytes() const { return active_ * bucket_words_ * sizeof(Word); }
  std::uint64_t entries() const { return entries_.load(std::memory_order_relaxed); }

 private:
  static constexpr int ways = 4;
  static constexpr std::size_t stripes = 1 << 14;

  struct Digit {
    Var var;
    int word;
    Word factor;
  };
  struct Free {
    void operator()(Word* words) const { std::free(words); }
  };
  class Guard;

  std::size_t place(const Word* key) const;
  Word* bucket(const Word* key) const { return cells_.get() + place(key) * bucket_words_; }
  Word* way_of(Word* bucket, const Word* key) const;

  int words_ = 1;
  std::size_t buckets_, active_, bucket_words_;  // a fresh page costs more than what is kept in it: few are in use at first
  std::vector<std::size_t> first_;
  std::vector<Digit> digits_;
  std::unique_ptr<Word, Free> cells_;
  mutable std::unique_ptr<std::atomic_flag[]> locks_;
  std::atomic<std::uint64_t> entries_ = 0;
};

}  // namespace elimina::search
