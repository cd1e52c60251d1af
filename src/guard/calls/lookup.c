/* lookup.c - stands in for dlsym and dlvsym, so that a look-up by name finds the guard
 *
 * What dlsym answers can depend on who asks (RTLD_NEXT), which it sees from where it
 * will return to. So for every name but ours these functions do not call the real
 * one, they jump to it, with everything as they found it: that takes a few lines
 * in the machine's own language. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "guard/calls/entry.h"
#include "guard/calls/state.h"
#include "guard/calls/symbol.h"

/* `decided`: `address` is the answer. Otherwise the real function, of which
 * `address` is the place, is to answer. Returned in two registers. */
struct lookup_answer {
	void *address;
	uintptr_t decided;
};

__attribute__((visibility("hidden"))) struct lookup_answer lookup_dlsym(void *handle,
                                                                        const char *name);
__attribute__((visibility("hidden"))) struct lookup_answer lookup_dlvsym(void *handle,
                                                                         const char *name,
                                                                         const char *version);

static void *find_real(_Atomic(void *) *kept, const char *name)
{
	void *address = atomic_load_explicit(kept, memory_order_relaxed);
	if (address == NULL) {
		address = symbol_find("libc.so.6", name, NULL);
		/* Until glibc 2.34. */
		if (address == NULL)
			address = symbol_find("libdl.so.2", name, NULL);
		atomic_store_explicit(kept, address, memory_order_relaxed);
	}
	return address;
}

static bool may_be_ours(const char *name)
{
	return name != NULL &&
	       ((name[0] == 'c' && name[1] == 'u') || strncmp(name, "nvml", 4) == 0) &&
	       entry_is_wrapped(name);
}

struct lookup_answer lookup_dlsym(void *handle, const char *name)
{
	static _Atomic(void *) kept;
	struct lookup_answer answer = { .address = find_real(&kept, "dlsym") };
	if (answer.address == NULL)
		answer.decided = 1;
	else if (may_be_ours(name)) {
		void *(*look_up)(void *, const char *);
		memcpy(&look_up, &answer.address, sizeof look_up);
		void *real = look_up(handle, name);
		if (real != NULL)
			answer = (struct lookup_answer){ entry_for_symbol(name, real), 1 };
	}
	return answer;
}

struct lookup_answer lookup_dlvsym(void *handle, const char *name, const char *version)
{
	static _Atomic(void *) kept;
	struct lookup_answer answer = { .address = find_real(&kept, "dlvsym") };
	if (answer.address == NULL)
		answer.decided = 1;
	else if (may_be_ours(name)) {
		void *(*look_up)(void *, const char *, const char *);
		memcpy(&look_up, &answer.address, sizeof look_up);
		void *real = look_up(handle, name, version);
		if (real != NULL)
			answer = (struct lookup_answer){ entry_for_symbol(name, real), 1 };
	}
	return answer;
}

#if defined(__x86_64__)
#define STAND_IN(name, decide)                                                                     \
	__asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ", @function\n" #name ":\n"    \
	        "endbr64\n"                                                                        \
	        "push %rdi\npush %rsi\npush %rdx\n"                                                \
	        "call " #decide "\n"                                                               \
	        "mov %rdx, %rcx\n"                                                                 \
	        "pop %rdx\npop %rsi\npop %rdi\n"                                                   \
	        "test %rcx, %rcx\njne 1f\n"                                                        \
	        "jmp *%rax\n"                                                                      \
	        "1: ret\n.size " #name ", . - " #name "\n")
/* The answer has the flags beside the address. */
#define STAND_IN_FLAGS(name, decide)                                                               \
	__asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ", @function\n" #name ":\n"    \
	        "endbr64\n"                                                                        \
	        "push %rdi\npush %rsi\npush %rdx\n"                                                \
	        "call " #decide "\n"                                                               \
	        "mov %rdx, %rcx\n"                                                                 \
	        "pop %rdx\npop %rsi\npop %rdi\n"                                                   \
	        "mov %ecx, %esi\n"                                                                 \
	        "jmp *%rax\n"                                                                      \
	        ".size " #name ", . - " #name "\n")
