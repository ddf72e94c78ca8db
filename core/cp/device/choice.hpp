// Choice between CPU and device for calls of about the same size. Takes the side that was faster when measured, and
// tries the other one from time to time.
#pragma once
#include <algorithm>
#include <cstdint>

namespace elimina::cp {

class Choice {
 public:
  bool is_device() const { return is_device_; }

  // Records the time of the latest call on the chosen side.
  void took(double seconds) {
    Mean& mean = is_device_ ? device_ : cpu_;
    // The first call of a trial does not count, because it also copies all changes since the last call on that side.
    if (!is_trial_ || remaining_ < kTrial) mean.add(seconds);
    if (--remaining_ > 0) return;
    if (is_trial_) end_trial();
    else begin_trial();
  }

 private:
  // `kTrial`: number of calls of a trial. `kShortest`, `kLongest`: least and greatest number of calls between trials.
  // `kMargin`: factor by which the device has to be faster, because a call on the device wakes other propagators again.
  static constexpr std::uint32_t kTrial = 4, kShortest = 256, kLongest = 4096;
  static constexpr double kMargin = 1.25;

  struct Mean {
    double seconds = 0;
    std::uint32_t count = 0;
    // Adds a call to the mean, in which recent calls count more than old ones. Much longer calls are outliers, caused
    // by other programs, so their time is cut to `kOutlier` means.
    void add(double sample) {
      constexpr double kOutlier = 4;
      if (count++ == 0) seconds = sample;
      else seconds += (std::min(sample, kOutlier * seconds) - seconds) / std::min<double>(count, 8);
    }
  };

  void begin_trial() {
    is_device_ = !is_device_;
    is_trial_ = true;
    remaining_ = kTrial;
    (is_device_ ? device_ : cpu_).count = 0;
  }

  void end_trial() {
    if (cpu_.count == 0 || device_.count == 0) return begin_trial();
    const bool is_better = kMargin * device_.seconds < cpu_.seconds;
    pause_ = is_better == is_device_ ? kShortest : std::min(2 * pause_, kLongest);
    is_device_ = is_better;
    is_trial_ = false;
    remaining_ = pause_;
  }

  Mean cpu_, device_;
  bool is_device_ = false, is_trial_ = true;
  std::uint32_t remaining_ = kTrial, pause_ = kShortest;
};

}  // namespace elimina::cp
