/* job_json.c - a job as people send it, made into a command */
#include "api/job_json.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

#include "api/array_range.h"
#include "api/ids.h"
#include "api/job_payload.h"
#include "api/times.h"

#define MINUTE_MS INT64_C(60000)
#define MIB_BYTES INT64_C(1048576)

enum {
	NAME_BYTES_MAX = 256,
	DEPENDS_MAX = 256,
};

/* A job that is being read. */
struct reader {
	struct json_scan *scan;
	const struct job_reading *with;
	struct error *error;
	struct submit_command *submit;
	struct job_record *job;
	struct job_payload payload;
	const char *name; /* of the field that is being read */
	int64_t gpu_count, gpu_memory_mib, fraction;
	struct rows uneven;
	bool has_tasks, has_gang, gang, has_preemptible;
};

static bool fail(struct reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool fail(struct reader *reader, const char *format, ...)
{
	char sentence[ERROR_TEXT_MAX];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	reader->scan->failed = true;
	return error_set(reader->error, ERROR_INVALID, "%s %s", reader->name, sentence);
}

/* A decimal number from `least` to `most`, times 10^digits. */
static bool number(struct reader *reader, int digits, int64_t least, int64_t most, int64_t *value)
{
	int64_t scale = 1;
	for (int i = 0; i < digits; i++)
		scale *= 10;
	bool is_number = json_scan_kind(reader->scan) == JSON_KIND_NUMBER;
	if (is_number && json_scan_decimal(reader->scan, digits, value) && *value >= least &&
	    *value <= most)
		return true;
	if (digits == 0)
		return fail(reader, "must be a whole number from %lld to %lld", (long long)least,
		            (long long)most);
	return fail(reader, "must be a number from %lld to %lld with at most %d decimals",
	            (long long)(least / scale), (long long)(most / scale), digits);
}

static bool flag(struct reader *reader, bool *value)
{
	return json_scan_kind(reader->scan) == JSON_KIND_FLAG
	           ? json_scan_flag(reader->scan, value)
	           : fail(reader, "must be true or false");
}

static bool text(struct reader *reader, size_t most, struct text *value)
{
	*value = TEXT("");
	if (json_scan_kind(reader->scan) != JSON_KIND_TEXT)
		return fail(reader, "must be a text in double quotes");
	if (!json_scan_text(reader->scan, value))
		return false;
	return value->size <= most || fail(reader, "is longer than %zu bytes", most);
}

/* A copy in the arena with a NUL behind it. */
static const char *own(struct reader *reader, struct text value)
{
	char *copy = arena_alloc(reader->with->arena, value.size + 1);
	memcpy(copy, value.data, value.size);
	copy[value.size] = '\0';
	return copy;
}

static bool read_tenant(struct reader *reader)
{
	const struct roster *roster = reader->with->roster;
	const struct roster_tenant *tenant;
	struct text name;
	int64_t id;

	if (json_scan_kind(reader->scan) == JSON_KIND_NUMBER) {
		if (!number(reader, 0, 1, INT64_MAX, &id))
			return false;
		char written[ID_TEXT_MAX];
		name = (struct text){ written, id_write(written, ID_TENANT, id) };
		tenant = roster_find(roster, id);
	} else if (!text(reader, NAME_BYTES_MAX, &name)) {
		return false;
	} else {
		tenant = roster_named(roster, name);
	}
	if (tenant && roster_may_see(roster, reader->with->identity, tenant->id)) {
		reader->job->tenant_id = tenant->id;
		return true;
	}
	reader->scan->failed = true;
	return error_set(reader->error, ERROR_NOT_FOUND,
	                 "tenant_id: there is no tenant %.*s; GET /api/v1/tenants lists them",
	                 (int)(name.size < 100 ? name.size : 100), name.data);
}

static bool read_name(struct reader *reader)
{
	struct text name;
	if (!text(reader, NAME_BYTES_MAX, &name))
		return false;
	reader->job->name = own(reader, name);
	return true;
}

static bool read_key(struct reader *reader)
{
	struct text key;
	if (!text(reader, NAME_BYTES_MAX, &key))
		return false;
	reader->job->idempotency_key = own(reader, key);
	return true;
}

static bool read_priority(struct reader *reader)
{
	return number(reader, 0, INT_MIN, INT_MAX, &reader->job->priority);
}

static bool read_gpu_count(struct reader *reader)
{
	return number(reader, 0, 0, TASKS_MAX, &reader->gpu_count);
}

/* One amount for each GPU of a task. */
static bool read_uneven(struct reader *reader)
{
	int64_t *amounts = arena_alloc(reader->with->arena, PARTS_MAX * sizeof(*amounts));
	int64_t count = 0;

	json_scan_open(reader->scan, JSON_KIND_ARRAY);
	while (json_scan_element(reader->scan)) {
		if (count == PARTS_MAX)
			return fail(reader,
			            "has more than %d GPUs: one task takes at most that many",
			            PARTS_MAX);
		if (!number(reader, 0, 1, MIB_MAX, &amounts[count++]))
			return false;
	}
	reader->uneven = (struct rows){ amounts, count };
	return !reader->scan->failed;
}

static bool read_gpu_memory(struct reader *reader)
{
	if (json_scan_kind(reader->scan) == JSON_KIND_ARRAY)
		return read_uneven(reader);
	return number(reader, 0, 0, MIB_MAX, &reader->gpu_memory_mib);
}

static bool read_fraction(struct reader *reader)
{
	return number(reader, 3, 0, WHOLE_GPU, &reader->fraction);
}

static bool read_cpu(struct reader *reader)
{
	return number(reader, 3, 0, CPU_MILLI_MAX, &reader->job->cpu_milli);
}

static bool read_memory(struct reader *reader)
{
	int64_t mib;
	if (!number(reader, 0, 0, HOST_BYTES_MAX / MIB_BYTES, &mib))
		return false;
	reader->job->host_bytes = mib * MIB_BYTES;
	return true;
}

static bool read_tasks(struct reader *reader)
{
	reader->has_tasks = true;
	return number(reader, 0, 1, TASKS_MAX, &reader->job->tasks);
}

static bool read_min_available(struct reader *reader)
{
	return number(reader, 0, 1, TASKS_MAX, &reader->job->min_available);
}

static bool read_gang(struct reader *reader)
{
	reader->has_gang = true;
	return flag(reader, &reader->gang);
}

static bool read_preemptible(struct reader *reader)
{
	reader->has_preemptible = true;
	return flag(reader, &reader->job->preemptible);
}

static bool read_runtime_minutes(struct reader *reader)
{
	int64_t milli;
	if (!number(reader, 3, 0, TIME_MS_MAX / 60, &milli))
		return false;
	reader->job->max_runtime_ms = milli * (MINUTE_MS / 1000);
	return true;
}

static bool read_runtime(struct reader *reader)
{
	struct text value;
	if (!text(reader, NAME_BYTES_MAX, &value))
		return false;
	return duration_read(value, &reader->job->max_runtime_ms) ||
	       fail(reader, "must be a duration such as \"1h30m\"");
}

static bool read_deadline(struct reader *reader)
{
	struct text value;
	if (!text(reader, NAME_BYTES_MAX, &value))
		return false;
	return time_read(value, &reader->job->deadline_ms) ||
	       fail(reader, "must be a time such as \"2026-01-31T12:00:00Z\" (RFC 3339)");
}

static bool read_movable(struct reader *reader)
{
	return flag(reader, &reader->job->movable);
}

static bool read_lease_loss(struct reader *reader)
{
	struct text value;
	if (!text(reader, NAME_BYTES_MAX, &value))
		return false;
	if (text_is(value, "stop"))
		reader->job->lease_loss = LEASE_STOP;
	else if (text_is(value, "keep"))
		reader->job->lease_loss = LEASE_KEEP;
	else
		return fail(reader, "must be \"keep\" or \"stop\"");
	return true;
}

static bool dependency_id(struct reader *reader, int64_t *id)
{
	struct text value;
	if (json_scan_kind(reader->scan) == JSON_KIND_NUMBER)
		return number(reader, 0, 1, INT64_MAX, id);
	if (!text(reader, NAME_BYTES_MAX, &value))
		return false;
	return id_read(value, ID_JOB, id) || fail(reader, "must name jobs, such as \"job-12\"");
}

static bool dependency(struct reader *reader, int64_t row[2])
{
	struct text key = { NULL, 0 }, condition;

	row[0] = 0;
	row[1] = AFTER_SUCCESS;
	if (json_scan_kind(reader->scan) != JSON_KIND_OBJECT)
		return dependency_id(reader, &row[0]);
	json_scan_open(reader->scan, JSON_KIND_OBJECT);
	while (json_scan_member(reader->scan, &key)) {
		if (text_is(key, "job") || text_is(key, "job_id")) {
			if (!dependency_id(reader, &row[0]))
				return false;
		} else if (!text_is(key, "condition")) {
			return fail(reader, "may have \"job\" and \"condition\", nothing else");
		} else if (!text(reader, NAME_BYTES_MAX, &condition)) {
			return false;
		} else if (text_is(condition, "any")) {
			row[1] = AFTER_ANY;
		} else if (!text_is(condition, "success")) {
			return fail(reader, "has a condition that is not \"success\" or \"any\"");
		}
	}
	if (reader->scan->failed)
		return false;
	return row[0] > 0 || fail(reader, "must name a job in each element, such as \"job-12\"");
}

static bool read_depends(struct reader *reader)
{
	int64_t *rows = arena_alloc(reader->with->arena, 2 * DEPENDS_MAX * sizeof(*rows));
	int64_t count = 0;

	if (json_scan_kind(reader->scan) != JSON_KIND_ARRAY)
		return fail(reader, "must be an array of jobs, such as [\"job-12\"]");
	json_scan_open(reader->scan, JSON_KIND_ARRAY);
	while (json_scan_element(reader->scan)) {
		if (count == DEPENDS_MAX)
			return fail(reader, "names more than %d jobs", DEPENDS_MAX);
		if (!dependency(reader, rows + 2 * count++))
			return false;
	}
	reader->job->depends = (struct rows){ rows, count };
	return !reader->scan->failed;
}

static bool read_array(struct reader *reader)
{
	struct array_range range;
	struct text value;

	if (json_scan_kind(reader->scan) != JSON_KIND_TEXT)
		return fail(reader, "must be a range such as \"1-100\", or \"1-100%%8\" for 8 at a "
		                    "time");
	if (!text(reader, NAME_BYTES_MAX, &value))
		return false;
	if (!array_range_read(value, &range, reader->error)) {
		reader->scan->failed = true;
		return false;
	}
	reader->submit->array_from = range.from;
	reader->submit->array_to = range.to;
	reader->job->array_limit = range.limit;
	return true;
}

static bool gpu_model(struct reader *reader, char *models, size_t *size)
{
	struct text value;
	if (!text(reader, NAME_BYTES_MAX, &value))
		return false;
	if (*size + value.size + 2 > NAME_BYTES_MAX)
		return fail(reader, "is longer than %d bytes", NAME_BYTES_MAX);
	if (*size > 0)
		models[(*size)++] = '|';
	memcpy(models + *size, value.data, value.size);
	*size += value.size;
	return true;
}

static bool read_gpu_models(struct reader *reader)
{
	char *models = arena_alloc(reader->with->arena, NAME_BYTES_MAX + 1);
	size_t size = 0;

	if (json_scan_kind(reader->scan) != JSON_KIND_ARRAY) {
		if (!gpu_model(reader, models, &size))
			return false;
	} else {
		json_scan_open(reader->scan, JSON_KIND_ARRAY);
		while (json_scan_element(reader->scan))
			if (!gpu_model(reader, models, &size))
				return false;
	}
	models[size] = '\0';
	reader->job->gpu_models = models;
	return !reader->scan->failed;
}

static bool read_closeness(struct reader *reader)
{
	struct text value;
	if (!text(reader, NAME_BYTES_MAX, &value))
		return false;
	for (int i = 0; i < closeness_words.count; i++) {
		if (!text_is(value, closeness_words.at[i]))
			continue;
		reader->job->closeness = i;
		return true;
	}
	return fail(reader, "must be \"any\", \"nvlink\", \"node\" or \"rack\"");
}

static bool read_closeness_required(struct reader *reader)
{
	return flag(reader, &reader->job->closeness_required);
}

static bool read_node_labels(struct reader *reader)
{
	reader->scan->failed = !job_payload_node_labels(reader->scan, reader->with->arena,
	                                                &reader->job->node_labels, reader->error);
	return !reader->scan->failed;
}

static bool read_hold(struct reader *reader)
{
	return flag(reader, &reader->submit->hold);
}

static bool read_check(struct reader *reader)
{
	return flag(reader, &reader->submit->check_possible);
}

/* What goes into the payload: the member's place there is its place here. */
static bool read_payload(struct reader *reader)
{
	if (job_payload_member(&reader->payload, reader->name, reader->scan, reader->error))
		return true;
	reader->scan->failed = true;
	return false;
}

/* What the service itself tells about a job: may be sent back, and is not looked at. */
static bool ignore(struct reader *reader)
{
	return json_scan_skip(reader->scan, NULL);
}

static const struct field {
	const char *name;
	size_t size;
	bool (*read)(struct reader *reader);
} fields[] = {
#define FIELD(name, read)                                                                          \
	{                                                                                          \
		name, sizeof(name) - 1, read                                                       \
	}
	FIELD("tenant_id", read_tenant),
	FIELD("name", read_name),
	FIELD("priority", read_priority),
	FIELD("gpu_count", read_gpu_count),
	FIELD("gpu_memory_mb", read_gpu_memory),
	FIELD("gpu_fraction", read_fraction),
	FIELD("cpu_cores", read_cpu),
	FIELD("memory_mb", read_memory),
	FIELD("command", read_payload),
	FIELD("args", read_payload),
	FIELD("script", read_payload),
	FIELD("image", read_payload),
	FIELD("environment", read_payload),
	FIELD("secret_environment", read_payload),
	FIELD("labels", read_payload),
	FIELD("working_directory", read_payload),
	FIELD("checkpoint_path", read_payload),
	FIELD("gang_scheduling", read_gang),
	FIELD("tasks", read_tasks),
	FIELD("min_available", read_min_available),
	FIELD("preemptible", read_preemptible),
	FIELD("max_runtime_minutes", read_runtime_minutes),
	FIELD("max_runtime", read_runtime),
	FIELD("deadline", read_deadline),
	FIELD("checkpoint_enabled", read_movable),
	FIELD("on_lease_loss", read_lease_loss),
	FIELD("depends_on", read_depends),
	FIELD("array", read_array),
	FIELD("gpu_model", read_gpu_models),
	FIELD("closeness", read_closeness),
	FIELD("closeness_required", read_closeness_required),
	FIELD("node_labels", read_node_labels),
	FIELD("idempotency_key", read_key),
	FIELD("hold", read_hold),
	FIELD("check", read_check),
	FIELD("id", ignore),
	FIELD("job_id", ignore),
	FIELD("state", ignore),
	FIELD("submitted_at", ignore),
	FIELD("scheduled_at", ignore),
	FIELD("started_at", ignore),
	FIELD("completed_at", ignore),
	FIELD("estimated_duration", ignore),
	FIELD("prediction_confidence", ignore),
	FIELD("preempted_count", ignore),
	FIELD("exit_code", ignore),
	FIELD("message", ignore),
#undef FIELD
};
enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };
_Static_assert(FIELDS <= 64, "a bit for each says which were there");

