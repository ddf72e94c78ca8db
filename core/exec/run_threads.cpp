#include "exec/run_threads.hpp"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "stop.hpp"

namespace elimina {

void run_threads(int threads, Call<void(int)> work, Call<void()> poll, Call<void()> stop, int looks_per_poll) {
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
