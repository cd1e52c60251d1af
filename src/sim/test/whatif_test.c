/* whatif_test.c - what is asked, and answers from a small scheduler that is stored */
#include <fcntl.h>
#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/sched.h"
#include "sim/whatif/whatif.h"
#include "store/store.h"

#define HOUR_MS (INT64_C(3600) * 1000)

/* A scheduler with one node of four GPUs, all of them taken by one job of which
 * nobody knows what it takes, and one job of two GPUs that waits. */
struct lab {
	char directory[64], path[96];
	struct sched *sched;
	struct store *store;
	struct batch *batch;
	int64_t tenant_id;
};

static int64_t whatif_apply(struct lab *lab, struct command command)
{
	struct effects effects = { 0 };
	struct error error = { 0 };

	command.now_ms = 1000000;
	if (!sched_apply(lab->sched, &command, &effects, &error))
		fail_msg("%s", error.text);
	batch_add(lab->batch, &command, &effects, NULL);
	int64_t reply_id = effects.reply_id;
	effects_free(&effects);
	return reply_id;
}

static void whatif_add_job(struct lab *lab, int32_t gpus)
{
	struct command command = { .kind = COMMAND_SUBMIT };

	command.submit.job = (struct job_record){ .tenant_id = lab->tenant_id,
		                                  .name = "train",
		                                  .payload = "",
		                                  .gpu_models = "",
		                                  .node_labels = "",
		                                  .idempotency_key = "",
		                                  .gpu_kind = GPU_WHOLE,
		                                  .gpu_count = gpus };
	whatif_apply(lab, command);
}

static void whatif_fill(struct lab *lab)
{
	struct device devices[4];
	static const char *const uuids[] = { "gpu-0", "gpu-1", "gpu-2", "gpu-3" };
	struct command node = { .kind = COMMAND_NODE_REPORT };
	struct command tenant = { .kind = COMMAND_PUT_TENANT };

	for (int i = 0; i < 4; i++)
		devices[i] = (struct device){ .uuid = uuids[i],
			                      .model = "H100",
			                      .mig_parent = "",
			                      .place = i,
			                      .capacity_mib = 81920,
			                      .healthy = true };
	node.report = (struct node_report_command){ .name = "node-1",
		                                    .boot = "boot",
		                                    .zone = "",
		                                    .rack = "",
		                                    .labels = "",
		                                    .cpu_milli = 64000,
		                                    .host_bytes = INT64_C(1) << 40,
		                                    .devices = devices,
		                                    .device_count = 4,
		                                    .snapshot = true };
	whatif_apply(lab, node);
	tenant.tenant = (struct tenant_record){ .name = "lab",
		                                .limit_gpu = UNLIMITED,
		                                .limit_cpu = UNLIMITED,
		                                .limit_host = UNLIMITED,
		                                .limit_gpu_memory = UNLIMITED,
		                                .limit_jobs = UNLIMITED,
		                                .quota_gpu = UNLIMITED,
		                                .quota_cpu = UNLIMITED,
		                                .quota_host = UNLIMITED,
		                                .weight = 1000,
		                                .max_preemptions = UNLIMITED,
		                                .queue_max = UNLIMITED,
		                                .budget_per_month = UNLIMITED };
	lab->tenant_id = whatif_apply(lab, tenant);
	whatif_add_job(lab, 4);
	whatif_apply(lab, (struct command){ .kind = COMMAND_PASS, .units = 100 });
	whatif_add_job(lab, 2);
}

static int whatif_lab_begin(void **state)
{
	struct lab *lab = NEW(struct lab);
	struct error error = { 0 };

	strcpy(lab->directory, "/tmp/whatif-XXXXXX");
	assert_non_null(mkdtemp(lab->directory));
	snprintf(lab->path, sizeof(lab->path), "%s/state.db", lab->directory);
	lab->sched = sched_new();
	lab->store = store_new(&(struct store_options){ .database = lab->path, .name = "a" });
	if (store_lead(lab->store, &error) != STORE_DONE)
		fail_msg("%s", error.text);
	lab->batch = batch_new(store_schema(lab->store));
	whatif_fill(lab);
	if (store_commit(lab->store, lab->batch, &error) != STORE_DONE)
		fail_msg("%s", error.text);
	*state = lab;
	return 0;
}

