// Description of a solver's device, which Python passes from one solver to the next.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
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

// Returns a function that finds a solver's device. The returned function gets a future from `find`, and returns nullopt
// until the future is done. The result of the future is a device kind or None. For None or an unusable device, the
// returned function gives nullptr.
inline Solver::FindDevice finder_of(nanobind::object find) {
  return
      [find = std::move(find), future = nanobind::object()]() mutable -> std::optional<std::unique_ptr<FilterDevice>> {
        const nanobind::gil_scoped_acquire acquire;
        if (!future.is_valid()) future = find();
        if (!nanobind::cast<bool>(future.attr("done")())) return std::nullopt;
        const nanobind::object device = future.attr("result")();
        find = future = nanobind::object();
        try {
          return device.is_none() ? nullptr : nanobind::cast<const DeviceKind&>(device).make();
        } catch (const DeviceFailed&) {
          return nullptr;
        }
      };
}

}  // namespace elimina::cp
