/* forward_command.c - gpu-cli forward and notebook: ports of tasks on this machine */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/command/submit.h"
#include "cli/commands.h"
#include "cli/job/job_forward.h"
#include "cli/job/job_request.h"
#include "cli/job/job_watch.h"
#include "cli/session.h"
#include "cli/text/quantity.h"
#include "json/member.h"

enum {
	TASK_MAX = 4095,
	PORT_MAX = 65535,
	NOTEBOOK_PORT_FIRST = 20000,
	NOTEBOOK_PORTS = 10000,
	NOTEBOOK_START_MS = 300000,
	AGAIN_US = 300000,
	TOKEN_BYTES = 24,
};

static const struct option forward_options[] = {
	OPTION("--task", NULL, "N", "of this task of the job (default: 0)"),
	{ 0 },
};

static const struct option notebook_options[] = {
	OPTION("--port", NULL, "PORT", "on this machine (default: any)"),
	OPTION("--dry-run", NULL, NULL, "show the request and a forecast, and submit nothing"),
	{ 0 },
};

/* [LOCAL:]PORT */
static bool read_ports(const char *text, int64_t *local, int64_t *port, struct error *error)
{
	const char *colon = strchr(text, ':');
	char first[16] = "";

	if (colon && (size_t)(colon - text) < sizeof(first))
		memcpy(first, text, (size_t)(colon - text));
	return quantity_integer("the port", colon ? colon + 1 : text, 1, PORT_MAX, port, error) &&
	       (!colon ? (*local = *port, true)
	               : quantity_integer("the local port", first, 0, PORT_MAX, local, error));
}

static int forward_job(struct session *session, const struct job_forward *forward, int64_t local)
{
	struct error error = { 0 };
	json_t *job =
	    session_get(session, session_path(session, "/api/v1/jobs/%s", forward->job), &error);
	int listener = job ? job_forward_listen(&local, &error) : -1;

	json_decref(job);
	if (listener < 0)
		return session_fail(session, &error);
	printf("127.0.0.1:%lld leads to port %lld of %s; Ctrl-C ends this\n", (long long)local,
	       (long long)forward->port, forward->job);
	fflush(stdout);
	job_forward_serve(session, forward, listener, NULL, NULL);
	return CLI_FINE;
}

static int forward_run(const struct arguments *arguments)
{
	struct job_forward forward = { 0 };
	const char *task = arguments_value(arguments, "--task");
	struct error error = { 0 };
	struct session session;
	int64_t local;
	int status;

	if (arguments->operand_count != 2)
		return cli_misused(arguments->command, "give a job and a port: job-12 8888");
	if ((task && !quantity_integer("--task", task, 0, TASK_MAX, &forward.task, &error)) ||
	    !read_ports(arguments->operands[1], &local, &forward.port, &error))
		return cli_misused(arguments->command, "%s", error.text);
	if (!session_open(&session, arguments, &status))
		return status;
	forward.job = session_job(&session, arguments->operands[0]);
	status = forward_job(&session, &forward, local);
	session_close(&session);
	return status;
}

