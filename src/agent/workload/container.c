/* container.c - tasks in containers, by podman or docker */
#include "agent/workload/container.h"

#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/host/environment.h"
#include "agent/host/file.h"
#include "agent/workload/guarding.h"

struct word_list {
	struct arena *arena;
	char **at;
	size_t count, capacity;
};

static void container_add(struct word_list *words, const char *word)
{
	array_reserve(words->at, words->capacity, words->count + 2);
	words->at[words->count++] = arena_string(words->arena, word);
	words->at[words->count] = NULL;
}

static void add_value(struct word_list *words, const char *option, const char *value)
{
	container_add(words, option);
	container_add(words, value);
}

/* The program, or NULL where it is not in any of the usual places. */
static const char *find_program(struct arena *arena, const char *name)
{
	static const char *const places[] = { "/usr/local/bin", "/usr/bin", "/bin" };

	if (strchr(name, '/'))
		return access(name, X_OK) == 0 ? name : NULL;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		char *path = file_path("%s/%s", places[i], name);
		const char *found = access(path, X_OK) == 0 ? arena_string(arena, path) : NULL;
		free(path);
		if (found)
			return found;
	}
	return NULL;
}

static bool is_any(const char *runtime)
{
	return !runtime || strcmp(runtime, "auto") == 0;
}

static const char *find_runtime(struct arena *arena, const struct run_settings *settings)
{
	if (!is_any(settings->container_runtime))
		return find_program(arena, settings->container_runtime);
	const char *podman = find_program(arena, "podman");
	return podman ? podman : find_program(arena, "docker");
}

static void add_guard(struct word_list *words, const struct run_settings *settings,
                      const struct node_order *order, const struct run_plan *plan)
{
	struct buffer text = { 0 };

	if (!plan->guarded)
		return;
	char *books = guarding_books(settings, order->reservation_id, plan);
	buffer_print(&text, "%s:" GUARDING_CONTAINER_LIBRARY ":ro", settings->guard);
	add_value(words, "--volume", text.data);
	buffer_clear(&text);
	buffer_print(&text, "%s:" GUARDING_CONTAINER_BOOKS, books);
	add_value(words, "--volume", text.data);
	buffer_free(&text);
	free(books);
}

/* An entry that ends with '*' stands for all names that begin so. */
static bool is_any_of(const char *name, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t size = strcspn(list[i], "*");
		if (strncmp(name, list[i], size) == 0 && (list[i][size] == '*' || !name[size]))
			return true;
	}
	return false;
}

/* What the runtime, its helpers, the loader or an interpreter would read themselves. */
static bool is_read_by_runtime(const char *name)
{
	static const char *const names[] = {
		"LD_*",        "MALLOC_*",   "GCONV_PATH",  "GLIBC_TUNABLES",
		"LOCPATH",     "NLSPATH",    "HOSTALIASES", "RES_OPTIONS",
		"LOCALDOMAIN", "TMPDIR",     "CONTAIN*",    "_CONTAIN*",
		"PODMAN_*",    "DOCKER_*",   "BUILDAH_*",   "STORAGE_*",
		"REGISTRY_*",  "XDG_*",      "DBUS_*",      "LISTEN_*",
		"NOTIFY_*",    "SSL_*",      "GODEBUG",     "GOTRACEBACK",
		"GOGC",        "GOMEMLIMIT", "GOMAXPROCS",  "BASH_*",
		"ENV",         "SHELLOPTS",  "IFS",         "PS4",
		"CDPATH",      "PYTHON*",    "PERL*",
	};

	return is_any_of(name, names, sizeof(names) / sizeof(*names));
}

static bool is_of_host(const char *name)
{
	static const char *const names[] = { "PATH", "HOME", "SHELL", "USER", "LOGNAME" };

	return is_any_of(name, names, sizeof(names) / sizeof(*names));
}

static bool is_in(char *const *list, const char *variable)
{
	for (; *list; list++)
		if (strcmp(*list, variable) == 0)
			return true;
	return false;
}

/* Names alone, as a rule: the values are in the runtime's own environment, where others cannot
 * see them as they see a command line. What would change the runtime itself is told by the
 * command line, unless it is a secret: the runtime runs as the task's user and can do no more
 * than the task could. What the host is to its user says nothing inside; what the task set
 * does. */
