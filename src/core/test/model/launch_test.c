/* launch_test.c - launch arguments follow from the reservation, never the other way round */
#include "core/model/launch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* A reservation of these parts on GPUs of these capacities. */
static struct reservation *reserved(struct gpu *gpus, const int64_t *mib, int count)
{
	struct reservation *reservation =
	    memory_zero(1, sizeof(*reservation) + (size_t)count * sizeof(struct part));

	reservation->part_count = count;
	for (int i = 0; i < count; i++)
		reservation->parts[i] = (struct part){ .gpu = &gpus[i], .mib = mib[i] };
	return reservation;
}

static void utilisation_is_the_part_of_each_gpu_rounded_down(void **unused)
{
	struct gpu gpus[] = { { .r.capacity_mib = 81559 }, { .r.capacity_mib = 40000 } };
	const int64_t mib[] = { 38139, 20000 };
	const struct model_record model = { .runtime = RUNTIME_VLLM,
		                            .context = 4096,
		                            .parallel = 8 };
	struct reservation *reservation = reserved(gpus, mib, 2);
	struct launch launch = launch_of(&model, reservation);

	(void)unused;
	assert_int_equal(launch.tensor_parallel, 2);
	assert_int_equal(launch.utilisation[0], 467); /* 38139 / 81559 = 0.46762 */
	assert_int_equal(launch.utilisation[1], 500);
	assert_int_equal(launch.context, 4096);
	assert_int_equal(launch.parallel, 8);
	free(reservation);
}

static void what_vllm_is_told_is_never_more_than_what_is_reserved(void **unused)
{
	const struct model_record model = { .runtime = RUNTIME_VLLM };

	(void)unused;
	for (int64_t capacity = 1; capacity < 2000; capacity += 7)
		for (int64_t mib = 1; mib <= capacity; mib += 13) {
			struct gpu gpu = { .r.capacity_mib = capacity };
			struct reservation *reservation = reserved(&gpu, &mib, 1);
			int64_t told = launch_of(&model, reservation).utilisation[0];
			assert_true(told * capacity <= mib * WHOLE_GPU);
			free(reservation);
		}
}

static void llama_cpp_is_told_the_context_of_all_parallel_requests(void **unused)
{
	struct gpu gpu = { .r.capacity_mib = 24000 };
	const int64_t mib = 8000;
	struct model_record model = { .runtime = RUNTIME_LLAMA_CPP,
		                      .context = 8192,
		                      .parallel = 4 };
	struct reservation *reservation = reserved(&gpu, &mib, 1);

	(void)unused;
	assert_int_equal(launch_of(&model, reservation).context, 4 * 8192);
	model.runtime = RUNTIME_OLLAMA;
	assert_int_equal(launch_of(&model, reservation).context, 8192);
	model.runtime = RUNTIME_CUSTOM;
	assert_int_equal(launch_of(&model, reservation).runtime, RUNTIME_CUSTOM);
	free(reservation);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(utilisation_is_the_part_of_each_gpu_rounded_down),
		cmocka_unit_test(what_vllm_is_told_is_never_more_than_what_is_reserved),
		cmocka_unit_test(llama_cpp_is_told_the_context_of_all_parallel_requests),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
