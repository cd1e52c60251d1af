/* foretell.h - how well the core predicts the run times of a trace */
#ifndef SIM_TRACE_FORETELL_H
#define SIM_TRACE_FORETELL_H

#include "core/predict/learner.h"
#include "sim/trace/history.h"

/* Ages at which the rest of a job is predicted. */
enum { FORETELL_AGES = 4 };
extern const int64_t foretell_ages_s[FORETELL_AGES];

/* Scores of jobs that ran for longer than an age. */
struct foretell_rest {
	int64_t jobs;
	double in2x;                 /* share whose rest was within a factor of two of its median */
	double soon_said, soon_seen; /* mean chance to end within ten minutes; share that did */
	double soon_auc; /* chance that one that did was given the higher chance; -1: no such pair
	                  */
};

/* Scores of a trace; shares from 0 to 1. Errors are log2(actual / predicted). */
struct foretell_scores {
	int64_t jobs;        /* scored: all but the first tenth */
	double in2x;         /* share within a factor of two of the median */
	double pin50, pin90; /* mean pinball loss of the median and of the 90th percentile */
	double cov90;        /* share that ended by the 90th percentile */
	struct foretell_rest rest[FORETELL_AGES];
	int64_t experts;             /* at the end */
	double predict_us, learn_us; /* mean time of a call */
};

/* Experts at the most, and jobs that are learned from at the least once as many have ended. */
struct foretell_bounds {
	int64_t experts, jobs;
};

/* Goes through the trace as it happened: every job is predicted when it is submitted,
 * from those that had ended by then, and learned from when it ends. What the
 * learner knows already it keeps. `scores` may be NULL. */
void foretell_run(struct learner *learner, const struct foretell_bounds *bounds,
                  const struct history *history, struct foretell_scores *scores);

#endif
