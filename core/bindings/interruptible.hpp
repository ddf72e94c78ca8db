// Long calls that Ctrl-C ends.
#pragma once
#include <nanobind/nanobind.h>

#include "call.hpp"
#include "stop.hpp"

// Used in loops over many Python objects. Once in `kItems` calls, `look` lets other threads of the interpreter run, and
// checks for requests to stop. A thread that waits for the interpreter's lock requests it only after 5 ms without a
// release, so a release every millisecond would starve that thread.
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

// Runs `work` in a new thread, while this one checks for signals and requests to stop. On either, it calls `stop`,
// which makes `work` end; the exception of a signal is raised afterwards.
void run_interruptibly(elimina::Call<void()> work, elimina::Call<void()> stop);
