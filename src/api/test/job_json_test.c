/* job_json_test.c - a job as people send it becomes what the core is asked for */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "api/job/job_json.h"
#include "api/job/job_payload.h"

struct fixture {
	struct arena arena;
	struct buffer buffer;
	struct roster roster;
	struct identity identity;
	struct job_reading reading;
	struct submit_command submit;
	struct error error;
};

static int job_json_setup(void **state)
{
	struct fixture *f = NEW(struct fixture);
	roster_put(&f->roster,
	           &(struct tenant_record){ .id = 1, .name = "lab", .allow_preemption = true });
	roster_put(&f->roster, &(struct tenant_record){ .id = 2, .name = "shop" });
	f->reading = (struct job_reading){ .arena = &f->arena,
		                           .buffer = &f->buffer,
		                           .roster = &f->roster,
		                           .identity = &f->identity };
	*state = f;
	return 0;
}

static int job_json_teardown(void **state)
{
	struct fixture *f = *state;
	roster_free(&f->roster);
	arena_free(&f->arena);
	buffer_free(&f->buffer);
	free(f);
	return 0;
}

static bool read(struct fixture *f, const char *json)
{
	error_clear(&f->error);
	struct json_scan scan = json_scan_of(text_of(json), &f->arena, &f->error);
	return job_json_read(&scan, &f->reading, &f->submit, &f->error) && json_scan_end(&scan);
}

static void accept(struct fixture *f, const char *json)
{
	if (!read(f, json))
		fail_msg("%s: %s", json, f->error.text);
}

static void job_json_refuse(struct fixture *f, const char *json, const char *sentence)
{
	assert_false(read(f, json));
	if (!strstr(f->error.text, sentence))
		fail_msg("'%s' does not say '%s'", f->error.text, sentence);
}

static void the_job_of_the_user_guide_is_read(void **state)
{
	struct fixture *f = *state;
	accept(f, "{\"tenant_id\":\"tenant-1\",\"name\":\"Training Job\",\"priority\":1000,"
	          "\"gpu_count\":4,\"gpu_memory_mb\":40000,\"cpu_cores\":16,\"memory_mb\":64000,"
	          "\"command\":[\"python\",\"train.py\"],\"args\":[\"--epochs\",\"100\"],"
	          "\"image\":\"pytorch:2.0\",\"environment\":{\"CUDA_VISIBLE_DEVICES\":\"0\"},"
	          "\"gang_scheduling\":true,\"max_runtime_minutes\":1440}");
	const struct job_record *job = &f->submit.job;
	assert_int_equal(job->tenant_id, 1);
	assert_string_equal(job->name, "Training Job");
	assert_int_equal(job->gpu_kind, GPU_WHOLE);
	assert_int_equal(job->gpu_count, 4);
	assert_int_equal(job->memory_mib, 40000);
	assert_int_equal(job->cpu_milli, 16000);
	assert_int_equal(job->host_bytes, INT64_C(64000) * 1048576);
	assert_int_equal(job->max_runtime_ms, 86400000);
	assert_int_equal(job->split_gpus, 0);
	assert_true(job->preemptible);
	assert_string_equal(
	    job->payload,
	    "{\"command\":[\"python\",\"train.py\"],\"args\":[\"--epochs\",\"100\"],"
	    "\"image\":\"pytorch:2.0\",\"environment\":{\"CUDA_VISIBLE_DEVICES\":\"0\"}}");
}

static void a_command_that_is_a_string_is_refused_with_the_remedy(void **state)
{
	job_json_refuse(*state, "{\"tenant_id\":1,\"command\":\"python train.py\"}",
	                "command must be an array of texts");
}

