// Records (elimina/program.hpp) that are written each time they are read, instead of being stored. For millions of
// small steps, this takes less time than storing all records in new memory.
#pragma once
#include "elimina/config.hpp"

namespace elimina {

class RecordWriter {
 public:
  virtual ~RecordWriter() = default;
  // Length of a step's record.
  virtual i64 words(i64 step) const = 0;
  virtual void write(i64 step, i64* to) = 0;
};

}  // namespace elimina
