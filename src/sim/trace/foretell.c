/* foretell.c - how well the core predicts the run times of a trace */
#include "sim/trace/foretell.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/number.h"

#define SOON_S 600

const int64_t foretell_ages_s[FORETELL_AGES] = { 60, 600, 3600, 14400 };

/* At one moment, in this order. */
enum happening_kind { HAPPENS_END, HAPPENS_AGE, HAPPENS_SUBMIT, HAPPENS_START };

struct happening {
	int64_t at_s;
	enum happening_kind kind;
	int age; /* HAPPENS_AGE: which */
	size_t job;
};

/* A chance to end soon that was said, and whether it came true. */
struct verdict {
	int64_t chance;
	bool came;
};

struct foretelling {
	struct learner *learner;
	struct crowd crowd;
	const struct foretell_bounds *bounds;
	const struct history *history;
	struct foretell_scores *scores;
	struct guess **guesses; /* by job, while it is in flight */
	struct happening *happenings;
	size_t count, capacity;
	struct verdict *verdicts[FORETELL_AGES];
	double predict_s, learn_s;
};

static struct traits traits_of(const struct history_job *job)
{
	struct traits traits = { .size = job->gpus * 1000, .limit_ms = job->limit_s * 1000 };

	traits.user = *job->user ? hash_text(job->user) | 1 : 0;
	traits_set_name(&traits, job->name);
	return traits;
}

static bool is_scored(const struct foretelling *run, size_t job)
{
	return run->scores && job >= run->history->count / 10;
}

static void add_happening(struct foretelling *run, int64_t at_s, enum happening_kind kind,
                          size_t job, int age)
{
	array_reserve(run->happenings, run->capacity, run->count + 1);
	run->happenings[run->count++] =
	    (struct happening){ .at_s = at_s, .kind = kind, .job = job, .age = age };
}

static int happening_compare(const void *a, const void *b)
{
	const struct happening *one = a, *other = b;

	if (one->at_s != other->at_s)
		return one->at_s < other->at_s ? -1 : 1;
	if (one->kind != other->kind)
		return (int)one->kind - (int)other->kind;
	if (one->job != other->job)
		return one->job < other->job ? -1 : 1;
	return one->age - other->age;
}

static void list_happenings(struct foretelling *run)
{
	for (size_t i = 0; i < run->history->count; i++) {
		const struct history_job *job = &run->history->jobs[i];
		int64_t started_s = max64(job->started_s, job->submit_s);
		add_happening(run, job->submit_s, HAPPENS_SUBMIT, i, 0);
		add_happening(run, started_s, HAPPENS_START, i, 0);
		add_happening(run, started_s + job->duration_s, HAPPENS_END, i, 0);
		for (int age = 0; age < FORETELL_AGES && is_scored(run, i); age++)
			if (job->duration_s > foretell_ages_s[age])
				add_happening(run, started_s + foretell_ages_s[age], HAPPENS_AGE, i,
				              age);
	}
	qsort(run->happenings, run->count, sizeof(*run->happenings), happening_compare);
}

/* log2 of how far the actual duration is above the predicted one. */
static double error_of(int64_t actual_ms, int64_t predicted_ms)
{
	return log2((double)actual_ms / (double)max64(predicted_ms, 1));
}

static void score_duration(struct foretell_scores *scores, const struct lifetime *lifetime,
                           int64_t actual_ms)
{
	int64_t p90_ms = lifetime_duration(lifetime, 0, CHANCE_ONE * 9 / 10);
	double off = error_of(actual_ms, lifetime_duration(lifetime, 0, CHANCE_ONE / 2));
	double off90 = error_of(actual_ms, p90_ms);

	scores->jobs++;
	scores->in2x += fabs(off) <= 1;
	scores->pin50 += fabs(off) / 2;
	scores->pin90 += off90 > 0 ? 0.9 * off90 : -0.1 * off90;
	scores->cov90 += actual_ms <= p90_ms;
}

static void submit_job(struct foretelling *run, size_t job, int64_t now_ms)
{
	const struct history_job *at = &run->history->jobs[job];
	struct traits traits = traits_of(at);
	uint64_t key;

	double began = clock_s(CLOCK_MONOTONIC);
	const struct foresight *foresight =
	    learner_foresee(run->learner, &run->crowd, &traits, now_ms, &key);
	run->guesses[job] = foresight_guess(foresight);
	run->predict_s += clock_s(CLOCK_MONOTONIC) - began;
	if (is_scored(run, job))
		score_duration(run->scores, &foresight->lifetime, at->duration_s * 1000);
}

