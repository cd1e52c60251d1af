/* slot_proxy_program.c - gpu-slot-proxy: one stands before each model's server */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/host/privileges.h"
#include "agent/proxy/slot_proxy.h"

enum { NOBODY = 65534, PEM_BYTES_MAX = 64 << 10 };

/* It reads what strangers send: as root it would do so with everything the node has. */
static bool give_up_privileges(void)
{
	if (geteuid() == 0 && (!privileges_bound(false) || setgroups(0, NULL) != 0 ||
	                       setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
		return false;
	return privileges_seal();
}

/* False with a reason, or without one where there are no keys. */
static bool read_keys(struct slot_proxy_settings *settings, struct error *error)
{
	struct slot_keys *keys = &settings->keys;
	char pem[PEM_BYTES_MAX];
	bool whole = pread(SLOT_PROXY_KEYS, keys, sizeof(*keys), 0) == sizeof(*keys) &&
	             keys->client[SLOT_KEY_SIZE] == '\0' && keys->agent[SLOT_KEY_SIZE] == '\0';
	ssize_t size = pread(SLOT_PROXY_KEYS, pem, sizeof(pem), sizeof(*keys));

	close(SLOT_PROXY_KEYS);
	if (whole && size > 0)
		settings->tls = slot_tls_new((struct text){ pem, (size_t)size }, error);
	explicit_bzero(pem, sizeof(pem));
	return whole && (size == 0 || settings->tls);
}

static int fail_begin(const char *reason)
{
	if (write(SLOT_PROXY_READY, reason, strlen(reason)) < 0)
		return 2;
	return 1;
}

static int run_slot_proxy(const char *port, const char *paths, const char *network, const char *tls)
{
	struct slot_proxy_settings settings = {
		.listener = SLOT_PROXY_LISTENER,
		.network = strcmp(network, "own") == 0 ? SLOT_PROXY_NETWORK : -1,
		.server_port = atoll(port),
		.tls_only = strcmp(tls, "tls") == 0,
		.paths = strcmp(paths, "all") == 0 ? SLOT_PATHS_ALL : SLOT_PATHS_INFERENCE,
	};
	struct error error = { 0 };

	signal(SIGPIPE, SIG_IGN);
	if (!read_keys(&settings, &error))
		return fail_begin(error.code != ERROR_NONE
		                      ? error.text
		                      : "the proxy of the slot was given no keys");
	settings.leases = lease_keys_map(SLOT_PROXY_LEASES);
	close(SLOT_PROXY_LEASES);
	if (!settings.leases)
		return fail_begin("the proxy of the slot was given no file of leases");
	for (int file = SLOT_PROXY_LISTENER; file < SLOT_PROXY_FILES; file++)
		fcntl(file, F_SETFD, FD_CLOEXEC);
	struct slot_proxy *proxy = slot_proxy_new(&settings, &error);
	explicit_bzero(&settings.keys, sizeof(settings.keys));
	if (!proxy)
		return fail_begin(error.text);
	if (!give_up_privileges())
		return fail_begin("the proxy of the slot cannot give up its privileges");
	/* Its keys are read by nobody, and it ends with its keeper. Both are lost when a process
	 * changes its user. */
	prctl(PR_SET_DUMPABLE, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (write(SLOT_PROXY_READY, "\n", 1) != 1)
		return 1;
	close(SLOT_PROXY_READY);
	slot_proxy_serve(proxy);
}

int main(int argc, char **argv)
{
	if (argc == 5)
		return run_slot_proxy(argv[1], argv[2], argv[3], argv[4]);
	fprintf(stderr, "gpu-slot-proxy is started by gpu-keeper, one for each slot\n");
	return 2;
}
