/* inputs.c - the standard input of tasks, as it comes from the scheduler */
#include "agent/workload/inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/keeper/input.h"
#include "base/memory.h"

enum { INPUTS_MAX = 1024 };

/* `request_id` is 0 while no part is held. `data` from `at` on is not written yet. */
struct task_input {
	struct inputs *inputs;
	int64_t reservation_id, request_id;
	int64_t written; /* bytes of the task's input */
	int fifo, offset_file;
	struct buffer data;
	size_t at;
	bool end;
	uv_poll_t *poll; /* runs while a part is held that the FIFO has no space for */
};

struct inputs {
	uv_loop_t *loop;
	const struct works *works;
	void (*send)(void *context, const struct envelope *envelope);
	void *context;
	struct task_input **list;
	size_t count, capacity;
};

struct inputs *inputs_new(uv_loop_t *loop, const struct works *works,
                          void (*send)(void *context, const struct envelope *envelope),
                          void *context)
{
	struct inputs *inputs = NEW(struct inputs);

	*inputs = (struct inputs){ .loop = loop, .works = works, .send = send, .context = context };
	return inputs;
}

static void inputs_poll_closed(uv_handle_t *handle)
{
	free(handle);
}

static void inputs_stop_poll(struct task_input *input)
{
	if (!input->poll)
		return;
	uv_poll_stop(input->poll);
	uv_close((uv_handle_t *)input->poll, inputs_poll_closed);
	input->poll = NULL;
}

/* What may have secrets in it is not left in memory. */
static void drop_part(struct task_input *input)
{
	if (input->data.size > 0)
		explicit_bzero(input->data.data, input->data.size);
	buffer_clear(&input->data);
	input->request_id = 0;
	input->at = 0;
	input->end = false;
	inputs_stop_poll(input);
}

static void inputs_remove(struct inputs *inputs, struct task_input *input)
{
	drop_part(input);
	for (size_t i = 0; i < inputs->count; i++)
		if (inputs->list[i] == input)
			inputs->list[i] = inputs->list[--inputs->count];
	close(input->fifo);
	close(input->offset_file);
	buffer_free(&input->data);
	free(input);
}

void inputs_free(struct inputs *inputs)
{
	while (inputs->count > 0)
		inputs_remove(inputs, inputs->list[0]);
	free(inputs->list);
	free(inputs);
}

static void inputs_answer(const struct inputs *inputs, struct input_taken taken)
{
	struct envelope envelope = { .kind = ENVELOPE_INPUT_TAKEN, .input_taken = taken };

	inputs->send(inputs->context, &envelope);
}

/* Answers the part that is held, and drops what is left of it. */
static void inputs_finish(struct task_input *input, bool closed)
{
	struct input_taken taken = { .request_id = input->request_id,
		                     .offset = input->written,
		                     .closed = closed };

	if (input->request_id == 0)
		return;
	drop_part(input);
	inputs_answer(input->inputs, taken);
}

/* Writes one frame. 1: written; 0: there is no space; -1: nobody reads. */
static int write_frame(struct task_input *input)
{
	struct input_frame frame = { .offset = input->written };
	size_t left = input->data.size - input->at;
	ssize_t put;

	frame.size = (int64_t)(left < INPUT_DATA_BYTES ? left : INPUT_DATA_BYTES);
	if (frame.size > 0)
		memcpy(frame.data, input->data.data + input->at, (size_t)frame.size);
	do
		put = write(input->fifo, &frame, input_frame_bytes(&frame));
	while (put < 0 && errno == EINTR);
	explicit_bzero(frame.data, (size_t)frame.size);
	if (put < 0)
		return errno == EAGAIN ? 0 : -1;
	input->at += (size_t)frame.size;
	input->written += frame.size;
	/* A frame that is not counted here is sent again, and dropped by the keeper. */
	return pwrite(input->offset_file, &input->written, sizeof(input->written), 0) ==
	               sizeof(input->written)
	           ? 1
	           : -1;
}

static void inputs_continue(struct task_input *input);

static void inputs_writable(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	inputs_continue(poll->data);
}

