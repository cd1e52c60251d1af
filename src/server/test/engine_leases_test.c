/* engine_leases_test.c - requests to models and reads are answered without a transaction */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
/* After those. */
#include <cmocka.h>

#include "server/engine.h"

enum { CYCLES = 300, JOBS = 50 };

/* One warm slot, and one client that takes a place in it, renews it, looks at the core and gives
 * the place back, again and again. Each step is asked for when the one before was answered. */
struct lab {
	char directory[64], database[96], journal_directory[96];
	struct journal_options journal;
	bool has_journal;
	struct loop *loop;
	struct engine *engine;
	struct engine_port *port;
	struct engine_request request, jobs[JOBS], report;
	void (*warm)(struct lab *lab); /* when the slot is ready */
	bool is_warm;
	int64_t request_id, slot_id;
	int step, cycles, granted;
	int64_t batches, commits; /* of the writer: before, and during the cycles */
	int64_t began_ms, took_ms;
	int answered_jobs, jobs_before_lease;
	struct journal_count {
		int64_t requests, renewals, ends, missing;
	} journaled;
};

static int64_t clock_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static struct writer_health writer_of(struct lab *lab)
{
	struct engine_health health;
	lab->port->health(lab->port, &health);
	return health.writer;
}

static void must(const struct engine_request *request)
{
	if (!request->ok)
		panic("%s", request->error.text);
}

static void lab_ask(struct lab *lab, struct command command,
                    void (*done)(struct engine_request *request))
{
	engine_request_reset(&lab->request);
	lab->request.command = command;
	lab->request.has_command = true;
	lab->request.context = lab;
	lab->request.done = done;
	engine_port_send(lab->port, &lab->request);
}

static struct command request_command(const struct lab *lab, enum command_kind kind)
{
	struct command command = { .kind = kind };
	if (kind == COMMAND_REQUEST_DONE)
		command.done.request_id = lab->request_id;
	else
		command.request = (struct request_command){ .request_id = lab->request_id,
			                                    .model_id = 1,
			                                    .lease_ms = 600000 };
	return command;
}

static bool engine_leases_look(struct engine_request *request, struct sched *sched,
                               struct error *error)
{
	return sched_why_model(sched, 1, 0, &request->text, error);
}

static void on_step(struct engine_request *request);

static void lab_step(struct lab *lab)
{
	static const enum command_kind kinds[] = { COMMAND_REQUEST, COMMAND_REQUEST_RENEW,
		                                   COMMAND_REQUEST_DONE };
	if (lab->step == 0)
		lab->request_id++;
	if (lab->step < 3) {
		lab_ask(lab, request_command(lab, kinds[lab->step]), on_step);
		return;
	}
	engine_request_reset(&lab->request);
	lab->request.look = engine_leases_look;
	lab->request.context = lab;
	lab->request.done = on_step;
	engine_port_send(lab->port, &lab->request);
}

static void on_step(struct engine_request *request)
{
	struct lab *lab = request->context;
	must(request);
	lab->step = (lab->step + 1) % 4;
	if (lab->step == 0 && ++lab->cycles == CYCLES) {
		lab->took_ms = clock_ms() - lab->began_ms;
		lab->commits = writer_of(lab).batches - lab->batches;
		loop_stop(lab->loop, 0);
		return;
	}
	lab_step(lab);
}

static void begin_cycles(struct lab *lab)
{
	lab->began_ms = clock_ms();
	lab->batches = writer_of(lab).batches;
	lab->step = 0;
	lab_step(lab);
}

static void on_job(struct engine_request *request)
{
	struct lab *lab = request->context;
	must(request);
	lab->answered_jobs++;
}

static void on_lease_behind_jobs(struct engine_request *request)
{
	struct lab *lab = request->context;
	must(request);
	lab->jobs_before_lease = lab->answered_jobs;
	loop_stop(lab->loop, 0);
}

