/* works_suspend.c - GPU memory of tasks that goes to host memory and comes back */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/gpu/checkpoint.h"
#include "agent/host/file.h"
#include "agent/workload/works_local.h"
#include "base/log.h"

#define SAID_MOST 400

/* A move that is under way. The process may be forgotten meanwhile. */
struct works_move {
	uv_process_t program;
	uv_pipe_t pipe;
	uv_timer_t timer;
	struct work_process *process; /* NULL: it was forgotten */
	bool back;
	int open; /* handles that are not closed */
	bool ended;
	int64_t status;
	char said[SAID_MOST];
	size_t said_size;
};

static void move_closed(uv_handle_t *handle)
{
	struct works_move *move = handle->data;

	if (--move->open == 0)
		free(move);
}

static void move_close(uv_handle_t *handle)
{
	if (!uv_is_closing(handle))
		uv_close(handle, move_closed);
}

void works_move_leave(struct work_process *process)
{
	if (process->move)
		process->move->process = NULL;
	process->move = NULL;
}

/* Host memory that it may use from here on. Of one without a limit, that stays so. */
static void set_host_limit(const struct work_process *process, int64_t bytes)
{
	if (process->order->host_bytes > 0 && bytes > 0)
		cgroup_limit_memory(&process->group, bytes);
}

static void move_done(struct work_process *process, bool back)
{
	process->away = !back;
	if (back)
		set_host_limit(process, process->order->host_bytes);
	else
		cgroup_freeze(&process->group, true);
	works_tell(process, back ? INPUT_RESUMED : INPUT_SUSPENDED, (struct work_event){ 0 });
}

/* Refused: it is as before. Lost: it is killed, and told as ended by those who watch it. */
static void move_failed(struct work_process *process, bool back, bool lost, const char *reason)
{
	log_at(LOG_WARNING, back ? "a task was not resumed" : "a task was not suspended",
	       LOG_NUMBER("reservation", process->reservation_id), LOG_TEXT("reason", reason));
	if (lost) {
		cgroup_kill(&process->group);
		return;
	}
	if (back)
		cgroup_freeze(&process->group, true);
	else
		set_host_limit(process, process->order->host_bytes);
	works_tell(process, back ? INPUT_RESUMED : INPUT_SUSPENDED,
	           (struct work_event){ .failed = true, .message = reason });
}

static void move_ended(struct works_move *move)
{
	struct work_process *process = move->process;
	bool back = move->back;
	int64_t status = move->status;

	if (!process)
		return;
	process->move = NULL;
	if (process->gone)
		return;
	if (status == CHECKPOINT_DONE)
		move_done(process, back);
	else
		/* Whatever else it ends with, as where it does not start, nothing was changed. */
		move_failed(process, back, status == CHECKPOINT_LOST,
		            move->said_size > 0 ? move->said : "gpu-checkpoint failed");
}

/* Simulated GPUs move memory at once, or as the task's environment says. */
static void move_simulated(uv_timer_t *timer)
{
	struct works_move *move = timer->data;
	const char *what = move->process ? move->process->plan.fake_suspend : NULL;

	move->status = what && strcmp(what, "refuse") == 0 ? CHECKPOINT_REFUSED
	               : what && strcmp(what, "lose") == 0 ? CHECKPOINT_LOST
	                                                   : CHECKPOINT_DONE;
	if (move->status != CHECKPOINT_DONE)
		move->said_size = (size_t)snprintf(move->said, sizeof(move->said),
		                                   "the simulated GPU was told to %s", what);
	move_ended(move);
	move_close((uv_handle_t *)timer);
}

/* Its program could not be started: told as refused, but not from within the call. */
static void move_not_begun(uv_timer_t *timer)
{
	struct works_move *move = timer->data;

	move->status = CHECKPOINT_REFUSED;
	move_ended(move);
	move_close((uv_handle_t *)timer);
}

static void move_exited(uv_process_t *program, int64_t status, int signal)
{
	struct works_move *move = program->data;

	move->status = signal ? CHECKPOINT_LOST : status;
	move_ended(move);
	move_close((uv_handle_t *)&move->pipe);
	move_close((uv_handle_t *)program);
}

