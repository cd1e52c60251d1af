/* value.h - values as Slurm's users write them */
#ifndef SLURM_VALUE_H
#define SLURM_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

/* A time limit: minutes, minutes:seconds, hours:minutes:seconds, days-hours,
 * days-hours:minutes or days-hours:minutes:seconds. 0 means UNLIMITED, or INFINITE. `name` is
 * the option, for the reason. */
bool slurm_time(const char *name, const char *text, int64_t *seconds, struct error *error);

/* Memory: a number of MiB, or with K, M, G or T behind it. Rounded up to MiB. */
bool slurm_memory(const char *name, const char *text, int64_t *mib, struct error *error);

/* A whole number from `least` to `most`. */
bool slurm_number(const char *name, const char *text, int64_t least, int64_t most, int64_t *number,
                  struct error *error);

/* GPUs: a number, or type:number as in --gpus=a100:2; `*type` is then a piece of `text`. */
struct slurm_gpus {
	const char *type; /* NULL: any */
	int type_length;
	int64_t count;
};
bool slurm_gpus(const char *name, const char *text, struct slurm_gpus *gpus, struct error *error);

/* Generic resources: gpu, gpu:2, gpu:a100:2. Only GPUs are known; 'none' is none. */
bool slurm_gres(const char *name, const char *text, struct slurm_gpus *gpus, struct error *error);

/* When a job may start, as an absolute time in milliseconds: now, now+1hour, HH:MM[:SS],
 * midnight, noon, today, tomorrow, MMDD, MM/DD/YY, YYYY-MM-DD[THH:MM[:SS]], in local time. */
bool slurm_moment(const char *name, const char *text, int64_t now_ms, int64_t *moment_ms,
                  struct error *error);

/* Elapsed seconds as Slurm prints them: 00:05:09 or 1-02:03:04 with `hours`, else 5:09. */
void slurm_print_elapsed(struct buffer *to, int64_t seconds, bool hours);

#endif