static void ask_behind_jobs(struct lab *lab)
{
	for (int i = 0; i < JOBS; i++) {
		struct engine_request *request = &lab->jobs[i];
		request->has_command = true;
		request->context = lab;
		request->done = on_job;
		request->command =
		    (struct command){ .kind = COMMAND_SUBMIT,
			              .submit = { .job = { .tenant_id = 1,
			                                   .name = "train",
			                                   .payload = "{}",
			                                   .gpu_models = "",
			                                   .node_labels = "",
			                                   .idempotency_key = "" } } };
		engine_port_send(lab->port, request);
	}
	lab->request_id++;
	lab_ask(lab, request_command(lab, COMMAND_REQUEST), on_lease_behind_jobs);
}

/* Getting a warm slot. */

static void on_given_back(struct engine_request *request)
{
	struct lab *lab = request->context;
	must(request);
	lab->is_warm = true;
	lab->granted = 0;
	lab->warm(lab);
}

static void on_route(void *context, const struct route_effect *route)
{
	struct lab *lab = context;
	if (route->outcome != ROUTE_GRANTED)
		return;
	lab->granted++;
	if (!lab->is_warm)
		lab_ask(lab, request_command(lab, COMMAND_REQUEST_DONE), on_given_back);
}

static void on_reported(struct engine_request *request)
{
	must(request);
}

static void on_loading(struct engine_request *request)
{
	struct lab *lab = request->context;
	must(request);
	engine_request_reset(request);
	request->has_command = true;
	request->context = lab;
	request->done = on_reported;
	request->command.kind = COMMAND_SLOT_READY;
	request->command.slot.reservation_id = lab->slot_id;
	request->command.slot.address = "http://node:8000";
	request->command.slot.message = "";
	engine_port_send(lab->port, request);
}

static void on_order(void *context, const struct effect *effect)
{
	struct lab *lab = context;
	struct engine_request *request = &lab->report;
	if (effect->kind != EFFECT_LOAD)
		return;
	lab->slot_id = effect->load.reservation_id;
	request->has_command = true;
	request->context = lab;
	request->done = on_loading;
	request->command.kind = COMMAND_SLOT_LOADING;
	request->command.slot.reservation_id = lab->slot_id;
	engine_port_send(lab->port, request);
}

static void on_asked(struct engine_request *request)
{
	must(request);
}

static void on_model(struct engine_request *request)
{
	struct lab *lab = request->context;
	must(request);
	lab->request_id = 1;
	lab_ask(lab, request_command(lab, COMMAND_REQUEST), on_asked);
}

static void on_node(struct engine_request *request)
{
	struct lab *lab = request->context;
	struct command command = { .kind = COMMAND_PUT_MODEL };
	must(request);
	command.model.administrator = true;
	command.model.model = (struct model_record){ .tenant_id = 1,
		                                     .name = "tiny",
		                                     .runtime = RUNTIME_VLLM,
		                                     .command = "",
		                                     .payload = "{}",
		                                     .memory_mib = 1000,
		                                     .kv_cache = "",
		                                     .gpu_models = "",
		                                     .node_labels = "",
		                                     .message = "" };
	lab_ask(lab, command, on_model);
}

static void on_tenant(struct engine_request *request)
{
	static const struct device device = { .uuid = "GPU-1",
		                              .model = "H100",
		                              .mig_parent = "",
		                              .capacity_mib = 81920,
		                              .healthy = true };
	struct lab *lab = request->context;
	must(request);
	lab_ask(lab,
	        (struct command){ .kind = COMMAND_NODE_REPORT,
	                          .report = { .name = "node",
	                                      .boot = "1",
	                                      .zone = "",
	                                      .rack = "",
	                                      .labels = "",
	                                      .cpu_milli = 64000,
	                                      .host_bytes = INT64_C(1) << 40,
	                                      .devices = &device,
	                                      .device_count = 1,
	                                      .snapshot = true } },
	        on_node);
}

static void on_leading(void *context)
{
	struct lab *lab = context;
	lab_ask(lab,
	        (struct command){ .kind = COMMAND_PUT_TENANT,
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
	                                      .budget_per_month = UNLIMITED } },
	        on_tenant);
}

static void engine_leases_on_failed(void *context, const struct error *error)
{
	(void)context;
	panic("%s", error->text);
}

