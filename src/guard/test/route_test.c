/* route_test.c - whole programs under the preloaded guard, by each route to the driver */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guard/budget/uuid.h"
#include "guard/budget/watch.h"
#include "guard/guard.h"

#define MIB (INT64_C(1) << 20)
#define PROGRAMS GUARD_BUILD "/test/"
#define LIBRARY GUARD_BUILD "/libgpuguard.so"

struct task {
	struct watch watch;
	char path[64];
};

static int route_begin(void **state)
{
	static int number;
	struct task *task = calloc(1, sizeof *task);
	struct error error;
	uint8_t uuid[16];
	snprintf(task->path, sizeof task->path, "/dev/shm/gpu-guard-route-%ld-%d", (long)getpid(),
	         number++);
	if (!watch_create(&task->watch, task->path, &error))
		fail_msg("%s", error.text);
	assert_true(uuid_parse("GPU-57000000-0000-0000-0000-000000000000", uuid));
	assert_true(watch_set_limit(&task->watch, uuid, 64 * MIB, 0, &error));
	*state = task;
	return 0;
}

static int route_end(void **state)
{
	struct task *task = *state;
	unlink(task->path);
	watch_close(&task->watch);
	free(task);
	return 0;
}

/* Runs a program under the guard (without it, where there is no task), with a variable
 * of the environment; its exit status. */
