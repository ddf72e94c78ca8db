// A search in several threads. With an objective and the default schedule, the threads first race: each one searches
// the whole tree with its own rows of the schedule. Then the tree is cut into many parts, which threads search one
// after another (Regin, Rezgui and Malapert, CP 2013).
#pragma once
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "search.hpp"

namespace elimina::cp {

class ParallelSearch final : public Finder {
 public:
  // `copies`: a solver for each thread, with the same variables and constraints, posted in the same order.
  ParallelSearch(const std::vector<Solver*>& copies, Options options);
  ~ParallelSearch() override { leave(); }
  ParallelSearch(const ParallelSearch&) = delete;
  ParallelSearch& operator=(const ParallelSearch&) = delete;

  // Takes the next solution. The threads continue between calls until the queue of solutions is full.
  Status next() override;
  const Values& solution() const override { return solution_.values; }
  const char* origin() const override { return solution_.origin; }
  Statistics statistics() const override;
  Value bound() const override { return std::min(bound_.load(), best_.load()); }
  void raise_bound(Value bound) override;
  void adopt(const Values& solution) override;
  void set_costs(std::shared_ptr<const ValueCosts> costs) override { costs_.set(std::move(costs)); }

 private:
  using Part = std::vector<Decision>;

  struct Offer {
    Values values;
    const char* origin = "";
  };

  struct Worker {
    std::unique_ptr<Search> search;
    std::thread thread;
    mutable std::mutex mutex;
    Statistics statistics;  // figures in the last report of the thread
  };

  void begin();
  bool split();
  void start_threads();
  void join();
  void work(Worker& worker);
  void race(Worker& worker);
  bool search_part(Worker& worker);
  bool offer(const Search& search);
  void update_statistics(Worker& worker);
  bool has_ended();
  void leave();
  void limit();
  double elapsed() const;

  Options options_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Part> parts_;
  Offer solution_;
  std::uint64_t solutions_ = 0;
  Status end_ = Status::complete;
  std::chrono::steady_clock::time_point start_;
  double seconds_ = 0, polled_ = 0;
  std::size_t pauses_ = 0;
  bool begun_ = false, is_splitting_ = false;

  std::atomic<bool> stop_ = false, is_racing_ = false;
  std::atomic<Value> best_ = kNoValue, bound_ = kNoBound;
  SharedValueCosts costs_;
  SharedFigures figures_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_, room_;
  std::deque<Offer> waiting_;
  std::size_t next_part_ = 0;
  bool is_proven_ = false;   // true if a thread has searched the whole tree
  bool is_limited_ = false;  // true if a thread has reached a limit
  std::size_t running_ = 0;
  std::exception_ptr failure_;
};

}  // namespace elimina::cp
