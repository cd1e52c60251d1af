/* chaos_command.c - gpu-sim chaos: many seeds, each in a process of its own, and short versions */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "sim/chaos/chaos.h"
#include "sim/world/options.h"

enum { EXIT_USAGE = 2 };

struct chaos_command {
	const struct chaos_kind *kind;
	struct chaos_options options;
	int64_t seeds, failed;
	bool shrink, json, seeded;
	struct chaos_result *shared; /* written by the process that runs a seed */
	struct chaos_result total;
	json_t *failures;
};

static bool read_classes(const struct chaos_kind *kind, const char *list, uint32_t *mask)
{
	while (*list) {
		size_t size = strcspn(list, ",");
		int found = -1;
		for (int i = 0; i < kind->class_count; i++)
			if (strlen(kind->classes[i]) == size &&
			    strncmp(kind->classes[i], list, size) == 0)
				found = i;
		if (found < 0) {
			fprintf(stderr, "gpu-sim: there is no class of faults '%.*s'; there are",
			        (int)size, list);
			for (int i = 0; i < kind->class_count; i++)
				fprintf(stderr, " %s", kind->classes[i]);
			fputc('\n', stderr);
			return false;
		}
		*mask |= 1U << found;
		list += size + (list[size] == ',');
	}
	return true;
}

/* What a table of options can fill in. */
struct chaos_arguments {
	int64_t seed, seeds, steps;
	const char *without;
	bool shrink, json, verbose, kubernetes;
};

static bool chaos_read_arguments(struct chaos_command *command, int argc, char **argv)
{
	static const struct option table[] = {
		OPTION("--seed", NULL, "S", "the first seed; 1",
		       STORES_NUMBER(struct chaos_arguments, seed, 0, INT64_MAX)),
		OPTION("--seeds", NULL, "K", "how many seeds; 1",
		       STORES_NUMBER(struct chaos_arguments, seeds, 1, INT64_MAX)),
		OPTION("--steps", NULL, "N", "steps of a seed; 20000",
		       STORES_NUMBER(struct chaos_arguments, steps, 0, INT64_MAX)),
		OPTION("--without", NULL, "CLASS,...", "classes of faults to leave out",
		       STORES_TEXT(struct chaos_arguments, without)),
		OPTION("--kubernetes", NULL, NULL,
		       "pods behind an API server that fails, instead of nodes with agents",
		       STORES_FLAG(struct chaos_arguments, kubernetes)),
		OPTION("--shrink", NULL, NULL, "look for a shorter run that fails the same way",
		       STORES_FLAG(struct chaos_arguments, shrink)),
		OPTION("--json", NULL, NULL, "print JSON",
		       STORES_FLAG(struct chaos_arguments, json)),
		OPTION("--verbose", "-v", NULL, "print what happens",
		       STORES_FLAG(struct chaos_arguments, verbose)),
		{ 0 },
	};
	struct chaos_arguments given = { .seed = -1,
		                         .seeds = command->seeds,
		                         .steps = command->options.steps };

	if (!options_read(table, argc, argv, &given))
		return false;
	command->kind += given.kubernetes;
	if (given.without && !read_classes(command->kind, given.without, &command->options.without))
		return false;
	command->seeded = given.seed >= 0;
	if (command->seeded)
		command->options.seed = (uint64_t)given.seed;
	command->seeds = given.seeds;
	command->options.steps = given.steps;
	command->shrink = given.shrink;
	command->json = given.json;
	command->options.verbose = given.verbose;
	return true;
}

/* The sentence with which the program ended itself. */
static void read_panic(FILE *said, int status, struct chaos_result *result)
{
	char line[400];

	snprintf(result->invariant, sizeof(result->invariant), "books");
	snprintf(result->message, sizeof(result->message), "the program ended with status %d",
	         status);
	rewind(said);
	while (fgets(line, sizeof(line), said)) {
		line[strcspn(line, "\n")] = 0;
		if (strncmp(line, "panic: ", 7) == 0 || strstr(line, "ERROR: ") ||
		    strstr(line, "runtime error"))
			snprintf(result->message, sizeof(result->message), "%.390s", line);
	}
}

