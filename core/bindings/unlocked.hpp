// Work that lets the interpreter's other threads run.
#pragma once
#include <nanobind/nanobind.h>

template <class Work>
auto unlocked(const Work& work) {
  nanobind::gil_scoped_release release;
  return work();
}
