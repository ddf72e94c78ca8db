// Threads that work while the calling thread reports their progress.
#pragma once
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "stop.hpp"

namespace elimina {

// Runs `work(number)` in each of the threads, and `poll()` each so many looks, 20 ms apart, until they end. What one of them throws passes, after
// `stop()`; that is called, too, once the calling thread is to stop.
template <class Work, class Poll, class Stop>
void run_threads(int threads, Work work, Poll poll, Stop stop, int looks_per_poll = 10) {
  constexpr auto between_looks = std::chrono::milliseconds(20);
  std::mutex mutex;
  std::condition_variable ended;
  std::exception_ptr failure;
  int running = threads;
  std::vector<std::thread> pool;
  for (int i = 0; i < threads; ++i) {
    pool.emplace_back([&, i] {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        failure = std::current_exception();
        stop();
      }
      const std::lock_guard lock(mutex);
      if (--running == 0) ended.notify_one();
    });
  }
  {
    std::unique_lock lock(mutex);
    for (int looks = 1; !ended.wait_for(lock, between_looks, [&] { return running == 0; }); ++looks) {
      lock.unlock();
      if (stopped()) stop();
      else if (looks % looks_per_poll == 0) poll();
      lock.lock();
    }
  }
  for (std::thread& thread : pool) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace elimina
