#include "exec/share.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace elimina {
namespace {

using Work = Call<void(i64, int)>;

constexpr auto kPatience = std::chrono::microseconds(20);  // time before a thread sleeps: as long as waking up takes

// Returns once the value has changed. Waiting threads yield, which helps on a busy machine.
template <class T>
void await_change(const std::atomic<T>& value, T old) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  do {
    if (value.load(std::memory_order_acquire) != old) return;
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() < end);
  value.wait(old, std::memory_order_acquire);
}

// Threads that help one thread, as many as the system grants. They live as long as that thread.
class Team {
 public:
  explicit Team(int threads) : threads_(threads) {
    helpers_.reserve(std::size_t(threads) - 1);
    try {
      for (int i = 1; i < threads; ++i) helpers_.emplace_back([this, i] { help(i); });
    } catch (const std::exception&) {  // the system has no more threads
    }
  }
  ~Team() {
    ending_ = true;
    post();
    for (std::thread& helper : helpers_) helper.join();
  }

  int threads() const { return threads_; }
  bool is_of_this_process() const { return process_ == getpid(); }

  void share(i64 first, i64 last, const Work& work) {
    work_ = &work, last_ = last, failure_ = nullptr;
    unfinished_.store(std::uint32_t(last - first), std::memory_order_relaxed);
    ticket_.store(++loops_ << kLeftBits | std::uint64_t(last - first), std::memory_order_release);
    post();
    take_items(0);
    while (const std::uint32_t unfinished = unfinished_.load(std::memory_order_acquire))
      await_change(unfinished_, unfinished);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  static constexpr int kLeftBits = 32;

  void help(int thread) {
    for (std::uint32_t seen = 0; !ending_;) {
      take_items(thread);
      await_change(posted_, seen);
      seen = posted_.load(std::memory_order_acquire);
    }
  }

  void post() {
    posted_.fetch_add(1, std::memory_order_release);
    posted_.notify_all();
  }

  void take_items(int thread) {
    std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
    while (const std::uint32_t remaining = std::uint32_t(ticket)) {
      // The exchange fails if the loop has ended meanwhile, since a ticket contains the number of its loop.
      if (!ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel, std::memory_order_acquire))
        continue;
      try {
        (*work_)(last_ - i64(remaining), thread);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
      }
      if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_all();
      ticket = ticket_.load(std::memory_order_acquire);
    }
  }

  const pid_t process_ = getpid();
  const int threads_;
  std::vector<std::thread> helpers_;
  // The current loop. `work_`, `last_` and `loops_` change only between loops, when all items are finished; `mutex_`
  // guards `failure_`.
  const Work* work_ = nullptr;
  i64 last_ = 0;
  std::uint64_t loops_ = 0;
  std::exception_ptr failure_;
  std::mutex mutex_;
  std::atomic<std::uint64_t> ticket_{0};  // number of the loop, and the number of items that no thread has taken
  std::atomic<std::uint32_t> unfinished_{0}, posted_{0};
  std::atomic<bool> ending_{false};
};

// A forked process has no helpers, so they cannot be joined there.
struct Leave {
  void operator()(Team* team) const {
    if (team->is_of_this_process()) delete team;
  }
};

thread_local std::unique_ptr<Team, Leave> own_team;

}  // namespace

void share(int threads, i64 first, i64 last, Work work) {
  if (threads <= 1 || last - first <= 1) {
    for (i64 item = first; item < last; ++item) work(item, 0);
    return;
  }
  if (!own_team || own_team->threads() != threads || !own_team->is_of_this_process()) {
    own_team.reset();
    own_team.reset(new Team(threads));
  }
  constexpr i64 max_items = std::numeric_limits<std::uint32_t>::max();
  for (; first < last; first += max_items) own_team->share(first, std::min(last, first + max_items), work);
}

}  // namespace elimina
