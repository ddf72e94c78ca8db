#include "interruptible.hpp"

#include "exec/run_threads.hpp"

void run_interruptibly(elimina::Call<void()> work, elimina::Call<void()> stop) {
  bool raised = false;
  const auto look = [&] {
    nanobind::gil_scoped_acquire gil;
    if (!raised && PyErr_CheckSignals() != 0) {
      raised = true;
      stop();
    }
  };
  {
    nanobind::gil_scoped_release release;
    try {
      elimina::run_threads(1, [&](int) { work(); }, look, stop, 1);
    } catch (...) {
      if (!raised) throw;
    }
  }
  if (raised) throw nanobind::python_error();
}
