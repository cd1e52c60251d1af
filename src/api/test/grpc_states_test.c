/* grpc_states_test.c - each gRPC method is answered, cancelled, timed out and cut off in every
 * order, and nothing is left behind or reaches a stranger */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* After those. */
#include <cmocka.h>

#include "agent.pb-c.h"
#include "api/service/service_state.h"
#include "health.pb-c.h"
#include "reflection_v1.pb-c.h"
#include "scheduler.pb-c.h"
#include "standin.h"
#include "wire/http2_state.h"
#include "wire/test/h2_client.h"

static char node_a[] = "na", node_b[] = "nb", lab[] = "lab", job_1[] = "job-1";

/* The service on its stand-in, and one client of it. */
static struct {
	struct pair pair;
	struct standin *standin;
	struct service *service;
	struct h2_client *client;
	int jobs;
} world;

/* Appends a message with the prefix of gRPC. */
static void grpc_states_put(struct buffer *body, const void *message)
{
	size_t size = protobuf_c_message_get_packed_size(message);
	uint8_t *packed = memory_alloc(size + 1);
	char prefix[GRPC_FRAME_PREFIX];
	protobuf_c_message_pack(message, packed);
	grpc_frame_prefix(prefix, size, false);
	buffer_bytes(body, prefix, sizeof(prefix));
	buffer_bytes(body, packed, size);
	free(packed);
}

static void put_submit(struct buffer *body)
{
	Scheduler__SubmitJobRequest request = SCHEDULER__SUBMIT_JOB_REQUEST__INIT;
	static char name[] = "train", script[] = "true";
	request.tenant_id = lab;
	request.name = name;
	request.script = script;
	request.gpu_count = 1;
	grpc_states_put(body, &request);
}

static void put_cancel(struct buffer *body)
{
	Scheduler__CancelJobRequest request = SCHEDULER__CANCEL_JOB_REQUEST__INIT;
	request.job_id = job_1;
	grpc_states_put(body, &request);
}

static void put_status(struct buffer *body)
{
	Scheduler__GetJobStatusRequest request = SCHEDULER__GET_JOB_STATUS_REQUEST__INIT;
	request.job_id = job_1;
	grpc_states_put(body, &request);
}

static void put_list(struct buffer *body)
{
	Scheduler__ListJobsRequest request = SCHEDULER__LIST_JOBS_REQUEST__INIT;
	grpc_states_put(body, &request);
}

static void put_quota(struct buffer *body)
{
	Scheduler__UpdateTenantQuotaRequest request = SCHEDULER__UPDATE_TENANT_QUOTA_REQUEST__INIT;
	request.tenant_id = lab;
	grpc_states_put(body, &request);
}

static void put_metrics(struct buffer *body)
{
	Scheduler__GetMetricsRequest request = SCHEDULER__GET_METRICS_REQUEST__INIT;
	grpc_states_put(body, &request);
}

static void put_cluster(struct buffer *body)
{
	Scheduler__GetClusterStatusRequest request = SCHEDULER__GET_CLUSTER_STATUS_REQUEST__INIT;
	grpc_states_put(body, &request);
}

static void put_registration_of(struct buffer *body, char *node)
{
	Agent__RegisterAgentRequest request = AGENT__REGISTER_AGENT_REQUEST__INIT;
	Agent__GPUInfo gpu = AGENT__GPUINFO__INIT, *gpus = &gpu;
	gpu.gpu_id = node;
	gpu.memory_total_mb = 80000;
	request.node_id = node;
	request.gpus = &gpus;
	request.n_gpus = 1;
	request.total_cpu_cores = 64;
	request.total_memory_mb = 100000;
	grpc_states_put(body, &request);
}

static void put_registration(struct buffer *body)
{
	put_registration_of(body, node_a);
}

static void put_heartbeat_of(struct buffer *body, char *node)
{
	Agent__HeartbeatRequest request = AGENT__HEARTBEAT_REQUEST__INIT;
	request.node_id = node;
	grpc_states_put(body, &request);
}

static void put_heartbeat(struct buffer *body)
{
	put_heartbeat_of(body, node_a);
}

