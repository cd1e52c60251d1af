/* predict_bench.c - predicting run times, and learning from jobs that end */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/memory.h"
#include "core/bench/benches.h"
#include "core/bench/fixture.h"
#include "core/predict/learner.h"

/* Jobs end one by one while as many as IN_FLIGHT run. The settings are the defaults. */
enum {
	JOBS = 1000000,
	MEASURED = 100000, /* the last ones */
	IN_FLIGHT = 1024,
	USERS = 2000,
	NAMES = 20, /* of a user */
	SIZE_LEVELS = 4,
	DURATION_LEVELS = 14,
	EXPERTS = 8192,
	REMEMBERED = 32768,
};

struct flight {
	struct traits traits;
	struct guess *guess;
	int64_t started_ms, took_ms;
};

struct predict_bench {
	struct learner learner;
	struct crowd crowd;
	struct flight *flights;
	uint64_t random;
	int64_t now_ms;
	double predict_s, learn_s;
};

/* How long it takes depends on its user and name, and by a factor of up to four on chance. */
static void choose_job(struct predict_bench *bench, struct flight *flight)
{
	char name[32];
	uint64_t user = random_below(&bench->random, USERS);
	uint64_t kind = random_below(&bench->random, NAMES);
	uint64_t level = hash_number(user * NAMES + kind) % DURATION_LEVELS;

	snprintf(name, sizeof(name), "train-%" PRIu64, kind);
	*flight = (struct flight){ .started_ms = bench->now_ms };
	flight->traits.user = hash_number(user) | 1;
	flight->traits.tenant = hash_number(user % 50) | 1;
	flight->traits.size = INT64_C(1000) << random_below(&bench->random, SIZE_LEVELS);
	traits_set_name(&flight->traits, name);
	flight->took_ms =
	    (INT64_C(1000) << level) * (int64_t)(1000 + random_below(&bench->random, 3000)) / 1000;
}

static void submit_history(struct predict_bench *bench, struct flight *flight)
{
	uint64_t key;

	choose_job(bench, flight);
	double begun = clock_seconds();
	flight->guess = foresight_guess(
	    learner_foresee(&bench->learner, &bench->crowd, &flight->traits, bench->now_ms, &key));
	bench->predict_s += clock_seconds() - begun;
	crowd_enter(&bench->crowd, &flight->traits, flight->started_ms);
}

static void end(struct predict_bench *bench, struct flight *flight)
{
	struct experience experience = { .traits = flight->traits, .took_ms = flight->took_ms };

	double begun = clock_seconds();
	experience.peers = crowd_count(&bench->crowd, &flight->traits);
	guess_judge(flight->guess, flight->took_ms, &experience);
	learner_learn(&bench->learner, &experience, EXPERTS, REMEMBERED);
	bench->learn_s += clock_seconds() - begun;
	crowd_leave(&bench->crowd, &flight->traits, flight->started_ms);
	free(flight->guess);
	flight->guess = NULL;
}

void predict_bench(struct report *report, enum size size)
{
	struct predict_bench bench = { .now_ms = BEGIN_MS };
	int jobs = JOBS << size;

	learner_init(&bench.learner);
	bench.flights = memory_zero(IN_FLIGHT, sizeof(*bench.flights));
	for (int i = 0; i < jobs + IN_FLIGHT; i++) {
		struct flight *flight = &bench.flights[i % IN_FLIGHT];
		bench.now_ms += SECOND_MS;
		if (i == jobs + IN_FLIGHT - MEASURED)
			bench.predict_s = bench.learn_s = 0;
		if (flight->guess)
			end(&bench, flight);
		submit_history(&bench, flight);
	}
	printf("predict: %d finished jobs, %d users with %d names, %" PRId64 " experts\n", jobs,
	       USERS, NAMES, learner_experts(&bench.learner));
	report_put(report, "predict_us", size, bench.predict_s / MEASURED * 1e6);
	report_put(report, "learn_us", size, bench.learn_s / MEASURED * 1e6);
	for (int i = 0; i < IN_FLIGHT; i++)
		free(bench.flights[i].guess);
	free(bench.flights);
	crowd_free(&bench.crowd);
	learner_free(&bench.learner);
}
