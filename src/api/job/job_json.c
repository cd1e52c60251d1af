/* job_json.c - a job as people send it, made into a command */
#include "api/job/job_json.h"

#include <stdio.h>
#include <string.h>

#include "api/job/job_fields.h"

/* Jobs of an array that tell of themselves. */
enum { NOTIFY_ARRAY_MAX = 100 };

/* True if the request says that the tasks need not start together. */
static bool refuses_gang(const struct job_reader *reader)
{
	return resource_gave(&reader->fields, JOB_FIELD_gang_scheduling) && !reader->gang;
}

static bool conclude_shared(struct job_reader *reader)
{
	struct job_record *job = reader->job;

	if (reader->fraction > 0 && (reader->gpu_memory_mib > 0 || reader->uneven.count > 0))
		return job_field_fail(reader, JOB_FIELD_gpu_fraction,
		                      "and gpu_memory_mb are two ways to ask for a part of a GPU: "
		                      "give one of them");
	if (reader->gpu_count > PARTS_MAX)
		return job_field_fail(reader, JOB_FIELD_gpu_fraction,
		                      "is of at most %d GPUs for one task; use tasks for more",
		                      PARTS_MAX);
	job->gpu_count = (int32_t)max64(reader->gpu_count, 1);
	if (reader->fraction > 0) {
		job->gpu_kind = GPU_FRACTION;
		job->fraction = (int32_t)reader->fraction;
	} else {
		job->gpu_kind = GPU_MEMORY;
		job->memory_mib = reader->gpu_memory_mib;
	}
	return true;
}

static bool conclude_whole(struct job_reader *reader)
{
	struct job_record *job = reader->job;
	int64_t largest = reader->with->node_gpus;
	bool larger = reader->gpu_count > PARTS_MAX ||
	              (reader->gang && largest > 0 && reader->gpu_count > largest);

	job->gpu_kind = GPU_WHOLE;
	job->memory_mib = reader->gpu_memory_mib;
	job->gpu_count = (int32_t)reader->gpu_count;
	if (!larger)
		return true;
	if (resource_gave(&reader->fields, JOB_FIELD_tasks) || refuses_gang(reader)) {
		if (reader->gpu_count <= PARTS_MAX)
			return true;
		return job_field_fail(
		    reader, JOB_FIELD_gpu_count,
		    "is %lld: one task takes at most %d GPUs; leave out tasks and "
		    "set gang_scheduling to have it split over nodes",
		    (long long)reader->gpu_count, PARTS_MAX);
	}
	job->split_gpus = reader->gpu_count;
	job->gpu_count = 1;
	return true;
}

static bool conclude_gpus(struct job_reader *reader)
{
	struct job_record *job = reader->job;

	if (reader->uneven.count > 0) {
		if (reader->fraction > 0)
			return job_field_fail(
			    reader, JOB_FIELD_gpu_memory_mb,
			    "and gpu_fraction are two ways to ask for a part of a "
			    "GPU: give one of them");
		if (reader->gpu_count > 0 && reader->gpu_count != reader->uneven.count)
			return job_field_fail(reader, JOB_FIELD_gpu_memory_mb,
			                      "has %lld amounts for a gpu_count of %lld: leave out "
			                      "gpu_count, or give as many",
			                      (long long)reader->uneven.count,
			                      (long long)reader->gpu_count);
		job->gpu_kind = GPU_UNEVEN;
		job->gpu_count = (int32_t)reader->uneven.count;
		job->uneven = reader->uneven;
		return true;
	}
	if (reader->fraction > 0 || (reader->gpu_count == 0 && reader->gpu_memory_mib > 0))
		return conclude_shared(reader);
	if (reader->gpu_count > 0)
		return conclude_whole(reader);
	job->gpu_kind = GPU_NONE;
	return true;
}

static bool conclude_tenant(struct job_reader *reader)
{
	struct job_record *job = reader->job;

	if (job->tenant_id == 0)
		job->tenant_id = reader->with->identity->tenant_id;
	if (job->tenant_id == 0)
		return job_field_fail(reader, JOB_FIELD_tenant_id,
		                      "is missing: name the tenant that the job is for; POST "
		                      "/api/v1/tenants makes one");
	const struct roster_tenant *tenant = roster_find(reader->with->roster, job->tenant_id);
	if (!tenant)
		return error_set(reader->fields.error, ERROR_NOT_FOUND, "tenant-%lld is not known",
		                 (long long)job->tenant_id);
	if (!resource_gave(&reader->fields, JOB_FIELD_preemptible))
		job->preemptible = tenant->allow_preemption;
	return true;
}

static bool conclude_tasks(struct job_reader *reader)
{
	struct job_record *job = reader->job;

	if (job->min_available > max64(job->tasks, 1))
		return job_field_fail(
		    reader, JOB_FIELD_min_available, "is %lld: it can be at most tasks, %lld",
		    (long long)job->min_available, (long long)max64(job->tasks, 1));
	if (job->min_available == 0 && refuses_gang(reader))
		job->min_available = 1;
	return true;
}

static bool conclude_work(const struct job_reader *reader)
{
	return reader->payload.has_work || error_set(reader->fields.error, ERROR_INVALID,
	                                             "a job needs a command, a script or an image");
}