static void put_report(struct buffer *body)
{
	Agent__ReportMetricsRequest request = AGENT__REPORT_METRICS_REQUEST__INIT;
	request.node_id = node_a;
	grpc_states_put(body, &request);
}

static void put_readiness_of(struct buffer *body, char *node)
{
	Agent__JobAssignmentRequest request = AGENT__JOB_ASSIGNMENT_REQUEST__INIT;
	request.node_id = node;
	grpc_states_put(body, &request);
}

static void put_readiness(struct buffer *body)
{
	put_readiness_of(body, node_a);
}

static void put_hello(struct buffer *body)
{
	static int64_t connection;
	struct buffer bytes = { 0 };
	struct message hello = { .kind = MESSAGE_HELLO, .boot = "b", .connection = ++connection };
	hello.hello = (struct hello){ "nc", NODE_PROTOCOL, 1 };
	message_encode(&bytes, &hello);
	Agent__Envelope envelope = AGENT__ENVELOPE__INIT;
	envelope.message.data = (uint8_t *)bytes.data;
	envelope.message.len = bytes.size;
	grpc_states_put(body, &envelope);
	buffer_free(&bytes);
}

static void put_health(struct buffer *body)
{
	Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
	grpc_states_put(body, &request);
}

static void put_reflection(struct buffer *body)
{
	Grpc__Reflection__V1__ServerReflectionRequest request =
	    GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__INIT;
	static char all[] = "*";
	request.message_request_case =
	    GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_LIST_SERVICES;
	request.list_services = all;
	grpc_states_put(body, &request);
}

static const struct rpc {
	const char *path;
	void (*put)(struct buffer *body);
} methods[] = {
	{ "/scheduler.SchedulerService/SubmitJob", put_submit },
	{ "/scheduler.SchedulerService/CancelJob", put_cancel },
	{ "/scheduler.SchedulerService/GetJobStatus", put_status },
	{ "/scheduler.SchedulerService/ListJobs", put_list },
	{ "/scheduler.SchedulerService/UpdateTenantQuota", put_quota },
	{ "/scheduler.SchedulerService/GetMetrics", put_metrics },
	{ "/scheduler.SchedulerService/GetClusterStatus", put_cluster },
	{ "/scheduler.SchedulerService/None", put_cluster },
	{ "/agent.AgentService/RegisterAgent", put_registration },
	{ "/agent.AgentService/Heartbeat", put_heartbeat },
	{ "/agent.AgentService/ReportMetrics", put_report },
	{ "/agent.AgentService/ReceiveJobAssignment", put_readiness },
	{ "/agent.AgentService/Connect", put_hello },
	{ "/grpc.health.v1.Health/Check", put_health },
	{ "/grpc.health.v1.Health/Watch", put_health },
	{ "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", put_reflection },
	{ "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", put_reflection },
};
enum { METHODS = sizeof(methods) / sizeof(methods[0]) };

/* How much of a request has arrived when the first event comes. */
enum arrival { WHOLE, HEAD_ALONE, LEFT_OPEN, MALFORMED, ARRIVALS };
enum happening { CANCEL, DEADLINE, DISCONNECT, REPLY, EVENTS };

static void submit_job(void)
{
	standin_apply(world.standin,
	              (struct command){ .kind = COMMAND_SUBMIT,
	                                .submit = { .job = { .tenant_id = 1,
	                                                     .name = "train",
	                                                     .payload = "{\"script\":\"true\"}",
	                                                     .priority = 100,
	                                                     .gpu_models = "",
	                                                     .node_labels = "",
	                                                     .idempotency_key = "" } } });
}

static int32_t grpc_states_ask(const char *path, void (*put_body)(struct buffer *body),
                               enum arrival arrival)
{
	struct buffer body = { 0 };
	if (arrival != HEAD_ALONE)
		put_body(&body);
	if (arrival == MALFORMED)
		body.size -= 1;
	if (arrival == MALFORMED && body.size < GRPC_FRAME_PREFIX)
		buffer_bytes(&body, "\7", 1);
	int32_t id = h2_client_request(
	    world.client,
	    &(struct h2_request){ .path = path,
	                          .is_grpc = true,
	                          .is_open = arrival == HEAD_ALONE || arrival == LEFT_OPEN,
	                          .grpc_timeout = "1H",
	                          .body = { body.data, body.size } });
	buffer_free(&body);
	return id;
}

