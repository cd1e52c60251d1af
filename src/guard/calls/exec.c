/* exec.c - programs that are started from here get the guard too, whatever their environment says
 *
 * A shell that was told 'unset LD_PRELOAD', env -i, a launcher that cleans its variables: none of
 * them means to leave the guard. So where a task has one, its variables are put back into the
 * environment of every program that it starts by the C library. Who makes the system call himself
 * leaves it all the same, and is seen by the agent.
 *
 * Some of this runs between vfork and exec, in the parent's memory: nothing is allocated but on
 * the stack, and nothing is changed. */
#define _GNU_SOURCE
#include <alloca.h>
#include <errno.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guard/calls/state.h"
#include "guard/calls/symbol.h"
#include "guard/guard.h"

enum { VARIABLE_MAX = 4096, PRELOAD_MAX = 2 * VARIABLE_MAX, ARGUMENTS_MAX = 4096 };

static const char preload_name[] = "LD_PRELOAD=";

/* As the process was started with them; empty: not set. With their names. */
static struct {
	char library[VARIABLE_MAX]; /* of the guard itself, without a name */
	char segment[VARIABLE_MAX];
	char limits[VARIABLE_MAX];
} kept;

static void keep(char to[VARIABLE_MAX], const char *name)
{
	const char *value = getenv(name);
	size_t name_size = strlen(name);
	size_t size = value != NULL ? strlen(value) : 0;
	if (size == 0 || name_size + size + 2 > VARIABLE_MAX)
		return;
	memcpy(to, name, name_size); /* NOLINT(bugprone-not-null-terminated-result) */
	to[name_size] = '=';
	memcpy(to + name_size + 1, value, size + 1);
}

/* The C library's functions, found before the program runs: between fork and exec the loader's
 * lock may be held by a thread that is not there any more. */
#define EXEC_FUNCTIONS(X)                                                                          \
	X(execve)                                                                                  \
	X(execvpe) X(fexecve) X(execveat) X(posix_spawn) X(posix_spawnp) X(system) X(popen)
#define EXEC_NUMBER(name) REAL_##name,
enum { EXEC_FUNCTIONS(EXEC_NUMBER) REAL_COUNT };
static void *real_functions[REAL_COUNT];

static void find_functions(void)
{
#define EXEC_FIND(name) real_functions[REAL_##name] = symbol_find("libc.so.6", #name, NULL);
	EXEC_FUNCTIONS(EXEC_FIND)
}

/* Before the program can change its environment. */
__attribute__((constructor)) static void exec_remember(void)
{
	find_functions();
	/* The first in the list is the guard: it is only put back where it has come from there. */
	const char *list = getenv("LD_PRELOAD");
	size_t size = list != NULL ? strcspn(list, ": ") : 0;
	static const char name[] = "/libgpuguard.so";
	size_t name_size = sizeof name - 1;
	if (size < name_size || size >= VARIABLE_MAX ||
	    memcmp(list + size - name_size, name, name_size) != 0)
		return;
	memcpy(kept.library, list, size);
	keep(kept.segment, GUARD_SEGMENT_VARIABLE);
	keep(kept.limits, GUARD_LIMITS_VARIABLE);
}

static bool has_name(const char *entry, const char *variable)
{
	size_t size = strcspn(variable, "=") + 1;
	return strncmp(entry, variable, size) == 0;
}

static bool names_library(const char *list)
{
	const char *at = strstr(list, kept.library);
	return at != NULL && (at == list || at[-1] == ':' || at[-1] == ' ');
}

static size_t count_entries(char *const *environment)
{
	size_t count = 0;
	while (environment != NULL && environment[count] != NULL)
		count++;
	return count;
}

/* True if nothing is missing. */
static bool is_complete(char *const *environment)
{
	bool preload = false;
	bool segment = kept.segment[0] == '\0';
	bool limits = kept.limits[0] == '\0';
	if (kept.library[0] == '\0' || !state_active())
		return true;
	for (size_t i = 0; environment != NULL && environment[i] != NULL; i++) {
		const char *entry = environment[i];
		preload = preload ||
		          (has_name(entry, preload_name) && names_library(strchr(entry, '=') + 1));
		segment = segment || strcmp(entry, kept.segment) == 0;
		limits = limits || strcmp(entry, kept.limits) == 0;
	}
	return preload && segment && limits;
}

