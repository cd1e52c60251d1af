/* suggest.c - what somebody may have meant by a word that is not known */
#include "cli/suggest.h"

#include "base/spelling.h"
#include "cli/cli.h"

static const struct option_habit command_habits[] = {
	{ "sbatch", "submit" },
	{ "srun", "run" },
	{ "salloc", "run" },
	{ "squeue", "queue" },
	{ "scancel", "cancel" },
	{ "sinfo", "nodes" },
	{ "scontrol", "get" },
	{ "sacct", "list" },
	{ "sreport", "report" },
	{ "sacctmgr", "tenants" },
	{ "sprio", "queue" },
	{ "sattach", "logs" },
	{ "qsub", "submit" },
	{ "qstat", "queue" },
	{ "qdel", "cancel" },
	{ "ls", "list" },
	{ "ps", "list" },
	{ "jobs", "list" },
	{ "describe", "get" },
	{ "show", "get" },
	{ "inspect", "get" },
	{ "delete", "cancel" },
	{ "kill", "cancel" },
	{ "rm", "cancel" },
	{ "stop", "cancel" },
	{ "apply", "submit" },
	{ "create", "submit" },
	{ "exec", "run" },
	{ "tail", "logs" },
	{ "info", "status" },
	{ "cluster", "status" },
	{ "nvidia-smi", "gpus" },
	{ "cordon", "drain" },
	{ "uncordon", "resume" },
	{ "usage", "report" },
	{ "context", "config" },
	{ "contexts", "config" },
	{ "explain", "why" },
	{ "events", "decisions" },
	{ "add-tenant", "create-tenant" },
	{ 0 },
};

const struct option_habit suggest_options[] = {
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
	{ 0 },
};

const char *suggest_command(const char *word)
{
	struct spelling spelling = { .word = word };
	const char *ours = option_habitual(command_habits, word);

	if (ours)
		return ours;
	for (const struct cli_command *const *command = cli_commands; *command; command++)
		if (!(*command)->hidden)
			spelling_consider(&spelling, (*command)->name);
	return spelling.nearest;
}
