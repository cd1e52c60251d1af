/* keeper.c - the process that stays with a work: it outlives the agent */
#include "agent/keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/file.h"
#include "agent/keeper/input.h"
#include "agent/keeper/keeper_child.h"
#include "agent/keeper/keeper_proxy.h"
#include "agent/keeper/sessions.h"
#include "base/clock.h"
#include "base/number.h"

#define EXIT_NOT_RUN 127
#define EXIT_TIMEOUT 124
#define HOOK_MS 60000
#define LAST_OUTPUT_MS 2000 /* for clients of sessions, when the work has ended */
#define BUDGET_BYTES_MAX (16 << 20)
#define LEASE_LOOK_MS 1000     /* it may be told to end earlier than it was before */
#define RUNTIME_MARGIN_MS 1000 /* the agent, if there is one, goes first */
#define EXIT_LINE "exited %d %" PRId64 " %" PRId64 " %" PRId64 " %d %" PRId64 " %d"

enum ending { ENDING_NOT, ENDING_NOTICED, ENDING_KILLED };

struct keeper {
	struct spec spec;
	struct arena arena;
	int report, status, signals;
	int out[2], errors[2]; /* the pipes that the work writes to; errors is out where not apart
	                        */
	struct output_writer output, error_output;
	struct input_relay input;
	struct sessions sessions;
	int64_t sessions_ms; /* when they want to be looked at */
	pid_t pid;
	pid_t proxy;  /* before a model's server; 0: none */
	pid_t looker; /* for checkpoints; 0: none */
	int marks;    /* what it tells */
	bool alone;   /* no agent has heard of its end */
	int64_t started_ms;
	bool exited, leased_out, timed_out;
	int exit_code, signal;
	int64_t exited_ms;
	enum ending ending;
};

/* False where nobody is there to be told. */
__attribute__((format(printf, 2, 3))) static bool tell(int fd, const char *format, ...)
{
	char line[512];
	va_list arguments;

	va_start(arguments, format);
	int size = vsnprintf(line, sizeof(line) - 1, format, arguments);
	va_end(arguments);
	size = size < (int)sizeof(line) - 2 ? size : (int)sizeof(line) - 2;
	line[size] = '\n';
	return fd >= 0 && write(fd, line, (size_t)size + 1) == size + 1;
}

static void keeper_say(struct keeper *keeper, const char *text)
{
	output_append(&keeper->output, text, strlen(text));
	output_append(&keeper->output, "\n", 1);
}

/* Moves what the work wrote to its files; false at the end of the pipe. */
static bool keeper_drain(int fd, struct output_writer *writer)
{
	static char data[65536];
	ssize_t got;

	while ((got = read(fd, data, sizeof(data))) > 0)
		output_append(writer, data, (size_t)got);
	return got < 0 && (errno == EAGAIN || errno == EINTR);
}

static void drain_all(struct keeper *keeper)
{
	keeper_drain(keeper->out[0], &keeper->output);
	if (keeper->spec.errors_apart)
		keeper_drain(keeper->errors[0], &keeper->error_output);
}

static bool make_pipe(int ends[2])
{
	return pipe2(ends, O_CLOEXEC) == 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
}

static bool open_outputs(struct keeper *keeper, struct error *error)
{
	const struct spec *spec = &keeper->spec;

	if (!make_pipe(keeper->out))
		return error_set(error, ERROR_UNAVAILABLE, "cannot make a pipe: %s",
		                 strerror(errno));
	memcpy(keeper->errors, keeper->out, sizeof(keeper->errors));
	if (!output_open(&keeper->output, spec->output_directory, STREAM_OUTPUT, &spec->output,
	                 error))
		return false;
	if (!spec->errors_apart)
		return true;
	if (!make_pipe(keeper->errors))
		return error_set(error, ERROR_UNAVAILABLE, "cannot make a pipe: %s",
		                 strerror(errno));
	return output_open(&keeper->error_output, spec->output_directory, STREAM_ERRORS,
	                   &spec->output, error);
}

