/* tenant_users.c - a numeric user for each tenant, from a range, with a home on this node */
#include "agent/workload/tenant_users.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/file.h"
#include "agent/workload/folder.h"
#include "base/buffer.h"
#include "base/memory.h"

#define ENTRY_BYTES 65536
#define UNFINISHED ".unfinished"

/* Above it are nobody's own id, and the one that stands for no user. */
enum { UID_MOST = 65533 };

bool uid_range_parse(const char *text, struct uid_range *range, struct error *error)
{
	int end = 0;
	unsigned first = 0, last = 0;

	*range = (struct uid_range){ 0 };
	if (strcmp(text, "none") == 0)
		return true;
	if (sscanf(text, "%5u-%5u%n", &first, &last, &end) != 2 || text[end] != '\0' ||
	    !isdigit((unsigned char)text[0]) || first < 1000 || last < first || last > UID_MOST)
		return error_set(error, ERROR_INVALID,
		                 "--uid-range is '%s'; it is 'none', or FIRST-LAST with user ids "
		                 "from 1000 to %d, such as 64000-64999",
		                 text, UID_MOST);
	*range = (struct uid_range){ .first = first, .last = last };
	return true;
}

char *tenant_users_homes(const char *state_directory, const char *label)
{
	if (folder_is_open(state_directory))
		return file_path("%s/homes", state_directory);
	return file_path("/var/tmp/gpu-agent-%s.homes", label);
}

/* A name of a file for every tenant: no two tenants share one. */
static char *home_path(const char *homes, const char *tenant)
{
	struct buffer name = { 0 };

	for (const char *at = tenant; *at; at++) {
		bool plain = isalnum((unsigned char)*at) || strchr("-_", *at) ||
		             (*at == '.' && at != tenant);
		buffer_print(&name, plain ? "%c" : "%%%02X", (unsigned char)*at);
	}
	char *path = file_path("%s/%s", homes, name.data ? name.data : "");
	buffer_free(&name);
	return path;
}

static bool has_account(int64_t uid)
{
	char *bytes = memory_alloc(ENTRY_BYTES);
	struct passwd storage, *found = NULL;

	getpwuid_r((uid_t)uid, &storage, bytes, ENTRY_BYTES, &found);
	free(bytes);
	return found != NULL;
}

/* Marks which ids of the range own a home. False, with errno, where the homes cannot be listed. */
static bool mark_taken(const char *homes, const struct uid_range *range, bool *taken)
{
	DIR *directory = opendir(homes);
	const struct dirent *entry;

	if (!directory)
		return false;
	while ((entry = readdir(directory)) != NULL) {
		struct stat status;
		if (fstatat(dirfd(directory), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
			continue;
		if (status.st_uid >= range->first && status.st_uid <= range->last)
			taken[status.st_uid - range->first] = true;
	}
	closedir(directory);
	return true;
}

/* The search begins where the name says, so a tenant gets one id on most nodes. */
static int64_t place_of(const char *tenant, int64_t count)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (const char *at = tenant; *at; at++)
		hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
	return (int64_t)(hash % (uint64_t)count);
}

static bool choose_uid(const char *homes, const struct uid_range *range, const char *tenant,
                       int64_t *uid, struct error *error)
{
	int64_t count = range->last - range->first + 1;
	bool *taken = memory_zero((size_t)count, sizeof(*taken));
	bool listed = mark_taken(homes, range, taken);
	int reason = errno;

	*uid = 0;
	for (int64_t i = 0, at = place_of(tenant, count); listed && *uid == 0 && i < count;
	     i++, at = (at + 1) % count)
		if (!taken[at] && !has_account(range->first + at))
			*uid = range->first + at;
	free(taken);
	if (!listed)
		return error_set(error, ERROR_UNAVAILABLE, "cannot list the homes in %s: %s", homes,
		                 strerror(reason));
	return *uid > 0 ||
	       error_set(error, ERROR_UNAVAILABLE,
	                 "the user ids %lld to %lld of --uid-range are all taken: remove homes in "
	                 "%s that are no longer needed, or start the agent with a larger range",
	                 (long long)range->first, (long long)range->last, homes);
}

/* It has its name only once it is finished. */
static bool make_home(const char *homes, const char *path, int64_t uid, struct error *error)
{
	char *unfinished = file_path("%s/" UNFINISHED, homes);
	bool made = (rmdir(unfinished) == 0 || errno == ENOENT) && mkdir(unfinished, 0700) == 0 &&
	            chown(unfinished, (uid_t)uid, (gid_t)uid) == 0 && rename(unfinished, path) == 0;

	if (!made)
		error_set(error, ERROR_UNAVAILABLE, "cannot make the home %s: %s", path,
		          strerror(errno));
	free(unfinished);
	return made;
}

bool tenant_users_find(const char *homes, const struct uid_range *range, const char *tenant,
                       int64_t *uid, char **home, struct error *error)
{
	struct stat status;
	char *path = home_path(homes, tenant);
	bool good = folder_make(homes, error);

	if (good && lstat(path, &status) == 0) {
		*uid = status.st_uid;
		good = (S_ISDIR(status.st_mode) && *uid > 0) ||
		       error_set(error, ERROR_FORBIDDEN,
		                 "%s is not a directory of the tenant's user: remove it", path);
	} else if (good) {
		good = choose_uid(homes, range, tenant, uid, error) &&
		       make_home(homes, path, *uid, error);
	}
	*home = good ? path : NULL;
	if (!good)
		free(path);
	return good;
}

/* The next pair of the list, and behind it; NULL: there is none. */
static const char *next_pair(const char *list, size_t *tenant_size, size_t *size)
{
	*size = strcspn(list, ",");
	*tenant_size = strcspn(list, "=,");
	return *size > 0 ? list + *size + (list[*size] == ',') : NULL;
}

char *tenant_users_named(const char *list, const char *tenant)
{
	size_t tenant_size, size;
	const char *next;

	for (const char *at = list; at && (next = next_pair(at, &tenant_size, &size)); at = next)
		if (tenant_size == strlen(tenant) && strncmp(at, tenant, tenant_size) == 0)
			return strndup(at + tenant_size + 1, size - tenant_size - 1);
	return NULL;
}

bool tenant_users_check(const char *list, struct error *error)
{
	const char *at = list;

	do {
		size_t tenant_size, size;
		const char *next = next_pair(at, &tenant_size, &size);
		if (!next || tenant_size == 0 || tenant_size + 1 >= size)
			return error_set(error, ERROR_INVALID,
			                 "--tenant-users is '%s'; it is TENANT=NAME, or several "
			                 "with commas",
			                 list);
		at = next;
	} while (*at);
	return true;
}
