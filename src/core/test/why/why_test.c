/* why_test.c - what people are told about a job, and by which arithmetic */
#include "core/test/harness.h"

#include "core/why/why.h"

#define MINUTE INT64_C(60000)

#define assert_says(text, part)                                                                    \
	do {                                                                                       \
		const char *says_ = (text);                                                        \
		if (!strstr(says_, (part)))                                                        \
			fail_msg("'%s' is not in:\n%s", (part), says_);                            \
	} while (0)
#define assert_is_silent(text, part)                                                               \
	do {                                                                                       \
		const char *says_ = (text);                                                        \
		if (strstr(says_, (part)))                                                         \
			fail_msg("'%s' is in:\n%s", (part), says_);                                \
	} while (0)

/* What the tenant is told, valid until the next call. */
static const char *told(struct harness *h, int64_t viewer, int64_t id)
{
	static char text[8192];
	struct buffer buffer = { 0 };

	must(h, sched_why(h->sched, id, viewer, &buffer, &h->error));
	assert_true(buffer.size < sizeof(text));
	memcpy(text, buffer.data, buffer.size + 1);
	buffer_free(&buffer);
	return text;
}

/* What the last decision of this kind says to the viewer; NULL: nothing. */
static const char *explained(struct harness *h, enum decision_kind kind, int64_t viewer)
{
	static char text[8192];
	struct buffer buffer = { 0 };
	int at = h->decision_count - 1;

	while (at >= 0 && h->decisions[at]->kind != (int32_t)kind)
		at--;
	assert_true(at >= 0);
	if (!sched_explain(h->sched, h->decisions[at], viewer, &buffer))
		return NULL;
	assert_true(buffer.size < sizeof(text));
	memcpy(text, buffer.data, buffer.size + 1);
	buffer_free(&buffer);
	return text;
}

/* One GPU of 32,600 MiB with four jobs of 8,000 on it and a fifth that waits. */
struct full {
	struct harness *h;
	int64_t lab, jobs[5];
};

static struct full four_of_five(void)
{
	struct full full = { .h = harness_new() };
	struct device device = device_of("GPU-1", 0, 32600);

	must(full.h, report(full.h, report_of("n1", &device, 1)));
	full.lab = put_tenant(full.h, tenant_named("lab"));
	for (int i = 0; i < 5; i++)
		full.jobs[i] = submit(full.h, memory(full.lab, 8000));
	assert_int_equal(pass(full.h), 4);
	return full;
}

static void the_fifth_is_told_that_600_mib_are_free(void **unused)
{
	struct full full = four_of_five();
	const char *text = told(full.h, full.lab, full.jobs[4]);

	(void)unused;
	assert_says(text, "job-5 waits: no GPU has 8000 MiB free for it\n");
	assert_says(text, "1 GPU: too little memory (the nearest is 7400 MiB short: "
	                  "600 MiB free on GPU-1 of node n1)\n");
	assert_says(text, "it is first in line\n");
	assert_null(strstr(text, "even if they were empty"));
	harness_free(full.h);
}

static void what_no_node_could_take_is_told_so(void **unused)
{
	struct full full = four_of_five();

	(void)unused;
	int64_t two = submit(full.h, whole(full.lab, 2));
	assert_says(told(full.h, full.lab, two),
	            "it can never run on this cluster: asks for 2 "
	            "GPUs on one node, the best node has 1 that are large enough\n");
	harness_free(full.h);
}

static void a_whole_gpu_is_told_what_is_occupied(void **unused)
{
	struct full full = four_of_five();

	(void)unused;
	int64_t all = submit(full.h, whole(full.lab, 1));
	assert_says(told(full.h, 0, all), "waits: no free GPU\n1 GPU: in use (GPU-1 of");
	assert_says(told(full.h, 0, all), "1 job is ahead of it (1 of its tenant)");
	harness_free(full.h);
}

static void whoever_has_what_is_short_is_named(void **unused)
{
	struct harness *h = harness_new();

	(void)unused;
	add_node(h, "n1", 1, 80000);
	int64_t lab = put_tenant(h, tenant_named("lab"));
	int64_t rival = put_tenant(h, tenant_named("rival"));
	submit(h, memory(rival, 20000));
	submit(h, memory(lab, 10000));
	pass(h);
	report_gpu(h, "n1-gpu0", 45000, 40, true);
	int64_t id = submit(h, memory(lab, 8000));
	pass(h);
	assert_says(told(h, 0, id),
	            "n1-gpu0 of node n1 has 80000 MiB: programs that nobody scheduled "
	            "45000 MiB, job-2 10000 MiB, job-1 20000 MiB, free 5000 MiB\n");
	assert_says(told(h, lab, id), "job-2 10000 MiB, another tenant 20000 MiB");
	must(h, cancel(h, 2));
	report_gpu(h, "n1-gpu0", 53000, 40, true);
	assert_says(told(h, lab, id), "job-2 10000 MiB (being freed)");
	harness_free(h);
}

