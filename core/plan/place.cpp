#include "plan/place.hpp"

#include <cstring>

#include "elimina/program.hpp"
#include "plan/arena.hpp"
#include "stop.hpp"

namespace elimina::plan {
namespace {

constexpr i64 kMostSpan = i64{1} << 58;  // elements of an arena: offsets of larger ones in bytes may leave a word

class Placer {
 public:
  Placer(const Steps& steps, i64 factors, std::span<const i64> sizes, i64 itemsize, const Speed& speed)
      : steps_(steps), factors_(factors), sizes_(sizes), itemsize_(itemsize), speed_(speed), arena_(itemsize), first_stride_(factors), stride_(sizes.size()) {
    marks_.resize(sizes.size());
    strides_.reserve(steps.scopes.items.size());
  }

  Layout run(bool keep, std::span<const int> levels, std::span<const double> runs, i64 most_words) {
    place_factors();
    find_readers();
    for (i64 step = 0; step < count(); ++step) layout_.record_words += words_of(step);
    const bool is_recorded = layout_.record_words <= most_words;
    if (is_recorded) {
      layout_.words.reserve(std::size_t(layout_.record_words));
      layout_.starts.reserve(std::size_t(count()));
      layout_.out_spans.reserve(std::size_t(count()));
      layout_.factors.reserve(steps_.reads.size());
    }
    Looks looks;
    for (i64 number = 0; number < count(); ++number) {
      looks.look();
      if (last_reader_[number] >= 0) place(number);
      if (is_recorded) write(number);
      account(number, runs[levels.empty() ? 0 : levels[number]]);
      if (!keep) make_room(number, levels);
    }
    layout_.arena_cells = layout_.is_addressable ? double(arena_.height()) : most_;
    return std::move(layout_);
  }

 private:
  // A table's place. Where tables are larger than any machine, `cells` alone says how large.
  struct Place {
    i64 first_stride = 0;  // of the axes of its scope
    i64 offset = 0, span = 0;
    double cells = 0;
  };

  i64 count() const { return i64(steps_.steps.size()); }

  double cells(int scope) const {
    double cells = 1;
    for (const int v : steps_.scopes[scope]) cells *= double(sizes_[v]);
    return cells;
  }

  Place take(int scope, int rows) {
    shape_.clear();
    for (const int v : steps_.scopes[scope]) shape_.push_back(sizes_[v]);
    const std::size_t first = strides_.size();
    strides_.resize(first + shape_.size());
    Place place{i64(first), 0, lay_out_table(shape_, itemsize_, rows, std::span(strides_).subspan(first)), cells(scope)};
    live_ += place.cells;
    most_ = std::max(most_, live_);
    layout_.largest = std::max(layout_.largest, place.cells);
    if (place.span > kMostSpan || arena_.height() > kMostSpan) layout_.is_addressable = false;
    if (layout_.is_addressable) place.offset = arena_.take(place.span);
    return place;
  }

  void place(i64 step) { outputs_[step] = take(steps_.steps[step].scope, steps_.steps[step].rows); }

  void place_factors() {
    for (int f = 0; f < factors_; ++f) {
      const Place own = take(f, -1);
      first_stride_[f] = own.first_stride;
      layout_.offsets.push_back(own.offset);
      layout_.spans.push_back(own.span);
    }
    layout_.strides = strides_;
    arena_.seal();
    layout_.factor_cells = layout_.is_addressable ? double(arena_.height()) : live_;
  }

  void find_readers() {
    last_reader_.assign(count(), -1);
    for (i64 step = 0; step < count(); ++step)
      for (const Read& read : steps_.reads_of(step))
        if (read.source >= 0) last_reader_[read.source] = step;
    outputs_.resize(count());
    // Tables that are read at the end come first, so that they can be copied as one piece.
    for (i64 step = 0; step < count(); ++step)
      if (last_reader_[step] < 0) place(step);
  }

  i64 words_of(i64 step) const {
    const i64 axes = i64(steps_.axes[step].size()), tables = i64(steps_.reads_of(step).size());
    return kHeader + kAxisWords * axes + tables * (kStrides + axes) + kOtherWords * i64(steps_.others[step].size());
  }

