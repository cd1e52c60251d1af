/* task_test.c - one budget for all processes of a task, whatever happens to them */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/number.h"
#include "fixture.h"
#include "guard/budget/budget.h"
#include "guard/budget/heir.h"
#include "guard/calls/driver_abi.h"
#include "guard/calls/stash.h"
#include "guard/calls/state.h"
#include "guard/calls/track.h"

/* What parent and children of a test tell each other. */
struct board {
	_Atomic(int) ready; /* children that have done what they were to do first */
	_Atomic(int) go;    /* the step that children may take */
	_Atomic(int64_t) count;
};

static struct board *make_board(void)
{
	struct board *board =
	    mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(board != MAP_FAILED);
	return board;
}

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

/* Waits for a number to be reached; a minute is for ever. */
static void task_wait_for(_Atomic(int) *number, int at_least)
{
	for (int tries = 0; atomic_load(number) < at_least && tries < 60000; tries++)
		sleep_ms(1);
	assert_true(atomic_load(number) >= at_least);
}

/* A child that runs `work` and ends with what it returns. */
static pid_t task_start(struct fixture *fixture, struct board *board,
                        int (*work)(struct fixture *, struct board *, int), int number)
{
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		/* Nobody outlives a parent that gave up. */
		alarm(120);
		fixture_contexts(fixture);
		_exit(work(fixture, board, number));
	}
	return child;
}