static void a_reason_is_the_check_that_refused(void **unused)
{
	struct harness *h = harness_new();
	struct job_record job;

	(void)unused;
	add_node(h, "n1", 4, 80000);
	int64_t lab = put_tenant(h, tenant_named("lab"));
	submit(h, whole(lab, 1));
	pass(h);
	job = whole(lab, 4);
	int64_t four = submit(h, job);
	job = whole(lab, 1);
	job.gpu_models = "B200";
	int64_t other_model = submit(h, job);
	job = whole(lab, 1);
	job.node_labels = "disk=fast";
	int64_t other_label = submit(h, job);
	job = whole(lab, 1);
	job.cpu_milli = 130500;
	int64_t cpu = submit(h, job);
	int64_t size = submit(h, memory(lab, 90000));
	pass(h);
	assert_says(told(h, 0, four), "no node has 4 free GPUs\n");
	assert_says(told(h, 0, four), "3 GPUs: it fits, but too few such GPUs are on the node (the "
	                              "nearest is 1 GPU short: beside n1-gpu");
	assert_says(told(h, 0, four), "1 GPU: in use (n1-gpu");
	assert_says(told(h, 0, other_model), "4 GPUs: not the requested GPU model\n");
	assert_says(told(h, 0, other_label), "4 GPUs: the node lacks a requested label\n");
	assert_says(told(h, 0, cpu), "4 GPUs: too little CPU on the node (the nearest is 2.5 cores "
	                             "short: node n1)");
	assert_says(told(h, 0, size),
	            "4 GPUs: too small, even if it were empty (the nearest is 10000 "
	            "MiB short: 80000 MiB in all on n1-gpu0 of node n1)");
	harness_free(h);
}

static void a_gang_is_told_how_much_of_it_would_fit(void **unused)
{
	struct harness *h = harness_new();
	struct job_record gang;

	(void)unused;
	add_node(h, "n1", 3, 80000);
	int64_t lab = put_tenant(h, tenant_named("lab"));
	gang = whole(lab, 1);
	gang.tasks = 5;
	int64_t id = submit(h, gang);
	gang = whole(lab, 1);
	gang.split_gpus = 8;
	int64_t split = submit(h, gang);
	pass(h);
	assert_says(told(h, 0, id), "3 tasks would fit now, it needs 5 together");
	assert_says(told(h, 0, split), "3 GPUs would fit now, it needs 8 together");
	harness_free(h);
}

static void a_bound_is_named_with_its_numbers(void **unused)
{
	struct harness *h = harness_new();
	struct tenant_record tenant = tenant_named("lab");

	(void)unused;
	tenant.limit_gpu = 4 * WHOLE_GPU;
	add_node(h, "n1", 8, 80000);
	int64_t lab = put_tenant(h, tenant);
	submit(h, whole(lab, 2));
	pass(h);
	int64_t id = submit(h, whole(lab, 3));
	pass(h);
	assert_says(told(h, lab, id),
	            "job-2 waits: tenant lab is at its limit of 4 GPUs (2 in use, 3 requested)\n");
	harness_free(h);
}

static void a_claim_is_told_what_is_being_freed_and_until_when(void **unused)
{
	struct full full = four_of_five();
	struct harness *h = full.h;

	(void)unused;
	must(h, cancel(h, full.jobs[0]));
	assert_int_equal(pass(h), 0);
	h->now_ms += 5000;
	time_passes(h, 0);
	const char *text = told(h, full.lab, full.jobs[4]);
	assert_says(text,
	            "job-5 waits: its memory is being freed; it starts when the node confirms");
	assert_says(text,
	            "8000 MiB are claimed on GPU-1 of node n1, where 600 MiB are free now and "
	            "8000 MiB are being freed\n");
	assert_says(text,
	            "8000 MiB on GPU-1 of node n1 are being freed by job-1 since "
	            "1970-01-01T00:16:40Z (5s): late from 1970-01-01T00:18:10Z on, when a claim "
	            "on it expires\
");
	harness_free(h);
}

