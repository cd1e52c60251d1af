/* srun.c - srun and salloc: a command at once */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/job/job_input.h"
#include "cli/job/job_session.h"
#include "cli/job/job_watch.h"
#include "cli/slurm/submission.h"
#include "json/member.h"

static const struct option options[] = {
	OPTION("--pty", NULL, NULL, NULL),
	OPTION("--immediate", "-I", NULL, NULL),
	OPTION("--kill-on-bad-exit", "-K", NULL, NULL),
	OPTION("--overlap", NULL, NULL, NULL),
	OPTION("--exact", NULL, NULL, NULL),
	{ 0 },
};

/* Inside of a job every task runs the script, so its command runs in this task. */
static int run_here(const struct slurm_call *call)
{
	size_t count = call->arguments.operand_count;
	struct arena arena = { 0 };
	char **command = arena_alloc(&arena, (count + 1) * sizeof(*command));
	for (size_t i = 0; i < count; i++)
		command[i] = arena_string(&arena, call->arguments.operands[i]);
	command[count] = NULL;
	execvp(command[0], command);
	slurm_fail(call, "%s: %s", command[0], strerror(errno));
	arena_free(&arena);
	return 127;
}

static int run_there(struct slurm_call *call, const char *const *command, size_t count,
                     bool terminal)
{
	struct slurm_asked asked = { .sources = { &call->arguments } };
	struct slurm_job job = { .command = command, .command_count = count };
	struct error error = { 0 };
	char directory[PATH_MAX];
	submission_begin(&job, &asked, directory, sizeof(directory));
	json_t *request = slurm_request(&job, &error);
	bool input = !terminal && job_input_is_there();
	if (!request)
		return slurm_fail(call, "%s", error.text);
	if (input)
		json_object_set_new(request, "standard_input", json_string("all"));
	if (terminal)
		job_session_ask_terminal(request);
	submission_warn(call, &asked);
	if (!slurm_open(call)) {
		json_decref(request);
		return 1;
	}
	job_watch_catch();
	json_t *answer = submission_send(call, request);
	if (!answer)
		return 1;
	int status = terminal
	                 ? job_session_stay(&call->session, member_text(answer, "job_id"), true)
	                 : job_watch(&call->session,
	                             &(struct job_watch){ .job = member_text(answer, "job_id"),
	                                                  .output = true,
	                                                  .cancels = true,
	                                                  .quiet = true,
	                                                  .input = input,
	                                                  .task = -1 });
	json_decref(answer);
	return status;
}

static int srun_run(struct slurm_call *call)
{
	if (call->arguments.operand_count == 0)
		return slurm_fail(call, "no command given");
	if (slurm_option(call, "--array"))
		return slurm_fail(call, "--array is for sbatch");
	if (slurm_option(call, "--output") || slurm_option(call, "--error") ||
	    slurm_option(call, "--input"))
		return slurm_fail(call, "--output, --error and --input are not supported: redirect "
		                        "the output of srun");
	return getenv("GPU_SCHEDULER_JOB_ID")
	           ? run_here(call)
	           : run_there(call, call->arguments.operands, call->arguments.operand_count,
	                       slurm_given(call, "--pty"));
}

const struct slurm_program slurm_srun = {
	.name = "srun",
	.usage = "[OPTION...] COMMAND [ARGUMENT...]",
	.summary = "run a command, show its output, exit with its code",
	.notes = "Inside of a job, the command runs in the task that calls srun.\n",
	.options = options,
	.submits = true,
	.runs = true,
	.run = srun_run,
};

/* The shell, or the command, runs in the allocation itself, and not where salloc was called. */
static int salloc_run(struct slurm_call *call)
{
	static const char *const shell[] = { "/bin/sh", "-c", "exec \"${SHELL:-/bin/sh}\" -i" };

	if (getenv("GPU_SCHEDULER_JOB_ID"))
		return slurm_fail(call, "this is an allocation already");
	if (call->arguments.operand_count == 0)
		return run_there(call, shell, sizeof(shell) / sizeof(*shell), true);
	return run_there(call, call->arguments.operands, call->arguments.operand_count, true);
}

const struct slurm_program slurm_salloc = {
	.name = "salloc",
	.usage = "[OPTION...] [COMMAND [ARGUMENT...]]",
	.summary = "a shell, or a command, in a terminal on what was allocated",
	.notes = "The shell runs on the first node of the allocation, and the allocation ends with "
		 "it.\n",
	.options = options,
	.submits = true,
	.runs = true,
	.run = salloc_run,
};
