/* use_view.c - what tasks used, as people read it */
#include "api/job/use_view.h"

#include "base/number.h"

#define MIB_BYTES INT64_C(1048576)

struct task_use task_use_of(const struct task_record *task)
{
	return (struct task_use){ .peak_mib = task->peak_mib,
		                  .gpu_ms = task->gpu_ms,
		                  .energy_mj = task->energy_mj,
		                  .host_peak_bytes = task->host_peak_bytes,
		                  .cpu_ms = task->cpu_ms,
		                  .limit_mib = task->limit_mib,
		                  .guard_peak_mib = task->guard_peak_mib,
		                  .refusals = task->refusals,
		                  .refused_mib = task->refused_mib,
		                  .unguarded = task->unguarded };
}

void task_use_add(struct task_use *sum, const struct task_use *use)
{
	sum->peak_mib = max64(sum->peak_mib, use->peak_mib);
	sum->gpu_ms += use->gpu_ms;
	sum->energy_mj += use->energy_mj;
	sum->host_peak_bytes = max64(sum->host_peak_bytes, use->host_peak_bytes);
	sum->cpu_ms += use->cpu_ms;
	if (use->limit_mib > 0)
		sum->limit_mib =
		    sum->limit_mib > 0 ? min64(sum->limit_mib, use->limit_mib) : use->limit_mib;
	sum->guard_peak_mib = max64(sum->guard_peak_mib, use->guard_peak_mib);
	sum->refusals += use->refusals;
	if (use->refused_mib > 0)
		sum->refused_mib = use->refused_mib;
	sum->unguarded = sum->unguarded || use->unguarded;
}

void use_view_write_guard(struct json_writer *json, const struct task_use *use)
{
	if (!use || (use->limit_mib == 0 && !use->unguarded)) {
		json_put_null(json, "guard");
		return;
	}
	json_open_object(json, "guard");
	json_put_integer(json, "limit_mb", use->limit_mib);
	json_put_integer(json, "peak_mb", use->guard_peak_mib);
	json_put_integer(json, "refusals", use->refusals);
	if (use->refusals > 0)
		json_put_integer(json, "last_refused_mb", use->refused_mib);
	else
		json_put_null(json, "last_refused_mb");
	json_put_flag(json, "unguarded", use->unguarded);
	json_close(json);
}

void use_view_write(struct json_writer *json, const struct task_use *use)
{
	static const char *const names[] = { "peak_gpu_memory_mb", "gpu_seconds", "energy_joules",
		                             "peak_memory_mb", "cpu_seconds" };

	if (!use) {
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
			json_put_null(json, names[i]);
	} else {
		json_put_integer(json, names[0], use->peak_mib);
		json_put_decimal(json, names[1], use->gpu_ms, 3);
		json_put_decimal(json, names[2], use->energy_mj, 3);
		json_put_integer(json, names[3], use->host_peak_bytes / MIB_BYTES);
		json_put_decimal(json, names[4], use->cpu_ms, 3);
	}
	use_view_write_guard(json, use);
}