static void other_tenants_work_is_not_named(void **unused)
{
	struct harness *h = harness_new();

	(void)unused;
	add_node(h, "n1", 1, 80000);
	int64_t lab = put_tenant(h, tenant_named("lab"));
	int64_t rival = put_tenant(h, tenant_named("rival"));
	int64_t first = submit(h, memory(rival, 60000));
	pass(h);
	must(h, cancel(h, first));
	int64_t id = submit(h, memory(lab, 50000));
	pass(h);
	assert_says(told(h, lab, id), "are being freed by another tenant since");
	assert_is_silent(told(h, lab, id), "job-1");
	assert_says(told(h, 0, id), "are being freed by job-1 since");
	harness_free(h);
}

static void a_start_shows_the_arithmetic_of_the_law(void **unused)
{
	struct full full = four_of_five();
	const char *text = explained(full.h, DECISION_START, full.lab);

	(void)unused;
	assert_says(text, "at 1970-01-01T00:16:40Z: job-4 starts (1 task)\n");
	assert_says(text,
	            "GPU-1 of node n1: 0 overhead + 0 foreign + 24000 used + 8000 asked = 32000 "
	            "of 32600 MiB\n");
	assert_null(explained(full.h, DECISION_START, full.lab + 1));
	harness_free(full.h);
}

static void a_start_shows_what_no_process_explains(void **unused)
{
	struct harness *h = harness_new();

	(void)unused;
	add_node(h, "n1", 1, 80000);
	must(h, harness_apply(h, (struct command){ .kind = COMMAND_GPU_REPORT,
	                                           .gpu = { .uuid = "n1-gpu0",
	                                                    .foreign_mib = 1700,
	                                                    .unexplained_mib = 700,
	                                                    .temperature_c = 40,
	                                                    .healthy = true } }));
	submit(h, memory(put_tenant(h, tenant_named("lab")), 8000));
	pass(h);
	assert_says(explained(h, DECISION_START, 0),
	            ": 0 overhead + 1700 foreign (700 of it unexplained) + 0 used + 8000 asked = "
	            "9700 of 80000 MiB\n");
	harness_free(h);
}

static void a_claim_shows_what_it_counts_on(void **unused)
{
	struct full full = four_of_five();
	struct harness *h = full.h;

	(void)unused;
	must(h, cancel(h, full.jobs[0]));
	pass(h);
	assert_says(
	    explained(h, DECISION_CLAIM, 0),
	    "0 overhead + 0 foreign + 32000 used - 8000 being freed + 0 claimed + 8000 asked = "
	    "32000 of 32600 MiB\n");
	assert_says(explained(h, DECISION_CLAIM, 0), "the claim expires at 1970-01-01T00:18:10Z\n");
	harness_free(h);
}

static void victims_are_named_to_their_own_tenant_alone(void **unused)
{
	struct harness *h = harness_new();
	struct tenant_record lab_record = tenant_named("lab"), rival_record = tenant_named("rival");

	(void)unused;
	lab_record.quota_gpu = rival_record.quota_gpu = WHOLE_GPU;
	add_node(h, "n1", 2, 80000);
	int64_t lab = put_tenant(h, lab_record);
	int64_t rival = put_tenant(h, rival_record);
	submit(h, whole(rival, 1));
	submit(h, whole(rival, 1));
	assert_int_equal(pass(h), 2);
	time_passes(h, 10 * MINUTE);
	submit(h, whole(lab, 1));
	pass(h);
	const char *text = explained(h, DECISION_RECLAIM, lab);
	assert_says(text, "job-3 gets room that is reclaimed from other tenants");
	assert_says(text, "stops another tenant, which loses 600 GPU-seconds\n");
	assert_is_silent(text, "job-2");
	assert_says(explained(h, DECISION_RECLAIM, 0),
	            "stops job-2, which loses 600 GPU-seconds\n");
	text = explained(h, DECISION_EVICTED, rival);
	assert_says(text,
	            "job-2 is stopped for another tenant (1 task)\nit loses 600 GPU-seconds\n");
	harness_free(h);
}

