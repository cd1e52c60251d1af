/* engine_test.c - what is asked is answered when it is durable, and found again after a restart */
#include "server/engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* After those. */
#include <cmocka.h>

#include "store/archive.h"

enum { ASKS = 1000 };

/* An engine with a loop, on a database in a directory of its own. What is to be done when
 * it leads is `lead`; the loop stops when nothing is waited for any more. */
struct bench {
	char directory[64], database[96];
	struct loop *loop;
	struct engine *engine;
	struct engine_port *port;
	void (*lead)(struct bench *bench);
	struct engine_request *asks;
	size_t ask_count, answered;
	int64_t events, last_id;
	char kept[64];
};

static void engine_finish(struct bench *bench)
{
	loop_stop(bench->loop, 0);
}

static void on_done(struct engine_request *request)
{
	struct bench *bench = request->context;
	if (request->reply_id > bench->last_id)
		bench->last_id = request->reply_id;
	if (++bench->answered == bench->ask_count)
		engine_finish(bench);
}

static void on_leading(void *context)
{
	struct bench *bench = context;
	bench->lead(bench);
}

static void test_engine_on_failed(void *context, const struct error *error)
{
	(void)context;
	panic("%s", error->text);
}

static void engine_on_kept(void *context, const struct kept *kept)
{
	struct bench *bench = context;
	snprintf(bench->kept, sizeof(bench->kept), "%s/%s=%s", kept->kind, kept->key, kept->value);
}

static void on_event(void *context, const struct event *event)
{
	struct bench *bench = context;
	(void)event;
	bench->events++;
}

static void engine_execute(struct bench *bench, void (*lead)(struct bench *bench))
{
	struct limits limits = limits_default();
	bench->lead = lead;
	bench->answered = 0;
	bench->loop = loop_new(&limits);
	bench->engine = engine_start(&(struct engine_options){
	    .loop = bench->loop,
	    .store = { .database = bench->database, .name = "test" },
	    .kept = engine_on_kept,
	    .leading = on_leading,
	    .failed = test_engine_on_failed,
	    .context = bench,
	});
	bench->port = engine_port(bench->engine);
	bench->port->listener.event = on_event;
	bench->port->listener.context = bench;
	loop_run(bench->loop);
	engine_stop(bench->engine);
	loop_free(bench->loop);
}

static int engine_set_up(void **state)
{
	struct bench *bench = NEW(struct bench);
	snprintf(bench->directory, sizeof(bench->directory), "/tmp/engine-test-XXXXXX");
	assert_non_null(mkdtemp(bench->directory));
	snprintf(bench->database, sizeof(bench->database), "%s/store.db", bench->directory);
	bench->asks = memory_zero(ASKS + 1, sizeof(*bench->asks));
	*state = bench;
	return 0;
}

static int engine_tear_down(void **state)
{
	struct bench *bench = *state;
	char command[96];
	for (size_t i = 0; i <= ASKS; i++)
		engine_request_free(&bench->asks[i]);
	free(bench->asks);
	snprintf(command, sizeof(command), "rm -rf '%s'", bench->directory);
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a name of our own */
	free(bench);
	return 0;
}

static struct engine_request *next_ask(struct bench *bench)
{
	struct engine_request *request = &bench->asks[bench->ask_count++];
	engine_request_reset(request);
	request->done = on_done;
	request->context = bench;
	return request;
}

static void ask_tenant(struct bench *bench)
{
	static const struct kept keep = { "note", "a", "b" };
	struct engine_request *request = next_ask(bench);
	request->has_command = true;
	request->keeps = &keep;
	request->keep_count = 1;
	request->command = (struct command){ .kind = COMMAND_PUT_TENANT,
		                             .tenant = { .name = "lab",
		                                         .limit_gpu = UNLIMITED,
		                                         .limit_cpu = UNLIMITED,
		                                         .limit_host = UNLIMITED,
		                                         .limit_gpu_memory = UNLIMITED,
		                                         .limit_jobs = UNLIMITED,
		                                         .quota_gpu = QUOTA_UNSET,
		                                         .quota_cpu = QUOTA_UNSET,
		                                         .quota_host = QUOTA_UNSET,
		                                         .weight = 1000,
		                                         .max_preemptions = UNLIMITED,
		                                         .queue_max = UNLIMITED,
		                                         .budget_per_month = UNLIMITED } };
	engine_port_send(bench->port, request);
}

