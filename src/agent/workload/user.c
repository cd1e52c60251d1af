/* user.c - as whom a task runs */
#include "agent/workload/user.h"

#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENTRY_BYTES 65536

static void set_groups(struct spec *spec, const struct passwd *entry)
{
	gid_t groups[SPEC_GROUPS_MAX];
	int count = SPEC_GROUPS_MAX;

	/* -1: there are more, of which it gets none. */
	if (getgrouplist(entry->pw_name, entry->pw_gid, groups, &count) < 0)
		count = 0;
	spec->group_count = count;
	for (int i = 0; i < count; i++)
		spec->groups[i] = groups[i];
}

/* The entry of the user, or of ourselves where there is no name. */
static const struct passwd *user_look_up(const char *name, struct passwd *entry, char *bytes)
{
	struct passwd *found = NULL;

	if (name)
		getpwnam_r(name, entry, bytes, ENTRY_BYTES, &found);
	else
		getpwuid_r(geteuid(), entry, bytes, ENTRY_BYTES, &found);
	return found;
}

/* A scheduler that lets everyone in cannot say who a task is. */
static bool is_believed(const struct run_settings *settings, const char *name)
{
	return settings->trusts_users ||
	       (settings->default_user && strcmp(name, settings->default_user) == 0);
}

static bool become(const struct run_settings *settings, const char *name,
                   const struct passwd *entry, struct spec *spec, struct error *error)
{
	if (geteuid() != 0) {
		if (!name || (entry && entry->pw_uid == geteuid()))
			return true;
		return error_set(error, ERROR_FORBIDDEN,
		                 "the agent does not run as root and cannot become the user %s",
		                 name);
	}
	if (!entry)
		return error_set(error, ERROR_NOT_FOUND, "there is no user %s on node %s",
		                 name ? name : "of the agent", settings->node);
	if (entry->pw_uid == 0 && !settings->allow_root)
		return error_set(error, ERROR_FORBIDDEN,
		                 "tasks do not run as root on node %s (see --allow-root)",
		                 settings->node);
	if (entry->pw_uid == 0)
		return true;
	spec->uid = entry->pw_uid;
	spec->gid = entry->pw_gid;
	set_groups(spec, entry);
	return true;
}

static void set_environment(struct environment *environment, const char *name, const char *home,
                            const char *shell)
{
	environment_set(environment, "USER", name);
	environment_set(environment, "LOGNAME", name);
	environment_set(environment, "HOME", home);
	environment_set(environment, "SHELL", shell);
}

static bool apply_account(const struct run_settings *settings, const char *name, struct spec *spec,
                          struct environment *environment, const char **home, struct error *error)
{
	char *bytes = memory_alloc(ENTRY_BYTES);
	struct passwd storage;

	const struct passwd *entry = user_look_up(name, &storage, bytes);
	bool good = become(settings, name, entry, spec, error);
	if (good && entry) {
		set_environment(environment, entry->pw_name, entry->pw_dir,
		                *entry->pw_shell ? entry->pw_shell : "/bin/sh");
		*home = arena_string(environment->arena, entry->pw_dir);
	}
	free(bytes);
	return good;
}

/* The id has no account, so programs ask the environment for a name. */
static bool apply_range(const struct run_settings *settings, const char *tenant, struct spec *spec,
                        struct environment *environment, const char **home, struct error *error)
{
	int64_t uid;
	char *path;

	if (!tenant_users_find(settings->homes, &settings->uids, tenant, &uid, &path, error))
		return false;
	spec->uid = spec->gid = uid;
	spec->group_count = 0;
	char *name = arena_string(environment->arena, tenant);
	for (char *at = name; (at = strpbrk(at, "/ :")) != NULL; at++)
		*at = '-';
	set_environment(environment, name, path, "/bin/sh");
	*home = arena_string(environment->arena, path);
	free(path);
	return true;
}

bool user_apply(const struct run_settings *settings, const char *name, const char *tenant,
                struct spec *spec, struct environment *environment, const char **home,
                struct error *error)
{
	char *named = NULL;

	if (geteuid() == 0 && name && !is_believed(settings, name))
		return error_set(error, ERROR_FORBIDDEN,
		                 "node %s runs no task as %s, because its scheduler lets everyone "
		                 "in without sign-in: set auth.enable there, or start the agent "
		                 "with --trust-open-scheduler",
		                 settings->node, name);
	if (geteuid() == 0 && !name && tenant && settings->tenant_users)
		name = named = tenant_users_named(settings->tenant_users, tenant);
	if (geteuid() == 0 && !name)
		name = settings->default_user;
	bool ranged = geteuid() == 0 && !name && tenant && settings->uids.first > 0;
	if (geteuid() == 0 && !name)
		name = "nobody";
	bool good = ranged ? apply_range(settings, tenant, spec, environment, home, error)
	                   : apply_account(settings, name, spec, environment, home, error);
	free(named);
	return good;
}
