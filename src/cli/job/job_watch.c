/* job_watch.c - follows a job until it finishes, and shows its output */
#include "cli/job/job_watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "cli/client/stream.h"
#include "cli/job/job_input.h"
#include "cli/text/quantity.h"
#include "cli/text/text_width.h"
#include "json/member.h"

enum {
	TAILS_MAX = 256, /* tasks whose output is shown at once */
	LOOK_MS = 2000,  /* between looks at the job where events tell of changes */
	SOON_MS = 300,   /* where they do not, or something is about to happen */
	TRIES = 20,      /* to read the output of a finished task */
};

/* The output of one task as it comes. */
struct tail {
	int64_t task;
	struct client_stream stream; /* open while it is being read */
	int64_t run_ms; /* when the run that is read, or was, began; 0: none, or to be read again */
	int64_t offset_run_ms, offset; /* bytes of which run were shown already */
	int64_t not_before_ms;
	int tries;
	bool inside_line;
	bool labelled; /* lines begin with the task */
};

struct watching {
	struct session *session;
	const struct job_watch *watch;
	struct stream *stream;
	struct job_input *input; /* NULL: none is passed on, or no more */
	struct tail *tails;
	size_t tail_count;
	json_t *job;
	char said[32]; /* the state that was told last */
	bool cancelled;
	int64_t look_ms; /* when to look at the job again */
};

static volatile sig_atomic_t interruptions;

static void on_interrupt(int number)
{
	static const char left[] = "\n";
	(void)number;
	interruptions++;
	if (interruptions > 1) {
		(void)!write(STDERR_FILENO, left, sizeof(left) - 1);
		_exit(CLI_INTERRUPTED);
	}
}

bool job_is_over(const char *state)
{
	return strcmp(state, "completed") == 0 || strcmp(state, "failed") == 0 ||
	       strcmp(state, "cancelled") == 0;
}

/* Writes output, each line behind the number of its task where there are several. */
static void job_watch_show(void *context, const char *data, size_t size)
{
	struct tail *tail = context;
	tail->offset += (int64_t)size;
	tail->tries = 0;
	if (!tail->labelled) {
		fwrite(data, 1, size, stdout);
		return;
	}
	while (size > 0) {
		const char *end = memchr(data, '\n', size);
		size_t part = end ? (size_t)(end - data) + 1 : size;
		if (!tail->inside_line)
			printf("[%lld] ", (long long)tail->task);
		fwrite(data, 1, part, stdout);
		tail->inside_line = !end;
		data += part;
		size -= part;
	}
}

static void start_tail(struct watching *watching, struct tail *tail, int64_t run_ms)
{
	struct session *session = watching->session;
	struct error unused = { 0 };
	struct buffer path = { 0 };
	if (tail->offset_run_ms != run_ms)
		tail->offset = 0;
	tail->offset_run_ms = run_ms;
	buffer_text(&path, session_path(session, "/api/v1/jobs/%s/logs", watching->watch->job));
	buffer_print(&path, "?follow=1&task=%lld&offset=%lld", (long long)tail->task,
	             (long long)tail->offset);
	tail->stream = (struct client_stream){ .part = job_watch_show, .context = tail };
	if (client_stream_open(&tail->stream, &session->client, path.data, &unused))
		tail->run_ms = run_ms;
	else
		tail->not_before_ms = clock_unix_ms() + LOOK_MS;
	buffer_free(&path);
}

/* Ends the answer of a tail. Output that could not be read is requested again from where it broke
 * off: for a while, and for as long as the service is away. */
static void end_tail(struct watching *watching, struct tail *tail, bool broken)
{
	int status = tail->stream.answer.status;
	bool refused = status != 200;
	bool away = status == 0 || status == 502 || status == 503; /* it may be starting again */
	if (away || ((refused || broken) && tail->tries++ < TRIES)) {
		tail->run_ms = 0;
		tail->not_before_ms = clock_unix_ms() + SOON_MS;
	} else if (refused) {
		struct error error = { 0 };
		client_refusal(&tail->stream.answer, &watching->session->client, &error);
		fprintf(stderr, "the output of %s cannot be had: %s\n", watching->watch->job,
		        error.text);
	}
	client_stream_close(&tail->stream);
	watching->look_ms = 0;
}

