/* whatif_command.c - gpu-sim whatif: what is asked, and the answer as a table */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/calendar.h"
#include "base/duration.h"
#include "sim/whatif/whatif.h"
#include "sim/world/options.h"
#include "sim/world/progress.h"

enum { EXIT_USAGE = 2 };

struct whatif_command {
	struct whatif_options options;
	struct whatif_nodes nodes;
	struct whatif_job job;
	bool add, submit, json;
	const char *added, *submitted; /* as they were given */
};

static bool whatif_read_arguments(struct whatif_command *command, int argc, char **argv)
{
	static const struct option table[] = {
		OPTION("--state", NULL, "FILE", "the scheduler: a backup of it, or its database",
		       STORES_TEXT(struct whatif_command, options.state)),
		OPTION("--add-nodes", NULL, "NODESxGPUSxMODEL:GiBG",
		       "nodes to add, such as 2x8xH100:80G",
		       STORES_TEXT(struct whatif_command, added)),
		OPTION(
		    "--submit", NULL, "JOB",
		    "a job to submit, as JSON or KEY=VALUE,...: gpus, memory_gib or fraction (of "
		    "each), tasks, min_available, split_gpus, tenant, priority, gpu_model, "
		    "cpu_cores, preemptible, duration_s, name",
		    STORES_TEXT(struct whatif_command, submitted)),
		OPTION("--unknown", NULL, "HOURS", "taken for jobs without an expected end",
		       STORES_NUMBER(struct whatif_command, options.unknown_ms, 1, 100000),
		       .unit = HOUR_MS),
		OPTION("--horizon", NULL, "HOURS", "how far to look",
		       STORES_NUMBER(struct whatif_command, options.horizon_ms, 1, 100000),
		       .unit = HOUR_MS),
		OPTION("--json", NULL, NULL, "print JSON",
		       STORES_FLAG(struct whatif_command, json)),
		{ 0 },
	};
	struct error error = { 0 };

	if (!options_read(table, argc, argv, command))
		return false;
	command->add = command->added != NULL;
	command->submit = command->submitted != NULL;
	if (command->submit)
		command->options.job = &command->job;
	if (!command->options.state)
		error_set(&error, ERROR_INVALID,
		          "--state says which scheduler: a backup of it, or its database");
	else if ((!command->add || whatif_read_nodes(command->added, &command->nodes, &error)) &&
	         (!command->submit || whatif_read_job(command->submitted, &command->job, &error)))
		return true;
	fprintf(stderr, "gpu-sim: %s\n", error.text);
	return false;
}

/* "1d 2h", "3h 12m", "40s". */
static const char *span(int64_t ms, char *text, size_t size)
{
	long long seconds = (long long)((ms + 999) / 1000);

	if (seconds >= 86400)
		snprintf(text, size, "%lldd %lldh", seconds / 86400, seconds / 3600 % 24);
	else if (seconds >= 3600)
		snprintf(text, size, "%lldh %lldm", seconds / 3600, seconds / 60 % 60);
	else if (seconds >= 60)
		snprintf(text, size, "%lldm %llds", seconds / 60, seconds % 60);
	else
		snprintf(text, size, "%llds", seconds);
	return text;
}

static const char *start_of(const struct whatif_result *result, char *text, size_t size)
{
	if (*result->refusal)
		return "refused";
	if (result->start_ms < 0)
		return "not in sight";
	if (result->start_ms == result->now_ms)
		return "now";
	char waits[32];
	snprintf(text, size, "in %s",
	         span(result->start_ms - result->now_ms, waits, sizeof(waits)));
	return text;
}

static void print_row(const char *what, const char *plain, const char *more)
{
	printf("%-28s %-24s %s\n", what, plain, more);
}

