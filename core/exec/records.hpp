// Records (elimina/program.hpp) that are written when they are read: storing those of millions of small steps takes
// more time, in new memory, than writing each of them again.
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
