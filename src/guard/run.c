/* run.c - gpu-guard-run: runs a command under the guard, with budgets of GPU memory */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/options.h"
#include "guard/budget/size.h"
#include "guard/budget/uuid.h"
#include "guard/budget/watch.h"
#include "guard/guard.h"

enum { LIMITS_MAX = SEGMENT_GPUS_MAX, PATH_TEXT_MAX = 4096 };

enum { STATUS_FAILED = 125 };

struct limit {
	uint8_t uuid[16];
	int64_t bytes;
};

struct options {
	struct limit limits[LIMITS_MAX];
	int limit_count;
	int64_t others_bytes; /* -1: not given */
	int64_t context_bytes;
	const char *segment, *library, *json, *show;
	bool quiet, help;
	char **command;
};

static bool read_limit(struct options *options, const char *text, struct error *error)
{
	const char *equals = strchr(text, '=');
	int64_t bytes;
	if (!size_parse(equals != NULL ? equals + 1 : text, &bytes))
		return error_set(error, ERROR_INVALID,
		                 "--limit %s: a size is a number with K, M, G or T, as in 20G",
		                 text);
	if (equals == NULL) {
		options->others_bytes = bytes;
		return true;
	}
	char uuid[UUID_TEXT_MAX] = "";
	if (options->limit_count == LIMITS_MAX)
		return error_set(error, ERROR_INVALID, "--limit: at most %d GPUs", LIMITS_MAX);
	if (equals - text >= UUID_TEXT_MAX ||
	    !uuid_parse(memcpy(uuid, text, (size_t)(equals - text)),
	                options->limits[options->limit_count].uuid))
		return error_set(error, ERROR_INVALID,
		                 "--limit %s: before the = is the UUID of a GPU, as nvidia-smi -L "
		                 "shows it",
		                 text);
	options->limits[options->limit_count++].bytes = bytes;
	return true;
}

static const struct option table[] = {
	OPTION("--limit", NULL, "SIZE", "on each GPU: 20G, 512M, ...", .repeats = true),
	OPTION("--limit", NULL, "UUID=SIZE",
	       "on the GPU of that UUID (nvidia-smi -L); GPUs that are not named then give "
	       "nothing",
	       .repeats = true),
	OPTION("--context", NULL, "SIZE", "what a CUDA context is expected to take; 0"),
	OPTION("--segment", NULL, "FILE",
	       "where the accounting is kept while it runs, for --show; must not exist. A file "
	       "in /dev/shm",
	       STORES_TEXT(struct options, segment)),
	OPTION("--library", NULL, "FILE", "the guard; ../lib/libgpuguard.so from this program",
	       STORES_TEXT(struct options, library)),
	OPTION("--json", NULL, "FILE", "write the numbers there, too",
	       STORES_TEXT(struct options, json)),
	OPTION("--quiet", NULL, NULL, "print nothing", STORES_FLAG(struct options, quiet)),
	OPTION("--show", NULL, "FILE", "only show the accounting of a running command",
	       STORES_TEXT(struct options, show)),
	OPTION("--help", "-h", NULL, "print this", STORES_FLAG(struct options, help)),
	{ 0 },
};

static void print_help(FILE *to)
{
	fputs("usage: gpu-guard-run --limit SIZE COMMAND [ARGUMENT...]\n"
	      "       gpu-guard-run --limit UUID=SIZE [--limit UUID=SIZE...] COMMAND...\n"
	      "       gpu-guard-run --show SEGMENT\n"
	      "\n"
	      "Runs a command that can take so much memory of a GPU, all its processes\n"
	      "together, and no more: allocations beyond it fail as out of memory. Says in the\n"
	      "end how much the command used.\n\n",
	      to);
	options_print(to, table);
	fputs("\nExits as the command does; with 125 if it could not be started under the guard.\n",
	      to);
}

static bool read_sizes(struct options *options, const struct arguments *arguments,
                       struct error *error)
{
	const char *context = arguments_value(arguments, "--context"), *limit;
	size_t at = 0;

