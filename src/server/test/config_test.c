/* config_test.c - the configuration: what is taken, and what is refused, where and why */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/settings/settings.h"

static struct config *config_read_text(const char *text)
{
	struct config *config = config_new();
	struct error error;
	if (!config_read_yaml(config, "test.yaml", text, strlen(text), &error))
		fail_msg("%s", error.text);
	return config;
}

static void expect_refusal(const char *text, const char *reason)
{
	struct config *config = config_new();
	struct error error = { 0 };
	bool taken = config_read_yaml(config, "test.yaml", text, strlen(text), &error);
	if (taken)
		taken = config_validate(config, &error);
	config_free(config);
	if (taken)
		fail_msg("this was taken: %s", text);
	assert_string_equal(error.text, reason);
}

static void every_kind_of_value_is_read(void **state)
{
	struct config *config =
	    config_read_text("scheduler:\n"
	                     "  thermal_threshold: 80.5\n"
	                     "  enable_preemption: false\n"
	                     "  max_queue_size: 10000\n"
	                     "  policy: pack\n"
	                     "database:\n"
	                     "  host: localhost\n"
	                     "  password: \"gpu123\"\n"
	                     "  sslmode: disable\n"
	                     "api:\n"
	                     "  cors_origins: [https://a.example, 'https://b.example']\n"
	                     "redis:\n");
	struct config_record record = config_default();
	(void)state;
	config_to_record(config, &record);
	assert_int_equal(record.thermal_threshold_c, 81);
	assert_int_equal(record.thermal_resume_c, 76);
	assert_false(record.enable_preemption);
	assert_int_equal(record.queue_max, 10000);
	assert_int_equal(record.policy, POLICY_PACK);
	assert_int_equal(config->api.cors_origins.count, 2);
	assert_string_equal(config->api.cors_origins.at[1], "https://b.example");
	assert_string_equal(config_database(config),
	                    "host='localhost' password='gpu123' sslmode='disable'");
	config_free(config);
}

static void a_policy_may_be_given_by_its_alias(void **state)
{
	struct config *config = config_read_text("scheduler:\n"
	                                         "  policy: binpack\n");
	struct config_record record = config_default();
	(void)state;
	config_to_record(config, &record);
	assert_int_equal(record.policy, POLICY_PACK);
	config_free(config);
	expect_refusal("scheduler:\n  policy: ''\n",
	               "test.yaml:2:11: scheduler.policy is '': it may be one of fragment, pack, "
	               "spread, worth");
}

static void time_sharing_can_be_turned_on(void **state)
{
	struct config *config = config_read_text("scheduler:\n"
	                                         "  policy: worth\n"
	                                         "  time_sharing: attained_service\n"
	                                         "  sharing_wait_ms: 3600000\n"
	                                         "  sharing_turn_ms: 60000\n");
	struct config_record record = config_default();
	struct error error;
	(void)state;
	if (!config_validate(config, &error))
		fail_msg("%s", error.text);
	config_to_record(config, &record);
	assert_int_equal(record.policy, POLICY_WORTH);
	assert_int_equal(record.time_sharing, SHARING_ATTAINED_SERVICE);
	assert_int_equal(record.sharing_wait_ms, 3600000);
	assert_int_equal(record.sharing_turn_ms, 60000);
	config_free(config);
}

/* The bound on waiting goes by age. */
static void time_sharing_without_ageing_is_refused(void **state)
{
	struct config *config = config_read_text("scheduler:\n"
	                                         "  time_sharing: attained_service\n"
	                                         "  ageing_per_minute: 0\n");
	struct error error;
	(void)state;
	assert_false(config_validate(config, &error));
	assert_non_null(strstr(error.text, "time_sharing is on and ageing_per_minute is 0"));
	config_free(config);
}

/* What a setting accepts, the core must not refuse later. */
static void the_core_accepts_every_number_that_a_setting_of_it_may_be(void **state)
{
	(void)state;
	for (size_t i = 0; i < setting_count; i++) {
		const struct setting *setting = &settings[i];
		bool decimal = setting->kind == SETTING_DECIMAL;
		if (strcmp(setting->section, "scheduler") != 0 ||
		    (!decimal && setting->kind != SETTING_INTEGER))
			continue;
		for (int end = 0; end < 2; end++) {
			int64_t value = end == 0 ? setting->least : setting->most;
			struct error error = { 0 };
			char text[128];
			snprintf(text, sizeof(text),
			         "scheduler:\n  thermal_resume: %d\n  %s: %lld\n", 0, setting->key,
			         (long long)(decimal ? value / 1000 : value));
			if (strcmp(setting->key, "thermal_resume") == 0)
				snprintf(text, sizeof(text),
				         "scheduler:\n  thermal_threshold: 200\n  %s: %lld\n",
				         setting->key, (long long)(value / 1000));
			struct config *config = config_read_text(text);
			if (!config_validate(config, &error))
				fail_msg("%s is accepted, and then: %s", text, error.text);
			config_free(config);
		}
	}
}

