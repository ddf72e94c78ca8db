// Bounds on subtrees, given the values of their contexts, in a table of bounded size that threads share.
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
    double lower;  // lower bound on the subtree's cost
    bool solved;   // true if the bound is the cost itself
    int best;      // value of the subtree's top variable in the best solution
  };

  // `shared`: true if several threads use the cache; readers never wait for each other.
  Cache(const Problem& problem, std::size_t bytes, bool shared);

  // Number of words of a key, which `pack` writes for a variable and the values of its context. Keys are exact: they
  // differ for different variables and contexts.
  int words() const { return words_; }
  void pack(Var v, const std::vector<int>& value, Word* key) const;

  void prefetch(const Word* key) const { __builtin_prefetch(bucket(key)); }
  bool find(const Word* key, Entry& entry) const;

  // Stores an entry. If there is a stored entry with the same key, the better of the two is kept. In a full bucket, a
  // new key replaces the entry whose subtree took the fewest nodes. Returns true if the number of entries grew; the
  // caller reports such entries by `count`.
  bool store(const Word* key, const Entry& entry, std::uint64_t nodes);
  void count(std::uint64_t stored) { entries_.fetch_add(stored, std::memory_order_relaxed); }

  // True if the table is crowded and may grow; no thread may use it during growth.
  bool crowded() const { return active_ < buckets_ && entries() > active_ * ways / 2; }
  void grow(int threads);

  std::size_t bytes() const { return active_ * bucket_words_ * sizeof(Word); }
  std::uint64_t entries() const { return entries_.load(std::memory_order_relaxed); }

 private:
  static constexpr int ways = 4;

  struct Digit {
    Var var;
    int word;
    Word factor;
  };
  struct Free {
    void operator()(Word* words) const { std::free(words); }
  };
  class Guard;

  void move(std::size_t begin, std::size_t end);
  std::size_t bucket_number(const Word* key) const;
  Word* bucket(const Word* key) const { return cells_.get() + bucket_number(key) * bucket_words_; }
  Word* way_of(Word* ways, const Word* key) const;
  bool read(Word* ways, const Word* key, Entry& entry) const;

  int words_ = 1;
  std::size_t shared_;  // words before a bucket's entries: 1, the version, if the cache is shared, else 0
  // Few buckets are active at first, because the first write to a page takes longer than later writes.
  std::size_t buckets_, active_, bucket_words_;
  std::vector<std::size_t> first_;
  std::vector<Digit> digits_;
  std::unique_ptr<Word, Free> cells_;
  alignas(64) std::atomic<std::uint64_t> entries_ = 0;
};

}  // namespace elimina::search
