// Runs work without the interpreter's lock.
#pragma once
#include <nanobind/nanobind.h>

template <class Work>
auto unlocked(const Work& work) {
  nanobind::gil_scoped_release release;
  return work();
}
