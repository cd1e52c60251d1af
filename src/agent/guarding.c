/* guarding.c - a hard limit of GPU memory for tasks: libgpuguard.so and its books */
#include "agent/guarding.h"

#include <stdlib.h>
#include <unistd.h>

#include "agent/file.h"
#include "guard/uuid.h"
#include "guard/watch.h"

#define BOOKS_DIRECTORY "/dev/shm" /* in memory: every allocation is written there */

/* Simulated GPUs have no memory to guard. */
static bool is_guarded(const struct run_settings *settings, const struct node_order *order)
{
	return settings->guard && !settings->simulated && order->part_count > 0;
}

static char *books_path(const struct run_settings *settings, int64_t reservation_id)
{
	return file_path(BOOKS_DIRECTORY "/gpu-guard-%s-%lld", settings->node,
	                 (long long)reservation_id);
}

static void set_preload(const struct run_settings *settings, struct environment *environment)
{
	const char *before = environment_get(environment, "LD_PRELOAD");
	char *list = file_path("%s%s%s", settings->guard, before ? ":" : "", before ? before : "");

	environment_set(environment, "LD_PRELOAD", list);
	free(list);
}

void guarding_prepare(const struct run_settings *settings, const struct node_order *order,
                      struct environment *environment)
{
	struct buffer limits = { 0 };

	if (!is_guarded(settings, order))
		return;
	char *path = books_path(settings, order->reservation_id);
	for (int64_t i = 0; i < order->part_count; i++)
		buffer_print(&limits, "%s%s=%lldM", i > 0 ? "," : "", order->parts[i].uuid,
		             (long long)order->parts[i].memory_mib);
	set_preload(settings, environment);
	environment_set(environment, "GPU_GUARD_SEGMENT", path);
	environment_set(environment, "GPU_GUARD_LIMITS", limits.data);
	buffer_free(&limits);
	free(path);
}

static bool set_limits(struct watch *watch, const struct node_order *order, struct error *error)
{
	uint8_t uuid[16];

	for (int64_t i = 0; i < order->part_count; i++) {
		const struct order_part *part = &order->parts[i];
		if (!uuid_parse(part->uuid, uuid))
			return error_set(error, ERROR_INVALID, "'%s' is not the UUID of a GPU",
			                 part->uuid);
		if (!watch_set_limit(watch, uuid, part->memory_mib << 20, 0, error))
			return false;
	}
	return true;
}

bool guarding_begin(const struct run_settings *settings, const struct node_order *order,
                    const struct spec *spec, struct error *error)
{
	struct watch watch;

	if (!is_guarded(settings, order))
		return true;
	guarding_end(settings, order->reservation_id);
	char *path = books_path(settings, order->reservation_id);
	bool made = watch_create(&watch, path, error);
	free(path);
	if (!made)
		return false;
	bool good =
	    set_limits(&watch, order, error) &&
	    (spec->uid < 0 || watch_give(&watch, (uid_t)spec->uid, (gid_t)spec->gid, error));
	watch_close(&watch);
	if (!good)
		guarding_end(settings, order->reservation_id);
	return good;
}

void guarding_end(const struct run_settings *settings, int64_t reservation_id)
{
	if (!settings->guard || settings->simulated)
		return;
	char *path = books_path(settings, reservation_id);
	unlink(path);
	free(path);
}
