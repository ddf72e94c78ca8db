// Executing the steps of a program on the CPU, one after another.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "exec/dense/dense.hpp"
#include "exec/dense/level.hpp"
#include "exec/dense/product.hpp"
#include "exec/dense/slice.hpp"
#include "exec/dense/small.hpp"
#include "exec/dense/tile.hpp"
#include "elimina/program.hpp"
#include "elimina/semiring.hpp"
#include "exec/threads.hpp"

namespace elimina::ELIMINA_ISA {

constexpr double kSmallWork = 4096;       // below: no tiles
constexpr double kGivenWork = 64;         // the same for steps that are made while the program runs
constexpr double kParallelWork = 1e6;     // below: tiles, but on one thread
constexpr double kPollWork = 2e8;         // work between two polls

// Version for semirings without vectors.
struct NoSmallSteps {
  template <class... Any>
  explicit NoSmallSteps(Any...) {}
  static bool takes(StepView) { return false; }
  i64 add(StepView) { return -1; }
};
struct NoLevelSteps {
  template <class... Any>
  explicit NoLevelSteps(Any...) {}
};

struct NoProductSteps {
  template <class... Any>
  explicit NoProductSteps(Any...) {}
};

template <class R>
class Executor final : public DenseExecutor {
  using V = typename R::Value;
  using Sum = typename R::Sum;
  using Small = std::conditional_t<Wide<R>::available, SmallSteps<R>, NoSmallSteps>;
  using Product = std::conditional_t<multiplies<R>, ProductStep<R>, NoProductSteps>;
  using Level = std::conditional_t<levels<R>, LevelStep<R>, NoLevelSteps>;

 public:
  Executor(const DenseRun& run, R ring)
      : run_(run),
        ring_(ring),
        arena_(static_cast<V*>(run.arena)),
        slices_(run.words, run.starts, run.steps, run.outputs, run.output_count),
        small_(ring, arena_, run.peaks),
        tile_(ring, arena_),
        product_(arena_),
        level_(ring, arena_),
        spaces_(std::max(run.threads, 1)) {
    entries_.reserve(run.steps);
    for (i64 number = 0; number < run.steps; ++number) {
      const StepView step = view(number);
      const double work = step_work(step);
      if (levels<R> && step[kVariable] == kLevel)
        entries_.push_back({work, kLevelled});
      else
        entries_.push_back({work, work < kSmallWork && Small::takes(step) ? kUnseen : kOrdinary});
    }
  }

  void fix(const int* values, i64 variables) override {
    slices_.fix(values, variables);
    const V zero = ring_.finish(ring_.start());
    for (const i64 number : slices_.sliced_outputs()) {
      const StepView step = view(number);
      i64 last = 0;
      for (i64 axis = 0; axis < step[kAxes]; ++axis) last += (step.size(axis) - 1) * step.out_stride(axis);
      std::fill_n(arena_ + step[kOut], last + 1, zero);
    }
  }

  bool run(const i64* sequence, i64 count, const DensePoll& poll) override {
    peaks_ = run_.peaks;
    return in_sequence(count, poll, [&](i64 turn, double done) {
      Peak<V> peak;
      if (!one_step(sequence[turn], done, peak, poll)) return kStopped;
      keep(peak, sequence[turn]);
      return entries_[sequence[turn]].work;
    });
  }

  void decode(int* assignment) override {
    peaks_ = run_.peaks;
    for (i64 number = run_.steps - 1; number >= 0; --number) {
      const StepView step = view(number);
      if (step[kVariable] < 0) continue;
      prepare(step);
      for (auto& source : sources_)
        for (i64 axis = 0; axis < step[kAxes]; ++axis)
          source.data += i64(assignment[step.variable(axis)]) * source.view.stride(axis);
      i64 best = 0;
      V best_value = value_at(0);
      for (i64 d = 1; d < step[kDomain]; ++d) {
        const V value = value_at(d);
        if (ring_.better(value, best_value)) best = d, best_value = value;
      }
      step.assign(assignment, best);
    }
  }