  // Gives back what the step was the last one to read.
  void make_room(i64 number, std::span<const int> levels) {
    for (const Read& read : steps_.reads_of(number)) {
      const int source = read.source;
      if (source < 0 || last_reader_[source] != number || steps_.lasting[source]) continue;
      if (!levels.empty() && levels[number] > levels[source]) continue;
      live_ -= outputs_[source].cells;
      if (layout_.is_addressable) arena_.give_back(outputs_[source].offset, outputs_[source].span);
      last_reader_[source] = kGone;
    }
  }

  void write(i64 number) {
    const Step& step = steps_.steps[number];
    const Place& output = outputs_[number];
    const auto scope = steps_.scopes[step.scope];
    const auto axes = steps_.axes[number];
    const auto reads = steps_.reads_of(number);
    const auto others = steps_.others[number];
    record_.resize(std::size_t(words_of(number)));
    layout_.starts.push_back(i64(layout_.words.size()));
    layout_.out_spans.push_back(output.span);
    i64 cells[3] = {1, 1, 1};
    i64* word = record_.data() + kHeader;
    for (int a = 0; a < int(axes.size()); ++a) {
      const int v = scope[axes[a]];
      *word++ = sizes_[v];
      *word++ = strides_[output.first_stride + axes[a]];
      *word++ = v;
      i64& group = cells[a < step.outer ? 0 : a < step.outer + step.mid ? 1 : 2];
      group = times(group, sizes_[v]);
    }
    for (const Read& read : reads) {
      const auto own = steps_.scopes[read.scope];
      const bool is_factor = read.source < 0;
      const i64* strides = strides_.data() + (is_factor ? first_stride_[read.factor] : outputs_[read.source].first_stride);
      marks_.clear();
      for (std::size_t i = 0; i < own.size(); ++i) marks_.add(own[i]), stride_[own[i]] = strides[i];
      const auto along = [&](int v) { return v >= 0 && marks_.has(v) ? stride_[v] : 0; };
      *word++ = is_factor ? layout_.offsets[read.factor] : outputs_[read.source].offset;
      *word++ = along(others.empty() ? step.variable : others.back());
      *word++ = read.source;
      for (const int axis : axes) *word++ = along(scope[axis]);
      layout_.factors.push_back(is_factor ? read.factor : -1);
    }
    for (const int v : others) *word++ = v, *word++ = sizes_[v];
    i64 weight;
    std::memcpy(&weight, &step.weight, sizeof weight);
    const i64 header[kHeader] = {i64(record_.size()), step.domain, step.variable, i64(axes.size()), step.outer, step.mid, cells[0], cells[1],
                                 cells[2], i64(reads.size()), step.tables_a, step.tables_b, output.offset, weight};
    std::copy(header, header + kHeader, record_.begin());
    layout_.words.insert(layout_.words.end(), record_.begin(), record_.end());
  }

  void account(i64 number, double runs) {
    const Step& step = steps_.steps[number];
    const auto reads = steps_.reads_of(number);
    const double out = outputs_[number].cells;
    double moved = out;
    for (const Read& read : reads) moved += read.source < 0 ? cells(read.scope) : outputs_[read.source].cells;
    const double work = double(step.domain) * out;
    const i64 once = step.variable == kLevel ? 0 : step.tables_a + step.tables_b;
    const double streamed = double(i64(reads.size()) - once);
    layout_.work += runs * work;
    layout_.operations += runs * work * double(std::max<std::size_t>(reads.size(), 1));
    const bool is_lone = work < speed_.shared;
    const double bandwidth = is_lone ? speed_.lone_bandwidth : speed_.bandwidth;
    const double combinations = is_lone ? speed_.lone_combinations : speed_.combinations;
    layout_.seconds += runs * (speed_.step + std::max(moved * double(itemsize_) / bandwidth, work * (1 + 0.5 * streamed) / combinations));
  }

  static constexpr i64 kGone = -2;

  const Steps& steps_;
  i64 factors_;
  std::span<const i64> sizes_;
  i64 itemsize_;
  const Speed& speed_;
  Arena arena_;
  Layout layout_;
  std::vector<i64> first_stride_, stride_, strides_, shape_, record_, last_reader_;
  std::vector<Place> outputs_;
  double live_ = 0, most_ = 0;  // cells of the tables that are there
  Marks marks_;
};

}  // namespace

Layout lay_out(const Steps& steps, i64 factors, std::span<const i64> sizes, i64 itemsize, bool keep, std::span<const int> levels,
               std::span<const double> runs, const Speed& speed, i64 most_words) {
  return Placer(steps, factors, sizes, itemsize, speed).run(keep, levels, runs, most_words);
}

}  // namespace elimina::plan