static void connect_client(void)
{
	if (world.client)
		h2_client_free(world.client);
	world.client = h2_client_new(&world.pair, service_grpc(world.service), 65535);
}

static int grpc_states_set_up(void **state)
{
	(void)state;
	struct error error = { 0 };
	struct service_settings settings = { .gate = { .open = true },
		                             .sessions = session_policy_default() };
	memset(&world, 0, sizeof(world));
	world.pair = pair_new(NULL);
	world.standin = standin_new(world.pair.loop);
	world.service = service_new(&world.standin->port, &settings, &error);
	assert_non_null(world.service);
	standin_tenant(world.standin, lab);
	service_begin(world.service);
	submit_job();
	connect_client();
	grpc_states_ask("/agent.AgentService/RegisterAgent", put_registration, WHOLE);
	standin_settle(world.standin);
	h2_client_run(world.client);
	return 0;
}

static int grpc_states_tear_down(void **state)
{
	(void)state;
	pair_hang_up(&world.pair);
	standin_settle(world.standin);
	h2_client_free(world.client);
	assert_int_equal(world.service->requests.count, 0);
	service_free(world.service);
	pair_free(&world.pair);
	standin_free(world.standin);
	return 0;
}

/* The exchange of a stream that is open. */
static struct exchange_state *grpc_states_find(int32_t id)
{
	const struct connection *connection = world.pair.loop->connections;
	const struct http2 *http2 = connection ? connection->speech : NULL;
	struct exchange_state *state = http2 ? http2->first : NULL;
	while (state && state->stream_id != id)
		state = state->next;
	return state;
}

/* The deadline of an exchange passes, if it is still waited for. The exchange itself may be
 * somebody else's by now, so only its address is compared. */
static void pass_deadline(struct exchange_state *state)
{
	struct timers *timers = &world.pair.loop->timers;
	for (size_t i = 0; state && i < timers->heap.count; i++) {
		if (timers->heap.items[i] == &state->timer && state->timer.due_ms != 0) {
			timers_clear(timers, &state->timer);
			state->timer.fire(&state->timer);
			return;
		}
	}
}

/* Watches health without a token, in whatever exchange is free. */
static int32_t add_stranger(void)
{
	int32_t id = grpc_states_ask("/grpc.health.v1.Health/Watch", put_health, WHOLE);
	assert_true(h2_client_stream(world.client, id)->body.size > 0);
	return id;
}

/* All that a stranger may see: messages of two bytes that say a status. */
static void check_stranger(int32_t id)
{
	const struct buffer *body = &h2_client_stream(world.client, id)->body;
	assert_int_equal(body->size % 7, 0);
	for (size_t at = 0; at < body->size; at += 7)
		assert_memory_equal(body->data + at, "\0\0\0\0\2\10", 6);
}

static void reply(void)
{
	world.standin->healthy = !world.standin->healthy;
	world.standin->port.listener.changed(world.standin->port.listener.context);
	standin_settle(world.standin);
	if (world.pair.client >= 0)
		h2_client_run(world.client);
}

static void happen(enum happening event, int32_t id, struct exchange_state *state)
{
	bool is_connected = world.pair.client >= 0;
	switch (event) {
	case CANCEL:
		if (is_connected)
			h2_client_reset(world.client, id);
		break;
	case DEADLINE:
		pass_deadline(state);
		if (is_connected)
			h2_client_run(world.client);
		break;
	case DISCONNECT:
		pair_hang_up(&world.pair);
		break;
	default:
		reply();
	}
}