static void keeper_watch_signals(struct keeper *keeper)
{
	sigset_t children;

	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	sigprocmask(SIG_BLOCK, &children, NULL);
	keeper->signals = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
}

static int64_t time_ms(const struct timeval *time)
{
	return (int64_t)time->tv_sec * 1000 + (int64_t)time->tv_usec / 1000;
}

/* The agent makes a result last as soon as it has it; where there is none, that is done here. */
static void write_down_end(struct keeper *keeper)
{
	struct rusage used = { 0 };
	int64_t peak_bytes = cgroup_peak_bytes(&keeper->spec.group);
	int64_t cpu_ms = cgroup_cpu_ms(&keeper->spec.group);
	int64_t kills = cgroup_memory_kills(&keeper->spec.group);
	bool told = false;

	/* Of its descendants that were waited for, where there is no group to ask. */
	if (getrusage(RUSAGE_CHILDREN, &used) == 0) {
		peak_bytes = max64(peak_bytes, (int64_t)used.ru_maxrss * 1024);
		cpu_ms = max64(cpu_ms, time_ms(&used.ru_utime) + time_ms(&used.ru_stime));
	}

	if (keeper->leased_out) {
		tell(keeper->status, "ended lease");
	} else {
		tell(keeper->status, EXIT_LINE, keeper->exit_code, peak_bytes, keeper->exited_ms,
		     cpu_ms, keeper->signal, kills, keeper->timed_out);
		told = tell(keeper->report, EXIT_LINE, keeper->exit_code, peak_bytes,
		            keeper->exited_ms, cpu_ms, keeper->signal, kills, keeper->timed_out);
	}
	keeper->alone = !told;
	if (!told)
		fdatasync(keeper->status);
}

/* Nobody reaches the server any more: the slot ends, and the model is loaded again. */
static void lose_proxy(struct keeper *keeper)
{
	keeper->proxy = 0;
	if (keeper->exited)
		return;
	keeper_say(keeper, "gpu-keeper: the proxy before the server has ended");
	cgroup_kill(&keeper->spec.group);
}

/* Takes all children that ended: the first process, and those that it left to us. */
static void reap(struct keeper *keeper)
{
	struct signalfd_siginfo ignored;
	int status;
	pid_t pid;

	while (read(keeper->signals, &ignored, sizeof(ignored)) > 0)
		;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == keeper->proxy)
			lose_proxy(keeper);
		if (sessions_reaped(&keeper->sessions, pid, status))
			keeper->sessions_ms = 0;
		if (pid != keeper->pid)
			continue;
		keeper->exited = true;
		keeper->exited_ms = clock_boot_ms();
		keeper->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
		keeper->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + keeper->signal;
		if (keeper->timed_out)
			keeper->exit_code = EXIT_TIMEOUT;
	}
}

static int64_t lease_until_ms(const struct spec *spec)
{
	int64_t until_ms = 0;

	if (!spec->lease_path)
		return INT64_MAX;
	int fd = open(spec->lease_path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || pread(fd, &until_ms, sizeof(until_ms), 0) != sizeof(until_ms))
		until_ms = 0;
	if (fd >= 0)
		close(fd);
	return until_ms;
}

static int64_t runtime_until_ms(const struct keeper *keeper)
{
	if (keeper->spec.runtime_ms <= 0)
		return INT64_MAX;
	return keeper->started_ms + keeper->spec.runtime_ms + RUNTIME_MARGIN_MS;
}

/* Gives notice and kills when nobody else does. When to look again. */
static int64_t enforce(struct keeper *keeper)
{
	int64_t now_ms = clock_boot_ms();
	int64_t lease_ms = lease_until_ms(&keeper->spec), runtime_ms = runtime_until_ms(keeper);
	int64_t until_ms = min64(lease_ms, runtime_ms);

	if (until_ms == INT64_MAX)
		return INT64_MAX;
	if (now_ms < until_ms)
		return keeper->spec.lease_path ? min64(until_ms, now_ms + LEASE_LOOK_MS) : until_ms;
	keeper->leased_out = keeper->leased_out || now_ms >= lease_ms;
	keeper->timed_out = keeper->timed_out || now_ms >= runtime_ms;
	if (keeper->ending == ENDING_NOT) {
		keeper->ending = ENDING_NOTICED;
		kill(-keeper->pid, SIGTERM);
	}
	int64_t kill_ms = until_ms + keeper->spec.grace_ms;
	if (now_ms >= kill_ms) {
		keeper->ending = ENDING_KILLED;
		cgroup_kill(&keeper->spec.group);
		return now_ms + 100;
	}
	return kill_ms;
}

