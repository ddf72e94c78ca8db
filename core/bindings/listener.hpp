// Telling a Python listener, from a thread without the interpreter's lock, how far a long call got.
#pragma once
#include <nanobind/nanobind.h>

// How it ended the call: by an exception, which is set then, or by Ctrl-C.
struct Ended {
  bool raised = false, interrupted = false;
};

// Whether the call goes on: the listener ends it by False.
template <class... Arguments>
bool tell(const nanobind::object& listener, Ended& ended, Arguments... arguments) {
  if (ended.raised || ended.interrupted) return false;
  nanobind::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) {
    // What is known by then is worth returning.
    ended.interrupted = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
    ended.raised = !ended.interrupted;
    if (ended.interrupted) PyErr_Clear();
    return false;
  }
  try {
    return listener(arguments...).ptr() != Py_False;
  } catch (nanobind::python_error& error) {
    error.restore();
    ended.raised = true;
    return false;
  }
}