static void be_child(const struct chaos_command *command, const struct chaos_options *options,
                     FILE *said)
{
	if (!options->verbose)
		dup2(fileno(said), STDERR_FILENO);
	command->kind->run(options, command->shared);
	_exit(0);
}

/* One seed, in a process of its own: one that ends itself has failed like any other. */
static void run_seed(struct chaos_command *command, const struct chaos_options *options)
{
	FILE *said = tmpfile();
	int status = 0;

	if (!said)
		panic("no temporary file can be made: %s", strerror(errno));
	fflush(stdout);
	pid_t child = fork();
	if (child < 0)
		panic("no process can be started: %s", strerror(errno));
	if (child == 0)
		be_child(command, options, said);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			panic("a process cannot be waited for: %s", strerror(errno));
	if (status != 0)
		read_panic(said, status, command->shared);
	fclose(said);
}

static void print_again(const struct chaos_command *command, const struct chaos_options *options)
{
	const char *before = " --without ";

	printf("gpu-sim chaos%s --seed %llu --steps %lld", command->kind->option,
	       (unsigned long long)options->seed, (long long)options->steps);
	for (int i = 0; i < command->kind->class_count; i++) {
		if (!(options->without & (1U << i)))
			continue;
		printf("%s%s", before, command->kind->classes[i]);
		before = ",";
	}
	printf("\n");
}

static void print_failure(const struct chaos_command *command, const struct chaos_options *options,
                          const struct chaos_result *result)
{
	int64_t first = result->last_count > CHAOS_LAST ? result->last_count - CHAOS_LAST : 0;

	printf("seed %llu, step %lld, invariant '%s': %s\n", (unsigned long long)options->seed,
	       (long long)result->step, result->invariant, result->message);
	for (int64_t i = first; i < result->last_count; i++)
		printf("  %s\n", result->last[i % CHAOS_LAST]);
	printf("again: ");
	print_again(command, options);
}

/* True if it fails in the same way; then it need not be longer than that. */
static bool still_fails(struct chaos_command *command, struct chaos_options *options,
                        struct chaos_result *found)
{
	run_seed(command, options);
	if (strcmp(command->shared->invariant, found->invariant) != 0)
		return false;
	*found = *command->shared;
	if (found->step < options->steps)
		options->steps = found->step;
	return true;
}

/* Fewer steps first, then one class of faults after the other is left out. */
static void shrink(struct chaos_command *command, struct chaos_options *options,
                   struct chaos_result *found)
{
	struct chaos_options tried = *options;

	for (int64_t cut = options->steps / 2; cut > 0; cut /= 2) {
		tried = *options;
		tried.steps -= cut;
		while (tried.steps > 0 && still_fails(command, &tried, found)) {
			*options = tried;
			tried.steps -= cut;
		}
	}
	for (int i = 0; i < command->kind->class_count; i++) {
		tried = *options;
		tried.without |= 1U << i;
		if (tried.without != options->without && still_fails(command, &tried, found))
			*options = tried;
	}
}

static void chaos_add_up(struct chaos_result *total, const struct chaos_result *result)
{
	total->step += result->step;
	total->now_ms += result->now_ms;
	total->nodes += result->nodes;
	total->gpus += result->gpus;
	total->jobs += result->jobs;
	total->starts += result->starts;
	total->ends += result->ends;
	total->releases += result->releases;
	total->requests += result->requests;
	total->crashes += result->crashes;
	total->takeovers += result->takeovers;
	total->lost += result->lost;
	total->moves += result->moves;
	total->moves_lost += result->moves_lost;
}

