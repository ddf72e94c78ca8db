// What a solver's device is made of: a description that Python hands from one solver to the next.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "cp/solver.hpp"

namespace elimina::cp {

struct DeviceKind {
  std::string module;  // empty: this processor
  std::string name;
  int ordinal = 0;
  unsigned threads = 1;

  std::unique_ptr<FilterDevice> make() const {
    if (module.empty()) return make_host_device(threads);
    return make_cuda_device(ordinal, module.data(), name);
  }
};

// A function of Python that returns one of them, or None.
inline Solver::FindDevice finder_of(nanobind::object find) {
  return [find = std::move(find)]() mutable -> std::unique_ptr<FilterDevice> {
    const nanobind::gil_scoped_acquire acquire;
    const nanobind::object found = std::exchange(find, nanobind::object())();
    return found.is_none() ? nullptr : nanobind::cast<const DeviceKind&>(found).make();
  };
}

}  // namespace elimina::cp
