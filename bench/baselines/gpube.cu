// The kernels of GpuBE (Fioretto et al., Constraints 2018, sections 6.3 and 6.4), written from the paper: a thread for each row of
// the joint table, indices by equation (3), the eliminated variable last in every table, the joint table stored between the two
// kernels. As section 6.4 says, the loop over the bucket's tables is unrolled into one kernel.
template <class T>
struct Table {
  const T* values;
  int axes;
  int mul[12];        // stride of the axis in this table
  long long div[12];  // stride of the axis in the joint table
  int mod[12];        // its size
};

template <class T, int kTables>
struct Tables {
  Table<T> table[kTables];
};

template <class T, int kTables>
__global__ void aggregate(T* joint, long long rows, const Tables<T, kTables>* bucket) {
  __shared__ Tables<T, kTables> tables;
  for (int i = threadIdx.x; i < int(sizeof(tables) / 4); i += blockDim.x)
    reinterpret_cast<int*>(&tables)[i] = reinterpret_cast<const int*>(bucket)[i];
  __syncthreads();
  const long long row = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (row >= rows) return;
  T sum = 0;
#pragma unroll
  for (int t = 0; t < kTables; ++t) {
    const Table<T>& table = tables.table[t];
    long long index = 0;
    for (int axis = 0; axis < table.axes; ++axis) index += table.mul[axis] * (row / table.div[axis] % table.mod[axis]);
    sum += table.values[index];
  }
  joint[row] = sum;
}

template <class T>
__global__ void eliminate(T* out, const T* joint, long long cells, int domain) {
  const long long cell = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (cell >= cells) return;
  const T* rows = joint + cell * domain;
  T best = rows[0];
  for (int d = 1; d < domain; ++d) best = min(best, rows[d]);
  out[cell] = best;
}
