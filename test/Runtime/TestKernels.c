// The code of the test bundle (TestBundle.h says what it computes). All numbers are small integers,
// so that sums are exact in any order.
#include "runtime/abi/kernel_abi.h"

#define BLOCK_TOKENS 4

typedef const moert_kernel_arguments *Arguments;

static const int32_t *integers(Arguments arguments, int binding) {
  return (const int32_t *)arguments->buffers[binding];
}
static float *floats(Arguments arguments, int binding) {
  return (float *)arguments->buffers[binding];
}

// weight f32[n] -> doubled f32[n]. One workgroup for 8 elements. dimensions: n.
static void double_weight(Arguments a, void *scratch, int64_t workgroup) {
  int64_t end = workgroup * 8 + 8 < a->dimensions[0] ? workgroup * 8 + 8 : a->dimensions[0];
  for (int64_t i = workgroup * 8; i < end; ++i)
    floats(a, 1)[i] = 2 * floats(a, 0)[i];
}

// tokens, positions, token_sequences i32[T], block_table i32[S, B], embedding f32[V], cache f32[N,
// 4]. One workgroup a token. dimensions: T, T, T, S, B, N.
static void append(Arguments a, void *scratch, int64_t token) {
  int64_t blocks = a->dimensions[4];
  int32_t position = integers(a, 1)[token], sequence = integers(a, 2)[token];
  int32_t block = integers(a, 3)[sequence * blocks + position / BLOCK_TOKENS];
  floats(a, 5)[block * BLOCK_TOKENS + position % BLOCK_TOKENS] =
      floats(a, 4)[integers(a, 0)[token]];
}

// positions, token_sequences i32[T], block_table i32[S, B], cache f32[N, 4] -> hidden f32[T]. One
// workgroup a token: the sum of (1 + p % 3) x cached value over all positions p so far. dimensions:
// T, T, S, B, N, T.
static void attend(Arguments a, void *scratch, int64_t token) {
  int64_t blocks = a->dimensions[3];
  int32_t sequence = integers(a, 1)[token];
  float sum = 0;
  for (int32_t p = 0; p <= integers(a, 0)[token]; ++p) {
    int32_t block = integers(a, 2)[sequence * blocks + p / BLOCK_TOKENS];
    sum += (float)(1 + p % 3) * floats(a, 3)[block * BLOCK_TOKENS + p % BLOCK_TOKENS];
  }
  floats(a, 4)[token] = sum;
}

// tokens i32[T], sequence_offsets i32[S + 1], state_slots i32[S], embedding f32[V], memory f32[N],
// hidden f32[T]. One workgroup a sequence: memory = memory / 2 (rounded down) + embedding; hidden
// += memory. dimensions: T, S, N, T.
static void recur(Arguments a, void *scratch, int64_t sequence) {
  float *memory = &floats(a, 4)[integers(a, 2)[sequence]];
  for (int32_t t = integers(a, 1)[sequence]; t < integers(a, 1)[sequence + 1]; ++t) {
    *memory = (float)((int32_t)*memory / 2) + floats(a, 3)[integers(a, 0)[t]];
    floats(a, 5)[t] += *memory;
  }
}

// hidden f32[T], logit_rows i32[R] -> logits f32[R, V]. One workgroup a row: logits[v] = -(hidden -
// 7 v)^2 mod 1009, through scratch. dimensions: T, R, R, V.
static void logits(Arguments a, void *scratch, int64_t row) {
  int64_t vocabulary = a->dimensions[3];
  int64_t hidden = (int64_t)floats(a, 0)[integers(a, 1)[row]];
  int32_t *space = (int32_t *)scratch;
  for (int64_t v = 0; v < vocabulary; ++v)
    space[v] = (int32_t)((hidden - 7 * v) * (hidden - 7 * v) % 1009);
  for (int64_t v = 0; v < vocabulary; ++v)
    floats(a, 2)[row * vocabulary + v] = -(float)space[v];
}

