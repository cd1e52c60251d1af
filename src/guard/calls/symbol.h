/* symbol.h - finds functions in libraries that are loaded, without dlsym
 *
 * The guard stands in for dlsym and its names are found first, so it looks into the
 * libraries' own tables to find what it stands in for. */
#ifndef GUARD_CALLS_SYMBOL_H
#define GUARD_CALLS_SYMBOL_H

#include <stddef.h>

/* A loaded library by the name that it gives itself ("libcuda.so.1"). */
struct symbol_library {
	char path[512]; /* empty if the library is not loaded */
};

/* The function of that name in the library of that name, NULL if there is none. Of
 * several versions, the one that is the default. With `library`, also says where
 * the library is. */
void *symbol_find(const char *library_name, const char *name, struct symbol_library *library);

/* The objects that are loaded change: how often one was added, for those who
 * remember that something was not there. */
unsigned long long symbol_loads(void);

#endif
