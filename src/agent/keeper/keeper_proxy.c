/* keeper_proxy.c - the proxy before a model's server, and the network that the server has */
#include "agent/keeper/keeper_proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/close_range.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/proxy/slot_proxy.h"

enum { SPARE_FILE = 16 };

/* A new namespace has loopback alone, and that is down. */
static bool raise_loopback(void)
{
	struct ifreq request = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool raised = fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &request) == 0;

	request.ifr_flags |= IFF_UP;
	raised = raised && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
	if (fd >= 0)
		close(fd);
	return raised;
}

/* This process is back in its own namespace when it returns: hooks run in that of the node. */
static int make_network(struct error *error)
{
	int node = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), network = -1;

	if (node >= 0 && unshare(CLONE_NEWNET) == 0) {
		if (raise_loopback())
			network = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
		int reason = errno;
		if (setns(node, CLONE_NEWNET) != 0)
			_exit(1); /* nothing could be reached from here any more */
		errno = reason;
	}
	if (network < 0)
		error_set(error, ERROR_UNAVAILABLE, "cannot make a network namespace: %s",
		          strerror(errno));
	if (node >= 0)
		close(node);
	return network;
}

bool keeper_proxy_can_isolate(void)
{
	int status = 1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(unshare(CLONE_NEWNET) == 0 && raise_loopback() ? 0 : 1);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Above all numbers that are about to be used. */
static int raise_file(int file)
{
	return file < 0 ? -1 : fcntl(file, F_DUPFD, SPARE_FILE);
}

_Noreturn static void become_proxy(const struct spec *spec, int ready, int network)
{
	int files[] = { raise_file(KEEPER_LISTENER), raise_file(KEEPER_KEYS),
		        raise_file(KEEPER_LEASES), raise_file(ready), raise_file(network) };
	char port[24];
	sigset_t none;

	snprintf(port, sizeof(port), "%" PRId64, spec->server_port);
	char *arguments[] = { "gpu-slot-proxy",
		              port,
		              spec->any_path ? "all" : "inference",
		              network >= 0 ? "own" : "node",
		              spec->tls_only ? "tls" : "any",
		              NULL };
	char *environment[] = { NULL };
	for (int i = 0; i < SLOT_PROXY_FILES - SLOT_PROXY_LISTENER; i++)
		if (files[i] >= 0 && dup2(files[i], SLOT_PROXY_LISTENER + i) < 0)
			_exit(126);
	int first = network >= 0 ? SLOT_PROXY_FILES : SLOT_PROXY_NETWORK;
	if (close_range((unsigned)first, ~0u, 0) != 0)
		for (int file = first; file < sysconf(_SC_OPEN_MAX); file++)
			close(file);
	setsid();
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execve(spec->proxy, arguments, environment);
	_exit(127);
}

/* It says what is wrong, or ends a line with nothing on it. */
static bool await_ready(int ready, struct error *error)
{
	char text[256];
	size_t size = 0;
	ssize_t got;

	while (size < sizeof(text) - 1 &&
	       ((got = read(ready, text + size, sizeof(text) - 1 - size)) > 0 ||
	        (got < 0 && errno == EINTR))) {
		size += got > 0 ? (size_t)got : 0;
		if (memchr(text, '\n', size))
			break;
	}
	text[size] = '\0';
	return strcmp(text, "\n") == 0 ||
	       error_set(error, ERROR_UNAVAILABLE, "cannot start the proxy of the slot%s%s",
	                 size > 0 ? ": " : "", text);
}

pid_t keeper_proxy_start(const struct spec *spec, int *network, struct error *error)
{
	int ready[2] = { -1, -1 };
	pid_t pid = -1;
	bool good = true;

	*network = -1;
	if (!spec->proxy)
		return 0;
	if (spec->own_network)
		good = (*network = make_network(error)) >= 0;
	if (good && pipe2(ready, O_CLOEXEC) == 0)
		pid = fork();
	if (pid == 0)
		become_proxy(spec, ready[1], *network);
	if (good && pid < 0)
		good = error_set(error, ERROR_UNAVAILABLE, "cannot start the proxy of the slot: %s",
		                 strerror(errno));
	close(KEEPER_LISTENER);
	close(KEEPER_KEYS);
	close(KEEPER_LEASES);
	if (ready[1] >= 0)
		close(ready[1]);
	if (good && !await_ready(ready[0], error)) {
		kill(pid, SIGKILL);
		good = false;
	}
	if (ready[0] >= 0)
		close(ready[0]);
	return good ? pid : 0;
}