	while ((limit = arguments_next(arguments, "--limit", &at)))
		if (!read_limit(options, limit, error))
			return false;
	return !context || size_parse(context, &options->context_bytes) ||
	       error_set(error, ERROR_INVALID, "--context %s is not a size", context);
}

/* The command and its arguments are the end of argv. */
static bool run_read_options(struct options *options, int argc, char **argv, struct error *error)
{
	const struct option *sets[] = { table };
	struct arguments arguments = { 0 };
	bool done = arguments_read(&arguments, sets, 1, true, argc - 1, argv + 1, error);

	*options = (struct options){ .others_bytes = -1 };
	options->command = argv + argc - arguments.operand_count;
	done = done && arguments_store(&arguments, options, error) &&
	       read_sizes(options, &arguments, error);
	arguments_free(&arguments);
	if (!done || options->help || options->show != NULL)
		return done;
	if (*options->command == NULL)
		return error_set(error, ERROR_INVALID, "there is no command to run");
	if (options->limit_count == 0 && options->others_bytes < 0)
		return error_set(error, ERROR_INVALID, "there is no --limit");
	return true;
}

/* A new file for the counters. */
static bool make_segment(struct watch *watch, const struct options *options,
                         char path[PATH_TEXT_MAX], struct error *error)
{
	if (options->segment != NULL && strlen(options->segment) >= PATH_TEXT_MAX)
		return error_set(error, ERROR_INVALID, "--segment: the name is too long");
	if (options->segment != NULL)
		snprintf(path, PATH_TEXT_MAX, "%s", options->segment);
	else
		snprintf(path, PATH_TEXT_MAX, "/dev/shm/gpu-guard-%ld", (long)getpid());
	if (!watch_create(watch, path, error))
		return false;
	if (options->others_bytes >= 0 &&
	    !watch_set_others(watch, options->others_bytes, options->context_bytes, error))
		return false;
	for (int i = 0; i < options->limit_count; i++) {
		if (!watch_set_limit(watch, options->limits[i].uuid, options->limits[i].bytes,
		                     options->context_bytes, error))
			return false;
	}
	return true;
}

static bool find_library(const struct options *options, char path[PATH_TEXT_MAX],
                         struct error *error)
{
	if (options->library != NULL) {
		if (realpath(options->library, path) == NULL)
			return error_set(error, ERROR_NOT_FOUND, "%s: %s", options->library,
			                 strerror(errno));
		return true;
	}
	char program[PATH_TEXT_MAX];
	ssize_t size = readlink("/proc/self/exe", program, sizeof program - 32);
	char *slash = size > 0 ? memrchr(program, '/', (size_t)size) : NULL;
	if (slash == NULL)
		return error_set(error, ERROR_NOT_FOUND, "this program cannot find itself");
	snprintf(slash, 32, "/../lib/libgpuguard.so");
	if (realpath(program, path) == NULL)
		return error_set(error, ERROR_NOT_FOUND, "%s: %s; --library says where it is",
		                 program, strerror(errno));
	return true;
}

static bool set_environment(const char *segment, const char *library)
{
	char preload[2 * PATH_TEXT_MAX];
	const char *before = getenv("LD_PRELOAD");
	snprintf(preload, sizeof preload, "%s%s%s", library,
	         before != NULL && before[0] != '\0' ? ":" : "", before != NULL ? before : "");
	return setenv("LD_PRELOAD", preload, 1) == 0 &&
	       setenv(GUARD_SEGMENT_VARIABLE, segment, 1) == 0;
}

static volatile pid_t child;

static void pass_on(int signal_number)
{
	if (child > 0)
		kill(child, signal_number);
}

