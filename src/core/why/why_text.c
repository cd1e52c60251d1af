/* why_text.c - words and numbers that explanations share */
#include "core/why/why_text.h"

#include <inttypes.h>

#include "core/place/place.h"
#include "core/queue/job.h"
#include "core/state.h"

#define SECOND_MS 1000
#define MIB_BYTES (INT64_C(1) << 20)
#define CLOSED_NAMED 4 /* nodes that one line names */

void text_milli(struct buffer *buffer, int64_t milli)
{
	int64_t rest = milli % 1000;
	int digits = 3;

	buffer_print(buffer, "%" PRId64, milli / 1000);
	if (rest == 0)
		return;
	for (; rest % 10 == 0; rest /= 10)
		digits--;
	buffer_print(buffer, ".%0*" PRId64, digits, rest);
}

void text_gpu_time(struct buffer *buffer, int64_t milli_ms)
{
	text_milli(buffer, milli_ms / SECOND_MS);
	buffer_text(buffer, " GPU-seconds");
}

void text_count(struct buffer *buffer, int64_t count, const char *noun)
{
	buffer_print(buffer, "%" PRId64 " %s%s", count, noun, count == 1 ? "" : "s");
}

void text_gpu(struct buffer *buffer, const struct sched *sched, int64_t gpu_id)
{
	const struct gpu *gpu = map_get(&sched->cluster.gpu_by_id, gpu_id);

	if (gpu)
		buffer_print(buffer, "%s of node %s", gpu->r.uuid, gpu->node->r.name);
	else
		buffer_print(buffer, "a GPU that is gone (number %" PRId64 ")", gpu_id);
}

static void text_node(struct buffer *buffer, const struct sched *sched, int64_t node_id)
{
	const struct node *node = map_get(&sched->cluster.node_by_id, node_id);

	if (node)
		buffer_print(buffer, "node %s", node->r.name);
	else
		buffer_print(buffer, "a node that is gone (number %" PRId64 ")", node_id);
}

void text_job(struct buffer *buffer, const struct sched *sched, int64_t job_id, int64_t tenant_id,
              int64_t viewer)
{
	const struct job *job = map_get(&sched->jobs, job_id);

	if (!tenant_id && job)
		tenant_id = job->r.tenant_id;
	if (viewer == 0 || viewer == tenant_id)
		buffer_print(buffer, "job-%" PRId64, job_id);
	else
		buffer_text(buffer, "another tenant");
}

static void text_uneven(struct buffer *buffer, const struct shape_request *request)
{
	buffer_text(buffer, "no node has GPUs with ");
	for (int i = 0; i < request->gpu_count; i++)
		buffer_print(buffer, "%s%" PRId64, i > 0 ? ", " : "", request->uneven_mib[i]);
	buffer_text(buffer, " MiB free for it");
}

static void text_part(struct buffer *buffer, const struct shape_request *request)
{
	if (request->gpu_kind == GPU_FRACTION) {
		text_milli(buffer, request->fraction);
		buffer_text(buffer, " of it free");
	} else {
		buffer_print(buffer, "%" PRId64 " MiB free", request->memory_mib);
	}
}

static void text_whole(struct buffer *buffer, const struct shape_request *request, bool split)
{
	if (request->gpu_count == 1 || split)
		buffer_text(buffer, "no free GPU");
	else
		buffer_print(buffer, "no node has %d free GPUs", request->gpu_count);
	if (request->memory_mib > 0)
		buffer_print(buffer, " of at least %" PRId64 " MiB", request->memory_mib);
}

void text_lack(struct buffer *buffer, const struct shape *shape)
{
	const struct shape_request *request = &shape->request;

	switch (request->gpu_kind) {
	case GPU_WHOLE:
		text_whole(buffer, request, shape->split_gpus > 0);
		break;
	case GPU_FRACTION:
	case GPU_MEMORY:
		if (request->gpu_count == 1)
			buffer_text(buffer, "no GPU has ");
		else
			buffer_print(buffer, "no node has %d GPUs that each have ",
			             request->gpu_count);
		text_part(buffer, request);
		buffer_text(buffer, " for it");
		break;
	case GPU_UNEVEN:
		text_uneven(buffer, request);
		break;
	case GPU_NONE:
		buffer_text(buffer, "no node has the CPU and the host memory free for it");
		break;
	}
}

