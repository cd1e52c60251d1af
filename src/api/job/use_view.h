/* use_view.h - what tasks used, as people read it */
#ifndef API_JOB_USE_VIEW_H
#define API_JOB_USE_VIEW_H

#include "core/record/record.h"
#include "wire/text/json_writer.h"

/* The use of a task's finished runs. */
struct task_use task_use_of(const struct task_record *task);
/* What one more run or task used is added: sums of what adds up, the highest of peaks. */
void task_use_add(struct task_use *sum, const struct task_use *use);

/* Writes it as members of an object: peak_gpu_memory_mb, gpu_seconds, energy_joules,
 * peak_memory_mb, cpu_seconds and guard. NULL: nothing is known, and all are null. */
void use_view_write(struct json_writer *json, const struct task_use *use);
/* `guard` alone. */
void use_view_write_guard(struct json_writer *json, const struct task_use *use);

#endif
