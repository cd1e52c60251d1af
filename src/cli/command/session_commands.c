/* session_commands.c - gpu-cli exec and attach: work in a job that runs */
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/job/job_session.h"
#include "cli/session.h"
#include "cli/text/quantity.h"

enum { TASK_MAX = 4095 };

static const struct option exec_options[] = {
	OPTION("--interactive", "-i", NULL, "pass standard input on to the command"),
	OPTION("--tty", "-t", NULL, "the command runs in a terminal"),
	OPTION("--it", "-it", NULL, "both of these"),
	OPTION("--task", NULL, "N", "in this task of the job (default: 0)"),
	{ 0 },
};

static const struct option attach_options[] = {
	OPTION("--session", NULL, "ID", "a session of 'gpu-cli exec' that was left"),
	OPTION("--task", NULL, "N", "of this task (default: 0)"),
	OPTION("--no-stdin", NULL, NULL, "only look on"),
	{ 0 },
};

static bool read_task(const struct arguments *arguments, int64_t *task, struct error *error)
{
	const char *text = arguments_value(arguments, "--task");

	*task = 0;
	return !text || quantity_integer("--task", text, 0, TASK_MAX, task, error);
}

static int exec_run(const struct arguments *arguments)
{
	bool both = arguments_has(arguments, "--it");
	struct job_command command = {
		.words = arguments->operands + 1,
		.word_count = arguments->operand_count > 0 ? arguments->operand_count - 1 : 0,
		.input = both || arguments_has(arguments, "--interactive"),
		.terminal = both || arguments_has(arguments, "--tty"),
	};
	struct error error = { 0 };
	struct session session;
	int status;

	if (arguments->operand_count == 0)
		return cli_misused(arguments->command, "which job? Give one id, such as job-12");
	if (command.word_count == 0)
		return cli_misused(arguments->command, "no command given: put it after --");
	if (!read_task(arguments, &command.task, &error))
		return cli_misused(arguments->command, "%s", error.text);
	if (!session_open(&session, arguments, &status))
		return status;
	command.job = session_job(&session, arguments->operands[0]);
	status = job_session_run(&session, &command);
	session_close(&session);
	return status;
}

static int attach_run(const struct arguments *arguments)
{
	struct error error = { 0 };
	struct session session;
	int64_t task;
	int status;

	if (arguments->operand_count != 1)
		return cli_misused(arguments->command, "which job? Give one id, such as job-12");
	if (!read_task(arguments, &task, &error))
		return cli_misused(arguments->command, "%s", error.text);
	if (!session_open(&session, arguments, &status))
		return status;
	status = job_session_attach(&session, session_job(&session, arguments->operands[0]), task,
	                            arguments_value(arguments, "--session"),
	                            !arguments_has(arguments, "--no-stdin"));
	session_close(&session);
	return status;
}

const struct cli_command exec_command = {
	.name = "exec",
	.arguments = "JOB [OPTION...] -- COMMAND [ARGUMENT...]",
	.summary = "run a command in a job that runs",
	.details =
	    "The command runs as the job's user, in its cgroup and its container, and sees\n"
	    "its GPUs. It ends with the command's code. In a terminal (-t), Ctrl-P Ctrl-Q, or\n"
	    "~. at the beginning of a line, leaves the session; 'gpu-cli attach' returns to\n"
	    "it. A connection that breaks is made again. The session ends with the job.\n",
	.examples = "exec -it job-12 -- bash\n"
		    "exec job-12 --task 3 -- nvidia-smi\n"
		    "exec -i job-12 -- tar x <data.tar\n",
	.options = exec_options,
	.asks = true,
	.operand = COMPLETES_JOBS,
	.run = exec_run,
};

const struct cli_command attach_command = {
	.name = "attach",
	.arguments = "JOB [OPTION...]",
	.summary = "attach to the terminal of a job, or to a session",
	.details = "The terminal of a job that was started with 'run --pty', or a session of\n"
		   "'gpu-cli exec' that was left. A client that was attached before is detached.\n"
		   "Ctrl-P Ctrl-Q, or ~. at the beginning of a line, leaves it.\n",
	.examples = "attach job-12\n"
		    "attach job-12 --session 6f1c0e9ab2d34875aa01c2d3\n",
	.options = attach_options,
	.asks = true,
	.operand = COMPLETES_JOBS,
	.run = attach_run,
};
