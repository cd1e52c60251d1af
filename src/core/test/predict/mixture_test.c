/* mixture_test.c - what the mixture of experts says after what it has seen */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/number.h"
#include "core/predict/guess_text.h"
#include "core/predict/learner.h"

#define MINUTE INT64_C(60000)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define NOW INT64_C(1700000000000)
#define CAPACITY 1000

static struct traits mixture_job_of(const char *user, const char *name, int64_t gpus)
{
	struct traits traits = { .user = hash_text(user), .size = gpus * 1000 };
	traits_set_name(&traits, name);
	return traits;
}

static struct crowd nobody; /* runs in most of these tests */

static struct experience experience_of(struct traits traits, const struct foresight *foresight,
                                       int64_t took_ms)
{
	struct experience experience = { .traits = traits, .took_ms = took_ms };
	struct guess *guess = foresight_guess(foresight);
	guess_judge(guess, took_ms, &experience);
	free(guess);
	return experience;
}

static struct foresight foresee(const struct mixture *mixture, struct traits traits)
{
	struct foresight foresight;
	mixture_foresee(mixture, &nobody, &traits, NOW, &foresight);
	return foresight;
}

static void learn(struct mixture *mixture, struct traits traits, int64_t took_ms)
{
	struct foresight foresight = foresee(mixture, traits);
	struct experience experience = experience_of(traits, &foresight, took_ms);
	mixture_learn(mixture, &experience, CAPACITY);
}

static int64_t median(const struct mixture *mixture, struct traits traits)
{
	struct foresight foresight = foresee(mixture, traits);
	return lifetime_duration(&foresight.lifetime, 0, CHANCE_ONE / 2);
}

/* The chance to end within ten minutes of its start. */
static int64_t soon(const struct mixture *mixture, struct traits traits)
{
	struct foresight foresight = foresee(mixture, traits);
	return lifetime_ends_within(&foresight.lifetime, 0, 10 * MINUTE);
}

static void assert_near(int64_t value, int64_t wanted, int64_t percent)
{
	if (value < wanted - wanted * percent / 100 || value > wanted + wanted * percent / 100)
		fail_msg("%lld is not within %lld%% of %lld", (long long)value, (long long)percent,
		         (long long)wanted);
}

static void durations_keep_their_value_on_the_scale(void **state)
{
	(void)state;
	for (int64_t ms = 256; ms < 40 * DAY; ms = ms * 13 / 10)
		assert_near(duration_at(duration_place(ms)), ms, 1);
	assert_int_equal(duration_place(0), 0);
	assert_int_equal(duration_place(INT64_MAX), DURATION_BINS * BIN_LOG - 1);
}

static void a_bin_is_that_of_the_place(void **state)
{
	(void)state;
	for (int64_t ms = -1; ms < 70000; ms++)
		assert_int_equal(duration_bin(ms), duration_place(ms) / BIN_LOG);
	for (int bin = 0; bin <= DURATION_BINS; bin++)
		for (int64_t off = -3; off <= 3; off++) {
			int64_t factor = 1 + off * off * off * 5000; /* of rounding, and beyond */
			int64_t ms = duration_at(bin * BIN_LOG) + factor;
			assert_int_equal(duration_bin(ms), duration_place(ms) / BIN_LOG);
		}
	assert_int_equal(duration_bin(INT64_MAX), DURATION_BINS - 1);
}

static void jobs_are_expected_to_take_what_those_like_them_took(void **state)
{
	struct mixture mixture;
	(void)state;
	mixture_init(&mixture);
	for (int i = 0; i < 30; i++) {
		learn(&mixture, mixture_job_of("ann", "train", 1), 3 * HOUR);
		learn(&mixture, mixture_job_of("ann", "test", 1), MINUTE);
		learn(&mixture, mixture_job_of("bob", "train", 1), 20 * MINUTE);
	}
	assert_near(median(&mixture, mixture_job_of("ann", "train", 1)), 3 * HOUR, 15);
	assert_near(median(&mixture, mixture_job_of("ann", "test", 1)), MINUTE, 15);
	assert_near(median(&mixture, mixture_job_of("bob", "train", 1)), 20 * MINUTE, 15);
	mixture_free(&mixture);
}