static void move_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
	struct works_move *move = handle->data;

	(void)suggested;
	*buffer = uv_buf_init(move->said + move->said_size,
	                      (unsigned)(sizeof(move->said) - 1 - move->said_size));
}

static void move_says(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
	struct works_move *move = stream->data;

	(void)buffer;
	if (size < 0 || move->said_size + (size_t)size >= sizeof(move->said) - 1) {
		uv_read_stop(stream);
		return;
	}
	move->said_size += (size_t)size;
	move->said[strcspn(move->said, "\n")] = '\0';
}

static int move_spawn(struct works_move *move, const char *program)
{
	struct work_process *process = move->process;
	struct buffer pids = { 0 };
	struct arena arena = { 0 };

	cgroup_processes(&process->group, &pids);
	size_t count = pids.size / sizeof(int64_t);
	if (count == 0) { /* without a cgroup its processes are not known */
		buffer_free(&pids);
		return UV_ESRCH;
	}
	char **arguments = arena_alloc(&arena, (count + 3) * sizeof(*arguments));
	arguments[0] = (char *)program;
	arguments[1] = move->back ? "resume" : "suspend";
	for (size_t i = 0; i < count; i++) {
		int64_t pid;
		char text[24];
		memcpy(&pid, pids.data + i * sizeof(pid), sizeof(pid));
		snprintf(text, sizeof(text), "%" PRId64, pid);
		arguments[i + 2] = arena_string(&arena, text);
	}
	arguments[count + 2] = NULL;
	uv_stdio_container_t files[3] = {
		{ .flags = UV_IGNORE },
		{ .flags = UV_IGNORE },
		{ .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
		  .data.stream = (uv_stream_t *)&move->pipe },
	};
	uv_process_options_t options = { .file = program,
		                         .args = arguments,
		                         .exit_cb = move_exited,
		                         .stdio = files,
		                         .stdio_count = 3 };
	uv_pipe_init(process->works->settings.loop, &move->pipe, 0);
	move->open = 2;
	int failed = uv_spawn(process->works->settings.loop, &move->program, &options);
	if (failed == 0)
		uv_read_start((uv_stream_t *)&move->pipe, move_room, move_says);
	buffer_free(&pids);
	arena_free(&arena);
	return failed;
}

static char *checkpoint_program(const struct works *works)
{
	const char *keeper = works->settings.keeper, *slash = keeper ? strrchr(keeper, '/') : NULL;

	return slash ? file_path("%.*s/gpu-checkpoint", (int)(slash - keeper), keeper)
	             : file_path("gpu-checkpoint");
}

static void move_begin(struct work_process *process, bool back)
{
	struct works *works = process->works;
	struct works_move *move = NEW(struct works_move);
	bool simulated = strcmp(works->settings.source->kind->name, "fake") == 0;

	*move = (struct works_move){ .process = process, .back = back, .open = 1 };
	move->program.data = move->pipe.data = move->timer.data = move;
	process->move = move;
	if (simulated) {
		uv_timer_init(works->settings.loop, &move->timer);
		uv_timer_start(&move->timer, move_simulated, 0, 0);
		return;
	}
	char *program = checkpoint_program(works);
	int failed = move_spawn(move, program);
	free(program);
	if (failed == 0)
		return;
	move->open = 3;
	move_close((uv_handle_t *)&move->pipe);
	move_close((uv_handle_t *)&move->program);
	uv_timer_init(works->settings.loop, &move->timer);
	uv_timer_start(&move->timer, move_not_begun, 0, 0);
}

void works_suspend(struct works *works, const struct node_order *order)
{
	struct work_process *process = works_find(works, order->reservation_id);

	if (!process || process->gone || !process->order || process->move)
		return;
	set_host_limit(process, order->host_bytes);
	cgroup_freeze(&process->group, false); /* after a restart it may be frozen */
	move_begin(process, false);
}

void works_resume(struct works *works, const struct node_order *order)
{
	struct work_process *process = works_find(works, order->reservation_id);

	if (!process || process->gone || !process->order || process->move)
		return;
	cgroup_freeze(&process->group, false);
	move_begin(process, true);
}