static void sharing_is_asked_for_by_fraction_or_by_memory_alone(void **state)
{
	struct fixture *f = *state;
	accept(f, "{\"image\":\"i\",\"tenant_id\":1,\"gpu_fraction\":0.5}");
	assert_int_equal(f->submit.job.gpu_kind, GPU_FRACTION);
	assert_int_equal(f->submit.job.fraction, 500);
	assert_int_equal(f->submit.job.gpu_count, 1);
	accept(f, "{\"image\":\"i\",\"tenant_id\":1,\"gpu_memory_mb\":8000}");
	assert_int_equal(f->submit.job.gpu_kind, GPU_MEMORY);
	assert_int_equal(f->submit.job.memory_mib, 8000);
	accept(f, "{\"image\":\"i\",\"tenant_id\":1}");
	assert_int_equal(f->submit.job.gpu_kind, GPU_NONE);
	accept(f, "{\"image\":\"i\",\"tenant_id\":1,\"gpu_memory_mb\":[8000,4000]}");
	assert_int_equal(f->submit.job.gpu_kind, GPU_UNEVEN);
	assert_int_equal(f->submit.job.gpu_count, 2);
	job_json_refuse(f, "{\"tenant_id\":1,\"gpu_fraction\":0.5,\"gpu_memory_mb\":8000}",
	                "two ways");
	job_json_refuse(f, "{\"tenant_id\":1,\"gpu_fraction\":1.5}", "gpu_fraction must be");
	job_json_refuse(f, "{\"tenant_id\":1,\"name\":\"a\\u009bb\"}",
	                "name has control characters");
}

static void a_gang_larger_than_a_node_is_split(void **state)
{
	struct fixture *f = *state;
	f->reading.node_gpus = 8;
	accept(f, "{\"image\":\"i\",\"tenant_id\":1,\"gpu_count\":20}");
	assert_int_equal(f->submit.job.split_gpus, 20);
	accept(f, "{\"image\":\"i\",\"tenant_id\":1,\"gpu_count\":12,\"gang_scheduling\":true}");
	assert_int_equal(f->submit.job.split_gpus, 12);
	accept(f, "{\"image\":\"i\",\"tenant_id\":1,\"gpu_count\":8,\"gang_scheduling\":true}");
	assert_int_equal(f->submit.job.split_gpus, 0);
	job_json_refuse(f, "{\"tenant_id\":1,\"gpu_count\":20,\"tasks\":2}",
	                "one task takes at most 16");
}

static void tasks_and_their_minimum_are_read(void **state)
{
	struct fixture *f = *state;
	accept(f,
	       "{\"image\":\"i\",\"tenant_id\":1,\"gpu_count\":1,\"tasks\":4,\"min_available\":2}");
	assert_int_equal(f->submit.job.tasks, 4);
	assert_int_equal(f->submit.job.min_available, 2);
	accept(f, "{\"image\":\"i\",\"tenant_id\":1,\"tasks\":4,\"gang_scheduling\":false}");
	assert_int_equal(f->submit.job.min_available, 1);
	job_json_refuse(f, "{\"tenant_id\":1,\"tasks\":2,\"min_available\":3}",
	                "min_available is 3");
}

static void preemptible_defaults_to_what_the_tenant_says(void **state)
{
	struct fixture *f = *state;
	accept(f, "{\"image\":\"i\",\"tenant_id\":\"shop\"}");
	assert_false(f->submit.job.preemptible);
	accept(f, "{\"image\":\"i\",\"tenant_id\":\"shop\",\"preemptible\":true}");
	assert_true(f->submit.job.preemptible);
}

static void another_tenant_is_as_good_as_unknown(void **state)
{
	struct fixture *f = *state;
	f->identity = (struct identity){ .role = ROLE_TENANT, .tenant_id = 1 };
	job_json_refuse(f, "{\"tenant_id\":\"tenant-2\"}", "there is no tenant tenant-2");
	assert_int_equal(f->error.code, ERROR_NOT_FOUND);
	job_json_refuse(f, "{\"tenant_id\":\"tenant-9\"}", "there is no tenant tenant-9");
	accept(f, "{\"image\":\"i\",\"name\":\"mine\"}");
	assert_int_equal(f->submit.job.tenant_id, 1);
}