/* Random, as hexadecimal digits. */
static void make_token(char token[2 * TOKEN_BYTES + 1])
{
	unsigned char bytes[TOKEN_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		panic("no random numbers to be had");
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(token + 2 * i, 3, "%02x", bytes[i]);
}

/* The token comes by standard input, which is stored nowhere. */
static const char notebook_script[] =
    "command -v jupyter >/dev/null || { echo 'jupyter is not installed here' >&2; exit 127; }\n"
    "IFS= read -r JUPYTER_TOKEN || exit 1\n"
    "export JUPYTER_TOKEN\n"
    "exec jupyter \"$1\" --no-browser --ip=127.0.0.1 --port=\"$0\" --ServerApp.port_retries=0\n";

static json_t *notebook_request(struct session *session, int64_t port, struct error *error)
{
	json_t *job = json_pack("{ss}", "name", "notebook");
	char text[16];

	if (!job_request_overlay(session, job, error)) {
		json_decref(job);
		return NULL;
	}
	snprintf(text, sizeof(text), "%lld", (long long)port);
	json_object_set_new(job, "command",
	                    json_pack("[sssss]", "/bin/sh", "-c", notebook_script, text, "lab"));
	json_object_set_new(job, "standard_input", json_string("first"));
	return job;
}

struct notebook {
	struct session *session;
	const char *job;
};

static bool notebook_is_over(void *context)
{
	const struct notebook *notebook = context;
	struct error error = { 0 };
	json_t *job =
	    session_get(notebook->session,
	                session_path(notebook->session, "/api/v1/jobs/%s", notebook->job), &error);
	bool over = job ? job_is_over(member_text(job, "state")) : error.code == ERROR_NOT_FOUND;

	json_decref(job);
	return over;
}

static bool notebook_has_ended(const struct notebook *notebook, struct error *error)
{
	error_clear(error);
	return error_set(error, ERROR_CONFLICT, "%s has ended: see 'gpu-cli logs %s'",
	                 notebook->job, notebook->job);
}

static bool send_token(struct notebook *notebook, const char *token, struct error *error)
{
	char body[2 * TOKEN_BYTES + 2];
	int size = snprintf(body, sizeof(body), "%s\n", token);
	struct client_request request = {
		.method = "POST",
		.path = session_path(notebook->session, "/api/v1/jobs/%s/input?offset=0&end=1",
		                     notebook->job),
		.body = body,
		.body_size = (size_t)size,
	};
	int64_t end_ms = clock_steady_ms() + NOTEBOOK_START_MS;

	for (;;) {
		json_t *answer = client_ask(&notebook->session->client, &request, error);
		bool taken = answer && (member_integer(answer, "offset") > 0 ||
		                        member_flag(answer, "closed"));
		json_decref(answer);
		if (taken)
			return true;
		if (notebook_is_over(notebook))
			return notebook_has_ended(notebook, error);
		if (error->code == ERROR_FORBIDDEN || clock_steady_ms() >= end_ms)
			return error->code == ERROR_NONE ? error_set(error, ERROR_UNAVAILABLE,
			                                             "the notebook takes no token")
			                                 : false;
		error_clear(error);
		usleep(AGAIN_US);
	}
}

/* Until the server listens. */
static bool await_notebook(struct notebook *notebook, const struct job_forward *forward,
                           struct error *error)
{
	int64_t end_ms = clock_steady_ms() + NOTEBOOK_START_MS;

	while (!job_forward_probe(notebook->session, forward, error)) {
		if (notebook_is_over(notebook))
			return error_set(error, ERROR_CONFLICT,
			                 "%s has ended: see 'gpu-cli logs %s'", notebook->job,
			                 notebook->job);
		if (error->code == ERROR_FORBIDDEN || clock_steady_ms() >= end_ms)
			return false;
		error_clear(error);
		usleep(AGAIN_US);
	}
	return true;
}

static int stay_with_notebook(struct session *session, const char *job, int64_t port, int64_t local,
                              int listener)
{
	struct notebook notebook = { session, job };
	struct job_forward forward = { .job = job, .port = port };
	char token[2 * TOKEN_BYTES + 1];
	struct error error = { 0 };
	int status = job_watch(
	    session,
	    &(struct job_watch){ .job = job, .cancels = true, .task = -1, .until_running = true });

	if (status != CLI_FINE)
		return status;
	make_token(token);
	if (send_token(&notebook, token, &error) && await_notebook(&notebook, &forward, &error)) {
		printf("http://127.0.0.1:%lld/lab?token=%s\nCtrl-C ends %s\n", (long long)local,
		       token, job);
		fflush(stdout);
		job_forward_serve(session, &forward, listener, notebook_is_over, &notebook);
	} else {
		status = session_fail(session, &error);
	}
	explicit_bzero(token, sizeof(token));
	if (!notebook_is_over(&notebook))
		json_decref(session_ask(session, "DELETE",
		                        session_path(session, "/api/v1/jobs/%s", job), NULL,
		                        &error));
	return status;
}

static int notebook_run(const struct arguments *arguments)
{
	const char *text = arguments_value(arguments, "--port");
	int64_t local = 0, port = NOTEBOOK_PORT_FIRST + clock_unix_ms() % NOTEBOOK_PORTS;
	struct error error = { 0 };
	struct session session;
	int status;

	if (text && !quantity_integer("--port", text, 0, PORT_MAX, &local, &error))
		return cli_misused(arguments->command, "%s", error.text);
	if (!session_open(&session, arguments, &status))
		return status;
	job_watch_catch();
	json_t *job = notebook_request(&session, port, &error);
	int listener = job ? job_forward_listen(&local, &error) : -1;
	json_t *answer = NULL;
	if (listener < 0) {
		status = session_fail(&session, &error);
		json_decref(job);
	} else {
		answer = submit_send(&session, job, &status);
	}
	if (answer)
		status = stay_with_notebook(&session, member_text(answer, "job_id"), port, local,
		                            listener);
	json_decref(answer);
	session_close(&session);
	return status;
}

const struct cli_command forward_command = {
	.name = "forward",
	.arguments = "JOB [LOCAL:]PORT [OPTION...]",
	.summary = "reach a port of a task at a port of this machine",
	.details = "Connections to 127.0.0.1:LOCAL go to what the task itself listens on at PORT.\n"
		   "LOCAL 0 is any free port. Ctrl-C ends it.\n",
	.examples = "forward job-12 8888\n"
		    "forward job-12 16006:6006 --task 1\n",
	.options = forward_options,
	.asks = true,
	.operand = COMPLETES_JOBS,
	.run = forward_run,
};

const struct cli_command notebook_command = {
	.name = "notebook",
	.arguments = "[OPTION...]",
	.summary = "start Jupyter in a job, and print its address",
	.details =
	    "Jupyter has to be installed where the job runs, or in its --image. It listens on\n"
	    "loopback alone and is reached through the service. Ctrl-C ends the job.\n",
	.examples = "notebook --gpus 1\n"
		    "notebook --gpu-memory 20G --image jupyter/base-notebook --port 8888\n",
	.fields = &job_resource,
	.without = "--array --hold --script --stdin",
	.options = notebook_options,
	.asks = true,
	.run = notebook_run,
};
