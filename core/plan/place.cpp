#include "plan/place.hpp"

#include <cstring>

#include "elimina/program.hpp"
#include "plan/arena.hpp"
#include "records.hpp"
#include "stop.hpp"

namespace elimina::plan {
namespace {

constexpr i64 kAhead = 2;  // steps
constexpr i64 kLineBytes = 64, kFetched = 24;  // of the cache; words of a record: its header and three axes
constexpr i64 kMostSpan = i64{1} << 58;  // elements of an arena: offsets of larger ones in bytes may leave a word

class Placer {
 public:
  Placer(const Steps& steps, i64 factors, std::span<const i64> sizes, i64 itemsize, const Speed& speed)
      : steps_(steps), factors_(factors), sizes_(sizes), itemsize_(itemsize), speed_(speed), arena_(itemsize), stride_(sizes.size()) {
    marks_.resize(sizes.size());
  }

  Layout run(bool keep, std::span<const int> levels, std::span<const double> runs, i64 most_words, i64 narrow_words) {
    place_factors();
    find_readers();
    for (i64 step = 0; step < count(); ++step) layout_.record_words += words_of(step);
    const bool is_recorded = layout_.record_words <= most_words;
    is_narrow_ = layout_.record_words >= narrow_words;
    if (is_recorded) {
      if (is_narrow_) layout_.narrow.reserve(std::size_t(layout_.record_words));
      else layout_.words.reserve(std::size_t(layout_.record_words));
      layout_.starts.reserve(std::size_t(count()));
      layout_.factors.reserve(steps_.reads.size());
    }
    Looks looks;
    for (i64 number = 0; number < count(); ++number) {
      looks.look();
      measure(number);
      if (last_reader_[number] >= 0) place(number);
      if (is_recorded) {
        if (is_narrow_) fetch_records(layout_.narrow.data(), number + kAhead);
        else fetch_records(layout_.words.data(), number + kAhead);
        write(number);
      }
      account(number, runs[levels.empty() ? 0 : levels[number]]);
      if (!keep) make_room(number, levels);
    }
    layout_.arena_cells = layout_.is_addressable ? double(arena_.height()) : most_;
    if (is_recorded) layout_.out_spans = std::move(out_spans_);
    return std::move(layout_);
  }

 private:
  i64 count() const { return i64(steps_.steps.size()); }

  double cells(int scope) const {
    double cells = 1;
    for (const int v : steps_.scopes[scope]) cells *= double(sizes_[v]);
    return cells;
  }

  double cells_of_output(i64 step) const { return cells(steps_.steps[step].scope); }

  // Finds the strides of a table's axes; returns the elements that it spans.
  i64 measure(int scope, int rows) {
    shape_.clear();
    for (const int v : steps_.scopes[scope]) shape_.push_back(sizes_[v]);
    strides_.resize(shape_.size());
    return lay_out_table(shape_, itemsize_, rows, strides_);
  }
  void measure(i64 step) { out_spans_[step] = measure(steps_.steps[step].scope, steps_.steps[step].rows); }

  // Returns the place of a table. Where tables are larger than any machine, cells alone are counted.
  i64 take(int scope, i64 span) {
    const double own = cells(scope);
    live_ += own;
    most_ = std::max(most_, live_);
    layout_.largest = std::max(layout_.largest, own);
    if (span > kMostSpan || arena_.height() > kMostSpan) layout_.is_addressable = false;
    return layout_.is_addressable ? arena_.take(span) : 0;
  }

  void place(i64 step) { out_offsets_[step] = take(steps_.steps[step].scope, out_spans_[step]); }

  void place_factors() {
    layout_.offsets.reserve(std::size_t(factors_));
    layout_.spans.reserve(std::size_t(factors_));
    layout_.strides.reserve(std::size_t(steps_.scopes.starts[factors_]));
    for (int f = 0; f < factors_; ++f) {
      layout_.spans.push_back(measure(f, -1));
      layout_.offsets.push_back(take(f, layout_.spans.back()));
      layout_.strides.insert(layout_.strides.end(), strides_.begin(), strides_.end());
    }
    arena_.seal();
    layout_.factor_cells = layout_.is_addressable ? double(arena_.height()) : live_;
  }

  void find_readers() {
    last_reader_.assign(count(), -1);
    for (i64 step = 0; step < count(); ++step)
      for (const Read& read : steps_.reads_of(step))
        if (read.source >= 0) last_reader_[read.source] = int(step);
    out_offsets_.resize(std::size_t(count()));
    out_spans_.resize(std::size_t(count()));
    // Tables that are read at the end come first, so that they can be copied as one piece.
    for (i64 step = 0; step < count(); ++step)
      if (last_reader_[step] < 0) measure(step), place(step);
  }

  i64 words_of(i64 step) const {
    const i64 axes = i64(steps_.axes[step].size()), tables = i64(steps_.reads_of(step).size());
    return kHeader + kAxisWords * axes + tables * (kStrides + axes) + kOtherWords * i64(steps_.others_of(step).size());
  }

  // Gives back what the step was the last one to read.
  void make_room(i64 number, std::span<const int> levels) {
    for (const Read& read : steps_.reads_of(number)) {
      const int source = read.source;
      if (source < 0 || last_reader_[source] != number || steps_.lasting[source]) continue;
      if (!levels.empty() && levels[number] > levels[source]) continue;
      live_ -= cells_of_output(source);
      if (layout_.is_addressable) arena_.give_back(out_offsets_[source], out_spans_[source]);
      last_reader_[source] = kGone;
    }
  }

