/* asked.h - what a user asks of sbatch, srun and salloc: the options, from three sources
 *
 * The command line goes before the environment (SBATCH_TIMELIMIT, ...), that before the #SBATCH
 * lines of the script. */
#ifndef SLURM_ASKED_H
#define SLURM_ASKED_H

#include "base/options.h"

/* The options that describe a job; their help says what becomes of each. */
extern const struct option slurm_job_options[];

enum { SLURM_SOURCES = 2 };

struct slurm_asked {
	const struct arguments *sources[SLURM_SOURCES]; /* the first one goes before; NULL: none */
	const char *environment;                        /* "SBATCH_", "SLURM_" or NULL */
};

/* The value of an option by its long name; NULL: not given. Of one that is given twice, the last,
 * as with Slurm. */
const char *slurm_value(const struct slurm_asked *asked, const char *name);
bool slurm_has(const struct slurm_asked *asked, const char *name);

/* True if an option of the table, or one of `more`, takes a value. */
bool slurm_takes_value(const struct option *more, const char *option);

/* The sentence for an option that Slurm has and that cannot be honored here: what to use. NULL: it
 * is honored, or may be ignored. */
const char *slurm_refusal(const char *name);
/* True for an option that is accepted and has no effect. */
bool slurm_is_ignored(const char *name);

#endif
