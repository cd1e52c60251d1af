/* tenant_json_test.c - tenants and models as people send and read them */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "api/model/model_json.h"
#include "api/tenant/tenant_json.h"

struct fixture {
	struct arena arena;
	struct roster roster;
	struct identity identity;
	struct tenant_record tenant;
	struct model_record model;
	struct error error;
};

static int tenant_json_setup(void **state)
{
	struct fixture *f = NEW(struct fixture);
	roster_put(&f->roster, &(struct tenant_record){ .id = 1, .name = "lab" });
	roster_put(&f->roster,
	           &(struct tenant_record){ .id = 2, .name = "lab-child", .parent_id = 1 });
	roster_put(&f->roster, &(struct tenant_record){ .id = 3, .name = "shop" });
	f->tenant = tenant_json_default();
	f->model = model_json_default();
	*state = f;
	return 0;
}

static int tenant_json_teardown(void **state)
{
	struct fixture *f = *state;
	roster_free(&f->roster);
	arena_free(&f->arena);
	free(f);
	return 0;
}

static void tenant_json_put(struct fixture *f, const char *json)
{
	error_clear(&f->error);
	if (!tenant_json_read(text_of(json), &f->roster, &f->arena, &f->tenant, &f->error))
		fail_msg("%s: %s", json, f->error.text);
}

static void tenant_json_refuse(struct fixture *f, const char *json, const char *sentence)
{
	struct tenant_record tenant = f->tenant;
	error_clear(&f->error);
	assert_false(tenant_json_read(text_of(json), &f->roster, &f->arena, &tenant, &f->error));
	if (!strstr(f->error.text, sentence))
		fail_msg("'%s' does not say '%s'", f->error.text, sentence);
}

static void a_limit_that_is_left_out_is_none(void **state)
{
	struct fixture *f = *state;
	tenant_json_put(f, "{\"name\":\"new\"}");
	assert_true(f->tenant.limit_gpu == UNLIMITED && f->tenant.limit_host == UNLIMITED);
	assert_true(f->tenant.quota_gpu == QUOTA_UNSET);
	assert_int_equal(f->tenant.weight, 1000);
	assert_true(f->tenant.allow_preemption && f->tenant.can_preempt_others);
}

static void units_become_those_of_the_core(void **state)
{
	struct fixture *f = *state;
	tenant_json_put(
	    f,
	    "{\"name\":\"new\",\"max_gpus\":1.5,\"max_memory_mb\":2,\"max_cpu_cores\":4,"
	    "\"cost_per_gpu_hour\":2.5,\"fair_share_weight\":0.25,\"priority_tier\":\"critical\"}");
	assert_int_equal(f->tenant.limit_gpu, 1500);
	assert_int_equal(f->tenant.limit_host, 2 * 1048576);
	assert_int_equal(f->tenant.limit_cpu, 4000);
	assert_int_equal(f->tenant.cost_per_gpu_hour, 2500000);
	assert_int_equal(f->tenant.weight, 250);
	assert_int_equal(f->tenant.priority, 5000);
}

static void a_quota_of_minus_one_has_no_end(void **state)
{
	struct fixture *f = *state;
	tenant_json_put(f, "{\"name\":\"new\",\"quota_gpus\":-1}");
	assert_true(f->tenant.quota_gpu == UNLIMITED);
	tenant_json_put(f, "{\"quota_gpus\":null}");
	assert_true(f->tenant.quota_gpu == QUOTA_UNSET);
	tenant_json_refuse(f, "{\"quota_gpus\":-2}", "quota_gpus");
}

static void what_is_left_out_of_a_change_stays(void **state)
{
	struct fixture *f = *state;
	tenant_json_put(
	    f, "{\"name\":\"new\",\"max_gpus\":4,\"email\":\"a@b.c\",\"parent_id\":\"lab\"}");
	tenant_json_put(f, "{\"max_cpu_cores\":1,\"organization\":\"o\"}");
	assert_int_equal(f->tenant.limit_gpu, 4000);
	assert_int_equal(f->tenant.parent_id, 1);
	assert_string_equal(f->tenant.payload, "{\"email\":\"a@b.c\",\"organization\":\"o\"}");
	tenant_json_put(f, "{\"email\":null,\"max_gpus\":null,\"parent_id\":null}");
	assert_true(f->tenant.limit_gpu == UNLIMITED);
	assert_int_equal(f->tenant.parent_id, 0);
	assert_string_equal(f->tenant.payload, "{\"organization\":\"o\"}");
}

