/* kept.c - the form in which an agent writes down what it must not forget */
#include "node/kept.h"

#include <string.h>

static const struct words phase_words_of_work =
    WORDS("waiting", "starting", "running", "stopping", "over", "back");

/* clang-format off */
#define NODE_FIELDS(F, T) F(T, boot) F(T, term) F(T, connection)
#define WORK_FIELDS(F, T)                                                                          \
	F(T, reservation_id) F(T, phase, .words = &phase_words_of_work) F(T, slot)                 \
	F(T, unordered) F(T, ready) F(T, gone) F(T, reason) F(T, pid) F(T, pid_start)              \
	F(T, started_ms) F(T, stop_ms) F(T, kill_ms) F(T, exit_code) F(T, message) F(T, address)   \
	F(T, standing, .width = 1)
/* What an older agent did not write is behind the rest, and may be missing. */
#define MORE_FIELDS(F, T)                                                                          \
	F(T, ended_ms) F(T, accounted_ms) F(T, use.peak_mib) F(T, use.gpu_ms) F(T, use.energy_mj)                     \
	F(T, use.host_peak_bytes) F(T, use.cpu_ms) F(T, use.limit_mib) F(T, use.guard_peak_mib)    \
	F(T, use.refusals) F(T, use.refused_mib) F(T, use.unguarded)
#define LATER_FIELDS(F, T) F(T, memory) F(T, memory_ms) F(T, copy_bytes) F(T, paused_ms)
/* clang-format on */

const struct record_type kept_node_type =
    RECORD_TYPE("kept_node", 0, struct kept_node, NODE_FIELDS);
const struct record_type kept_work_type =
    RECORD_TYPE("kept_work", 1, struct kept_work, WORK_FIELDS);

static const struct record_type more_type =
    RECORD_TYPE("kept_work", 1, struct kept_work, MORE_FIELDS);

static const struct record_type later_type =
    RECORD_TYPE("kept_work", 1, struct kept_work, LATER_FIELDS);

static bool at_end(const uint8_t *at, const uint8_t *end, struct error *error)
{
	return at == end || error_set(error, ERROR_CORRUPT, "what is kept has %lld bytes too many",
	                              (long long)(end - at));
}

void kept_node_encode(struct buffer *buffer, const struct kept_node *kept)
{
	INVARIANT(kept->term >= 0 && kept->connection >= 0 && kept->connection <= CONNECTION_MAX);
	fields_encode(buffer, &kept_node_type, kept);
}

bool kept_node_decode(struct arena *arena, const void *data, size_t size, struct kept_node *kept,
                      struct error *error)
{
	const uint8_t *at = data, *end = at + size;

	if (!fields_decode(arena, &kept_node_type, kept, &at, end, error) ||
	    !at_end(at, end, error))
		return false;
	if (kept->term < 0 || kept->connection < 0 || kept->connection > CONNECTION_MAX)
		return error_set(error, ERROR_CORRUPT, "term %lld and connection %lld cannot be",
		                 (long long)kept->term, (long long)kept->connection);
	return true;
}

void kept_work_encode(struct buffer *buffer, const struct kept_work *kept,
                      const struct node_order *order)
{
	INVARIANT(kept->reservation_id == order->reservation_id);
	INVARIANT(kept->standing.count == order->part_count);
	fields_encode(buffer, &kept_work_type, kept);
	fields_encode(buffer, &node_order_type, order);
	fields_encode(buffer, &more_type, kept);
	fields_encode(buffer, &later_type, kept);
}

static bool is_time(int64_t time_ms)
{
	return time_ms >= 0 && time_ms <= TIME_MS_MAX;
}

static bool check_standing(const struct kept_work *kept)
{
	for (int64_t i = 0; i < kept->standing.count; i++)
		if (kept->standing.at[i] < 0 || kept->standing.at[i] > MIB_MAX)
			return false;
	return is_time(kept->started_ms) && is_time(kept->stop_ms) && is_time(kept->kill_ms) &&
	       is_time(kept->ended_ms) && is_time(kept->accounted_ms);
}

static bool check_use(const struct task_use *use)
{
	return is_time(use->peak_mib) && is_time(use->gpu_ms) && is_time(use->energy_mj) &&
	       is_time(use->host_peak_bytes) && is_time(use->cpu_ms) && is_time(use->limit_mib) &&
	       is_time(use->guard_peak_mib) && is_time(use->refusals) && is_time(use->refused_mib);
}

static bool check_work(const struct kept_work *kept, const struct node_order *order,
                       struct error *error)
{
	if (!node_order_check(order, error))
		return false;
	if (kept->reservation_id != order->reservation_id ||
	    kept->standing.count != order->part_count ||
	    (order->kind >= ORDER_STOP && order->kind != ORDER_WATCH) ||
	    kept->memory < MEMORY_ON_GPU || kept->memory > MEMORY_COMING ||
	    (kept->memory != MEMORY_ON_GPU && kept->slot) || !is_time(kept->memory_ms) ||
	    kept->copy_bytes < 0 || kept->copy_bytes > HOST_BYTES_MAX ||
	    !is_time(kept->paused_ms) || kept->slot != (order->kind == ORDER_LOAD) ||
	    kept->reason < 0 || kept->reason >= END_REASONS || kept->phase <= WORK_WAITING ||
	    kept->phase > WORK_BACK || (kept->ready && (!kept->slot || kept->phase >= WORK_OVER)) ||
	    (kept->gone && kept->phase < WORK_OVER) || (kept->phase == WORK_BACK && !kept->gone) ||
	    !check_standing(kept) || !check_use(&kept->use))
		return error_set(error, ERROR_CORRUPT,
		                 "what is kept about reservation %lld contradicts itself",
		                 (long long)kept->reservation_id);
	return true;
}

bool kept_work_decode(struct arena *arena, const void *data, size_t size, struct kept_work *kept,
                      struct node_order *order, struct error *error)
{
	const uint8_t *at = data, *end = at + size;

	memset(kept, 0, sizeof(*kept));
	memset(order, 0, sizeof(*order));
	return fields_decode(arena, &kept_work_type, kept, &at, end, error) &&
	       fields_decode(arena, &node_order_type, order, &at, end, error) &&
	       (at == end || fields_decode(arena, &more_type, kept, &at, end, error)) &&
	       (at == end || fields_decode(arena, &later_type, kept, &at, end, error)) &&
	       at_end(at, end, error) && check_work(kept, order, error);
}
