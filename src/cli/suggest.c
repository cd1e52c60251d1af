/* suggest.c - what somebody may have meant by a word that is not known */
#include "cli/suggest.h"

#include <string.h>

#include "base/number.h"
#include "base/spelling.h"
#include "cli/cli.h"

enum { PREFIX_LEAST = 3 };

/* A word of another program, and ours for it. */
struct habit {
	const char *theirs, *ours;
};

static const struct habit commands[] = {
	{ "sbatch", "submit" },    { "srun", "run" },
	{ "salloc", "run" },       { "squeue", "queue" },
	{ "scancel", "cancel" },   { "sinfo", "nodes" },
	{ "scontrol", "get" },     { "sacct", "list" },
	{ "sreport", "report" },   { "sacctmgr", "tenants" },
	{ "sprio", "queue" },      { "sattach", "logs" },
	{ "qsub", "submit" },      { "qstat", "queue" },
	{ "qdel", "cancel" },      { "ls", "list" },
	{ "ps", "list" },          { "jobs", "list" },
	{ "describe", "get" },     { "show", "get" },
	{ "inspect", "get" },      { "delete", "cancel" },
	{ "kill", "cancel" },      { "rm", "cancel" },
	{ "stop", "cancel" },      { "apply", "submit" },
	{ "create", "submit" },    { "exec", "run" },
	{ "tail", "logs" },        { "info", "status" },
	{ "cluster", "status" },   { "nvidia-smi", "gpus" },
	{ "cordon", "drain" },     { "uncordon", "resume" },
	{ "usage", "report" },     { "context", "config" },
	{ "contexts", "config" },  { "explain", "why" },
	{ "events", "decisions" }, { "add-tenant", "create-tenant" },
};

static const struct habit options[] = {
	{ "--gres", "--gpus" },
	{ "-G", "--gpus" },
	{ "--gpus-per-task", "--gpus" },
	{ "--gpus-per-node", "--gpus" },
	{ "--num-gpus", "--gpus" },
	{ "--vram", "--gpu-memory" },
	{ "--gpu-mem", "--gpu-memory" },
	{ "--mem-per-gpu", "--gpu-memory" },
	{ "--mem", "--memory" },
	{ "--time", "--max-runtime" },
	{ "--timeout", "--max-runtime" },
	{ "--time-limit", "--max-runtime" },
	{ "--ntasks", "--tasks" },
	{ "--nodes", "--tasks" },
	{ "-N", "--tasks" },
	{ "--replicas", "--tasks" },
	{ "--job-name", "--name" },
	{ "-J", "--name" },
	{ "--dependency", "--after" },
	{ "-d", "--after" },
	{ "--depends-on", "--after" },
	{ "--cpus-per-task", "--cpus" },
	{ "--cores", "--cpus" },
	{ "--export", "--env" },
	{ "--chdir", "--workdir" },
	{ "--cwd", "--workdir" },
	{ "-D", "--workdir" },
	{ "--constraint", "--node-label" },
	{ "-C", "--node-label" },
	{ "--partition", "--node-label" },
	{ "--account", "--tenant-id" },
	{ "-A", "--tenant-id" },
	{ "--namespace", "--tenant-id" },
	{ "--test-only", "--dry-run" },
	{ "--nice", "--priority" },
	{ "--states", "--state" },
	{ "--format", "--output" },
	{ "--lines", "--tail" },
	{ "--token", "--token-file" },
	{ "--url", "--server" },
	{ "--host", "--server" },
	{ "--start", "--since" },
};

/* The nearest name so far. A name that begins with the word is as near as a slip of one
 * letter; otherwise about one letter in three may be wrong. */
struct nearest {
	const char *word, *name;
	int distance;
};

static void consider(struct nearest *nearest, const char *name)
{
	size_t dashes = strspn(nearest->word, "-"), length = strlen(nearest->word + dashes);
	int distance = spelling_distance(nearest->word, name);
	int most = length < 3 ? 0 : length < 6 ? 1 : (int)min64((int64_t)length / 3, 3);

	if (length >= PREFIX_LEAST && strncmp(nearest->word, name, strlen(nearest->word)) == 0)
		distance = distance < 1 ? distance : 1;
	if (distance > most || (nearest->name && distance >= nearest->distance))
		return;
	nearest->name = name;
	nearest->distance = distance;
}

static const char *habitual(const struct habit *habits, size_t count, const char *word)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(habits[i].theirs, word) == 0)
			return habits[i].ours;
	return NULL;
}

const char *suggest_command(const char *word)
{
	struct nearest nearest = { .word = word };
	const char *ours = habitual(commands, sizeof(commands) / sizeof(commands[0]), word);

	if (ours)
		return ours;
	for (const struct cli_command *const *command = cli_commands; *command; command++)
		if (!(*command)->hidden)
			consider(&nearest, (*command)->name);
	return nearest.name;
}

const char *suggest_option(const struct option *const *sets, int set_count, const char *word)
{
	struct nearest nearest = { .word = word };
	const char *ours = habitual(options, sizeof(options) / sizeof(options[0]), word);

	for (int i = 0; i < set_count; i++)
		for (const struct option *option = sets[i]; option->name; option++) {
			if (ours && strcmp(option->name, ours) == 0)
				return ours;
			consider(&nearest, option->name);
		}
	return nearest.name;
}