/* What a group is called in the core's rules, which have separators of their own. */
static bool is_group(const char *name)
{
	return *name && strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	                             "0123456789._-") == strlen(name);
}

/* The lines DOMAIN=VALUE of a field as rules of the core (core/queue/demand.h). */
static bool print_rules(struct job_reader *reader, enum job_field field, const char *lines,
                        struct buffer *rules)
{
	const char *verb = job_resource.fields[field].name;
	struct text rest = text_of(lines ? lines : ""), line;

	while (text_next(&rest, '\n', &line)) {
		const char *equals = memchr(line.data, '=', line.size);
		size_t domain = (size_t)(equals - line.data);
		char value[JOB_GROUP_BYTES_MAX + 1];
		snprintf(value, sizeof(value), "%.*s", (int)(line.size - domain - 1), equals + 1);
		if (memchr(line.data, ' ', domain) || !is_group(value) ||
		    line.size - domain - 1 >= sizeof(value))
			return job_field_fail(
			    reader, field,
			    "must have names without blanks, and values of at most "
			    "%d letters, digits, '.', '_' and '-'",
			    JOB_GROUP_BYTES_MAX);
		bool spread = field == JOB_FIELD_spread;
		buffer_print(rules, "%s%s %.*s %s%s@group=%s&@tenant=%lld",
		             rules->size > 0 ? "\n" : "", verb, (int)domain, line.data,
		             spread ? value : "", spread ? " 0 - " : "",
		             spread ? reader->group : value, (long long)reader->job->tenant_id);
	}
	return true;
}

/* Rules select by group, and within the tenant alone. */
static bool conclude_rules(struct job_reader *reader)
{
	struct buffer rules = { 0 }, marks = { 0 };

	if (!reader->group && !reader->spread && !reader->apart && !reader->together)
		return true;
	if (reader->group && !is_group(reader->group))
		return job_field_fail(reader, JOB_FIELD_group,
		                      "must be of letters, digits, '.', '_' and '-'");
	if (reader->spread && !reader->group)
		return job_field_fail(reader, JOB_FIELD_spread,
		                      "needs group: the tasks of one group are spread");
	bool right = print_rules(reader, JOB_FIELD_spread, reader->spread, &rules) &&
	             print_rules(reader, JOB_FIELD_apart, reader->apart, &rules) &&
	             print_rules(reader, JOB_FIELD_together, reader->together, &rules);
	buffer_print(&marks, "@tenant=%lld", (long long)reader->job->tenant_id);
	if (reader->group)
		buffer_print(&marks, "\n@group=%s", reader->group);
	reader->job->marks = arena_string(reader->with->arena, marks.data);
	reader->job->rules = arena_string(reader->with->arena, rules.data ? rules.data : "");
	buffer_free(&rules);
	buffer_free(&marks);
	return right;
}

static bool conclude(struct job_reader *reader)
{
	struct job_record *job = reader->job;

	if (!conclude_tenant(reader) || !conclude_rules(reader) || !conclude_gpus(reader) ||
	    !conclude_tasks(reader) || !conclude_work(reader))
		return false;
	if (reader->with->key.data && !*job->idempotency_key) {
		job->idempotency_key = resource_own(&reader->fields, reader->with->key);
		job->request_hash = reader->with->key_hash;
	}
	if (job->compute > 0 && reader->payload.has_image)
		return job_field_fail(reader, JOB_FIELD_gpu_compute,
		                      "cannot be with image: tasks in containers have no share");
	reader->submit->takes_turns = reader->payload.has_image;
	if (reader->payload.notify.data && submit_count(reader->submit) > NOTIFY_ARRAY_MAX)
		return error_set(reader->fields.error, ERROR_INVALID,
		                 "notify is for arrays of at most %d jobs: each of them is told of",
		                 NOTIFY_ARRAY_MAX);
	if (reader->payload.notify_on.data && !reader->payload.notify.data)
		return error_set(reader->fields.error, ERROR_INVALID,
		                 "notify_on is there without notify");
	const char *user = identity_user(reader->with->identity);
	if (!*job->user && *user)
		job->user = resource_own(&reader->fields, text_of(user));
	if (!*job->name)
		job->name = "job";
	job->program = (int64_t)(reader->payload.program & INT64_MAX);
	return job_payload_finish(&reader->payload, reader->with->secret_keys, job->tenant_id,
	                          reader->with->arena, &job->payload, reader->fields.error);
}

bool job_json_read(struct json_scan *scan, const struct job_reading *reading,
                   struct submit_command *submit, struct error *error)
{
	memset(submit, 0, sizeof(*submit));
	struct job_record *job = &submit->job;
	job->name = job->payload = job->gpu_models = job->node_labels = job->idempotency_key =
	    job->user = job->resources = job->rules = job->marks = job->node_class = job->window =
		"";
	submit->check_possible = reading->check_possible;
	struct job_reader reader = {
		.fields = { .scan = scan, .arena = reading->arena, .error = error },
		.with = reading,
		.submit = submit,
		.job = job
	};

	job_payload_begin(&reader.payload, reading->buffer);
	reader.payload.may_notify = reading->may_notify;
	reader.payload.may_notify_private = reading->may_notify_private;
	reader.payload.notify_only = reading->notify_only;
	return job_fields_read(&reader) && conclude(&reader);
}
