// Writes the records (elimina/program.hpp) of steps that have been laid out.
#pragma once
#include <memory>

#include "exec/records.hpp"
#include "plan/place.hpp"

namespace elimina::plan {

// A layout and, if its records are deferred, the data to write them from.
struct LaidOutSteps : Layout {
  std::shared_ptr<const Steps> steps;
  std::vector<i64> sizes;  // sizes of all variables
  i64 itemsize = 0;

  // The lists `words`, `starts` and `factors`, even if records are deferred.
  std::vector<i64> all_words() const;
  std::vector<i64> all_starts() const;
  std::vector<int> all_factors() const;
};

class Recorder : public RecordWriter {
 public:
  explicit Recorder(const LaidOutSteps& laid_out)
      : Recorder(*laid_out.steps, laid_out.sizes, laid_out.itemsize, laid_out) {}
  // These arguments must outlive the writer; each written step and its inputs must have places.
  Recorder(const Steps& steps, std::span<const i64> sizes, i64 itemsize, const Layout& layout)
      : steps_(steps), sizes_(sizes), itemsize_(itemsize), layout_(layout) {}

  i64 words(i64 step) const override;
  void write(i64 step, i64* to) override;

  // Computes the strides of the axes of a step's output; returns the number of elements.
  i64 measure(i64 step) { return measure(steps_.steps[step].scope, steps_.steps[step].rows); }
  i64 measure(int scope, int rows);
  std::span<const i64> strides() const { return strides_; }

 private:
  static constexpr std::size_t kFew = 8;  // largest number of axes of a table that is searched for a variable

  void find(const Read& read);
  // Returns the stride along a variable of the table that was selected last; 0 if the table lacks the variable.
  i64 along(int variable) const;

  const Steps& steps_;
  std::span<const i64> sizes_;
  i64 itemsize_;
  const Layout& layout_;
  std::vector<i64> shape_, strides_;  // sizes and strides of the axes of the last measured table
  std::span<const int> read_scope_;   // scope of the table that was selected last
  const i64* read_strides_ = nullptr;
  std::vector<i64> stride_;  // strides of the selected table's variables (`marks_`), if there are many
  Marks marks_;
};

}  // namespace elimina::plan
