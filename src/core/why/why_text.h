/* why_text.h - words and numbers that explanations share */
#ifndef CORE_WHY_WHY_TEXT_H
#define CORE_WHY_WHY_TEXT_H

#include "base/buffer.h"
#include "core/queue/shape.h"

struct sched;
struct slot;

/* Thousandths as a decimal: 2.5. */
void text_milli(struct buffer *buffer, int64_t milli);
/* Thousandths of GPUs x ms, in GPU-seconds. */
void text_gpu_time(struct buffer *buffer, int64_t milli_ms);
/* '1 GPU', '2 GPUs'. */
void text_count(struct buffer *buffer, int64_t count, const char *noun);

/* 'GPU-1 of node n1'. */
void text_gpu(struct buffer *buffer, const struct sched *sched, int64_t gpu_id);
/* 'job-7', or 'another tenant' where the viewer (0: anybody's) may not know whose
 * it is. `tenant_id` is whose it is if that is known; 0: to be looked up. */
void text_job(struct buffer *buffer, const struct sched *sched, int64_t job_id, int64_t tenant_id,
              int64_t viewer);
/* 'slot 12 of model qwen3:8b', or 'a slot of another tenant'. */
void text_slot(struct buffer *buffer, const struct slot *slot, int64_t viewer);
/* What a task of this shape lacks: 'no GPU has 8000 MiB free for it'. */
void text_lack(struct buffer *buffer, const struct shape *shape);
/* A line per row of enum refusal_column. `now`: the rows are of this moment, so
 * the nearest GPU can be described as it is; `gpus`: they count GPUs, not nodes. */
void text_refusals(struct buffer *buffer, const struct sched *sched, const int64_t *rows,
                   int64_t count, bool gpus, bool now);
/* Who has the memory of the nearest GPU that these rows refuse for its memory: the driver, programs
 * that nobody scheduled, jobs, and slots with their requests in flight. One line, or none. */
void text_holders(struct buffer *buffer, const struct sched *sched, const int64_t *rows,
                  int64_t count, int64_t viewer);

#endif
