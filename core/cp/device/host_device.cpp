#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <thread>
#include <vector>

#include "device.hpp"

namespace elimina::cp {

namespace {

// CPU threads in place of the threads of a device, for `different::Division`. Each thread is a group of one lane, and
// accesses shared memory atomically as on a device.
struct ThreadTeam {
  int rank, count;
  std::barrier<>& barrier;

  i32 thread() const { return rank; }
  i32 threads() const { return count; }
  i32 group() const { return rank; }
  i32 groups() const { return count; }
  i32 lane() const { return 0; }
  i32 lanes() const { return 1; }
  bool any(bool x) const { return x; }
  template <class T>
  T load(const T* address) const {
    return std::atomic_ref<T>(*const_cast<T*>(address)).load();
  }
  u64 unite(u64* address, u64 bits) const { return std::atomic_ref<u64>(*address).fetch_or(bits); }
  template <class T>
  void raise(T* address, T value) const {
    const std::atomic_ref<T> cell(*address);
    for (T old = cell.load(); old < value && !cell.compare_exchange_weak(old, value);) {
    }
  }
  void add(u32* address, u32 count) const { std::atomic_ref<u32>(*address).fetch_add(count); }
  u32 next_index(u32* address) const { return std::atomic_ref<u32>(*address).fetch_add(1); }
  void publish() const {}
  void sync() { barrier.arrive_and_wait(); }
};

class HostDevice final : public FilterDevice {
 public:
  explicit HostDevice(unsigned threads) : threads_(std::max(threads, 1U)) {}

  Piece allocate(Memory, std::size_t bytes) override {
    void* const memory = std::malloc(std::max<std::size_t>(bytes, 1));
    if (!memory) throw std::bad_alloc();
    return {memory, reinterpret_cast<std::uint64_t>(memory), bytes};
  }
  void free(const Piece& piece) override { std::free(piece.host); }
  void upload(const Piece& to, const void* from, std::size_t bytes) override { std::memcpy(to.host, from, bytes); }
  unsigned blocks() const override { return 1; }

  void run(different::Call& call, std::size_t, const volatile std::uint32_t*) override {
    different::Update(call, 0, 1).run();
    // If the system cannot start all threads, the team is smaller. The threads wait until the size of the team is
    // known.
    std::optional<std::barrier<>> barrier;
    std::atomic<int> count = 0;
    const auto work = [&](int rank) {
      count.wait(0);
      ThreadTeam team{rank, count, *barrier};
      for (u32 p = 0; p < call.subset_count; ++p) {
        const different::Subset& subset = call.subsets[p];
        different::Division<ThreadTeam>(team, call, subset, call.scratch + subset.board, call.scratch + subset.rows)
            .run(call.answers + p);
        team.sync();
      }
    };
    std::vector<std::jthread> others;
    others.reserve(threads_ - 1);
    try {
      for (unsigned rank = 1; rank < threads_; ++rank) others.emplace_back(work, static_cast<int>(rank));
    } catch (const std::exception&) {  // the system starts no more threads
    }
    const int started = static_cast<int>(others.size()) + 1;
    barrier.emplace(started);
    count = started;
    count.notify_all();
    work(0);
  }

 private:
  unsigned threads_;
};

}  // namespace

std::unique_ptr<FilterDevice> make_host_device(unsigned threads) { return std::make_unique<HostDevice>(threads); }

}  // namespace elimina::cp
