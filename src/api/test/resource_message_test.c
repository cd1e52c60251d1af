/* resource_message_test.c - messages of protobuf say what JSON says, by the tables of fields */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/text/protobuf.h"
#include "api/text/resource_message.h"
#include "scheduler.pb-c.h"

struct fixture {
	struct arena arena;
	struct buffer json;
	struct error error;
};

static int resource_message_setup(void **state)
{
	*state = NEW(struct fixture);
	return 0;
}

static int resource_message_teardown(void **state)
{
	struct fixture *f = *state;
	arena_free(&f->arena);
	buffer_free(&f->json);
	free(f);
	return 0;
}

static bool read(struct fixture *f, const Scheduler__SubmitJobRequest *request)
{
	struct json_writer json = json_writer_to(&f->json);
	bool is_read;

	error_clear(&f->error);
	buffer_clear(&f->json);
	is_read = resource_message_read(&job_resource, &request->base, &json, &f->error);
	buffer_bytes(&f->json, "", 1);
	return is_read;
}

static void reads_as(struct fixture *f, const Scheduler__SubmitJobRequest *request,
                     const char *expected)
{
	if (!read(f, request))
		fail_msg("%s", f->error.text);
	assert_string_equal(f->json.data, expected);
}

static void refuses(struct fixture *f, const Scheduler__SubmitJobRequest *request,
                    const char *sentence)
{
	assert_false(read(f, request));
	assert_int_equal(f->error.code, ERROR_INVALID);
	assert_string_equal(f->error.text, sentence);
}

/* Through its bytes, as a client gets it. */
static Scheduler__Job *shown(struct fixture *f, const char *json)
{
	struct json_scan scan = json_scan_of(text_of(json), &f->arena, &f->error);
	ProtobufCMessage *message =
	    resource_message_write(&job_resource, &scheduler__job__descriptor, &scan, &f->arena);

	assert_non_null(message);
	struct text bytes = protobuf_write(message, &f->arena);
	Scheduler__Job *job = protobuf_read(&scheduler__job__descriptor, bytes, &f->arena);
	assert_non_null(job);
	return job;
}

/* What the value of a row is in protobuf. */
static bool type_fits(const struct resource_field *row, const ProtobufCFieldDescriptor *field)
{
	switch (row->kind) {
	case VALUE_INTEGER:
		return field->type == PROTOBUF_C_TYPE_INT32 || field->type == PROTOBUF_C_TYPE_INT64;
	case VALUE_DECIMAL:
		return field->type == PROTOBUF_C_TYPE_DOUBLE ||
		       field->type == PROTOBUF_C_TYPE_INT32;
	case VALUE_FLAG:
		return field->type == PROTOBUF_C_TYPE_BOOL;
	case VALUE_TEXT:
	case VALUE_WORD:
	case VALUE_ID:
	case VALUE_TEXTS:
	case VALUE_WORDS:
		return field->type == PROTOBUF_C_TYPE_STRING;
	default:
		return field->type == PROTOBUF_C_TYPE_MESSAGE ||
		       (row->shown_as && field->type == PROTOBUF_C_TYPE_STRING);
	}
}

static const ProtobufCFieldDescriptor *check_number(const struct resource_field *row,
                                                    const ProtobufCMessageDescriptor *type,
                                                    int number, const char *name)
{
	const ProtobufCFieldDescriptor *field =
	    protobuf_c_message_descriptor_get_field(type, (unsigned)number);

	if (!field)
		fail_msg("%s has no field %d for %s: run scripts/proto-messages", type->name,
		         number, name);
	assert_string_equal(field->name, name);
	if (!type_fits(row, field))
		fail_msg("%s.%s has a type that does not fit", type->name, name);
	return field;
}

/* Returns how many fields a request has. */
static int check_messages(const struct resource *resource,
                          const ProtobufCMessageDescriptor *request,
                          const ProtobufCMessageDescriptor *reply)
{
	int settable = 0;

	for (int i = 0; i < resource->field_count; i++) {
		const struct resource_field *row = &resource->fields[i];
		const ProtobufCFieldDescriptor *field = NULL, *shown_field = NULL;
		if (request && row->proto.request > 0) {
			field = check_number(row, request, row->proto.request, row->name);
			settable++;
		}
		if (request && row->proto.extra > 0)
			check_number(row, request, row->proto.extra, row->proto.extra_name);
		if (row->proto.reply > 0)
			shown_field = check_number(row, reply, row->proto.reply, row->name);
		if (row->nested)
			check_messages(row->nested, field ? field->descriptor : NULL,
			               shown_field->descriptor);
	}
	return settable;
}

static void each_row_has_its_field_in_the_messages(void **state)
{
	(void)state;
	int settable = check_messages(&job_resource, &scheduler__submit_job_request__descriptor,
	                              &scheduler__job__descriptor);
	assert_true(settable >= 36);
	check_messages(&tenant_resource, &scheduler__update_tenant_quota_request__descriptor,
	               &scheduler__tenant__descriptor);
}

