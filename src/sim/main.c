/* main.c - gpu-sim: the scheduler's core in a simulated world */
#include <stdio.h>
#include <string.h>

#include "sim/demo.h"
#include "sim/kube/kube_chaos.h"
#include "sim/scenario/predicates.h"
#include "sim/scenario/scenario.h"
#include "sim/serve/serve_command.h"
#include "sim/trace/foretell_command.h"
#include "sim/trace/jct_command.h"
#include "sim/trace/pack_command.h"
#include "sim/whatif/replay.h"
#include "sim/whatif/whatif.h"

enum { EXIT_USAGE = 2 };

static int help_main(int argc, char **argv);

/* What it does with the arguments after its name, which is argv[0]; returns
 * the exit status: 0 fine, 1 something failed, 2 it was not asked properly. */
struct subcommand {
	const char *name, *arguments, *purpose;
	int (*run)(int argc, char **argv);
};

static const struct subcommand subcommands[] = {
	{ "scenario", "[-v] [--json] [--case WHICH] FILE...", "run the cases of scenario files",
	  scenario_main },
	{ "replay", "[-v] --journal DIRECTORY [--from BACKUP] [--compare DATABASE]",
	  "apply a journal's commands again, and compare every decision", replay_main },
	{ "pack",
	  "--nodes CSV --pods CSV [--policy P[,P...]] [--seeds 10] [--seed 1]\n"
	  "               [--json] [--plot SVG]",
	  "fill a cluster with the pods of a trace", pack_main },
	{ "jct",
	  "--trace CSV [--nodes 64] [--gpus 8] [--policy P[,P...]] [--cost SECONDS]\n"
	  "               [--tenants] [--json] [--plot SVG]",
	  "let the jobs of a trace share a cluster, and say how long they take", jct_main },
	{ "predict", "--trace CSV [--warm CSV] [--experts 65536] [--json]",
	  "predict the run times of a trace's jobs, and say how well that went", foretell_main },
	{ "serve",
	  "--trace CSV --models CSV [--first-models N] [--gpus 16] [--gpu-gb 80]\n"
	  "               [--load-gbps 16] [--start-s 0] [--sleep none|home|any]\n"
	  "               [--one-per-gpu] [--policy P[,P...]] [--json]\n"
	  "                gpu-sim serve --prefix --trace CSV [--replicas 8] [--blocks 2000]\n"
	  "               [--policy P[,P...]] [--json]\n"
	  "                gpu-sim serve --tenants --rates CSV --lengths CSV --models CSV\n"
	  "               [--scale 0.01] [--from-hour 0] [--hours 24] [--replicas 1] [--places 4]\n"
	  "               [--weights W[,W...]] [--seed 1] [--policy P[,P...]] [--json]",
	  "serve many models on few GPUs, and say how many requests are in time", serve_main },
	{ "predicates", "FILE", "ask the core about kube-scheduler's predicate cases",
	  predicates_main },
	{ "chaos", "[--seed S] [--seeds K] [--steps N] [--shrink] [--json]",
	  "let everything fail, and check that nothing goes wrong", kube_chaos_main },
	{ "whatif", "--state FILE [--add-nodes 2x8xH100:80G] [--submit JOB] [--json]",
	  "run a live scheduler forward: when would a job start, what would change", whatif_main },
	{ "demo", "", "show the core at work on one shared GPU", demo_main },
	{ "help", "", "say what there is", help_main },
};
enum { SUBCOMMANDS = sizeof(subcommands) / sizeof(subcommands[0]) };

static void print_usage(FILE *to)
{
	fputs("usage: gpu-sim SUBCOMMAND [ARGUMENT...]\n\n", to);
	for (int i = 0; i < SUBCOMMANDS; i++) {
		const struct subcommand *at = &subcommands[i];
		fprintf(to, "  %-11s %s\n", at->name, at->purpose);
		if (*at->arguments)
			fprintf(to, "  %-11s   gpu-sim %s %s\n", "", at->name, at->arguments);
	}
}

static int help_main(int argc, char **argv)
{
	if (argc > 1) {
		fprintf(stderr, "gpu-sim: help takes no argument, not '%s'\n", argv[1]);
		return EXIT_USAGE;
	}
	print_usage(stdout);
	return 0;
}

static int main_refuse_unknown(const char *name)
{
	fprintf(stderr, "gpu-sim: there is no subcommand '%s'; there are", name);
	for (int i = 0; i < SUBCOMMANDS; i++) {
		const char *before = i == 0 ? " " : i == SUBCOMMANDS - 1 ? " and " : ", ";
		fprintf(stderr, "%s%s", before, subcommands[i].name);
	}
	fputc('\n', stderr);
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		print_usage(stderr);
		return EXIT_USAGE;
	}
	const char *name = argv[1];
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		name = "help";
	for (int i = 0; i < SUBCOMMANDS; i++) {
		if (strcmp(name, subcommands[i].name) == 0)
			return subcommands[i].run(argc - 1, argv + 1);
	}
	return main_refuse_unknown(name);
}
