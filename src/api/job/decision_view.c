/* decision_view.c - a decision with its arithmetic, as people read it */
#include "api/job/decision_view.h"

#include "api/text/ids.h"
#include "api/text/times.h"

static const char *node_of_gpu(const struct decision_view *view, int64_t gpu_id)
{
	const struct gpu_record *gpu = catalogue_get(view->catalogue, RECORD_GPU, gpu_id, 0);
	const struct node_record *node =
	    gpu ? catalogue_get(view->catalogue, RECORD_NODE, gpu->node_id, 0) : NULL;
	return node ? node->name : NULL;
}

static void write_gpu(struct json_writer *json, const int64_t *line,
                      const struct decision_view *view)
{
	const struct gpu_record *gpu =
	    catalogue_get(view->catalogue, RECORD_GPU, line[LINE_GPU], 0);
	json_open_object(json, NULL);
	json_put_string(json, "uuid", gpu ? gpu->uuid : NULL);
	json_put_string(json, "node", node_of_gpu(view, line[LINE_GPU]));
	json_put_integer(json, "capacity_mb", line[LINE_CAPACITY]);
	json_put_integer(json, "overhead_mb", line[LINE_OVERHEAD]);
	json_put_integer(json, "foreign_mb", line[LINE_FOREIGN]);
	json_put_integer(json, "used_before_mb", line[LINE_USED_BEFORE]);
	json_put_integer(json, "releasing_mb", line[LINE_RELEASING]);
	json_put_integer(json, "claimed_mb", line[LINE_CLAIMED]);
	json_put_integer(json, "asked_mb", line[LINE_ASKED]);
	json_put_integer(json, "used_after_mb", line[LINE_USED_AFTER]);
	json_close(json);
}

/* A job by its id, unless it is somebody else's. */
static void put_job(struct json_writer *json, const char *key, int64_t job_id,
                    const struct decision_view *view)
{
	struct catalogue_job job;
	bool known = catalogue_job(view->catalogue, job_id, &job);
	if (view->viewer != 0 && (!known || job.job->tenant_id != view->viewer))
		json_put_string(json, key, "another tenant");
	else
		json_put_id(json, key, ID_JOB, job_id);
}

static void write_victims(struct json_writer *json, const struct decision_record *decision,
                          const struct decision_view *view)
{
	json_open_array(json, "victims");
	for (int64_t i = 0; i < decision->victims.count; i++) {
		const int64_t *row = decision->victims.at + i * VICTIM_WIDTH;
		json_open_object(json, NULL);
		put_job(json, "job_id", row[0], view);
		json_put_integer(json, "task", row[1]);
		json_put_flag(json, "moved", row[2] != 0);
		json_put_decimal(json, "lost_gpu_seconds", row[3] / 1000, 3);
		json_close(json);
	}
	json_close(json);
}

static void write_evicted(struct json_writer *json, const struct decision_record *decision,
                          const struct decision_view *view)
{
	json_open_array(json, "evicted");
	for (int64_t i = 0; i < decision->evicted.count; i++) {
		const int64_t *row = decision->evicted.at + i * EVICTED_WIDTH;
		const struct model_record *model =
		    catalogue_get(view->catalogue, RECORD_MODEL, row[EVICTED_MODEL], 0);
		bool hidden = view->viewer != 0 && (!model || model->tenant_id != view->viewer);
		json_open_object(json, NULL);
		if (hidden) {
			json_put_string(json, "model", "another tenant");
		} else {
			json_put_id(json, "slot_id", ID_SLOT, row[EVICTED_SLOT]);
			json_put_string(json, "model", model ? model->name : NULL);
		}
		json_put_integer(json, "memory_mb", row[EVICTED_MIB]);
		json_put_duration(json, "reload", row[EVICTED_RELOAD_MS]);
		json_put_duration(json, "idle", row[EVICTED_IDLE_MS]);
		json_close(json);
	}
	json_close(json);
}

static void write_subject(struct json_writer *json, const struct decision_record *decision,
                          const struct decision_view *view)
{
	if (decision->job_id > 0)
		json_put_id(json, "job_id", ID_JOB, decision->job_id);
	json_put_id(json, "tenant_id", ID_TENANT, decision->tenant_id);
	if (decision->model_id > 0) {
		const struct model_record *model =
		    catalogue_get(view->catalogue, RECORD_MODEL, decision->model_id, 0);
		json_put_id(json, "model_id", ID_MODEL, decision->model_id);
		json_put_string(json, "model", model ? model->name : NULL);
		json_put_id(json, "slot_id", ID_SLOT, decision->slot_id);
	}
	if (decision->for_job_id > 0)
		put_job(json, "for_job_id", decision->for_job_id, view);
	if (decision->for_model_id > 0 && view->viewer == 0)
		json_put_id(json, "for_model_id", ID_MODEL, decision->for_model_id);
	json_put_string(json, "runner_id",
	                decision->gpus.count > 0 ? node_of_gpu(view, decision->gpus.at[LINE_GPU])
	                                         : NULL);
}

static void write_explanation(struct json_writer *json, const char *explanation)
{
	struct text rest = text_of(explanation), line;
	json_open_array(json, "explanation");
	while (text_next(&rest, '\n', &line))
		if (line.size > 0)
			json_put_text(json, NULL, line);
	json_close(json);
}

void decision_view_write(struct json_writer *json, const struct decision_record *decision,
                         const struct decision_view *view)
{
	json_open_object(json, NULL);
	json_put_integer(json, "id", decision->id);
	json_put_string(json, "type", word_of(&decision_words, decision->kind));
	json_put_moment(json, "time", decision->time_ms);
	write_subject(json, decision, view);
	json_put_integer(json, "tasks", decision->tasks);
	json_put_integer(json, "candidates", decision->candidates);
	json_put_integer(json, "score", decision->score);
	if (decision->premium_milli > 0)
		json_put_decimal(json, "premium", decision->premium_milli, 3);
	json_put_moment(json, "until", decision->until_ms);
	if (decision->wait_gpu_ms > 0 || decision->lost_gpu_ms > 0) {
		json_put_decimal(json, "wait_gpu_seconds", decision->wait_gpu_ms / 1000, 3);
		json_put_decimal(json, "lost_gpu_seconds", decision->lost_gpu_ms / 1000, 3);
	}
	json_open_array(json, "gpus");
	for (int64_t i = 0; i < decision->gpus.count; i++)
		write_gpu(json, decision->gpus.at + i * LINE_WIDTH, view);
	json_close(json);
	write_victims(json, decision, view);
	write_evicted(json, decision, view);
	if (*decision->message)
		json_put_string(json, "message", decision->message);
	if (view->explanation)
		write_explanation(json, view->explanation);
	json_close(json);
}
