// The kernels of TestKernels.c for GPUs of NVIDIA, from which CudaTestKernels.h was compiled:
//
//   clang --target=nvptx64-nvidia-cuda -march=sm_70 -O2 -fno-unroll-loops -ffp-contract=off -S
//
// Launched with any number of threads, those of 256 elements a workgroup with 256. Parameters: the
// bindings, the dimensions, scratch space of the whole launch.
typedef int i32;
typedef long long i64;
typedef float f32;
typedef double f64;
#define GLOBAL __attribute__((address_space(1)))
#define KERNEL __attribute__((nvptx_kernel))
#define THREAD __nvvm_read_ptx_sreg_tid_x()
#define THREADS __nvvm_read_ptx_sreg_ntid_x()
#define WORKGROUP __nvvm_read_ptx_sreg_ctaid_x()
#define ROLLED _Pragma("clang loop unroll(disable) vectorize(disable)")

KERNEL void double_weight(GLOBAL const f32 *weight, GLOBAL f32 *doubled, i64 n) {
  i64 first = (i64)WORKGROUP * 8, end = first + 8 < n ? first + 8 : n;
  for (i64 i = first + THREAD; i < end; i += THREADS)
    doubled[i] = 2 * weight[i];
}

KERNEL void append(GLOBAL const i32 *tokens, GLOBAL const i32 *positions,
                   GLOBAL const i32 *sequences, GLOBAL const i32 *table,
                   GLOBAL const f32 *embedding, GLOBAL f32 *cache, i64 t0, i64 t1, i64 t2, i64 s,
                   i64 blocks, i64 pool) {
  if (THREAD != 0)
    return;
  i64 token = WORKGROUP;
  i32 position = positions[token], block = table[sequences[token] * blocks + position / 4];
  cache[block * 4 + position % 4] = embedding[tokens[token]];
}

KERNEL void attend(GLOBAL const i32 *positions, GLOBAL const i32 *sequences,
                   GLOBAL const i32 *table, GLOBAL const f32 *cache, GLOBAL f32 *hidden, i64 t0,
                   i64 t1, i64 s, i64 blocks, i64 pool, i64 t2) {
  if (THREAD != 0)
    return;
  i64 token = WORKGROUP;
  i32 sequence = sequences[token];
  f32 sum = 0;
  ROLLED for (i32 p = 0; p <= positions[token]; ++p) {
    i32 block = table[sequence * blocks + p / 4];
    sum += (f32)(1 + p % 3) * cache[block * 4 + p % 4];
  }
  hidden[token] = sum;
}

KERNEL void recur(GLOBAL const i32 *tokens, GLOBAL const i32 *offsets, GLOBAL const i32 *slots,
                  GLOBAL const f32 *embedding, GLOBAL f32 *memories, GLOBAL f32 *hidden, i64 t0,
                  i64 s, i64 n, i64 t1) {
  if (THREAD != 0)
    return;
  i64 sequence = WORKGROUP;
  f32 memory = memories[slots[sequence]];
  ROLLED for (i32 t = offsets[sequence]; t < offsets[sequence + 1]; ++t) {
    memory = (f32)((i32)memory / 2) + embedding[tokens[t]];
    hidden[t] += memory;
  }
  memories[slots[sequence]] = memory;
}

KERNEL void logits(GLOBAL const f32 *hidden, GLOBAL const i32 *rows, GLOBAL f32 *result, i64 t,
                   i64 r0, i64 r1, i64 vocabulary, GLOBAL i32 *scratch) {
  i64 row = WORKGROUP, value = (i64)hidden[rows[row]];
  GLOBAL i32 *space = scratch + row * vocabulary;
  ROLLED for (i64 v = THREAD; v < vocabulary; v += THREADS) space[v] =
      (i32)((value - 7 * v) * (value - 7 * v) % 1009);
  ROLLED for (i64 v = THREAD; v < vocabulary; v += THREADS) result[row * vocabulary + v] =
      -(f32)space[v];
}

KERNEL void choose(GLOBAL const f32 *logits, GLOBAL const i32 *rows, GLOBAL const f32 *temperature,
                   GLOBAL const i32 *topK, GLOBAL const f64 *topP, GLOBAL const f64 *random,
                   GLOBAL i32 *tokens, i64 s, i64 vocabulary) {
  if (THREAD != 0)
    return;
  i64 token = WORKGROUP, best = 0;
  GLOBAL const f32 *row = logits + rows[token] * vocabulary;
  ROLLED for (i64 v = 1; v < vocabulary; ++v) if (row[v] > row[best]) best = v;
  if (temperature[token] != 0)
    best = (i64)(random[token] * (f64)vocabulary);
  tokens[token] = (i32)best;
}

KERNEL void increment(GLOBAL const f32 *x, GLOBAL f32 *y, i64 n0, i64 m, i64 n1, i64 m1) {
  ROLLED for (i64 i = (i64)WORKGROUP * m + THREAD; i < ((i64)WORKGROUP + 1) * m; i += THREADS)
      y[i] = x[i] + 1;
}

KERNEL void add(GLOBAL const i32 *x, GLOBAL const i32 *y, GLOBAL i32 *z, i64 n) {
  i64 i = (i64)WORKGROUP * THREADS + THREAD;
  if (i < n)
    z[i] = x[i] + y[i];
}

KERNEL void advance(GLOBAL unsigned *y, i64 n) {
  i64 i = (i64)WORKGROUP * THREADS + THREAD;
  if (i < n)
    y[i] = 3 * y[i] + 1;
}

KERNEL void reverse(GLOBAL const i32 *x, GLOBAL i32 *z, i64 n, GLOBAL i32 *scratch) {
  i64 i = THREAD;
  if (i < n)
    scratch[i] = 2 * x[i];
  __nvvm_bar_sync(0);
  if (i < n)
    z[i] = scratch[n - 1 - i];
}

KERNEL void number(GLOBAL i32 *z, i64 base, i64 step) {
  if (THREAD == 0)
    z[WORKGROUP] = (i32)(base + step * (i64)WORKGROUP);
}

// Writes where nothing is.
KERNEL void fail(GLOBAL i32 *z) { *(volatile GLOBAL i32 *)16 = 1; }