static void add_environment(struct word_list *words, struct spec *spec, const json_t *secrets)
{
	struct environment own = { .arena = words->arena };

	for (char **variable = spec->clean_up_environment; *variable; variable++)
		environment_add(&own, *variable);
	for (char **variable = spec->environment; *variable; variable++) {
		size_t size = strcspn(*variable, "=");
		char *name = arena_copy(words->arena, *variable, size + 1);
		name[size] = '\0';
		bool secret = json_object_get(secrets, name) != NULL;
		bool host = is_of_host(name);
		if (host && is_in(spec->clean_up_environment, *variable))
			continue;
		if (!secret && (host || is_read_by_runtime(name))) {
			add_value(words, "--env", *variable);
			continue;
		}
		add_value(words, "--env", name);
		environment_add(&own, *variable);
	}
	spec->environment = environment_finish(&own);
}

static void add_gpus(struct word_list *words, const struct node_order *order, bool is_podman)
{
	struct buffer list = { 0 };

	for (int64_t i = 0; i < order->part_count; i++) {
		buffer_clear(&list);
		buffer_print(&list, "nvidia.com/gpu=%s", order->parts[i].uuid);
		if (is_podman)
			add_value(words, "--device", list.data);
	}
	buffer_clear(&list);
	for (int64_t i = 0; i < order->part_count; i++)
		buffer_print(&list, "%s%s", i > 0 ? "," : "\"device=", order->parts[i].uuid);
	if (!is_podman && order->part_count > 0) {
		buffer_text(&list, "\"");
		add_value(words, "--gpus", list.data);
	}
	buffer_free(&list);
}

/* A runtime raises limits, which not everyone may: there it is told what it can keep to. */
static void add_ulimits(struct word_list *words)
{
	struct rlimit files = { 0, 0 };
	struct buffer text = { 0 };

	if (prctl(PR_CAPBSET_READ, CAP_SYS_RESOURCE) == 1 || getrlimit(RLIMIT_NOFILE, &files) != 0)
		return;
	buffer_print(&text, "nofile=%llu:%llu", (unsigned long long)files.rlim_cur,
	             (unsigned long long)files.rlim_max);
	add_value(words, "--ulimit", text.data);
	add_value(words, "--ulimit", "nproc=32768:32768");
	buffer_free(&text);
}

/* A container of podman is put below the group of its work, where its limits are, or left in
 * it where it is a user's own. */
static void add_place(struct word_list *words, const struct run_settings *settings,
                      const struct node_order *order, const struct spec *spec)
{
	struct buffer text = { 0 };

	if (spec->uid > 0) {
		container_add(words, "--cgroups=disabled");
	} else if (settings->cgroup_base) {
		buffer_print(&text, "%s/work-%lld", settings->cgroup_base,
		             (long long)order->reservation_id);
		container_add(words, "--cgroups=no-conmon");
		add_value(words, "--cgroup-parent", text.data);
	}
	buffer_free(&text);
}

/* Those of docker are made by its own service, so it is told the limits. */
static void add_limits(struct word_list *words, const struct run_settings *settings,
                       const struct node_order *order)
{
	struct buffer text = { 0 };

	if (settings->pids > 0) {
		buffer_print(&text, "%lld", (long long)settings->pids);
		add_value(words, "--pids-limit", text.data);
		buffer_clear(&text);
	}
	if (order->cpu_milli > 0) {
		buffer_print(&text, "%lld.%03lld", (long long)(order->cpu_milli / 1000),
		             (long long)(order->cpu_milli % 1000));
		add_value(words, "--cpus", text.data);
	}
	buffer_clear(&text);
	if (order->host_bytes > 0) {
		buffer_print(&text, "%lld", (long long)order->host_bytes);
		add_value(words, "--memory", text.data);
	}
	buffer_free(&text);
}

static void add_command(struct word_list *words, const struct spec *spec)
{
	if (spec->script) {
		container_add(words, "/bin/sh");
		add_value(words, "-c", spec->script);
		container_add(words, "sh");
	}
	for (char **argument = spec->arguments; *argument; argument++)
		container_add(words, *argument);
}