  bool run_other(const i64* words, const i64* starts, i64 count, double* peaks, const DensePoll& poll) override {
    peaks_ = peaks;
    return in_sequence(count, poll, [&](i64 number, double done) {
      const StepView step{words + starts[number]};
      Peak<V> peak;
      if (!given_step(step, done, peak, poll)) return kStopped;
      keep(peak, number);
      return step_work(step);
    });
  }

 private:
  struct Entry {
    double work;
    i64 small;  // its number there, or:
  };
  static constexpr i64 kOrdinary = -1, kLevelled = -2;
  static constexpr i64 kUnseen = -3, kSeen = -4;  // translated when they run for the second time: once costs less as they are
  static constexpr double kStopped = -1;

  // Calls `step` for each turn, which returns its work or kStopped; asks `poll` in between. Returns false if that stopped it.
  template <class Step>
  static bool in_sequence(i64 count, const DensePoll& poll, Step step) {
    double done = 0, unpolled = 0;
    for (i64 turn = 0; turn < count; ++turn) {
      const double work = step(turn, done);
      if (work == kStopped) return false;
      done += work;
      unpolled += work + 1000;
      if (unpolled > kPollWork) {
        unpolled = 0;
        if (!poll(done)) return false;
      }
    }
    return true;
  }

  void keep(const Peak<V>& peak, i64 number) {
    if constexpr (R::scaled) {
      peaks_[2 * number] = peak.high;
      peaks_[2 * number + 1] = peak.high > 0 ? peak.low : 0;
    }
  }

  static double step_work(StepView step) { return double(step.cells()) * double(step[kDomain]); }

  bool one_step(i64 number, double done, Peak<V>& peak, const DensePoll& poll) {
    if (slices_.touches(number)) return given_step(slices_.slice(number), done, peak, poll);
    auto& [work, small] = entries_[number];
    if constexpr (Wide<R>::available) {
      if (small == kUnseen) return small = kSeen, given_step(view(number), done, peak, poll);
      if (small == kSeen) small = small_.add(view(number));
      if (small >= 0) return peak = small_.run(small), true;
    }
    if constexpr (levels<R>)
      if (small == kLevelled) return level_step(view(number), work, done, poll);
    prepare(view(number));
    if (work >= kSmallWork) return large_step(view(number), work, done, peak, poll);
    return peak = plain_step(view(number)), true;
  }

  // One that was not translated.
  bool given_step(StepView step, double done, Peak<V>& peak, const DensePoll& poll) {
    prepare(step);
    const double work = step_work(step);
    if (work >= kGivenWork) return large_step(step, work, done, peak, poll);
    return peak = plain_step(step), true;
  }

  StepView view(i64 number) const { return {run_.words + run_.starts[number]}; }

  void prepare(StepView step) {
    ring_ = weighed(ring_, step.weight());
    tables_ = step[kTables];
    a_ = step[kTablesA];
    b_ = a_ + step[kTablesB];
    sources_.resize(tables_);
    for (i64 t = 0; t < tables_; ++t) {
      const TableView table = step.table(t);
      V scale = V(1);
      if constexpr (R::scaled) {
        const double high = table.source() < 0 ? 0.0 : peaks_[2 * table.source()];
        scale = message_scale<V>(high);
      }
      sources_[t] = {arena_ + table.offset(), table.domain_stride(), scale, table};
    }
  }

  V read(const Source<V>& source, i64 index) const {
    if constexpr (R::scaled)
      return source.data[index] * source.scale;
    else
      return source.data[index];
  }

  // The value of one combination where every source already points at the output cell: (lhs...) x (rhs...) x streamed...
  V value_at(i64 d) const {
    V a = ring_.one(), b = ring_.one();
    for (i64 t = 0; t < a_; ++t) a = ring_.combine(a, read(sources_[t], d * sources_[t].domain_stride));
    for (i64 t = a_; t < b_; ++t) b = ring_.combine(b, read(sources_[t], d * sources_[t].domain_stride));
    V value = ring_.combine(a, b);
    for (i64 t = b_; t < tables_; ++t) value = ring_.combine(value, read(sources_[t], d * sources_[t].domain_stride));
    return value;
  }

