/* job_fields.c - the fields of a job that is being read, one by one */
#include "api/job/job_fields.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

#include "api/text/array_range.h"
#include "api/text/ids.h"
#include "api/text/times.h"

#define MIB_BYTES INT64_C(1048576)

enum {
	NAME_BYTES_MAX = 256,
	DEPENDS_MAX = 256,
};

bool job_field_fail(struct job_reader *reader, const char *format, ...)
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
static bool number(struct job_reader *reader, int digits, int64_t least, int64_t most,
                   int64_t *value)
{
	int64_t scale = 1;
	*value = 0;
	for (int i = 0; i < digits; i++)
		scale *= 10;
	bool is_number = json_scan_kind(reader->scan) == JSON_KIND_NUMBER;
	if (is_number && json_scan_decimal(reader->scan, digits, value) && *value >= least &&
	    *value <= most)
		return true;
	if (digits == 0)
		return job_field_fail(reader, "must be a whole number from %lld to %lld",
		                      (long long)least, (long long)most);
	return job_field_fail(reader, "must be a number from %lld to %lld with at most %d decimals",
	                      (long long)(least / scale), (long long)(most / scale), digits);
}

static bool flag(struct job_reader *reader, bool *value)
{
	return json_scan_kind(reader->scan) == JSON_KIND_FLAG
	           ? json_scan_flag(reader->scan, value)
	           : job_field_fail(reader, "must be true or false");
}

static bool text(struct job_reader *reader, size_t most, struct text *value)
{
	*value = TEXT("");
	if (json_scan_kind(reader->scan) != JSON_KIND_TEXT)
		return job_field_fail(reader, "must be a text in double quotes");
	if (!json_scan_text(reader->scan, value))
		return false;
	return value->size <= most || job_field_fail(reader, "is longer than %zu bytes", most);
}

const char *job_field_own(struct job_reader *reader, struct text value)
{
	char *copy = arena_alloc(reader->with->arena, value.size + 1);
	memcpy(copy, value.data, value.size);
	copy[value.size] = '\0';
	return copy;
}

static bool read_tenant(struct job_reader *reader)
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

static bool read_name(struct job_reader *reader)
{
	struct text name;
	if (!text(reader, NAME_BYTES_MAX, &name))
		return false;
	if (text_has_control(name))
		return job_field_fail(reader, "has control characters in it");
	reader->job->name = job_field_own(reader, name);
	return true;
}

static bool read_key(struct job_reader *reader)
{
	struct text key;
	if (!text(reader, NAME_BYTES_MAX, &key))
		return false;
	reader->job->idempotency_key = job_field_own(reader, key);
	return true;
}

static bool read_priority(struct job_reader *reader)
{
	return number(reader, 0, INT_MIN, INT_MAX, &reader->job->priority);
}

static bool read_gpu_count(struct job_reader *reader)
{
	return number(reader, 0, 0, TASKS_MAX, &reader->gpu_count);
}

/* One amount for each GPU of a task. */
static bool read_uneven(struct job_reader *reader)
{
	int64_t *amounts = arena_alloc(reader->with->arena, PARTS_MAX * sizeof(*amounts));
	int64_t count = 0;

	json_scan_open(reader->scan, JSON_KIND_ARRAY);
	while (json_scan_element(reader->scan)) {
		if (count == PARTS_MAX)
			return job_field_fail(
			    reader, "has more than %d GPUs: one task takes at most that many",
			    PARTS_MAX);
		if (!number(reader, 0, 1, MIB_MAX, &amounts[count++]))
			return false;
	}
	reader->uneven = (struct rows){ amounts, count };
	return !reader->scan->failed;
}

static bool read_gpu_memory(struct job_reader *reader)
{
	if (json_scan_kind(reader->scan) == JSON_KIND_ARRAY)
		return read_uneven(reader);
	if (json_scan_kind(reader->scan) == JSON_KIND_TEXT)
		return job_field_fail(reader,
		                      "must be a number of MiB, not a text: 20 GiB is 20480");
	return number(reader, 0, 0, MIB_MAX, &reader->gpu_memory_mib);
}

static bool read_fraction(struct job_reader *reader)
{
	return number(reader, 3, 0, WHOLE_GPU, &reader->fraction);
}

static bool read_cpu(struct job_reader *reader)
{
	return number(reader, 3, 0, CPU_MILLI_MAX, &reader->job->cpu_milli);
}

static bool read_memory(struct job_reader *reader)
{
	int64_t mib;
	if (!number(reader, 0, 0, HOST_BYTES_MAX / MIB_BYTES, &mib))
		return false;
	reader->job->host_bytes = mib * MIB_BYTES;
	return true;
}

static bool read_tasks(struct job_reader *reader)
{
	reader->has_tasks = true;
	return number(reader, 0, 1, TASKS_MAX, &reader->job->tasks);
}

static bool read_min_available(struct job_reader *reader)
{
	return number(reader, 0, 1, TASKS_MAX, &reader->job->min_available);
}

static bool read_gang(struct job_reader *reader)
{
	reader->has_gang = true;
	return flag(reader, &reader->gang);
}

static bool read_preemptible(struct job_reader *reader)
{
	reader->has_preemptible = true;
	return flag(reader, &reader->job->preemptible);
}

static bool read_minutes(struct job_reader *reader, int64_t *time_ms)
{
	int64_t milli;
	if (!number(reader, 3, 0, TIME_MS_MAX / 60, &milli))
		return false;
	*time_ms = milli * (MINUTE_MS / 1000);
	return true;
}

static bool read_runtime_minutes(struct job_reader *reader)
{
	return read_minutes(reader, &reader->job->max_runtime_ms);
}

static bool read_estimate_minutes(struct job_reader *reader)
{
	return read_minutes(reader, &reader->job->estimate_ms);
}

