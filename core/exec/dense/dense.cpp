#include "exec/dense/dense.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>

#include "elimina/product.hpp"
#include "exec/dense/isa.hpp"
#include "exec/paths.hpp"
#include "exec/share.hpp"

namespace elimina {
namespace {

constexpr double kSmallWork = 4096;  // steps of less work have no tiles
constexpr double kGivenWork = 64;    // the same for steps that run without a translation
// Work between two polls: 0.5 to 10 ms, or 0.4 s if a virtual machine first has to get each page of memory.
constexpr double kPollWork = 2e7;
// Intended time of a turn (the items between two polls). After a turn of less than half this time, the next one gets
// twice as many items, because threads wait for each other at the end of each turn; after one of more than twice this
// time, half as many.
constexpr std::chrono::milliseconds kTurn{20};
constexpr double kStopped = -1;

struct Choice {
  std::unique_ptr<StepKernels> (*make)(const DenseRun&);
  const char* name;
};

// Finds the instruction sets of the processor, the best one first.
std::vector<Choice> find_choices() {
  std::vector<Choice> choices;
#if defined(ELIMINA_X86_DISPATCH)
  __builtin_cpu_init();
#if defined(ELIMINA_AVX512)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    choices.push_back({&avx512::make_kernels, "avx512"});
#endif
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma"))
    choices.push_back({&avx2::make_kernels, "avx2"});
#endif
  choices.push_back({&baseline::make_kernels, "baseline"});
  return choices;
}

const std::vector<Choice> choices = find_choices();
std::atomic<const Choice*> choice = &choices.front();

// True if 32 bits hold the offsets of all cells of the axes from `first` on, as translated steps and tiles store them.
bool has_near_cells(StepView step, i64 first) {
  i64 farthest = 0;
  for (i64 t = -1; t < step[kTables]; ++t) {
    i64 last = 0;
    for (i64 axis = first; axis < step[kAxes]; ++axis)
      last += (step.size(axis) - 1) * (t < 0 ? step.out_stride(axis) : step.table(t).stride(axis));
    farthest = std::max(farthest, last);
  }
  return farthest <= std::numeric_limits<i32>::max();
}

// Returns the number of combinations of an output cell and a value of the eliminated variable. A step without tables
// does not visit these values.
double step_work(StepView step) { return double(step.cells()) * (step[kTables] > 0 ? double(step[kDomain]) : 1.0); }

// Calls `step`, which returns its work or kStopped, for each index; calls `poll` in between. Returns false after a
// stop.
template <class Step>
bool in_sequence(i64 count, const DensePoll& poll, Step step) {
  double finished_work = 0, unpolled = 0;
  for (i64 index = 0; index < count; ++index) {
    const double work = step(index, finished_work);
    if (work == kStopped) return false;
    finished_work += work;
    unpolled += work + 1000;
    if (unpolled > kPollWork) {
      unpolled = 0;
      if (!poll(finished_work)) return false;
    }
  }
  return true;
}

// Runs the items of a step in turns of at least `fewest` items, and calls `poll` after each turn but the last. Returns
// false after a stop.
template <class Run>
bool in_turns(i64 items, i64 fewest, double work, double finished_work, const DensePoll& poll, Run run) {
  i64 items_at_once = std::max<i64>(fewest, i64(double(items) * std::min(1.0, kPollWork / work)));
  for (i64 first = 0, last; first < items; first = last) {
    const auto began = std::chrono::steady_clock::now();
    last = std::min(items, first + items_at_once);
    run(first, last);
    if (last < items && !poll(finished_work + work * double(last) / double(items))) return false;
    const auto took = std::chrono::steady_clock::now() - began;
    if (took < kTurn / 2) items_at_once *= 2;
    else if (took > 2 * kTurn) items_at_once = std::max(fewest, items_at_once / 2);
  }
  return true;
}

void keep(const Peak& peak, double* to) {
  to[0] = peak.high;
  to[1] = peak.high > 0 ? peak.low : 0;
}

}  // namespace

const char* dense_instruction_set() { return choice.load()->name; }

std::vector<std::string> dense_instruction_sets() {
  std::vector<std::string> names;
  for (const Choice& candidate : choices) names.emplace_back(candidate.name);
  return names;
}

bool use_dense_instruction_set(const std::string& name) {
  for (const Choice& candidate : choices)
    if (candidate.name == name) return choice = &candidate, true;
  return false;
}

DenseExecutor::DenseExecutor(const DenseRun& run, std::span<const i64> outputs)
    : run_(run), threads_(std::max(run.threads, 1)), words_(run.words), starts_(run.starts),
      kernels_(choice.load()->make(run)), slices_(run.words, run.starts, run.steps, outputs),
      entries_(std::size_t(run.steps), Entry{0, kNew}) {}

DenseExecutor::~DenseExecutor() = default;

StepView DenseExecutor::written(i64 number) {
  if (number != last_) {
    record_.resize(std::max(record_.size(), std::size_t(run_.writer->words(number))));
    run_.writer->write(number, record_.data());
    last_ = number;
  }
  return {record_.data()};
}

void DenseExecutor::write_all() {
  own_starts_.reserve(std::size_t(run_.steps));
  i64 words = 0;
  for (i64 number = 0; number < run_.steps; ++number) {
    own_starts_.push_back(words);
    words += run_.writer->words(number);
  }
  record_.resize(std::size_t(words));
  for (i64 number = 0; number < run_.steps; ++number) run_.writer->write(number, record_.data() + own_starts_[number]);
  words_ = record_.data();
  starts_ = own_starts_.data();
  slices_.set_records(words_, starts_);
}

DenseExecutor::Entry DenseExecutor::look_at(StepView step) {
  const double work = step_work(step);
  if (kernels_->matches && step[kVariable] == kMatching) return {float(work), kMatched};
  const bool is_translated =
      work < kSmallWork && step[kTables] > 0 && kernels_->translates(step) && has_near_cells(step, 0);
  return {float(work), is_translated ? kUnseen : kOrdinary};
}

void DenseExecutor::fix(const int* values, i64 variables) {
  if (!words_ && run_.steps > 0) write_all();
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
  return in_sequence(count, poll, [&](i64 index, double finished_work) {
    const i64 number = sequence ? sequence[index] : index;
    Peak peak;
    if (!one_step(number, finished_work, peak, poll)) return kStopped;
    if (kernels_->scales) keep(peak, peaks_ + 2 * number);
    return double(entries_[number].work);
  });
}

void DenseExecutor::decode(int* assignment, i64 first) {
  count_path(Path::decode);
  for (i64 number = run_.steps - 1; number >= first; --number) {
    const StepView step = view(number);
    if (step[kVariable] >= 0) step.assign(assignment, kernels_->best_value(step, run_.peaks, assignment));
  }
}

bool DenseExecutor::run_other(const i64* words, const i64* starts, i64 count, double* peaks, const DensePoll& poll) {
  count_path(Path::case_plan);
  peaks_ = peaks;
  return in_sequence(count, poll, [&](i64 number, double finished_work) {
    const StepView step{words + starts[number]};
    Peak peak;
    if (!given_step(step, finished_work, peak, poll)) return kStopped;
    if (kernels_->scales) keep(peak, peaks_ + 2 * number);
    return step_work(step);
  });
}

bool DenseExecutor::one_step(i64 number, double finished_work, Peak& peak, const DensePoll& poll) {
  if (entries_[number].small == kNew) entries_[number] = look_at(view(number));
  if (slices_.touches(number))
    return count_path(Path::slice), given_step(slices_.slice(number), finished_work, peak, poll);
  auto& [work, small] = entries_[number];
  if (small >= 0) return peak = kernels_->run_translated(small), true;
  switch (small) {
    case kUnseen: return small = kSeen, given_step(view(number), finished_work, peak, poll);
    case kSeen: return small = i32(kernels_->translate(view(number))), peak = kernels_->run_translated(small), true;
    case kMatched: return matching_step(view(number), work, finished_work, poll);
  }
  if (work >= kSmallWork) return large_step(view(number), work, finished_work, peak, poll);
  return peak = kernels_->run_plain(view(number), peaks_), true;
}

// Runs a step without a translation; returns false after a stop.
bool DenseExecutor::given_step(StepView step, double finished_work, Peak& peak, const DensePoll& poll) {
  const double work = step_work(step);
  if (work >= kGivenWork) return large_step(step, work, finished_work, peak, poll);
  return peak = kernels_->run_plain(step, peaks_), true;
}

bool DenseExecutor::large_step(StepView step, double work, double finished_work, Peak& peak, const DensePoll& poll) {
  const bool multiplies = kernels_->multiplies && is_product(step);
  if (!multiplies && !has_near_cells(step, step.lo_axis())) return peak = kernels_->run_plain(step, peaks_), true;
  const int threads = work < shared_work ? 1 : threads_;
  const i64 fewest = threads > 1 ? 4 * i64(threads) : 1;
  const i64 items = kernels_->begin(step, peaks_, fewest * std::max<i64>(1, i64(work / kPollWork)));
  if (threads > 1) count_path(Path::several_threads);
  if (step.eliminates_several()) count_path(Path::several_variables);
  if (threads == 1 && work < kPollWork) return kernels_->run(0, items, 0, peak), true;
  return in_turns(items, fewest, work, finished_work, poll, [&](i64 first, i64 last) {
    std::vector<Peak> peaks(static_cast<std::size_t>(threads));
    share(threads, first, last,
          [&](i64 item, int thread) { kernels_->run(item, item + 1, thread, peaks[std::size_t(thread)]); });
    for (const Peak& thread_peak : peaks) peak.see(thread_peak.high, thread_peak.low);
  });
}

bool DenseExecutor::matching_step(StepView step, double work, double finished_work, const DensePoll& poll) {
  const int threads = work * double(step[kTables]) < shared_work ? 1 : threads_;
  count_path(Path::matching);
  return in_turns(kernels_->begin_matching(step), 4 * i64(threads), work, finished_work, poll,
                  [&](i64 first, i64 last) {
                    share(threads, 0, threads, [&](i64 slot, int) {
                      kernels_->run_matching(first + (last - first) * slot / threads,
                                             first + (last - first) * (slot + 1) / threads);
                    });
                  });
}

}  // namespace elimina
