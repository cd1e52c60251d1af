/* replay.c - gpu-sim replay: a journal's commands, applied again */
#include "sim/replay.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "core/sched.h"
#include "store/journal.h"
#include "store/store.h"

struct replay {
	struct sched *sched;
	struct effects effects;
	struct buffer text;
	int64_t count;
	uint64_t digest;
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

static bool apply(void *context, int64_t number, const struct command *command, struct error *error)
{
	struct replay *replay = context;
	struct error reason;
	effects_clear(&replay->effects);
	if (!sched_apply(replay->sched, command, &replay->effects, &reason))
		return error_set(error, ERROR_CONFLICT, "command %lld is refused now: %s",
		                 (long long)number, reason.text);
	if (replay->verbose)
		print_step(replay, number, command);
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

static int finish(struct replay *replay, bool done, int64_t missing, const struct error *error)
{
	if (done)
		printf("%lld commands, %lld missing before or between them, digest %016llx\n",
		       (long long)replay->count, (long long)missing,
		       (unsigned long long)replay->digest);
	else
		fprintf(stderr, "gpu-sim: after %lld commands: %s\n", (long long)replay->count,
		        error->text);
	sched_free(replay->sched);
	effects_free(&replay->effects);
	buffer_free(&replay->text);
	return done && missing == 0 ? 0 : 1;
}

int replay_main(int argc, char **argv)
{
	struct replay replay = { .verbose = argc > 1 && strcmp(argv[1], "-v") == 0 };
	int first = replay.verbose ? 2 : 1;
	int64_t after = 0, missing = 0;
	struct error error = { 0 };
	if (argc - first < 1 || argc - first > 2) {
		fprintf(stderr, "usage: gpu-sim replay [-v] JOURNAL-DIRECTORY [BACKUP]\n");
		return 2;
	}
	replay.sched = sched_new();
	bool done = argc - first < 2 || load_backup(&replay, argv[first + 1], &after, &error);
	done = done && journal_read(argv[first], after, apply, &replay, &missing, &error);
	return finish(&replay, done, missing, &error);
}