/* One call, and what happens to it in this order. A stranger comes after each event. */
static void run_order(const struct rpc *method, enum arrival arrival,
                      const enum happening order[EVENTS])
{
	int32_t strangers[EVENTS];
	connect_client();
	submit_job();
	int32_t id = grpc_states_ask(method->path, method->put, arrival);
	struct exchange_state *state = grpc_states_find(id);
	bool is_callers = true; /* the client is still the one that called */
	for (int i = 0; i < EVENTS; i++) {
		if (is_callers || order[i] != CANCEL)
			happen(order[i], id, state);
		if (world.pair.client < 0) {
			connect_client();
			is_callers = false;
			for (int k = 0; k < i; k++)
				strangers[k] = 0;
		}
		strangers[i] = add_stranger();
	}
	reply();
	for (int i = 0; i < EVENTS; i++)
		if (strangers[i] > 0)
			check_stranger(strangers[i]);
	pair_hang_up(&world.pair);
	standin_settle(world.standin);
	assert_int_equal(world.service->requests.count, 0);
	assert_int_equal(loop_counters(world.pair.loop).exchanges, 0);
	assert_int_equal(loop_counters(world.pair.loop).buffered_bytes, 0);
}

static void every_method_survives_every_order_of_events(void **state)
{
	(void)state;
	for (int m = 0; m < METHODS; m++)
		for (int arrival = 0; arrival < ARRIVALS; arrival++)
			for (int a = 0; a < EVENTS; a++)
				for (int b = 0; b < EVENTS; b++)
					for (int c = 0; c < EVENTS; c++) {
						if (a == b || b == c || a == c)
							continue;
						enum happening order[EVENTS] = { a, b, c,
							                         6 - a - b - c };
						run_order(&methods[m], arrival, order);
					}
}

static void malformed_calls_leave_nothing_behind(void **state)
{
	(void)state;
	for (int i = 0; i < 1000; i++) {
		if (i % 100 == 0)
			connect_client();
		const struct rpc *method = &methods[i % METHODS];
		int32_t id = grpc_states_ask(method->path, method->put, MALFORMED);
		assert_true(h2_client_stream(world.client, id)->grpc_status > 0);
	}
	assert_int_equal(world.service->requests.count, 0);
	assert_int_equal(loop_counters(world.pair.loop).exchanges, 0);
}

/* A stream that says one node and then another is refused, and what is for either node
 * reaches nobody. */
static void check_second_name(const char *path, void (*put_of)(struct buffer *, char *))
{
	struct buffer body = { 0 };
	put_registration_of(&body, node_b);
	h2_client_request(world.client,
	                  &(struct h2_request){ .path = "/agent.AgentService/RegisterAgent",
	                                        .is_grpc = true,
	                                        .body = { body.data, body.size } });
	standin_settle(world.standin);
	buffer_clear(&body);
	put_of(&body, node_a);
	int32_t id = h2_client_request(
	    world.client,
	    &(struct h2_request){
		.path = path, .is_grpc = true, .is_open = true, .body = { body.data, body.size } });
	standin_settle(world.standin);
	h2_client_run(world.client);
	buffer_clear(&body);
	put_of(&body, node_b);
	h2_client_send(world.client, id, (struct text){ body.data, body.size }, false);
	buffer_free(&body);
	assert_int_equal(h2_client_stream(world.client, id)->grpc_status, GRPC_INVALID_ARGUMENT);
	int32_t stranger = add_stranger();
	for (int i = 0; i < 4; i++)
		submit_job();
	reply();
	check_stranger(stranger);
}

static void a_stream_of_assignments_is_of_one_node(void **state)
{
	(void)state;
	check_second_name("/agent.AgentService/ReceiveJobAssignment", put_readiness_of);
}

static void a_stream_of_heartbeats_is_of_one_node(void **state)
{
	(void)state;
	check_second_name("/agent.AgentService/Heartbeat", put_heartbeat_of);
}

static void assignments_reach_the_node_that_asks_for_them(void **state)
{
	(void)state;
	int32_t id =
	    grpc_states_ask("/agent.AgentService/ReceiveJobAssignment", put_readiness, LEFT_OPEN);
	submit_job();
	standin_settle(world.standin);
	h2_client_run(world.client);
	assert_true(h2_client_stream(world.client, id)->body.size > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, grpc_states_set_up, grpc_states_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_method_survives_every_order_of_events),
		TEST(malformed_calls_leave_nothing_behind),
		TEST(a_stream_of_assignments_is_of_one_node),
		TEST(a_stream_of_heartbeats_is_of_one_node),
		TEST(assignments_reach_the_node_that_asks_for_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
