#include "cache.hpp"

#include <algorithm>
#include <bit>
#include <new>

#include "exec/pages.hpp"
#include "exec/run_threads.hpp"

namespace elimina::search {

namespace {

using Word = Cache::Word;

// Returns the last word of an entry: number of nodes (0: free), a solved flag, and the best value.
Word status_word(std::uint64_t nodes, bool solved, int best) {
  return std::clamp<std::uint64_t>(nodes, 1, 0x7fffffff) << 33 | Word(solved) << 32 |
         Word(static_cast<std::uint32_t>(best));
}
constexpr std::size_t first_buckets = 1 << 12;
constexpr double min_entry_share = 0.25;  // share of the bytes that entries get, at least
constexpr int most_tries = 1000;
// Smallest number of buckets whose entries several threads move; one thread moves fewer of them within a millisecond.
constexpr std::size_t least_shared_buckets = 1 << 14;

std::uint64_t nodes_of(Word word) { return word >> 33; }
bool solved_of(Word word) { return word >> 32 & 1; }
int best_of(Word word) { return static_cast<int>(static_cast<std::uint32_t>(word)); }

// Cells may be read while they are written, so each one is an atomic.
Word load(Word& cell) { return std::atomic_ref(cell).load(std::memory_order_relaxed); }
void save(Word& cell, Word word) { std::atomic_ref(cell).store(word, std::memory_order_relaxed); }

}  // namespace

// Makes the version of a bucket odd during a write, if threads share the cache.
class Cache::Guard {
 public:
  Guard(const Cache& cache, Word* bucket) : version_(cache.shared_ ? bucket : nullptr) {
    if (!version_) return;
    std::atomic_ref version(*version_);
    for (before_ = version.load(std::memory_order_relaxed);; before_ = version.load(std::memory_order_relaxed))
      if (before_ % 2 == 0 && version.compare_exchange_weak(before_, before_ + 1, std::memory_order_acquire)) break;
    std::atomic_thread_fence(std::memory_order_release);
  }
  ~Guard() {
    if (version_) std::atomic_ref(*version_).store(before_ + 2, std::memory_order_release);
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  Word* version_;
  Word before_ = 0;
};

Cache::Cache(const Problem& problem, std::size_t bytes, bool shared) : shared_(shared) {
  const auto count = static_cast<Word>(problem.size.size());
  digits_.reserve(problem.contexts.items.size());
  for (Var v = 0; v <= problem.root(); ++v) {
    first_.push_back(digits_.size());
    int word = 0;
    Word factor = count;
    for (const Var u : problem.contexts[v]) {
      const auto size = static_cast<Word>(problem.size[u]);
      if (factor > ~Word{0} / size) ++word, factor = 1;
      digits_.push_back({u, word, factor});
      factor *= size;
    }
    words_ = std::max(words_, word + 1);
  }
  first_.push_back(digits_.size());
  bucket_words_ = shared_ + static_cast<std::size_t>(ways) * (words_ + 2);
  // The problem's lists count towards the limit, too. Those of deep trees may exceed it: entries then get a minimum.
  const std::size_t listed = problem.bytes() + digits_.size() * sizeof(Digit);
  const auto least_bytes = static_cast<std::size_t>(min_entry_share * static_cast<double>(bytes));
  const std::size_t entry_bytes = std::max(least_bytes, bytes - std::min(bytes, listed));
  active_ = std::max<std::size_t>(1, entry_bytes / (bucket_words_ * sizeof(Word)));
  int doublings = 0;
  for (; active_ > first_buckets; ++doublings) active_ /= 2;
  buckets_ = active_ << doublings;
  // Fresh pages are zeros, and take no memory before they are used.
  cells_.reset(static_cast<Word*>(std::calloc(buckets_, bucket_words_ * sizeof(Word))));
  if (!cells_) throw std::bad_alloc();
  prefer_huge_pages(cells_.get(), buckets_ * bucket_words_ * sizeof(Word));
}

void Cache::pack(Var v, const std::vector<int>& value, Word* key) const {
  std::fill_n(key, words_, Word{0});
  key[0] = static_cast<Word>(v);
  for (std::size_t i = first_[v]; i < first_[v + 1]; ++i)
    key[digits_[i].word] += digits_[i].factor * static_cast<Word>(value[digits_[i].var]);
}

std::size_t Cache::bucket_number(const Word* key) const {
  Word hash = 0;
  for (int i = 0; i < words_; ++i) {
    hash = (std::rotl(hash, 29) ^ key[i]) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
    hash *= 0xd6e8feb86659fd93;
  }
  return static_cast<std::size_t>(static_cast<unsigned __int128>(hash) * active_ >> 64);
}

// Doubles the number of active buckets: the entries of bucket i move to the buckets 2 i and 2 i + 1. Going from the
// last bucket down overwrites nothing. The entries of the upper half move beyond the old end, so that several threads
// may move them.
void Cache::grow(int threads) {
  const std::size_t old = active_;
  active_ *= 2;
  for (std::size_t end = old; end > 0;) {
    const std::size_t begin = threads > 1 && end > least_shared_buckets ? end - end / 2 : 0;
    if (begin == 0) {
      move(begin, end);
    } else {
      const auto share_start = [&](int share) {
        return begin + (end - begin) * static_cast<std::size_t>(share) / static_cast<std::size_t>(threads);
      };
      run_threads(threads, [&](int share) { move(share_start(share), share_start(share + 1)); }, [] {}, [] {});
    }
    end = begin;
  }
}

void Cache::move(std::size_t begin, std::size_t end) {
  const std::size_t width = words_ + 2;
  std::vector<Word> moved(bucket_words_);
  for (std::size_t i = end; i-- > begin;) {
    Word* const from = cells_.get() + i * bucket_words_;
    std::copy_n(from, bucket_words_, moved.begin());
    std::fill_n(from, bucket_words_, Word{0});
    for (auto entry = moved.begin() + shared_; entry != moved.end(); entry += width) {
      if (!entry[words_ + 1]) continue;
      Word* to = bucket(&*entry) + shared_;
      while (to[words_ + 1]) to += width;
      std::copy_n(entry, width, to);
    }
  }
}

Word* Cache::way_of(Word* ways_at, const Word* key) const {
  for (int way = 0; way < ways; ++way, ways_at += words_ + 2)
    if (load(ways_at[words_ + 1]) &&
        std::equal(key, key + words_, ways_at, [](Word a, Word& b) { return a == load(b); }))
      return ways_at;
  return nullptr;
}

bool Cache::read(Word* ways_at, const Word* key, Entry& entry) const {
  Word* const way = way_of(ways_at, key);
  if (!way) return false;
  const Word last = load(way[words_ + 1]);
  entry = {std::bit_cast<double>(load(way[words_])), solved_of(last), best_of(last)};
  return true;
}

bool Cache::find(const Word* key, Entry& entry) const {
  Word* const at = bucket(key);
  if (!shared_) return read(at, key, entry);
  const std::atomic_ref version(*at);
  // Readers try a limited number of times, instead of waiting for a writer that sleeps.
  for (int tries = 0; tries < most_tries; ++tries) {
    const Word before = version.load(std::memory_order_acquire);
    if (before % 2) continue;
    const bool is_stored = read(at + shared_, key, entry);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (version.load(std::memory_order_relaxed) == before) return is_stored;
  }
  return false;
}

bool Cache::store(const Word* key, const Entry& entry, std::uint64_t nodes) {
  Word* const at = bucket(key);
  const Guard guard(*this, at);
  Word* const first = at + shared_;
  const auto last_of = [&](int way) -> Word& { return first[way * (words_ + 2) + words_ + 1]; };
  Word* to = way_of(first, key);
  bool is_more = false;
  if (to) {
    const Word old = load(to[words_ + 1]);
    nodes += nodes_of(old);
    if (solved_of(old) || (!entry.solved && std::bit_cast<double>(load(to[words_])) >= entry.lower)) {
      save(to[words_ + 1], status_word(nodes, solved_of(old), best_of(old)));
      return false;
    }
  } else {
    int least = 0;
    for (int way = 1; way < ways; ++way)
      if (nodes_of(load(last_of(way))) < nodes_of(load(last_of(least)))) least = way;
    is_more = !load(last_of(least));
    // Old entries lose weight, so that they are replaced in the end.
    for (int way = 0; way < ways && !is_more; ++way) {
      const Word last = load(last_of(way));
      save(last_of(way), status_word(nodes_of(last) / 2, solved_of(last), best_of(last)));
    }
    to = first + least * (words_ + 2);
    for (int i = 0; i < words_; ++i) save(to[i], key[i]);
  }
  save(to[words_], std::bit_cast<Word>(entry.lower));
  save(to[words_ + 1], status_word(nodes, entry.solved, entry.best));
  return is_more;
}

}  // namespace elimina::search
