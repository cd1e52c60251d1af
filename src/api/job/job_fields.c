/* job_fields.c - the fields of a job that its table alone cannot read */
#include "api/job/job_fields.h"

#include <stdarg.h>
#include <stdio.h>

#include "api/text/array_range.h"
#include "api/text/ids.h"
#include "api/text/labels.h"

enum { AMOUNT_LEAST_MIB = 1 };

static struct job_reader *job_fields_job_of(struct resource_reader *fields)
{
	return fields->context;
}

bool job_field_fail(struct job_reader *reader, enum job_field field, const char *format, ...)
{
	char sentence[ERROR_TEXT_MAX];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	reader->fields.field = &job_resource.fields[field];
	return resource_fail(&reader->fields, "%s", sentence);
}

/* An id as a number, such as 12. */
static bool read_id_number(struct resource_reader *fields, int64_t *id)
{
	*id = 0;
	if (json_scan_decimal(fields->scan, 0, id) && *id >= 1)
		return true;
	return resource_fail(fields, "must be a whole number from %d to %lld", 1,
	                     (long long)INT64_MAX);
}

static bool job_fields_read_tenant(struct resource_reader *fields)
{
	struct job_reader *reader = job_fields_job_of(fields);
	const struct roster *roster = reader->with->roster;
	const struct roster_tenant *tenant;
	char written[ID_TEXT_MAX];
	struct text name;
	int64_t id;

	if (json_scan_kind(fields->scan) == JSON_KIND_NUMBER) {
		if (!read_id_number(fields, &id))
			return false;
		name = (struct text){ written, id_write(written, ID_TENANT, id) };
		tenant = roster_find(roster, id);
	} else if (!resource_get_text(fields, &name)) {
		return false;
	} else {
		tenant = roster_named(roster, name);
	}
	if (tenant && roster_may_see(roster, reader->with->identity, tenant->id)) {
		reader->job->tenant_id = tenant->id;
		return true;
	}
	fields->scan->failed = true;
	return error_set(fields->error, ERROR_NOT_FOUND,
	                 "tenant_id: there is no tenant %.*s; GET /api/v1/tenants lists them",
	                 (int)(name.size < 100 ? name.size : 100), name.data);
}

static bool read_gpu_count(struct resource_reader *fields)
{
	return resource_get_number(fields, &job_fields_job_of(fields)->gpu_count);
}

/* One amount for each GPU of a task. */
static bool read_uneven(struct resource_reader *fields)
{
	const struct resource_field *field = fields->field;
	int64_t *amounts = arena_alloc(fields->arena, (size_t)field->items * sizeof(*amounts));
	int64_t count = 0;

	json_scan_open(fields->scan, JSON_KIND_ARRAY);
	while (json_scan_element(fields->scan)) {
		if (count == field->items)
			return resource_fail(
			    fields, "has more than %lld GPUs: one task takes at most that many",
			    (long long)field->items);
		bool is_number = json_scan_kind(fields->scan) == JSON_KIND_NUMBER;
		if (!is_number || !json_scan_decimal(fields->scan, 0, &amounts[count]) ||
		    amounts[count] < AMOUNT_LEAST_MIB || amounts[count] > field->most)
			return resource_fail(fields, "must be a whole number from %d to %lld",
			                     AMOUNT_LEAST_MIB, (long long)field->most);
		count++;
	}
	job_fields_job_of(fields)->uneven = (struct rows){ amounts, count };
	return !fields->scan->failed;
}

static bool read_gpu_memory(struct resource_reader *fields)
{
	if (json_scan_kind(fields->scan) == JSON_KIND_ARRAY)
		return read_uneven(fields);
	if (json_scan_kind(fields->scan) == JSON_KIND_TEXT)
		return resource_fail(fields,
		                     "must be a number of MiB, not a text: 20 GiB is 20480");
	return resource_get_number(fields, &job_fields_job_of(fields)->gpu_memory_mib);
}

static bool read_fraction(struct resource_reader *fields)
{
	return resource_get_number(fields, &job_fields_job_of(fields)->fraction);
}