static void without_settings_all_is_as_the_parts_have_it(void **state)
{
	struct config *config = config_read_text("");
	struct config_record record = config_default(), expected = config_default();
	struct session_policy policy = config_to_policy(config),
			      expected_policy = session_policy_default();
	struct limits limits = config_to_limits(config), expected_limits = limits_default();
	struct error error;
	(void)state;
	if (!config_validate(config, &error))
		fail_msg("%s", error.text);
	config_to_record(config, &record);
	assert_true(record_equal(RECORD_CONFIG, &record, &expected));
	assert_memory_equal(&policy, &expected_policy, sizeof(policy));
	assert_memory_equal(&limits, &expected_limits, sizeof(limits));
	assert_string_equal(config_database(config), "data/scheduler.db");
	assert_true(config_is_loopback(config));
	config_free(config);
}

static void what_is_not_known_is_refused_with_the_nearest_name(void **state)
{
	(void)state;
	expect_refusal("api:\n  http_prot: 8080\n",
	               "test.yaml:2:3: api has no key 'http_prot': is http_port meant?");
	expect_refusal("apis:\n  http_port: 8080\n",
	               "test.yaml:1:1: there is no section 'apis': is api meant?");
	expect_refusal("api:\n  something_else_entirely: 1\n",
	               "test.yaml:2:3: api has no key 'something_else_entirely': "
	               "docs/configuration.md lists all");
	/* Only secrets can be in files. */
	expect_refusal("api:\n  http_port_file: x\n",
	               "test.yaml:2:3: api has no key 'http_port_file': is http_port meant?");
}

static void wrong_types_are_refused_with_their_place(void **state)
{
	(void)state;
	expect_refusal("api:\n  http_port: \"8080\"\n",
	               "test.yaml:2:14: api.http_port is a text here: remove the quotes");
	expect_refusal("api:\n  http_port: 80a\n",
	               "test.yaml:2:14: api.http_port is '80a': write a whole number, without "
	               "quotes or units");
	expect_refusal("api:\n  http_port: 1.5\n",
	               "test.yaml:2:14: api.http_port is '1.5': write a whole number, without "
	               "quotes or units");
	expect_refusal("api:\n  http_port: 70000\n",
	               "test.yaml:2:14: api.http_port is 70000: it may be 0 to 65535");
	expect_refusal("api:\n  http_port: 99999999999999999999999\n",
	               "test.yaml:2:14: api.http_port is '99999999999999999999999': write a "
	               "whole number, without quotes or units");
	expect_refusal("api:\n  http_port: [1]\n",
	               "test.yaml:2:14: api.http_port is one value: write it behind the colon");
	expect_refusal("api:\n  http_port:\n",
	               "test.yaml:2:13: api.http_port has no value: give it one, or remove the "
	               "line");
	expect_refusal("api:\n  enable_tls: yes\n",
	               "test.yaml:2:15: api.enable_tls is 'yes': write true or false");
	expect_refusal("api:\n  cors_origins: https://a.example\n",
	               "test.yaml:2:17: api.cors_origins is a list: write [https://a.example]");
	expect_refusal("api:\n  cors_origins: [[a]]\n",
	               "test.yaml:2:18: the entries of this list are texts");
	expect_refusal("api: 8080\n",
	               "test.yaml:1:6: api is a section: write its keys below it, indented");
	expect_refusal("- api\n",
	               "test.yaml:1:1: a configuration is sections with keys: 'api:', and below "
	               "it '  http_port: 8080'");
	expect_refusal("scheduler:\n  policy: best\n",
	               "test.yaml:2:11: scheduler.policy is 'best': it may be one of fragment, "
	               "pack, spread, worth");
	expect_refusal("scheduler:\n  thermal_threshold: 75.0001\n",
	               "test.yaml:2:22: scheduler.thermal_threshold is '75.0001': write a number "
	               "with up to 3 decimals");
}

static void what_is_given_twice_is_refused(void **state)
{
	(void)state;
	expect_refusal("api:\n  http_port: 1\n  http_port: 2\n",
	               "test.yaml:3:3: api.http_port was given already in line 2: remove one");
	expect_refusal("database:\n  password: a\n  password_file: b\n",
	               "test.yaml:3:3: database.password was given already in line 2: remove one");
	expect_refusal("api:\n  http_port: 1\nredis:\napi:\n  grpc_port: 2\n",
	               "test.yaml:4:1: this section is there twice: put its keys together");
}

