// Long calls that Ctrl-C ends.
#pragma once
#include <nanobind/nanobind.h>

#include "call.hpp"
#include "stop.hpp"

// In loops over many objects of Python's: lets the interpreter's other threads run, and looks at requests, once in so many calls. A thread that waits asks for
// its turn only after 5 ms in which the lock was not touched: turns every millisecond would never reach it.
class Turns {
 public:
  void look() {
    if (++count_ % kItems != 0) return;
    nanobind::gil_scoped_release release;
    elimina::check_stop();
  }

 private:
  static constexpr unsigned kItems = 1 << 14;
  unsigned count_ = 0;
};

// Runs `work` in a thread of its own while this one looks for signals, whose exception it raises, and for requests to stop; then it calls
// `stop`, which makes `work` end.
void run_interruptibly(elimina::Call<void()> work, elimina::Call<void()> stop);
