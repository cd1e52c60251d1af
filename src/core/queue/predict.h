/* predict.h - how long a job will take, learned from those that were like it */
#ifndef CORE_QUEUE_PREDICT_H
#define CORE_QUEUE_PREDICT_H

#include "base/map.h"
#include "core/predict/mixture.h"
#include "core/record/record.h"

struct effects;
struct job;
struct sched;

/* Ties the mixture of core/predict to jobs and records. Expectations are for
 * promised starts, backfill and the choice between waiting and preempting;
 * nothing that is about safety may use them.
 *
 * `guesses` has what was said at submission for each job that is not over and
 * that has a record of it; elements of an array share one. */
struct predictor {
	struct mixture mixture;
	struct map guesses; /* id -> struct kept_guess * (see predict.c) */
};

struct prediction {
	int64_t expected_ms; /* the median; 0: unknown */
	int64_t p90_ms;      /* 0: unknown */
	int64_t confidence;  /* thousandths: 0 knows nothing, 1000 always came true */
	int64_t samples;     /* jobs that it is based on */
	const char *basis;   /* "user and name", ...: for people */
};

void predictor_init(struct predictor *predictor);
void predictor_free(struct predictor *predictor);

/* What jobs are compared by. The tenant stands for the user where there is none. */
struct traits predict_traits(const struct job_record *job);

/* What is expected of a job, as of now. Without any experience, its
 * max_runtime_ms at a low confidence; never above max_runtime_ms. */
struct prediction predict_job(const struct sched *sched, const struct job *job);
/* What is left of a running job: its lifetime, given what is known by now. */
struct lifetime predict_lifetime(const struct sched *sched, const struct job *job);

/* The job was submitted: sets what is expected of it and keeps what the experts
 * said. `shared`: it is an element of an array whose first one has done so. */
void predict_submitted(struct sched *sched, struct job *job, bool shared);
/* It began to run, or it does not run any more; started_ms says since when. */
void predict_started(struct sched *sched, struct job *job);
void predict_stopped(struct sched *sched, const struct job *job);
/* It is over: learns from it, if it ran, and forgets what was said. */
void predict_ended(struct sched *sched, const struct job *job);

bool predict_load_expert(struct predictor *predictor, const struct expert_record *record,
                         struct error *error);
bool predict_load_mixture(struct predictor *predictor, const struct mixture_record *record,
                          struct error *error);
bool predict_load_guess(struct predictor *predictor, const struct guess_record *record,
                        struct error *error);
/* After all records: who runs, and whose guesses these are. */
bool predict_loaded(struct sched *sched, struct error *error);
/* Hands all over to another core that is going to be loaded with the same jobs. */
void predict_move(struct predictor *to, struct predictor *from);

#endif