static void a_missing_tenant_is_named_with_the_remedy(void **state)
{
	job_json_refuse(*state, "{\"name\":\"x\"}", "tenant_id is missing");
}

static void dependencies_are_ids_or_objects(void **state)
{
	struct fixture *f = *state;
	accept(f, "{\"image\":\"i\",\"tenant_id\":1,\"depends_on\":[\"job-3\",4,{\"job\":\"job-5\","
	          "\"condition\":"
	          "\"any\"}]}");
	assert_int_equal(f->submit.job.depends.count, 3);
	assert_int_equal(f->submit.job.depends.at[2], 4);
	assert_int_equal(f->submit.job.depends.at[4], 5);
	assert_int_equal(f->submit.job.depends.at[5], AFTER_ANY);
	job_json_refuse(f, "{\"tenant_id\":1,\"depends_on\":\"job-3\"}",
	                "depends_on must be an array");
	job_json_refuse(f, "{\"tenant_id\":1,\"depends_on\":[{}]}", "must name a job");
	job_json_refuse(f, "{\"tenant_id\":1,\"depends_on\":[{\"job\":1,\"condition\":\"maybe\"}]}",
	                "condition");
}

static void arrays_deadlines_and_runtimes_are_read(void **state)
{
	struct fixture *f = *state;
	accept(f, "{\"image\":\"i\",\"tenant_id\":1,\"array\":\"1-10%2\",\"deadline\":\"2026-01-"
	          "31T12:00:00Z\","
	          "\"max_runtime\":\"1h\",\"estimated_runtime_minutes\":0.5,\"hold\":true,"
	          "\"check\":true}");
	assert_int_equal(f->submit.array_to, 10);
	assert_int_equal(f->submit.job.array_limit, 2);
	assert_int_equal(f->submit.job.deadline_ms, 1769860800000);
	assert_int_equal(f->submit.job.max_runtime_ms, 3600000);
	assert_int_equal(f->submit.job.estimate_ms, 30000);
	assert_true(f->submit.hold);
	assert_true(f->submit.check_possible);
	job_json_refuse(f, "{\"tenant_id\":1,\"deadline\":\"soon\"}", "deadline must be a time");
}

static void models_and_labels_are_put_in_the_cores_form(void **state)
{
	struct fixture *f = *state;
	accept(f, "{\"image\":\"i\",\"tenant_id\":1,\"gpu_model\":[\"H100\",\"A100\"],\"node_"
	          "labels\":{\"z\":\"1\","
	          "\"a\":\"2\"}}");
	assert_string_equal(f->submit.job.gpu_models, "H100|A100");
	assert_string_equal(f->submit.job.node_labels, "a=2\nz=1");
}

static void groups_and_counted_resources_are_put_in_the_cores_form(void **state)
{
	struct fixture *f = *state;

	accept(f,
	       "{\"image\":\"i\",\"tenant_id\":2,\"resources\":{\"rdma\":\"2\"},\"group\":\"web\","
	       "\"spread\":{\"zone\":\"1\"},\"apart\":{\"node\":\"web\"},"
	       "\"together\":{\"label:row\":\"db\"}}");
	assert_string_equal(f->submit.job.resources, "rdma=2");
	assert_string_equal(f->submit.job.marks, "@tenant=2\n@group=web");
	assert_string_equal(f->submit.job.rules, "spread zone 1 0 - @group=web&@tenant=2\n"
	                                         "apart node @group=web&@tenant=2\n"
	                                         "together label:row @group=db&@tenant=2");
	accept(f, "{\"image\":\"i\",\"tenant_id\":2}");
	assert_string_equal(f->submit.job.rules, "");
	assert_string_equal(f->submit.job.marks, "");
	job_json_refuse(f, "{\"image\":\"i\",\"tenant_id\":2,\"spread\":{\"node\":\"1\"}}",
	                "spread needs group");
	job_json_refuse(f, "{\"image\":\"i\",\"tenant_id\":2,\"apart\":{\"node\":\"a&b\"}}",
	                "apart must have names without blanks");
	job_json_refuse(f, "{\"image\":\"i\",\"tenant_id\":2,\"group\":\"a b\"}",
	                "group must be of letters");
}

