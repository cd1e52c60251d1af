/* entry.h - each function of the driver that matters: ours, and the real one */
#ifndef GUARD_CALLS_ENTRY_H
#define GUARD_CALLS_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guard/calls/driver_abi.h"
#include "guard/calls/entries.h"

#define ENTRY_NUMBER(symbol, ...) ENTRY_##symbol,
enum entry_number {
	ENTRIES_CUDA(ENTRY_NUMBER) ENTRIES_NVML(ENTRY_NUMBER) ENTRIES_CUDA_ASKED(ENTRY_NUMBER)
	    ENTRIES_NVML_ASKED(ENTRY_NUMBER) ENTRY_COUNT,
};
#undef ENTRY_NUMBER

/* The driver's own function, or NULL if the loaded driver does not have it. */
void *entry_real(enum entry_number number);

/* The driver's function with its type, as in `if (REAL(cuMemFree_v2) != NULL)`. */
#define REAL(symbol) ((__typeof__(&(symbol)))entry_real(ENTRY_##symbol))

/* Calls the driver's own function, or gives `missing` where there is none. */
#define CALL_OR(missing, symbol, ...) (REAL(symbol) != NULL ? REAL(symbol)(__VA_ARGS__) : (missing))
#define CALL(symbol, ...) CALL_OR(CUDA_ERROR_NOT_SUPPORTED, symbol, __VA_ARGS__)

/* True if the guard stands in for the function of that name. */
bool entry_is_wrapped(const char *symbol);

/* What a look-up of `symbol` by name is given, when the driver's own answer would be
 * `real`: our function if the guard stands in for it and has something to guard,
 * otherwise `real`. NULL for a name of ours that no loaded driver has. */
void *entry_for_symbol(const char *symbol, void *real);

/* Our function for cuGetProcAddress, which looks functions up by name and version. */
void *entry_for_name(const char *name, int version, uint64_t flags, void *real);

#endif