const char *job_json_member(size_t place)
{
	return place < FIELDS ? fields[place].name : NULL;
}

static int find_field(struct text key)
{
	for (int i = 0; i < FIELDS; i++)
		if (fields[i].size == key.size && memcmp(fields[i].name, key.data, key.size) == 0)
			return i;
	return -1;
}

/* The field that most likely was meant: the one that shares the longest start. */
static const char *nearest_field(struct text key)
{
	size_t longest = 2;
	const char *nearest = NULL;
	for (size_t i = 0; i < FIELDS; i++) {
		size_t same = 0;
		while (same < key.size && same < fields[i].size &&
		       key.data[same] == fields[i].name[same])
			same++;
		if (same > longest) {
			longest = same;
			nearest = fields[i].name;
		}
	}
	return nearest;
}

static bool refuse_unknown(struct reader *reader, struct text key)
{
	const char *nearest = nearest_field(key);
	int shown = (int)(key.size < 64 ? key.size : 64);

	reader->scan->failed = true;
	if (nearest)
		return error_set(reader->error, ERROR_INVALID,
		                 "%.*s is no field of a job: did you mean %s?", shown, key.data,
		                 nearest);
	return error_set(reader->error, ERROR_INVALID,
	                 "%.*s is no field of a job; /openapi.json lists those that are", shown,
	                 key.data);
}