/* Takes what has come for a tail. */
static void read_tail(struct watching *watching, struct tail *tail)
{
	struct error unused = { 0 };
	enum fetch_state state = fetch_advance(tail->stream.fetch, &unused);
	fflush(stdout);
	if (state != FETCH_RUNS)
		end_tail(watching, tail, state == FETCH_FAILED);
}

static struct tail *tail_of(struct watching *watching, int64_t task)
{
	for (size_t i = 0; i < watching->tail_count; i++)
		if (watching->tails[i].task == task)
			return &watching->tails[i];
	if (watching->tail_count == TAILS_MAX)
		return NULL;
	struct tail *tail = &watching->tails[watching->tail_count++];
	*tail = (struct tail){ .task = task };
	return tail;
}

/* Starts to read what has begun to run and is not being read. */
static void start_tails(struct watching *watching)
{
	const json_t *tasks = json_object_get(watching->job, "allocations");
	int64_t only = watching->watch->task;
	size_t place;
	json_t *task;
	json_array_foreach(tasks, place, task)
	{
		int64_t number = member_integer(task, "task");
		int64_t run_ms = member_moment(task, "started_at");
		if (run_ms <= 0 || (only >= 0 && number != only))
			continue;
		struct tail *tail = tail_of(watching, number);
		if (!tail || tail->stream.fetch || tail->run_ms >= run_ms ||
		    tail->not_before_ms > clock_unix_ms())
			continue;
		tail->labelled = only < 0 && member_integer(watching->job, "tasks") > 1;
		start_tail(watching, tail, run_ms);
	}
}

/* Whether output is being read, or will be tried again. */
static bool has_tails(const struct watching *watching)
{
	for (size_t i = 0; i < watching->tail_count; i++) {
		const struct tail *tail = &watching->tails[i];
		if (tail->stream.fetch || (tail->run_ms == 0 && tail->tries < TRIES))
			return true;
	}
	return false;
}

/* That it waits, and for what: the first sentence of why. */
static void say_why(struct watching *watching)
{
	struct session *session = watching->session;
	struct error unused = { 0 };
	json_t *answer = session_get(
	    session, session_path(session, "/api/v1/jobs/%s/why", watching->watch->job), &unused);
	const char *reason = json_string_value(json_array_get(json_object_get(answer, "why"), 0));
	if (reason && strstr(reason, " waits")) {
		struct buffer clean = { 0 };
		text_clean(&clean, reason);
		fprintf(stderr, "%s\n", clean.data);
		buffer_free(&clean);
	} else {
		fprintf(stderr, "%s waits\n", watching->watch->job);
	}
	json_decref(answer);
}

static void say_state(struct watching *watching)
{
	const char *state = member_text(watching->job, "state");
	const char *node = member_text(watching->job, "node_name");
	if (watching->watch->quiet || strcmp(watching->said, state) == 0)
		return;
	snprintf(watching->said, sizeof(watching->said), "%.31s", state);
	if (strcmp(state, "pending") == 0)
		say_why(watching);
	else if (strcmp(state, "running") == 0)
		fprintf(stderr, "%s runs on %s\n", watching->watch->job, node);
	else if (strcmp(state, "preempted") == 0)
		fprintf(stderr, "%s was preempted, and will run again\n", watching->watch->job);
}

static bool job_watch_look(struct watching *watching, struct error *error)
{
	struct session *session = watching->session;
	json_t *job = session_get(
	    session, session_path(session, "/api/v1/jobs/%s", watching->watch->job), error);
	if (!job) {
		/* The service may be starting again; the job runs on meanwhile. */
		if (!watching->job || error->code != ERROR_UNAVAILABLE)
			return false;
		error_clear(error);
		watching->look_ms = clock_unix_ms() + LOOK_MS;
		return true;
	}
	json_decref(watching->job);
	watching->job = job;
	watching->look_ms = clock_unix_ms() + (watching->stream ? LOOK_MS : SOON_MS);
	return true;
}

/* Takes events; one about this job makes us look at it at once. */
static void job_watch_read_events(struct watching *watching)
{
	json_t *event;
	while (watching->stream) {
		if (!stream_next(watching->stream, &event)) {
			stream_close(watching->stream);
			watching->stream = NULL;
			break;
		}
		if (!event)
			break;
		if (strcmp(member_text(event, "job_id"), watching->watch->job) == 0)
			watching->look_ms = 0;
		json_decref(event);
	}
}

