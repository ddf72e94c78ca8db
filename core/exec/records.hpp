// Records (elimina/program.hpp) that are written where they are read: those of millions of small steps would take more time, as memory
// that is new to the process, than to write each of them again.
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