static bool is_about_node(int64_t check)
{
	return check == CHECK_NODE || check == CHECK_LABELS || check == CHECK_CPU ||
	       check == CHECK_HOST || check >= CHECK_CLASS;
}

/* How far short the nearest is. */
static void text_short(struct buffer *buffer, const int64_t *row)
{
	int64_t short_by = row[REFUSAL_SHORT];

	buffer_text(buffer, "the nearest is ");
	switch (row[REFUSAL_CHECK]) {
	case CHECK_CPU:
		text_milli(buffer, short_by);
		buffer_text(buffer, " cores short: ");
		break;
	case CHECK_HOST:
		buffer_print(buffer,
		             "%" PRId64 " MiB short: ", (short_by + MIB_BYTES - 1) / MIB_BYTES);
		break;
	case CHECK_COUNTED:
		buffer_print(buffer, "%" PRId64 " short: ", short_by);
		break;
	case CHECK_COUNT:
		text_count(buffer, short_by, "GPU");
		buffer_text(buffer, " short: beside ");
		break;
	default:
		buffer_print(buffer, "%" PRId64 " MiB short: ", short_by);
	}
}

static void text_nearest(struct buffer *buffer, const struct sched *sched, const int64_t *row,
                         bool now)
{
	const struct gpu *gpu = map_get(&sched->cluster.gpu_by_id, row[REFUSAL_NEAREST]);

	if (row[REFUSAL_SHORT] > 0)
		text_short(buffer, row);
	if (is_about_node(row[REFUSAL_CHECK])) {
		text_node(buffer, sched, row[REFUSAL_NEAREST]);
		return;
	}
	if (gpu && now && row[REFUSAL_CHECK] == CHECK_MEMORY)
		buffer_print(buffer, "%" PRId64 " MiB free on ", max64(gpu_free_now(gpu), 0));
	if (gpu && now && row[REFUSAL_CHECK] == CHECK_SIZE)
		buffer_print(buffer, "%" PRId64 " MiB in all on ", gpu_usable_mib(gpu));
	text_gpu(buffer, sched, row[REFUSAL_NEAREST]);
}

static const char *closed_because(const struct node *node)
{
	if (node->r.draining)
		return "is draining";
	if (node->r.state == NODE_LOST)
		return "is lost";
	return node->r.state == NODE_UNKNOWN ? "does not answer" : "has not reported yet";
}

/* The nodes that take nothing now, the first of them by name and with what each is. */
static void text_closed(struct buffer *buffer, const struct sched *sched)
{
	int64_t closed = 0;

	for (size_t i = 0; i < sched->cluster.node_count; i++) {
		const struct node *node = sched->cluster.by_rank[i];
		if (node_is_open(node) || ++closed > CLOSED_NAMED)
			continue;
		buffer_print(buffer, "%snode %s %s", closed > 1 ? ", " : "", node->r.name,
		             closed_because(node));
		if (node->r.draining && *node->r.drain_reason)
			buffer_print(buffer, " (%s)", node->r.drain_reason);
	}
	if (closed == 0)
		buffer_text(buffer, check_name(CHECK_NODE));
	if (closed > CLOSED_NAMED)
		buffer_print(buffer, ", and %" PRId64 " more", closed - CLOSED_NAMED);
}

void text_refusals(struct buffer *buffer, const struct sched *sched, const int64_t *rows,
                   int64_t count, bool gpus, bool now)
{
	for (int64_t i = 0; i < count; i++) {
		const int64_t *row = rows + i * REFUSAL_WIDTH;
		text_count(buffer, row[REFUSAL_COUNT], gpus ? "GPU" : "node");
		if (now && row[REFUSAL_CHECK] == CHECK_NODE) {
			buffer_text(buffer, ": ");
			text_closed(buffer, sched);
			buffer_text(buffer, "\n");
			continue;
		}
		buffer_print(buffer, ": %s", check_name((enum check)row[REFUSAL_CHECK]));
		if (row[REFUSAL_SHORT] > 0 || row[REFUSAL_COUNT] == 1) {
			buffer_text(buffer, " (");
			text_nearest(buffer, sched, row, now);
			buffer_text(buffer, ")");
		}
		buffer_text(buffer, "\n");
	}
}