static void what_is_not_queued_says_why(void **unused)
{
	struct harness *h = harness_new();
	static const int64_t after[] = { 1, AFTER_SUCCESS };
	struct command submission = { .kind = COMMAND_SUBMIT };

	(void)unused;
	add_node(h, "n1", 1, 80000);
	int64_t lab = put_tenant(h, tenant_named("lab"));
	int64_t runs = submit(h, whole(lab, 1));
	pass(h);
	assert_says(told(h, lab, runs),
	            "job-1 is running\ntask 0 runs on node n1, n1-gpu0: 80000 MiB "
	            "(all of it)\n");
	struct job_record job = whole(lab, 1);
	job.depends = (struct rows){ after, 1 };
	int64_t dependent = submit(h, job);
	assert_says(told(h, lab, dependent),
	            "job-2 waits for job-1 to succeed, which is running\n");
	submission.submit.job = whole(lab, 1);
	submission.submit.hold = true;
	must(h, harness_apply(h, submission));
	assert_says(told(h, lab, h->effects.reply_id),
	            "waits: it is held until somebody releases it");
	must(h, cancel(h, runs));
	assert_says(told(h, lab, runs), "job-1 was cancelled\n");
	harness_free(h);
}

static void a_job_on_a_silent_node_is_not_said_to_run(void **unused)
{
	struct harness *h = harness_new();
	int64_t started = 0;

	(void)unused;
	add_node(h, "n1", 1, 80000);
	int64_t lab = put_tenant(h, tenant_named("lab"));
	int64_t id = submit(h, whole(lab, 1));
	pass(h);
	started = right_of(h, id, 0);
	assert_true(to_task(h, COMMAND_TASK_STARTED, started, 0, false));
	set_node_state(h, "n1", NODE_UNKNOWN);
	assert_says(told(h, lab, id),
	            "job-1 is running, but node n1 does not report\n"
	            "task 0 ran on node n1 when that last reported, n1-gpu0: 80000 MiB");
	set_node_state(h, "n1", NODE_ONLINE);
	assert_says(told(h, lab, id), "job-1 is running\ntask 0 runs on node n1");
	harness_free(h);
}

static void a_duration_that_nothing_is_known_of_is_not_told(void **unused)
{
	struct harness *h = harness_new();

	(void)unused;
	add_node(h, "n1", 1, 80000);
	int64_t lab = put_tenant(h, tenant_named("lab"));
	struct job_record job = whole(lab, 1);
	job.name = "never-seen";
	int64_t runs = submit(h, job), waits = submit(h, job);
	pass(h);
	time_passes(h, MINUTE);
	assert_is_silent(told(h, lab, runs), "expected");
	assert_is_silent(told(h, lab, waits), "expected to take");
	harness_free(h);
}

static void a_refused_start_says_until_when_it_is_not_tried(void **unused)
{
	struct harness *h = harness_new();
	struct command refusal = { .kind = COMMAND_TASK_REFUSED };

	(void)unused;
	add_node(h, "n1", 1, 80000);
	int64_t lab = put_tenant(h, tenant_named("lab"));
	int64_t id = submit(h, whole(lab, 1));
	must(h, harness_apply(h, (struct command){ .kind = COMMAND_PASS, .units = 10 }));
	refusal.task.reservation_id = job(h, id)->tasks[0].reservation->id;
	refusal.task.message = "no such image";
	must(h, harness_apply(h, refusal));
	assert_says(told(h, lab, id), "job-1 waits until 1970-01-01T00:16:45Z: a node refused it 1 "
	                              "time, last because: no such image\n");
	harness_free(h);
}

static void an_element_of_an_array_knows_its_limit(void **unused)
{
	struct harness *h = harness_new();
	struct command submission = { .kind = COMMAND_SUBMIT };

	(void)unused;
	add_node(h, "n1", 4, 80000);
	int64_t lab = put_tenant(h, tenant_named("lab"));
	submission.submit.job = whole(lab, 1);
	submission.submit.job.array_limit = 2;
	submission.submit.array_from = 1;
	submission.submit.array_to = 4;
	must(h, harness_apply(h, submission));
	assert_int_equal(pass(h), 2);
	assert_says(told(h, lab, 3), "job-3 waits: its array is limited to 2 at a time");
	harness_free(h);
}

static void what_fits_waits_for_the_next_pass(void **unused)
{
	struct harness *h = harness_new();

	(void)unused;
	add_node(h, "n1", 1, 80000);
	int64_t lab = put_tenant(h, tenant_named("lab"));
	int64_t id = submit(h, whole(lab, 1));
	assert_says(told(h, lab, id), "the next pass decides");
	assert_int_equal(pass(h), 1);
	harness_free(h);
}

