/* works_suspend.c - GPU memory of tasks that goes to host memory and comes back */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/gpu/checkpoint.h"
#include "agent/host/file.h"
#include "agent/workload/works_local.h"
#include "base/log.h"

#define SAID_MOST 400

/* A move that is under way: by a program, with a pipe to what it says, or by a timer alone. It is
 * done when the program has ended and the pipe has. The process may be forgotten meanwhile. */
struct works_move {
	pid_t program; /* 0: none */
	union {
		uv_pipe_t pipe;
		uv_timer_t timer;
	};
	struct work_process *process; /* NULL: it was forgotten */
	bool back, ended, said_all;
	int64_t status;
	char said[SAID_MOST];
	size_t said_size;
};

static void move_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void move_close(uv_handle_t *handle)
{
	if (!uv_is_closing(handle))
		uv_close(handle, move_closed);
}

void works_move_leave(struct work_process *process)
{
	struct works_move *move = process->move;

	process->move = NULL;
	if (!move)
		return;
	move->process = NULL;
	if (move->program > 0)
		move_close((uv_handle_t *)&move->pipe);
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
	int64_t copied_bytes = back || process->before_bytes <= 0
	                           ? 0
	                           : cgroup_memory_bytes(&process->group) - process->before_bytes;
	works_tell(process, back ? INPUT_RESUMED : INPUT_SUSPENDED,
	           (struct work_event){ .host_peak_bytes = copied_bytes > 0 ? copied_bytes : 0 });
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

static void move_finish(struct works_move *move)
{
	INVARIANT(move->ended && move->said_all && move->process);
	move->said[move->said_size] = '\0';
	move->said[strcspn(move->said, "\n")] = '\0';
	move_ended(move);
	move_close((uv_handle_t *)&move->pipe);
}

void works_child_ended(struct works *works, pid_t pid, int status)
{
	for (size_t i = 0; i < works->count; i++) {
		struct works_move *move = works->list[i]->move;
		if (!move || move->program != pid)
			continue;
		move->ended = true;
		move->status = WIFEXITED(status) ? WEXITSTATUS(status) : CHECKPOINT_LOST;
		if (move->said_all)
			move_finish(move);
		return;
	}
}

static void move_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
	static char rest[256]; /* what nobody reads */
	struct works_move *move = handle->data;
	size_t room = sizeof(move->said) - 1 - move->said_size;

	(void)suggested;
	*buffer = room > 0 ? uv_buf_init(move->said + move->said_size, (unsigned)room)
	                   : uv_buf_init(rest, sizeof(rest));
}

static void move_says(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
	struct works_move *move = stream->data;

	if (size > 0 && buffer->base == move->said + move->said_size)
		move->said_size += (size_t)size;
	if (size >= 0)
		return;
	uv_read_stop(stream);
	move->said_all = true;
	if (move->ended)
		move_finish(move);
}

/* Starts it with its errors in the pipe and our signals as usual. 0 or an error number. */
static int spawn_program(const char *program, char *const *arguments, int errors, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&files, errors, STDERR_FILENO);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	int failed = posix_spawnp(pid, program, &files, &attributes, arguments, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	return failed;
}

/* Its processes, as the arguments of the program that moves their memory; NULL: none are known. */
static char **move_arguments(struct arena *arena, const struct works_move *move,
                             const char *program)
{
	struct buffer pids = { 0 };

	cgroup_processes(&move->process->group, &pids);
	size_t count = pids.size / sizeof(int64_t);
	char **arguments = count > 0 ? arena_alloc(arena, (count + 3) * sizeof(*arguments)) : NULL;
	for (size_t i = 0; i < count; i++) {
		int64_t pid;
		char text[24];
		memcpy(&pid, pids.data + i * sizeof(pid), sizeof(pid));
		snprintf(text, sizeof(text), "%" PRId64, pid);
		arguments[i + 2] = arena_string(arena, text);
	}
	if (arguments) {
		arguments[0] = arena_string(arena, program);
		arguments[1] = move->back ? "resume" : "suspend";
		arguments[count + 2] = NULL;
	}
	buffer_free(&pids);
	return arguments;
}

static bool move_spawn(struct works_move *move, const char *program)
{
	struct arena arena = { 0 };
	int ends[2] = { -1, -1 };
	char **arguments = move_arguments(&arena, move, program);
	bool begun = arguments && pipe2(ends, O_CLOEXEC) == 0 &&
	             spawn_program(program, arguments, ends[1], &move->program) == 0;

	arena_free(&arena);
	if (ends[1] >= 0)
		close(ends[1]);
	if (!begun) {
		move->program = 0;
		if (ends[0] >= 0)
			close(ends[0]);
		return false;
	}
	uv_pipe_init(move->process->works->settings.loop, &move->pipe, 0);
	uv_pipe_open(&move->pipe, ends[0]);
	move->pipe.data = move;
	uv_read_start((uv_stream_t *)&move->pipe, move_room, move_says);
	return true;
}

static char *checkpoint_program(const struct works *works)
{
	const char *keeper = works->settings.keeper, *slash = keeper ? strrchr(keeper, '/') : NULL;

	return slash ? file_path("%.*s/gpu-checkpoint", (int)(slash - keeper), keeper)
	             : file_path("gpu-checkpoint");
}

static void move_later(struct works_move *move, uv_timer_cb then)
{
	uv_timer_init(move->process->works->settings.loop, &move->timer);
	move->timer.data = move;
	uv_timer_start(&move->timer, then, 0, 0);
}

static void move_begin(struct work_process *process, bool back)
{
	struct works *works = process->works;
	struct works_move *move = NEW(struct works_move);
	bool simulated = strcmp(works->settings.source->kind->name, "fake") == 0;

	*move = (struct works_move){ .process = process, .back = back };
	process->move = move;
	if (simulated) {
		move_later(move, move_simulated);
		return;
	}
	char *program = checkpoint_program(works);
	if (!move_spawn(move, program))
		move_later(move, move_not_begun);
	free(program);
}

void works_suspend(struct works *works, const struct node_order *order)
{
	struct work_process *process = works_find(works, order->reservation_id);

	if (!process || process->gone || !process->order || process->move)
		return;
	set_host_limit(process, order->host_bytes);
	process->before_bytes = cgroup_memory_bytes(&process->group);
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
