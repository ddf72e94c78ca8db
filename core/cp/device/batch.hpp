// Filters AllDifferents on a device: one call filters all AllDifferents that wait in the queue. The device keeps copies
// of the domains' rows and of the matchings; only changes are sent.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "choice.hpp"
#include "cp/engine.hpp"
#include "device.hpp"

namespace elimina::cp {

class Matching;

class DeviceBatch {
 public:
  // The device is tried for a propagator only if its subsets have at least this many variables in total.
  static constexpr std::size_t kWorthwhile = 512;

  // Registers the AllDifferents that a device can filter, except those requested on the CPU. Call it at the root.
  DeviceBatch(Engine& engine, std::unique_ptr<FilterDevice> device, bool measures);
  ~DeviceBatch();
  DeviceBatch(const DeviceBatch&) = delete;
  DeviceBatch& operator=(const DeviceBatch&) = delete;

  // Splits the subsets of a propagator, after `Matching::prepare`, into components: on the CPU, or on the device
  // together with the subsets of all waiting propagators.
  Outcome divide(Engine& engine, Matching& matching);

  // True if the device's copies are kept up to date. This ends once too many changes have gathered because the CPU has
  // been faster for a long time.
  bool is_following() const { return is_following_; }

  std::uint64_t calls() const { return calls_; }
  double seconds() const { return seconds_; }

  // True if a device can filter a matching: all domains have rows, all views have the scale 1, and the CPU is not
  // requested.
  static bool can_filter(const Domains& d, const Matching& matching);

 private:
  // An array whose memory is replaced by a larger piece when needed.
  template <class T>
  struct Store {
    FilterDevice::Piece piece;
    FilterDevice* owner = nullptr;

    ~Store() { release(); }
    void release() {
      if (piece.bytes > 0) owner->free(piece);
      piece = {};
    }
    T* host() const { return static_cast<T*>(piece.host); }
    T* device() const { return reinterpret_cast<T*>(piece.device); }
    std::size_t size() const { return piece.bytes / sizeof(T); }
  };
  struct Job {
    Matching* matching;
    std::size_t first, last;  // range of its subsets
  };

  static std::size_t variables(Matching& matching);
  void follow(bool is_following);
  Outcome divide_together(Engine& engine, Matching& first);
  void enlist(const Domains& d, Matching& matching);
  void add_subsets(Matching& matching);
  void write_changes(const Domains& d);
  void take_memory();
  void reserve_for_subsets(std::size_t subsets, std::size_t lists, std::size_t free, std::size_t scratch,
                           std::size_t losses, std::size_t labels);
  void upload_all(const Domains& d);
  bool is_answered(const Domains& d);
  void run();
  Outcome apply(Engine& engine, bool is_answered);
  bool apply(Engine& engine, const Job& job, bool is_answered);
  template <class T>
  void reserve(Store<T>& store, std::size_t count, FilterDevice::Memory memory);

  Domains& domains_;
  std::unique_ptr<FilterDevice> device_;
  bool measures_;
  Changes changes_;
  bool is_known_ = false;  // true once memory is allocated and all data are on the device
  bool is_following_ = false, is_broken_ = false;
  std::array<Choice, 64> choices_{};  // choices for each number of variables, in powers of two
  std::vector<Matching*> matchings_;
  std::vector<different::Member> members_;
  std::vector<Job> jobs_;
  std::vector<different::Subset> subsets_;
  std::vector<std::uint32_t> lists_;
  std::vector<std::uint64_t> free_values_;
  different::Call call_{};
  std::size_t board_bytes_ = 0, losses_count_ = 0, labels_count_ = 0, scratch_words_ = 0;
  std::uint64_t calls_ = 0;
  double seconds_ = 0;  // seconds of the device's calls

  Store<std::uint64_t> rows_, scratch_, host_free_, free_store_;
  Store<different::Bounds> bounds_;
  Store<std::int32_t> match_;
  Store<different::Member> member_store_;
  Store<different::WordChange> words_;
  Store<different::BoundsChange> new_bounds_;
  Store<different::MatchChange> matches_;
  Store<different::Subset> host_subsets_, subset_store_;
  Store<std::uint32_t> host_lists_, list_store_, barriers_, done_;
  Store<different::Loss> losses_;
  Store<different::Label> labels_;
  Store<different::Answer> answers_;
};

}  // namespace elimina::cp
