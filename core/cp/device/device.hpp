// A device that filters subsets of AllDifferents for a search on the CPU: its memory, and the calls of
// `elimina/different.hpp` that it runs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include <elimina/different.hpp>

namespace elimina::cp {

// Error of a call of the device; the text names the call.
struct DeviceFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class FilterDevice {
 public:
  enum class Memory { device, shared };  // shared: the host's memory, which the device reads and writes

  // A piece of memory; `host` is nullptr for memory of the device.
  struct Piece {
    void* host = nullptr;
    std::uint64_t device = 0;
    std::size_t bytes = 0;
  };

  virtual ~FilterDevice() = default;
  virtual Piece allocate(Memory memory, std::size_t bytes) = 0;
  virtual void free(const Piece& piece) = 0;
  virtual void upload(const Piece& to, const void* from, std::size_t bytes) = 0;

  // Runs a call, and returns when its answers are in the host's memory; sets the call's `arrived` and `arrivals`.
  // `board_bytes`: bytes of the largest state of a subset; `done`: word of the host's memory in which the device writes
  // the call's `ticket` at the end.
  virtual void run(different::Call& call, std::size_t board_bytes, const volatile std::uint32_t* done) = 0;

  // Number of blocks that run at the same time.
  virtual unsigned blocks() const = 0;
};

// Makes a device that runs the same code on a team of this processor's threads, for tests.
std::unique_ptr<FilterDevice> make_host_device(unsigned threads);

// Loads the driver, and makes a device from a kernel of a CUDA module on the primary context. Throws `DeviceFailed`.
std::unique_ptr<FilterDevice> make_cuda_device(int ordinal, const char* module, const std::string& name);

}  // namespace elimina::cp
