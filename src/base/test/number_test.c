/* number_test.c - tests of integer arithmetic */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../number.h"

static const int64_t sample[] = {
	0, 1, 7, 999, 1000, 81920, 999999999999, INT64_MAX - 1, INT64_MAX
};
enum { SAMPLES = sizeof(sample) / sizeof(*sample) };

static void muldiv_is_exact_and_saturates(void **state)
{
	(void)state;
	for (int i = 0; i < SAMPLES; i++) {
		for (int j = 0; j < SAMPLES; j++) {
			for (int k = 1; k < SAMPLES; k++) {
				int128 product = (int128)sample[i] * sample[j];
				int128 down = product / sample[k];
				int128 up = down + (product % sample[k] != 0);
				assert_true(muldiv_down(sample[i], sample[j], sample[k]) ==
				            (down > INT64_MAX ? INT64_MAX : (int64_t)down));
				assert_true(muldiv_up(sample[i], sample[j], sample[k]) ==
				            (up > INT64_MAX ? INT64_MAX : (int64_t)up));
			}
		}
	}
}

static void two_halves_of_a_gpu_fit_and_a_third_rounds_as_asked(void **state)
{
	(void)state;
	assert_int_equal(muldiv_down(500, 81559, 1000), 40779);
	assert_int_equal(muldiv_up(500, 81559, 1000), 40780);
	assert_int_equal(muldiv_down(333, 3000, 1000), 999);
	assert_int_equal(muldiv_up(333, 3000, 1000), 999);
}

static void ratios_compare_without_overflow(void **state)
{
	(void)state;
	assert_int_equal(ratio_compare(1, 3, 2, 6), 0);
	assert_int_equal(ratio_compare(1, 3, 1, 2), -1);
	assert_int_equal(ratio_compare(-1, 3, -1, 2), 1);
	assert_int_equal(ratio_compare(0, 5, 0, 7), 0);
	assert_int_equal(ratio_compare(INT64_MAX, INT64_MAX, INT64_MAX - 1, INT64_MAX), 1);
	assert_int_equal(ratio_compare(INT64_MIN, 1, INT64_MAX, 1), -1);
	assert_int_equal(ratio_compare(INT64_MAX - 1, INT64_MAX, INT64_MAX - 2, INT64_MAX - 1), 1);
}

static void decay_is_exact_for_whole_half_lives(void **state)
{
	(void)state;
	const int64_t half_lives[] = { 1, 3, 604800000, INT64_C(1) << 55 };
	for (int i = 0; i < SAMPLES; i++) {
		for (int j = 0; j < 4; j++) {
			for (int64_t n = 0; n < 70 && n <= INT64_MAX / half_lives[j]; n++)
				assert_int_equal(decay(sample[i], n * half_lives[j], half_lives[j]),
				                 n < 63 ? sample[i] >> n : 0);
		}
	}
}

/* 1 - 2^-x for 0 <= x, in floating point, by the series of e^-y. */
static long double true_loss(long double x)
{
	const long double ln2 = 0.693147180559945309417232121458176568L;
	int whole = (int)x;
	long double left = 1;
	for (int i = 0; i < whole; i++)
		left /= 2;
	x -= whole;
	long double sum = 0;
	for (int term = 30; term >= 1; term--)
		sum = x * ln2 / term * (1 - sum);
	return whole == 0 ? sum : 1 - left * (1 - sum);
}

static long double true_decay(int64_t value, int64_t elapsed, int64_t half_life)
{
	long double x = (long double)elapsed / (long double)half_life;
	return (long double)value * (1 - true_loss(x));
}

static long double true_sum(int64_t rate, int64_t elapsed, int64_t half_life)
{
	const long double reciprocal_ln2 = 1.442695040888963407359924681001892137L;
	long double x = (long double)elapsed / (long double)half_life;
	return (long double)rate * (long double)half_life * reciprocal_ln2 * true_loss(x);
}

/* True if `got` is `want` rounded down, or less by one part in 2^57, as far as
 * long double can tell. */
static bool is_rounded_down(int64_t got, long double want, int64_t value)
{
	long double slack = (long double)value * 0x1p-57L;
	return (long double)got <= want + slack / 16 && (long double)got > want - 1 - 2 * slack;
}