static bool read_members(struct reader *reader)
{
	struct json_scan *scan = reader->scan;
	uint64_t seen = 0;
	struct text key = { NULL, 0 };

	if (json_scan_kind(scan) != JSON_KIND_OBJECT) {
		scan->failed = true;
		return error_set(reader->error, ERROR_INVALID,
		                 "a job must be a JSON object, {...}, such as "
		                 "{\"tenant_id\":\"tenant-1\",\"command\":[\"true\"]}");
	}
	if (!json_scan_open(scan, JSON_KIND_OBJECT))
		return false;
	while (json_scan_member(scan, &key)) {
		int at = find_field(key);
		if (at < 0)
			return refuse_unknown(reader, key);
		reader->name = fields[at].name;
		if (seen & UINT64_C(1) << at)
			return fail(reader, "is there twice");
		seen |= UINT64_C(1) << at;
		bool is_null = json_scan_kind(scan) == JSON_KIND_NULL;
		if (is_null ? !json_scan_skip(scan, NULL) : !fields[at].read(reader))
			return false;
	}
	return !scan->failed;
}

static bool conclude_shared(struct reader *reader)
{
	struct job_record *job = reader->job;

	reader->name = "gpu_fraction";
	if (reader->fraction > 0 && (reader->gpu_memory_mib > 0 || reader->uneven.count > 0))
		return fail(reader, "and gpu_memory_mb are two ways to ask for a part of a GPU: "
		                    "give one of them");
	if (reader->gpu_count > PARTS_MAX)
		return fail(reader, "is of at most %d GPUs for one task; use tasks for more",
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

static bool conclude_whole(struct reader *reader)
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
	reader->name = "gpu_count";
	if (reader->has_tasks || (reader->has_gang && !reader->gang)) {
		if (reader->gpu_count <= PARTS_MAX)
			return true;
		return fail(reader,
		            "is %lld: one task takes at most %d GPUs; leave out tasks and "
		            "set gang_scheduling to have it split over nodes",
		            (long long)reader->gpu_count, PARTS_MAX);
	}
	job->split_gpus = reader->gpu_count;
	job->gpu_count = 1;
	return true;
}

static bool conclude_gpus(struct reader *reader)
{
	struct job_record *job = reader->job;

	if (reader->uneven.count > 0) {
		reader->name = "gpu_memory_mb";
		if (reader->fraction > 0)
			return fail(reader, "and gpu_fraction are two ways to ask for a part of a "
			                    "GPU: give one of them");
		if (reader->gpu_count > 0 && reader->gpu_count != reader->uneven.count)
			return fail(reader,
			            "has %lld amounts for a gpu_count of %lld: leave out "
			            "gpu_count, or give as many",
			            (long long)reader->uneven.count, (long long)reader->gpu_count);
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

static bool conclude_tenant(struct reader *reader)
{
	struct job_record *job = reader->job;

	if (job->tenant_id == 0)
		job->tenant_id = reader->with->identity->tenant_id;
	reader->name = "tenant_id";
	if (job->tenant_id == 0)
		return fail(reader, "is missing: name the tenant that the job is for; POST "
		                    "/api/v1/tenants makes one");
	const struct roster_tenant *tenant = roster_find(reader->with->roster, job->tenant_id);
	if (!tenant)
		return error_set(reader->error, ERROR_NOT_FOUND, "tenant-%lld is not known",
		                 (long long)job->tenant_id);
	if (!reader->has_preemptible)
		job->preemptible = tenant->allow_preemption;
	return true;
}

static bool conclude_tasks(struct reader *reader)
{
	struct job_record *job = reader->job;

	reader->name = "min_available";
	if (job->min_available > max64(job->tasks, 1))
		return fail(reader, "is %lld: it can be at most tasks, %lld",
		            (long long)job->min_available, (long long)max64(job->tasks, 1));
	if (job->min_available == 0 && reader->has_gang && !reader->gang)
		job->min_available = 1;
	return true;
}

static bool conclude(struct reader *reader)
{
	struct job_record *job = reader->job;

	if (!conclude_tenant(reader) || !conclude_gpus(reader) || !conclude_tasks(reader))
		return false;
	if (reader->with->key.data && !*job->idempotency_key)
		job->idempotency_key = own(reader, reader->with->key);
	if (!*job->name)
		job->name = "job";
	return job_payload_finish(&reader->payload, reader->with->secret_keys, job->tenant_id,
	                          reader->with->arena, &job->payload, reader->error);
}

bool job_json_read(struct json_scan *scan, const struct job_reading *reading,
                   struct submit_command *submit, struct error *error)
{
	memset(submit, 0, sizeof(*submit));
	struct job_record *job = &submit->job;
	job->name = job->payload = job->gpu_models = job->node_labels = job->idempotency_key = "";
	submit->check_possible = reading->check_possible;
	struct reader reader = { .scan = scan,
		                 .with = reading,
		                 .error = error,
		                 .submit = submit,
		                 .job = job,
		                 .name = "" };

	job_payload_begin(&reader.payload, reading->buffer);
	return read_members(&reader) && conclude(&reader);
}
