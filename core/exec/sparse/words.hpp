#pragma once
#include "exec/sparse/rows.hpp"

namespace elimina::sparse {

template <int W>
const RowsFunctions& functions_for();
template <>
const RowsFunctions& functions_for<1>();
template <>
const RowsFunctions& functions_for<2>();
template <>
const RowsFunctions& functions_for<3>();
template <>
const RowsFunctions& functions_for<4>();

}  // namespace elimina::sparse