static void names_that_differ_only_in_digits_are_told_apart(void **state)
{
	struct mixture mixture;
	(void)state;
	mixture_init(&mixture);
	for (int i = 0; i < 30; i++) {
		learn(&mixture, mixture_job_of("ann", "resnet50", 1), 4 * HOUR);
		learn(&mixture, mixture_job_of("ann", "resnet18", 1), 10 * MINUTE);
	}
	assert_near(median(&mixture, mixture_job_of("ann", "resnet50", 1)), 4 * HOUR, 15);
	assert_near(median(&mixture, mixture_job_of("ann", "resnet18", 1)), 10 * MINUTE, 15);
	mixture_free(&mixture);
}

static void a_new_number_in_a_name_is_expected_like_the_others(void **state)
{
	struct mixture mixture;
	char name[] = "run-10";
	(void)state;
	mixture_init(&mixture);
	for (int i = 0; i < 10; i++) {
		learn(&mixture, mixture_job_of("ann", "eval", 1), 2 * MINUTE);
		learn(&mixture, mixture_job_of("ann", name, 1), 5 * HOUR);
		name[5]++;
	}
	assert_near(median(&mixture, mixture_job_of("ann", "run-77", 1)), 5 * HOUR, 25);
	mixture_free(&mixture);
}

static void the_expert_that_is_right_is_named(void **state)
{
	struct mixture mixture;
	uint64_t seed = 1;
	(void)state;
	mixture_init(&mixture);
	assert_int_equal(foresee(&mixture, mixture_job_of("ann", "", 1)).kind, EXPERT_KINDS);
	for (int i = 0; i < 300; i++) {
		struct traits traits = mixture_job_of("ann", "", 1 << random_below(&seed, 4));
		learn(&mixture, traits, traits.size * 100);
	}
	struct foresight foresight = foresee(&mixture, mixture_job_of("ann", "", 4));
	assert_int_equal(foresight.kind, BY_USER_SIZE);
	assert_true(foresight.samples > 30);
	mixture_free(&mixture);
}

static void jobs_that_outlast_the_others_teach_before_they_end(void **state)
{
	struct mixture mixture;
	struct traits traits = mixture_job_of("ann", "", 8);
	(void)state;
	mixture_init(&mixture);
	for (int i = 0; i < 200; i++)
		learn(&mixture, mixture_job_of("bob", "", 1), i % 2 ? DAY : MINUTE);
	int64_t before = soon(&mixture, traits);
	for (int i = 0; i < 5; i++)
		crowd_enter(&nobody, &traits, NOW - 5 * HOUR);
	assert_true(soon(&mixture, traits) < before * 3 / 4);
	for (int i = 0; i < 5; i++)
		crowd_leave(&nobody, &traits, NOW - 5 * HOUR);
	assert_int_equal(soon(&mixture, traits), before);
	assert_int_equal(nobody.groups.count, 0);
	crowd_free(&nobody);
	mixture_free(&mixture);
}

static void no_answer_exceeds_the_limit(void **state)
{
	struct mixture mixture;
	struct traits traits = mixture_job_of("ann", "", 1);
	(void)state;
	mixture_init(&mixture);
	for (int i = 0; i < 20; i++)
		learn(&mixture, traits, 5 * HOUR);
	traits.limit_ms = HOUR;
	struct lifetime lifetime = foresee(&mixture, traits).lifetime;
	assert_int_equal(lifetime_duration(&lifetime, 0, CHANCE_ONE / 2), HOUR);
	assert_int_equal(lifetime_duration(&lifetime, 0, CHANCE_ONE), HOUR);
	assert_int_equal(lifetime_ends_within(&lifetime, 50 * MINUTE, 10 * MINUTE), CHANCE_ONE);
	assert_true(lifetime_ends_within(&lifetime, 0, 10 * MINUTE) < CHANCE_ONE / 10);
	assert_int_equal(lifetime_duration(&lifetime, 2 * HOUR, CHANCE_ONE / 2), 2 * HOUR);
	mixture_free(&mixture);
}