/* The runtime that is to be used; NULL with a reason. */
static const char *choose_runtime(struct arena *arena, const struct run_settings *settings,
                                  const char *image, struct error *error)
{
	bool none = settings->container_runtime && strcmp(settings->container_runtime, "none") == 0;
	const char *runtime = none ? NULL : find_runtime(arena, settings);

	if (none)
		error_set(error, ERROR_UNAVAILABLE,
		          "node %s runs no containers, and so not the image %s: its "
		          "container runtime is set to none",
		          settings->node, image);
	else if (!runtime)
		error_set(error, ERROR_UNAVAILABLE, "node %s has no %s to run the image %s with",
		          settings->node,
		          is_any(settings->container_runtime) ? "podman or docker"
		                                              : settings->container_runtime,
		          image);
	return runtime;
}

/* The container itself is removed by the same user, with the same environment: a user sees only
 * the containers that it made. */
static char **clean_up(struct arena *arena, const char *runtime, bool is_podman, const char *name)
{
	struct word_list words = { .arena = arena };

	container_add(&words, runtime);
	if (is_podman)
		container_add(&words, "--cgroup-manager=cgroupfs");
	container_add(&words, "rm");
	container_add(&words, "--force");
	container_add(&words, name);
	char **list = arena_copy(arena, words.at, (words.count + 1) * sizeof(*words.at));
	free(words.at);
	return list;
}

/* The clean-up names the runtime, with its options before 'rm', and at its end the container. */
void container_session(struct arena *arena, const struct session_open *open, char **variables,
                       struct spec *spec)
{
	struct word_list words = { .arena = arena };
	char **word = spec->clean_up;

	for (; strcmp(*word, "rm") != 0; word++)
		container_add(&words, *word);
	while (word[1])
		word++;
	container_add(&words, "exec");
	container_add(&words, "--interactive");
	if (open->terminal)
		container_add(&words, "--tty");
	for (char **variable = variables; *variable; variable++)
		add_value(&words, "--env", *variable);
	container_add(&words, *word);
	for (char **argument = open->command; *argument; argument++)
		container_add(&words, *argument);
	spec->arguments = arena_copy(arena, words.at, (words.count + 1) * sizeof(*words.at));
	spec->environment = spec->clean_up_environment;
	spec->directory = "/";
	free(words.at);
}

bool container_plan(struct arena *arena, const struct run_settings *settings,
                    const struct node_order *order, const struct container_order *wanted,
                    struct run_plan *plan, struct error *error)
{
	struct spec *spec = &plan->spec;
	struct word_list words = { .arena = arena };

	const char *runtime = choose_runtime(arena, settings, wanted->image, error);
	if (!runtime)
		return false;
	bool is_podman = strstr(runtime, "podman") != NULL;
	char *name =
	    file_path("gpu-scheduler-%s-%lld", settings->label, (long long)order->reservation_id);

	container_add(&words, runtime);
	if (is_podman)
		container_add(&words, "--cgroup-manager=cgroupfs");
	container_add(&words, "run");
	container_add(&words, "--rm");
	add_value(&words, "--name", name);
	container_add(&words, "--network=host");
	if (plan->reads_input || plan->spec.terminal)
		container_add(&words, "--interactive");
	if (plan->spec.terminal)
		container_add(&words, "--tty");
	add_ulimits(&words);
	if (is_podman)
		add_place(&words, settings, order, spec);
	else
		add_limits(&words, settings, order);
	if (!settings->simulated)
		add_gpus(&words, order, is_podman);
	if (wanted->directory)
		add_value(&words, "--workdir", wanted->directory);
	add_guard(&words, settings, order, plan);
	add_environment(&words, spec, wanted->secrets);
	container_add(&words, wanted->image);
	add_command(&words, spec);
	spec->arguments = arena_copy(arena, words.at, (words.count + 1) * sizeof(*words.at));
	spec->script = NULL;
	spec->directory = "/";
	/* podman maps user identities by a setuid program. */
	spec->keeps_privileges = true;
	spec->clean_up = clean_up(arena, runtime, is_podman, name);
	free(words.at);
	free(name);
	return true;
}
