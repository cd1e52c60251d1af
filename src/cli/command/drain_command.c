/* drain_command.c - gpu-cli drain: no new work on nodes, and what becomes of the work there */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "cli/text/quantity.h"
#include "json/member.h"

enum { LOOK_S = 1, JOBS_MAX = 1000000 };

static const struct option options[] = {
	OPTION("--reason", NULL, "TEXT", "why, for people: 'nodes -o wide' and 'why' show it"),
	OPTION("--wait", "-w", NULL, "wait until nothing runs there"),
	OPTION("--evict", NULL, NULL, "stop the jobs there and queue them again"),
	OPTION("--deadline", NULL, "TIME", "wait, and evict what still runs after this time: 2h"),
	{ 0 },
};

static bool drain_node(struct session *session, const char *name, int *status)
{
	struct error error = { 0 };
	const char *reason = arguments_value(session->arguments, "--reason");
	const char *path =
	    reason ? session_path(session, "/api/v1/nodes/%s/drain?reason=%s", name, reason)
		   : session_path(session, "/api/v1/nodes/%s/drain", name);
	json_t *answer = session_ask(session, "POST", path, NULL, &error);
	if (answer)
		printf("%s is draining\n", name);
	else
		*status = session_fail(session, &error);
	json_decref(answer);
	return answer != NULL;
}

static bool is_on(const json_t *job, const struct arguments *arguments)
{
	size_t place;
	json_t *allocation;

	json_array_foreach(json_object_get(job, "allocations"), place, allocation)
	{
		const char *node = member_text(allocation, "node");
		for (size_t i = 0; i < arguments->operand_count; i++)
			if (strcmp(node, arguments->operands[i]) == 0)
				return true;
	}
	return false;
}

/* A job that has ended meanwhile needs no eviction. */
static void evict_job(struct session *session, const char *id)
{
	struct error error = { 0 };
	json_t *answer = session_ask(
	    session, "POST", session_path(session, "/api/v1/jobs/%s/requeue", id), NULL, &error);

	if (answer)
		printf("%s is stopped and queued again\n", id);
	else if (error.code != ERROR_CONFLICT && error.code != ERROR_NOT_FOUND)
		session_fail(session, &error);
	json_decref(answer);
}

/* Stops all jobs with a task on the nodes. Slots leave a draining node by themselves. */
static bool evict_all(struct session *session, struct error *error)
{
	static const char *const states[] = { "state=running", "state=scheduled" };

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		json_t *jobs = session_list(session, "/api/v1/jobs", states[i], "jobs", JOBS_MAX,
		                            error),
		       *job;
		size_t place;
		if (!jobs)
			return false;
		json_array_foreach(jobs, place, job)
		{
			if (is_on(job, session->arguments))
				evict_job(session, member_text(job, "id"));
		}
		json_decref(jobs);
	}
	fflush(stdout);
	return true;
}

/* Tasks and slots on the nodes; -1 with the reason. */
static int64_t count_work(struct session *session, struct error *error)
{
	const struct arguments *arguments = session->arguments;
	int64_t count = 0;

	for (size_t i = 0; i < arguments->operand_count; i++) {
		json_t *node = session_get(
		    session, session_path(session, "/api/v1/nodes/%s", arguments->operands[i]),
		    error);
		if (!node)
			return -1;
		count += member_integer(node, "reservations");
		json_decref(node);
	}
	return count;
}

/* `evict_ms`: when what still runs is evicted; INT64_MAX: never. */
static int wait_for_nodes(struct session *session, int64_t evict_ms)
{
	struct error error = { 0 };
	int64_t count;

	fflush(stdout);
	while ((count = count_work(session, &error)) > 0) {
		if (clock_unix_ms() >= evict_ms) {
			evict_ms = INT64_MAX;
			if (!evict_all(session, &error))
				break;
		}
		sleep(LOOK_S);
	}
	if (count != 0)
		return session_fail(session, &error);
	printf("nothing runs there any more\n");
	return CLI_FINE;
}

static int run_drain(const struct arguments *arguments)
{
	const char *deadline = arguments_value(arguments, "--deadline");
	bool evicts = arguments_has(arguments, "--evict");
	struct error error = { 0 };
	struct session session;
	int64_t after_ms = 0;
	int status = CLI_FINE;

	if (arguments->operand_count == 0)
		return cli_misused(arguments->command,
		                   "which node? Give names ('gpu-cli nodes' lists them)");
	if (deadline && evicts)
		return cli_misused(arguments->command,
		                   "--evict does now what --deadline does later: give one of them");
	if (deadline && !quantity_duration("--deadline", deadline, &after_ms, &error))
		return cli_misused(arguments->command, "%s", error.text);
	if (!session_open(&session, arguments, &status))
		return status;
	bool drained = true;
	for (size_t i = 0; i < arguments->operand_count; i++)
		drained = drain_node(&session, arguments->operands[i], &status) && drained;
	if (drained && evicts && !evict_all(&session, &error))
		status = session_fail(&session, &error);
	if (drained && status == CLI_FINE && (deadline || arguments_has(arguments, "--wait")))
		status =
		    wait_for_nodes(&session, deadline ? clock_unix_ms() + after_ms : INT64_MAX);
	session_close(&session);
	return status;
}

const struct cli_command drain_command = {
	.name = "drain",
	.arguments = "NODE... [OPTION...]",
	.summary = "stop scheduling on nodes; running jobs finish",
	.details =
	    "With --deadline and --wait, Ctrl-C ends the waiting, and the nodes stay drained.\n"
	    "A job that is evicted starts elsewhere, from its last checkpoint if it has one.\n",
	.examples = "drain alpha beta\n"
		    "drain alpha --reason 'a new fan' --wait\n"
		    "drain alpha --deadline 2h\n",
	.options = options,
	.asks = true,
	.operand = COMPLETES_NODES,
	.run = run_drain,
};