static void wait_for_events(struct keeper *keeper, int64_t until_ms)
{
	struct pollfd files[] = { { .fd = keeper->signals, .events = POLLIN },
		                  { .fd = keeper->out[0], .events = POLLIN },
		                  { .fd = keeper->looker > 0 ? keeper->marks : -1,
		                    .events = POLLIN },
		                  input_relay_poll(&keeper->input),
		                  { .fd = keeper->errors[0], .events = POLLIN } };
	nfds_t count = keeper->spec.errors_apart ? 5 : 4, all;
	struct pollfd *polls = sessions_poll(&keeper->sessions, count, &all);

	memcpy(polls, files, count * sizeof(*files));
	until_ms = min64(until_ms, keeper->sessions_ms);
	int64_t wait_ms = until_ms == INT64_MAX ? -1 : max64(until_ms - clock_boot_ms(), 0);
	poll(polls, all, (int)min64(wait_ms, 60000));
	keeper->sessions_ms = sessions_move(&keeper->sessions);
}

static void stop_looking(struct keeper *keeper)
{
	if (keeper->looker == 0)
		return;
	kill(keeper->looker, SIGKILL);
	close(keeper->marks);
	keeper->looker = 0;
}

/* Passes the last mark on to the agent, or to the one after it. */
static void take_marks(struct keeper *keeper)
{
	int64_t mark = 0, last = 0;
	ssize_t got = -1;

	while (keeper->looker > 0 && (got = read(keeper->marks, &mark, sizeof(mark))) > 0)
		last = mark;
	if (got == 0)
		stop_looking(keeper);
	if (last == 0)
		return;
	char *path = keeper_mark_path(keeper->spec.status_path);
	int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0 && pwrite(fd, &last, sizeof(last), 0) < 0)
		keeper_say(keeper, "gpu-keeper: a checkpoint could not be told to the agent");
	if (fd >= 0)
		close(fd);
	free(path);
}

static void keeper_keep(struct keeper *keeper)
{
	while (!keeper->exited) {
		wait_for_events(keeper, enforce(keeper));
		drain_all(keeper);
		input_relay_move(&keeper->input);
		take_marks(keeper);
		reap(keeper);
	}
	input_relay_close(&keeper->input);
	drain_all(keeper);
	take_marks(keeper);
	stop_looking(keeper);
	if (keeper->proxy > 0)
		kill(keeper->proxy, SIGKILL);
	write_down_end(keeper);
}

static void empty_group(struct keeper *keeper, const struct cgroup *group)
{
	int pause_ms = 1;

	while (cgroup_is_populated(group)) {
		cgroup_kill(group);
		wait_for_events(keeper, clock_boot_ms() + pause_ms);
		drain_all(keeper);
		reap(keeper);
		pause_ms = pause_ms < 200 ? pause_ms * 2 : pause_ms;
	}
	drain_all(keeper);
}

/* Not in the work's own group: the agent kills what is in there until the keeper has left. */
static void clean_up(struct keeper *keeper)
{
	struct cgroup beside;

	if (!keeper->spec.clean_up[0] || !cgroup_make_beside(&keeper->spec.group, &beside))
		return;
	keeper_child_clean_up(&keeper->spec, &beside, HOOK_MS);
	empty_group(keeper, &beside);
	cgroup_remove(&beside);
	cgroup_free(&beside);
}

