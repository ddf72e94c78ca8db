// 64-bit words that are restored when a level is undone. Timestamps ensure that each word is saved at most once a
// level.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace elimina::cp {

class Trail {
 public:
  // Makes `count` words and returns the position of the first one. Words made below the root vanish when their level is
  // undone.
  std::size_t make(std::size_t count, std::uint64_t value) {
    words_.resize(words_.size() + count, value);
    stamps_.resize(words_.size(), 0);
    return words_.size() - count;
  }

  std::uint64_t get(std::size_t i) const { return words_[i]; }
  std::int64_t number(std::size_t i) const { return static_cast<std::int64_t>(words_[i]); }
  const std::uint64_t* data(std::size_t i) const { return words_.data() + i; }

  void set(std::size_t i, std::uint64_t value) {
    if (words_[i] == value) return;
    if (stamps_[i] != stamp_) {
      stamps_[i] = stamp_;
      if (!marks_.empty()) saved_.push_back({i, words_[i]});
    }
    words_[i] = value;
  }
  void set_number(std::size_t i, std::int64_t value) { set(i, static_cast<std::uint64_t>(value)); }

  // Stamp of the present level; callers that save state compare against it.
  std::uint64_t stamp() const { return stamp_; }
  std::size_t level() const { return marks_.size(); }
  // Number of levels undone; while it stays the same, state that a propagator saved outside the trail stays valid.
  std::uint64_t undone() const { return undone_; }

  void mark() {
    marks_.push_back({words_.size(), saved_.size()});
    ++stamp_;
  }

  void undo() {
    const Mark mark = marks_.back();
    marks_.pop_back();
    for (std::size_t i = saved_.size(); i-- > mark.saved;)
      if (saved_[i].index < mark.words) words_[saved_[i].index] = saved_[i].old;
    saved_.resize(mark.saved);
    words_.resize(mark.words);
    stamps_.resize(mark.words);
    ++stamp_;
    ++undone_;
  }

 private:
  struct Saved {
    std::size_t index;
    std::uint64_t old;
  };
  struct Mark {
    std::size_t words, saved;
  };

  std::vector<std::uint64_t> words_, stamps_;
  std::vector<Saved> saved_;
  std::vector<Mark> marks_;
  std::uint64_t stamp_ = 1, undone_ = 0;
};

}  // namespace elimina::cp