static void where_nothing_is_said_a_tenant_has_no_limit_and_no_quota(void **state)
{
	struct tenant_record tenant = tenant_json_default();
	struct model_record model = model_json_default();
	(void)state;
	assert_true(tenant.limit_gpu == UNLIMITED && tenant.limit_host == UNLIMITED &&
	            tenant.limit_jobs == UNLIMITED && tenant.queue_max == UNLIMITED &&
	            tenant.max_preemptions == UNLIMITED && tenant.budget_per_month == UNLIMITED);
	assert_int_equal(tenant.quota_gpu, QUOTA_UNSET);
	assert_int_equal(tenant.quota_host, QUOTA_UNSET);
	assert_int_equal(tenant.weight, 1000);
	assert_int_equal(tenant.priority, 500);
	assert_true(tenant.allow_preemption && tenant.can_preempt_others);
	assert_int_equal(tenant.cost_per_gpu_hour, 0);
	assert_string_equal(tenant.name, "");
	assert_int_equal(model.priority, 500);
	assert_int_equal(model.runtime, RUNTIME_VLLM);
	assert_string_equal(model.gpu_models, "");
}

static void what_is_wrong_is_named(void **state)
{
	struct fixture *f = *state;
	tenant_json_refuse(f, "{}", "name is missing");
	tenant_json_refuse(f, "{\"name\":\"tenant-7\"}", "looks like an id");
	tenant_json_refuse(f, "{\"name\":\"\\u001b[2J\"}", "name has control characters");
	f->tenant.name = "x";
	tenant_json_refuse(f, "{\"max_gpu\":1}", "max_gpu");
	tenant_json_refuse(f, "{\"max_gpus\":-1}", "max_gpus");
	tenant_json_refuse(f, "{\"max_gpus\":\"4\"}", "max_gpus");
	tenant_json_refuse(f, "{\"priority_tier\":\"top\"}", "priority_tier");
	tenant_json_refuse(f, "{\"parent_id\":\"nobody\"}", "parent_id names no tenant");
	tenant_json_refuse(f, "{\"notify_on\":[\"weather\"]}", "notify_on must be a list");
	tenant_json_refuse(f, "[]", "must be a JSON object");
}

static void secrets_of_notifications_are_not_shown(void **state)
{
	struct fixture *f = *state;
	struct buffer shown = { 0 };
	struct json_writer json = json_writer_to(&shown);
	tenant_json_put(f,
	                "{\"name\":\"new\",\"notify_secret\":\"hush\",\"notify_on\":[\"failed\"]}");
	tenant_json_write(&json, NULL, &f->tenant, &(struct tenant_figures){ 0 }, 0);
	buffer_text(&shown, "");
	assert_null(strstr(shown.data, "hush"));
	assert_non_null(strstr(shown.data, "\"notify_on\":[\"failed\"]"));
	buffer_free(&shown);
}

static bool tenant_json_put_model(struct fixture *f, const char *json)
{
	struct model_reading reading = { .arena = &f->arena,
		                         .roster = &f->roster,
		                         .identity = &f->identity };
	error_clear(&f->error);
	return model_json_read(text_of(json), &reading, &f->model, &f->error);
}

static void a_model_is_read(void **state)
{
	struct fixture *f = *state;
	assert_true(tenant_json_put_model(
	    f, "{\"name\":\"m\",\"tenant_id\":\"lab\",\"gpu_memory_mb\":100,"
	       "\"runtime\":\"ollama\",\"splits\":[1,{\"gpus\":2,\"memory_mb\":60}],"
	       "\"idle_ttl\":90,\"load_timeout\":\"2m\",\"users\":[\"shop\"],"
	       "\"gpu_model\":[\"A\",\"B\"],\"args\":[\"-x\"],\"node_labels\":{\"a\":\"b\"}}"));
	assert_int_equal(f->model.tenant_id, 1);
	assert_int_equal(f->model.runtime, RUNTIME_OLLAMA);
	assert_int_equal(f->model.splits.count, 2);
	assert_int_equal(f->model.splits.at[3], 60);
	assert_int_equal(f->model.idle_ttl_ms, 90000);
	assert_int_equal(f->model.load_timeout_ms, 120000);
	assert_int_equal(f->model.users.at[0], 3);
	assert_string_equal(f->model.gpu_models, "A|B");
	assert_string_equal(f->model.node_labels, "a=b");
	assert_string_equal(f->model.payload, "{\"args\":[\"-x\"]}");
}