/* Sessions end with the work. Their clients get the last output, if they read. */
static void finish_sessions(struct keeper *keeper)
{
	int64_t end_ms = clock_boot_ms() + LAST_OUTPUT_MS;

	sessions_end(&keeper->sessions);
	keeper->sessions_ms = sessions_move(&keeper->sessions);
	while (sessions_are_busy(&keeper->sessions) && clock_boot_ms() < end_ms) {
		wait_for_events(keeper, end_ms);
		reap(keeper);
	}
	sessions_close(&keeper->sessions);
}

/* The work could write to it, and put something else in its place. */
static bool read_budget(const char *path, struct buffer *bytes)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	static char data[65536];
	struct stat status;
	bool good = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
	ssize_t got;

	while (good && bytes->size <= BUDGET_BYTES_MAX && (got = read(fd, data, sizeof(data))) > 0)
		buffer_bytes(bytes, data, (size_t)got);
	if (fd >= 0)
		close(fd);
	return good && bytes->size <= BUDGET_BYTES_MAX;
}

/* The agent removes the segment of the guard when it has read it. Where there is none, nothing
 * stays behind in memory: the segment waits beside the status for the next agent. */
static void keep_budget(const struct keeper *keeper)
{
	struct buffer bytes = { 0 };
	struct error error = { 0 };
	const char *from = keeper->spec.budget_path;

	if (!from || !keeper->alone)
		return;
	char *to = keeper_budget_path(keeper->spec.status_path);
	if (read_budget(from, &bytes))
		file_replace(to, bytes.data, bytes.size, 0600, &error);
	unlink(from);
	buffer_free(&bytes);
	free(to);
}

/* Whatever the first process left behind ends with it. */
static void clear(struct keeper *keeper)
{
	const struct spec *spec = &keeper->spec;

	sessions_foresee_end(&keeper->sessions);
	empty_group(keeper, &spec->group);
	finish_sessions(keeper);
	clean_up(keeper);
	if (spec->epilog)
		keeper_child_hook(spec, spec->epilog, keeper->out[1], HOOK_MS);
	drain_all(keeper);
	cgroup_remove(&keeper->spec.group);
	keep_budget(keeper);
	tell(keeper->status, "gone");
}

static bool run_prolog(struct keeper *keeper)
{
	int code;

	if (!keeper->spec.prolog)
		return true;
	code = keeper_child_hook(&keeper->spec, keeper->spec.prolog, keeper->out[1], HOOK_MS);
	drain_all(keeper);
	if (code != 0)
		tell(keeper->report, "refused the prolog %s ended with %d", keeper->spec.prolog,
		     code);
	return code == 0;
}

/* Its own fault: it has run, as far as anyone is concerned, and has failed. */
static void keeper_fail(struct keeper *keeper, const char *reason)
{
	int64_t start = process_start(getpid());

	keeper_say(keeper, reason);
	tell(keeper->status, "started 0 0");
	tell(keeper->report, "started %d %" PRId64, getpid(), start);
	keeper->exit_code = EXIT_NOT_RUN;
	keeper->exited_ms = clock_boot_ms();
	write_down_end(keeper);
	clear(keeper);
}

static bool start_proxy(struct keeper *keeper, int *network)
{
	struct error error = { 0 };

	keeper->proxy = keeper_proxy_start(&keeper->spec, network, &error);
	if (error.code != ERROR_NONE)
		tell(keeper->report, "refused %s", error.text);
	return error.code == ERROR_NONE;
}

/* The read end of its standard input; -1: it has none, or (false) it could not be opened. */
static bool open_input(struct keeper *keeper, int *in)
{
	const struct spec *spec = &keeper->spec;

	*in = -1;
	if (!spec->input_path)
		return true;
	*in = input_relay_open(&keeper->input, spec->input_path, spec->uid, spec->gid);
	if (*in < 0)
		tell(keeper->report, "refused its standard input cannot be opened: %s",
		     strerror(errno));
	return *in >= 0;
}