static void a_job_that_could_grow_says_what_it_has(void **unused)
{
	struct harness *h = harness_new();
	struct job_record elastic;

	(void)unused;
	add_node(h, "n1", 2, 80000);
	int64_t lab = put_tenant(h, tenant_named("lab"));
	elastic = whole(lab, 1);
	elastic.tasks = 3;
	elastic.min_available = 1;
	int64_t id = submit(h, elastic);
	while (pass(h) > 0)
		;
	assert_says(told(h, lab, id), "job-1 has 2 of 3 tasks placed and waits: no free GPU");
	harness_free(h);
}

static void a_node_that_takes_nothing_says_why(void **unused)
{
	struct harness *h = harness_new();

	(void)unused;
	for (int i = 0; i < 3; i++)
		add_node(h, i == 0 ? "n1" : i == 1 ? "n2" : "n3", 2, 80000);
	int64_t lab = put_tenant(h, tenant_named("lab"));
	drain(h, "n1", true);
	set_node_state(h, "n2", NODE_UNKNOWN);
	set_node_state(h, "n3", NODE_LOST);
	int64_t id = submit(h, whole(lab, 1));
	pass(h);
	assert_says(told(h, lab, id), "6 GPUs: node n1 is draining, node n2 does not answer, "
	                              "node n3 is lost\n");
	for (int i = 0; i < 3; i++)
		add_node(h, i == 0 ? "n4" : i == 1 ? "n5" : "n6", 2, 80000);
	drain(h, "n4", true);
	drain(h, "n5", true);
	drain(h, "n6", true);
	assert_says(told(h, lab, id), "node n4 is draining, and 2 more\n");
	harness_free(h);
}

static void asking_changes_nothing(void **unused)
{
	struct full full = four_of_five();
	struct harness *h = full.h;

	(void)unused;
	submit(h, whole(full.lab, 1));
	pass(h);
	for (int64_t id = 1; id <= 6; id++)
		told(h, 0, id);
	must(h, harness_apply(h, (struct command){ .kind = COMMAND_PASS, .units = 10 }));
	assert_int_equal(h->effects.count, 0);
	harness_free(h);
}

static void positions_count_the_waiting_jobs_before(void **unused)
{
	struct full full = four_of_five();
	struct harness *h = full.h;
	int64_t position, tenant_position;

	(void)unused;
	int64_t rival = put_tenant(h, tenant_named("rival"));
	struct job_record urgent = memory(rival, 30000);
	urgent.priority = 900;
	submit(h, urgent);
	int64_t last = submit(h, memory(full.lab, 9000));
	must(h, sched_position(h->sched, last, &position, &tenant_position, &h->error));
	assert_int_equal(position, 2);
	assert_int_equal(tenant_position, 1);
	assert_false(
	    sched_position(h->sched, full.jobs[0], &position, &tenant_position, &h->error));
	assert_false(sched_position(h->sched, 99, &position, &tenant_position, &h->error));
	assert_int_equal(h->error.code, ERROR_NOT_FOUND);
	harness_free(h);
}

static void the_steps_have_their_tags(void **unused)
{
	struct full full = four_of_five();
	struct harness *h = full.h;
	struct buffer text = { 0 };

	(void)unused;
	must(h, sched_trace(h->sched, full.jobs[4], &text, &h->error));
	assert_says(text.data, "[GPU_FILTER] job-5: GPU-1 of node n1: capacity 32600, overhead 0, "
	                       "foreign 0, used 32000, releasing 0, claimed 0, asked 8000 MiB: too "
	                       "little memory, 7400 MiB short\n");
	assert_says(text.data, "[GPU_FIT_CHECK] job-5: node n1: fits, room for 0 tasks\n");
	assert_says(text.data, "[IDLE_CHECK] job-5: does not fit now\n");
	assert_says(text.data, "[RESOURCE_CHECK] job-5: would not fit when");
	assert_says(text.data, "[GPU_SELECT] job-5: 0 candidates");
	buffer_free(&text);
	harness_free(h);
}

static void assert_impossible(struct harness *h, struct job_record job, const char *sentence)
{
	struct command command = { .kind = COMMAND_SUBMIT };

	command.submit.job = job;
	command.submit.check_possible = true;
	assert_false(harness_apply(h, command));
	assert_int_equal(h->error.code, ERROR_IMPOSSIBLE);
	assert_string_equal(h->error.text, sentence);
}