/* Runs the command; its exit status, as a shell would give it. */
static int run_execute(char **command, const char *segment, const char *library)
{
	sigset_t passed_on, before;
	sigemptyset(&passed_on);
	sigaddset(&passed_on, SIGTERM);
	sigaddset(&passed_on, SIGHUP);
	/* What comes before there is someone to pass it on to waits. */
	sigprocmask(SIG_BLOCK, &passed_on, &before);
	child = fork();
	if (child == 0) {
		sigprocmask(SIG_SETMASK, &before, NULL);
		if (set_environment(segment, library))
			execvp(command[0], command);
		fprintf(stderr, "gpu-guard-run: %s: %s\n", command[0], strerror(errno));
		_exit(errno == ENOENT ? 127 : 126);
	}
	if (child < 0) {
		fprintf(stderr, "gpu-guard-run: %s\n", strerror(errno));
		return STATUS_FAILED;
	}
	/* A terminal sends these to the command as well. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGTERM, pass_on);
	signal(SIGHUP, pass_on);
	sigprocmask(SIG_SETMASK, &before, NULL);
	int status;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void run_show(FILE *out, struct watch *watch)
{
	struct watch_gpu gpu;
	fprintf(out, "%-40s  %12s  %12s  %12s  %8s\n", "GPU", "LIMIT", "USED", "PEAK", "REFUSALS");
	for (uint32_t number = 0; watch_gpu(watch, number, &gpu); number++) {
		char uuid[UUID_TEXT_MAX];
		char limit[32];
		char used[32];
		char peak[32];
		uuid_format(gpu.uuid, "GPU-", uuid);
		size_format(gpu.limit_bytes, limit);
		size_format(gpu.used_bytes, used);
		size_format(gpu.peak_bytes, peak);
		fprintf(out, "%-40s  %12s  %12s  %12s  %8" PRId64 "\n", uuid, limit, used, peak,
		        gpu.refusals);
	}
	fprintf(out, "processes under the guard: %d\n", watch_process_count(watch));
}

static bool write_json(const char *path, struct watch *watch)
{
	FILE *out = fopen(path, "w");
	if (out == NULL)
		return false;
	struct watch_gpu gpu;
	fprintf(out, "{\"gpus\": [");
	for (uint32_t number = 0; watch_gpu(watch, number, &gpu); number++) {
		char uuid[UUID_TEXT_MAX];
		uuid_format(gpu.uuid, "GPU-", uuid);
		fprintf(out,
		        "%s{\"uuid\": \"%s\", \"limit_bytes\": %" PRId64
		        ", \"used_bytes\": %" PRId64 ", \"peak_bytes\": %" PRId64
		        ", \"refusals\": %" PRId64 ", \"last_refused_bytes\": %" PRId64 "}",
		        number > 0 ? ", " : "", uuid, gpu.limit_bytes, gpu.used_bytes,
		        gpu.peak_bytes, gpu.refusals, gpu.last_refused_bytes);
	}
	fprintf(out, "], \"processes\": %d}\n", watch_process_count(watch));
	return fclose(out) == 0;
}

static int show_only(const char *path)
{
	struct watch watch;
	struct error error;
	if (!watch_open(&watch, path, &error)) {
		fprintf(stderr, "gpu-guard-run: %s\n", error.text);
		return STATUS_FAILED;
	}
	run_show(stdout, &watch);
	watch_close(&watch);
	return fflush(stdout) == 0 ? 0 : STATUS_FAILED;
}

int main(int argc, char **argv)
{
	struct options options;
	struct error error = { 0 };
	if (!run_read_options(&options, argc, argv, &error)) {
		fprintf(stderr, "gpu-guard-run: %s\n", error.text);
		print_help(stderr);
		return STATUS_FAILED;
	}
	if (options.help) {
		print_help(stdout);
		return fflush(stdout) == 0 ? 0 : STATUS_FAILED;
	}
	if (options.show != NULL)
		return show_only(options.show);
	char segment[PATH_TEXT_MAX];
	char library[PATH_TEXT_MAX];
	struct watch watch = { 0 };
	if (!find_library(&options, library, &error) ||
	    !make_segment(&watch, &options, segment, &error)) {
		fprintf(stderr, "gpu-guard-run: %s\n", error.text);
		return STATUS_FAILED;
	}
	int status = run_execute(options.command, segment, library);
	watch_reap(&watch, NULL, 0);
	if (!options.quiet)
		run_show(stderr, &watch);
	if (options.json != NULL && !write_json(options.json, &watch)) {
		fprintf(stderr, "gpu-guard-run: %s: %s\n", options.json, strerror(errno));
		status = status != 0 ? status : STATUS_FAILED;
	}
	unlink(segment);
	watch_close(&watch);
	return status;
}