static void clever_yaml_is_refused(void **state)
{
	(void)state;
	expect_refusal("api: &a\n  http_port: 1\n",
	               "test.yaml:1:6: anchors and aliases are not taken: write the value out");
	expect_refusal("api:\n  listen: *a\n",
	               "test.yaml:2:11: anchors and aliases are not taken: write the value out");
	expect_refusal("api:\n  http_port: !!int 8080\n",
	               "test.yaml:2:14: tags are not taken: write the value without one");
	expect_refusal("---\napi:\n---\nredis:\n",
	               "test.yaml:3:1: only one document is read: remove what follows '---'");
	expect_refusal("api:\n\thttp_port: 1\n",
	               "test.yaml:2:1: this is not YAML: found character that cannot start any "
	               "token");
}

static void settings_that_contradict_each_other_are_refused(void **state)
{
	(void)state;
	expect_refusal("api:\n  listen: 0.0.0.0\n",
	               "test.yaml:2:3: api.listen is 0.0.0.0, which others can reach: set "
	               "auth.enable to true (and make a token by 'gpu-scheduler token create'), or "
	               "listen on 127.0.0.1; auth.allow_open_network lets everyone in");
	expect_refusal(
	    "api:\n  listen: 0.0.0.0\nauth:\n  enable: true\n",
	    "test.yaml:2:3: api.listen is 0.0.0.0, which others can reach, and tokens "
	    "would pass in the clear: set api.enable_tls to true, or listen on 127.0.0.1 "
	    "behind a proxy; api.allow_plaintext allows it");
	expect_refusal(
	    "api:\n  listen: 0.0.0.0\nauth:\n  allow_open_network: true\n",
	    "test.yaml:2:3: api.listen is 0.0.0.0, which others can reach, and tokens "
	    "would pass in the clear: set api.enable_tls to true, or listen on 127.0.0.1 "
	    "behind a proxy; api.allow_plaintext allows it");
	expect_refusal("api:\n  listen: localhost\n",
	               "test.yaml:2:3: api.listen is 'localhost': write an IPv4 or IPv6 address, "
	               "such as 0.0.0.0");
	expect_refusal("api:\n  enable_tls: true\n",
	               "test.yaml: api.tls_cert_path is missing: api.enable_tls needs it");
	expect_refusal("database:\n  user: me\n",
	               "test.yaml:2:3: database.user is given without database.host: give that "
	               "too, or leave all of it out and the store is one SQLite file");
	expect_refusal("scheduler:\n  thermal_threshold: 70\n  thermal_resume: 90\n",
	               "test.yaml: scheduler: thermal_resume_c is 90: set it to at most "
	               "thermal_threshold_c, 70");
	expect_refusal("api:\n  http_port: 9090\n",
	               "test.yaml:2:3: api.http_port is 9090, and so is another port: give each "
	               "its own");
	expect_refusal("auth:\n  jwt_keys: [main:none:/x]\n",
	               "test.yaml:2:3: auth.jwt_keys has 'main:none:/x': write ID:ALGORITHM:FILE, "
	               "the algorithm HS256, RS256, ES256 or EdDSA");
}

static void the_environment_goes_before_the_file(void **state)
{
	char *const environment[] = { "GPU_SCHEDULER_API_HTTP_PORT=81",
		                      "GPU_SCHEDULER_DATABASE_PASSWORD=it's \\ secret",
		                      "GPU_SCHEDULER_API_CORS_ORIGINS=https://a, https://b",
		                      "GPU_SCHEDULER_URL=http://elsewhere",
		                      "HOME=/root",
		                      NULL };
	struct config *config =
	    config_read_text("api:\n  http_port: 80\ndatabase:\n  host: /run/x\n  port: 5433\n");
	struct error error;
	(void)state;
	if (!config_read_environment(config, environment, &error))
		fail_msg("%s", error.text);
	assert_int_equal(config->api.http_port, 81);
	assert_int_equal(config->api.cors_origins.count, 2);
	assert_string_equal(config_database(config),
	                    "host='/run/x' port='5433' password='it\\'s \\\\ secret'");
	config_free(config);
}

