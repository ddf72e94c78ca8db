// Reports of a long call's progress to a Python listener, from a thread without the interpreter's lock.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include "stop.hpp"

// Cause of the end of a call: a Python exception (`raised`; the exception is then set), or Ctrl-C (`interrupted`).
struct Ended {
  bool raised = false, interrupted = false;
};

template <class Argument>
Argument as_argument(Argument argument) {
  return argument;
}
// Returns a solution as a list; None if there is no new one.
inline nanobind::object as_argument(const std::vector<int>* value) {
  return value ? nanobind::cast(*value) : nanobind::none();
}

// Returns false if the call has to end: a stop was requested, the listener returned False, or the listener or a
// signal's handler has raised an exception, now or earlier.
template <class... Arguments>
bool report(const nanobind::object& listener, Ended& ended, Arguments... arguments) {
  if (ended.raised || ended.interrupted || elimina::stopped()) return false;
  nanobind::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() == 0) {
    try {
      return listener(as_argument(arguments)...).ptr() != Py_False;
    } catch (nanobind::python_error& error) {
      error.restore();
    }
  }
  // After an interrupt, the call returns the bounds and assignment so far, even if the interrupt comes before the
  // listener's first line.
  ended.interrupted = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
  ended.raised = !ended.interrupted;
  if (ended.interrupted) PyErr_Clear();
  return false;
}

// Returns a function that calls the listener, to be used as the `poll` of a search.
inline auto listener_of(const nanobind::object& listener, Ended& ended) {
  return [&](auto... arguments) { return report(listener, ended, arguments...); };
}
