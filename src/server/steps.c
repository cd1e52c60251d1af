/* steps.c - each step of each decision in the log, for those who look for a reason there */
#include "server/steps.h"

#include <stdio.h>

#include "base/log.h"

/* How many waiting jobs are followed in each pass. */
enum { JOBS_MAX = 8 };

void steps_before(struct sched *sched, struct catalogue *catalogue)
{
	const struct catalogue_filter waiting = { .state = JOB_PENDING, .order = ORDER_PRIORITY };
	int64_t ids[JOBS_MAX];
	struct buffer text = { 0 };
	struct error error;
	if (!log_writes(LOG_STEPS))
		return;
	catalogue_lock(catalogue);
	size_t count = catalogue_list(catalogue, &waiting, 0, JOBS_MAX, ids);
	catalogue_unlock(catalogue);
	for (size_t i = 0; i < count; i++) {
		const struct log_field job = LOG_NUMBER("job", ids[i]);
		buffer_clear(&text);
		/* One that has ended since it was seen there is passed over. */
		if (sched_trace(sched, ids[i], &text, &error) && text.size > 0)
			log_write_lines(LOG_STEPS, text.data, &job, 1);
	}
	buffer_free(&text);
}

static void put_gpu(struct buffer *text, struct catalogue *catalogue,
                    const struct decision_record *decision, int64_t row)
{
	const int64_t *line = decision->gpus.at + row * LINE_WIDTH;

	catalogue_lock(catalogue);
	const struct gpu_record *gpu = catalogue_get(catalogue, RECORD_GPU, line[LINE_GPU], 0);
	buffer_print(text, "[GPU_ALLOCATE] job-%lld: %s: ", (long long)decision->job_id,
	             gpu ? gpu->uuid : "a GPU");
	catalogue_unlock(catalogue);
	buffer_print(text,
	             "capacity %lld, overhead %lld, foreign %lld (unexplained %lld), used %lld, "
	             "releasing %lld, claimed %lld, asked %lld, used after %lld MiB\n",
	             (long long)line[LINE_CAPACITY], (long long)line[LINE_OVERHEAD],
	             (long long)line[LINE_FOREIGN],
	             (long long)decision_unexplained_mib(decision, row),
	             (long long)line[LINE_USED_BEFORE], (long long)line[LINE_RELEASING],
	             (long long)line[LINE_CLAIMED], (long long)line[LINE_ASKED],
	             (long long)line[LINE_USED_AFTER]);
}

void steps_after(struct sched *sched, struct catalogue *catalogue, const struct effects *effects)
{
	struct buffer text = { 0 };
	if (!log_writes(LOG_STEPS))
		return;
	for (size_t i = 0; i < effects->count; i++) {
		const struct effect *effect = &effects->at[i];
		if (effect->kind != EFFECT_PUT || effect->record_kind != RECORD_DECISION)
			continue;
		const struct decision_record *decision = effect->record;
		const struct log_field fields[] = { LOG_NUMBER("decision", decision->id),
			                            LOG_NUMBER("job", decision->job_id),
			                            LOG_NUMBER("model", decision->model_id) };
		buffer_clear(&text);
		for (int64_t j = 0; j < decision->gpus.count; j++)
			put_gpu(&text, catalogue, decision, j);
		sched_explain(sched, decision, 0, &text);
		if (text.size > 0)
			log_write_lines(LOG_STEPS, text.data, fields,
			                sizeof(fields) / sizeof(fields[0]));
	}
	buffer_free(&text);
}