static void variables_that_are_no_settings_are_refused(void **state)
{
	const struct {
		const char *variable, *reason;
	} cases[] = {
		{ "GPU_SCHEDULER_API_HTTP_PROT=81",
		  "GPU_SCHEDULER_API_HTTP_PROT: api has no key 'http_prot': is http_port meant?" },
		{ "GPU_SCHEDULER_API_HTTP_PORT=x",
		  "GPU_SCHEDULER_API_HTTP_PORT: api.http_port is 'x': write a whole number, "
		  "without quotes or units" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct config *config = config_new();
		struct error error = { 0 };
		char *environment[] = { (char *)cases[i].variable, NULL };
		assert_false(config_read_environment(config, environment, &error));
		assert_string_equal(error.text, cases[i].reason);
		config_free(config);
	}
}

static void secrets_can_be_in_files(void **state)
{
	char path[] = "/tmp/config-test-XXXXXX", text[128];
	int file = mkstemp(path);
	struct error error;
	(void)state;
	assert_int_equal(write(file, "from a file\n", 12), 12);
	close(file);
	snprintf(text, sizeof(text), "redis:\n  password_file: %s\n", path);
	struct config *config = config_read_text(text);
	assert_string_equal(config->redis.password, "from a file");
	snprintf(text, sizeof(text), "GPU_SCHEDULER_DATABASE_PASSWORD_FILE=%s", path);
	char *environment[] = { text, NULL };
	assert_true(config_read_environment(config, environment, &error));
	assert_string_equal(config->database.password, "from a file");
	unlink(path);
	assert_false(config_read_environment(config, environment, &error));
	assert_non_null(strstr(error.text, "No such file"));
	config_free(config);
}

static void agents_are_told_what_is_set_for_them(void **state)
{
	struct config *config = config_read_text("agent:\n  heartbeat_interval_ms: 5000\n"
	                                         "  metrics_interval_ms: 7000\n"
	                                         "  container_runtime: docker\n");
	struct agents_advice advice = config_to_advice(config);
	struct error error;
	(void)state;
	assert_true(config_validate(config, &error));
	assert_int_equal(advice.heartbeat_ms, 5000);
	assert_int_equal(advice.metrics_ms, 7000);
	assert_string_equal(advice.container_runtime, "docker");
	config_free(config);
}

static void agents_must_be_heard_of_before_they_count_as_silent(void **state)
{
	(void)state;
	expect_refusal("agent:\n  heartbeat_interval_ms: 5001\n",
	               "test.yaml:2:3: agent.heartbeat_interval_ms is 5001: it may be at most "
	               "half of agent.silent_ms, which is 10000");
	expect_refusal("agent:\n  silent_ms: 60000\n  heartbeat_interval_ms: 15001\n",
	               "test.yaml:3:3: agent.heartbeat_interval_ms is 15001: it may be at most "
	               "half of agent.lease_ms, which is 30000");
	struct config *config = config_read_text("agent:\n  silent_ms: 1000\n");
	assert_int_equal(config_to_advice(config).heartbeat_ms, 500);
	config_free(config);
	expect_refusal(
	    "agent:\n  heartbeat_interval_ms: 99\n",
	    "test.yaml:2:26: agent.heartbeat_interval_ms is 99: it may be 100 to 600000");
	expect_refusal("agent:\n  container_runtime: rkt\n",
	               "test.yaml:2:22: agent.container_runtime is 'rkt': it may be one of auto, "
	               "none, docker, podman, containerd");
}

static void what_has_no_effect_is_told(void **state)
{
	struct config *config = config_read_text("kubernetes:\n  kubeconfig_path: here\n"
	                                         "  namespace: gpu\n");
	struct buffer text = { 0 };
	(void)state;
	config_without_effect(config, &text);
	assert_string_equal(text.data, "kubernetes.namespace");
	buffer_free(&text);
	config_free(config);
}

static void what_needs_a_new_start_is_told(void **state)
{
	struct config *before = config_read_text("");
	struct config *after =
	    config_read_text("api:\n  http_port: 1\n  rate_limit_rps: 5\nredis:\n  host: a\n");
	struct buffer text = { 0 };
	(void)state;
	config_differences(before, after, &text);
	assert_string_equal(text.data, "redis.host, api.http_port");
	buffer_free(&text);
	config_free(before);
	config_free(after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_value_is_read),
		cmocka_unit_test(a_policy_may_be_given_by_its_alias),
		cmocka_unit_test(time_sharing_can_be_turned_on),
		cmocka_unit_test(time_sharing_without_ageing_is_refused),
		cmocka_unit_test(the_core_accepts_every_number_that_a_setting_of_it_may_be),
		cmocka_unit_test(without_settings_all_is_as_the_parts_have_it),
		cmocka_unit_test(what_is_not_known_is_refused_with_the_nearest_name),
		cmocka_unit_test(wrong_types_are_refused_with_their_place),
		cmocka_unit_test(what_is_given_twice_is_refused),
		cmocka_unit_test(clever_yaml_is_refused),
		cmocka_unit_test(settings_that_contradict_each_other_are_refused),
		cmocka_unit_test(the_environment_goes_before_the_file),
		cmocka_unit_test(variables_that_are_no_settings_are_refused),
		cmocka_unit_test(secrets_can_be_in_files),
		cmocka_unit_test(agents_are_told_what_is_set_for_them),
		cmocka_unit_test(agents_must_be_heard_of_before_they_count_as_silent),
		cmocka_unit_test(what_has_no_effect_is_told),
		cmocka_unit_test(what_needs_a_new_start_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