static void keep_failure(struct chaos_command *command, const struct chaos_options *options,
                         const struct chaos_result *result)
{
	json_t *classes = json_array();

	for (int i = 0; i < command->kind->class_count; i++)
		if (options->without & (1U << i))
			json_array_append_new(classes, json_string(command->kind->classes[i]));
	json_array_append_new(
	    command->failures,
	    json_pack("{s:I, s:I, s:I, s:s, s:s, s:o}", "seed", (json_int_t)options->seed, "steps",
	              (json_int_t)options->steps, "step", (json_int_t)result->step, "invariant",
	              result->invariant, "message", result->message, "without", classes));
}

static void try_seed(struct chaos_command *command, uint64_t seed)
{
	struct chaos_options options = command->options;

	options.seed = seed;
	run_seed(command, &options);
	chaos_add_up(&command->total, command->shared);
	if (command->shared->invariant[0] == 0)
		return;
	command->failed++;
	struct chaos_result found = *command->shared;
	if (command->shrink)
		shrink(command, &options, &found);
	keep_failure(command, &options, &found);
	if (!command->json)
		print_failure(command, &options, &found);
}

static void print_progress(const struct chaos_command *command, int64_t done)
{
	if (isatty(STDERR_FILENO) && !command->options.verbose)
		fprintf(stderr, "\r%lld of %lld seeds, %lld failed%s", (long long)done,
		        (long long)command->seeds, (long long)command->failed,
		        done == command->seeds ? "\n" : "");
}

static void chaos_print_json(const struct chaos_command *command)
{
	const struct chaos_result *total = &command->total;
	json_t *all = json_pack(
	    "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:O}", "seeds",
	    (json_int_t)command->seeds, "failed", (json_int_t)command->failed, "steps",
	    (json_int_t)total->step, "nodes", (json_int_t)total->nodes, "gpus",
	    (json_int_t)total->gpus, "jobs", (json_int_t)total->jobs, "starts",
	    (json_int_t)total->starts, "releases", (json_int_t)total->releases, "requests",
	    (json_int_t)total->requests, "crashes", (json_int_t)total->crashes, "takeovers",
	    (json_int_t)total->takeovers, "messages_lost", (json_int_t)total->lost, "memory_moves",
	    (json_int_t)total->moves, "tasks_lost", (json_int_t)total->moves_lost, "failures",
	    command->failures);

	json_dumpf(all, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(all);
}

static void print_total(const struct chaos_command *command)
{
	const struct chaos_result *total = &command->total;

	printf("%lld seeds, %lld failed: %lld steps, %lld GPUs on %lld nodes, %lld jobs, %lld "
	       "starts, %lld ends, %lld releases, %lld requests, %lld crashes, %lld take-overs, "
	       "%lld messages lost, %lld moves of GPU memory, %lld tasks lost by them\n",
	       (long long)command->seeds, (long long)command->failed, (long long)total->step,
	       (long long)total->gpus, (long long)total->nodes, (long long)total->jobs,
	       (long long)total->starts, (long long)total->ends, (long long)total->releases,
	       (long long)total->requests, (long long)total->crashes, (long long)total->takeovers,
	       (long long)total->lost, (long long)total->moves, (long long)total->moves_lost);
}

int chaos_main(int argc, char **argv, const struct chaos_kind kinds[2])
{
	struct chaos_command command = { .kind = kinds,
		                         .options = { .seed = 1, .steps = 20000 },
		                         .seeds = 1 };

	if (!chaos_read_arguments(&command, argc, argv))
		return EXIT_USAGE;
	command.shared = mmap(NULL, sizeof(*command.shared), PROT_READ | PROT_WRITE,
	                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (command.shared == MAP_FAILED)
		panic("no memory can be shared: %s", strerror(errno));
	command.failures = json_array();
	for (int64_t i = 0; i < command.seeds; i++) {
		try_seed(&command, command.options.seed + (uint64_t)i);
		print_progress(&command, i + 1);
	}
	if (command.json)
		chaos_print_json(&command);
	else
		print_total(&command);
	json_decref(command.failures);
	munmap(command.shared, sizeof(*command.shared));
	return command.failed > 0 ? 1 : 0;
}