static void wait_for_space(struct task_input *input)
{
	if (input->poll)
		return;
	input->poll = NEW(uv_poll_t);
	uv_poll_init(input->inputs->loop, input->poll, input->fifo);
	input->poll->data = input;
	uv_poll_start(input->poll, UV_WRITABLE, inputs_writable);
}

static void inputs_continue(struct task_input *input)
{
	int put = 1;

	while (put > 0 && input->at < input->data.size)
		put = write_frame(input);
	if (put > 0 && input->end)
		put = write_frame(input);
	if (put == 0)
		wait_for_space(input);
	else
		inputs_finish(input, put < 0);
}

static struct task_input *inputs_find(const struct inputs *inputs, int64_t reservation_id)
{
	for (size_t i = 0; i < inputs->count; i++)
		if (inputs->list[i]->reservation_id == reservation_id)
			return inputs->list[i];
	return NULL;
}

static int open_fifo(const char *path)
{
	int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	struct stat status;

	if (fd >= 0 && (fstat(fd, &status) != 0 || !S_ISFIFO(status.st_mode))) {
		close(fd);
		fd = -1;
		errno = ENOENT;
	}
	return fd;
}

/* NULL where nothing can be written, with errno: ENXIO where the work reads no more. */
static struct task_input *inputs_open(struct inputs *inputs, int64_t reservation_id)
{
	char *path = works_input_path(inputs->works, reservation_id);
	char *offset_path = works_input_offset_path(inputs->works, reservation_id);
	int offset_file = -1, fifo = open_fifo(path);
	struct task_input *input = NULL;

	if (fifo >= 0)
		offset_file = open(offset_path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (offset_file >= 0) {
		input = NEW(struct task_input);
		*input = (struct task_input){ .inputs = inputs,
			                      .reservation_id = reservation_id,
			                      .fifo = fifo,
			                      .offset_file = offset_file };
		if (pread(offset_file, &input->written, sizeof(input->written), 0) !=
		    sizeof(input->written))
			input->written = 0;
		array_reserve(inputs->list, inputs->capacity, inputs->count + 1);
		inputs->list[inputs->count++] = input;
	} else if (fifo >= 0) {
		close(fifo);
	}
	free(path);
	free(offset_path);
	return input;
}

static void refuse_part(const struct inputs *inputs, const struct input_chunk *chunk, int reason)
{
	struct input_taken taken = { .request_id = chunk->request_id, .offset = chunk->offset };

	if (reason == ENXIO)
		taken.closed = true;
	else if (reason == ENOENT)
		taken.error = TEXT("the task has no standard input");
	else
		taken.error = text_of(strerror(reason));
	inputs_answer(inputs, taken);
}

void inputs_take(struct inputs *inputs, const struct input_chunk *chunk)
{
	struct task_input *input = inputs_find(inputs, chunk->reservation_id);

	if (!input && inputs->count < INPUTS_MAX)
		input = inputs_open(inputs, chunk->reservation_id);
	else if (!input)
		errno = EMFILE;
	if (!input) {
		refuse_part(inputs, chunk, errno);
		return;
	}
	inputs_finish(input, false);
	input->request_id = chunk->request_id;
	/* What is behind a gap is not taken: the answer says where to continue. */
	if (chunk->offset >= 0 && chunk->offset <= input->written) {
		buffer_bytes(&input->data, chunk->data.data, chunk->data.size);
		size_t before = (size_t)(input->written - chunk->offset);
		input->at = before < chunk->data.size ? before : chunk->data.size;
		/* The end that is due: one at an earlier offset was sent before. */
		input->end = chunk->end && before <= chunk->data.size;
	}
	inputs_continue(input);
}

void inputs_stop(struct inputs *inputs, int64_t request_id)
{
	for (size_t i = 0; i < inputs->count; i++)
		if (inputs->list[i]->request_id == request_id) {
			inputs_finish(inputs->list[i], false);
			return;
		}
}

void inputs_clear(struct inputs *inputs)
{
	for (size_t i = 0; i < inputs->count; i++)
		drop_part(inputs->list[i]);
}

void inputs_forget(struct inputs *inputs, int64_t reservation_id)
{
	struct task_input *input = inputs_find(inputs, reservation_id);

	if (!input)
		return;
	inputs_finish(input, true);
	inputs_remove(inputs, input);
}
