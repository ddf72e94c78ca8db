#include "cache.hpp"

#include <algorithm>
#include <bit>
#include <new>

#include "pages.hpp"

namespace elimina::search {

namespace {

using Word = Cache::Word;

// The last word of an entry: nodes (0: it is free), whether it is solved, and the best value.
Word note(std::uint64_t nodes, bool solved, int best) {
  return std::clamp<std::uint64_t>(nodes, 1, 0x7fffffff) << 33 | Word(solved) << 32 | Word(static_cast<std::uint32_t>(best));
}
constexpr std::size_t first_buckets = 1 << 12;
constexpr std::size_t least_part = 4;  // of the bytes, for entries

std::uint64_t nodes_of(Word note) { return note >> 33; }
bool solved_of(Word note) { return note >> 32 & 1; }
int best_of(Word note) { return static_cast<int>(static_cast<std::uint32_t>(note)); }

}  // namespace

// Holds the lock of a bucket, if there are any.
class Cache::Guard {
 public:
  Guard(const Cache& cache, std::size_t bucket) : flag_(cache.locks_ ? &cache.locks_[bucket % stripes] : nullptr) {
    while (flag_ && flag_->test_and_set(std::memory_order_acquire)) flag_->wait(true, std::memory_order_relaxed);
  }
  ~Guard() {
    if (!flag_) return;
    flag_->clear(std::memory_order_release);
    flag_->notify_one();
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  std::atomic_flag* flag_;
};

Cache::Cache(const Problem& problem, std::size_t bytes, bool shared) {
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
  bucket_words_ = static_cast<std::size_t>(ways) * (words_ + 2);
  // Lists of deep trees may take more than the entries do.
  const std::size_t listed = problem.bytes() + digits_.size() * sizeof(Digit);
  const std::size_t left = std::max(bytes / least_part, bytes - std::min(bytes, listed));
  active_ = std::max<std::size_t>(1, left / (bucket_words_ * sizeof(Word)));
  int doublings = 0;
  for (; active_ > first_buckets; ++doublings) active_ /= 2;
  buckets_ = active_ << doublings;
  // Fresh pages are zeros, and not there before they are used.
  cells_.reset(static_cast<Word*>(std::calloc(buckets_, bucket_words_ * sizeof(Word))));
  if (!cells_) throw std::bad_alloc();
  prefer_huge_pages(cells_.get(), buckets_ * bucket_words_ * sizeof(Word));
  if (shared) locks_ = std::make_unique<std::atomic_flag[]>(stripes);
}

void Cache::pack(Var v, const std::vector<int>& value, Word* key) const {
  std::fill_n(key, words_, Word{0});
  key[0] = static_cast<Word>(v);
  for (std::size_t i = first_[v]; i < first_[v + 1]; ++i) key[digits_[i].word] += digits_[i].factor * static_cast<Word>(value[digits_[i].var]);
}

std::size_t Cache::place(const Word* key) const {
  Word hash = 0;
  for (int i = 0; i < words_; ++i) {
    hash = (std::rotl(hash, 29) ^ key[i]) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
    hash *= 0xd6e8feb86659fd93;
  }
  return static_cast<std::size_t>(static_cast<unsigned __int128>(hash) * active_ >> 64);
}

// The entries of a bucket go to two neighbours, at places that are not before it: from the last one on, nothing is overwritten.
void Cache::grow() {
  const std::size_t old = active_;
  const std::size_t width = words_ + 2;
  active_ *= 2;
  std::vector<Word> moved(bucket_words_);
  for (std::size_t i = old; i-- > 0;) {
    Word* const from = cells_.get() + i * bucket_words_;
    std::copy_n(from, bucket_words_, moved.begin());
    std::fill_n(from, bucket_words_, Word{0});
    for (auto entry = moved.begin(); entry != moved.end(); entry += width) {
      if (!entry[words_ + 1]) continue;
      Word* to = bucket(&*entry);
      while (to[words_ + 1]) to += width;
      std::copy_n(entry, width, to);
    }
  }
}

Word* Cache::way_of(Word* bucket, const Word* key) const {
  for (int way = 0; way < ways; ++way, bucket += words_ + 2)
    if (bucket[words_ + 1] && std::equal(key, key + words_, bucket)) return bucket;
  return nullptr;
}

bool Cache::find(const Word* key, Entry& entry) const {
  const std::size_t at = place(key);
  const Guard guard(*this, at);
  const Word* found = way_of(cells_.get() + at * bucket_words_, key);
  if (!found) return false;
  entry = {std::bit_cast<double>(found[words_]), solved_of(found[words_ + 1]), best_of(found[words_ + 1])};
  return true;
}

void Cache::store(const Word* key, const Entry& entry, std::uint64_t nodes) {
  const std::size_t at = place(key);
  const Guard guard(*this, at);
  Word* const bucket = cells_.get() + at * bucket_words_;
  Word* to = way_of(bucket, key);
  if (to) {
    const Word old = to[words_ + 1];
    nodes += nodes_of(old);
    if (solved_of(old) || (!entry.solved && std::bit_cast<double>(to[words_]) >= entry.lower)) {
      to[words_ + 1] = note(nodes, solved_of(old), best_of(old));
      return;
    }
  } else {
    to = bucket;
    for (int way = 1; way < ways; ++way)
      if (Word* other = bucket + way * (words_ + 2); nodes_of(other[words_ + 1]) < nodes_of(to[words_ + 1])) to = other;
    if (to[words_ + 1]) {
      // Old entries lose weight, so that none stays for ever.
      for (int way = 0; way < ways; ++way) {
        Word& last = bucket[way * (words_ + 2) + words_ + 1];
        last = note(nodes_of(last) / 2, solved_of(last), best_of(last));
      }
    } else {
      entries_.fetch_add(1, std::memory_order_relaxed);
    }
    std::copy(key, key + words_, to);
  }
  to[words_] = std::bit_cast<Word>(entry.lower);
  to[words_ + 1] = note(nodes, entry.solved, entry.best);
}

}  // namespace elimina::search