static int end_of(pid_t child)
{
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int take_mibs(struct fixture *fixture, struct board *board, int number)
{
	(void)number;
	CUdeviceptr pointer;
	task_wait_for(&board->go, 1);
	for (int device = 0; device < 2; device++) {
		if (DRIVER(cuCtxSetCurrent)(fixture->contexts[device]) != CUDA_SUCCESS)
			return 1;
		while (cuMemAlloc_v2(&pointer, (size_t)MIB) == CUDA_SUCCESS)
			atomic_fetch_add(&board->count, 1);
	}
	atomic_fetch_add(&board->ready, 1);
	task_wait_for(&board->go, 2);
	return 0;
}

static void four_processes_that_race_for_the_last_mib_never_get_more(void **state)
{
	struct fixture *fixture = *state;
	struct board *board = make_board();
	pid_t children[4];
	fixture_limit(fixture, 1, 32 * MIB);
	for (int i = 0; i < 4; i++)
		children[i] = task_start(fixture, board, take_mibs, i);
	atomic_store(&board->go, 1);
	task_wait_for(&board->ready, 4);
	/* To the last MiB, on each of two GPUs, and not one more. */
	assert_int_equal(atomic_load(&board->count), 96);
	assert_int_equal(fixture_used(fixture, 0), 64 * MIB);
	assert_int_equal(fixture_used(fixture, 1), 32 * MIB);
	assert_int_equal(atomic_load(&fixture->standin->peak_bytes[0]), 64 * MIB);
	assert_int_equal(atomic_load(&fixture->standin->peak_bytes[1]), 32 * MIB);
	atomic_store(&board->go, 2);
	for (int i = 0; i < 4; i++)
		assert_int_equal(end_of(children[i]), 0);
	watch_reap(&fixture->watch, NULL, 0);
	assert_int_equal(fixture_used(fixture, 0), 0);
	assert_int_equal(fixture_used(fixture, 1), 0);
	munmap(board, sizeof *board);
}

/* One thing that is allocated at random, and how it is freed. */
struct held {
	int way;
	uint64_t handle;
};
enum { WAYS = 5, HELD_MAX = 16 };

static CUresult take_random(struct held *held, uint64_t *random, CUdevice device)
{
	size_t bytes = (size_t)(1 + random_below(random, (uint64_t)(6 * MIB)));
	CUmemAllocationProp properties = { .type = 1,
		                           .location = { CU_MEM_LOCATION_TYPE_DEVICE, device } };
	CUDA_ARRAY_DESCRIPTOR shape = { 1024, bytes / 4096 + 1, 0x20, 1 };
	held->way = (int)random_below(random, WAYS);
	switch (held->way) {
	case 0:
		return cuMemAlloc_v2((CUdeviceptr *)&held->handle, bytes);
	case 1:
		return cuMemAllocAsync((CUdeviceptr *)&held->handle, bytes, NULL);
	case 2:
		return cuMemCreate((CUmemGenericAllocationHandle *)&held->handle, bytes,
		                   &properties, 0);
	case 3:
		return cuArrayCreate_v2((CUarray *)&held->handle, &shape);
	default:
		return cuMemAllocManaged((CUdeviceptr *)&held->handle, bytes, 1);
	}
}

static CUresult give(const struct held *held)
{
	switch (held->way) {
	case 1:
		return cuMemFreeAsync(held->handle, NULL);
	case 2:
		return cuMemRelease(held->handle);
	case 3:
		return cuArrayDestroy((CUarray)(uintptr_t)held->handle);
	default:
		return cuMemFree_v2(held->handle);
	}
}

/* Allocates and frees at random until it is killed, or told to stop; then frees all. */
static int churn(struct fixture *fixture, struct board *board, int number)
{
	struct held held[HELD_MAX] = { { 0, 0 } };
	uint64_t random = (uint64_t)number;
	while (atomic_load(&board->go) == 0) {
		CUdevice device = (CUdevice)random_below(&random, 2);
		if (DRIVER(cuCtxSetCurrent)(fixture->contexts[device]) != CUDA_SUCCESS)
			return 1;
		struct held *at = &held[random_below(&random, HELD_MAX)];
		if (at->handle != 0) {
			if (give(at) != CUDA_SUCCESS)
				return 2;
			at->handle = 0;
		} else if (take_random(at, &random, device) != CUDA_SUCCESS)
			at->handle = 0;
		if (random_below(&random, 8) == 0)
			cuStreamSynchronize(NULL);
		atomic_fetch_add(&board->count, 1);
	}
	for (int i = 0; i < HELD_MAX; i++) {
		if (held[i].handle != 0 && give(&held[i]) != CUDA_SUCCESS)
			return 3;
	}
	cuStreamSynchronize(NULL);
	return track_count() == 0 ? 0 : 4;
}

/* Stops all children, so that the counters can be read at one moment: the agent reads them
 * without the lock, and a process may free while another allocates. */
static void pause_children(const pid_t *children, int count)
{
	for (int i = 0; i < count; i++) {
		int status;
		kill(children[i], SIGSTOP);
		assert_int_equal(waitpid(children[i], &status, WUNTRACED), children[i]);
		assert_true(WIFSTOPPED(status));
	}
}

static void resume_children(const pid_t *children, int count)
{
	for (int i = 0; i < count; i++)
		kill(children[i], SIGCONT);
}

static void books_return_to_zero_after_10000_allocations_and_kills(void **state)
{
	struct fixture *fixture = *state;
	struct board *board = make_board();
	pid_t children[4];
	int started = 0;
	uint64_t random = 9;
	for (int i = 0; i < 4; i++)
		children[i] = task_start(fixture, board, churn, ++started);
	int kills = 0;
	while (atomic_load(&board->count) < 10000 || kills < 40) {
		sleep_ms((long)random_below(&random, 4));
		int i = (int)random_below(&random, 4);
		kill(children[i], SIGKILL);
		assert_int_equal(end_of(children[i]), 128 + SIGKILL);
		kills++;
		children[i] = children[3];
		/* The limit holds at every moment, dead processes included. */
		pause_children(children, 3);
		assert_true(fixture_used(fixture, 0) <= 64 * MIB);
		assert_true(fixture_used(fixture, 1) <= 64 * MIB);
		resume_children(children, 3);
		children[3] = task_start(fixture, board, churn, ++started);
	}
	atomic_store(&board->go, 1);
	for (int i = 0; i < 4; i++)
		assert_int_equal(end_of(children[i]), 0);
	assert_true(fixture_peak(fixture, 0) <= 64 * MIB);
	assert_true(fixture_peak(fixture, 1) <= 64 * MIB);
	watch_reap(&fixture->watch, NULL, 0);
	assert_int_equal(fixture_used(fixture, 0), 0);
	assert_int_equal(fixture_used(fixture, 1), 0);
	/* This process has a place since it made its contexts. */
	assert_int_equal(watch_process_count(&fixture->watch), 1);
	munmap(board, sizeof *board);
}

static void books_return_to_zero_when_everybody_frees(void **state)
{
	struct fixture *fixture = *state;
	struct board *board = make_board();
	pid_t children[4];
	for (int i = 0; i < 4; i++)
		children[i] = task_start(fixture, board, churn, 100 + i);
	for (int tries = 0; atomic_load(&board->count) < 5000 && tries < 60000; tries++)
		sleep_ms(1);
	atomic_store(&board->go, 1);
	for (int i = 0; i < 4; i++)
		assert_int_equal(end_of(children[i]), 0);
	/* Without anybody having been taken off. */
	assert_int_equal(fixture_used(fixture, 0), 0);
	assert_int_equal(fixture_used(fixture, 1), 0);
	munmap(board, sizeof *board);
}

static int hold_48(struct fixture *fixture, struct board *board, int number)
{
	(void)fixture, (void)number;
	CUdeviceptr pointer;
	if (cuMemAlloc_v2(&pointer, (size_t)(48 * MIB)) != CUDA_SUCCESS)
		return 1;
	atomic_fetch_add(&board->ready, 1);
	task_wait_for(&board->go, 1);
	return 0;
}

static void a_killed_process_gives_back_its_share_when_another_asks(void **state)
{
	struct fixture *fixture = *state;
	struct board *board = make_board();
	CUdeviceptr pointer;
	pid_t child = task_start(fixture, board, hold_48, 0);
	task_wait_for(&board->ready, 1);
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(32 * MIB)), CUDA_ERROR_OUT_OF_MEMORY);
	kill(child, SIGKILL);
	/* A zombie has no memory any more, whether its parent looks after it or not. */
	siginfo_t ended;
	assert_int_equal(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT), 0);
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(32 * MIB)), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 32 * MIB);
	assert_int_equal(end_of(child), 128 + SIGKILL);
	munmap(board, sizeof *board);
}

