/* evil.c - a library that a tenant wants loaded into a program of root: it leaves a file with
 * who ran it beside itself. Loaded by LD_PRELOAD, or by LD_AUDIT, which asks for a version. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

unsigned int la_version(unsigned int version)
{
	return version;
}

__attribute__((constructor)) static void leave_a_trace(void)
{
	char path[4096], text[600], command[256] = "";
	Dl_info here;

	if (geteuid() != 0 && getuid() != 0)
		return;
	if (!dladdr((void *)la_version, &here))
		return;
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? 0 : read(fd, command, sizeof(command) - 1);
	for (ssize_t i = 0; i + 1 < size; i++)
		if (command[i] == '\0')
			command[i] = ' ';
	if (fd >= 0)
		close(fd);
	int length = snprintf(text, sizeof(text), "uid=%d euid=%d: %s\n", (int)getuid(),
	                      (int)geteuid(), command);
	snprintf(path, sizeof(path), "%s.root", here.dli_fname);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd >= 0 && write(fd, text, (size_t)length) < 0)
		_exit(1);
	if (fd >= 0)
		close(fd);
}