static void what_could_never_run_says_what_is_too_much(void **unused)
{
	struct harness *h = harness_new();
	struct job_record job;

	(void)unused;
	int64_t lab = put_tenant(h, tenant_named("lab"));
	assert_impossible(h, whole(lab, 1), "there is no node");
	add_node(h, "n1", 4, 80000);
	add_node(h, "n2", 8, 40000);
	assert_impossible(h, memory(lab, 90000),
	                  "asks for 90000 MiB of one GPU, the largest has 80000 MiB");
	job = whole(lab, 8);
	job.memory_mib = 50000;
	assert_impossible(h, job,
	                  "asks for 8 GPUs on one node, the best node has 4 that are large "
	                  "enough");
	job = whole(lab, 1);
	job.gpu_models = "B200";
	assert_impossible(h, job, "no node has a GPU of model B200");
	job.gpu_kind = GPU_NONE; /* on a node that has such a GPU */
	job.gpu_count = 0;
	job.cpu_milli = 1000;
	assert_impossible(h, job, "no node has a GPU of model B200");
	job = whole(lab, 1);
	job.cpu_milli = 200000;
	assert_impossible(h, job,
	                  "asks for 200000 thousandths of CPU cores for a task, the largest "
	                  "node has 128000");
	job = whole(lab, 4);
	job.tasks = 4;
	assert_impossible(h, job,
	                  "needs 4 tasks together, the cluster takes 3 if nothing else is on "
	                  "it");
	job = whole(lab, 1);
	job.split_gpus = 13;
	assert_impossible(h, job,
	                  "needs 13 GPUs together, the cluster takes 12 if nothing else is on "
	                  "it");
	job = whole(lab, 2);
	job.tasks = 5;
	job.closeness = CLOSE_NODE;
	job.closeness_required = true;
	assert_impossible(h, job,
	                  "needs 5 tasks together, the best node takes 4 if nothing else is on "
	                  "it");
	harness_free(h);
}

static void what_is_only_busy_or_unwell_is_possible(void **unused)
{
	struct full full = four_of_five();
	struct harness *h = full.h;
	struct command command = { .kind = COMMAND_SUBMIT };

	(void)unused;
	must(h, harness_apply(h, (struct command){ .kind = COMMAND_GPU_REPORT,
	                                           .gpu = { .uuid = "GPU-1",
	                                                    .temperature_c = 99,
	                                                    .foreign_mib = 20000 } }));
	command.submit.job = memory(full.lab, 32600);
	command.submit.check_possible = true;
	must(h, harness_apply(h, command));
	harness_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_fifth_is_told_that_600_mib_are_free),
		cmocka_unit_test(what_no_node_could_take_is_told_so),
		cmocka_unit_test(a_whole_gpu_is_told_what_is_occupied),
		cmocka_unit_test(whoever_has_what_is_short_is_named),
		cmocka_unit_test(a_reason_is_the_check_that_refused),
		cmocka_unit_test(a_gang_is_told_how_much_of_it_would_fit),
		cmocka_unit_test(a_bound_is_named_with_its_numbers),
		cmocka_unit_test(a_claim_is_told_what_is_being_freed_and_until_when),
		cmocka_unit_test(other_tenants_work_is_not_named),
		cmocka_unit_test(a_start_shows_the_arithmetic_of_the_law),
		cmocka_unit_test(a_start_shows_what_no_process_explains),
		cmocka_unit_test(a_claim_shows_what_it_counts_on),
		cmocka_unit_test(victims_are_named_to_their_own_tenant_alone),
		cmocka_unit_test(what_is_not_queued_says_why),
		cmocka_unit_test(a_job_on_a_silent_node_is_not_said_to_run),
		cmocka_unit_test(a_duration_that_nothing_is_known_of_is_not_told),
		cmocka_unit_test(a_refused_start_says_until_when_it_is_not_tried),
		cmocka_unit_test(an_element_of_an_array_knows_its_limit),
		cmocka_unit_test(what_fits_waits_for_the_next_pass),
		cmocka_unit_test(a_job_that_could_grow_says_what_it_has),
		cmocka_unit_test(a_node_that_takes_nothing_says_why),
		cmocka_unit_test(asking_changes_nothing),
		cmocka_unit_test(positions_count_the_waiting_jobs_before),
		cmocka_unit_test(the_steps_have_their_tags),
		cmocka_unit_test(what_could_never_run_says_what_is_too_much),
		cmocka_unit_test(what_is_only_busy_or_unwell_is_possible),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