static void a_request_reads_as_its_json(void **state)
{
	struct fixture *f = *state;
	Scheduler__SubmitJobRequest request = SCHEDULER__SUBMIT_JOB_REQUEST__INIT;
	char tenant[] = "lab", word[] = "true", key[] = "A", value[] = "1 \"2\"", job[] = "job-7",
	     any[] = "any";
	char *words[] = { word, word };
	Scheduler__SubmitJobRequest__EnvironmentEntry entry =
	    SCHEDULER__SUBMIT_JOB_REQUEST__ENVIRONMENT_ENTRY__INIT;
	Scheduler__SubmitJobRequest__EnvironmentEntry *entries[] = { &entry };
	Scheduler__Dependency dependency = SCHEDULER__DEPENDENCY__INIT;
	Scheduler__Dependency *dependencies[] = { &dependency };
	Google__Protobuf__Duration duration = GOOGLE__PROTOBUF__DURATION__INIT;
	Google__Protobuf__Timestamp time = GOOGLE__PROTOBUF__TIMESTAMP__INIT;

	reads_as(f, &request, "{}");
	request.tenant_id = tenant;
	request.priority = -5;
	request.gpu_fraction = 0.25;
	request.command = words;
	request.n_command = 2;
	entry.key = key;
	entry.value = value;
	request.environment = entries;
	request.n_environment = 1;
	request.gang_scheduling = true;
	duration.seconds = 90;
	duration.nanos = 500000000;
	request.max_runtime = &duration;
	time.seconds = 1900000000;
	time.nanos = 250000000;
	request.deadline = &time;
	dependency.job = job;
	dependency.condition = any;
	request.depends_on = dependencies;
	request.n_depends_on = 1;
	reads_as(f, &request,
	         "{\"tenant_id\":\"lab\",\"priority\":-5,\"gpu_fraction\":0.25,"
	         "\"command\":[\"true\",\"true\"],\"environment\":{\"A\":\"1 \\\"2\\\"\"},"
	         "\"gang_scheduling\":true,\"max_runtime\":\"90500ms\","
	         "\"deadline\":\"2030-03-17T17:46:40.250Z\","
	         "\"depends_on\":[{\"job\":\"job-7\",\"condition\":\"any\"}]}");
}

static void a_field_with_presence_may_be_given_as_zero(void **state)
{
	struct fixture *f = *state;
	Scheduler__SubmitJobRequest request = SCHEDULER__SUBMIT_JOB_REQUEST__INIT;

	request.preemptible_presence_case =
	    SCHEDULER__SUBMIT_JOB_REQUEST__PREEMPTIBLE_PRESENCE_PREEMPTIBLE;
	request.preemptible = false;
	reads_as(f, &request, "{\"preemptible\":false}");
}

static void a_field_has_a_second_form_where_it_was_published_too_narrow(void **state)
{
	struct fixture *f = *state;
	Scheduler__SubmitJobRequest request = SCHEDULER__SUBMIT_JOB_REQUEST__INIT;
	int64_t amounts[] = { 4096, 2048 };

	request.gpu_memory_mb_each = amounts;
	request.n_gpu_memory_mb_each = 2;
	request.cpu_cores_decimal = 1.5;
	reads_as(f, &request, "{\"gpu_memory_mb\":[4096,2048],\"cpu_cores\":1.5}");
	request.cpu_cores = 2;
	refuses(f, &request,
	        "cpu_cores and cpu_cores_decimal are two forms of one field: give one of them");
}

static void values_without_a_form_in_json_are_refused_in_its_words(void **state)
{
	struct fixture *f = *state;
	Scheduler__SubmitJobRequest request = SCHEDULER__SUBMIT_JOB_REQUEST__INIT;
	Google__Protobuf__Duration duration = GOOGLE__PROTOBUF__DURATION__INIT;
	Google__Protobuf__Timestamp time = GOOGLE__PROTOBUF__TIMESTAMP__INIT;

	request.gpu_fraction = strtod("nan", NULL);
	refuses(f, &request, "gpu_fraction must be a number from 0 to 1 with at most 3 decimals");
	request.gpu_fraction = 0;
	request.max_runtime = &duration;
	duration.seconds = -1;
	refuses(f, &request, "max_runtime must be a duration such as \"1h30m\"");
	duration.seconds = INT64_MAX;
	refuses(f, &request, "max_runtime must be a duration such as \"1h30m\"");
	duration.seconds = 1;
	duration.nanos = -1;
	refuses(f, &request, "max_runtime must be a duration such as \"1h30m\"");
	request.max_runtime = NULL;
	request.deadline = &time;
	time.seconds = INT64_MAX;
	refuses(f, &request, "deadline must be a time such as \"2026-01-31T12:00:00Z\" (RFC 3339)");
}

