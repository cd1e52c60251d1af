/* predict.h - how long a job will take, learned from those that were like it */
#ifndef CORE_QUEUE_PREDICT_H
#define CORE_QUEUE_PREDICT_H

#include "base/map.h"
#include "core/record/record.h"

/* Lessons by kind of job, from narrow to wide: tenant and name pattern, name
 * pattern alone, tenant and size, size alone. Expectations are for promised starts
 * and estimated waits; nothing that is about safety may use them. The inside
 * is meant to be replaced by a learned model; this interface is what stays. */
struct predictor {
	struct map lessons; /* id -> struct lesson * (see predict.c) */
};

struct prediction {
	int64_t expected_ms; /* 0: unknown */
	int64_t confidence;  /* thousandths: 0 knows nothing, 1000 always came true */
	int64_t samples;     /* jobs that it is based on */
	const char *basis;   /* "tenant and name", ...: for people */
};

/* Which lessons a job is part of, found when they are first needed: reading its
 * name costs more than all the rest. Zero-initialised is not found yet. */
#define LESSON_LEVELS 4
struct likeness {
	int64_t lessons[LESSON_LEVELS];
};

/* From the narrowest kind with enough lessons; without any, the job's
 * max_runtime_ms at a low confidence; never above max_runtime_ms. */
struct prediction predict_job(const struct predictor *predictor, const struct job_record *job,
                              struct likeness *likeness);

/* Learns that the job took `took_ms` (> 0), and calls `changed` for every
 * lesson that this alters, in a fixed order. */
void predict_learn(struct predictor *predictor, const struct job_record *job,
                   struct likeness *likeness, int64_t took_ms, int64_t now_ms,
                   void (*changed)(void *context, const struct lesson_record *lesson),
                   void *context);

bool predict_load(struct predictor *predictor, const struct lesson_record *lesson,
                  struct error *error);
void predict_free(struct predictor *predictor);

#endif
