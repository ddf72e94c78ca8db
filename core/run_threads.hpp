// Threads that work while the calling thread reports their progress.
#pragma once
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "stop.hpp"

namespace elimina {

// Runs `work(number)` in a thread for each number until they end. Meanwhile it looks at them every 20 ms, and calls `poll()` after so many looks.
// If one throws, `stop()` is called, and the exception is thrown again; `stop()` is also called once the calling thread is to stop. If the system
// has no more threads, those that it has do all the work, one number after another; if it has none, std::bad_alloc is thrown.
template <class Work, class Poll, class Stop>
void run_threads(int threads, Work work, Poll poll, Stop stop, int looks_per_poll = 10) {
  constexpr auto between_looks = std::chrono::milliseconds(20);
  std::mutex mutex;
  std::condition_variable ended;
  std::exception_ptr failure;
  int next = 0, running = 0;
  const auto run = [&] {
    std::unique_lock lock(mutex);
    try {
      while (next < threads) {
        const int number = next++;
        lock.unlock();
        work(number);
        lock.lock();
      }
    } catch (...) {
      lock.lock();
      failure = std::current_exception();
      stop();
    }
    if (--running == 0) ended.notify_one();
  };
  std::vector<std::thread> pool;
  pool.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    const std::lock_guard lock(mutex);
    try {
      pool.emplace_back(run);
    } catch (const std::exception&) {
      if (pool.empty()) throw std::bad_alloc();
      break;
    }
    ++running;
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