/* Half of the jobs take a minute, half a day. */
static void what_is_left_depends_on_how_long_it_has_run(void **state)
{
	struct mixture mixture;
	struct traits traits = mixture_job_of("ann", "", 1);
	(void)state;
	mixture_init(&mixture);
	for (int i = 0; i < 100; i++)
		learn(&mixture, traits, i % 2 ? DAY : MINUTE);
	struct lifetime lifetime = foresee(&mixture, traits).lifetime;
	assert_true(lifetime_ends_within(&lifetime, 0, 2 * MINUTE) > CHANCE_ONE / 4);
	assert_true(lifetime_ends_within(&lifetime, 10 * MINUTE, 2 * MINUTE) < CHANCE_ONE / 50);
	assert_near(lifetime_duration(&lifetime, 10 * MINUTE, CHANCE_ONE / 2), DAY, 20);
	assert_true(lifetime_index(&lifetime, 0) < lifetime_index(&lifetime, 10 * MINUTE));
	mixture_free(&mixture);
}

static void answers_agree_with_each_other(void **state)
{
	struct mixture mixture;
	uint64_t seed = 7;
	(void)state;
	mixture_init(&mixture);
	for (int i = 0; i < 500; i++) {
		learn(&mixture, mixture_job_of("ann", "", 1),
		      (int64_t)random_below(&seed, 1 << 24) + 1);
		struct lifetime lifetime = foresee(&mixture, mixture_job_of("ann", "", 1)).lifetime;
		int64_t age_ms = (int64_t)random_below(&seed, 1 << 23), before = age_ms;
		for (int64_t chance = 0; chance <= CHANCE_ONE; chance += CHANCE_ONE / 8) {
			int64_t duration_ms = lifetime_duration(&lifetime, age_ms, chance);
			assert_true(duration_ms >= before);
			int64_t back =
			    lifetime_ends_within(&lifetime, age_ms, duration_ms - age_ms);
			if (chance > 0 && chance < CHANCE_ONE && age_ms > 1000)
				assert_in_range(back, chance - 400, chance + 400);
			before = duration_ms;
		}
		assert_true(lifetime_index(&lifetime, age_ms) > 0);
	}
	mixture_free(&mixture);
}

/* What was learned so far, as a store would have it. */
struct diary {
	struct experience experiences[4000];
	int64_t segments[4000];
	bool closes[4000];
	int count;
};

static void diary_replay(const struct diary *diary, struct learner *learner, int64_t most)
{
	int last = diary->count - 1;
	int64_t segment = diary->segments[last] + diary->closes[last];
	for (int i = 0; i <= last; i++)
		if (diary->segments[i] >= segment - 1)
			learner_replay(learner, &diary->experiences[i], most, diary->segments[i],
			               diary->closes[i]);
}

/* Random jobs of a few users, of which some are in flight. With `restart` now and then a
 * new learner replays what is kept of the past. Returns a hash of all that was foreseen. */
static uint64_t run_history(uint64_t seed, int64_t most, int count, int restart)
{
	enum { FLYING = 16, SIZE = 150 };
	static struct diary diary;
	struct learner learner;
	struct crowd crowd = { 0 };
	struct traits flying[FLYING] = { 0 };
	struct guess *guesses[FLYING] = { 0 };
	uint64_t hash = 0, key;
	static const char *const users[] = { "ann", "bob", "eve" };
	static const char *const names[] = { "", "train-1", "train-2", "eval" };
	diary.count = 0;
	learner_init(&learner);
	for (int i = 0; i < count; i++) {
		int64_t now_ms = NOW + i * MINUTE;
		int at = (int)random_below(&seed, FLYING);
		if (guesses[at]) {
			struct experience *experience = &diary.experiences[diary.count];
			*experience =
			    (struct experience){ .traits = flying[at],
				                 .took_ms =
				                     (int64_t)random_below(&seed, 1 << 22) + 1 };
			guess_judge(guesses[at], experience->took_ms, experience);
			diary.segments[diary.count] = learner.mixture.experts.segment;
			diary.closes[diary.count] = learner_learn(&learner, experience, most, SIZE);
			diary.count++;
			crowd_leave(&crowd, &flying[at], (int64_t)flying[at].tenant);
			free(guesses[at]);
			assert_true((int64_t)learner.mixture.experts.by_id.count <= most);
		}
		flying[at] =
		    mixture_job_of(users[random_below(&seed, 3)], names[random_below(&seed, 4)],
		                   (int64_t)random_below(&seed, 9));
		flying[at].limit_ms = (int64_t)random_below(&seed, 3) * HOUR;
		flying[at].tenant = (uint64_t)now_ms;
		const struct foresight *foresight =
		    learner_foresee(&learner, &crowd, &flying[at], now_ms, &key);
		guesses[at] = foresight_guess(foresight);
		crowd_enter(&crowd, &flying[at], now_ms);
		hash = hash_combine(hash, hash_bytes(&foresight->lifetime.durations,
		                                     sizeof(foresight->lifetime.durations)));
		if (restart > 0 && i % restart == restart - 1) {
			learner_free(&learner);
			learner_init(&learner);
			diary_replay(&diary, &learner, most);
		}
	}
	for (int i = 0; i < FLYING; i++)
		free(guesses[i]);
	learner_free(&learner);
	crowd_free(&crowd);
	return hash;
}

