// Loops whose items several threads share.
#pragma once
#include "call.hpp"
#include "elimina/config.hpp"

namespace elimina {

// Calls `work(item, thread)` for each item of [first, last), begun in ascending order, on up to `threads` threads; the
// calling thread has number 0. The calling thread waits only for items that another thread has begun, so a thread
// without a processor does not delay the others, as it would at a barrier. If `work` throws, `share` throws the same
// exception, after the last item at the latest.
void share(int threads, i64 first, i64 last, Call<void(i64 item, int thread)> work);

}  // namespace elimina
