// What a solver's device is made of: a description that Python hands from one solver to the next.
#pragma once

#include <memory>
#include <string>

#include "cp/device/device.hpp"

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

}  // namespace elimina::cp