static int route_execute(const struct task *task, const char *variable, const char *const argv[])
{
	pid_t child = fork();
	if (child == 0) {
		alarm(120);
		/* What the sanitizers of this program preload is not for others. */
		unsetenv("LD_PRELOAD");
		setenv("LD_LIBRARY_PATH", GUARD_BUILD "/test", 1);
		if (variable != NULL)
			setenv(variable, "1", 1);
		if (task != NULL) {
			setenv("LD_PRELOAD", LIBRARY, 1);
			setenv(GUARD_SEGMENT_VARIABLE, task->path, 1);
		}
		execv(argv[0], (char *const *)argv);
		_exit(126);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int route_look_up(const struct task *task, const char *route, const char *mib)
{
	const char *const argv[] = { PROGRAMS "guard_lookup", route, mib, NULL };
	return route_execute(task, strcmp(route, "private") == 0 ? "STANDIN_PRIVATE" : NULL, argv);
}

static struct watch_gpu route_gpu_of(struct task *task)
{
	struct watch_gpu gpu;
	assert_true(watch_gpu(&task->watch, 0, &gpu));
	return gpu;
}

static void each_route_to_the_driver_leads_through_the_guard(void **state)
{
	struct task *task = *state;
	const char *const routes[] = { "dlsym",        "dlvsym",          "default",
		                       "proc_address", "proc_address_v2", "proc_address_of_itself",
		                       "private",      "first_version",   "stream_per_thread",
		                       "opened_again" };
	int64_t refusals = 0;
	for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
		/* Without the guard there is no limit: it is the guard that refuses. */
		int plain = route_look_up(NULL, routes[i], "80");
		int within = route_look_up(task, routes[i], "64");
		int over = route_look_up(task, routes[i], "66");
		if (plain != 0 || within != 0 || over != 2)
			fail_msg("%s: without the guard %d, within the limit %d, over it %d",
			         routes[i], plain, within, over);
		assert_int_equal(route_gpu_of(task).refusals, ++refusals);
		assert_int_equal(route_gpu_of(task).peak_bytes, 64 * MIB);
	}
}

static void a_program_that_is_linked_to_the_driver_is_guarded_before_main(void **state)
{
	struct task *task = *state;
	const char *const over[] = { PROGRAMS "guard_linked", "66", NULL };
	const char *const within[] = { PROGRAMS "guard_linked", "64", NULL };
	assert_int_equal(route_execute(NULL, NULL, over), 0);
	assert_int_equal(route_execute(task, NULL, over), 2);
	assert_int_equal(route_execute(task, NULL, within), 0);
	watch_reap(&task->watch, NULL, 0);
	assert_int_equal(route_gpu_of(task).used_bytes, 0);
	assert_int_equal(route_gpu_of(task).peak_bytes, 64 * MIB);
}

static void exec_gives_back_what_the_program_before_had(void **state)
{
	struct task *task = *state;
	const char *const twice[] = { PROGRAMS "guard_linked", "40", "50", NULL };
	assert_int_equal(route_execute(task, NULL, twice), 0);
	assert_int_equal(route_gpu_of(task).peak_bytes, 50 * MIB);
}

static void programs_that_use_no_gpu_take_no_place(void **state)
{
	struct task *task = *state;
	const char *const other[] = { "/bin/sh", "-c", "exit 7", NULL };
	assert_int_equal(route_execute(task, NULL, other), 7);
	assert_int_equal(watch_process_count(&task->watch), 0);
}

static void a_segment_that_is_none_leaves_the_program_alone(void **state)
{
	struct task *task = *state;
	FILE *file = fopen(task->path, "w");
	assert_non_null(file);
	fputs("nothing that the guard understands", file);
	fclose(file);
	assert_int_equal(route_look_up(task, "dlsym", "80"), 0);
}

static void an_old_c_library_is_enough(void **state)
{
	(void)state;
	/* Containers bring their own C library: a symbol that it does not have would keep
	 * every program in it from starting. */
	FILE *symbols = popen("objdump -T " LIBRARY, "r");
	assert_non_null(symbols);
	char line[512];
	int versions = 0;
	while (fgets(line, sizeof line, symbols) != NULL) {
		int major = 0;
		int minor = 0;
		const char *at = strstr(line, "GLIBC_");
		if (at == NULL || sscanf(at, "GLIBC_%d.%d", &major, &minor) < 2)
			continue;
		versions++;
		if (major != 2 || minor > 17)
			fail_msg("needs a C library later than 2.17: %s", line);
	}
	assert_int_equal(pclose(symbols), 0);
	assert_true(versions > 0);
}

static void nothing_is_exported_but_what_the_guard_stands_in_for(void **state)
{
	(void)state;
	FILE *symbols = popen("nm -D --defined-only " LIBRARY, "r");
	assert_non_null(symbols);
	char line[512];
	int count = 0;
	while (fgets(line, sizeof line, symbols) != NULL) {
		char name[256] = "";
		if (sscanf(line, "%*s %*s %255s", name) != 1)
			continue;
		count++;
		static const char others[] =
		    " dlsym dlvsym dlopen dlmopen execve execvpe execv execvp "
		    "fexecve execveat execl execlp execle posix_spawn "
		    "posix_spawnp system popen ";
		char word[260];
		snprintf(word, sizeof word, " %s ", name);
		if (strncmp(name, "cu", 2) != 0 && strncmp(name, "nvmlDeviceGet", 13) != 0 &&
		    strstr(others, word) == NULL)
			fail_msg("%s can be seen from outside", name);
	}
	assert_int_equal(pclose(symbols), 0);
	assert_true(count > 60);
}

static void threads_that_allocate_and_free_have_no_races(void **state)
{
	(void)state;
	/* The thread sanitizer of some compilers needs addresses that are not random. */
	const char *const argv[] = { PROGRAMS "guard_threads", NULL };
	if (access(argv[0], X_OK) != 0)
		skip();
	personality(ADDR_NO_RANDOMIZE);
	assert_int_equal(route_execute(NULL, NULL, argv), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, route_begin, route_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_route_to_the_driver_leads_through_the_guard),
		TEST(a_program_that_is_linked_to_the_driver_is_guarded_before_main),
		TEST(exec_gives_back_what_the_program_before_had),
		TEST(programs_that_use_no_gpu_take_no_place),
		TEST(a_segment_that_is_none_leaves_the_program_alone),
		cmocka_unit_test(an_old_c_library_is_enough),
		cmocka_unit_test(nothing_is_exported_but_what_the_guard_stands_in_for),
		cmocka_unit_test(threads_that_allocate_and_free_have_no_races),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
