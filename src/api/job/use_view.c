/* use_view.c - what tasks used, as people read it */
#include "api/job/use_view.h"

#include "api/text/resource_json.h"
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
	const struct field_value values[GUARD_FIELDS_COUNT] = {
		[GUARD_FIELD_limit_mb] = FIELD_NUMBER(use->limit_mib),
		[GUARD_FIELD_peak_mb] = FIELD_NUMBER(use->guard_peak_mib),
		[GUARD_FIELD_refusals] = FIELD_NUMBER(use->refusals),
		[GUARD_FIELD_last_refused_mb] =
		    FIELD_NUMBER_IF(use->refusals > 0, use->refused_mib),
		[GUARD_FIELD_unguarded] = FIELD_NUMBER(use->unguarded),
	};
	json_open_object(json, "guard");
	resource_write(&(struct resource_writer){
	    .resource = &guard_resource, .json = json, .values = values });
	json_close(json);
}

void use_view_write(struct json_writer *json, const struct task_use *use)
{
	const struct task_use none = { 0 }, *known = use ? use : &none;
	const struct {
		enum job_field field;
		int64_t value;
	} rows[] = { { JOB_FIELD_peak_gpu_memory_mb, known->peak_mib },
		     { JOB_FIELD_gpu_seconds, known->gpu_ms },
		     { JOB_FIELD_energy_joules, known->energy_mj },
		     { JOB_FIELD_peak_memory_mb, known->host_peak_bytes / MIB_BYTES },
		     { JOB_FIELD_cpu_seconds, known->cpu_ms } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct field_value value = FIELD_NUMBER_IF(use != NULL, rows[i].value);
		field_put_value(json, &job_resource.fields[rows[i].field], &value);
	}
	use_view_write_guard(json, use);
}