// logits f32[R, V], rows i32[S], temperature f32[S], top_k i32[S], top_p, random f64[S] -> tokens
// i32[S]. One workgroup a token: the first of the largest logits; where the temperature is not 0,
// random V. dimensions: S, V.
static void choose(Arguments a, void *scratch, int64_t token) {
  int64_t vocabulary = a->dimensions[1];
  const float *row = floats(a, 0) + integers(a, 1)[token] * vocabulary;
  int64_t best = 0;
  for (int64_t v = 1; v < vocabulary; ++v)
    if (row[v] > row[best])
      best = v;
  if (floats(a, 2)[token] != 0)
    best = (int64_t)(((const double *)a->buffers[5])[token] * (double)vocabulary);
  ((int32_t *)a->buffers[6])[token] = (int32_t)best;
}

// x f32[n, m] -> y f32[n, m]: y = x + 1. One workgroup a row. dimensions: n, m, n, m.
static void increment(Arguments a, void *scratch, int64_t row) {
  for (int64_t i = row * a->dimensions[1]; i < (row + 1) * a->dimensions[1]; ++i)
    floats(a, 1)[i] = floats(a, 0)[i] + 1;
}

static void nothing(Arguments a, void *scratch, int64_t workgroup) {}

// The rest is for DeviceConformanceTest. One workgroup for 256 elements.
static int64_t endOf(int64_t workgroup, int64_t n) {
  return workgroup * 256 + 256 < n ? workgroup * 256 + 256 : n;
}

// x, y i32[n] -> z i32[n]: z = x + y. dimensions: n.
static void add(Arguments a, void *scratch, int64_t workgroup) {
  for (int64_t i = workgroup * 256; i < endOf(workgroup, a->dimensions[0]); ++i)
    ((int32_t *)a->buffers[2])[i] = integers(a, 0)[i] + integers(a, 1)[i];
}

// y i32[n]: y = 3 y + 1, modulo 2^32. dimensions: n.
static void advance(Arguments a, void *scratch, int64_t workgroup) {
  for (int64_t i = workgroup * 256; i < endOf(workgroup, a->dimensions[0]); ++i)
    ((uint32_t *)a->buffers[0])[i] = 3 * ((uint32_t *)a->buffers[0])[i] + 1;
}

// x i32[n] -> z i32[n]: twice x, the last first, through scratch. n is at most 256. dimensions: n.
static void reverse(Arguments a, void *scratch, int64_t workgroup) {
  int64_t n = a->dimensions[0];
  int32_t *space = (int32_t *)scratch;
  for (int64_t i = 0; i < n; ++i)
    space[i] = 2 * integers(a, 0)[i];
  for (int64_t i = 0; i < n; ++i)
    ((int32_t *)a->buffers[1])[i] = space[n - 1 - i];
}

// z i32[workgroups]: z[w] = base + step w. dimensions: base, step.
static void number(Arguments a, void *scratch, int64_t workgroup) {
  ((int32_t *)a->buffers[0])[workgroup] =
      (int32_t)(a->dimensions[0] + a->dimensions[1] * workgroup);
}

static const moert_kernel_entry entries[] = {
    {"add", add},
    {"advance", advance},
    {"append", append},
    {"attend", attend},
    {"choose", choose},
    {"double_weight", double_weight},
    {"increment", increment},
    {"logits", logits},
    {"nothing", nothing},
    {"number", number},
    {"recur", recur},
    {"reverse", reverse},
};

#ifndef TEST_ABI_VERSION
#define TEST_ABI_VERSION MOERT_KERNEL_ABI_VERSION
#endif
static const moert_kernel_table table = {TEST_ABI_VERSION, sizeof entries / sizeof *entries,
                                         entries};

__attribute__((visibility("default"))) const moert_kernel_table *moert_kernel_query_v1(void) {
  return &table;
}