static void whatif_print_table(const struct whatif_command *command,
                               const struct whatif_result *plain, const struct whatif_result *more)
{
	char left[64], right[64];

	calendar_write(plain->now_ms * 1000, 0, left);
	printf("%s, as of %s: %lld nodes, %lld GPUs, %lld jobs running, %lld waiting\n\n",
	       command->options.state, left, (long long)plain->nodes, (long long)plain->gpus,
	       (long long)plain->running, (long long)plain->waiting);
	print_row("", "as it is", command->add ? command->added : "");
	if (command->submit) {
		print_row("this job starts", start_of(plain, left, sizeof(left)),
		          command->add ? start_of(more, right, sizeof(right)) : "");
		print_row("on", plain->where, command->add ? more->where : "");
	}
	snprintf(left, sizeof(left), "%lld of %lld", (long long)plain->started,
	         (long long)plain->waiting);
	snprintf(right, sizeof(right), "%lld of %lld", (long long)more->started,
	         (long long)more->waiting);
	print_row("waiting jobs that start", left, command->add ? right : "");
	span(plain->wait_ms, left, sizeof(left));
	span(more->wait_ms, right, sizeof(right));
	print_row("after, on average", left, command->add ? right : "");
}

static void print_notes(const struct whatif_command *command, const struct whatif_result *result,
                        const char *which)
{
	char text[32];

	if (*result->refusal)
		printf("\n%s: the job is refused: %s\n", which, result->refusal);
	if (*result->reason)
		printf("\n%s, after %s:\n%s", which,
		       span(command->options.horizon_ms, text, sizeof(text)), result->reason);
	if (result->guessed > 0)
		printf(
		    "\n%s: nobody knows what %lld jobs take; their time limit, or %s, is assumed\n",
		    which, (long long)result->guessed,
		    span(command->options.unknown_ms, text, sizeof(text)));
}

static json_t *as_json(const struct whatif_result *result)
{
	bool known = result->start_ms >= 0;

	return json_pack(
	    "{s:o, s:s, s:s, s:s, s:I, s:I, s:I, s:I}", "start_in_s",
	    known ? json_integer((result->start_ms - result->now_ms) / 1000) : json_null(), "nodes",
	    result->where, "refusal", result->refusal, "reason", result->reason, "waiting",
	    (json_int_t)result->waiting, "started", (json_int_t)result->started, "mean_wait_s",
	    (json_int_t)(result->wait_ms / 1000), "guessed_durations", (json_int_t)result->guessed);
}

static void whatif_print_json(const struct whatif_command *command,
                              const struct whatif_result *plain, const struct whatif_result *more)
{
	json_t *all = json_object();

	json_object_set_new(all, "now_ms", json_integer(plain->now_ms));
	json_object_set_new(all, "nodes", json_integer(plain->nodes));
	json_object_set_new(all, "gpus", json_integer(plain->gpus));
	json_object_set_new(all, "running", json_integer(plain->running));
	json_object_set_new(all, "as_it_is", as_json(plain));
	if (command->add)
		json_object_set_new(all, "with_added_nodes", as_json(more));
	json_dumpf(all, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(all);
}

static void whatif_tick(void *context, int64_t ms)
{
	progress_add(context, ms);
}

static bool whatif_execute(const struct whatif_command *command, struct whatif_result *plain,
                           struct whatif_result *more, struct error *error)
{
	struct whatif_options options = command->options;
	struct progress progress =
	    progress_begin("whatif", options.horizon_ms * (command->add ? 2 : 1));

	options.tick = whatif_tick;
	options.context = &progress;
	bool fine = whatif_run(&options, NULL, plain, error) &&
	            (!command->add || whatif_run(&options, &command->nodes, more, error));
	progress_end(&progress);
	return fine;
}

static bool whatif_reply(const struct whatif_command *command, struct error *error)
{
	struct whatif_result plain, more = { 0 };

	if (!whatif_execute(command, &plain, &more, error))
		return false;
	if (command->json) {
		whatif_print_json(command, &plain, &more);
		return true;
	}
	whatif_print_table(command, &plain, &more);
	print_notes(command, &plain, "as it is");
	if (command->add)
		print_notes(command, &more, "with more nodes");
	return true;
}

int whatif_main(int argc, char **argv)
{
	struct whatif_command command = { .options = { .unknown_ms = HOUR_MS,
		                                       .horizon_ms = 14 * 24 * HOUR_MS } };
	struct error error = { 0 };
	int status = 0;

	if (!whatif_read_arguments(&command, argc, argv)) {
		status = EXIT_USAGE;
	} else if (!whatif_reply(&command, &error)) {
		fprintf(stderr, "gpu-sim: %s: %s\n", command.options.state, error.text);
		status = 1;
	}
	arena_free(&command.job.arena);
	return status;
}
