#include "exec/dense/dense.hpp"

#include <algorithm>
#include <chrono>

#include "exec/dense/isa.hpp"
#include "exec/share.hpp"
#include "records.hpp"

namespace elimina {
namespace {

constexpr double kSmallWork = 4096;    // below: no tiles
constexpr double kGivenWork = 64;      // the same for steps that are made while the program runs
constexpr double kPollWork = 2e7;      // work before a poll: 0.5 to 10 ms, or 0.4 s where each page of memory is new to a virtual machine
constexpr std::chrono::milliseconds kTurn{20};  // shorter turns become longer, because threads wait for each other at their ends
constexpr double kStopped = -1;

struct Choice {
  std::unique_ptr<StepKernels> (*make)(const DenseRun&);
  const char* name;
};

Choice choose() {
#if defined(ELIMINA_X86_DISPATCH)
  __builtin_cpu_init();
#if defined(ELIMINA_AVX512)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return {&avx512::make_kernels, "avx512"};
#endif
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma"))
    return {&avx2::make_kernels, "avx2"};
#endif
  return {&baseline::make_kernels, "baseline"};
}

const Choice choice = choose();

// Values that no table depends on are not visited.
double step_work(StepView step) { return double(step.cells()) * (step[kTables] > 0 ? double(step[kDomain]) : 1.0); }

// Calls `step` for each turn, which returns its work or kStopped; asks `poll` in between. Returns false if that stopped it.
template <class Step>
bool in_sequence(i64 count, const DensePoll& poll, Step step) {
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

// Runs the items of a step, `fewest` at a time or more; asks `poll` in between. Returns false if that stopped it.
template <class Run>
bool in_turns(i64 items, i64 fewest, double work, double done, const DensePoll& poll, Run run) {
  i64 turn = std::max<i64>(fewest, i64(double(items) * std::min(1.0, kPollWork / work)));
  for (i64 first = 0, last; first < items; first = last) {
    const auto began = std::chrono::steady_clock::now();
    last = std::min(items, first + turn);
    run(first, last);
    if (last < items && !poll(done + work * double(last) / double(items))) return false;
    const auto took = std::chrono::steady_clock::now() - began;
    if (took < kTurn / 2) turn *= 2;
    else if (took > 2 * kTurn) turn = std::max(fewest, turn / 2);
  }
  return true;
}

void keep(const Peak& peak, double* to) {
  to[0] = peak.high;
  to[1] = peak.high > 0 ? peak.low : 0;
}

}  // namespace

const char* dense_instruction_set() { return choice.name; }

DenseExecutor::DenseExecutor(const DenseRun& run, std::span<const i64> outputs)
    : run_(run),
      threads_(std::max(run.threads, 1)),
      words_(run.narrow ? nullptr : run.words),
      kernels_(choice.make(run)),
      slices_(run.words, run.starts, run.steps, outputs) {
  entries_.reserve(run.steps);
  for (i64 number = 0; number < run.steps; ++number) {
    const StepView step = view(number);
    const double work = step_work(step);
    const bool levelled = kernels_->levels && step[kVariable] == kLevel;
    entries_.push_back({float(work), levelled ? kLevelled : work < kSmallWork && step[kTables] > 0 && kernels_->translates(step) ? kUnseen : kOrdinary});
  }
}

DenseExecutor::~DenseExecutor() = default;

StepView DenseExecutor::widened(i64 number) {
  const i32* const record = run_.narrow + run_.starts[number];
  wide_.resize(std::max(wide_.size(), std::size_t(record[kWords])));
  widen(record, wide_.data());
  return {wide_.data()};
}

void DenseExecutor::widen_all() {
  const i64 last = run_.starts[run_.steps - 1];
  wide_.resize(std::size_t(last + run_.narrow[last + kWords]));
  for (i64 number = 0; number < run_.steps; ++number) widen(run_.narrow + run_.starts[number], wide_.data() + run_.starts[number]);
  words_ = wide_.data();
  slices_.set_words(words_);
}

void DenseExecutor::fix(const int* values, i64 variables) {
  if (!words_ && run_.steps > 0) widen_all();
  slices_.fix(values, variables);
  for (const i64 number : slices_.sliced_outputs()) {
    const StepView step = view(number);
    i64 last = 0;
    for (i64 axis = 0; axis < step[kAxes]; ++axis) last += (step.size(axis) - 1) * step.out_stride(axis);
    kernels_->clear(step[kOut], last + 1);
  }
}

bool DenseExecutor::run(const i64* sequence, i64 count, const DensePoll& poll) {
  peaks_ = run_.peaks;
  return in_sequence(count, poll, [&](i64 turn, double done) {
    const i64 number = sequence ? sequence[turn] : turn;
    Peak peak;
    if (!one_step(number, done, peak, poll)) return kStopped;
    if (kernels_->scales) keep(peak, peaks_ + 2 * number);
    return double(entries_[number].work);
  });
}

void DenseExecutor::decode(int* assignment) {
  for (i64 number = run_.steps - 1; number >= 0; --number) {
    const StepView step = view(number);
    if (step[kVariable] >= 0) step.assign(assignment, kernels_->best_value(step, run_.peaks, assignment));
  }
}

bool DenseExecutor::run_other(const i64* words, const i64* starts, i64 count, double* peaks, const DensePoll& poll) {
  peaks_ = peaks;
  return in_sequence(count, poll, [&](i64 number, double done) {
    const StepView step{words + starts[number]};
    Peak peak;
    if (!given_step(step, done, peak, poll)) return kStopped;
    if (kernels_->scales) keep(peak, peaks_ + 2 * number);
    return step_work(step);
  });
}

bool DenseExecutor::one_step(i64 number, double done, Peak& peak, const DensePoll& poll) {
  if (slices_.touches(number)) return given_step(slices_.slice(number), done, peak, poll);
  auto& [work, small] = entries_[number];
  if (small >= 0) return peak = kernels_->run_translated(small), true;
  switch (small) {
    case kUnseen: return small = kSeen, given_step(view(number), done, peak, poll);
    case kSeen: return small = i32(kernels_->translate(view(number))), peak = kernels_->run_translated(small), true;
    case kLevelled: return level_step(view(number), work, done, poll);
  }
  if (work >= kSmallWork) return large_step(view(number), work, done, peak, poll);
  return peak = kernels_->run_plain(view(number), peaks_), true;
}

// One that was not translated.
bool DenseExecutor::given_step(StepView step, double done, Peak& peak, const DensePoll& poll) {
  const double work = step_work(step);
  if (work >= kGivenWork) return large_step(step, work, done, peak, poll);
  return peak = kernels_->run_plain(step, peaks_), true;
}

bool DenseExecutor::large_step(StepView step, double work, double done, Peak& peak, const DensePoll& poll) {
  const int threads = work < shared_work ? 1 : threads_;
  const i64 fewest = threads > 1 ? 4 * i64(threads) : 1;
  const i64 items = kernels_->begin(step, peaks_, fewest * std::max<i64>(1, i64(work / kPollWork)));
  if (threads == 1 && work < kPollWork) return kernels_->run(0, items, 0, peak), true;
  return in_turns(items, fewest, work, done, poll, [&](i64 first, i64 last) {
    std::vector<Peak> own(static_cast<std::size_t>(threads));
    share(threads, first, last, [&](i64 item, int thread) { kernels_->run(item, item + 1, thread, own[std::size_t(thread)]); });
    for (const Peak& one : own) peak.see(one.high, one.low);
  });
}

bool DenseExecutor::level_step(StepView step, double work, double done, const DensePoll& poll) {
  const int threads = work * double(step[kTables]) < shared_work ? 1 : threads_;
  return in_turns(kernels_->begin_level(step), 4 * i64(threads), work, done, poll, [&](i64 first, i64 last) {
    share(threads, 0, threads, [&](i64 part, int) {
      kernels_->run_level(first + (last - first) * part / threads, first + (last - first) * (part + 1) / threads);
    });
  });
}

}  // namespace elimina
