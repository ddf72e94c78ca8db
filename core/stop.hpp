// A request to end a long call, made from another thread or by the clock.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>

namespace elimina {

class Stop {
 public:
  void request() { requested_.store(true, std::memory_order_relaxed); }
  bool requested() const { return requested_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> requested_ = false;
};

// Thrown where work is given up; code with a partial answer catches it.
struct Stopped : std::exception {
  const char* what() const noexcept override { return "the call was stopped"; }
};

// Stop request that calls from this thread obey; the threads that they start look at a copy.
struct Patience {
  using Time = std::chrono::steady_clock::time_point;
  const Stop* stop = nullptr;
  Time end = Time::max();

  bool is_over() const {
    if (stop && stop->requested()) return true;
    return end != Time::max() && std::chrono::steady_clock::now() >= end;
  }
  void check() const {
    if (is_over()) throw Stopped{};
  }
};

inline thread_local Patience patience;

// True if the work of this thread has to end.
inline bool stopped() { return patience.is_over(); }

inline void check_stop() { patience.check(); }

// Checks for a stop request and the time limit at every `items`-th call of `look`, for long loops over short items.
class Looks {
 public:
  explicit Looks(unsigned items = 4096) : items_(items) {}
  void look() {
    if (++count_ % items_ == 0) check_stop();
  }

 private:
  const unsigned items_;
  unsigned count_ = 0;
};

// Limits the time of this thread's work while the object lives.
class TimeLimit {
 public:
  explicit TimeLimit(double seconds) : before_(patience.end) {
    constexpr double longest = 1e9;
    if (!(seconds < longest)) return;
    const auto span =
        std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
    patience.end = std::min(before_, std::chrono::steady_clock::now() + span);
  }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;
  ~TimeLimit() { patience.end = before_; }

 private:
  const Patience::Time before_;
};

}  // namespace elimina
