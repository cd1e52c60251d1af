/* entry.c - each function of the driver that matters: ours, and the real one */
#include "guard/calls/entry.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "guard/calls/state.h"
#include "guard/calls/symbol.h"

#define CUDA_LIBRARY "libcuda.so.1"
#define NVML_LIBRARY "libnvidia-ml.so.1"

struct entry {
	const char *symbol;
	const char *library;
	const char *name; /* NULL: the guard does not stand in for it */
	void *ours;
	int version;
	bool per_thread;
};

#define CUDA_ENTRY(symbol, name, version, per_thread)                                              \
	{ #symbol, CUDA_LIBRARY, #name, (void *)(symbol), version, per_thread },
#define NVML_ENTRY(symbol, name, version, per_thread)                                              \
	{ #symbol, NVML_LIBRARY, #name, (void *)(symbol), version, per_thread },
#define CUDA_ASKED(symbol) { #symbol, CUDA_LIBRARY, NULL, NULL, 0, false },
#define NVML_ASKED(symbol) { #symbol, NVML_LIBRARY, NULL, NULL, 0, false },
static const struct entry entries[ENTRY_COUNT] = { ENTRIES_CUDA(CUDA_ENTRY) ENTRIES_NVML(
    NVML_ENTRY) ENTRIES_CUDA_ASKED(CUDA_ASKED) ENTRIES_NVML_ASKED(NVML_ASKED) };

/* The driver's functions as far as they were looked for; and how many libraries had
 * been loaded when one was last not found. */
static struct {
	_Atomic(void *) address;
	_Atomic(unsigned long long) missing_after_loads;
} real_functions[ENTRY_COUNT];

/* A library that is closed and loaded again would be elsewhere: see to it that
 * this one stays. Whether that works makes no difference to most programs. */
static void keep_loaded(const char *path)
{
	static _Atomic(void *) found_dlopen;
	void *(*open_library)(const char *, int) = NULL;
	void *address = atomic_load(&found_dlopen);
	if (address == NULL) {
		address = symbol_find("libc.so.6", "dlopen", NULL);
		if (address == NULL)
			address = symbol_find("libdl.so.2", "dlopen", NULL);
		atomic_store(&found_dlopen, address);
	}
	memcpy(&open_library, &address, sizeof open_library);
	if (open_library != NULL && path[0] != '\0')
		open_library(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

static void *entry_look_up(enum entry_number number)
{
	unsigned long long loads = symbol_loads();
	if (loads == atomic_load(&real_functions[number].missing_after_loads))
		return NULL;
	struct symbol_library library;
	void *address = symbol_find(entries[number].library, entries[number].symbol, &library);
	if (address == NULL) {
		atomic_store(&real_functions[number].missing_after_loads, loads);
		return NULL;
	}
	static _Atomic(bool) kept[2];
	if (!atomic_exchange(&kept[strcmp(entries[number].library, NVML_LIBRARY) == 0], true))
		keep_loaded(library.path);
	atomic_store_explicit(&real_functions[number].address, address, memory_order_release);
	return address;
}

void *entry_real(enum entry_number number)
{
	void *address = atomic_load_explicit(&real_functions[number].address, memory_order_acquire);
	return address != NULL ? address : entry_look_up(number);
}

bool entry_is_wrapped(const char *symbol)
{
	for (int i = 0; i < ENTRY_COUNT && entries[i].ours != NULL; i++) {
		if (strcmp(entries[i].symbol, symbol) == 0)
			return true;
	}
	return false;
}

void *entry_for_symbol(const char *symbol, void *real)
{
	for (int i = 0; i < ENTRY_COUNT && entries[i].ours != NULL; i++) {
		if (strcmp(entries[i].symbol, symbol) != 0)
			continue;
		if (real == entries[i].ours)
			return entry_real((enum entry_number)i) != NULL ? real : NULL;
		if (!state_active())
			return real;
		/* A driver that does not call itself what we expect. */
		if (entry_real((enum entry_number)i) == NULL)
			atomic_store(&real_functions[i].address, real);
		return entries[i].ours;
	}
	return real;
}

/* True if cuGetProcAddress may mean that entry by a name: the function's, or that of
 * one of its versions. */
static bool entry_is_named(const struct entry *entry, const char *name)
{
	return strcmp(entry->name, name) == 0 || strcmp(entry->symbol, name) == 0;
}

/* The latest version of the function that a program of that version gets. */
static int find_by_name(const char *name, int version, bool per_thread)
{
	int best = -1;
	for (int i = 0; i < ENTRY_COUNT && entries[i].ours != NULL; i++) {
		if (!entry_is_named(&entries[i], name))
			continue;
		/* The first version is called what all of them are. */
		if (strcmp(entries[i].name, name) != 0)
			return i;
		if (entries[i].version > version || (entries[i].per_thread && !per_thread))
			continue;
		if (best < 0 || entries[i].version > entries[best].version ||
		    entries[i].per_thread > entries[best].per_thread)
			best = i;
	}
	return best;
}

void *entry_for_name(const char *name, int version, uint64_t flags, void *real)
{
	/* Only among those of that name: drivers have one address for many functions that
	 * they do not support any more. */
	for (int i = 0; i < ENTRY_COUNT && entries[i].ours != NULL; i++) {
		if (entry_is_named(&entries[i], name) &&
		    (entries[i].ours == real || entry_real((enum entry_number)i) == real))
			return entries[i].ours;
	}
	/* What the driver gave is not what it exports under that name. */
	bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
	int found = find_by_name(name, version, per_thread);
	if (found < 0)
		return real;
	if (entry_real((enum entry_number)found) == NULL)
		atomic_store(&real_functions[found].address, real);
	return entries[found].ours;
}