/* The files of the work's command: a terminal is all of them. */
static bool open_files(struct keeper *keeper, int *in, int *out, int *errors)
{
	*out = keeper->out[1];
	*errors = keeper->errors[1];
	sessions_open(&keeper->sessions, &keeper->spec);
	if (!keeper->spec.terminal)
		return open_input(keeper, in);
	*in = *out = *errors = sessions_open_main(&keeper->sessions, &keeper->output);
	if (*in < 0)
		tell(keeper->report, "refused a terminal cannot be opened: %s", strerror(errno));
	return *in >= 0;
}

static bool keeper_launch(struct keeper *keeper)
{
	struct error error = { 0 };
	enum child_fault fault = CHILD_NO_FAULT;
	int in, out, errors, network = -1;

	if (!keeper->spec.arguments[0]) {
		keeper_fail(keeper, keeper->spec.failure ? keeper->spec.failure
		                                         : "there is no command to run");
		return false;
	}
	if (!open_files(keeper, &in, &out, &errors))
		return false;
	bool has_proxy = start_proxy(keeper, &network);
	keeper->started_ms = clock_boot_ms();
	if (has_proxy)
		keeper->pid =
		    keeper_child_start(&keeper->spec, in, out, errors, network, &fault, &error);
	sessions_main_started(&keeper->sessions, keeper->pid);
	if (in >= 0)
		close(in);
	if (network >= 0)
		close(network);
	if (!has_proxy)
		return false;
	spec_wipe(&keeper->spec);
	if (fault == CHILD_COMMAND_FAULT)
		keeper_fail(keeper, error.text);
	else if (fault == CHILD_SYSTEM_FAULT)
		tell(keeper->report, "refused %s", error.text);
	if (fault != CHILD_NO_FAULT)
		return false;
	int64_t begun = process_start(keeper->pid);
	tell(keeper->status, "started %d %" PRId64, keeper->pid, begun);
	tell(keeper->report, "started %d %" PRId64, keeper->pid, begun);
	if (keeper->spec.checkpoint_path)
		keeper->looker = keeper_child_look(&keeper->spec, &keeper->marks);
	return true;
}

/* Read where it is: a copy would have secrets in it that nobody wipes. */
static bool read_spec(struct keeper *keeper, int fd)
{
	struct stat status = { 0 };
	void *data = MAP_FAILED;

	if (fstat(fd, &status) == 0 && status.st_size > 0)
		data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (data == MAP_FAILED)
		return false;
	bool read_well = spec_decode(&keeper->arena, data, (size_t)status.st_size, &keeper->spec);
	munmap(data, (size_t)status.st_size);
	keeper->spec.group.keeper = getpid();
	return read_well;
}

static bool keeper_begin(struct keeper *keeper, struct error *error)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	/* It has secrets in its memory until the task has them. */
	prctl(PR_SET_DUMPABLE, 0);
	keeper_watch_signals(keeper);
	return open_outputs(keeper, error);
}

int keeper_main(const char *spec_file, const char *report_file, const char *status_file)
{
	struct keeper keeper = { .status = atoi(status_file),
		                 .output = { .fd = -1 },
		                 .error_output = { .fd = -1 },
		                 .input = { .from = -1, .to = -1 },
		                 .sessions = { .listener = -1 },
		                 .sessions_ms = INT64_MAX };
	struct error error = { 0 };

	keeper.report = atoi(report_file);
	fcntl(keeper.report, F_SETFD, FD_CLOEXEC);
	/* What the work starts must not hold its lock. */
	fcntl(keeper.status, F_SETFD, FD_CLOEXEC);
	tell(keeper.status, "keeper %d %" PRId64, getpid(), process_start(getpid()));
	setsid();
	if (!read_spec(&keeper, atoi(spec_file))) {
		tell(keeper.report, "refused its description cannot be read");
		return 1;
	}
	if (!keeper_begin(&keeper, &error)) {
		tell(keeper.report, "refused %s", error.text);
		cgroup_remove(&keeper.spec.group);
		return 1;
	}
	if (run_prolog(&keeper) && keeper_launch(&keeper)) {
		keeper_keep(&keeper);
		clear(&keeper);
	} else {
		cgroup_remove(&keeper.spec.group);
	}
	sessions_close(&keeper.sessions);
	return 0;
}