static void decay_is_the_true_value_rounded_down(void **state)
{
	(void)state;
	uint64_t seed = 1;
	for (int i = 0; i < 100000; i++) {
		int64_t value = (int64_t)(random_next(&seed) >> (1 + random_below(&seed, 63)));
		int64_t half_life =
		    1 + (int64_t)(random_next(&seed) >> (2 + random_below(&seed, 62)));
		int64_t elapsed =
		    (int64_t)random_below(&seed, (uint64_t)min64(half_life, INT64_MAX / 20) * 20);
		long double want = true_decay(value, elapsed, half_life);
		assert_true(is_rounded_down(decay(value, elapsed, half_life), want, value));
	}
}

static void decay_has_the_same_result_on_every_machine(void **state)
{
	(void)state;
	assert_int_equal(decay(1000000, 1, 2), 707106);
	assert_int_equal(decay(1000000, 302400000, 604800000), 707106);
	assert_int_equal(decay(INT64_C(1000000000000000), 1, 3), INT64_C(793700525984099));
	assert_int_equal(decay(INT64_C(1000000000000000000), 7, 5), INT64_C(378929141627599520));
}

static void decay_never_grows_with_time(void **state)
{
	(void)state;
	const int64_t half_lives[] = {
		2, 1000, 604800000, INT64_C(1) << 57, INT64_C(1) << 60, INT64_MAX
	};
	uint64_t seed = 1;
	for (int i = 0; i < 6; i++) {
		for (int run = 0; run < 50; run++) {
			int64_t elapsed = (int64_t)random_below(&seed, (uint64_t)half_lives[i]);
			/* Some runs cross the end of the half-life. */
			if (run % 2)
				elapsed = max64(0, half_lives[i] - 1 - run);
			int64_t last = INT64_MAX;
			for (int64_t j = 0; j < 200 && elapsed <= INT64_MAX - j; j++) {
				int64_t now = decay(INT64_MAX, elapsed + j, half_lives[i]);
				assert_true(now <= last);
				last = now;
			}
		}
	}
}

static void decay_grows_with_the_value(void **state)
{
	(void)state;
	int64_t last = 0;
	for (int64_t value = 0; value < 100000; value++) {
		int64_t now = decay(value, 123, 1000);
		assert_true(now >= last && now <= value);
		last = now;
	}
}

static void decay_ends_at_zero(void **state)
{
	(void)state;
	assert_int_equal(decay(INT64_MAX, INT64_MAX, 1), 0);
	assert_int_equal(decay(INT64_MAX, 63, 1), 0);
	assert_int_equal(decay(0, 5, 7), 0);
	assert_int_equal(decay(1, 1, INT64_MAX), 0);
}

static bool is_near(int64_t got, long double want, long double slack)
{
	return (long double)got <= want + slack && (long double)got >= want - slack;
}

static void decay_sum_is_the_true_value_to_the_nearest(void **state)
{
	(void)state;
	uint64_t seed = 2;
	for (int i = 0; i < 100000; i++) {
		int64_t rate = (int64_t)random_below(&seed, UINT64_C(1) << random_below(&seed, 40));
		int64_t half_life =
		    1 + (int64_t)random_below(&seed, UINT64_C(1) << random_below(&seed, 50));
		int64_t elapsed = (int64_t)random_below(&seed, (uint64_t)half_life * 10);
		if (random_below(&seed, 2))
			elapsed = (int64_t)random_below(&seed, 1 + (uint64_t)half_life / 100);
		long double want = true_sum(rate, elapsed, half_life);
		int64_t got = decay_sum(rate, elapsed, half_life);
		if (want > 0x1p63L)
			assert_int_equal(got, INT64_MAX);
		else
			assert_true(is_near(got, want, 0.5L + want * 0x1p-57L + 1e-9L));
	}
}

static void decay_sum_over_a_short_time_is_rate_times_time(void **state)
{
	(void)state;
	const int64_t week_ms = 604800000;
	for (int64_t elapsed = 0; elapsed < 1000; elapsed++)
		assert_int_equal(decay_sum(81920, elapsed, week_ms),
		                 (int64_t)(true_sum(81920, elapsed, week_ms) + 0.5L));
	assert_int_equal(decay_sum(100, 1, week_ms), 100);
}

