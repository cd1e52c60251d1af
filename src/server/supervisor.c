/* supervisor.c - what systemd is told, where it asked to be */
#include "server/supervisor.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/number_text.h"

void supervisor_tell(const char *lines)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *path = getenv("NOTIFY_SOCKET");
	size_t length = path ? strlen(path) : 0;
	if (length < 2 || length >= sizeof(address.sun_path) || (*path != '/' && *path != '@'))
		return;
	memcpy(address.sun_path, path, length);
	/* A name that is not in the file system begins with a NUL. */
	if (*path == '@')
		address.sun_path[0] = '\0';
	int socket_file = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (socket_file < 0)
		return;
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
	sendto(socket_file, lines, strlen(lines), MSG_NOSIGNAL, (struct sockaddr *)&address, size);
	close(socket_file);
}

int64_t supervisor_watchdog_ms(void)
{
	const char *text = getenv("WATCHDOG_USEC"), *process = getenv("WATCHDOG_PID");
	int64_t pid = getpid(), given_pid = pid, us = 0;
	if (!text || (process && !number_read(text_of(process), 1, INT32_MAX, &given_pid)))
		return 0;
	return given_pid == pid && number_read(text_of(text), 1, INT64_MAX, &us) ? us / 2000 : 0;
}
