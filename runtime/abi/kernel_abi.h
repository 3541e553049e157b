// The contract between compiled kernels and the runtime. Plain C; the compiler emits code for exactly this layout.
//
// A bundle's code for the CPU is one shared object that exports a single symbol, MOERT_KERNEL_QUERY_NAME. Every kernel has
// the type moert_kernel_function and is found by name through the table that the query returns.
#ifndef MOERT_KERNEL_ABI_H
#define MOERT_KERNEL_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Raised when this file changes in a way that old code would misread. Code of another version is refused.
#define MOERT_KERNEL_ABI_VERSION 1

// What one launch hands to every workgroup of a kernel. Immutable while the launch runs.
typedef struct moert_kernel_arguments {
  // Base address of each binding, in the order of the manifest's launch. An address is aligned to 64 bytes, except weights
  // bound as they lie in a checkpoint, which are aligned to their element size.
  void *const *buffers;
  // The dynamic dimensions of the bindings, binding by binding from the outermost on, as the manifest's launch lists them.
  const int64_t *dimensions;
} moert_kernel_arguments;

// Runs one workgroup. Workgroups of a launch run in any order and on any thread; two of them never write the same byte.
// `scratch` is private to the calling thread, aligned to 64 bytes, at least as large as the launch asks, and its content is
// undefined at entry.
typedef void (*moert_kernel_function)(const moert_kernel_arguments *arguments, void *scratch, int64_t workgroup);

typedef struct moert_kernel_entry {
  const char *name;  // NUL-terminated, unique in the table
  moert_kernel_function function;
} moert_kernel_entry;

typedef struct moert_kernel_table {
  uint32_t abi_version;  // MOERT_KERNEL_ABI_VERSION of the compiler
  uint32_t count;
  const moert_kernel_entry *entries;  // sorted by name
} moert_kernel_table;

// Returns the table, which lives as long as the shared object is loaded.
typedef const moert_kernel_table *(*moert_kernel_query_function)(void);
#define MOERT_KERNEL_QUERY_NAME "moert_kernel_query_v1"

#ifdef __cplusplus
}
#endif
#endif