  Peak<V> plain_step(StepView step) {
    Peak<V> peak;
    V* out = arena_ + step[kOut];
    const i64 axes = step[kAxes];
    digits_.assign(axes, 0);
    for (i64 cell = step.cells(); cell > 0; --cell) {
      Sum sum = ring_.start();
      for (i64 d = 0; d < step[kDomain]; ++d) ring_.add(sum, value_at(d));
      const V value = ring_.finish(sum);
      *out = value;
      if constexpr (R::scaled) peak.see(&value, 1);
      for (i64 axis = axes - 1; axis >= 0; --axis) {
        const bool wraps = ++digits_[axis] == step.size(axis);
        const i64 moves = wraps ? 1 - step.size(axis) : 1;
        out += moves * step.out_stride(axis);
        for (auto& source : sources_) source.data += moves * source.view.stride(axis);
        if (!wraps) break;
        digits_[axis] = 0;
      }
    }
    return peak;
  }

  bool large_step(StepView step, double work, double done, Peak<V>& peak, const DensePoll& poll) {
    if constexpr (multiplies<R>)
      if (is_product(step)) return run_items(product_, step, work, done, peak, poll);
    return run_items(tile_, step, work, done, peak, poll);
  }

  template <class Way>
  bool run_items(Way& way, StepView step, double work, double done, Peak<V>& peak, const DensePoll& poll) {
    const int threads = work < kParallelWork ? 1 : int(spaces_.size());
    const i64 wanted = threads > 1 ? 4 * i64(threads) : 1;
    way.begin(step, sources_, wanted);
    const i64 items = way.items();
    if (threads == 1 && work < kPollWork) {
      way.run(0, items, spaces_[0], peak);
      return true;
    }
    return in_turns(items, wanted, work, done, poll, [&](i64 first, i64 last) {
#pragma omp parallel num_threads(threads)
      {
        Peak<V> own;
#pragma omp for schedule(dynamic, 1)
        for (i64 item = first; item < last; ++item) way.run(item, item + 1, spaces_[omp_get_thread_num()], own);
#pragma omp critical
        peak.see(own.high, own.low);
      }
    });
  }

  bool level_step(StepView step, double work, double done, const DensePoll& poll) {
    level_.begin(step);
    const int threads = work * double(step[kTables]) < kParallelWork ? 1 : int(spaces_.size());
    return in_turns(level_.items(), 4 * i64(threads), work, done, poll, [&](i64 first, i64 last) {
      if (threads == 1) return level_.run(first, last);
#pragma omp parallel num_threads(threads)
      {
        const i64 part = omp_get_thread_num(), parts = omp_get_num_threads();
        level_.run(first + (last - first) * part / parts, first + (last - first) * (part + 1) / parts);
      }
    });
  }

  // Runs the items of a step, `fewest` at a time or more; asks `poll` in between. Returns false if that stopped it.
  template <class Run>
  bool in_turns(i64 items, i64 fewest, double work, double done, const DensePoll& poll, Run run) {
    const i64 turn = std::max<i64>(fewest, i64(double(items) * std::min(1.0, kPollWork / work)));
    for (i64 first = 0; first < items; first += turn) {
      const i64 last = std::min(items, first + turn);
      run(first, last);
      if (last < items && !poll(done + work * double(last) / double(items))) return false;
    }
    return true;
  }

  const DenseRun run_;
  R ring_;
  V* arena_;
  double* peaks_ = nullptr;  // of the program that runs
  Slices slices_;
  i64 tables_ = 0, a_ = 0, b_ = 0;
  std::vector<Entry> entries_;
  std::vector<Source<V>> sources_;
  Small small_;
  TileStep<R> tile_;
  Product product_;
  Level level_;
  std::vector<Workspace<R>> spaces_;
  std::vector<i64> digits_;
};

}  // namespace elimina::ELIMINA_ISA
