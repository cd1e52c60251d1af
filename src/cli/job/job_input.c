/* job_input.c - standard input, passed on to the tasks of a job that have one */
#include "cli/job/job_input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "json/member.h"

enum { PART_BYTES = 128 << 10, AGAIN_MS = 300 };

/* A task that is given input. `taken` counts from the beginning of its run. */
struct target {
	int64_t run_ms; /* when the run began that takes it; 0: none has */
	int64_t taken;
	bool ended;  /* it was told of the end */
	bool closed; /* it reads no more */
};

struct job_input {
	const struct client *client;
	const char *job;
	char *part;
	int64_t offset; /* of the part, from the beginning of the input */
	size_t size;
	bool at_end;       /* nothing follows the part */
	bool is_file;      /* it can be read again */
	off_t file_offset; /* where it began */
	struct target *targets;
	size_t target_count;
	size_t at;                   /* the target of the request under way */
	struct client_stream stream; /* open while there is one */
	struct buffer path, answer;
	int64_t not_before_ms;
};

bool job_input_is_there(void)
{
	struct stat status;

	if (fstat(STDIN_FILENO, &status) != 0)
		return false;
	if (isatty(STDIN_FILENO))
		return tcgetpgrp(STDIN_FILENO) == getpgrp();
	return !S_ISCHR(status.st_mode) || status.st_rdev != makedev(1, 3);
}

struct job_input *job_input_new(const struct client *client, const char *job)
{
	struct job_input *input = NEW(struct job_input);
	struct stat status;

	input->client = client;
	input->job = job;
	input->part = memory_zero(PART_BYTES, 1);
	input->is_file = fstat(STDIN_FILENO, &status) == 0 && S_ISREG(status.st_mode);
	input->file_offset = input->is_file ? lseek(STDIN_FILENO, 0, SEEK_CUR) : 0;
	return input;
}

void job_input_free(struct job_input *input)
{
	if (!input)
		return;
	client_stream_close(&input->stream);
	explicit_bzero(input->part, PART_BYTES);
	free(input->part);
	free(input->targets);
	buffer_free(&input->path);
	buffer_free(&input->answer);
	free(input);
}

static bool has_finished(const struct target *target)
{
	return target->closed || target->ended;
}

/* Whether the target has what is in memory. */
static bool has_part(const struct job_input *input, const struct target *target)
{
	bool has_bytes = target->taken >= input->offset + (int64_t)input->size;

	return has_finished(target) || (has_bytes && !input->at_end);
}

static bool all_have_part(const struct job_input *input)
{
	for (size_t i = 0; i < input->target_count; i++)
		if (!has_part(input, &input->targets[i]))
			return false;
	return input->target_count > 0;
}

struct pollfd job_input_poll(const struct job_input *input)
{
	struct pollfd wait = { .fd = -1, .events = POLLIN };

	if (input->stream.fetch)
		wait.fd = fetch_descriptor(input->stream.fetch);
	else if (!input->at_end && all_have_part(input))
		wait.fd = STDIN_FILENO;
	return wait;
}

/* From the beginning: for a task that started again. */
static bool rewind_input(struct job_input *input, struct error *error)
{
	if (input->offset == 0)
		return true;
	if (!input->is_file)
		return error_set(error, ERROR_CONFLICT,
		                 "a task started again, and what was read from a pipe or a "
		                 "terminal cannot be read again");
	input->offset = 0;
	input->size = 0;
	input->at_end = false;
	return true;
}

/* The tasks that have input, and which of their runs. */
static bool take_job(struct job_input *input, const json_t *job, struct error *error)
{
	bool all = strcmp(member_text(job, "standard_input"), "all") == 0;
	int64_t tasks = member_integer(job, "tasks");
	size_t count = all && tasks > 1 ? (size_t)tasks : 1, place;
	json_t *allocation;

	if (!input->targets) {
		input->targets = memory_zero(count, sizeof(*input->targets));
		input->target_count = count;
	}
	json_array_foreach(json_object_get(job, "allocations"), place, allocation)
	{
		int64_t task = member_integer(allocation, "task");
		int64_t run_ms = member_moment(allocation, "started_at");
		if (task < 0 || (size_t)task >= input->target_count || run_ms <= 0 ||
		    run_ms <= input->targets[task].run_ms)
			continue;
		bool again = input->targets[task].taken > 0;
		input->targets[task] = (struct target){ .run_ms = run_ms };
		if (again && !rewind_input(input, error))
			return false;
	}
	return true;
}

