/* property_test.c - random commands, and what must always hold: [COMMANDS [SEED [-v|-vv]]] */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/test/property_drain.h"
#include "core/test/property_generator.h"
#include "core/test/property_liar.h"
#include "core/test/property_random.h"
#include "core/test/property_run.h"

#define STRETCH 20000 /* commands of one flavour, before everything is drained */

/* What runs, so that a panic can tell how to see it again. */
static struct {
	const struct run *run;
	unsigned long long seed;
} current;

/* It is abort() that raises the signal, in no other function's midst.
 * NOLINTBEGIN(bugprone-signal-handler) */
static void property_tell(void)
{
	const struct run *run = current.run;

	if (!run)
		return;
	current.run = NULL;
	fprintf(stderr, "seed %llu, command %lld. The last commands were:\n", current.seed,
	        (long long)run->number);
	run_print_past(run);
	fflush(stdout);
}

static void stop_on_signal(int number)
{
	(void)number;
	property_tell();
	_exit(1);
}
/* NOLINTEND(bugprone-signal-handler) */

/* Called by the address sanitizer before it reports. */
void __asan_on_error(void);
void __asan_on_error(void)
{
	property_tell();
}

static bool has_more(const struct effects *effects)
{
	for (size_t i = 0; i < effects->count; i++)
		if (effects->at[i].kind == EFFECT_MORE)
			return true;
	return false;
}

static void drive(struct run *run, struct generator *generator, const struct command *command)
{
	bool applied = run_command(run, command);

	if (!applied || command->kind != COMMAND_PASS || has_more(&run->effects))
		return;
	if (chance(&generator->random, run->number < 20000 ? 25 : 3))
		run_nothing(run, command);
}

static void populate(struct run *run, struct generator *generator)
{
	struct command command = generator_config(generator);

	run_command(run, &command);
	while (keeper_tenant_count(&run->keeper) < 4) {
		command = generator_tenant(generator, NULL);
		run_command(run, &command);
	}
	for (size_t i = 0; i < keeper_tenant_count(&run->keeper); i++) {
		command = generator_tenant(generator, keeper_tenant(&run->keeper, i));
		run_command(run, &command);
	}
	for (int64_t i = 0; i < generator->flavour.models / 2; i++) {
		command = generator_model(generator, NULL);
		run_command(run, &command);
	}
}

static void run_all(struct run *run, struct generator *generator, int64_t commands)
{
	while (run->number < commands) {
		int64_t end = min64(run->number + STRETCH, commands);
		populate(run, generator);
		while (run->number < end) {
			struct command command = generator_next(generator);
			drive(run, generator, &command);
			if (rarely(&generator->random, 8))
				liar_speaks(run, generator);
		}
		drain(run, generator);
		generator_turn(generator);
	}
}

static void print_summary(const struct run *run)
{
	const struct bustle *bustle = &run->bustle;
	int64_t samples = max64(bustle->samples, 1);

	printf("%lld commands: %lld refused, %lld starts and loads, %lld cores loaded, %lld "
	       "restarts, digest %016llx\n",
	       (long long)run->number, (long long)run->refused, (long long)run->granted,
	       (long long)run->loads, (long long)run->restarts, (unsigned long long)run->digest);
	printf("%lld requests served, %lld refused, %lld expired, %lld that lost their slot\n",
	       (long long)run->router.granted, (long long)run->router.refused,
	       (long long)run->router.expired, (long long)run->router.moved);
	printf(
	    "on average %lld jobs waiting, %lld rights, %lld claims, %lld%% of GPU memory given\n",
	    (long long)(bustle->waiting / samples), (long long)(bustle->rights / samples),
	    (long long)(bustle->claims / samples),
	    (long long)(100 * bustle->used_mib / max64(bustle->capacity_mib, 1)));
}

int main(int argc, char **argv)
{
	int64_t commands = argc > 1 ? strtoll(argv[1], NULL, 10) : 1000000;
	unsigned long long seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	int verbose =
	    argc > 3 ? (strcmp(argv[3], "-v") == 0) + 2 * (strcmp(argv[3], "-vv") == 0) : 0;
	struct generator generator;
	struct run run;

	if (commands <= 0 || argc > 4 || (argc == 4 && verbose == 0)) {
		fprintf(stderr, "usage: %s [COMMANDS [SEED [-v|-vv]]]\n", argv[0]);
		return 2;
	}
	signal(SIGABRT, stop_on_signal);
	run_init(&run, verbose);
	generator_init(&generator, seed, &run.keeper, &run.router);
	current.run = &run;
	current.seed = seed;
	run_all(&run, &generator, commands);
	current.run = NULL;
	print_summary(&run);
	generator_free(&generator);
	run_free(&run);
	return 0;
}
