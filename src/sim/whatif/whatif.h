/* whatif.h - the core of a live scheduler run forward: when would this start, what would change */
#ifndef SIM_WHATIF_WHATIF_H
#define SIM_WHATIF_WHATIF_H

#include <jansson.h>

#include "base/memory.h"
#include "core/record/command.h"

/* Nodes that are not there yet: `count` with `gpus` GPUs each. */
struct whatif_nodes {
	int64_t count, gpus, memory_mib;
	char model[64];
};
/* "2x8xH100:80G": two nodes with eight GPUs of 80 GiB each. False with a reason. */
bool whatif_read_nodes(const char *text, struct whatif_nodes *nodes, struct error *error);

/* A job that is not submitted yet, and how long it takes (0: as the core expects). */
struct whatif_job {
	char tenant[64]; /* empty: the first there is */
	struct submit_command submit;
	int64_t duration_ms;
	struct arena arena; /* where its texts are */
};
/* "gpus=4,memory_gib=20,tasks=2,tenant=lab", or the same as a JSON object. False with
 * a reason. Freed with arena_free, in any case. */
bool whatif_read_job(const char *text, struct whatif_job *job, struct error *error);

struct whatif_options {
	const char *state;  /* a backup, or the database of a scheduler (not written to) */
	int64_t unknown_ms; /* what a job takes of which nobody knows */
	int64_t horizon_ms; /* how far to look */
	const struct whatif_job *job; /* NULL: none is submitted */
	/* Told how much more of the horizon has passed, in ms: all of it by the end. NULL:
	 * nobody wants to know. */
	void (*tick)(void *context, int64_t ms);
	void *context;
};

struct whatif_result {
	int64_t now_ms;                        /* the snapshot's */
	int64_t nodes, gpus, running, waiting; /* then; waiting jobs that are not held */
	int64_t started;                       /* of the waiting jobs, within the horizon */
	int64_t wait_ms;                       /* their average wait from now on */
	int64_t guessed;                       /* jobs of which nobody knows how long they take */
	int64_t start_ms;                      /* the job's; -1: not within the horizon */
	char where[256];                       /* the nodes that it starts on */
	char refusal[256];                     /* why it is not taken in; empty: it is */
	char reason[1024];                     /* start_ms -1: what it waits for */
};

/* Loads what is stored, adds the nodes (NULL: none) and the job, and lets time pass:
 * what runs ends as expected, what is ordered starts at once. False with a reason
 * if the state cannot be read. */
bool whatif_run(const struct whatif_options *options, const struct whatif_nodes *nodes,
                struct whatif_result *result, struct error *error);

/* gpu-sim whatif: returns the exit status. */
int whatif_main(int argc, char **argv);

#endif
