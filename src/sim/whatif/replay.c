/* replay.c - gpu-sim replay: a journal's commands, applied again */
#include "sim/whatif/replay.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/options.h"
#include "core/sched.h"
#include "sim/whatif/recorded.h"
#include "store/journal.h"
#include "store/store.h"

struct replay {
	struct sched *sched;
	struct effects effects;
	struct buffer text;
	int64_t count;
	uint64_t digest;
	struct recorded *recorded; /* NULL: nothing to compare with */
	bool verbose;
};

struct replay_options {
	const char *journal, *from, *compare;
	bool verbose;
};

static void print_step(struct replay *replay, int64_t number, const struct command *command)
{
	buffer_clear(&replay->text);
	buffer_print(&replay->text, "%lld ", (long long)number);
	command_print(&replay->text, command);
	buffer_text(&replay->text, "\n");
	effects_print(&replay->text, &replay->effects);
	fputs(replay->text.data, stdout);
}

static bool replay_apply(void *context, int64_t number, const struct command *command,
                         struct error *error)
{
	struct replay *replay = context;
	struct error reason;
	effects_clear(&replay->effects);
	if (!sched_apply(replay->sched, command, &replay->effects, &reason))
		return error_set(error, ERROR_CONFLICT, "command %lld is refused now: %s",
		                 (long long)number, reason.text);
	if (replay->verbose)
		print_step(replay, number, command);
	if (replay->recorded)
		recorded_compare(replay->recorded, &replay->effects);
	buffer_clear(&replay->text);
	effects_encode(&replay->text, &replay->effects);
	replay->digest =
	    hash_combine(replay->digest, hash_bytes(replay->text.data, replay->text.size));
	replay->count++;
	return true;
}

/* The core of a backup, and the number of the last command that is in it. */
static bool load_backup(struct replay *replay, const char *path, int64_t *after,
                        struct error *error)
{
	struct store *store = store_new(&(struct store_options){ .database = path });
	bool done =
	    store_read_only(store, error) == STORE_DONE && store_load(store, replay->sched, error);
	*after = store_position(store).commands;
	store_free(store);
	return done;
}

static void print_comparison(const struct recorded *recorded)
{
	printf("%lld decisions as they were stored, %lld not\n", (long long)recorded->same,
	       (long long)recorded->different);
	if (recorded->different > 0)
		printf("%s\n", recorded->difference.data);
}

static bool replay_run(struct replay *replay, const struct replay_options *options,
                       int64_t *missing, struct error *error)
{
	int64_t after = 0;

	if (replay->recorded && !recorded_read(replay->recorded, options->compare, error))
		return false;
	if (options->from && !load_backup(replay, options->from, &after, error))
		return false;
	if (!journal_read(options->journal, after, replay_apply, replay, missing, error))
		return false;
	printf("%lld commands, %lld missing before or between them, digest %016llx\n",
	       (long long)replay->count, (long long)*missing, (unsigned long long)replay->digest);
	if (replay->recorded)
		print_comparison(replay->recorded);
	return true;
}

/* Operands are the journal, then the backup. */
static bool replay_read_options(struct replay_options *options, int argc, char **argv)
{
	static const struct option table[] = {
		OPTION("--journal", NULL, "DIRECTORY", "the files of a journal",
		       STORES_TEXT(struct replay_options, journal)),
		OPTION("--from", NULL, "BACKUP", "where to start",
		       STORES_TEXT(struct replay_options, from)),
		OPTION("--compare", NULL, "DATABASE", "compare every decision with it",
		       STORES_TEXT(struct replay_options, compare)),
		OPTION("--verbose", "-v", NULL, "print every command",
		       STORES_FLAG(struct replay_options, verbose)),
		{ 0 },
	};
	const struct option *sets[] = { table };
	struct arguments arguments = { 0 };
	struct error error = { 0 };
	bool done = arguments_read(&arguments, sets, 1, false, argc - 1, argv + 1, &error) &&
	            arguments_store(&arguments, options, &error);

	if (done && arguments.operand_count > 2)
		done = error_set(&error, ERROR_INVALID, "unexpected argument '%.80s'",
		                 arguments.operands[2]);
	if (done && arguments.operand_count > 0)
		options->journal = arguments.operands[0];
	if (done && arguments.operand_count > 1)
		options->from = arguments.operands[1];
	if (done && !options->journal)
		done = error_set(&error, ERROR_INVALID,
		                 "replay needs --journal, a directory of a journal's files");
	if (!done)
		fprintf(stderr, "gpu-sim: %s\n", error.text);
	arguments_free(&arguments);
	return done;
}

int replay_main(int argc, char **argv)
{
	struct replay_options options = { 0 };
	struct recorded recorded = { 0 };
	struct error error = { 0 };
	int64_t missing = 0;

	if (!replay_read_options(&options, argc, argv))
		return 2;
	struct replay replay = { .sched = sched_new(),
		                 .recorded = options.compare ? &recorded : NULL,
		                 .verbose = options.verbose };
	bool done = replay_run(&replay, &options, &missing, &error);
	if (!done)
		fprintf(stderr, "gpu-sim: after %lld commands: %s\n", (long long)replay.count,
		        error.text);
	bool same = recorded.different == 0;
	recorded_free(&recorded);
	sched_free(replay.sched);
	effects_free(&replay.effects);
	buffer_free(&replay.text);
	return done && missing == 0 && same ? 0 : 1;
}
