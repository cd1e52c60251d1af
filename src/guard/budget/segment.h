/* segment.h - what the processes of a task and the agent share: one file, mapped */
#ifndef GUARD_BUDGET_SEGMENT_H
#define GUARD_BUDGET_SEGMENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEGMENT_MAGIC UINT64_C(0x6472617567757067) /* "gpuguard" */
#define SEGMENT_NO_LIMIT INT64_MAX

enum {
	SEGMENT_VERSION = 3,
	SEGMENT_GPUS_MAX = 32,
	SEGMENT_PROCESSES_MAX = 512,
	SEGMENT_SHARES_MAX = 1024,
	SEGMENT_HEIRS_MAX = 512,
	SEGMENT_FIRST_PLACE = 1, /* 0 is nobody's */
};

/* The budget of the task on one GPU. Bytes are never negative. While the lock is
 * free, `used_bytes` is the sum over all processes of what they have charged and
 * of their overhead. It may exceed the limit, because overhead is measured and
 * limits may be lowered; then nothing more is granted. */
struct segment_gpu {
	uint8_t uuid[16];
	_Atomic(int64_t) limit_bytes; /* SEGMENT_NO_LIMIT: all there is */
	_Atomic(int64_t) used_bytes;
	_Atomic(int64_t) peak_bytes;         /* the largest `used_bytes` ever */
	_Atomic(int64_t) context_bytes;      /* what a context is expected to take */
	_Atomic(int64_t) context_known;      /* 1: that was measured, and not only expected */
	_Atomic(int64_t) refusals;           /* how many requests were refused */
	_Atomic(int64_t) last_refused_bytes; /* how much the last of them was for */
	/* Requests within the limit for which the GPU had no memory left. */
	_Atomic(int64_t) failures;
	_Atomic(int64_t) last_failed_bytes;
	_Atomic(int64_t) last_failed_ms; /* since the machine started */
};

/* One process that uses a GPU. `owner` is 0 in a free place, otherwise who it is
 * (process.h); the other members belong to it. */
struct segment_process {
	_Atomic(uint64_t) owner;
	_Atomic(uint64_t) namespace_id; /* of its process id; 0: not known */
	_Atomic(uint64_t) gone_owner;   /* if it is `owner`: the agent says that it is gone */
	_Atomic(int64_t) imports; /* how much it holds of other processes' memory, by number */
	_Atomic(int64_t) charged_bytes[SEGMENT_GPUS_MAX];
	/* Of these: what NVML gives to no process. Managed memory, and memory that only a file
	 * descriptor still holds. */
	_Atomic(int64_t) hidden_bytes[SEGMENT_GPUS_MAX];
	_Atomic(int64_t) overhead_bytes[SEGMENT_GPUS_MAX];
	_Atomic(int64_t) told_bytes[SEGMENT_GPUS_MAX]; /* overhead by the agent, plus 1; 0: not told
	                                                */
};

/* Memory that processes of the task share: it is charged once, to `bearer`, and
 * stays charged while anybody holds it. Free while `holders` is empty. */
struct segment_share {
	uint64_t key; /* equal for the same memory */
	int64_t bytes;
	uint32_t gpu;
	uint32_t bearer; /* a process, one of the holders */
	uint64_t holders[SEGMENT_PROCESSES_MAX / 64];
};

/* A process that another forked which used a GPU: it has the same descriptors of the driver open,
 * so that the other's memory stays until both have ended or closed them. */
struct segment_heir {
	_Atomic(uint64_t) owner; /* 0: free */
	_Atomic(uint64_t) of;    /* the owner whose descriptors it has */
};

/* The whole file. A process that changes anything but `lock` and its own place holds
 * the lock (lock.h). The agent never does, and never maps the file (watch.h): it writes
 * limits, `gone_owner`, `told_bytes` and then `told`, which processes look at.
 * Every process of the task can write all of it: this keeps well-meaning programs
 * apart, and the agent's measurements the others. */
struct segment {
	uint64_t magic;
	uint32_t version;
	uint32_t size_bytes;
	_Atomic(uint32_t) lock;    /* 0: free; otherwise the holder's place + 1 */
	_Atomic(uint32_t) waiters; /* how many sleep until it is free */
	_Atomic(uint32_t) gpu_count;
	_Atomic(uint32_t) process_end;       /* no place from here on was ever taken */
	_Atomic(uint32_t) told;              /* grows when the agent has told something */
	_Atomic(uint32_t) told_seen;         /* up to where that is in the totals */
	_Atomic(int64_t) others_limit_bytes; /* on GPUs that are not listed: 0, no memory at all */
	_Atomic(int64_t) others_context_bytes; /* what a context there is expected to take */
	struct segment_gpu gpus[SEGMENT_GPUS_MAX];
	struct segment_process processes[SEGMENT_PROCESSES_MAX];
	struct segment_share shares[SEGMENT_SHARES_MAX];
	struct segment_heir heirs[SEGMENT_HEIRS_MAX];
};

/* Makes zeroed memory an empty segment: no GPU listed, no memory on others. */
void segment_init(struct segment *segment);

/* Maps the segment in a file, shared and writable; NULL if there is none that this
 * version understands. Never unmapped by the guard: a process ends with it. */
struct segment *segment_open(const char *path);

/* The number of GPUs listed, and of places ever taken: within their bounds, even
 * where another process has written nonsense. */
uint32_t segment_gpu_count(const struct segment *segment);
uint32_t segment_process_end(const struct segment *segment);

/* Reads and sets that need no order among themselves: the lock gives that. */
static inline int64_t segment_get(const _Atomic(int64_t) *value)
{
	return atomic_load_explicit(value, memory_order_relaxed);
}
static inline void segment_set(_Atomic(int64_t) *value, int64_t to)
{
	atomic_store_explicit(value, to, memory_order_relaxed);
}

#endif