static bool read_gang(struct resource_reader *fields)
{
	return resource_get_flag(fields, &job_fields_job_of(fields)->gang);
}

static bool dependency_id(struct resource_reader *fields, int64_t *id)
{
	struct text value;

	if (json_scan_kind(fields->scan) == JSON_KIND_NUMBER)
		return read_id_number(fields, id);
	if (!resource_get_text(fields, &value))
		return false;
	return id_read(value, ID_JOB, id) ||
	       resource_fail(fields, "must name jobs, such as \"job-12\"");
}

/* `row`: job, condition, and 1 if the whole array of the job is meant. */
static bool dependency(struct resource_reader *fields, int64_t row[3])
{
	struct text key = { NULL, 0 }, condition;

	row[0] = row[2] = 0;
	row[1] = AFTER_SUCCESS;
	if (json_scan_kind(fields->scan) != JSON_KIND_OBJECT)
		return dependency_id(fields, &row[0]);
	json_scan_open(fields->scan, JSON_KIND_OBJECT);
	while (json_scan_member(fields->scan, &key)) {
		bool array = text_is(key, "array");
		if (array || text_is(key, "job") || text_is(key, "job_id")) {
			if (row[0] > 0)
				return resource_fail(fields,
				                     "names more than one job in an element");
			row[2] = array;
			if (!dependency_id(fields, &row[0]))
				return false;
		} else if (!text_is(key, "condition")) {
			return resource_fail(
			    fields,
			    "may have \"job\" or \"array\", and \"condition\", nothing else");
		} else if (!resource_get_text(fields, &condition)) {
			return false;
		} else if (text_is(condition, "any")) {
			row[1] = AFTER_ANY;
		} else if (!text_is(condition, "success")) {
			return resource_fail(fields,
			                     "has a condition that is not \"success\" or \"any\"");
		}
	}
	if (fields->scan->failed)
		return false;
	return row[0] > 0 ||
	       resource_fail(fields, "must name a job in each element, such as \"job-12\"");
}

static bool read_depends(struct resource_reader *fields)
{
	int64_t most = fields->field->items, row[3];
	struct rows *jobs = &job_fields_job_of(fields)->job->depends,
		    *arrays = &job_fields_job_of(fields)->job->depends_arrays;
	int64_t *to = arena_alloc(fields->arena, 5 * (size_t)most * sizeof(*to));

	if (json_scan_kind(fields->scan) != JSON_KIND_ARRAY)
		return resource_fail(fields, "must be an array of jobs, such as [\"job-12\"]");
	*jobs = (struct rows){ to, 0 };
	*arrays = (struct rows){ to + 2 * most, 0 };
	json_scan_open(fields->scan, JSON_KIND_ARRAY);
	while (json_scan_element(fields->scan)) {
		if (jobs->count + arrays->count == most)
			return resource_fail(fields, "names more than %lld jobs", (long long)most);
		if (!dependency(fields, row))
			return false;
		if (row[2])
			memcpy(to + 2 * most + 3 * arrays->count++, row, 3 * sizeof(*row));
		else
			memcpy(to + 2 * jobs->count++, row, 2 * sizeof(*row));
	}
	return !fields->scan->failed;
}

static bool read_array(struct resource_reader *fields)
{
	struct job_reader *reader = job_fields_job_of(fields);
	struct array_range range;
	struct text value;

	if (json_scan_kind(fields->scan) != JSON_KIND_TEXT)
		return resource_fail(
		    fields, "must be a text such as \"1-100\", or \"1-100%%8\" for 8 at a time");
	if (!resource_get_text(fields, &value))
		return false;
	if (!array_range_read(value, fields->arena, &range, fields->error)) {
		fields->scan->failed = true;
		return false;
	}
	reader->submit->array_from = range.from;
	reader->submit->array_to = range.to;
	if (range.indices)
		reader->submit->array_indices = (struct rows){ range.indices, range.count };
	reader->job->array_limit = range.limit;
	return true;
}