static void a_share_of_compute_is_not_for_containers(void **state)
{
	struct fixture *f = *state;

	accept(f, "{\"tenant_id\":1,\"image\":\"\",\"command\":[\"a\"],\"gpu_memory_mb\":1000,"
	          "\"gpu_compute\":0.5}");
	assert_int_equal(f->submit.job.compute, 500);
	assert_false(f->submit.takes_turns);
	accept(f, "{\"tenant_id\":1,\"gpu_memory_mb\":1000,\"image\":\"i\"}");
	assert_true(f->submit.takes_turns);
	job_json_refuse(f,
	                "{\"tenant_id\":1,\"gpu_memory_mb\":1000,\"gpu_compute\":0.5,"
	                "\"image\":\"i\"}",
	                "gpu_compute cannot be with image");
}

static void an_unknown_field_is_refused_with_the_one_that_was_meant(void **state)
{
	job_json_refuse(*state, "{\"tenant_id\":1,\"gpu_cout\":1}", "did you mean gpu_count?");
}

static void what_the_service_itself_tells_may_be_sent_back(void **state)
{
	accept(*state, "{\"image\":\"i\",\"tenant_id\":1,\"id\":\"job-3\",\"state\":\"pending\","
	               "\"exit_code\":null}");
}

static void a_field_twice_is_refused(void **state)
{
	job_json_refuse(*state, "{\"tenant_id\":1,\"name\":\"a\",\"name\":\"b\"}",
	                "name is there twice");
	job_json_refuse(*state, "{\"tenant_id\":1,\"environment\":{\"A\":\"1\",\"A\":\"2\"}}",
	                "environment has A twice");
}

static void values_of_the_wrong_kind_name_their_field(void **state)
{
	job_json_refuse(*state, "{\"tenant_id\":1,\"gpu_count\":\"4\"}",
	                "gpu_count must be a whole number");
	job_json_refuse(*state, "{\"tenant_id\":1,\"gpu_count\":1.5}",
	                "gpu_count must be a whole number");
	job_json_refuse(*state, "{\"tenant_id\":1,\"gpu_count\":-1}",
	                "gpu_count must be a whole number");
	job_json_refuse(*state, "{\"tenant_id\":1,\"gpu_memory_mb\":\"20G\"}",
	                "gpu_memory_mb must be a number of MiB, not a text: 20 GiB is 20480");
	job_json_refuse(*state, "{\"tenant_id\":1,\"preemptible\":1}",
	                "preemptible must be true or false");
	job_json_refuse(*state, "{\"tenant_id\":1,\"environment\":{\"A\":1}}",
	                "environment.A must be a text");
	job_json_refuse(*state, "{\"tenant_id\":1,\"command\":[1]}", "command[0] must be a text");
	job_json_refuse(*state, "[]", "a job must be a JSON object");
}

static void secrets_without_a_key_are_refused_with_the_remedy(void **state)
{
	job_json_refuse(
	    *state, "{\"tenant_id\":1,\"image\":\"i\",\"secret_environment\":{\"TOKEN\":\"x\"}}",
	    "no key is configured");
}

static void secrets_are_sealed_for_the_tenant_and_never_shown(void **state)
{
	struct fixture *f = *state;
	struct secret_keys *keys =
	    secret_keys_read("k1:MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", &f->error);
	assert_non_null(keys);
	f->reading.secret_keys = keys;
	accept(f, "{\"tenant_id\":1,\"secret_environment\":{\"TOKEN\":\"hush\"},\"image\":\"i\"}");
	const char *payload = f->submit.job.payload;
	assert_null(strstr(payload, "hush"));
	assert_non_null(strstr(payload, "\"secret_environment\":\"sealed:1:k1:"));
	struct buffer shown = { 0 };
	struct json_writer json = json_writer_to(&shown);
	json_open_object(&json, NULL);
	job_payload_show(&json, payload, &f->arena);
	json_close(&json);
	buffer_text(&shown, "");
	assert_string_equal(shown.data, "{\"image\":\"i\",\"secret_environment\":\"sealed\"}");
	buffer_free(&shown);
	secret_keys_free(keys);
}

