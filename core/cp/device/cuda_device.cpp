// Uses the driver's interface, loaded at run time: the core is built without CUDA.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>

#include "device.hpp"

namespace elimina::cp {

namespace {

using Handle = void*;
using Pointer = unsigned long long;

constexpr int kNotReady = 600, kMaxSharedOfFunction = 8, kMaxSharedOfDevice = 97, kProcessors = 16;
constexpr unsigned kMapped = 2, kPortable = 1, kNonBlocking = 1, kThreads = 512;

// Functions of the driver, by their names in its library.
struct Driver {
  int (*init)(unsigned);
  int (*device)(int*, int);
  int (*attribute)(int*, int, int);
  int (*retain)(Handle*, int);
  int (*release)(int);
  int (*push)(Handle);
  int (*pop)(Handle*);
  int (*load)(Handle*, const void*);
  int (*unload)(Handle);
  int (*function)(Handle*, Handle, const char*);
  int (*set)(Handle, int, int);
  int (*allocate)(Pointer*, std::size_t);
  int (*free)(Pointer);
  int (*allocate_host)(void**, std::size_t, unsigned);
  int (*free_host)(void*);
  int (*address)(Pointer*, void*, unsigned);
  int (*copy)(Pointer, const void*, std::size_t, Handle);
  int (*make_stream)(Handle*, unsigned);
  int (*end_stream)(Handle);
  int (*query)(Handle);
  int (*synchronise)(Handle);
  int (*launch)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void**, void**);
  int (*launch_together)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void**);
  int (*error)(int, const char**);
};

template <class F>
void find(Handle library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (!function) throw DeviceFailed(std::string("the CUDA driver has no ") + name + "; update it");
}

const Driver& driver() {
  static const Driver driver = [] {
    const Handle library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) throw DeviceFailed("there is no CUDA driver (libcuda.so.1)");
    Driver d;
    find(library, "cuInit", d.init);
    find(library, "cuDeviceGet", d.device);
    find(library, "cuDeviceGetAttribute", d.attribute);
    find(library, "cuDevicePrimaryCtxRetain", d.retain);
    find(library, "cuDevicePrimaryCtxRelease_v2", d.release);
    find(library, "cuCtxPushCurrent_v2", d.push);
    find(library, "cuCtxPopCurrent_v2", d.pop);
    find(library, "cuModuleLoadData", d.load);
    find(library, "cuModuleUnload", d.unload);
    find(library, "cuModuleGetFunction", d.function);
    find(library, "cuFuncSetAttribute", d.set);
    find(library, "cuMemAlloc_v2", d.allocate);
    find(library, "cuMemFree_v2", d.free);
    find(library, "cuMemHostAlloc", d.allocate_host);
    find(library, "cuMemFreeHost", d.free_host);
    find(library, "cuMemHostGetDevicePointer_v2", d.address);
    find(library, "cuMemcpyHtoDAsync_v2", d.copy);
    find(library, "cuStreamCreate", d.make_stream);
    find(library, "cuStreamDestroy_v2", d.end_stream);
    find(library, "cuStreamQuery", d.query);
    find(library, "cuStreamSynchronize", d.synchronise);
    find(library, "cuLaunchKernel", d.launch);
    find(library, "cuLaunchCooperativeKernel", d.launch_together);
    find(library, "cuGetErrorName", d.error);
    return d;
  }();
  return driver;
}

void check(int status, const char* what) {
  if (status == 0) return;
  const char* name = nullptr;
  driver().error(status, &name);
  throw DeviceFailed(std::string(what) + " failed on the GPU: " + (name ? name : std::to_string(status)));
}

class CudaDevice final : public FilterDevice {
 public:
  CudaDevice(int ordinal, const char* module, const std::string& name) : d_(driver()) {
    check(d_.init(0), "cuInit");
    check(d_.device(&device_, ordinal), "finding the device");
    check(d_.retain(&context_, device_), "taking the context");
    try {
      const Current current(*this);
      load(module, name);
    } catch (...) {
      close();
      throw;
    }
  }
  ~CudaDevice() override { close(); }
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  Piece allocate(Memory memory, std::size_t bytes) override {
    const Current current(*this);
    Piece piece{nullptr, 0, std::max<std::size_t>(bytes, 16)};
    Pointer address = 0;
    if (memory == Memory::device) {
      check(d_.allocate(&address, piece.bytes), "taking memory");
    } else {
      check(d_.allocate_host(&piece.host, piece.bytes, kMapped | kPortable), "taking page-locked memory");
      check(d_.address(&address, piece.host, 0), "mapping page-locked memory");
    }
    piece.device = address;
    return piece;
  }

