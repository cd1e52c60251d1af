/* notify_conditions.c - what an operator cares about: told when it begins to hold */
#include <stdarg.h>
#include <stdio.h>

#include "api/notify/notify_local.h"
#include "api/text/ids.h"
#include "base/clock.h"
#include "wire/text/json_writer.h"

/* One that began to hold in this look. */
struct finding {
	char event[32], subject[256];
	int64_t tenant_id; /* who is to be told too; 0: nobody */
	struct finding *next;
};

/* A look at the catalogue. What is found is told when it is unlocked again. */
struct look {
	struct notify *notify;
	struct arena arena;
	struct finding *first, **end;
};

/* Notes it if it holds now and did not before. */
static void consider(struct look *look, bool holds, const char *key, const char *event,
                     int64_t tenant_id, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
static void consider(struct look *look, bool holds, const char *key, const char *event,
                     int64_t tenant_id, const char *format, ...)
{
	struct text_map *told = &look->notify->conditions;
	bool before = text_map_get(told, key) != NULL;
	va_list arguments;

	if (holds == before)
		return;
	if (!holds) {
		text_map_remove(told, key);
		return;
	}
	text_map_put(told, key, look->notify);
	struct finding *finding = arena_alloc(&look->arena, sizeof(*finding));
	*finding = (struct finding){ .tenant_id = tenant_id };
	snprintf(finding->event, sizeof(finding->event), "%s", event);
	va_start(arguments, format);
	vsnprintf(finding->subject, sizeof(finding->subject), format, arguments);
	va_end(arguments);
	*look->end = finding;
	look->end = &finding->next;
}

static void look_at_nodes(struct look *look, const struct catalogue *catalogue)
{
	struct catalogue_cursor cursor = { .kind = RECORD_NODE };
	const struct node_record *node;
	char key[64];

	while ((node = catalogue_next(catalogue, &cursor))) {
		snprintf(key, sizeof(key), "lost %lld", (long long)node->id);
		consider(look, node->state == NODE_LOST, key, "node.lost", 0,
		         "node %.100s is lost: it has not been heard of", node->name);
	}
}

static void look_at_gpus(struct look *look, const struct catalogue *catalogue)
{
	struct catalogue_cursor cursor = { .kind = RECORD_GPU };
	const struct gpu_record *gpu;
	char key[64];

	while ((gpu = catalogue_next(catalogue, &cursor))) {
		if (gpu->hot || look->notify->conditions.count > 0) {
			snprintf(key, sizeof(key), "hot %lld", (long long)gpu->id);
			consider(look, gpu->present && gpu->hot, key, "gpu.hot", 0,
			         "GPU %.100s is hot: %lld degrees", gpu->uuid,
			         (long long)gpu->temperature_c);
		}
		if (!gpu->healthy || look->notify->conditions.count > 0) {
			snprintf(key, sizeof(key), "failing %lld", (long long)gpu->id);
			consider(look, gpu->present && !gpu->healthy, key, "gpu.failing", 0,
			         "GPU %.100s is failing", gpu->uuid);
		}
	}
}

/* Told again only after it has become a good deal shorter. */
static void look_at_queue(struct look *look, const struct catalogue *catalogue)
{
	int64_t most = look->notify->means.settings.queue_threshold, archived = 0;
	struct catalogue_filter filter = { .state = JOB_PENDING };
	bool told = text_map_get(&look->notify->conditions, "queue") != NULL;

	if (most <= 0)
		return;
	int64_t waiting = catalogue_count(catalogue, &filter, &archived);
	consider(look, waiting >= (told ? most * 4 / 5 : most), "queue", "queue.long", 0,
	         "%lld jobs wait in the queue", (long long)waiting);
}

static void look_at_budgets(struct look *look, const struct catalogue *catalogue)
{
	struct catalogue_cursor cursor = { .kind = RECORD_TENANT };
	const struct tenant_record *tenant;
	char key[64];

	while ((tenant = catalogue_next(catalogue, &cursor))) {
		bool over = tenant->budget_per_month != UNLIMITED && tenant->budget_per_month > 0 &&
		            tenant->month_cost >= tenant->budget_per_month;
		snprintf(key, sizeof(key), "budget %lld %lld", (long long)tenant->id,
		         (long long)tenant->month);
		consider(look, over, key, "tenant.budget", tenant->id,
		         "tenant %.100s has used up its budget for this month", tenant->name);
	}
}

static void notify_conditions_tell(struct notify *notify, const struct finding *finding)
{
	struct notify_message message = { .event = finding->event,
		                          .subject = finding->subject,
		                          .sentence = finding->subject,
		                          .unix_ms = clock_unix_ms() };

	notify_tell_operator(notify, &message);
	if (finding->tenant_id > 0)
		notify_tell_tenant(notify, finding->tenant_id, NOTIFY_BUDGET, &message);
}

void notify_look(struct notify *notify)
{
	struct look look = { .notify = notify, .end = &look.first };
	struct catalogue *catalogue = notify->port->catalogue;

	catalogue_lock(catalogue);
	look_at_nodes(&look, catalogue);
	look_at_gpus(&look, catalogue);
	look_at_queue(&look, catalogue);
	look_at_budgets(&look, catalogue);
	catalogue_unlock(catalogue);
	for (const struct finding *finding = look.first; finding; finding = finding->next)
		notify_conditions_tell(notify, finding);
	arena_free(&look.arena);
}

void notify_conditions_free(struct notify *notify)
{
	text_map_free(&notify->conditions);
}
