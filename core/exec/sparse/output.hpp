// Rows that several threads make block by block, put together in the blocks' order without gaps.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <stdexcept>

#include "exec/sparse/rows.hpp"
#include "exec/threads.hpp"

namespace elimina::sparse {

// Buffer of a block's tuples: a thread's own memory, small enough for its cache.
template <int W, class V>
struct Writer {
  Key<W>* keys;
  V* values;
  i64 rows = 0;
  i64 candidates = 0;

  void put(const Key<W>& key, V value) {
    keys[rows] = key;
    values[rows] = value;
    ++rows;
  }
};

template <int W, class V>
class Output {
 public:
  explicit Output(i64 bound, i64 most = std::numeric_limits<i64>::max()) : most_(most) {
    made_.keys = Buffer(bound * i64(sizeof(Key<W>)));
    made_.values = Buffer(bound * i64(sizeof(V)));
  }

  // Calls produce(block, writer) for each block; `bound(block)`: its rows at most.
  template <class Bound, class Produce>
  Made run(i64 blocks, int threads, Bound&& bound, Produce&& produce) {
    threads = int(std::clamp<i64>(blocks, 1, threads));
#pragma omp parallel num_threads(threads)
    {
      Buffer keys, values;
      i64 room = 0;
      // In ascending order, so that a block only waits for blocks that have begun.
      for (i64 block = next_++; block < blocks; block = next_++) {
        Writer<W, V> writer{};
        try {
          if (!failed_) {
            if (bound(block) >= room) {
              room = bound(block) + 1;  // what is written and then not counted may lie behind the last row
              keys = Buffer(room * i64(sizeof(Key<W>)));
              values = Buffer(room * i64(sizeof(V)));
            }
            writer = {keys.as<Key<W>>(), values.as<V>()};
            produce(block, writer);
          }
        } catch (...) {
          writer.rows = 0;
          fail(std::current_exception());
        }
        take(block, writer);
      }
    }
    if (failure_) std::rethrow_exception(failure_);
    made_.keys.shrink(made_.rows * i64(sizeof(Key<W>)));
    made_.values.shrink(made_.rows * i64(sizeof(V)));
    return std::move(made_);
  }

 private:
  void take(i64 block, Writer<W, V>& writer) {
    for (i64 turn = turn_; turn != block; turn = turn_) turn_.wait(turn);
    if (writer.rows > most_ - made_.rows) {
      fail(std::make_exception_ptr(std::overflow_error("too many rows")));
      writer.rows = 0;
    }
    const i64 at = made_.rows;
    made_.rows += writer.rows;
    made_.candidates += writer.candidates;
    turn_ = block + 1;
    turn_.notify_all();
    std::copy_n(writer.keys, writer.rows, made_.keys.template as<Key<W>>() + at);
    std::copy_n(writer.values, writer.rows, made_.values.template as<V>() + at);
  }

  void fail(std::exception_ptr failure) {
    const std::scoped_lock lock(mutex_);
    if (!failure_) failure_ = failure;
    failed_ = true;
  }

  Made made_;
  i64 most_;
  std::atomic<i64> next_{0}, turn_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace elimina::sparse