static void an_answer_is_shown_as_its_json(void **state)
{
	struct fixture *f = *state;
	const Scheduler__Job *job = shown(
	    f, "{\"id\":\"job-1\",\"held\":true,\"priority\":-7,\"gpu_memory_mb\":[10,20,30],"
	       "\"gpu_fraction\":0.125,\"command\":[\"a\",\"b\"],\"labels\":{\"x\":\"y\"},"
	       "\"secret_environment\":\"sealed\",\"deadline\":\"2030-03-17T17:46:40.250Z\","
	       "\"depends_on\":[{\"job\":\"job-2\",\"condition\":\"any\"}],\"exit_code\":0,"
	       "\"estimated_wait\":\"1m30s\",\"guard\":{\"limit_mb\":5,\"last_refused_mb\":null},"
	       "\"allocations\":[{\"task\":1,\"gpus\":[{\"uuid\":\"GPU-1\",\"share\":0.5}]}]}");

	assert_string_equal(job->id, "job-1");
	assert_true(job->held);
	assert_int_equal(job->priority, -7);
	assert_int_equal(job->n_gpu_memory_mb, 3);
	assert_int_equal(job->gpu_memory_mb[2], 30);
	assert_int_equal(job->gpu_fraction_presence_case,
	                 SCHEDULER__JOB__GPU_FRACTION_PRESENCE_GPU_FRACTION);
	assert_true(job->gpu_fraction == 0.125);
	assert_string_equal(job->command[1], "b");
	assert_string_equal(job->labels[0]->key, "x");
	assert_string_equal(job->labels[0]->value, "y");
	assert_string_equal(job->secret_environment, "sealed");
	assert_int_equal(job->deadline->seconds, 1900000000);
	assert_int_equal(job->deadline->nanos, 250000000);
	assert_string_equal(job->depends_on[0]->condition, "any");
	assert_int_equal(job->exit_code_presence_case,
	                 SCHEDULER__JOB__EXIT_CODE_PRESENCE_EXIT_CODE);
	assert_int_equal(job->estimated_wait->seconds, 90);
	assert_int_equal(job->guard->limit_mb, 5);
	assert_int_equal(job->guard->last_refused_mb_presence_case,
	                 SCHEDULER__GUARD__LAST_REFUSED_MB_PRESENCE__NOT_SET);
	assert_string_equal(job->allocations[0]->gpus[0]->uuid, "GPU-1");
	assert_true(job->allocations[0]->gpus[0]->share == 0.5);
}

static void what_has_no_field_or_another_kind_is_left_out(void **state)
{
	struct fixture *f = *state;
	const Scheduler__Job *job =
	    shown(f, "{\"unknown\":{\"a\":[1]},\"priority\":\"high\",\"name\":7,\"labels\":[1],"
	             "\"command\":{\"a\":1},\"depends_on\":[\"job-1\"],\"deadline\":\"soon\","
	             "\"id\":\"job-1\"}");

	assert_string_equal(job->id, "job-1");
	assert_int_equal(job->priority, 0);
	assert_int_equal(job->n_labels + job->n_command + job->n_depends_on, 0);
	assert_null(job->deadline);
}

static void a_list_of_any_length_is_shown_whole(void **state)
{
	struct fixture *f = *state;
	struct buffer text = { 0 };

	for (int count = 1; count < 70; count++) {
		buffer_clear(&text);
		buffer_print(&text, "{\"gpu_memory_mb\":[0");
		for (int i = 1; i < count; i++)
			buffer_print(&text, ",%d", i);
		buffer_print(&text, "]}");
		const Scheduler__Job *job = shown(f, text.data);
		assert_int_equal(job->n_gpu_memory_mb, count);
		for (int i = 0; i < count; i++)
			assert_int_equal(job->gpu_memory_mb[i], i);
	}
	buffer_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_row_has_its_field_in_the_messages),
		cmocka_unit_test_setup_teardown(a_request_reads_as_its_json, resource_message_setup,
		                                resource_message_teardown),
		cmocka_unit_test_setup_teardown(a_field_with_presence_may_be_given_as_zero,
		                                resource_message_setup, resource_message_teardown),
		cmocka_unit_test_setup_teardown(
		    a_field_has_a_second_form_where_it_was_published_too_narrow,
		    resource_message_setup, resource_message_teardown),
		cmocka_unit_test_setup_teardown(
		    values_without_a_form_in_json_are_refused_in_its_words, resource_message_setup,
		    resource_message_teardown),
		cmocka_unit_test_setup_teardown(an_answer_is_shown_as_its_json,
		                                resource_message_setup, resource_message_teardown),
		cmocka_unit_test_setup_teardown(what_has_no_field_or_another_kind_is_left_out,
		                                resource_message_setup, resource_message_teardown),
		cmocka_unit_test_setup_teardown(a_list_of_any_length_is_shown_whole,
		                                resource_message_setup, resource_message_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
