// Threads that work while the calling thread reports their progress.
#pragma once
#include "call.hpp"

namespace elimina {

// Runs `work(number)` for each number below `threads`, in a thread of its own, and returns after all have ended.
// Meanwhile, the calling thread checks for a stop request every 20 ms, and calls `poll()` once in `looks_per_poll`
// checks. If `work` throws, `stop()` is called, and the exception is thrown again in the end; `stop()` is also called
// on a stop request. If the system has no more threads, the existing ones do all the work, one number after another; if
// there are none, std::bad_alloc is thrown.
void run_threads(int threads, Call<void(int)> work, Call<void()> poll, Call<void()> stop, int looks_per_poll = 10);

}  // namespace elimina
