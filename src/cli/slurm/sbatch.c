/* sbatch.c - sbatch: submits a script */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/job/job_watch.h"
#include "cli/slurm/submission.h"
#include "slurm/directive.h"
#include "json/member.h"

enum { SCRIPT_BYTES_MAX = 4 << 20 };

static const struct option options[] = {
	OPTION("--wrap", NULL, "COMMAND", "run this command line of a shell, without a script"),
	OPTION("--parsable", NULL, NULL, "print the job's number only"),
	OPTION("--wait", "-W", NULL, "wait until the job has finished, and exit with its code"),
	OPTION("--test-only", NULL, NULL, "print the request, and submit nothing"),
	{ 0 },
};

static bool read_file(const struct slurm_call *call, const char *name, struct buffer *script)
{
	FILE *file = strcmp(name, "-") == 0 ? stdin : fopen(name, "rb");
	char part[65536];
	if (!file) {
		slurm_fail(call, "cannot open %s: %s", name, strerror(errno));
		return false;
	}
	for (size_t got; (got = fread(part, 1, sizeof(part), file)) > 0;) {
		buffer_bytes(script, part, got);
		if (script->size > SCRIPT_BYTES_MAX)
			break;
	}
	bool good = !ferror(file) && script->size <= SCRIPT_BYTES_MAX;
	if (ferror(file))
		slurm_fail(call, "cannot read %s: %s", name, strerror(errno));
	else if (!good)
		slurm_fail(call, "%s is larger than %d MiB", name, SCRIPT_BYTES_MAX >> 20);
	if (file != stdin)
		fclose(file);
	if (good && (script->size < 2 || memcmp(script->data, "#!", 2) != 0)) {
		slurm_fail(call,
		           "%s is not a script: its first line must name an interpreter, "
		           "such as #!/bin/bash",
		           name);
		good = false;
	}
	return good;
}

static bool takes_value(const char *option)
{
	return slurm_takes_value(options, option);
}

/* The #SBATCH lines, as arguments. */
static bool read_directives(const struct slurm_call *call, const struct buffer *script,
                            struct directives *directives, struct arguments *arguments,
                            struct arena *arena)
{
	const struct option *sets[] = { options, slurm_job_options };
	struct error error = { 0 };
	int count;
	if (!directives_read(directives, script->data, script->size, arena, &error)) {
		slurm_fail(call, "%s", error.text);
		return false;
	}
	char **words = slurm_split_letters(&count, directives->words, takes_value, arena);
	if (!arguments_read(arguments, sets, 2, false, count, words, &error)) {
		slurm_fail(call, "#SBATCH: %s", error.text);
		return false;
	}
	return true;
}

static int wait_for(struct slurm_call *call, const json_t *answer)
{
	const char *id = member_text(answer, "job_id");
	long long first = atoll(submission_number(id)), count = member_integer(answer, "count");
	int status = 0;
	for (long long i = 0; i < (count > 1 ? count : 1); i++) {
		char one[40];
		snprintf(one, sizeof(one), "job-%lld", first + i);
		int code = job_watch(&call->session,
		                     &(struct job_watch){ .job = one, .quiet = true, .task = -1 });
		if (code > status)
			status = code;
	}
	return status;
}

static int submit(struct slurm_call *call, const struct slurm_job *job)
{
	struct error error = { 0 };
	json_t *request = slurm_request(job, &error);
	if (!request)
		return slurm_fail(call, "%s", error.text);
	submission_warn(call, job->asked);
	if (slurm_given(call, "--test-only")) {
		json_dumpf(request, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
		putchar('\n');
		json_decref(request);
		return 0;
	}
	if (!slurm_open(call)) {
		json_decref(request);
		return 1;
	}
	json_t *answer = submission_send(call, request);
	if (!answer)
		return 1;
	const char *id = submission_number(member_text(answer, "job_id"));
	int status = 0;
	if (slurm_given(call, "--parsable"))
		printf("%s\n", id);
	else if (!slurm_has(job->asked, "--quiet"))
		printf("Submitted batch job %s\n", id);
	fflush(stdout);
	if (slurm_given(call, "--wait"))
		status = wait_for(call, answer);
	json_decref(answer);
	return status;
}

static int sbatch_run(struct slurm_call *call)
{
	const char *wrap = slurm_option(call, "--wrap");
	size_t count = call->arguments.operand_count;
	const char *name = count > 0 ? call->arguments.operands[0] : "-";
	struct arena arena = { 0 };
	struct buffer script = { 0 };
	struct directives directives = { 0 };
	struct arguments lines = { 0 };
	struct slurm_asked asked = { .sources = { &call->arguments, &lines },
		                     .environment = "SBATCH_" };
	struct slurm_job job = { 0 };
	char directory[PATH_MAX];
	int status = 1;
	if (wrap && count > 0)
		return slurm_fail(call, "--wrap and a script exclude each other");
	if (wrap)
		buffer_print(&script, "#!/bin/sh\n# by sbatch --wrap\n%s\n", wrap);
	if ((wrap || read_file(call, name, &script)) &&
	    read_directives(call, &script, &directives, &lines, &arena)) {
		const char *slash = strrchr(name, '/');
		submission_begin(&job, &asked, directory, sizeof(directory));
		job.script = script.data;
		job.script_size = script.size;
		job.script_name = wrap                     ? "wrap"
		                  : strcmp(name, "-") == 0 ? "sbatch"
		                  : slash                  ? slash + 1
		                                           : name;
		job.command = count > 0 ? call->arguments.operands + 1 : NULL;
		job.command_count = count > 0 ? count - 1 : 0;
		status = submit(call, &job);
	}
	arguments_free(&lines);
	directives_free(&directives);
	buffer_free(&script);
	arena_free(&arena);
	return status;
}

const struct slurm_program slurm_sbatch = {
	.name = "sbatch",
	.usage = "[OPTION...] SCRIPT [ARGUMENT...]",
	.summary = "submit a script",
	.notes =
	    "Options may stand in the script, on lines that begin with #SBATCH. A job of several\n"
	    "tasks runs the script in each of them; srun inside a job runs its command in that\n"
	    "task. 'gpu-cli logs JOB' shows the output, also without --output.\n",
	.options = options,
	.submits = true,
	.runs = true,
	.run = sbatch_run,
};