static bool read_hold(struct resource_reader *fields)
{
	return resource_get_flag(fields, &job_fields_job_of(fields)->submit->hold);
}

static bool read_check(struct resource_reader *fields)
{
	return resource_get_flag(fields, &job_fields_job_of(fields)->submit->check_possible);
}

static bool job_fields_read_payload(struct resource_reader *fields)
{
	fields->scan->failed = !job_payload_member(&job_fields_job_of(fields)->payload,
	                                           fields->field, fields->scan, fields->error);
	return !fields->scan->failed;
}

/* A node has no directory that a relative path could be meant from. */
static bool read_path(struct resource_reader *fields)
{
	struct json_scan ahead = *fields->scan;
	struct text value = { NULL, 0 };

	if (json_scan_kind(&ahead) == JSON_KIND_TEXT && json_scan_text(&ahead, &value) &&
	    value.size > 0 && value.data[0] != '/')
		return resource_fail(fields, "must be an absolute path, one that begins with '/'");
	return job_fields_read_payload(fields);
}

/* A map that goes into the payload as it is, and is needed as lines too. */
static bool read_domains(struct resource_reader *fields, const char **lines)
{
	struct json_scan ahead = *fields->scan;

	if (!labels_read(&ahead, fields->field, fields->arena, lines, fields->error)) {
		fields->scan->failed = true;
		return false;
	}
	return job_fields_read_payload(fields);
}

static bool read_spread(struct resource_reader *fields)
{
	return read_domains(fields, &job_fields_job_of(fields)->spread);
}

static bool read_apart(struct resource_reader *fields)
{
	return read_domains(fields, &job_fields_job_of(fields)->apart);
}

static bool read_together(struct resource_reader *fields)
{
	return read_domains(fields, &job_fields_job_of(fields)->together);
}

static bool read_group(struct resource_reader *fields)
{
	struct json_scan ahead = *fields->scan;
	struct text value = { NULL, 0 };

	if (json_scan_kind(&ahead) == JSON_KIND_TEXT && json_scan_text(&ahead, &value) &&
	    value.size > 0)
		job_fields_job_of(fields)->group = resource_own(fields, value);
	return job_fields_read_payload(fields);
}

static bool (*const readers[JOB_FIELDS_COUNT])(struct resource_reader *) = {
	[JOB_FIELD_tenant_id] = job_fields_read_tenant,
	[JOB_FIELD_gpu_count] = read_gpu_count,
	[JOB_FIELD_gpu_memory_mb] = read_gpu_memory,
	[JOB_FIELD_gpu_fraction] = read_fraction,
	[JOB_FIELD_working_directory] = read_path,
	[JOB_FIELD_submit_directory] = read_path,
	[JOB_FIELD_checkpoint_path] = read_path,
	[JOB_FIELD_gang_scheduling] = read_gang,
	[JOB_FIELD_depends_on] = read_depends,
	[JOB_FIELD_array] = read_array,
	[JOB_FIELD_group] = read_group,
	[JOB_FIELD_spread] = read_spread,
	[JOB_FIELD_apart] = read_apart,
	[JOB_FIELD_together] = read_together,
	[JOB_FIELD_hold] = read_hold,
	[JOB_FIELD_check] = read_check,
};

bool job_fields_read(struct job_reader *reader)
{
	struct json_scan *scan = reader->fields.scan;

	if (json_scan_kind(scan) != JSON_KIND_OBJECT) {
		scan->failed = true;
		return error_set(reader->fields.error, ERROR_INVALID,
		                 "a job must be a JSON object, {...}, such as "
		                 "{\"tenant_id\":\"tenant-1\",\"command\":[\"true\"]}");
	}
	reader->fields.resource = &job_resource;
	reader->fields.special = readers;
	reader->fields.payload = job_fields_read_payload;
	reader->fields.administrator = reader->with->identity->role == ROLE_ADMIN;
	reader->fields.context = reader;
	reader->fields.record = reader->job;
	return resource_read(&reader->fields);
}