static void a_killed_process_is_not_shown_as_using_memory(void **state)
{
	struct fixture *fixture = *state;
	struct board *board = make_board();
	size_t free;
	size_t total;
	pid_t child = task_start(fixture, board, hold_48, 0);
	task_wait_for(&board->ready, 1);
	assert_int_equal(cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
	assert_int_equal(free, 16 * MIB);
	kill(child, SIGKILL);
	assert_int_equal(end_of(child), 128 + SIGKILL);
	assert_int_equal(cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
	assert_int_equal(free, 64 * MIB);
	munmap(board, sizeof *board);
}

static void a_child_owns_nothing_of_its_parents_and_shares_the_budget(void **state)
{
	struct fixture *fixture = *state;
	CUdeviceptr pointer;
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(40 * MIB)), CUDA_SUCCESS);
	pid_t child = fork();
	if (child == 0) {
		CUdeviceptr own;
		alarm(60);
		if (track_count() != 0)
			_exit(1);
		fixture_contexts(fixture);
		if (cuMemAlloc_v2(&own, (size_t)(26 * MIB)) != CUDA_ERROR_OUT_OF_MEMORY)
			_exit(2);
		if (cuMemAlloc_v2(&own, (size_t)(24 * MIB)) != CUDA_SUCCESS)
			_exit(3);
		_exit(fixture_used(fixture, 0) == 64 * MIB ? 0 : 4);
	}
	assert_int_equal(end_of(child), 0);
	watch_reap(&fixture->watch, NULL, 0);
	assert_int_equal(fixture_used(fixture, 0), 40 * MIB);
	assert_int_equal(cuMemFree_v2(pointer), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 0);
}

static int leave_a_child(struct fixture *fixture, struct board *board, int number)
{
	(void)fixture, (void)number;
	CUdeviceptr pointer;
	if (cuMemAlloc_v2(&pointer, (size_t)(40 * MIB)) != CUDA_SUCCESS)
		return 1;
	pid_t child = fork();
	if (child == 0) {
		alarm(120);
		/* A child of the child has them, too. */
		if (fork() != 0)
			_exit(0);
		alarm(120);
		atomic_fetch_add(&board->ready, 1);
		while (atomic_load(&board->go) == 0)
			sleep_ms(1);
		_exit(0);
	}
	return waitpid(child, NULL, 0) == child ? 0 : 2;
}

static void memory_stays_charged_while_a_child_has_the_descriptors(void **state)
{
	struct fixture *fixture = *state;
	struct board *board = make_board();
	CUdeviceptr pointer;
	const char *before = heir_files;
	heir_files = fixture->path; /* which is open in all processes of the test */
	pid_t leaver = task_start(fixture, board, leave_a_child, 0);
	assert_int_equal(end_of(leaver), 0);
	task_wait_for(&board->ready, 1);
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(40 * MIB)), CUDA_ERROR_OUT_OF_MEMORY);
	atomic_store(&board->go, 1);
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
	for (int tries = 0; result != CUDA_SUCCESS && tries < 60000; tries++) {
		sleep_ms(1);
		result = cuMemAlloc_v2(&pointer, (size_t)(40 * MIB));
	}
	assert_int_equal(result, CUDA_SUCCESS);
	assert_int_equal(cuMemFree_v2(pointer), CUDA_SUCCESS);
	/* One that has closed them holds nothing. */
	heir_files = "/nowhere";
	atomic_store(&board->go, 0);
	assert_int_equal(end_of(task_start(fixture, board, leave_a_child, 0)), 0);
	task_wait_for(&board->ready, 2);
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(40 * MIB)), CUDA_SUCCESS);
	assert_int_equal(cuMemFree_v2(pointer), CUDA_SUCCESS);
	atomic_store(&board->go, 1);
	heir_files = before;
	munmap(board, sizeof *board);
}

