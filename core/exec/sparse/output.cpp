#include "exec/sparse/output.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <stdexcept>

#include "exec/share.hpp"
#include "stop.hpp"

namespace elimina::sparse {
namespace {

class Output {
 public:
  Output(RowBytes bytes, i64 all_at_most, i64 max_rows, const std::function<bool(i64)>& goes_on)
      : bytes_(bytes), max_rows_(max_rows), goes_on_(goes_on) {
    made_.keys = Buffer(all_at_most * bytes.key);
    made_.values = Buffer(all_at_most * bytes.value);
  }

  OwnedTable run(i64 blocks, int threads, Call<i64(i64)> bound, Call<void(i64, BlockRows&)> produce) {
    // Each thread keeps its buffers between blocks, so that it rarely allocates.
    share(threads, 0, std::clamp<i64>(blocks, 1, threads), [&](i64, int) {
      Buffer keys, values;
      i64 room = 0;
      // Blocks are taken in ascending order, so a block only waits for begun ones. No block begins after a failure.
      for (i64 block = next_++; block < blocks; block = failed_ ? blocks : next_++) {
        BlockRows rows{};
        try {
          if (!failed_) {
            patience_.check();
            if (bound(block) >= room) {
              room = bound(block) + 1;  // one more: a row may be written behind the last one and then not counted
              keys = Buffer(room * bytes_.key);
              values = Buffer(room * bytes_.value);
            }
            rows = {keys.as<void>(), values.as<void>()};
            produce(block, rows);
          }
        } catch (...) {
          fail(std::current_exception());
        }
        append(block, rows);
      }
    });
    if (failure_) std::rethrow_exception(failure_);
    made_.keys.shrink(made_.rows * bytes_.key);
    made_.values.shrink(made_.rows * bytes_.value);
    return std::move(made_);
  }

 private:
  void append(i64 block, BlockRows& rows) {
    for (i64 next_block = turn_; next_block != block; next_block = turn_) turn_.wait(next_block);
    if (rows.rows > max_rows_ - made_.rows) {
      fail(std::make_exception_ptr(std::overflow_error("too many rows")));
      rows.rows = 0;
    }
    if (!failed_ && goes_on_ && !goes_on_(rows.candidates)) fail(std::make_exception_ptr(Stopped()));
    const i64 first_row = made_.rows;
    made_.rows += rows.rows;
    made_.candidates += rows.candidates;
    turn_ = block + 1;
    turn_.notify_all();
    copy(rows.keys, rows.rows, made_.keys, first_row, bytes_.key);
    copy(rows.values, rows.rows, made_.values, first_row, bytes_.value);
  }

  static void copy(const void* from, i64 rows, const Buffer& to, i64 first_row, i64 bytes) {
    if (rows) std::memcpy(to.as<char>() + first_row * bytes, from, std::size_t(rows * bytes));
  }

  void fail(std::exception_ptr failure) {
    const std::scoped_lock lock(mutex_);
    if (!failure_) failure_ = failure;
    failed_ = true;
  }

  const Patience patience_ = patience;
  RowBytes bytes_;
  OwnedTable made_;
  i64 max_rows_;
  const std::function<bool(i64)>& goes_on_;
  std::atomic<i64> next_{0}, turn_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace

OwnedTable put_together(RowBytes bytes, i64 blocks, int threads, Call<i64(i64)> bound,
                        Call<void(i64, BlockRows&)> produce, i64 all_at_most, i64 max_rows,
                        const std::function<bool(i64)>& goes_on) {
  return Output(bytes, all_at_most, max_rows, goes_on).run(blocks, threads, bound, produce);
}

}  // namespace elimina::sparse