static void cancel(struct watching *watching)
{
	struct session *session = watching->session;
	struct error error = { 0 };
	watching->cancelled = true;
	fprintf(stderr, "cancelling %s (Ctrl-C again leaves without waiting)\n",
	        watching->watch->job);
	json_decref(session_ask(session, "DELETE",
	                        session_path(session, "/api/v1/jobs/%s", watching->watch->job),
	                        NULL, &error));
	if (error.code != ERROR_NONE && error.code != ERROR_CONFLICT)
		fprintf(stderr, "%s could not be cancelled: %s\n", watching->watch->job,
		        error.text);
	watching->look_ms = 0;
}

/* A run that cannot get what an earlier one was given must not take the rest for all of it. */
static void pass_input(struct watching *watching)
{
	struct error error = { 0 };

	if (!watching->input || job_input_advance(watching->input, watching->job, &error))
		return;
	job_input_free(watching->input);
	watching->input = NULL;
	if (error.code == ERROR_NONE)
		return;
	fprintf(stderr, "standard input of %s: %s\n", watching->watch->job, error.text);
	if (!watching->cancelled)
		cancel(watching);
}

static void wait_for_more(struct watching *watching)
{
	struct pollfd polls[TAILS_MAX + 2];
	nfds_t count = 0;
	for (size_t i = 0; i < watching->tail_count; i++)
		if (watching->tails[i].stream.fetch)
			polls[count++] = (struct pollfd){
				.fd = fetch_descriptor(watching->tails[i].stream.fetch),
				.events = POLLIN,
			};
	if (watching->stream)
		polls[count++] =
		    (struct pollfd){ .fd = stream_descriptor(watching->stream), .events = POLLIN };
	if (watching->input)
		polls[count++] = job_input_poll(watching->input);
	int64_t left = max64(watching->look_ms - clock_unix_ms(), 0);
	poll(polls, count, (int)min64(left, SOON_MS));
	for (size_t i = 0; i < watching->tail_count; i++)
		if (watching->tails[i].stream.fetch)
			read_tail(watching, &watching->tails[i]);
	job_watch_read_events(watching);
	pass_input(watching);
}

static int code_of(const struct watching *watching)
{
	const char *state = member_text(watching->job, "state");
	const char *message = member_text(watching->job, "message");
	if (strcmp(state, "completed") == 0 || watching->watch->any_end)
		return CLI_FINE;
	bool more = *message && strcmp(message, state) != 0;
	fprintf(stderr, "%s %s%s%s\n", watching->watch->job,
	        strcmp(state, "failed") == 0 ? "failed" : "was cancelled", more ? ": " : "",
	        more ? message : "");
	if (strcmp(state, "failed") != 0)
		return watching->cancelled ? CLI_INTERRUPTED : CLI_NO_JOB;
	int64_t code = member_integer(watching->job, "exit_code");
	return code > 0 && code < 256 ? (int)code : 1;
}

static int stay(struct watching *watching)
{
	struct error error = { 0 };
	for (;;) {
		if (watching->watch->cancels && interruptions > 0 && !watching->cancelled)
			cancel(watching);
		if (clock_unix_ms() >= watching->look_ms) {
			if (!job_watch_look(watching, &error)) {
				int status = session_fail(watching->session, &error);
				return watching->watch->any_end ? status : CLI_NO_JOB;
			}
			say_state(watching);
			if (watching->watch->output)
				start_tails(watching);
		}
		if (watching->watch->until_running &&
		    strcmp(member_text(watching->job, "state"), "running") == 0)
			return CLI_FINE;
		if (job_is_over(member_text(watching->job, "state")) && !has_tails(watching))
			return code_of(watching);
		if (ferror(stdout))
			return CLI_NO_JOB;
		wait_for_more(watching);
	}
}

void job_watch_catch(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction interrupt = { .sa_handler = on_interrupt };
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &interrupt, NULL);
}

int job_watch(struct session *session, const struct job_watch *watch)
{
	struct watching watching = { .session = session, .watch = watch };
	struct error unused = { 0 };

	watching.tails = memory_zero(TAILS_MAX, sizeof(*watching.tails));
	watching.stream = stream_open(&session->client, "jobs", &unused);
	if (watch->input)
		watching.input = job_input_new(&session->client, watch->job);
	int status = stay(&watching);
	job_input_free(watching.input);
	for (size_t i = 0; i < watching.tail_count; i++)
		client_stream_close(&watching.tails[i].stream);
	stream_close(watching.stream);
	json_decref(watching.job);
	free(watching.tails);
	return status;
}
