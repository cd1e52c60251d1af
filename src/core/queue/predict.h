/* predict.h - how long jobs will take, learned from those that ended */
#ifndef CORE_QUEUE_PREDICT_H
#define CORE_QUEUE_PREDICT_H

#include "base/map.h"
#include "core/predict/learner.h"
#include "core/record/record.h"

struct job;
struct sched;

/* Ties core/predict to jobs and records. Expectations are for promised starts,
 * backfill, turns and the choice between waiting and preempting; nothing that is about
 * safety may use them.
 *
 * What was said when a job was submitted is a guess, kept until the job has ended. Jobs
 * about which the same is said, with no job ending in between, share one; it has the id
 * of the first. Each job that ends leaves an outcome: the learner's state is a function
 * of the outcomes that are stored, so a restart replays them. */
struct predictor {
	struct learner learner;
	struct crowd crowd;
	struct accuracy_record accuracies[EXPERT_KINDS + 2]; /* by basis */
	struct map guesses; /* id -> struct kept_guess * (see predict.c) */
	struct map by_key;  /* key of the learner -> the last guess under it */
	int64_t last_outcome;
	int64_t segment_from, needed_from; /* outcomes: of this segment, of the one before */
	int64_t stored_from;               /* the oldest that is not deleted */
	struct outcomes *loaded;           /* while loading */
};

struct prediction {
	int64_t expected_ms; /* the median; 0: unknown */
	int64_t p90_ms;      /* 0: unknown */
	int64_t confidence;  /* thousandths: 0 knows nothing, 1000 always came true */
	int64_t samples;     /* jobs that it is based on */
	int32_t basis;       /* enum expert_kind, or one of these */
};
enum { BASIS_NOTHING = EXPERT_KINDS, BASIS_LIMIT, BASES };
/* "user and name", "maximum runtime", ...: for people. */
const char *basis_name(int32_t basis);

void predictor_init(struct predictor *predictor);
void predictor_free(struct predictor *predictor);

/* What jobs are compared by. The tenant stands for the user where there is none. */
struct traits predict_traits(const struct job_record *job);

/* How long the job has run of what its duration counts: all of its runs if it resumes
 * where it was stopped, else the current one. */
int64_t predict_age(const struct job *job, int64_t now_ms);
/* What is expected of a job, as of now: the durations that it may have, of which
 * predict_age() has passed. False if too little is known to say anything. */
bool predict_lifetime(struct sched *sched, struct job *job, struct lifetime *lifetime);

/* How long a job that has run for `ran_ms` is expected to run for each job like it that ends
 * (lifetime_index()), from what was said when it was submitted: at most a factor of 2^(1/4)
 * old. `ran_ms` where nothing was said. */
int64_t predict_index(const struct sched *sched, const struct job *job, int64_t ran_ms);

/* The job was submitted: sets what is expected of it and keeps what was said. */
void predict_submitted(struct sched *sched, struct job *job);
/* What would be expected of it if it were submitted now; keeps nothing. */
void predict_expect(struct sched *sched, struct job *job);
/* It began to run, or it does not run any more; started_ms says since when. What is
 * expected stays as it was at submission if that is less than a minute ago, and is foreseen
 * again otherwise. */
void predict_started(struct sched *sched, struct job *job);
void predict_stopped(struct sched *sched, struct job *job);
/* It has ended: learns from it, if it ran, and forgets what was said. */
void predict_ended(struct sched *sched, struct job *job);

bool predict_load_guess(struct predictor *predictor, const struct guess_record *record,
                        struct error *error);
bool predict_load_accuracy(struct predictor *predictor, const struct accuracy_record *record,
                           struct error *error);
bool predict_load_outcome(struct predictor *predictor, const struct outcome_record *record,
                          struct error *error);
/* After all records: who runs, whose guesses these are, and what outcomes teach. */
bool predict_loaded(struct sched *sched, struct error *error);
/* Hands all over to another core that is going to be loaded with the same jobs. */
void predict_move(struct predictor *to, struct predictor *from);

#endif
