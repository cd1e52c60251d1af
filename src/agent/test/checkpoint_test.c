/* checkpoint_test.c - moving the GPU memory of processes, with a stand-in for the driver */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/gpu/checkpoint.h"

/* It is built beside this program. */
static const char *library(void)
{
	static char path[4200];
	char own[4096];
	ssize_t size = readlink("/proc/self/exe", own, sizeof(own) - 1);

	assert_true(size > 0);
	own[size] = '\0';
	*strrchr(own, '/') = '\0';
	snprintf(path, sizeof(path), "%s/agent/test/libcuda_checkpoint_standin.so", own);
	return path;
}

static void what_is_suspended_is_resumed(void **state)
{
	const pid_t pids[] = { 1, 10, 11 }; /* the first does not use CUDA */
	struct error reason = { 0 };

	(void)state;
	assert_int_equal(checkpoint_suspend(library(), pids, 3, &reason), CHECKPOINT_DONE);
	assert_int_equal(checkpoint_resume(library(), pids, 3, &reason), CHECKPOINT_DONE);
	assert_int_equal(checkpoint_suspend(library(), pids, 3, &reason), CHECKPOINT_DONE);
}

static void a_call_that_was_interrupted_is_finished_by_the_next(void **state)
{
	const pid_t one[] = { 12 }, both[] = { 12, 13 };
	struct error reason = { 0 };

	(void)state;
	assert_int_equal(checkpoint_suspend(library(), one, 1, &reason), CHECKPOINT_DONE);
	assert_int_equal(checkpoint_suspend(library(), both, 2, &reason), CHECKPOINT_DONE);
	assert_int_equal(checkpoint_resume(library(), both, 2, &reason), CHECKPOINT_DONE);
}

static void what_the_driver_refuses_is_as_before(void **state)
{
	const pid_t pids[] = { 20, 21 };
	struct error reason = { 0 };

	(void)state;
	setenv("CUDA_STANDIN", "lock", 1);
	assert_int_equal(checkpoint_suspend(library(), pids, 2, &reason), CHECKPOINT_REFUSED);
	assert_non_null(strstr(reason.text, "clients of MPS cannot be suspended"));
	setenv("CUDA_STANDIN", "checkpoint", 1);
	assert_int_equal(checkpoint_suspend(library(), pids, 2, &reason), CHECKPOINT_REFUSED);
	assert_non_null(strstr(reason.text, "too little host memory"));
	unsetenv("CUDA_STANDIN");
	assert_int_equal(checkpoint_suspend(library(), pids, 2, &reason), CHECKPOINT_DONE);
}

static void one_that_is_not_restored_is_lost(void **state)
{
	const pid_t pids[] = { 30 };
	struct error reason = { 0 };

	(void)state;
	assert_int_equal(checkpoint_suspend(library(), pids, 1, &reason), CHECKPOINT_DONE);
	setenv("CUDA_STANDIN", "restore", 1);
	assert_int_equal(checkpoint_resume(library(), pids, 1, &reason), CHECKPOINT_LOST);
	assert_non_null(strstr(reason.text, "error 2"));
	unsetenv("CUDA_STANDIN");
	assert_int_equal(checkpoint_suspend(library(), pids, 1, &reason), CHECKPOINT_LOST);
	assert_non_null(strstr(reason.text, "has destroyed one of its processes"));
}

static void processes_without_cuda_and_machines_without_a_driver_are_refused(void **state)
{
	const pid_t pids[] = { 1 };
	struct error reason = { 0 };

	(void)state;
	assert_int_equal(checkpoint_suspend(library(), pids, 1, &reason), CHECKPOINT_REFUSED);
	assert_non_null(strstr(reason.text, "none of its processes uses CUDA"));
	assert_int_equal(checkpoint_suspend("/nowhere/libcuda.so", pids, 1, &reason),
	                 CHECKPOINT_REFUSED);
	assert_non_null(strstr(reason.text, "there is no CUDA driver"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_suspended_is_resumed),
		cmocka_unit_test(a_call_that_was_interrupted_is_finished_by_the_next),
		cmocka_unit_test(what_the_driver_refuses_is_as_before),
		cmocka_unit_test(one_that_is_not_restored_is_lost),
		cmocka_unit_test(processes_without_cuda_and_machines_without_a_driver_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
