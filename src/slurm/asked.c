/* asked.c - what a user asks of sbatch, srun and salloc: the options, from three sources */
#include "slurm/asked.h"

#include <stdlib.h>
#include <string.h>

#define VALUE(name, letter, value, help) OPTION(name, letter, value, help, .repeats = true)
#define FLAG(name, letter, help) OPTION(name, letter, NULL, help, .repeats = true)

const struct option slurm_job_options[] = {
	VALUE("--job-name", "-J", "NAME", "job name"),
	VALUE("--account", "-A", "TENANT", "tenant"),
	VALUE("--partition", "-p", "NAME", "nodes with the label partition=NAME"),
	VALUE("--time", "-t", "TIME", "time limit"),
	VALUE("--nodes", "-N", "N", "number of nodes; one task on each"),
	VALUE("--ntasks", "-n", "N", "number of tasks"),
	VALUE("--ntasks-per-node", NULL, "N", "tasks on each node"),
	VALUE("--cpus-per-task", "-c", "N", "CPU cores of each task"),
	VALUE("--mem", NULL, "SIZE", "host memory of each node"),
	VALUE("--mem-per-cpu", NULL, "SIZE", "host memory for each CPU core"),
	VALUE("--mem-per-gpu", NULL, "SIZE", "host memory for each GPU"),
	VALUE("--gres", NULL, "LIST", "GPUs of each node: gpu:2"),
	VALUE("--gpus", "-G", "N", "GPUs of the whole job"),
	VALUE("--gpus-per-node", NULL, "N", "GPUs of each node"),
	VALUE("--gpus-per-task", NULL, "N", "GPUs of each task"),
	VALUE("--cpus-per-gpu", NULL, "N", "CPU cores for each GPU"),
	VALUE("--array", "-a", "LIST", "one job for each index: 0-9, 1,3,7, 0-90:10, %8"),
	VALUE("--dependency", "-d", "LIST", "afterok:ID, afterany:ID"),
	VALUE("--begin", "-b", "TIME", "start no earlier"),
	VALUE("--deadline", NULL, "TIME", "when it should be finished"),
	VALUE("--reservation", NULL, "NAME", "the window that it runs in (gpu-cli reserve)"),
	FLAG("--hold", "-H", "submit on hold"),
	VALUE("--output", "-o", "FILE", "also write standard output to FILE on the node"),
	VALUE("--error", "-e", "FILE", "also write standard error to FILE on the node"),
	VALUE("--open-mode", NULL, "append|truncate", "how the files are opened"),
	VALUE("--input", "-i", "FILE", "standard input from FILE on the node"),
	VALUE("--chdir", "-D", "DIR", "working directory"),
	VALUE("--export", NULL, "LIST", "environment variables: ALL, NONE, NAME, NAME=VALUE"),
	VALUE("--priority", NULL, "N", "priority"),
	VALUE("--nice", NULL, "N", "lower the priority by N"),
	VALUE("--constraint", "-C", "LIST", "GPU models, separated by |"),
	FLAG("--requeue", NULL, "may be preempted"),
	FLAG("--no-requeue", NULL, "is never preempted"),
	VALUE("--comment", NULL, "TEXT", "kept with the job"),
	FLAG("--quiet", "-Q", "print no messages"),
	/* What changes nothing here. */
	FLAG("--verbose", "-v", NULL),
	VALUE("--qos", "-q", "NAME", NULL),
	VALUE("--signal", NULL, "SIGNAL", NULL),
	VALUE("--mail-type", NULL, "LIST", NULL),
	VALUE("--mail-user", NULL, "USER", NULL),
	VALUE("--wckey", NULL, "KEY", NULL),
	VALUE("--tmp", NULL, "SIZE", NULL),
	VALUE("--mincpus", NULL, "N", NULL),
	VALUE("--cpu-bind", NULL, "HOW", NULL),
	VALUE("--gpu-bind", NULL, "HOW", NULL),
	VALUE("--mem-bind", NULL, "HOW", NULL),
	VALUE("--distribution", "-m", "HOW", NULL),
	VALUE("--hint", NULL, "HINT", NULL),
	VALUE("--threads-per-core", NULL, "N", NULL),
	VALUE("--ntasks-per-core", NULL, "N", NULL),
	VALUE("--ntasks-per-socket", NULL, "N", NULL),
	VALUE("--propagate", NULL, "LIST", NULL),
	VALUE("--profile", NULL, "LIST", NULL),
	VALUE("--acctg-freq", NULL, "LIST", NULL),
	VALUE("--kill-on-invalid-dep", NULL, "yes|no", NULL),
	VALUE("--mpi", NULL, "TYPE", NULL),
	FLAG("--exclusive", NULL, NULL),
	FLAG("--oversubscribe", "-s", NULL),
	FLAG("--overcommit", "-O", NULL),
	FLAG("--no-kill", "-k", NULL),
	FLAG("--get-user-env", NULL, NULL),
	FLAG("--unbuffered", "-u", NULL),
	FLAG("--label", "-l", NULL),
	FLAG("--spread-job", NULL, NULL),
	/* What is refused, with what to use. */
	VALUE("--nodelist", "-w", "LIST", NULL),
	VALUE("--exclude", "-x", "LIST", NULL),
	VALUE("--licenses", "-L", "LIST", NULL),
	VALUE("--clusters", "-M", "LIST", NULL),
	VALUE("--uid", NULL, "USER", NULL),
	VALUE("--gid", NULL, "GROUP", NULL),
	VALUE("--burst-buffer", NULL, "TEXT", NULL),
	VALUE("--switches", NULL, "N", NULL),
	{ 0 },
};