#elif defined(__aarch64__)
#define STAND_IN_FLAGS(name, decide)                                                               \
	__asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ", %function\n" #name ":\n"    \
	        "stp x29, x30, [sp, #-32]!\nmov x29, sp\n"                                         \
	        "str x0, [sp, #16]\n"                                                              \
	        "bl " #decide "\n"                                                                 \
	        "mov x16, x0\n"                                                                    \
	        "ldr x0, [sp, #16]\nldp x29, x30, [sp], #32\n"                                     \
	        "br x16\n"                                                                         \
	        ".size " #name ", . - " #name "\n")
#define STAND_IN(name, decide)                                                                     \
	__asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ", %function\n" #name ":\n"    \
	        "stp x29, x30, [sp, #-48]!\nmov x29, sp\n"                                         \
	        "stp x0, x1, [sp, #16]\nstr x2, [sp, #32]\n"                                       \
	        "bl " #decide "\n"                                                                 \
	        "cbnz x1, 1f\n"                                                                    \
	        "mov x16, x0\n"                                                                    \
	        "ldp x0, x1, [sp, #16]\nldr x2, [sp, #32]\nldp x29, x30, [sp], #48\n"              \
	        "br x16\n"                                                                         \
	        "1: ldp x29, x30, [sp], #48\nret\n.size " #name ", . - " #name "\n")
#else
#error "lookup.c knows x86-64 and aarch64 only"
#endif

/* A library that is loaded with RTLD_DEEPBIND and linked to the driver would find the driver before
 * the guard: the flag is taken away. */
__attribute__((visibility("hidden"))) struct lookup_answer lookup_dlopen(const char *file,
                                                                         int flags);
struct lookup_answer lookup_dlopen(const char *file, int flags)
{
	static _Atomic(void *) kept;
	(void)file;
	if (state_active())
		flags &= ~RTLD_DEEPBIND;
	return (struct lookup_answer){ find_real(&kept, "dlopen"), (uintptr_t)(unsigned int)flags };
}

/* As a library of CUDA or linked to it in a namespace of its own would find a driver that the
 * guard is not in, it is loaded into the program's. */
static bool has_cuda(void *handle)
{
	static _Atomic(void *) kept;
	struct link_map *map = NULL;
	int (*inform)(void *, int, void *);
	void *found = find_real(&kept, "dlinfo");
	memcpy(&inform, &found, sizeof inform);
	if (found == NULL || inform(handle, RTLD_DI_LINKMAP, &map) != 0)
		return false;
	while (map != NULL && map->l_prev != NULL)
		map = map->l_prev;
	for (; map != NULL; map = map->l_next) {
		if (strstr(map->l_name, "libcuda") != NULL)
			return true;
	}
	return false;
}

__attribute__((visibility("default"))) void *dlmopen(Lmid_t namespace_id, const char *file,
                                                     int flags)
{
	static _Atomic(void *) kept[3];
	void *(*load_apart)(Lmid_t, const char *, int);
	void *(*load)(const char *, int);
	int (*unload)(void *);
	void *found[] = { find_real(&kept[0], "dlmopen"), find_real(&kept[1], "dlopen"),
		          find_real(&kept[2], "dlclose") };
	if (found[0] == NULL || found[1] == NULL || found[2] == NULL)
		return NULL;
	memcpy(&load_apart, &found[0], sizeof load_apart);
	memcpy(&load, &found[1], sizeof load);
	memcpy(&unload, &found[2], sizeof unload);
	if (namespace_id == LM_ID_BASE || !state_active())
		return load_apart(namespace_id, file, flags);
	if (file != NULL && strstr(file, "libcuda") != NULL)
		return load(file, flags & ~RTLD_DEEPBIND);
	void *handle = load_apart(namespace_id, file, flags);
	if (handle == NULL || !has_cuda(handle))
		return handle;
	unload(handle);
	return load(file, flags & ~RTLD_DEEPBIND);
}

STAND_IN(dlsym, lookup_dlsym);
STAND_IN(dlvsym, lookup_dlvsym);
STAND_IN_FLAGS(dlopen, lookup_dlopen);
