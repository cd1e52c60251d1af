/* guard.h - libgpuguard.so: a hard limit of GPU memory for each task
 *
 * The library is preloaded (LD_PRELOAD) into every process of a task and intercepts
 * its calls of the CUDA driver: it has functions of the same names (entries.h), which a
 * program finds before the driver's, however it looks for them. Allocations beyond the task's
 * budget are refused with the driver's own CUDA_ERROR_OUT_OF_MEMORY.
 * Budgets are per GPU, by UUID, and shared by all processes of the task through a
 * segment (segment.h). What to do about processes without a guard is the agent's
 * policy, and no variable of the environment, which a task could change.
 *
 * The path of a call: a look-up by name finds our function (lookup.c, proc_address.c,
 * entry.h) -> which GPU (device.h) -> charge it (charge.h) to the task's budget
 * (budget.h, under lock.h) -> the driver's own function (symbol.h) -> remember the
 * handle (track.h). alloc.c, pool_calls.c, physical.c, array.c, import.c, graph.c,
 * context.c and info.c are the functions themselves.
 *
 * It lives in strangers' programs: it has no output, never ends the program, exports
 * nothing but what it stands in for, allocates no memory by malloc, needs nothing but
 * a C library (glibc 2.17 or later), and takes no lock on the way of a kernel launch.
 *
 * What it does not know, and the agent's measurements have to catch:
 * - Programs that it is not in: static ones, setuid ones, those that were started by a
 *   system call of their parent's own without LD_PRELOAD (exec.c puts it back elsewhere), and
 *   whatever is in a container that has not got the library. They have no place in the segment
 *   (watch_is_guarded).
 * - A program that wants to get round it: by its own system calls on the device
 *   files, by the driver's private tables (cuGetExportTable), by finding libc's dlsym
 *   in another way than by name, by writing into the segment.
 * - Memory taken by OpenGL, Vulkan, OptiX's and video's own interfaces, until CUDA
 *   imports it or NVML shows it.
 * - Contexts, modules and libraries' workspaces that come with them: measured with NVML
 *   when a context or a module is made, every two seconds with the next allocation, and
 *   sooner when much was allocated; outside of containers, in which the agent measures.
 *   Until then they are not counted. Kernels' local memory (when it is much), and printf and
 *   malloc heaps on the device are charged when the program asks for them.
 * - The driver's rounding: allocations count in pages of 2 MiB, and by 512 bytes
 *   below 1 MiB, whose pages the driver keeps until the last piece is freed.
 * - Green contexts, and pools that another process exports: measured, or counted where
 *   they are from.
 * - Memory imported by file descriptors: two pieces of the same size on the same GPU
 *   cannot be told apart, so that one that several processes of the task import counts
 *   once, and two of the same size in one process count twice.
 * - Memory of another task that is imported counts in both.
 * - Managed variables of modules count when the program asks where they are.
 * - Managed memory counts in full, on the GPU that was current, wherever it is.
 * - What cuMemMapArrayAsync maps into sparse arrays counts as long as its handle does.
 */
#ifndef GUARD_GUARD_H
#define GUARD_GUARD_H

/* The file of the task's segment, which its agent has made and given limits (watch.h). */
#define GUARD_SEGMENT_VARIABLE "GPU_GUARD_SEGMENT"

/* The task's limits as text (limits.h). They count only where the segment cannot be used,
 * as in a container that has not got the file: then each program that is started, with
 * its forked children, has a budget of its own, and the agent sees that it is not
 * registered. Without either variable the guard lets everything through. */
#define GUARD_LIMITS_VARIABLE "GPU_GUARD_LIMITS"

#endif
