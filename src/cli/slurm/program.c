/* program.c - sbatch, squeue and the others: Slurm's commands in front of this service */
#include "cli/slurm/program.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "slurm/asked.h"
#include "slurm/directive.h"
#include "json/member.h"

static const struct slurm_program *const programs[] = {
	&slurm_sbatch, &slurm_srun,  &slurm_salloc,   &slurm_squeue,  &slurm_scancel,
	&slurm_sinfo,  &slurm_sacct, &slurm_scontrol, &slurm_sreport, NULL,
};

static const struct option common_options[] = {
	OPTION("--help", NULL, NULL, "show this help"),
	OPTION("--usage", NULL, NULL, NULL),
	OPTION("--version", "-V", NULL, "show the version"),
	OPTION("--server", NULL, "URL", "address of the scheduler"),
	OPTION("--context", NULL, "NAME", "context of gpu-cli"),
	OPTION("--token-file", NULL, "FILE", NULL),
	OPTION("--ca", NULL, "FILE", NULL),
	{ 0 },
};

static const struct slurm_program *program_find(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	for (const struct slurm_program *const *program = programs; *program; program++)
		if (strcmp((*program)->name, name) == 0)
			return *program;
	return NULL;
}

static void print_help(const struct slurm_program *program)
{
	printf("usage: %s %s\n%s.\n\n", program->name, program->usage, program->summary);
	options_print(stdout, program->options);
	if (program->submits)
		options_print(stdout, slurm_job_options);
	options_print(stdout, common_options);
	if (program->notes)
		printf("\n%s", program->notes);
}

static int print_usage(FILE *to)
{
	fputs("usage: gpu-slurm COMMAND [ARGUMENT...]\n"
	      "Slurm's commands for gpu-scheduler; also found by the names themselves:\n",
	      to);
	for (const struct slurm_program *const *program = programs; *program; program++)
		fprintf(to, "  %-10s %s\n", (*program)->name, (*program)->summary);
	return to == stdout ? 0 : 1;
}

int slurm_fail(const struct slurm_call *call, const char *format, ...)
{
	va_list arguments;
	fprintf(stderr, "%s: error: ", call->program->name);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	return 1;
}

bool slurm_open(struct slurm_call *call)
{
	struct error error = { 0 };
	call->is_open = session_open_quietly(&call->session, &call->arguments, &error);
	if (!call->is_open)
		slurm_fail(call, "%s", error.text);
	return call->is_open;
}

const char *slurm_option(const struct slurm_call *call, const char *name)
{
	const char *value = NULL;
	size_t at = 0;
	for (const char *next; (next = arguments_next(&call->arguments, name, &at));)
		value = next;
	return value;
}

bool slurm_given(const struct slurm_call *call, const char *name)
{
	return arguments_has(&call->arguments, name);
}

int slurm_print(struct buffer *text)
{
	size_t size = text->size;
	bool good = size == 0 || fwrite(text->data, 1, size, stdout) == size;
	buffer_free(text);
	return good && fflush(stdout) == 0 ? 0 : 1;
}

bool slurm_in_list(const char *list, const char *word)
{
	if (!list)
		return true;
	for (const char *at = list; *at;) {
		size_t size = strcspn(at, ",");
		if (strlen(word) == size && strncasecmp(at, word, size) == 0)
			return true;
		at += size + (at[size] == ',');
	}
	return false;
}

const char *slurm_tenant(struct slurm_call *call)
{
	const char *account = slurm_option(call, "--account");
	if (account)
		return account;
	return call->session.tenant ? call->session.tenant : "";
}

/* The jobs in one state, appended. */
static bool add_jobs(struct slurm_call *call, json_t *all, const char *state, size_t size,
                     size_t most)
{
	struct error error = { 0 };
	struct buffer query = { 0 };
	const char *account = slurm_option(call, "--account");
	buffer_print(&query, "sort=submitted_at&state=%.*s", (int)size, state);
	if (account && !strchr(account, ',')) {
		buffer_text(&query, "&tenant_id=");
		client_escape(&query, account);
	}
	json_t *found = session_list(&call->session, "/api/v1/jobs", query.data, "jobs",
	                             most - json_array_size(all), &error);
	buffer_free(&query);
	if (!found) {
		slurm_fail(call, "%s", error.text);
		return false;
	}
	json_array_extend(all, found);
	json_decref(found);
	return true;
}

