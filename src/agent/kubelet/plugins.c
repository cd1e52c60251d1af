/* plugins.c - the device plugins of a node, for the GPUs that it has now */
#include "agent/kubelet/plugins.h"

#include <stdlib.h>
#include <string.h>

#include "agent/kubelet/plugin.h"
#include "base/log.h"

struct plugins {
	struct plugins_settings settings;
	struct plugin *marker, *whole;
	struct arena arena;
	const char **uuids; /* of the plugins that there are */
	int64_t uuid_count;
	bool any, failed;
};

struct plugins *plugins_new(const struct plugins_settings *settings)
{
	struct plugins *plugins = NEW(struct plugins);

	INVARIANT(settings->of != PLUGINS_NONE);
	plugins->settings = *settings;
	return plugins;
}

static void close_plugins(struct plugins *plugins)
{
	plugin_free(plugins->marker);
	plugin_free(plugins->whole);
	plugins->marker = plugins->whole = NULL;
	plugins->any = false;
}

void plugins_free(struct plugins *plugins)
{
	if (!plugins)
		return;
	close_plugins(plugins);
	arena_free(&plugins->arena);
	free(plugins);
}

/* GPUs in MIG mode are given by their instances. */
static bool is_given(const struct gpu_reading *reading)
{
	return !reading->mig_mode;
}

static bool is_as_before(const struct plugins *plugins, const struct measured *measured)
{
	int64_t same = 0;

	for (int64_t i = 0; i < measured->gpu_count; i++) {
		if (!is_given(&measured->gpus[i]))
			continue;
		if (same == plugins->uuid_count ||
		    strcmp(plugins->uuids[same], measured->gpus[i].uuid) != 0)
			return false;
		same++;
	}
	return same == plugins->uuid_count;
}

static void keep_uuids(struct plugins *plugins, const struct measured *measured)
{
	arena_reset(&plugins->arena);
	plugins->uuid_count = 0;
	plugins->uuids = arena_alloc(&plugins->arena,
	                             ((size_t)measured->gpu_count + 1) * sizeof(*plugins->uuids));
	for (int64_t i = 0; i < measured->gpu_count; i++)
		if (is_given(&measured->gpus[i]))
			plugins->uuids[plugins->uuid_count++] =
			    arena_string(&plugins->arena, measured->gpus[i].uuid);
}

static struct plugin *open_plugin(const struct plugins *plugins, const char *resource,
                                  int64_t count, struct error *error)
{
	return plugin_new(
	    &(struct plugin_settings){ .loop = plugins->settings.loop,
	                               .resource = resource,
	                               .count = count,
	                               .kubelet_directory = plugins->settings.kubelet_directory,
	                               .root = plugins->settings.root,
	                               .source = plugins->settings.source,
	                               .uuids = plugins->uuids,
	                               .uuid_count = plugins->uuid_count },
	    error);
}

void plugins_measured(struct plugins *plugins, const struct measured *measured)
{
	struct error error = { 0 };

	if (plugins->any && is_as_before(plugins, measured))
		return;
	close_plugins(plugins);
	keep_uuids(plugins, measured);
	plugins->marker = open_plugin(plugins, PLUGIN_MARKER, PLUGIN_MARKERS, &error);
	if (plugins->marker && plugins->settings.of == PLUGINS_ALL)
		plugins->whole = open_plugin(plugins, PLUGIN_WHOLE, plugins->uuid_count, &error);
	plugins->any = plugins->marker && (plugins->whole || plugins->settings.of != PLUGINS_ALL);
	if (!plugins->any && !plugins->failed)
		log_at(LOG_ERROR, "the kubelet cannot be given a device plugin",
		       LOG_TEXT("reason", error.text));
	plugins->failed = !plugins->any;
}