/* Fills `to`, which has room for all entries and four more, with what the program is to get. */
static void environment_complete(char *const *environment, char **to, char preload[PRELOAD_MAX])
{
	const char *others = NULL;
	size_t count = 0;
	for (size_t i = 0; environment != NULL && environment[i] != NULL; i++) {
		char *entry = environment[i];
		if (has_name(entry, preload_name))
			others = strchr(entry, '=') + 1;
		else if (!has_name(entry, GUARD_SEGMENT_VARIABLE "=") &&
		         !has_name(entry, GUARD_LIMITS_VARIABLE "="))
			to[count++] = entry;
	}
	bool whole = others != NULL && names_library(others);
	const char *parts[] = { preload_name, whole ? "" : kept.library,
		                !whole && others != NULL && others[0] != '\0' ? ":" : "",
		                others != NULL ? others : "" };
	size_t size = 0;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		size_t part = strlen(parts[i]);
		/* What is too long is left out: the guard is in front. */
		if (size + part >= PRELOAD_MAX)
			break;
		memcpy(preload + size, parts[i], part);
		size += part;
	}
	preload[size] = '\0';
	to[count++] = preload;
	if (kept.segment[0] != '\0')
		to[count++] = kept.segment;
	if (kept.limits[0] != '\0')
		to[count++] = kept.limits;
	to[count] = NULL;
}

/* The macros declare variables, whose names cannot be in parentheses. */
/* NOLINTBEGIN(bugprone-macro-parentheses) */

/* The C library's function of a name, with the type of ours. */
#define REAL_OF(name, function)                                                                    \
	__typeof__(&(name)) function;                                                              \
	if (real_functions[REAL_##name] == NULL)                                                   \
		find_functions();                                                                  \
	memcpy(&function, &real_functions[REAL_##name], sizeof function)

/* The environment to start a program with: on the caller's stack. */
#define COMPLETED(environment, completed)                                                          \
	char **completed = (char **)(environment);                                                 \
	if (!is_complete(environment)) {                                                           \
		completed = alloca((count_entries(environment) + 4) * sizeof *completed);          \
		environment_complete(environment, completed, alloca(PRELOAD_MAX));                 \
	}

/* NOLINTEND(bugprone-macro-parentheses) */

#pragma GCC visibility push(default)

int execve(const char *path, char *const arguments[], char *const environment[])
{
	REAL_OF(execve, real);
	COMPLETED(environment, completed);
	return real(path, arguments, completed);
}

int execvpe(const char *file, char *const arguments[], char *const environment[])
{
	REAL_OF(execvpe, real);
	COMPLETED(environment, completed);
	return real(file, arguments, completed);
}

int execv(const char *path, char *const arguments[])
{
	return execve(path, arguments, environ);
}

int execvp(const char *file, char *const arguments[])
{
	return execvpe(file, arguments, environ);
}

int fexecve(int file, char *const arguments[], char *const environment[])
{
	REAL_OF(fexecve, real);
	COMPLETED(environment, completed);
	return real(file, arguments, completed);
}

int execveat(int directory, const char *path, char *const arguments[], char *const environment[],
             int flags)
{
	REAL_OF(execveat, real);
	if (real == NULL) {
		errno = ENOSYS;
		return -1;
	}
	COMPLETED(environment, completed);
	return real(directory, path, arguments, completed, flags);
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const arguments[],
                char *const environment[])
{
	REAL_OF(posix_spawn, real);
	COMPLETED(environment, completed);
	return real(pid, path, actions, attributes, arguments, completed);
}

int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const arguments[],
                 char *const environment[])
{
	REAL_OF(posix_spawnp, real);
	COMPLETED(environment, completed);
	return real(pid, file, actions, attributes, arguments, completed);
}

/* The arguments of a variadic call, which end with NULL. */
#define COLLECT(first)                                                                             \
	va_list list;                                                                              \
	size_t count = 1;                                                                          \
	va_start(list, first);                                                                     \
	while (count < ARGUMENTS_MAX && va_arg(list, char *) != NULL)                              \
		count++;                                                                           \
	va_end(list);                                                                              \
	char **arguments = alloca((count + 1) * sizeof *arguments);                                \
	arguments[0] = (char *)(first);                                                            \
	va_start(list, first);                                                                     \
	for (size_t i = 1; i <= count; i++)                                                        \
	arguments[i] = va_arg(list, char *)

int execl(const char *path, const char *first, ...)
{
	COLLECT(first);
	va_end(list);
	return execve(path, arguments, environ);
}

int execlp(const char *file, const char *first, ...)
{
	COLLECT(first);
	va_end(list);
	return execvpe(file, arguments, environ);
}

int execle(const char *path, const char *first, ...)
{
	COLLECT(first);
	char *const *environment = va_arg(list, char *const *);
	va_end(list);
	return execve(path, arguments, environment);
}

/* These start a shell from within the C library, with the process's own environment. */
int system(const char *command)
{
	REAL_OF(system, real);
	char **before = environ;
	COMPLETED(before, completed);
	if (completed == before)
		return real(command);
	environ = completed;
	int result = real(command);
	if (environ == completed)
		environ = before;
	return result;
}

FILE *popen(const char *command, const char *type)
{
	REAL_OF(popen, real);
	char **before = environ;
	COMPLETED(before, completed);
	if (completed == before)
		return real(command, type);
	environ = completed;
	FILE *result = real(command, type);
	if (environ == completed)
		environ = before;
	return result;
}
#pragma GCC visibility pop