static int lab_end(void **state)
{
	struct lab *lab = *state;
	static const char *const endings[] = { "", "-wal", "-shm" };
	char path[128];

	batch_free(lab->batch);
	store_free(lab->store);
	sched_free(lab->sched);
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s%s", lab->path, endings[i]);
		unlink(path);
	}
	rmdir(lab->directory);
	free(lab);
	return 0;
}

static struct whatif_result whatif_ask(const struct lab *lab, const char *job_text,
                                       const char *nodes_text)
{
	struct whatif_options options = { .state = lab->path,
		                          .unknown_ms = HOUR_MS,
		                          .horizon_ms = 24 * HOUR_MS };
	struct whatif_nodes nodes;
	struct whatif_job job = { 0 };
	struct whatif_result result;
	struct error error = { 0 };

	if (nodes_text && !whatif_read_nodes(nodes_text, &nodes, &error))
		fail_msg("%s", error.text);
	if (job_text && !whatif_read_job(job_text, &job, &error))
		fail_msg("%s", error.text);
	options.job = job_text ? &job : NULL;
	if (!whatif_run(&options, nodes_text ? &nodes : NULL, &result, &error))
		fail_msg("%s", error.text);
	arena_free(&job.arena);
	return result;
}

static void a_job_starts_when_what_runs_is_expected_to_end(void **state)
{
	struct whatif_result result = whatif_ask(*state, "gpus=2", NULL);

	assert_int_equal(result.running + result.waiting, 1); /* the first is only placed yet */
	assert_string_equal(result.refusal, "");
	assert_int_equal(result.start_ms, result.now_ms + HOUR_MS);
	assert_string_equal(result.where, "node-1");
	assert_int_equal(result.started, 1);
	assert_int_equal(result.wait_ms, HOUR_MS);
	assert_true(result.guessed > 0);
}

static void with_more_nodes_it_starts_at_once(void **state)
{
	struct whatif_result result =
	    whatif_ask(*state, "{\"gpus\": 8, \"tenant\": \"lab\"}", "1x8xH100:80G");

	assert_string_equal(result.refusal, "");
	assert_int_equal(result.wait_ms, 0);
	assert_true(result.start_ms >= result.now_ms);
	assert_string_equal(result.where, "whatif-1");
	result = whatif_ask(*state, "gpus=6", "1x8xH100:80G");
	assert_int_equal(result.start_ms, result.now_ms);
	assert_int_equal(result.started, 1);
	assert_int_equal(result.wait_ms, 0);
}

static void what_could_never_run_is_refused_with_the_reason(void **state)
{
	struct whatif_result result = whatif_ask(*state, "gpus=8", NULL);

	assert_non_null(strstr(result.refusal, "8 GPUs"));
	assert_int_equal(result.start_ms, -1);
	result = whatif_ask(*state, "gpus=1,tenant=nobody", NULL);
	assert_string_equal(result.refusal, "there is no tenant nobody");
}

static void add_ms(void *context, int64_t ms)
{
	int64_t *passed_ms = context;

	assert_true(ms > 0);
	*passed_ms += ms;
}

static void who_watches_is_told_of_the_whole_horizon(void **state)
{
	const struct lab *lab = *state;
	int64_t passed_ms = 0;
	struct whatif_options options = { .state = lab->path,
		                          .unknown_ms = HOUR_MS,
		                          .horizon_ms = 24 * HOUR_MS,
		                          .tick = add_ms,
		                          .context = &passed_ms };
	struct whatif_result result;
	struct error error = { 0 };

	assert_true(whatif_run(&options, NULL, &result, &error));
	assert_int_equal(passed_ms, options.horizon_ms);
}