static void the_key_of_the_header_counts_where_the_job_has_none(void **state)
{
	struct fixture *f = *state;
	f->reading.key = TEXT("from-header");
	accept(f, "{\"image\":\"i\",\"tenant_id\":1}");
	assert_string_equal(f->submit.job.idempotency_key, "from-header");
	accept(f, "{\"image\":\"i\",\"tenant_id\":1,\"idempotency_key\":\"own\"}");
	assert_string_equal(f->submit.job.idempotency_key, "own");
}

static void a_job_that_runs_nothing_is_refused(void **state)
{
	static const char sentence[] = "a job needs a command, a script or an image";
	struct fixture *f = *state;
	job_json_refuse(f, "{\"tenant_id\":1}", sentence);
	assert_int_equal(f->error.code, ERROR_INVALID);
	job_json_refuse(f, "{\"tenant_id\":1,\"command\":[],\"script\":\"\",\"image\":\"\"}",
	                sentence);
	job_json_refuse(f, "{\"tenant_id\":1,\"args\":[\"x\"],\"labels\":{\"a\":\"b\"}}", sentence);
	accept(f, "{\"tenant_id\":1,\"command\":[\"true\"]}");
	accept(f, "{\"tenant_id\":1,\"script\":\"true\"}");
	accept(f, "{\"tenant_id\":1,\"image\":\"i\"}");
}

static void a_path_that_is_not_absolute_is_refused(void **state)
{
	struct fixture *f = *state;
	job_json_refuse(f, "{\"tenant_id\":1,\"working_directory\":\"data\"}",
	                "working_directory must be an absolute path, one that begins with '/'");
	job_json_refuse(f, "{\"tenant_id\":1,\"checkpoint_path\":\"../c\"}",
	                "checkpoint_path must be an absolute path, one that begins with '/'");
	accept(f, "{\"image\":\"i\",\"tenant_id\":1,\"working_directory\":\"\\u002fdata\","
	          "\"checkpoint_path\":\"\"}");
}

static void a_label_is_found_in_a_payload(void **state)
{
	struct fixture *f = *state;
	accept(f, "{\"tenant_id\":1,\"image\":\"i\",\"labels\":{\"team\":\"a\\\"b\",\"x\":\"1\"}}");
	assert_true(
	    text_is(job_payload_label(f->submit.job.payload, TEXT("team"), &f->arena), "a\"b"));
	assert_null(job_payload_label(f->submit.job.payload, TEXT("y"), &f->arena).data);
}

static void the_user_is_who_signed_in(void **state)
{
	struct fixture *f = *state;
	f->identity = (struct identity){ .role = ROLE_TENANT,
		                         .tenant_id = 1,
		                         .name = "jwt alice",
		                         .credential = { .kind = CREDENTIAL_JWT } };
	accept(f, "{\"image\":\"i\",\"name\":\"a\",\"user\":null}");
	assert_string_equal(f->submit.job.user, "alice");
	f->identity.credential.kind = CREDENTIAL_TOKEN;
	snprintf(f->identity.name, sizeof(f->identity.name), "token t-3f2a");
	accept(f, "{\"image\":\"i\",\"name\":\"a\"}");
	assert_string_equal(f->submit.job.user, "t-3f2a");
	job_json_refuse(f, "{\"user\":\"bob\"}",
	                "user is set by the service: only an administrator may set it");
	assert_int_equal(f->error.code, ERROR_FORBIDDEN);
}

