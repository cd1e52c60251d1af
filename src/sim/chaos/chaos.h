/* chaos.h - the real core and the real nodes in a world where everything fails */
#ifndef SIM_CHAOS_CHAOS_H
#define SIM_CHAOS_CHAOS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What can go wrong. Each has its own stream of random numbers, so that turning one
 * off leaves the others as they were for as long as nothing depends on it. */
enum chaos_class {
	CHAOS_LOSS,       /* messages are lost */
	CHAOS_REPEAT,     /* messages come twice */
	CHAOS_DELAY,      /* messages come late, and so in another order */
	CHAOS_CRASH,      /* agents are killed between any two things that they do */
	CHAOS_HANG,       /* agents do nothing for a while, perhaps until given up */
	CHAOS_POWER,      /* nodes vanish with all that runs, and come back later */
	CHAOS_GIVE_UP,    /* an administrator declares a node dead, or removes it */
	CHAOS_DRAIN,      /* nodes are drained and resumed */
	CHAOS_STRANGER,   /* processes of strangers use memory */
	CHAOS_LATE,       /* memory comes back late, or not at all */
	CHAOS_MEASURE,    /* measurements fail, or are wrong for a while */
	CHAOS_OVERUSE,    /* work uses more memory than it reserved */
	CHAOS_HARDWARE,   /* GPUs are hot, ill, or not there for a while */
	CHAOS_CLOCK,      /* the scheduler's wall clock jumps */
	CHAOS_KILL,       /* the scheduler is killed between deciding, storing and telling */
	CHAOS_SECOND,     /* another takes over from a scheduler that does not know it */
	CHAOS_IMPATIENCE, /* people cancel, requeue, hold and release */
	CHAOS_LIE,        /* a node reports on what others have */
	CHAOS_SUSPEND,    /* moving GPU memory is refused, or destroys the task */
	CHAOS_CLASSES,
};
/* "loss", ... */
extern const char *const chaos_class_names[CHAOS_CLASSES];

struct chaos_options {
	uint64_t seed;
	int64_t steps;    /* with faults; then there are none until all is done */
	uint32_t without; /* 1 << class: faults of that class are left out */
	bool verbose;     /* what happens, on stderr */
};

#define CHAOS_LAST 40
#define CHAOS_LINE 240

/* Written while it runs, so that it says how far it came even if the program ends
 * itself. `invariant` is empty while none is broken. */
struct chaos_result {
	int64_t step, now_ms;
	int64_t nodes, gpus, jobs, starts, ends, releases, requests, crashes, takeovers, lost;
	int64_t moves, moves_lost; /* of GPU memory to host memory, or back */
	uint64_t digest;           /* of all events: equal for equal runs */
	char invariant[24], message[400];
	char last[CHAOS_LAST][CHAOS_LINE]; /* a ring: the next is at last_count % CHAOS_LAST */
	int64_t last_count;
};

/* One run, in this process: a ledger that contradicts itself aborts it. */
void chaos_run(const struct chaos_options *options, struct chaos_result *result);

/* A world, with its own classes of faults. */
struct chaos_kind {
	const char *option; /* by which it is chosen, after a space; "" : the usual one */
	const char *const *classes;
	int class_count;
	void (*run)(const struct chaos_options *options, struct chaos_result *result);
};

/* gpu-sim chaos: returns the exit status, 0 if all seeds passed. The second kind is that of
 * --kubernetes. */
int chaos_main(int argc, char **argv, const struct chaos_kind kinds[2]);

#endif