static bool read_runtime(struct job_reader *reader)
{
	struct text value;
	if (!text(reader, NAME_BYTES_MAX, &value))
		return false;
	return duration_read(value, DURATION_MAX_MS, &reader->job->max_runtime_ms) ||
	       job_field_fail(reader, "must be a duration such as \"1h30m\"");
}

static bool read_deadline(struct job_reader *reader)
{
	struct text value;
	if (!text(reader, NAME_BYTES_MAX, &value))
		return false;
	return calendar_read(value, &reader->job->deadline_ms) ||
	       job_field_fail(reader, "must be a time such as \"2026-01-31T12:00:00Z\" (RFC 3339)");
}

static bool read_movable(struct job_reader *reader)
{
	return flag(reader, &reader->job->movable);
}

static bool read_lease_loss(struct job_reader *reader)
{
	struct text value;
	if (!text(reader, NAME_BYTES_MAX, &value))
		return false;
	if (text_is(value, "stop"))
		reader->job->lease_loss = LEASE_STOP;
	else if (text_is(value, "keep"))
		reader->job->lease_loss = LEASE_KEEP;
	else
		return job_field_fail(reader, "must be \"keep\" or \"stop\"");
	return true;
}

static bool dependency_id(struct job_reader *reader, int64_t *id)
{
	struct text value;
	if (json_scan_kind(reader->scan) == JSON_KIND_NUMBER)
		return number(reader, 0, 1, INT64_MAX, id);
	if (!text(reader, NAME_BYTES_MAX, &value))
		return false;
	return id_read(value, ID_JOB, id) ||
	       job_field_fail(reader, "must name jobs, such as \"job-12\"");
}

static bool dependency(struct job_reader *reader, int64_t row[2])
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
			return job_field_fail(reader,
			                      "may have \"job\" and \"condition\", nothing else");
		} else if (!text(reader, NAME_BYTES_MAX, &condition)) {
			return false;
		} else if (text_is(condition, "any")) {
			row[1] = AFTER_ANY;
		} else if (!text_is(condition, "success")) {
			return job_field_fail(reader,
			                      "has a condition that is not \"success\" or \"any\"");
		}
	}
	if (reader->scan->failed)
		return false;
	return row[0] > 0 ||
	       job_field_fail(reader, "must name a job in each element, such as \"job-12\"");
}

static bool read_depends(struct job_reader *reader)
{
	int64_t *rows = arena_alloc(reader->with->arena, 2 * DEPENDS_MAX * sizeof(*rows));
	int64_t count = 0;

	if (json_scan_kind(reader->scan) != JSON_KIND_ARRAY)
		return job_field_fail(reader, "must be an array of jobs, such as [\"job-12\"]");
	json_scan_open(reader->scan, JSON_KIND_ARRAY);
	while (json_scan_element(reader->scan)) {
		if (count == DEPENDS_MAX)
			return job_field_fail(reader, "names more than %d jobs", DEPENDS_MAX);
		if (!dependency(reader, rows + 2 * count++))
			return false;
	}
	reader->job->depends = (struct rows){ rows, count };
	return !reader->scan->failed;
}

static bool read_array(struct job_reader *reader)
{
	struct array_range range;
	struct text value;

	if (json_scan_kind(reader->scan) != JSON_KIND_TEXT)
		return job_field_fail(
		    reader, "must be a range such as \"1-100\", or \"1-100%%8\" for 8 at a "
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

static bool gpu_model(struct job_reader *reader, char *models, size_t *size)
{
	struct text value;
	if (!text(reader, NAME_BYTES_MAX, &value))
		return false;
	if (*size + value.size + 2 > NAME_BYTES_MAX)
		return job_field_fail(reader, "is longer than %d bytes", NAME_BYTES_MAX);
	if (*size > 0)
		models[(*size)++] = '|';
	memcpy(models + *size, value.data, value.size);
	*size += value.size;
	return true;
}

static bool read_gpu_models(struct job_reader *reader)
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

static bool read_closeness(struct job_reader *reader)
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
	return job_field_fail(reader, "must be \"any\", \"nvlink\", \"node\" or \"rack\"");
}

static bool read_closeness_required(struct job_reader *reader)
{
	return flag(reader, &reader->job->closeness_required);
}

static bool read_node_labels(struct job_reader *reader)
{
	reader->scan->failed = !job_payload_node_labels(reader->scan, reader->with->arena,
	                                                &reader->job->node_labels, reader->error);
	return !reader->scan->failed;
}

static bool read_hold(struct job_reader *reader)
{
	return flag(reader, &reader->submit->hold);
}

static bool read_check(struct job_reader *reader)
{
	return flag(reader, &reader->submit->check_possible);
}

/* What goes into the payload: the member's place there is its place here. */
static bool read_payload(struct job_reader *reader)
{
	if (job_payload_member(&reader->payload, reader->name, reader->scan, reader->error))
		return true;
	reader->scan->failed = true;
	return false;
}

/* What the service itself tells about a job: may be sent back, and is not looked at. */
static bool ignore(struct job_reader *reader)
{
	return json_scan_skip(reader->scan, NULL);
}

static const struct field {
	const char *name;
	size_t size;
	bool (*read)(struct job_reader *reader);
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
	FIELD("estimated_runtime_minutes", read_estimate_minutes),
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

static bool refuse_unknown(struct job_reader *reader, struct text key)
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

bool job_fields_read(struct job_reader *reader)
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
			return job_field_fail(reader, "is there twice");
		seen |= UINT64_C(1) << at;
		bool is_null = json_scan_kind(scan) == JSON_KIND_NULL;
		if (is_null ? !json_scan_skip(scan, NULL) : !fields[at].read(reader))
			return false;
	}
	return !scan->failed;
}