  // Loads what `find_strides` reads for a later step into the cache: records of earlier steps lie anywhere in memory.
  template <class Word>
  void fetch_records(const Word* words, i64 number) const {
    if (number >= count()) return;
    for (const Read& read : steps_.reads_of(number)) {
      if (read.source < 0 || read.source >= i64(layout_.starts.size())) continue;
      const Word* const record = words + layout_.starts[read.source];
      for (i64 word = 0; word < kFetched; word += kLineBytes / i64(sizeof(Word))) __builtin_prefetch(record + word);
    }
  }

  // Marks the variables of a table that is read, and tells their strides; a message's are in the record of its step.
  void find_strides(const Read& read) {
    marks_.clear();
    if (read.source < 0) {
      const i64* stride = layout_.strides.data() + steps_.scopes.starts[read.scope];
      for (const int v : steps_.scopes[read.scope]) marks_.add(v), stride_[v] = *stride++;
    } else if (is_narrow_) {
      find_axes(layout_.narrow.data() + layout_.starts[read.source]);
    } else {
      find_axes(layout_.words.data() + layout_.starts[read.source]);
    }
  }

  template <class Word>
  void find_axes(const Word* record) {
    const Word* axis = record + kHeader;
    for (i64 left = record[kAxes]; left > 0; --left, axis += kAxisWords) marks_.add(int(axis[kAxisVariable])), stride_[axis[kAxisVariable]] = axis[kOutStride];
  }

  // Writes the record of the step that was measured last.
  void write(i64 number) {
    const Step& step = steps_.steps[number];
    const auto scope = steps_.scopes[step.scope];
    const auto axes = steps_.axes[number];
    const auto reads = steps_.reads_of(number);
    const auto others = steps_.others_of(number);
    record_.resize(std::size_t(words_of(number)));
    layout_.starts.push_back(i64(is_narrow_ ? layout_.narrow.size() : layout_.words.size()));
    i64 cells[3] = {1, 1, 1};
    i64* word = record_.data() + kHeader;
    for (int a = 0; a < int(axes.size()); ++a) {
      const int v = scope[axes[a]];
      *word++ = sizes_[v];
      *word++ = strides_[axes[a]];
      *word++ = v;
      i64& group = cells[a < step.outer ? 0 : a < step.outer + step.mid ? 1 : 2];
      group = times(group, sizes_[v]);
    }
    for (const Read& read : reads) {
      find_strides(read);
      const auto along = [&](int v) { return v >= 0 && marks_.has(v) ? stride_[v] : 0; };
      *word++ = read.source < 0 ? layout_.offsets[read.scope] : out_offsets_[read.source];
      *word++ = along(others.empty() ? step.variable : others.back());
      *word++ = read.source;
      for (const int axis : axes) *word++ = along(scope[axis]);
      layout_.factors.push_back(read.factor());
    }
    for (const int v : others) *word++ = v, *word++ = sizes_[v];
    i64 weight;
    std::memcpy(&weight, &step.weight, sizeof weight);
    const i64 header[kHeader] = {i64(record_.size()), step.domain, step.variable, i64(axes.size()), step.outer, step.mid, cells[0], cells[1],
                                 cells[2], i64(reads.size()), step.tables_a, step.tables_b, out_offsets_[number], weight};
    std::copy(header, header + kHeader, record_.begin());
    if (is_narrow_ && !fits_narrow(record_)) widen_records();
    if (is_narrow_) append_narrow(record_, layout_.narrow);
    else layout_.words.insert(layout_.words.end(), record_.begin(), record_.end());
  }

  // All records are of one kind.
  void widen_records() {
    is_narrow_ = false;
    layout_.words.reserve(std::size_t(layout_.record_words));
    layout_.words.resize(layout_.narrow.size());
    for (std::size_t step = 0; step + 1 < layout_.starts.size(); ++step) widen(layout_.narrow.data() + layout_.starts[step], layout_.words.data() + layout_.starts[step]);
    layout_.narrow = {};
  }

  void account(i64 number, double runs) {
    const Step& step = steps_.steps[number];
    const auto reads = steps_.reads_of(number);
    const double out = cells_of_output(number);
    double moved = out;
    for (const Read& read : reads) moved += cells(read.scope);
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
  std::vector<i64> stride_, record_;            // of each marked variable; the record that is written
  std::vector<i64> shape_, strides_;            // of the table that was measured last
  std::vector<i64> out_offsets_, out_spans_;    // of each step's output
  std::vector<int> last_reader_;
  bool is_narrow_ = false;
  double live_ = 0, most_ = 0;  // cells of the tables that are there
  Marks marks_;
};

}  // namespace

Layout lay_out(const Steps& steps, i64 factors, std::span<const i64> sizes, i64 itemsize, bool keep, std::span<const int> levels,
               std::span<const double> runs, const Speed& speed, i64 most_words, i64 narrow_words) {
  return Placer(steps, factors, sizes, itemsize, speed).run(keep, levels, runs, most_words, narrow_words);
}

}  // namespace elimina::plan
