// Loops whose items several threads share.
#pragma once
#include "call.hpp"
#include "elimina/config.hpp"

namespace elimina {

// Calls `work(item, thread)` for each item from `first` to `last`, in ascending order, on up to `threads` threads; the calling one has number 0. Only items
// that another thread has begun are waited for. So a thread that the system does not run delays none of the others, as it would at a barrier. An
// exception passes, at the latest after the last item.
void share(int threads, i64 first, i64 last, Call<void(i64 item, int thread)> work);

}  // namespace elimina
