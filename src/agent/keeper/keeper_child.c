/* keeper_child.c - the first process of a work, and what runs before and after it */
#include "agent/keeper/keeper_child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/file.h"
#include "agent/host/privileges.h"
#include "base/clock.h"

#define LOOK_MS 1000
#define OOM_FILE "/proc/self/oom_score_adj"

/* What went wrong on the way to exec, through a pipe that exec closes. */
struct child_report {
	int32_t step, reason;
};
enum child_step {
	STEP_CGROUP,
	STEP_NETWORK,
	STEP_FILES,
	STEP_LIMITS,
	STEP_USER,
	STEP_DIRECTORY,
	STEP_COMMAND,
};

_Noreturn static void give_up(int report, enum child_step step)
{
	struct child_report said = { (int32_t)step, errno };

	if (write(report, &said, sizeof(said)) < 0)
		_exit(126);
	_exit(126);
}

static void reset_signals(void)
{
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* `in` is negative where there is no input. */
static bool set_files(int in, int out, int errors)
{
	int from = in >= 0 ? in : open("/dev/null", O_RDONLY | O_CLOEXEC);

	return from >= 0 && dup2(from, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
	       dup2(errors, STDERR_FILENO) >= 0;
}

/* Only 0 to 2 reach a task or a hook, whatever the agent, its libraries and the keeper have open.
 * `flags` as for close_range(). */
static bool close_others(unsigned flags)
{
	if (close_range(STDERR_FILENO + 1, ~0u, (int)flags) == 0)
		return true;
	/* A kernel that is older than the call. */
	long most = sysconf(_SC_OPEN_MAX);
	for (int fd = STDERR_FILENO + 1; fd < most; fd++) {
		if (flags & CLOSE_RANGE_CLOEXEC)
			fcntl(fd, F_SETFD, FD_CLOEXEC);
		else
			close(fd);
	}
	return most > 0;
}

static bool set_limits(const struct spec *spec)
{
	struct rlimit no_core = { 0, 0 };
	struct rlimit files = { (rlim_t)spec->open_files, (rlim_t)spec->open_files };

	/* An agent may be the last that is to be killed when memory runs out; a task is not. */
	if (file_number(OOM_FILE, 0) < 0)
		file_write(OOM_FILE, "0");
	if (setrlimit(RLIMIT_CORE, &no_core) != 0)
		return false;
	return spec->open_files <= 0 || setrlimit(RLIMIT_NOFILE, &files) == 0;
}

static bool change_user(const struct spec *spec)
{
	gid_t groups[SPEC_GROUPS_MAX];

	if (spec->uid < 0)
		return true;
	for (int i = 0; i < spec->group_count; i++)
		groups[i] = (gid_t)spec->groups[i];
	return setgroups((size_t)spec->group_count, groups) == 0 && setgid((gid_t)spec->gid) == 0 &&
	       setuid((uid_t)spec->uid) == 0;
}

static bool set_user(const struct spec *spec)
{
	bool root = spec->uid < 0 && geteuid() == 0;

	if (spec->keeps_privileges)
		return change_user(spec);
	return privileges_bound(root) && change_user(spec) && privileges_seal();
}

/* As its user. A directory that nobody insists on may be missing here, and the output says so. */
static bool enter_directory(const struct spec *spec)
{
	if (spec->directory)
		return chdir(spec->directory) == 0;
	if (spec->submit_directory && chdir(spec->submit_directory) == 0)
		return true;
	int reason = errno;
	bool home = spec->home && chdir(spec->home) == 0;
	if (spec->submit_directory)
		dprintf(STDERR_FILENO, "gpu-keeper: cannot start in %s (%s): starting in %s\n",
		        spec->submit_directory, strerror(reason), home ? spec->home : "/");
	return home || chdir("/") == 0;
}

_Noreturn static void become(const struct spec *spec, int in, int out, int errors, int network,
                             int report)
{
	setsid();
	reset_signals();
	if (!cgroup_enter(&spec->group))
		give_up(report, STEP_CGROUP);
	if (network >= 0 && setns(network, CLONE_NEWNET) != 0)
		give_up(report, STEP_NETWORK);
	if (!set_files(in, out, errors) || !close_others(CLOSE_RANGE_CLOEXEC))
		give_up(report, STEP_FILES);
	if (in >= 0 && isatty(STDIN_FILENO) && ioctl(STDIN_FILENO, TIOCSCTTY, 0) != 0)
		give_up(report, STEP_FILES);
	if (!set_limits(spec))
		give_up(report, STEP_LIMITS);
	if (!set_user(spec))
		give_up(report, STEP_USER);
	if (!enter_directory(spec))
		give_up(report, STEP_DIRECTORY);
	environ = spec->environment;
	execvpe(spec->arguments[0], spec->arguments, spec->environment);
	give_up(report, STEP_COMMAND);
}

static enum child_fault keeper_child_explain(const struct spec *spec,
                                             const struct child_report *said, struct error *error)
{
	const char *reason = strerror(said->reason);

	switch ((enum child_step)said->step) {
	case STEP_COMMAND:
		error_set(error, ERROR_INVALID, "cannot run %s: %s",
		          spec->script ? "the script" : spec->arguments[0], reason);
		return CHILD_COMMAND_FAULT;
	case STEP_DIRECTORY:
		error_set(error, ERROR_INVALID, "cannot begin in the directory %s: %s",
		          spec->directory ? spec->directory : "/", reason);
		return CHILD_COMMAND_FAULT;
	case STEP_CGROUP:
		error_set(error, ERROR_UNAVAILABLE, "cannot enter its cgroup: %s", reason);
		break;
	case STEP_NETWORK:
		error_set(error, ERROR_UNAVAILABLE, "cannot enter its network: %s", reason);
		break;
	case STEP_USER:
		error_set(error, ERROR_UNAVAILABLE, "cannot become the user %lld: %s",
		          (long long)spec->uid, reason);
		break;
	case STEP_LIMITS:
		error_set(error, ERROR_UNAVAILABLE, "cannot set its limits: %s", reason);
		break;
	default:
		error_set(error, ERROR_UNAVAILABLE, "cannot open its files: %s", reason);
		break;
	}
	return CHILD_SYSTEM_FAULT;
}

pid_t keeper_child_start(const struct spec *spec, int in, int out, int errors, int network,
                         enum child_fault *fault, struct error *error)
{
	struct child_report said;
	int report[2];

	*fault = CHILD_SYSTEM_FAULT;
	if (pipe2(report, O_CLOEXEC) != 0) {
		error_set(error, ERROR_UNAVAILABLE, "cannot make a pipe: %s", strerror(errno));
		return 0;
	}
	pid_t pid = fork();
	if (pid == 0)
		become(spec, in, out, errors, network, report[1]);
	close(report[1]);
	if (pid < 0) {
		error_set(error, ERROR_UNAVAILABLE, "cannot make a process: %s", strerror(errno));
		close(report[0]);
		return 0;
	}
	ssize_t got;
	do
		got = read(report[0], &said, sizeof(said));
	while (got < 0 && errno == EINTR);
	close(report[0]);
	*fault = CHILD_NO_FAULT;
	if (got != (ssize_t)sizeof(said))
		return pid;
	*fault = keeper_child_explain(spec, &said, error);
	waitpid(pid, NULL, 0);
	return 0;
}

_Noreturn static void become_hook(const struct spec *spec, const char *program, int out)
{
	char *arguments[] = { (char *)program, NULL };

	setsid();
	reset_signals();
	umask(022);
	if (!set_files(-1, out, out) || !close_others(0) || chdir("/") != 0)
		_exit(126);
	execve(program, arguments, spec->hook_environment);
	_exit(127);
}

_Noreturn static void become_clean_up(const struct spec *spec, const struct cgroup *group)
{
	int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);

	setsid();
	reset_signals();
	if (!cgroup_enter(group) || nothing < 0 || !set_files(-1, nothing, nothing) ||
	    !close_others(0) || !set_limits(spec) || !set_user(spec) || chdir("/") != 0)
		_exit(126);
	execve(spec->clean_up[0], spec->clean_up, spec->clean_up_environment);
	_exit(127);
}

static int keeper_child_wait_for(pid_t pid, int64_t most_ms)
{
	int64_t until_ms = clock_boot_ms() + most_ms;
	int status = 0;

	if (pid < 0)
		return 126;
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (clock_boot_ms() >= until_ms) {
			kill(-pid, SIGKILL);
			waitpid(pid, &status, 0);
			return 124;
		}
		poll(NULL, 0, 5);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int keeper_child_hook(const struct spec *spec, const char *program, int out, int64_t most_ms)
{
	pid_t pid = fork();

	if (pid == 0)
		become_hook(spec, program, out);
	return keeper_child_wait_for(pid, most_ms);
}

int keeper_child_clean_up(const struct spec *spec, const struct cgroup *group, int64_t most_ms)
{
	pid_t pid = fork();

	if (pid == 0)
		become_clean_up(spec, group);
	return keeper_child_wait_for(pid, most_ms);
}

static int64_t mark_of(const char *path)
{
	struct stat status;

	if (stat(path, &status) != 0)
		return 0;
	return (int64_t)status.st_mtim.tv_sec * 1000000 + status.st_mtim.tv_nsec / 1000 +
	       (int64_t)status.st_size;
}

/* A task that is told to end writes its last checkpoint then: signals that it gets do not end
 * this one. */
_Noreturn static void look(const struct spec *spec, int marks)
{
	int64_t before = 0;

	setsid();
	reset_signals();
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_IGN);
	if (dup2(marks, STDIN_FILENO) < 0 || !close_others(0) ||
	    !privileges_bound(spec->uid < 0 && geteuid() == 0) || !change_user(spec) ||
	    !privileges_seal() || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || chdir("/") != 0)
		_exit(126);
	for (;;) {
		int64_t mark = mark_of(spec->checkpoint_path);
		if (mark != 0 && mark != before &&
		    write(STDIN_FILENO, &mark, sizeof(mark)) != sizeof(mark))
			_exit(0);
		before = mark;
		poll(NULL, 0, LOOK_MS);
	}
}

pid_t keeper_child_look(const struct spec *spec, int *marks)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
		return 0;
	pid_t pid = fork();
	if (pid == 0)
		look(spec, ends[1]);
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return 0;
	}
	*marks = ends[0];
	return pid;
}