/* Reads the next part. False: there is none yet. */
static bool read_part(struct job_input *input)
{
	struct pollfd wait = { .fd = STDIN_FILENO, .events = POLLIN };
	ssize_t got;

	if (!input->is_file && poll(&wait, 1, 0) <= 0)
		return false;
	int64_t offset = input->offset + (int64_t)input->size;
	got = input->is_file
	          ? pread(STDIN_FILENO, input->part, PART_BYTES, input->file_offset + (off_t)offset)
	          : read(STDIN_FILENO, input->part, PART_BYTES);
	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return false;
	input->offset = offset;
	input->size = got > 0 ? (size_t)got : 0;
	input->at_end = got <= 0;
	return true;
}

static void keep_answer(void *context, const char *data, size_t size)
{
	buffer_bytes(context, data, size);
}

/* Sends the part to the first task that needs it. */
static void send_part(struct job_input *input)
{
	struct error unused = { 0 };
	size_t at = 0;

	while (at < input->target_count &&
	       (input->targets[at].run_ms == 0 || has_part(input, &input->targets[at])))
		at++;
	if (at == input->target_count || clock_unix_ms() < input->not_before_ms)
		return;
	input->at = at;
	buffer_clear(&input->path);
	buffer_clear(&input->answer);
	buffer_text(&input->path, "/api/v1/jobs/");
	client_escape(&input->path, input->job);
	buffer_print(&input->path, "/input?task=%zu&offset=%lld%s", at, (long long)input->offset,
	             input->at_end ? "&end=1" : "");
	input->stream = (struct client_stream){ .part = keep_answer, .context = &input->answer };
	if (!client_stream_send(
		&input->stream, input->client,
		&(struct client_request){ .method = "POST",
	                                  .path = input->path.data,
	                                  .body = input->size > 0 ? input->part : NULL,
	                                  .body_size = input->size },
		&unused))
		input->not_before_ms = clock_unix_ms() + AGAIN_MS;
}

/* A task that has less than was sent to it before has started again: its new run shows when the job
 * is looked at. */
static void take_answer(struct job_input *input)
{
	struct target *target = &input->targets[input->at];
	const struct buffer *answer = &input->answer;
	json_t *document = json_loadb(answer->data ? answer->data : "", answer->size, 0, NULL);
	int64_t taken = member_integer(document, "offset");
	bool answered = input->stream.answer.status == 200 && json_is_object(document);
	bool closed = answered && member_flag(document, "closed");

	target->closed = target->closed || closed;
	if (answered && taken >= input->offset)
		target->taken = taken;
	else if (!closed)
		input->not_before_ms = clock_unix_ms() + AGAIN_MS;
	if (answered && input->at_end && taken >= input->offset + (int64_t)input->size)
		target->ended = true;
	json_decref(document);
}

static bool finished(const struct job_input *input)
{
	for (size_t i = 0; i < input->target_count; i++)
		if (!input->targets[i].closed)
			return false;
	return input->target_count > 0;
}

bool job_input_advance(struct job_input *input, const json_t *job, struct error *error)
{
	struct error unused = { 0 };

	if (input->stream.fetch) {
		enum fetch_state state = fetch_advance(input->stream.fetch, &unused);
		if (state == FETCH_RUNS)
			return true;
		if (state == FETCH_COMPLETE)
			take_answer(input);
		else
			input->not_before_ms = clock_unix_ms() + AGAIN_MS;
		client_stream_close(&input->stream);
	}
	if (!take_job(input, job, error) || finished(input))
		return false;
	if (!input->at_end && all_have_part(input) && !read_part(input))
		return true;
	send_part(input);
	return true;
}