static void the_words_of_a_models_command_become_a_line_for_the_shell(void **state)
{
	struct fixture *f = *state;
	assert_true(tenant_json_put_model(
	    f, "{\"name\":\"m\",\"tenant_id\":1,\"gpu_memory_mb\":1,"
	       "\"runtime\":\"custom\",\"command\":[\"serve\",\"it's $HOME\",\"\","
	       "\"--port={port}\",\"{path}{\",\"{a b}\"]}"));
	assert_string_equal(f->model.command,
	                    "exec 'serve' 'it'\\''s $HOME' '' '--port='{port} {path}'{' '{a b}'");
}

static void a_model_that_is_wrong_is_refused_with_the_field(void **state)
{
	struct fixture *f = *state;
	assert_false(tenant_json_put_model(f, "{\"name\":\"m\",\"tenant_id\":1}"));
	assert_non_null(strstr(f->error.text, "gpu_memory_mb is missing"));
	assert_false(tenant_json_put_model(
	    f, "{\"name\":\"m\",\"tenant_id\":1,\"gpu_memory_mb\":1,\"args\":\"x\"}"));
	assert_non_null(strstr(f->error.text, "args must be an array"));
	f->identity = (struct identity){ .role = ROLE_TENANT, .tenant_id = 3 };
	assert_false(
	    tenant_json_put_model(f, "{\"name\":\"m\",\"tenant_id\":1,\"gpu_memory_mb\":1}"));
	assert_non_null(strstr(f->error.text, "tenant_id names no tenant"));
}

static void a_tenant_sees_itself_and_those_below(void **state)
{
	struct fixture *f = *state;
	struct identity lab = { .role = ROLE_TENANT, .tenant_id = 1 };
	struct identity child = { .role = ROLE_VIEWER, .tenant_id = 2 };
	struct identity all = { .role = ROLE_VIEWER }, nobody = { .role = ROLE_TENANT };
	struct identity agent = { .role = ROLE_AGENT };
	assert_true(roster_may_see(&f->roster, &lab, 1));
	assert_true(roster_may_see(&f->roster, &lab, 2));
	assert_false(roster_may_see(&f->roster, &lab, 3));
	assert_false(roster_may_see(&f->roster, &child, 1));
	assert_true(roster_may_see(&f->roster, &all, 3));
	assert_false(roster_may_see(&f->roster, &nobody, 1));
	assert_false(roster_may_see(&f->roster, &agent, 1));
}

static void a_tenant_is_found_by_id_number_or_name(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(roster_named(&f->roster, TEXT("tenant-3"))->id, 3);
	assert_int_equal(roster_named(&f->roster, TEXT("3"))->id, 3);
	assert_int_equal(roster_named(&f->roster, TEXT("shop"))->id, 3);
	assert_null(roster_named(&f->roster, TEXT("")));
	assert_null(roster_named(&f->roster, TEXT("tenant-9")));
	roster_put(&f->roster, &(struct tenant_record){ .id = 3, .name = "store" });
	assert_null(roster_named(&f->roster, TEXT("shop")));
	roster_remove(&f->roster, 3);
	assert_null(roster_named(&f->roster, TEXT("store")));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, tenant_json_setup, tenant_json_teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_limit_that_is_left_out_is_none),
		TEST(units_become_those_of_the_core),
		TEST(a_quota_of_minus_one_has_no_end),
		TEST(what_is_left_out_of_a_change_stays),
		TEST(where_nothing_is_said_a_tenant_has_no_limit_and_no_quota),
		TEST(what_is_wrong_is_named),
		TEST(secrets_of_notifications_are_not_shown),
		TEST(a_model_is_read),
		TEST(the_words_of_a_models_command_become_a_line_for_the_shell),
		TEST(a_model_that_is_wrong_is_refused_with_the_field),
		TEST(a_tenant_sees_itself_and_those_below),
		TEST(a_tenant_is_found_by_id_number_or_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