/* What was gathered for one job serves others that are alike: with the names, sizes and limits
 * of a few users, known and new ones, it must not matter. */
static void what_is_remembered_changes_no_answer(void **state)
{
	static const char *const names[] = { "run-1", "run-2", "run-#", "run", "eval", "" };
	struct learner learner;
	struct crowd crowd = { 0 };
	uint64_t random = 7, key;
	char name[32];
	(void)state;
	learner_init(&learner);
	for (int i = 0; i < 20000; i++) {
		struct foresight fresh;
		int64_t now_ms = NOW + i * INT64_C(1000);
		uint64_t kind = random_below(&random, 8);
		snprintf(name, sizeof(name), "run-%d", i);
		struct traits traits =
		    mixture_job_of(random_below(&random, 2) ? "ann" : "bob",
		                   kind < 6 ? names[kind] : name, 1 + (int64_t)kind % 2);
		traits.limit_ms = random_below(&random, 3) ? 0 : HOUR;
		traits.tenant = random_below(&random, 2) ? traits.user : 1;
		mixture_foresee(&learner.mixture, &crowd, &traits, now_ms, &fresh);
		const struct foresight *said =
		    learner_foresee(&learner, &crowd, &traits, now_ms, &key);
		assert_memory_equal(&said->lifetime, &fresh.lifetime, sizeof(fresh.lifetime));
		assert_int_equal(said->count, fresh.count);
		assert_int_equal(said->kind, fresh.kind);
		if (random_below(&random, 5) == 0)
			crowd_enter(&crowd, &traits, now_ms);
		if (random_below(&random, 10) == 0) {
			struct experience experience = experience_of(
			    traits, &fresh, 1000 + (int64_t)random_below(&random, 1000000));
			experience.ended_ms = now_ms;
			learner_learn(&learner, &experience, 100, 500);
		}
	}
	crowd_free(&crowd);
	learner_free(&learner);
}

static void a_learner_accepts_so_many_in_a_second(void **state)
{
	struct learner learner, again;
	struct experience experience = { .traits = mixture_job_of("ann", "train", 1),
		                         .took_ms = MINUTE,
		                         .ended_ms = NOW };
	(void)state;
	learner_init(&learner);
	learner_init(&again);
	for (int i = 0; i < LEARNED_PER_S; i++) {
		assert_true(learner_accepts(&learner, NOW + i));
		assert_false(learner_learn(&learner, &experience, EXPERTS_MIN, INT64_MAX));
		learner_replay(&again, &experience, EXPERTS_MIN, 1, false);
	}
	assert_false(learner_accepts(&learner, NOW + 999));
	assert_false(learner_accepts(&again, NOW + 999));
	assert_true(learner_accepts(&learner, NOW + 1000));
	assert_true(learner_accepts(&again, NOW + 1000));
	learner_free(&learner);
	learner_free(&again);
}

static void equal_histories_give_equal_bytes(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 5; seed++) {
		uint64_t once = run_history(seed, 60, 2000, 0);
		assert_true(once == run_history(seed, 60, 2000, 0));
		assert_true(once != run_history(seed, 61, 2000, 0));
	}
}

static void a_restart_changes_nothing(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 5; seed++)
		assert_true(run_history(seed, 1000, 2000, 0) ==
		            run_history(seed, 1000, 2000, (int)(100 + 7 * seed)));
}