static const char *const ignored[] = {
	"--verbose",
	"--qos",
	"--signal",
	"--mail-type",
	"--mail-user",
	"--wckey",
	"--tmp",
	"--mincpus",
	"--cpu-bind",
	"--gpu-bind",
	"--mem-bind",
	"--hint",
	"--profile",
	"--distribution",
	"--threads-per-core",
	"--propagate",
	"--mpi",
	"--label",
	"--ntasks-per-core",
	"--ntasks-per-socket",
	"--no-kill",
	"--exclusive",
	"--acctg-freq",
	"--oversubscribe",
	"--kill-on-invalid-dep",
	"--overcommit",
	"--get-user-env",
	"--unbuffered",
	"--spread-job",
	NULL,
};

static const struct {
	const char *name, *sentence;
} refused[] = {
	{ "--nodelist", "a job cannot name its nodes: give them a label, and use --partition" },
	{ "--exclude",
	  "a job cannot exclude nodes: 'gpu-cli drain NODE' keeps all jobs off a node" },
	{ "--licenses", "licenses are not known here" },
	{ "--clusters", "there is one cluster: 'gpu-cli config use-context' chooses another" },
	{ "--uid", "the tenant decides which account its tasks use" },
	{ "--gid", "the tenant decides which account its tasks use" },
	{ "--burst-buffer", "burst buffers are not known here" },
	{ "--switches", "use 'gpu-cli submit --close rack' to keep a gang together" },
};

/* The names of variables that do not follow from the option's. */
static const struct {
	const char *option, *variable;
} variables[] = {
	{ "--time", "TIMELIMIT" },   { "--gpus", "GPUS" },         { "--array", "ARRAY_INX" },
	{ "--mem", "MEM_PER_NODE" }, { "--chdir", "WORKING_DIR" }, { "--job-name", "JOB_NAME" },
};

static const char *from_environment(const char *prefix, const char *name)
{
	char variable[64];
	const char *word = NULL;
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		if (strcmp(variables[i].option, name) == 0)
			word = variables[i].variable;
	size_t length =
	    (size_t)snprintf(variable, sizeof(variable), "%s%s", prefix, word ? word : name + 2);
	for (size_t i = 0; i < length && i < sizeof(variable); i++) {
		if (variable[i] == '-')
			variable[i] = '_';
		else if (variable[i] >= 'a' && variable[i] <= 'z')
			variable[i] = (char)(variable[i] - 'a' + 'A');
	}
	const char *value = getenv(variable);
	return value && *value ? value : NULL;
}

static const char *last_value(const struct arguments *arguments, const char *name)
{
	const char *value = NULL;
	size_t at = 0;
	for (const char *next; (next = arguments_next(arguments, name, &at));)
		value = next;
	return value;
}

const char *slurm_value(const struct slurm_asked *asked, const char *name)
{
	for (int i = 0; i < SLURM_SOURCES; i++) {
		const char *value = asked->sources[i] ? last_value(asked->sources[i], name) : NULL;
		if (!value && i == 0 && asked->environment)
			value = from_environment(asked->environment, name);
		if (value)
			return value;
	}
	return NULL;
}

bool slurm_has(const struct slurm_asked *asked, const char *name)
{
	for (int i = 0; i < SLURM_SOURCES; i++)
		if (asked->sources[i] && arguments_has(asked->sources[i], name))
			return true;
	return asked->environment && from_environment(asked->environment, name);
}

static bool takes(const struct option *table, const char *option)
{
	for (; table && table->name; table++)
		if (strcmp(table->name, option) == 0 ||
		    (table->letter && strcmp(table->letter, option) == 0))
			return table->value;
	return false;
}

bool slurm_takes_value(const struct option *more, const char *option)
{
	return takes(slurm_job_options, option) || takes(more, option);
}

const char *slurm_refusal(const char *name)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (strcmp(refused[i].name, name) == 0)
			return refused[i].sentence;
	return NULL;
}

bool slurm_is_ignored(const char *name)
{
	for (const char *const *word = ignored; *word; word++)
		if (strcmp(*word, name) == 0)
			return true;
	return false;
}
