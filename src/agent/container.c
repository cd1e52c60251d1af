/* container.c - tasks in containers, by podman or docker */
#include "agent/container.h"

#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/file.h"
#include "agent/guarding.h"

struct word_list {
	struct arena *arena;
	char **at;
	size_t count, capacity;
};

static void add(struct word_list *words, const char *word)
{
	array_reserve(words->at, words->capacity, words->count + 2);
	words->at[words->count++] = arena_string(words->arena, word);
	words->at[words->count] = NULL;
}

static void add_value(struct word_list *words, const char *option, const char *value)
{
	add(words, option);
	add(words, value);
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

/* What is preloaded into the container is nothing that the runtime itself should load. So it is
 * taken out of the environment, and told by the command line. */
static void add_preload(struct word_list *words, struct spec *spec)
{
	static const char name[] = "LD_PRELOAD=";
	char **kept = spec->environment;

	for (char **variable = spec->environment; *variable; variable++) {
		if (strncmp(*variable, name, sizeof(name) - 1) == 0)
			add_value(words, "--env", *variable);
		else
			*kept++ = *variable;
	}
	*kept = NULL;
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

/* Names alone: the values are in the runtime's own environment, where others cannot see them
 * as they see a command line. */
static void add_environment(struct word_list *words, const struct spec *spec)
{
	static const char *const of_host[] = { "PATH", "HOME", "SHELL", "USER", "LOGNAME" };

	for (char **variable = spec->environment; *variable; variable++) {
		size_t size = strcspn(*variable, "=");
		bool host = false;
		for (size_t i = 0; i < sizeof(of_host) / sizeof(*of_host); i++)
			host = host || (strlen(of_host[i]) == size &&
			                strncmp(*variable, of_host[i], size) == 0);
		if (host)
			continue;
		char *name = arena_copy(words->arena, *variable, size + 1);
		name[size] = '\0';
		add_value(words, "--env", name);
	}
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
		add(words, "--cgroups=disabled");
	} else if (settings->cgroup_base) {
		buffer_print(&text, "%s/work-%lld", settings->cgroup_base,
		             (long long)order->reservation_id);
		add(words, "--cgroups=no-conmon");
		add_value(words, "--cgroup-parent", text.data);
	}
	buffer_free(&text);
}

/* Those of docker are made by its own service, so it is told the limits. */
static void add_limits(struct word_list *words, const struct node_order *order)
{
	struct buffer text = { 0 };

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
		add(words, "/bin/sh");
		add_value(words, "-c", spec->script);
		add(words, "sh");
	}
	for (char **argument = spec->arguments; *argument; argument++)
		add(words, *argument);
}

bool container_plan(struct arena *arena, const struct run_settings *settings,
                    const struct node_order *order, const char *image, struct run_plan *plan,
                    struct error *error)
{
	struct spec *spec = &plan->spec;
	struct word_list words = { .arena = arena };

	if (settings->container_runtime && strcmp(settings->container_runtime, "none") == 0)
		return error_set(error, ERROR_UNAVAILABLE,
		                 "node %s runs no containers, and so not the image %s: its "
		                 "container runtime is set to none",
		                 settings->node, image);
	const char *runtime = find_runtime(arena, settings);
	if (!runtime)
		return error_set(error, ERROR_UNAVAILABLE,
		                 "node %s has no %s to run the image %s with", settings->node,
		                 is_any(settings->container_runtime) ? "podman or docker"
		                                                     : settings->container_runtime,
		                 image);
	bool is_podman = strstr(runtime, "podman") != NULL;
	char *name =
	    file_path("gpu-scheduler-%s-%lld", settings->node, (long long)order->reservation_id);
	char *clean_up = file_path("%s rm --force %s >/dev/null 2>&1", runtime, name);

	add(&words, runtime);
	if (is_podman)
		add(&words, "--cgroup-manager=cgroupfs");
	add(&words, "run");
	add(&words, "--rm");
	add_value(&words, "--name", name);
	add(&words, "--network=host");
	add_ulimits(&words);
	if (is_podman)
		add_place(&words, settings, order, spec);
	else
		add_limits(&words, order);
	if (!settings->simulated)
		add_gpus(&words, order, is_podman);
	if (spec->directory && spec->script == NULL && strcmp(spec->directory, "/") != 0 &&
	    access(spec->directory, F_OK) != 0)
		add_value(&words, "--workdir", spec->directory);
	add_guard(&words, settings, order, plan);
	add_preload(&words, spec);
	add_environment(&words, spec);
	add(&words, image);
	add_command(&words, spec);
	spec->arguments = arena_copy(arena, words.at, (words.count + 1) * sizeof(*words.at));
	spec->script = NULL;
	spec->directory = "/";
	spec->clean_up = arena_string(arena, clean_up);
	free(words.at);
	free(name);
	free(clean_up);
	return true;
}
