// What a solver's device is made of: a description that Python hands from one solver to the next.
#pragma once
#include <nanobind/nanobind.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cp/device/device.hpp"

namespace elimina::cp {

struct DeviceKind {
  std::vector<nanobind::bytes> modules;  // empty: this processor
  std::vector<std::string> names;
  int ordinal = 0;
  unsigned threads = 1;

  std::unique_ptr<FilterDevice> make() const {
    if (modules.empty()) return make_host_device(threads);
    std::vector<std::span<const char>> parts;
    for (const nanobind::bytes& module : modules) parts.emplace_back(module.c_str(), module.size());
    return make_cuda_device(ordinal, parts, names);
  }
};

}  // namespace elimina::cp