static int die_with_the_lock(struct fixture *fixture, struct board *board, int number)
{
	(void)board, (void)number;
	CUdeviceptr pointer;
	const struct member *member = state_member();
	if (cuMemAlloc_v2(&pointer, (size_t)(8 * MIB)) != CUDA_SUCCESS)
		return 1;
	lock_take(member);
	/* Half done: the process's own charge is recorded, the total is not. */
	segment_set(&member->segment->processes[member->place].charged_bytes[0], 60 * MIB);
	(void)fixture;
	raise(SIGKILL);
	return 2;
}

static void who_dies_with_the_lock_holds_up_nobody(void **state)
{
	struct fixture *fixture = *state;
	struct board *board = make_board();
	CUdeviceptr pointer;
	pid_t child = task_start(fixture, board, die_with_the_lock, 0);
	assert_int_equal(end_of(child), 128 + SIGKILL);
	assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(64 * MIB)), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 64 * MIB);
	assert_int_equal(cuMemFree_v2(pointer), CUDA_SUCCESS);
	assert_int_equal(fixture_used(fixture, 0), 0);
	munmap(board, sizeof *board);
}

static struct fixture *threads_fixture;

static void *allocate_until_told(void *data)
{
	struct board *board = data;
	uint64_t random = (uint64_t)atomic_fetch_add(&board->count, 1);
	struct held held = { 0, 0 };
	DRIVER(cuCtxSetCurrent)(threads_fixture->contexts[0]);
	while (atomic_load(&board->go) == 0) {
		if (take_random(&held, &random, 0) == CUDA_SUCCESS)
			(void)give(&held);
	}
	return NULL;
}

static void forking_while_threads_allocate_leaves_a_child_that_works(void **state)
{
	struct fixture *fixture = *state;
	struct board *board = make_board();
	pthread_t threads[2];
	threads_fixture = fixture;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, allocate_until_told, board), 0);
	for (int round = 0; round < 20; round++) {
		pid_t child = fork();
		if (child == 0) {
			alarm(60);
			/* The driver's own lock may be held in the child: ask the guard only. */
			_exit(state_member() != NULL && track_count() == 0 ? 0 : 1);
		}
		assert_int_equal(end_of(child), 0);
	}
	atomic_store(&board->go, 1);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	cuStreamSynchronize(NULL);
	watch_reap(&fixture->watch, NULL, 0);
	assert_int_equal(fixture_used(fixture, 0), 0);
	munmap(board, sizeof *board);
}

/* What was exported, and how. */
struct exported {
	bool ipc;
	CUipcMemHandle handle;
	int file;
};
static struct exported exported;

static int import(struct fixture *fixture, struct board *board, int number)
{
	(void)fixture, (void)number;
	CUdeviceptr pointer = 0x30000000000;
	CUmemGenericAllocationHandle handle;
	if (exported.ipc) {
		if (cuIpcOpenMemHandle_v2(&pointer, exported.handle, 1) != CUDA_SUCCESS)
			return 1;
	} else if (cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)exported.file, 1) !=
	               CUDA_SUCCESS ||
	           cuMemMap(pointer, (size_t)(40 * MIB), 0, handle, 0) != CUDA_SUCCESS ||
	           cuMemRelease(handle) != CUDA_SUCCESS)
		return 2;
	atomic_fetch_add(&board->ready, 1);
	task_wait_for(&board->go, number + 1);
	CUresult result =
	    exported.ipc ? cuIpcCloseMemHandle(pointer) : cuMemUnmap(pointer, (size_t)(40 * MIB));
	return result == CUDA_SUCCESS ? 0 : 3;
}

