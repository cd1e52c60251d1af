/* workload.h - random commands for a real core, with nodes that behave */
#ifndef STORE_TEST_WORKLOAD_H
#define STORE_TEST_WORKLOAD_H

#include "core/sched.h"
#include "store/store.h"

/* A core, and what its nodes run. The same seed gives the same commands. */
#define WORKLOAD_RUNNING_MAX 256
struct workload {
	struct sched *sched;
	struct effects effects; /* of the last command */
	struct command command; /* the last one */
	uint64_t seed;
	int64_t now_ms, steps;
	int64_t held[WORKLOAD_RUNNING_MAX], running[WORKLOAD_RUNNING_MAX],
	    stopping[WORKLOAD_RUNNING_MAX];
	int held_count, running_count, stopping_count;
	int64_t loading; /* the slot that a node was told to load last; 0: none */
	int64_t last_job_id;
	char name[64], key[64];
};

/* Takes a core that it frees; new or loaded. */
void workload_init(struct workload *workload, struct sched *sched, uint64_t seed);
void workload_free(struct workload *workload);
/* Applies the next command; tries until one is not refused. */
void workload_step(struct workload *workload);

/* What a store should hold: the encodings of all records, by kind and key. */
struct mirror;
struct mirror *mirror_new(void);
void mirror_apply(struct mirror *mirror, const struct effects *effects);
void mirror_free(struct mirror *mirror);
/* Compares with what is stored, archived or not; NULL where it is the same, else
 * what differs, valid until the next call. */
const char *mirror_differs(struct mirror *mirror, struct store *store);

#endif