static void what_was_said_can_be_written_and_read(void **state)
{
	struct mixture mixture;
	char text[GUESS_TEXT_MAX + 1], again[GUESS_TEXT_MAX + 1];
	struct traits traits = mixture_job_of("ann", "train-1", 4);
	(void)state;
	mixture_init(&mixture);
	for (int i = 0; i < 10; i++)
		learn(&mixture, traits, (i + 1) * HOUR);
	struct foresight foresight = foresee(&mixture, traits);
	struct guess *guess = foresight_guess(&foresight);
	guess_write(text, guess);
	struct guess *read = guess_read(text);
	assert_non_null(read);
	guess_write(again, read);
	assert_string_equal(again, text);
	text[0] = 'z';
	assert_null(guess_read(text));
	assert_null(guess_read("0"));
	struct experience experience = experience_of(traits, &foresight, HOUR), other = { 0 };
	judged_write(text, &experience);
	assert_true(judged_read(text, &other));
	assert_int_equal(other.count, guess->count);
	assert_false(judged_read("00zzz0", &other));
	free(guess);
	free(read);
	mixture_free(&mixture);
}

static void the_expert_that_learned_longest_ago_makes_room(void **state)
{
	struct mixture mixture;
	struct traits ann = mixture_job_of("ann", "", 1), bob = mixture_job_of("bob", "", 1);
	(void)state;
	mixture_init(&mixture);
	mixture_learn(&mixture, &(struct experience){ .traits = ann, .took_ms = HOUR }, 30);
	assert_int_equal(mixture.experts.by_id.count, 4);
	for (int64_t gpus = 1; gpus < 40; gpus++) {
		bob.size = gpus * 1000;
		mixture_learn(&mixture, &(struct experience){ .traits = bob, .took_ms = HOUR }, 30);
	}
	assert_int_equal(mixture.experts.by_id.count, 30);
	assert_null(experts_memory(&mixture.experts, traits_key(&ann, BY_USER)));
	assert_non_null(experts_memory(&mixture.experts, traits_key(&bob, BY_USER)));
	assert_non_null(experts_memory(&mixture.experts, traits_key(&ann, BY_NOTHING)));
	for (int64_t gpus = 40; gpus < 60; gpus++) {
		bob.size = gpus * 1000;
		mixture_learn(&mixture, &(struct experience){ .traits = bob, .took_ms = HOUR },
		              EXPERTS_MIN);
	}
	assert_int_equal(mixture.experts.by_id.count, EXPERTS_MIN);
	mixture_free(&mixture);
}

static void logits_stay_within_bounds(void **state)
{
	struct mixture mixture;
	(void)state;
	mixture_init(&mixture);
	for (int i = 0; i < 20000; i++)
		learn(&mixture, mixture_job_of("ann", "train", 1), HOUR);
	for (int voice = 0; voice < VOICES; voice++)
		for (int context = 0; context < CONTEXTS; context++)
			assert_in_range(mixture.now.of[voice][context] + LOGIT_MAX, 0,
			                2 * LOGIT_MAX);
	mixture_free(&mixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations_keep_their_value_on_the_scale),
		cmocka_unit_test(a_bin_is_that_of_the_place),
		cmocka_unit_test(jobs_are_expected_to_take_what_those_like_them_took),
		cmocka_unit_test(names_that_differ_only_in_digits_are_told_apart),
		cmocka_unit_test(a_new_number_in_a_name_is_expected_like_the_others),
		cmocka_unit_test(the_expert_that_is_right_is_named),
		cmocka_unit_test(jobs_that_outlast_the_others_teach_before_they_end),
		cmocka_unit_test(no_answer_exceeds_the_limit),
		cmocka_unit_test(what_is_left_depends_on_how_long_it_has_run),
		cmocka_unit_test(answers_agree_with_each_other),
		cmocka_unit_test(what_is_remembered_changes_no_answer),
		cmocka_unit_test(a_learner_accepts_so_many_in_a_second),
		cmocka_unit_test(equal_histories_give_equal_bytes),
		cmocka_unit_test(a_restart_changes_nothing),
		cmocka_unit_test(what_was_said_can_be_written_and_read),
		cmocka_unit_test(the_expert_that_learned_longest_ago_makes_room),
		cmocka_unit_test(logits_stay_within_bounds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
