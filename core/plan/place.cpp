#include "plan/place.hpp"

#include <algorithm>

#include "elimina/product.hpp"
#include "elimina/program.hpp"
#include "plan/arena.hpp"
#include "plan/records.hpp"
#include "stop.hpp"

namespace elimina::plan {
namespace {

constexpr i64 kMostSpan = i64{1} << 58;  // largest number of elements of an arena: offsets in bytes have to fit a word

class Placer {
 public:
  Placer(const Steps& steps, i64 factors, std::span<const i64> sizes, i64 itemsize, const Speed& speed)
      : steps_(steps), factors_(factors), sizes_(sizes), itemsize_(itemsize), speed_(speed), arena_(itemsize),
        recorder_(steps, sizes, itemsize, layout_) {}

  Layout run(i64 kept_from, std::span<const int> levels, std::span<const double> runs, i64 most_words,
             i64 deferred_words) {
    place_factors();
    find_readers();
    for (i64 step = 0; step < count(); ++step) layout_.record_words += recorder_.words(step);
    const bool is_recorded = layout_.record_words <= most_words;
    layout_.is_deferred = is_recorded && layout_.record_words >= deferred_words;
    const bool is_written = is_recorded && !layout_.is_deferred;
    if (is_written) {
      layout_.words.reserve(std::size_t(layout_.record_words));
      layout_.starts.reserve(std::size_t(count()));
      layout_.factors.reserve(steps_.reads.size());
    }
    Looks looks;
    for (i64 number = 0; number < count(); ++number) {
      looks.look();
      measure(number);
      if (last_reader_[number] >= 0) place_output(number);
      if (is_written) write(number);
      account(number, runs[levels.empty() ? 0 : levels[number]]);
      if (number < kept_from) make_room(number, levels);
    }
    layout_.arena_cells = layout_.is_addressable ? double(arena_.height()) : largest_live_;
    if (!is_recorded) layout_.out_spans = {};
    if (!layout_.is_deferred) layout_.out_offsets = {};
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

  void measure(i64 step) { layout_.out_spans[step] = recorder_.measure(step); }

  // Returns the offset of a table; 0 once the arena exceeds the memory of any machine, because only cells are counted
  // then.
  i64 reserve(int scope, i64 span) {
    const double scope_cells = cells(scope);
    live_ += scope_cells;
    largest_live_ = std::max(largest_live_, live_);
    layout_.largest = std::max(layout_.largest, scope_cells);
    if (span > kMostSpan || arena_.height() > kMostSpan) layout_.is_addressable = false;
    return layout_.is_addressable ? arena_.allocate(span) : 0;
  }

  void place_output(i64 step) {
    layout_.out_offsets[step] = reserve(steps_.steps[step].scope, layout_.out_spans[step]);
  }

  void place_factors() {
    layout_.offsets.reserve(std::size_t(factors_));
    layout_.spans.reserve(std::size_t(factors_));
    layout_.strides.reserve(std::size_t(steps_.scopes.starts[factors_]));
    for (int f = 0; f < factors_; ++f) {
      layout_.spans.push_back(recorder_.measure(f, -1));
      layout_.offsets.push_back(reserve(f, layout_.spans.back()));
      layout_.strides.insert(layout_.strides.end(), recorder_.strides().begin(), recorder_.strides().end());
    }
    arena_.seal();
    layout_.factor_cells = layout_.is_addressable ? double(arena_.height()) : live_;
  }

  void find_readers() {
    last_reader_.assign(count(), -1);
    for (i64 step = 0; step < count(); ++step)
      for (const Read& read : steps_.reads_of(step))
        if (read.source >= 0) last_reader_[read.source] = int(step);
    layout_.out_offsets.resize(std::size_t(count()));
    layout_.out_spans.resize(std::size_t(count()));
    // Tables without a reader are the answer. They get their places before all messages, so that they are copied in one
    // piece.
    for (i64 step = 0; step < count(); ++step)
      if (last_reader_[step] < 0) measure(step), place_output(step);
  }

  // Frees the tables that this step reads last, except those that stay.
  void make_room(i64 number, std::span<const int> levels) {
    for (const Read& read : steps_.reads_of(number)) {
      const int source = read.source;
      if (source < 0 || last_reader_[source] != number || steps_.lasting[source]) continue;
      if (!levels.empty() && levels[number] > levels[source]) continue;
      live_ -= cells_of_output(source);
      if (layout_.is_addressable) arena_.give_back(layout_.out_offsets[source], layout_.out_spans[source]);
      last_reader_[source] = kGone;
    }
  }

  // Writes the record of a step whose output has a place.
  void write(i64 number) {
    layout_.starts.push_back(i64(layout_.words.size()));
    layout_.words.resize(layout_.words.size() + std::size_t(recorder_.words(number)));
    recorder_.write(number, layout_.words.data() + layout_.starts.back());
    for (const Read& read : steps_.reads_of(number)) layout_.factors.push_back(read.factor());
  }

  void account(i64 number, double runs) {
    const Step& step = steps_.steps[number];
    const auto reads = steps_.reads_of(number);
    const double out = cells_of_output(number);
    double moved = out;
    for (const Read& read : reads) moved += cells(read.scope);
    const double work = double(step.domain) * out;
    const i64 once = step.variable == kMatching ? 0 : step.tables_a + step.tables_b;
    const double streamed = double(i64(reads.size()) - once);
    layout_.work += runs * work;
    layout_.operations += runs * work * double(std::max<std::size_t>(reads.size(), 1));
    const bool is_lone = work < speed_.shared;
    const double bandwidth = is_lone ? speed_.lone_bandwidth : speed_.bandwidth;
    const double combinations = (is_lone ? speed_.lone_combinations : speed_.combinations) *
                                (is_product(number, work) ? speed_.product_speed : 1.0);
    layout_.seconds += runs * (speed_.step + std::max(moved * double(itemsize_) / bandwidth,
                                                      work * (1 + 0.5 * streamed) / combinations));
  }

  // True if a sum-product step runs as a matrix product (elimina/product.hpp).
  bool is_product(i64 number, double work) const {
    const Step& step = steps_.steps[number];
    const auto reads = steps_.reads_of(number);
    if (speed_.product_speed == 1 || reads.size() != 2 || step.tables_a != 1 || step.tables_b != 1 ||
        step.variable < 0 || step.domain < kProductDepth || work < double(kProductWork))
      return false;
    const auto has = [&](const Read& read, int variable) {
      return std::ranges::find(steps_.scopes[read.scope], variable) != steps_.scopes[read.scope].end();
    };
    if (!has(reads[0], step.variable) || !has(reads[1], step.variable)) return false;
    const auto scope = steps_.scopes[step.scope];
    const auto axes = steps_.axes_of(number);
    double rows = 1, columns = 1;
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      const int variable = scope[axes[axis]];
      if (int(axis) >= step.outer + step.mid) columns *= double(sizes_[variable]);
      else if (!has(reads[1], variable)) rows *= double(sizes_[variable]);
    }
    return std::min(rows, columns) >= double(kProductSide);
  }

  static constexpr i64 kGone = -2;

  const Steps& steps_;
  i64 factors_;
  std::span<const i64> sizes_;
  i64 itemsize_;
  const Speed& speed_;
  Arena arena_;
  Layout layout_;
  Recorder recorder_;
  std::vector<int> last_reader_;
  double live_ = 0, largest_live_ = 0;  // cells of the live tables
};

}  // namespace

Layout lay_out(const Steps& steps, i64 factors, std::span<const i64> sizes, i64 itemsize, i64 kept_from,
               std::span<const int> levels, std::span<const double> runs, const Speed& speed, i64 most_words,
               i64 deferred_words) {
  return Placer(steps, factors, sizes, itemsize, speed).run(kept_from, levels, runs, most_words, deferred_words);
}

}  // namespace elimina::plan