  void free(const Piece& piece) override {
    const Current current(*this);
    if (piece.host) d_.free_host(piece.host);
    else if (piece.device) d_.free(piece.device);
  }

  void upload(const Piece& to, const void* from, std::size_t bytes) override {
    const Current current(*this);
    check(d_.copy(to.device, from, bytes, stream_), "copying to the device");
    check(d_.synchronise(stream_), "copying to the device");
  }

  unsigned blocks() const override { return static_cast<unsigned>(processors_); }

  void run(different::Call& call, std::size_t board_bytes, const volatile std::uint32_t* done) override {
    const Current current(*this);
    call.arrived = reinterpret_cast<std::uint32_t*>(arrived_);
    call.arrivals = arrivals_;
    void* arguments[] = {&call};
    const bool is_alone = call.blocks == 1;
    const unsigned grid = is_alone ? std::min(call.subset_count, blocks()) : call.subset_count * call.blocks;
    const auto shared = static_cast<unsigned>(is_alone ? board_bytes : 0);
    if (grid == 1)
      check(d_.launch(function_, 1, 1, 1, kThreads, 1, 1, shared, stream_, arguments, nullptr), "filtering");
    else check(d_.launch_together(function_, grid, 1, 1, kThreads, 1, 1, shared, stream_, arguments), "filtering");
    arrivals_ += call.subset_count + (grid > 1 ? grid : 0);
    wait(call.ticket, done);
  }

 private:
  // A guard that makes the context current in this thread during the guard's lifetime.
  struct Current {
    explicit Current(const CudaDevice& device) : d(device.d_) { check(d.push(device.context_), "taking the context"); }
    ~Current() {
      Handle context;
      d.pop(&context);
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
    const Driver& d;
  };

  void load(const char* module, const std::string& name) {
    check(d_.load(&module_, module), "loading the kernel");
    check(d_.function(&function_, module_, name.c_str()), "finding the kernel");
    int shared = 0;
    check(d_.attribute(&shared, kMaxSharedOfDevice, device_), "asking for shared memory");
    check(d_.set(function_, kMaxSharedOfFunction, shared), "setting shared memory");
    check(d_.attribute(&processors_, kProcessors, device_), "asking for processors");
    check(d_.make_stream(&stream_, kNonBlocking), "making a stream");
    check(d_.allocate(&arrived_, sizeof(std::uint32_t)), "taking memory");
    check(d_.copy(arrived_, &arrivals_, sizeof(arrivals_), stream_), "copying to the device");
    check(d_.synchronise(stream_), "copying to the device");
  }

  // Waits by polling the host's memory, because the answer arrives there before the stream ends. Checks the stream for
  // errors now and then.
  void wait(std::uint32_t ticket, const volatile std::uint32_t* done) const {
    constexpr int kLooks = 1 << 12;
    for (;;) {
      for (int look = 0; look < kLooks; ++look)
        if (*done == ticket) return std::atomic_thread_fence(std::memory_order_acquire);
      const int status = d_.query(stream_);
      if (status == kNotReady) continue;
      check(status, "filtering");
      if (*done == ticket) return;
      throw DeviceFailed("filtering ended on the GPU without an answer");
    }
  }

  void close() {
    d_.push(context_);
    if (stream_) d_.end_stream(stream_);
    if (arrived_) d_.free(arrived_);
    if (module_) d_.unload(module_);
    Handle context;
    d_.pop(&context);
    d_.release(device_);
  }

  const Driver& d_;
  int device_ = 0, processors_ = 1;
  Handle context_ = nullptr, stream_ = nullptr, module_ = nullptr, function_ = nullptr;
  Pointer arrived_ = 0;
  std::uint32_t arrivals_ = 0;
};

}  // namespace

std::unique_ptr<FilterDevice> make_cuda_device(int ordinal, const char* module, const std::string& name) {
  return std::make_unique<CudaDevice>(ordinal, module, name);
}

}  // namespace elimina::cp
