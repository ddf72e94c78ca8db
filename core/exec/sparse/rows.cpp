#include "exec/sparse/rows.hpp"

#include "exec/sparse/words.hpp"

namespace elimina::sparse {

const RowsFunctions* rows_functions(int words) {
  switch (words) {
    case 1: return &functions_for<1>();
    case 2: return &functions_for<2>();
    case 3: return &functions_for<3>();
    case 4: return &functions_for<4>();
  }
  return nullptr;
}

}  // namespace elimina::sparse
