/* kernel.h - memory that kernels need by themselves */
#ifndef GUARD_CALLS_KERNEL_H
#define GUARD_CALLS_KERNEL_H

#include <stdint.h>

/* How many threads the current device can have at once, each of which has a stack; 0: not known. */
int64_t kernel_threads(void);

/* The last context on a GPU has ended, in which kernels were known. */
void kernel_forget(int gpu);

#endif