static void an_administrator_submits_for_another_user(void **state)
{
	struct fixture *f = *state;
	f->identity.role = ROLE_ADMIN;
	accept(f, "{\"image\":\"i\",\"tenant_id\":1,\"user\":\"bob\"}");
	assert_string_equal(f->submit.job.user, "bob");
	accept(f, "{\"image\":\"i\",\"tenant_id\":1}");
	assert_string_equal(f->submit.job.user, "");
	job_json_refuse(f, "{\"tenant_id\":1,\"user\":\"b\\nob\"}",
	                "user has control characters in it");
}

static void annotations_are_kept_as_they_are_within_limits(void **state)
{
	struct fixture *f = *state;
	struct buffer many = { 0 };
	accept(f, "{\"image\":\"i\",\"tenant_id\":1,\"annotations\":{\"wandb.ai/run\":\"a\\nb\"}}");
	assert_string_equal(f->submit.job.payload,
	                    "{\"image\":\"i\",\"annotations\":{\"wandb.ai/run\":\"a\\nb\"}}");
	job_json_refuse(f, "{\"tenant_id\":1,\"annotations\":[]}",
	                "annotations must be an object of texts");
	job_json_refuse(f, "{\"tenant_id\":1,\"annotations\":{\"a\":1}}",
	                "annotations.a must be a text");
	buffer_print(&many, "{\"image\":\"i\",\"tenant_id\":1,\"annotations\":{\"a\":\"%4095s\"}}",
	             "");
	accept(f, many.data);
	buffer_clear(&many);
	buffer_print(&many, "{\"image\":\"i\",\"tenant_id\":1,\"annotations\":{\"a\":\"%4096s\"}}",
	             "");
	job_json_refuse(f, many.data,
	                "annotations.a is longer than 4096 bytes, name and value together");
	buffer_clear(&many);
	buffer_print(&many, "{\"image\":\"i\",\"tenant_id\":1,\"annotations\":{\"a\":\"\"");
	for (int i = 0; i < 64; i++)
		buffer_print(&many, ",\"a%d\":\"\"", i);
	buffer_print(&many, "}}");
	job_json_refuse(f, many.data, "annotations has more than 64 members");
	buffer_free(&many);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, job_json_setup, job_json_teardown)
	const struct CMUnitTest tests[] = {
		TEST(the_job_of_the_user_guide_is_read),
		TEST(a_command_that_is_a_string_is_refused_with_the_remedy),
		TEST(sharing_is_asked_for_by_fraction_or_by_memory_alone),
		TEST(a_gang_larger_than_a_node_is_split),
		TEST(tasks_and_their_minimum_are_read),
		TEST(preemptible_defaults_to_what_the_tenant_says),
		TEST(another_tenant_is_as_good_as_unknown),
		TEST(a_missing_tenant_is_named_with_the_remedy),
		TEST(dependencies_are_ids_or_objects),
		TEST(arrays_deadlines_and_runtimes_are_read),
		TEST(models_and_labels_are_put_in_the_cores_form),
		TEST(groups_and_counted_resources_are_put_in_the_cores_form),
		TEST(a_share_of_compute_is_not_for_containers),
		TEST(an_unknown_field_is_refused_with_the_one_that_was_meant),
		TEST(what_the_service_itself_tells_may_be_sent_back),
		TEST(a_field_twice_is_refused),
		TEST(values_of_the_wrong_kind_name_their_field),
		TEST(secrets_without_a_key_are_refused_with_the_remedy),
		TEST(secrets_are_sealed_for_the_tenant_and_never_shown),
		TEST(the_key_of_the_header_counts_where_the_job_has_none),
		TEST(a_job_that_runs_nothing_is_refused),
		TEST(a_path_that_is_not_absolute_is_refused),
		TEST(a_label_is_found_in_a_payload),
		TEST(the_user_is_who_signed_in),
		TEST(an_administrator_submits_for_another_user),
		TEST(annotations_are_kept_as_they_are_within_limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