static void what_the_processes_of_a_task_share_counts_once(void **state)
{
	struct fixture *fixture = *state;
	for (int ipc = 0; ipc < 2; ipc++) {
		struct board *board = make_board();
		CUdeviceptr pointer = 0;
		CUmemGenericAllocationHandle handle = 0;
		CUmemAllocationProp properties = { .type = 1,
			                           .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
		exported.ipc = ipc != 0;
		if (ipc) {
			assert_int_equal(cuMemAlloc_v2(&pointer, (size_t)(40 * MIB)), CUDA_SUCCESS);
			assert_int_equal(cuIpcGetMemHandle(&exported.handle, pointer),
			                 CUDA_SUCCESS);
		} else {
			assert_int_equal(cuMemCreate(&handle, (size_t)(40 * MIB), &properties, 0),
			                 CUDA_SUCCESS);
			assert_int_equal(cuMemExportToShareableHandle(&exported.file, handle, 1, 0),
			                 CUDA_SUCCESS);
		}
		pid_t children[3];
		for (int i = 0; i < 3; i++)
			children[i] = task_start(fixture, board, import, i);
		task_wait_for(&board->ready, 3);
		assert_int_equal(fixture_used(fixture, 0), 40 * MIB);
		/* It stays as long as anybody holds it, whoever goes first. */
		assert_int_equal(ipc ? cuMemFree_v2(pointer) : cuMemRelease(handle), CUDA_SUCCESS);
		assert_int_equal(fixture_used(fixture, 0), 40 * MIB);
		atomic_store(&board->go, 1);
		assert_int_equal(end_of(children[0]), 0);
		assert_int_equal(fixture_used(fixture, 0), 40 * MIB);
		kill(children[1], SIGKILL);
		assert_int_equal(end_of(children[1]), 128 + SIGKILL);
		watch_reap(&fixture->watch, NULL, 0);
		assert_int_equal(fixture_used(fixture, 0), 40 * MIB);
		atomic_store(&board->go, 3);
		assert_int_equal(end_of(children[2]), 0);
		/* A descriptor holds it, too. */
		if (!ipc) {
			assert_int_equal(fixture_used(fixture, 0), 40 * MIB);
			close(exported.file);
			stash_sweep();
		}
		assert_int_equal(fixture_used(fixture, 0), 0);
		munmap(board, sizeof *board);
	}
}

static void what_another_task_shares_counts_here_too(void **state)
{
	struct fixture *fixture = *state;
	CUmemGenericAllocationHandle handle;
	unsigned char fabric[64];
	CUmemAllocationProp properties = { .type = 1,
		                           .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	/* Made where this task's guard does not see it. */
	state_attach(NULL, NULL);
	assert_int_equal(cuMemCreate(&handle, (size_t)(40 * MIB), &properties, 0), CUDA_SUCCESS);
	assert_int_equal(cuMemExportToShareableHandle(fabric, handle, CU_MEM_HANDLE_TYPE_FABRIC, 0),
	                 CUDA_SUCCESS);
	state_attach(fixture->path, NULL);
	CUmemGenericAllocationHandle imported[2];
	CUdeviceptr address = 0x30000000000;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
		    cuMemImportFromShareableHandle(&imported[i], fabric, CU_MEM_HANDLE_TYPE_FABRIC),
		    CUDA_SUCCESS);
		assert_int_equal(cuMemMap(address + (CUdeviceptr)(i * 64 * MIB), (size_t)(40 * MIB),
		                          0, imported[i], 0),
		                 CUDA_SUCCESS);
		/* Memory that is imported twice is charged once. */
		assert_int_equal(fixture_used(fixture, 0), 40 * MIB);
	}
	fixture_limit(fixture, 0, 32 * MIB);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
		    cuMemUnmap(address + (CUdeviceptr)(i * 64 * MIB), (size_t)(40 * MIB)),
		    CUDA_SUCCESS);
		assert_int_equal(cuMemRelease(imported[i]), CUDA_SUCCESS);
	}
	assert_int_equal(fixture_used(fixture, 0), 0);
	assert_int_equal(
	    cuMemImportFromShareableHandle(&imported[0], fabric, CU_MEM_HANDLE_TYPE_FABRIC),
	    CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(fixture_used(fixture, 0), 0);
	assert_int_equal(fixture_refusals(fixture, 0), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_begin, fixture_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(four_processes_that_race_for_the_last_mib_never_get_more),
		TEST(books_return_to_zero_after_10000_allocations_and_kills),
		TEST(books_return_to_zero_when_everybody_frees),
		TEST(a_killed_process_gives_back_its_share_when_another_asks),
		TEST(a_killed_process_is_not_shown_as_using_memory),
		TEST(a_child_owns_nothing_of_its_parents_and_shares_the_budget),
		TEST(memory_stays_charged_while_a_child_has_the_descriptors),
		TEST(who_dies_with_the_lock_holds_up_nobody),
		TEST(forking_while_threads_allocate_leaves_a_child_that_works),
		TEST(what_the_processes_of_a_task_share_counts_once),
		TEST(what_another_task_shares_counts_here_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