static void end_job(struct foretelling *run, size_t job, int64_t now_ms)
{
	const struct history_job *at = &run->history->jobs[job];
	struct experience experience = { .traits = traits_of(at),
		                         .took_ms = at->duration_s * 1000,
		                         .ended_ms = now_ms };

	double began = clock_s(CLOCK_MONOTONIC);
	experience.peers = crowd_count(&run->crowd, &experience.traits);
	guess_judge(run->guesses[job], experience.took_ms, &experience);
	if (learner_accepts(run->learner, now_ms))
		learner_learn(run->learner, &experience, run->bounds->experts, run->bounds->jobs);
	run->learn_s += clock_s(CLOCK_MONOTONIC) - began;
	crowd_leave(&run->crowd, &experience.traits, now_ms - experience.took_ms);
	free(run->guesses[job]);
	run->guesses[job] = NULL;
}

/* The rest of a job that has run for a while, as expected by then. */
static void score_rest(struct foretelling *run, size_t job, int age, int64_t now_ms)
{
	const struct history_job *at = &run->history->jobs[job];
	struct foretell_rest *rest = &run->scores->rest[age];
	struct traits traits = traits_of(at);
	int64_t age_ms = foretell_ages_s[age] * 1000;
	uint64_t key;

	const struct lifetime *lifetime =
	    &learner_foresee(run->learner, &run->crowd, &traits, now_ms, &key)->lifetime;
	int64_t rest_ms = lifetime_duration(lifetime, age_ms, CHANCE_ONE / 2) - age_ms;
	double off = error_of(at->duration_s * 1000 - age_ms, max64(rest_ms, 1000));
	struct verdict verdict = {
		.chance = lifetime_ends_within(lifetime, age_ms, SOON_S * 1000),
		.came = at->duration_s <= foretell_ages_s[age] + SOON_S,
	};
	rest->in2x += fabs(off) <= 1;
	rest->soon_said += (double)verdict.chance / CHANCE_ONE;
	rest->soon_seen += verdict.came;
	run->verdicts[age][rest->jobs++] = verdict;
}

static int verdict_compare(const void *a, const void *b)
{
	const struct verdict *one = a, *other = b;

	return (one->chance > other->chance) - (one->chance < other->chance);
}

/* From the sum of the ranks of those that came true; equals share their ranks. */
static double verdicts_auc(struct verdict *verdicts, size_t count)
{
	double ranks = 0, came = 0;

	qsort(verdicts, count, sizeof(*verdicts), verdict_compare);
	for (size_t i = 0, next; i < count; i = next) {
		next = i;
		while (next < count && verdicts[next].chance == verdicts[i].chance)
			next++;
		for (size_t j = i; j < next; j++)
			if (verdicts[j].came) {
				ranks += (double)(i + next + 1) / 2;
				came++;
			}
	}
	double pairs = came * ((double)count - came);
	return pairs > 0 ? (ranks - came * (came + 1) / 2) / pairs : -1;
}

static void sum_up(struct foretelling *run)
{
	struct foretell_scores *scores = run->scores;
	double jobs = (double)max64(scores->jobs, 1), all = (double)run->history->count;

	scores->in2x /= jobs;
	scores->pin50 /= jobs;
	scores->pin90 /= jobs;
	scores->cov90 /= jobs;
	for (int age = 0; age < FORETELL_AGES; age++) {
		struct foretell_rest *rest = &scores->rest[age];
		double count = (double)max64(rest->jobs, 1);
		rest->in2x /= count;
		rest->soon_said /= count;
		rest->soon_seen /= count;
		rest->soon_auc = verdicts_auc(run->verdicts[age], (size_t)rest->jobs);
	}
	scores->experts = learner_experts(run->learner);
	scores->predict_us = run->predict_s / all * 1e6;
	scores->learn_us = run->learn_s / all * 1e6;
}

static void happen(struct foretelling *run, const struct happening *happening)
{
	const struct history_job *job = &run->history->jobs[happening->job];
	int64_t now_ms = happening->at_s * 1000;
	struct traits traits = traits_of(job);

	switch (happening->kind) {
	case HAPPENS_END:
		end_job(run, happening->job, now_ms);
		break;
	case HAPPENS_AGE:
		score_rest(run, happening->job, happening->age, now_ms);
		break;
	case HAPPENS_SUBMIT:
		submit_job(run, happening->job, now_ms);
		break;
	case HAPPENS_START:
		crowd_enter(&run->crowd, &traits, now_ms);
		break;
	}
}

void foretell_run(struct learner *learner, const struct foretell_bounds *bounds,
                  const struct history *history, struct foretell_scores *scores)
{
	struct foretelling run = {
		.learner = learner, .bounds = bounds, .history = history, .scores = scores
	};

	if (scores)
		*scores = (struct foretell_scores){ 0 };
	run.guesses = memory_zero(history->count, sizeof(struct guess *));
	for (int age = 0; age < FORETELL_AGES; age++)
		run.verdicts[age] = memory_alloc(history->count * sizeof(struct verdict));
	list_happenings(&run);
	for (size_t i = 0; i < run.count; i++)
		happen(&run, &run.happenings[i]);
	if (scores)
		sum_up(&run);
	for (int age = 0; age < FORETELL_AGES; age++)
		free(run.verdicts[age]);
	crowd_free(&run.crowd);
	free(run.guesses);
	free(run.happenings);
}