static struct engine_request *new_job(struct bench *bench, int64_t tenant_id)
{
	struct engine_request *request = next_ask(bench);
	request->has_command = true;
	request->command = (struct command){ .kind = COMMAND_SUBMIT,
		                             .submit = { .job = { .tenant_id = tenant_id,
		                                                  .name = "train",
		                                                  .payload = "{}",
		                                                  .gpu_models = "",
		                                                  .node_labels = "",
		                                                  .idempotency_key = "" } } };
	return request;
}

static void ask_job(struct bench *bench, int64_t tenant_id)
{
	engine_port_send(bench->port, new_job(bench, tenant_id));
}

/* Several asks together, the last of them for this tenant. */
static void ask_together(struct bench *bench, int count, int64_t last_tenant_id)
{
	struct engine_request *first = new_job(bench, 1), *before = first;
	for (int i = 1; i < count; i++) {
		struct engine_request *request =
		    new_job(bench, i == count - 1 ? last_tenant_id : 1);
		before->together = request;
		before = request;
	}
	engine_port_send(bench->port, first);
}

static void ask_some_together(struct bench *bench)
{
	bench->ask_count = 0;
	ask_together(bench, 10, 77);
	ask_together(bench, 20, 1);
}

static bool look_why(struct engine_request *request, struct sched *sched, struct error *error)
{
	return sched_why(sched, 1, 0, &request->text, error);
}

static bool read_meta(struct engine_request *request, struct store *store, struct error *error)
{
	struct archive_filter filter = { .state = -1 };
	int64_t counts[JOB_STATES];
	(void)request;
	return archive_count(store, &filter, counts, error);
}

static void ask_tenant_alone(struct bench *bench)
{
	bench->ask_count = 0;
	ask_tenant(bench);
}

static void ask_many(struct bench *bench)
{
	bench->ask_count = 0;
	for (int i = 0; i < ASKS - 3; i++)
		ask_job(bench, i % 100 == 99 ? 77 : 1);
	struct engine_request *request = next_ask(bench);
	request->look = look_why;
	engine_port_send(bench->port, request);
	request = next_ask(bench);
	request->read = read_meta;
	engine_port_send(bench->port, request);
}

/* Counts what another engine left. */
static void engine_count_jobs(struct bench *bench)
{
	struct catalogue_filter all = { .state = -1 };
	int64_t archived;
	catalogue_lock(bench->port->catalogue);
	bench->events = catalogue_count(bench->port->catalogue, &all, &archived);
	catalogue_unlock(bench->port->catalogue);
	engine_finish(bench);
}

static void what_was_answered_is_there_after_a_restart(void **state)
{
	struct bench *bench = *state;
	engine_execute(bench, ask_tenant_alone);
	assert_true(bench->asks[0].ok);
	assert_int_equal(bench->asks[0].reply_id, 1);

	engine_execute(bench, ask_many);
	assert_string_equal(bench->kept, "note/a=b");
	int64_t refused = 0;
	for (size_t i = 0; i < ASKS - 3; i++)
		refused += !bench->asks[i].ok;
	assert_int_equal(refused, (ASKS - 3) / 100);
	assert_int_equal(bench->asks[99].error.code, ERROR_NOT_FOUND);
	assert_true(bench->asks[ASKS - 3].ok);
	assert_non_null(strstr(bench->asks[ASKS - 3].text.data, "job"));
	assert_true(bench->asks[ASKS - 2].ok);
	assert_int_equal(bench->last_id, ASKS - 3 - refused);
	assert_true(bench->events >= bench->last_id);

	engine_execute(bench, engine_count_jobs);
	assert_int_equal(bench->events, bench->last_id);
}

static void of_several_together_all_are_taken_or_none(void **state)
{
	struct bench *bench = *state;
	engine_execute(bench, ask_tenant_alone);
	engine_execute(bench, ask_some_together);
	for (int i = 0; i < 10; i++) {
		assert_false(bench->asks[i].ok);
		assert_int_equal(bench->asks[i].error.code, i == 9 ? ERROR_NOT_FOUND : ERROR_NONE);
	}
	for (int i = 10; i < 30; i++) {
		assert_true(bench->asks[i].ok);
		assert_int_equal(bench->asks[i].reply_id, i - 9);
	}
	engine_execute(bench, engine_count_jobs);
	assert_int_equal(bench->events, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_answered_is_there_after_a_restart,
		                                engine_set_up, engine_tear_down),
		cmocka_unit_test_setup_teardown(of_several_together_all_are_taken_or_none,
		                                engine_set_up, engine_tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
