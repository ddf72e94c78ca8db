// A search that Python continues from solution to solution; its listener may end it.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <optional>

#include "arrays.hpp"
#include "cp/parallel.hpp"
#include "listener.hpp"

namespace elimina::cp {

class Searching {
 public:
  // Searches with a thread for each copy of the model.
  Searching(const std::vector<Solver*>& copies, Options options) {
    options.poll = [this] { return report(poll_, ended_); };
    if (copies.size() == 1) search_ = std::make_unique<Search>(*copies[0], std::move(options));
    else search_ = std::make_unique<ParallelSearch>(copies, std::move(options));
  }

  const char* next(nanobind::object poll) {
    if (busy_) throw nanobind::value_error("the search goes on in another thread");
    busy_ = true;
    poll_ = std::move(poll);
    ended_ = {};
    Finder::Status status;
    try {
      nanobind::gil_scoped_release release;
      status = search_->next();
    } catch (...) {
      busy_ = false;
      throw;
    }
    busy_ = false;
    if (ended_.raised) throw nanobind::python_error();
    return name_of(status);
  }

  const Values& values() const { return search_->solution(); }

  const char* origin() const { return search_->origin(); }

  Array<std::int64_t> solution() const { return array_of(values()); }

  // Lower bound of the minimised objective; none if there is no bound yet.
  std::optional<Value> bound() const {
    const Value bound = search_->bound();
    return bound == kNoBound ? std::nullopt : std::optional(bound);
  }

  void raise_bound(Value bound) {
    if (busy_) throw nanobind::value_error("the search goes on in another thread");
    search_->raise_bound(bound);
  }

  void adopt(Values solution) {
    if (busy_) throw nanobind::value_error("the search goes on in another thread");
    search_->adopt(solution);
  }

  void set_costs(std::vector<ValueCosts::Entry> entries, Value unit, Value offset) {
    if (busy_) throw nanobind::value_error("the search goes on in another thread");
    search_->set_costs(std::make_shared<const ValueCosts>(std::move(entries), unit, offset));
  }

  nanobind::dict statistics() const {
    const Statistics s = search_->statistics();
    nanobind::dict result;
    result["nodes"] = s.nodes;
    result["failures"] = s.failures;
    result["solutions"] = s.solutions;
    result["restarts"] = s.restarts;
    result["nogoods"] = s.nogoods;
    result["propagations"] = s.calls;
    result["peak_depth"] = s.peak_depth;
    result["seconds"] = s.seconds;
    result["interrupted"] = ended_.interrupted;
    return result;
  }

 private:
  static const char* name_of(Finder::Status status) {
    switch (status) {
      case Finder::Status::solution: return "solution";
      case Finder::Status::complete: return "complete";
      case Finder::Status::limit: return "limit";
      case Finder::Status::paused: return "paused";
      default: return "stopped";
    }
  }

  std::unique_ptr<Finder> search_;
  nanobind::object poll_;
  Ended ended_;
  bool busy_ = false;
};

}  // namespace elimina::cp