static void decay_sum_never_shrinks_with_time(void **state)
{
	(void)state;
	const int64_t half_lives[] = { 1, 7, 1000, 604800000, INT64_C(1) << 50 };
	for (int i = 0; i < 5; i++) {
		int64_t last = 0;
		for (int64_t j = 0; j < 20000; j++) {
			int64_t elapsed = muldiv_down(j, half_lives[i], 2000) + j % 3;
			int64_t now = decay_sum(1000, elapsed, half_lives[i]);
			if (j % 3 != 0)
				assert_true(now >= last);
			last = now;
		}
	}
}

static void decay_sum_of_two_spans_is_the_sum_of_the_spans(void **state)
{
	(void)state;
	uint64_t seed = 5;
	for (int i = 0; i < 1000; i++) {
		int64_t half_life = 1 + (int64_t)random_below(&seed, 100000);
		int64_t first = (int64_t)random_below(&seed, 300000);
		int64_t second = (int64_t)random_below(&seed, 300000);
		int64_t both = decay_sum(1000, first + second, half_life);
		int64_t parts = decay(decay_sum(1000, first, half_life), second, half_life) +
		                decay_sum(1000, second, half_life);
		assert_in_range(both - parts + 2, 0, 4);
	}
}

static void decay_sum_saturates(void **state)
{
	(void)state;
	assert_true(decay_sum(INT64_MAX, INT64_MAX, INT64_MAX) == INT64_MAX);
	assert_true(decay_sum(INT64_MAX, 2, INT64_MAX) == INT64_MAX);
	assert_true(decay_sum(INT64_MAX, INT64_MAX, 1) == INT64_MAX);
	assert_true(decay_sum(INT64_C(1) << 32, INT64_MAX, INT64_C(1) << 31) == INT64_MAX);
	assert_int_equal(decay_sum(0, INT64_MAX, INT64_MAX), 0);
	assert_int_equal(decay_sum(1000, INT64_MAX, 1), 1443);
}

static void random_numbers_are_those_of_splitmix64(void **state)
{
	(void)state;
	uint64_t seed = 1234567;
	assert_true(random_next(&seed) == UINT64_C(6457827717110365317));
	assert_true(random_next(&seed) == UINT64_C(3203168211198807973));
	assert_true(random_next(&seed) == UINT64_C(9817491932198370423));
}

static void random_numbers_below_a_bound_are_uniform(void **state)
{
	(void)state;
	enum { BOUND = 7, EACH = 10000 };
	int count[BOUND] = { 0 };
	uint64_t seed = 9;
	for (int i = 0; i < BOUND * EACH; i++)
		count[random_below(&seed, BOUND)]++;
	for (int i = 0; i < BOUND; i++)
		assert_in_range(count[i], EACH * 95 / 100, EACH * 105 / 100);
	assert_int_equal(random_below(&seed, 1), 0);
	for (int i = 0; i < 100; i++)
		assert_true(random_below(&seed, (UINT64_C(1) << 63) + 1) <= UINT64_C(1) << 63);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(muldiv_is_exact_and_saturates),
		cmocka_unit_test(two_halves_of_a_gpu_fit_and_a_third_rounds_as_asked),
		cmocka_unit_test(ratios_compare_without_overflow),
		cmocka_unit_test(decay_is_exact_for_whole_half_lives),
		cmocka_unit_test(decay_is_the_true_value_rounded_down),
		cmocka_unit_test(decay_has_the_same_result_on_every_machine),
		cmocka_unit_test(decay_never_grows_with_time),
		cmocka_unit_test(decay_grows_with_the_value),
		cmocka_unit_test(decay_ends_at_zero),
		cmocka_unit_test(decay_sum_is_the_true_value_to_the_nearest),
		cmocka_unit_test(decay_sum_over_a_short_time_is_rate_times_time),
		cmocka_unit_test(decay_sum_never_shrinks_with_time),
		cmocka_unit_test(decay_sum_of_two_spans_is_the_sum_of_the_spans),
		cmocka_unit_test(decay_sum_saturates),
		cmocka_unit_test(random_numbers_are_those_of_splitmix64),
		cmocka_unit_test(random_numbers_below_a_bound_are_uniform),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
