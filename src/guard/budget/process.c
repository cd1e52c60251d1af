/* process.c - which process is which, and whether it is still there */
#include "guard/budget/process.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guard/budget/system.h"

/* Appends text without its end. */
static char *process_append(char *out, const char *text)
{
	while (*text != '\0')
		*out++ = *text++;
	return out;
}

/* Writes "/proc/PID/NAME" without the help of stdio, which allocates. `name` begins
 * with a slash and is short. */
static void proc_path(char path[40], int64_t pid, const char *name)
{
	char digits[24];
	int count = 0;
	do {
		digits[count++] = (char)('0' + pid % 10);
		pid /= 10;
	} while (pid > 0 && count < 20);
	char *out = process_append(path, "/proc/");
	while (count > 0)
		*out++ = digits[--count];
	*process_append(out, name) = '\0';
}

/* The value of a decimal number, as far as it goes. */
static uint64_t parse_decimal(const char *text)
{
	uint64_t value = 0;
	for (; *text >= '0' && *text <= '9'; text++)
		value = value * 10 + (uint64_t)(*text - '0');
	return value;
}

/* The fields after the command's name, which is in parentheses and may contain
 * anything, a parenthesis too: the third is the state, the 20th how many threads
 * there are, the 22nd the start. */
bool process_parse_stat(const char *text, struct process_stat *stat)
{
	*stat = (struct process_stat){ 0 };
	const char *at = strrchr(text, ')');
	if (at == NULL || at[1] != ' ')
		return false;
	at += 2;
	char state = *at;
	uint64_t threads = 0;
	for (int field = 3; field < 22; field++) {
		if (field == 20)
			threads = parse_decimal(at);
		at = strchr(at, ' ');
		if (at == NULL)
			return false;
		at++;
	}
	stat->start_ticks = parse_decimal(at);
	/* A process whose first thread has ended looks like a zombie while the others
	 * run on. */
	stat->ended = (state == 'Z' || state == 'X') && threads <= 1;
	return true;
}

static bool read_stat(const char *path, struct process_stat *stat)
{
	char text[1024];
	return system_read_text(path, text, sizeof text) > 0 && process_parse_stat(text, stat);
}

static uint64_t read_namespace(const char *path)
{
	char link[64];
	/* "pid:[4026531836]" */
	return system_read_link(path, link, sizeof link) > 5 ? parse_decimal(link + 5) : 0;
}

struct process_identity process_self(void)
{
	struct process_stat stat = { 0 };
	read_stat("/proc/self/stat", &stat);
	return (struct process_identity){ .owner = process_owner(getpid(), stat.start_ticks),
		                          .namespace_id = read_namespace("/proc/self/ns/pid") };
}

int64_t process_parse_own_pid(const char *text)
{
	const char *at = strstr(text, "NSpid:");
	int64_t pid = 0;
	for (at = at != NULL ? at + 6 : ""; *at != '\0' && *at != '\n'; at++) {
		if (*at >= '0' && *at <= '9' && (at[-1] < '0' || at[-1] > '9'))
			pid = (int64_t)parse_decimal(at);
	}
	return pid;
}

bool process_of(int64_t pid, struct process_identity *identity)
{
	char path[40];
	char text[4096];
	struct process_stat stat;
	proc_path(path, pid, "/status");
	if (system_read_text(path, text, sizeof text) <= 0)
		return false;
	int64_t own_pid = process_parse_own_pid(text);
	proc_path(path, pid, "/stat");
	if (!read_stat(path, &stat) || stat.ended)
		return false;
	proc_path(path, pid, "/ns/pid");
	*identity = (struct process_identity){
		.owner = process_owner(own_pid > 0 ? own_pid : pid, stat.start_ticks),
		.namespace_id = read_namespace(path),
	};
	return true;
}

bool process_is_gone(uint64_t owner)
{
	int64_t pid = process_owner_pid(owner);
	if (!system_process_exists(pid))
		return true;
	char path[40];
	proc_path(path, pid, "/stat");
	struct process_stat stat;
	/* Where /proc cannot be read, that the id exists has to do. */
	if (!read_stat(path, &stat))
		return false;
	uint64_t start_ticks = owner & ((UINT64_C(1) << 42) - 1);
	return stat.ended || (start_ticks != 0 && process_owner(pid, stat.start_ticks) != owner);
}