static int compare_jobs(const void *a, const void *b)
{
	long long first = atoll(member_text(*(json_t *const *)a, "id") + strlen("job-"));
	long long second = atoll(member_text(*(json_t *const *)b, "id") + strlen("job-"));
	return (first > second) - (first < second);
}

/* Sorts jobs by number; takes the array. */
static json_t *sort_jobs(json_t *jobs)
{
	size_t count = json_array_size(jobs), place;
	json_t *job, *sorted = json_array();
	json_t **list = calloc(count + 1, sizeof(json_t *));
	json_array_foreach(jobs, place, job) list[place] = job;
	qsort(list, count, sizeof(json_t *), compare_jobs);
	for (size_t i = 0; i < count; i++)
		json_array_append(sorted, list[i]);
	free(list);
	json_decref(jobs);
	return sorted;
}

void slurm_print_date(struct buffer *to)
{
	char text[64];
	time_t now = (time_t)(clock_unix_ms() / 1000);
	struct tm day;
	if (localtime_r(&now, &day) &&
	    strftime(text, sizeof(text), "%a %b %d %H:%M:%S %Y", &day) > 0)
		buffer_print(to, "%s\n", text);
}

json_t *slurm_jobs(struct slurm_call *call, const char *states, size_t most)
{
	json_t *all = json_array();
	for (const char *at = states; *at && json_array_size(all) < most;) {
		size_t size = strcspn(at, ",");
		if (!add_jobs(call, all, at, size, most)) {
			json_decref(all);
			return NULL;
		}
		at += size + (at[size] == ',');
	}
	return sort_jobs(all);
}

static const struct slurm_program *reading;

static bool option_takes_value(const char *option)
{
	const struct option *const sets[] = { reading->options, common_options };
	for (size_t i = 0; i < 2; i++)
		for (const struct option *at = sets[i]; at->name; at++)
			if (strcmp(at->name, option) == 0 ||
			    (at->letter && strcmp(at->letter, option) == 0))
				return at->value;
	return reading->submits && slurm_takes_value(NULL, option);
}

static int slurm_run(const struct slurm_program *program, char **words)
{
	struct slurm_call call = { .program = program };
	struct arena arena = { 0 };
	struct error error = { 0 };
	const struct option *sets[] = { program->options, common_options, slurm_job_options };
	int count, status;
	reading = program;
	char **split = slurm_split_letters(&count, words, option_takes_value, &arena);
	if (!arguments_read(&call.arguments, sets, program->submits ? 3 : 2, program->runs, count,
	                    split, &error)) {
		status = slurm_fail(&call, "%s", error.text);
		fprintf(stderr, "Try \"%s --help\" for more information\n", program->name);
	} else if (slurm_given(&call, "--help") || slurm_given(&call, "--usage")) {
		print_help(program);
		status = 0;
	} else if (slurm_given(&call, "--version")) {
		printf("gpu-scheduler %s\n", GPU_SCHEDULER_VERSION);
		status = 0;
	} else {
		status = program->run(&call);
	}
	if (call.is_open)
		session_close(&call.session);
	arguments_free(&call.arguments);
	arena_free(&arena);
	return status;
}

int slurm_main(int argc, char **argv)
{
	const struct slurm_program *program = argc > 0 ? program_find(argv[0]) : NULL;
	if (program)
		return slurm_run(program, argv + 1);
	if (argc < 2)
		return print_usage(stderr);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return print_usage(stdout);
	program = program_find(argv[1]);
	if (program)
		return slurm_run(program, argv + 2);
	fprintf(stderr, "gpu-slurm: no command '%.80s'\n", argv[1]);
	return print_usage(stderr);
}