/* What the command prints to a terminal as standard error, as text. */
static void print_to_terminal(const struct lab *lab, char *text, size_t size)
{
	char *arguments[] = { "whatif", "--state", (char *)lab->path, "--json", NULL };
	int terminal, side, quiet = open("/dev/null", O_WRONLY);
	int kept_out = dup(STDOUT_FILENO), kept_error = dup(STDERR_FILENO);

	assert_int_equal(openpty(&terminal, &side, NULL, NULL, NULL), 0);
	fflush(stdout);
	dup2(quiet, STDOUT_FILENO);
	dup2(side, STDERR_FILENO);
	int status = whatif_main(4, arguments);
	fflush(stdout);
	dup2(kept_out, STDOUT_FILENO);
	dup2(kept_error, STDERR_FILENO);
	close(side); /* so that reading ends with what was written */
	size_t used = 0;
	ssize_t got;
	while (used < size - 1 && (got = read(terminal, text + used, size - 1 - used)) > 0)
		used += (size_t)got;
	text[used] = '\0';
	close(quiet);
	close(kept_out);
	close(kept_error);
	close(terminal);
	assert_int_equal(status, 0);
}

static void on_a_terminal_a_bar_shows_how_far_it_is_and_goes_away(void **state)
{
	char text[4096];

	print_to_terminal(*state, text, sizeof(text));
	assert_non_null(strstr(text, "whatif [########################################] 100%"));
	assert_non_null(strstr(text, "\r\033[K"));
}

static void asking_changes_nothing(void **state)
{
	struct whatif_result first = whatif_ask(*state, "gpus=1", NULL),
			     second = whatif_ask(*state, "gpus=1", NULL);

	assert_memory_equal(&first, &second, sizeof(first));
}

static void nodes_are_written_as_their_number_gpus_model_and_memory(void **state)
{
	static const char *const wrong[] = { "",
		                             "2",
		                             "2x8",
		                             "2x8xH100",
		                             "0x8xH100:80G",
		                             "2x65xH100:80G",
		                             "2x8xH100:0G",
		                             "2x8xH100:80",
		                             "2x8xH100:80Gx" };
	struct whatif_nodes nodes;
	struct error error = { 0 };

	(void)state;
	assert_true(whatif_read_nodes("2x8xH100:80G", &nodes, &error));
	assert_int_equal(nodes.count, 2);
	assert_int_equal(nodes.gpus, 8);
	assert_string_equal(nodes.model, "H100");
	assert_int_equal(nodes.memory_mib, 81920);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(whatif_read_nodes(wrong[i], &nodes, &error));
}

static void jobs_are_written_as_pairs_or_as_json(void **state)
{
	static const char *const wrong[] = {
		"gpus", "gpus=many", "=3", "colour=red", "{", "gpus=-1"
	};
	struct whatif_job job;
	struct error error = { 0 };

	(void)state;
	assert_true(whatif_read_job("gpus=2,memory_gib=20.5,tasks=3,duration_s=60,gpu_model=A100",
	                            &job, &error));
	assert_int_equal(job.submit.job.gpu_kind, GPU_MEMORY);
	assert_int_equal(job.submit.job.memory_mib, 20992);
	assert_int_equal(job.submit.job.tasks, 3);
	assert_int_equal(job.duration_ms, 60000);
	assert_string_equal(job.submit.job.gpu_models, "A100");
	arena_free(&job.arena);
	assert_true(whatif_read_job("{\"fraction\": 0.5}", &job, &error));
	assert_int_equal(job.submit.job.gpu_kind, GPU_FRACTION);
	assert_int_equal(job.submit.job.fraction, 500);
	arena_free(&job.arena);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		error_clear(&error);
		assert_false(whatif_read_job(wrong[i], &job, &error));
		assert_true(error.code != ERROR_NONE);
		arena_free(&job.arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_job_starts_when_what_runs_is_expected_to_end,
		                                whatif_lab_begin, lab_end),
		cmocka_unit_test_setup_teardown(with_more_nodes_it_starts_at_once, whatif_lab_begin,
		                                lab_end),
		cmocka_unit_test_setup_teardown(what_could_never_run_is_refused_with_the_reason,
		                                whatif_lab_begin, lab_end),
		cmocka_unit_test_setup_teardown(who_watches_is_told_of_the_whole_horizon,
		                                whatif_lab_begin, lab_end),
		cmocka_unit_test_setup_teardown(
		    on_a_terminal_a_bar_shows_how_far_it_is_and_goes_away, whatif_lab_begin,
		    lab_end),
		cmocka_unit_test_setup_teardown(asking_changes_nothing, whatif_lab_begin, lab_end),
		cmocka_unit_test(nodes_are_written_as_their_number_gpus_model_and_memory),
		cmocka_unit_test(jobs_are_written_as_pairs_or_as_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