static void engine_leases_on_kept(void *context, const struct kept *kept)
{
	(void)context;
	(void)kept;
}

static void lab_run(struct lab *lab, void (*warm)(struct lab *lab))
{
	struct limits limits = limits_default();
	lab->warm = warm;
	lab->loop = loop_new(&limits);
	lab->journal.directory = lab->journal_directory;
	lab->engine = engine_start(&(struct engine_options){
	    .loop = lab->loop,
	    .store = { .database = lab->database, .name = "test" },
	    .journal = lab->has_journal ? &lab->journal : NULL,
	    .kept = engine_leases_on_kept,
	    .leading = on_leading,
	    .failed = engine_leases_on_failed,
	    .context = lab,
	});
	lab->port = engine_port(lab->engine);
	lab->port->listener.order = on_order;
	lab->port->listener.route = on_route;
	lab->port->listener.context = lab;
	loop_run(lab->loop);
	engine_stop(lab->engine);
	loop_free(lab->loop);
}

static int engine_leases_set_up(void **state)
{
	struct lab *lab = NEW(struct lab);
	snprintf(lab->directory, sizeof(lab->directory), "/tmp/engine-leases-XXXXXX");
	assert_non_null(mkdtemp(lab->directory));
	snprintf(lab->database, sizeof(lab->database), "%s/store.db", lab->directory);
	snprintf(lab->journal_directory, sizeof(lab->journal_directory), "%s/journal",
	         lab->directory);
	*state = lab;
	return 0;
}

static int engine_leases_tear_down(void **state)
{
	struct lab *lab = *state;
	char command[96];
	engine_request_free(&lab->request);
	engine_request_free(&lab->report);
	for (int i = 0; i < JOBS; i++)
		engine_request_free(&lab->jobs[i]);
	snprintf(command, sizeof(command), "rm -rf '%s'", lab->directory);
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a name of our own */
	free(lab);
	return 0;
}

/* Time that passes is stored once a second, whoever asks for what. */
static int64_t commits_of_time(const struct lab *lab)
{
	return lab->took_ms / 1000 + 2;
}

static void leases_and_looks_need_no_transaction(void **state)
{
	struct lab *lab = *state;
	lab_run(lab, begin_cycles);
	assert_int_equal(lab->granted, CYCLES);
	assert_true(lab->commits <= commits_of_time(lab));
}

static bool count_journaled(void *context, int64_t number, const struct command *command,
                            struct error *error)
{
	struct journal_count *count = context;
	(void)number;
	(void)error;
	count->requests += command->kind == COMMAND_REQUEST;
	count->renewals += command->kind == COMMAND_REQUEST_RENEW;
	count->ends += command->kind == COMMAND_REQUEST_DONE;
	return true;
}

/* Beside what passes, a second's worth of commands is one transaction. */
static void the_journal_has_what_needed_no_transaction(void **state)
{
	struct lab *lab = *state;
	struct error error = { 0 };
	lab->has_journal = true;
	lab_run(lab, begin_cycles);
	assert_true(lab->commits <= 2 * commits_of_time(lab));
	assert_true(journal_read(lab->journal_directory, 0, count_journaled, &lab->journaled,
	                         &lab->journaled.missing, &error));
	assert_int_equal(lab->journaled.requests, CYCLES + 1);
	assert_int_equal(lab->journaled.renewals, CYCLES);
	assert_int_equal(lab->journaled.ends, CYCLES + 1);
	assert_int_equal(lab->journaled.missing, 0);
}

static void a_lease_is_answered_after_the_changes_asked_for_before_it(void **state)
{
	struct lab *lab = *state;
	lab_run(lab, ask_behind_jobs);
	assert_int_equal(lab->jobs_before_lease, JOBS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(leases_and_looks_need_no_transaction,
		                                engine_leases_set_up, engine_leases_tear_down),
		cmocka_unit_test_setup_teardown(the_journal_has_what_needed_no_transaction,
		                                engine_leases_set_up, engine_leases_tear_down),
		cmocka_unit_test_setup_teardown(
		    a_lease_is_answered_after_the_changes_asked_for_before_it, engine_leases_set_up,
		    engine_leases_tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
