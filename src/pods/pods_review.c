/* pods_review.c - pods before they are created: what would become of them as jobs */
#include <stdlib.h>
#include <string.h>

#include "pods/pods_local.h"

/* What may come after the pod: its claims, its tenant. */
static bool may_come(const struct pods *pods, const json_t *object)
{
	return pod_has_claims(object) && (!pods->claims_synced || !claims_are_there(pods, object));
}

static enum pods_review review(struct pods *pods, const struct pod *pod, struct arena *arena,
                               struct submit_command *submit, const char **class,
                               struct error *error)
{
	struct unit_task task = { .pod = (struct pod *)pod };
	struct unit unit = { .tasks = &task, .task_count = 1 };
	struct command command = { .kind = COMMAND_SUBMIT };
	struct ask ask = { 0 };

	unit.job_key = unit.key = unit.group_name = "";
	unit.namespace = pod->namespace;
	int64_t tenant_id = unit_tenant(pods, &unit, pod, error);
	if (!tenant_id)
		return error->code == ERROR_FORBIDDEN ? PODS_REVIEW_REFUSED : PODS_REVIEW_FINE;
	if (!ask_read_pod(pods, pod->object, &ask, error)) {
		bool later = error->code == ERROR_NOT_FOUND || error->code == ERROR_CONFLICT;
		ask_free(&ask);
		return later ? PODS_REVIEW_FINE : PODS_REVIEW_REFUSED;
	}
	bool parts = ask.gpus.kind == POD_GPU_FRACTION || ask.gpus.kind == POD_GPU_MEMORY;
	*class = arena_string(arena, ask.node_class.data);
	class_use(pods, *class, pod->object, parts);
	command.submit.job = unit_job(pods, &unit, &ask, tenant_id, 1);
	command.submit.job.payload = "{}";
	command.submit.job.name = "pod";
	*submit = command_copy(arena, &command)->submit;
	ask_free(&ask);
	return PODS_REVIEW_ASK;
}

enum pods_review pods_review(struct pods *pods, const json_t *object, struct arena *arena,
                             struct submit_command *submit, const char **class, struct error *error)
{
	const json_t *metadata = json_object_get(object, "metadata");

	if (!pods->ready || pods->nodes.count == 0 || !pods_are_ours(pods, object) ||
	    may_come(pods, object))
		return PODS_REVIEW_FINE;
	struct pod pod = {
		.uid = "",
		.namespace = arena_string(arena, member_text(metadata, "namespace")),
		.name = arena_string(arena, member_text(metadata, "name")),
		.object = (json_t *)object,
	};
	return review(pods, &pod, arena, submit, class, error);
}

void pods_reviewed(struct pods *pods, const char *class)
{
	class_unuse(pods, class);
}

bool pods_review_is_ours(const struct pods *pods, const json_t *object)
{
	return pods_are_ours(pods, object);
}
