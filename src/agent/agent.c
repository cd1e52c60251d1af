/* agent.c - a node with GPUs, processes and a connection: what it is to do is done here */
#include "agent/agent.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/file.h"
#include "agent/host/host.h"
#include "agent/host/slot_certificate.h"
#include "agent/host/state.h"
#include "agent/host/vault.h"
#include "agent/keeper/keeper_proxy.h"
#include "agent/uplink/envelope.h"
#include "agent/workload/folder.h"
#include "agent/workload/follow.h"
#include "agent/workload/inputs.h"
#include "agent/workload/measurement.h"
#include "agent/workload/session_links.h"
#include "agent/workload/slots.h"
#include "agent/workload/works.h"
#include "base/clock.h"
#include "base/log.h"

#define HOUSEKEEPING_MS 60000
#define LOOK_MS 1000
#define BEAT_LEAST_MS 50
#define BEAT_MOST_MS 600000
#define ROOM_BYTES ((size_t)1 << 20)

struct agent {
	struct agent_settings settings;
	char told_runtime[32]; /* by the scheduler */
	uv_loop_t *loop;
	struct host host;
	struct cgroups cgroups;
	struct state *state;
	struct secret_keys *keys;
	struct local_node *node;
	struct outputs outputs;
	struct works *works;
	struct slots *slots;
	struct follows *follows;
	struct inputs *inputs;
	struct session_links *sessions;
	struct measurements *measurements;
	struct mps *mps;         /* NULL: no shares of compute */
	struct driver *driver;   /* NULL: there is none */
	struct plugins *plugins; /* likewise */
	struct uplink *link;
	uv_timer_t wake, look;
	uv_prepare_t prepare;
	uv_check_t check;
	uv_signal_t children;
	int64_t looks;
	struct arena messages;
	struct buffer processes, guards, hidden; /* of the last measurement */
	struct buffer packing;                   /* of one envelope */
	int handles;                             /* that libuv has not closed */
	char *label, *folders, *homes;           /* as in struct run_settings */
};

static void agent_apply(struct agent *agent, struct input input)
{
	input.now_ms = clock_boot_ms();
	node_apply(agent->node, &input, &agent->outputs);
}

/* The state machine may continue only when its output is durable. The output of a whole round
 * of events is synced at once: writing early does no harm, since nothing of it was done yet. */
static void agent_keep(struct agent *agent)
{
	struct error error = { 0 };
	bool written = false;

	for (size_t i = 0; i < agent->outputs.count; i++) {
		const struct output *output = &agent->outputs.at[i];
		written = written || output->kind == OUTPUT_WRITE;
		if (output->kind == OUTPUT_WRITE)
			state_put(agent->state, output->key, output->data, output->size,
			          vault_has_secrets(output->data, output->size));
		else if (output->kind == OUTPUT_ERASE)
			state_erase(agent->state, output->key);
		else if (output->kind == OUTPUT_LEASE &&
		         !state_set_lease(agent->state, output->until_ms))
			panic("the lease cannot be written in %s", state_directory(agent->state));
	}
	/* What is forgotten a little later was only kept for longer. */
	if (written && !state_sync(agent->state, &error))
		panic("%s", error.text);
}

static void agent_send(struct agent *agent, const struct envelope *envelope)
{
	buffer_clear(&agent->packing);
	envelope_encode(&agent->packing, envelope);
	uplink_send(agent->link, (struct text){ agent->packing.data, agent->packing.size });
}

static void send_message(struct agent *agent, const struct output *output)
{
	struct envelope envelope = { .kind = ENVELOPE_MESSAGE,
		                     .message = { output->data, output->size } };

	agent_send(agent, &envelope);
}

static void agent_forget(struct agent *agent, int64_t reservation_id)
{
	slots_forget(agent->slots, reservation_id);
	works_erase(agent->works, reservation_id);
}

static void perform(struct agent *agent, const struct output *output)
{
	switch ((enum output_kind)output->kind) {
	case OUTPUT_ERASE:
		agent_forget(agent, output->key);
		break;
	case OUTPUT_SEND:
		send_message(agent, output);
		break;
	case OUTPUT_START:
		works_start(agent->works, output->order);
		break;
	case OUTPUT_NOTICE:
		works_notice(agent->works, output->key);
		break;
	case OUTPUT_FREEZE:
		works_freeze(agent->works, output->key);
		break;
	case OUTPUT_KILL:
		works_kill(agent->works, output->key);
		break;
	case OUTPUT_SUSPEND:
		works_suspend(agent->works, output->order);
		break;
	case OUTPUT_RESUME:
		works_resume(agent->works, output->order);
		break;
	case OUTPUT_WARN:
		works_warn(agent->works, output->key, output->message);
		break;
	case OUTPUT_MEASURE:
		measurements_ask(agent->measurements, output->key);
		break;
	case OUTPUT_DISCONNECT:
		uplink_disconnect(agent->link, output->message);
		break;
	default:
		break;
	}
}

static void woken(uv_timer_t *timer);

static void set_alarm(struct agent *agent)
{
	int64_t wait_ms = node_wake_ms(agent->node) - clock_boot_ms();

	wait_ms = wait_ms < 0 ? 0 : wait_ms > HOUSEKEEPING_MS ? HOUSEKEEPING_MS : wait_ms;
	uv_timer_start(&agent->wake, woken, (uint64_t)wait_ms, 0);
}

/* Doing may lead to more that is to be done. */
static void flush(struct agent *agent)
{
	while (agent->outputs.count > 0) {
		struct outputs outputs = agent->outputs;
		agent_keep(agent);
		agent->outputs = (struct outputs){ 0 };
		for (size_t i = 0; i < outputs.count; i++)
			perform(agent, &outputs.at[i]);
		if (agent->outputs.count == 0) {
			agent->outputs = outputs;
			outputs_clear(&agent->outputs);
		} else {
			outputs_free(&outputs);
		}
		set_alarm(agent);
	}
	uplink_flush(agent->link);
	if (agent->driver)
		driver_flush(agent->driver);
}

static void before_waiting(uv_prepare_t *prepare)
{
	flush(prepare->data);
}

static void after_waiting(uv_check_t *check)
{
	flush(check->data);
}

static void woken(uv_timer_t *timer)
{
	struct agent *agent = timer->data;

	agent_apply(agent, (struct input){ .kind = INPUT_TIME });
	set_alarm(agent);
}

static bool gpu_in_use(void *context, const char *uuid)
{
	const struct agent *agent = context;

	return works_use_gpu(agent->works, uuid);
}

static void mps_happened(void *context, const char *uuid, enum mps_event event)
{
	struct agent *agent = context;

	works_warn_all(agent->works, uuid,
	               event == MPS_FAULT
	                   ? "an error of one task on this GPU ended all tasks with a share of its "
	                     "compute: they are clients of one MPS server"
	                   : "the MPS daemon of this GPU ended and was started again: its clients "
	                     "have lost it");
}

static void agent_look(uv_timer_t *timer)
{
	struct agent *agent = timer->data;

	struct error error = { 0 };

	works_look(agent->works);
	if (agent->mps)
		mps_look(agent->mps, clock_boot_ms(), gpu_in_use, mps_happened, agent);
	if (!state_wipe(agent->state, &error) && agent->looks % (HOUSEKEEPING_MS / LOOK_MS) == 0)
		log_at(LOG_WARNING,
		       "secrets of tasks that have ended are still in the journal, sealed",
		       LOG_TEXT("reason", error.text));
	if (agent->looks++ % (HOUSEKEEPING_MS / LOOK_MS) == 0)
		works_trim_outputs(agent->works, agent->settings.output_total_bytes,
		                   agent->settings.output_age_s);
}

/* Keepers are our children until we end; what they were is known by other ways. */
static void children_ended(uv_signal_t *signal, int number)
{
	struct agent *agent = signal->data;
	int status;
	pid_t pid;

	(void)number;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		works_child_ended(agent->works, pid, status);
}

/* Until this scheduler has said that everyone signs in, it may be anyone's. */
static void connected(void *context)
{
	struct agent *agent = context;

	works_trust_users(agent->works, agent->settings.trust_open_scheduler);
	agent_apply(context, (struct input){ .kind = INPUT_CONNECTED });
}

static void disconnected(void *context, const char *reason)
{
	struct agent *agent = context;

	(void)reason;
	follows_clear(agent->follows);
	inputs_clear(agent->inputs);
	session_links_clear(agent->sessions);
	agent_apply(agent, (struct input){ .kind = INPUT_DISCONNECTED });
}

static void tell_keys(struct agent *agent);

static void agent_take_message(struct agent *agent, struct text bytes)
{
	struct error error = { 0 };
	struct message *message =
	    message_decode(&agent->messages, (const uint8_t *)bytes.data, bytes.size, &error);

	if (message && message->kind == MESSAGE_ORDER)
		vault_seal(agent->keys, &agent->messages, &message->order);
	if (message)
		agent_apply(agent, (struct input){ .kind = INPUT_MESSAGE, .message = message });
	else
		log_at(LOG_ERROR, "the scheduler sent a message that cannot be read",
		       LOG_TEXT("reason", error.text));
	if (message && message->kind == MESSAGE_WELCOME)
		tell_keys(agent);
	arena_reset(&agent->messages);
}

static bool set_pace(struct agent *agent, const struct told_settings *told)
{
	struct node_policy *policy = &agent->settings.policy;
	int64_t beat_ms = policy->beat_ms, figures_ms = policy->figures_ms;

	if (!agent->settings.own_beat && told->heartbeat_ms > 0)
		policy->beat_ms = max64(BEAT_LEAST_MS, min64(told->heartbeat_ms, BEAT_MOST_MS));
	if (!agent->settings.own_figures && told->metrics_ms > 0)
		policy->figures_ms = max64(1, min64(told->metrics_ms, BEAT_MOST_MS));
	if (policy->beat_ms == beat_ms && policy->figures_ms == figures_ms)
		return false;
	agent_apply(agent, (struct input){ .kind = INPUT_PACE,
	                                   .pace = { policy->beat_ms, policy->figures_ms } });
	return true;
}

static bool set_runtime(struct agent *agent, struct text told)
{
	if (agent->settings.run.container_runtime || told.size == 0 ||
	    told.size >= sizeof(agent->told_runtime) || text_is(told, agent->told_runtime))
		return false;
	memcpy(agent->told_runtime, told.data, told.size);
	agent->told_runtime[told.size] = '\0';
	works_use_container_runtime(agent->works, agent->told_runtime);
	return true;
}

/* What the administrator of this node said stays. */
static void take_settings(struct agent *agent, const struct told_settings *told)
{
	bool paced = set_pace(agent, told),
	     other_runtime = set_runtime(agent, told->container_runtime);
	const char *own = agent->settings.run.container_runtime;

	works_trust_users(agent->works, told->sign_in || agent->settings.trust_open_scheduler);
	if (paced || other_runtime)
		log_at(LOG_INFO, "the scheduler said how to run",
		       LOG_NUMBER("heartbeat_ms", agent->settings.policy.beat_ms),
		       LOG_NUMBER("metrics_ms", agent->settings.policy.figures_ms),
		       LOG_TEXT("container_runtime", own ? own : agent->told_runtime));
}

static void lease_taken(void *context, int64_t lease_id, const char *reason)
{
	struct agent *agent = context;
	struct envelope envelope = { .kind = ENVELOPE_LEASE_KEY_TAKEN, .request_id = lease_id };

	envelope.error = text_of(reason ? reason : "");
	agent_send(agent, &envelope);
}

static void take_envelope(struct agent *agent, const struct envelope *envelope)
{
	switch (envelope->kind) {
	case ENVELOPE_MESSAGE:
		agent_take_message(agent, envelope->message);
		break;
	case ENVELOPE_OUTPUT_REQUEST:
		follows_request(agent->follows, &envelope->request);
		break;
	case ENVELOPE_OUTPUT_TAKEN:
		follows_taken(agent->follows, envelope->request_id, envelope->taken);
		break;
	case ENVELOPE_OUTPUT_STOP:
		follows_stop(agent->follows, envelope->request_id);
		break;
	case ENVELOPE_INPUT_CHUNK:
		inputs_take(agent->inputs, &envelope->input);
		break;
	case ENVELOPE_INPUT_STOP:
		inputs_stop(agent->inputs, envelope->request_id);
		break;
	case ENVELOPE_SESSION_OPEN:
		session_links_open(agent->sessions, &envelope->session);
		break;
	case ENVELOPE_SESSION_DATA:
		session_links_data(agent->sessions, envelope->request_id, envelope->session_frame);
		break;
	case ENVELOPE_SESSION_CLOSE:
		session_links_close(agent->sessions, envelope->request_id);
		break;
	case ENVELOPE_LEASE_KEYS:
		works_take_leases(agent->works, &envelope->leases, lease_taken, agent);
		break;
	case ENVELOPE_SETTINGS:
		take_settings(agent, &envelope->settings);
		break;
	default:
		break;
	}
}

static void received(void *context, struct text message)
{
	struct arena arena = { 0 };
	struct envelope envelope;

	if (envelope_decode(message, &arena, &envelope))
		take_envelope(context, &envelope);
	else
		log_at(LOG_WARNING, "the scheduler sent what is not an envelope");
	arena_free(&arena);
}

/* The scheduler must know it before anyone is sent to the slot. */
static void tell_key(struct agent *agent, int64_t reservation_id)
{
	struct envelope envelope = { .kind = ENVELOPE_SLOT_KEY, .reservation_id = reservation_id };
	struct works_slot slot;

	if (!works_slot(agent->works, reservation_id, &slot) || !slot.client_key)
		return;
	envelope.key = text_of(slot.client_key);
	envelope.certificate = text_of(slot.certificate ? slot.certificate : "");
	envelope.tls_only = slot.tls_only;
	envelope.has_lease_keys = works_has_lease_keys(agent->works, reservation_id);
	agent_send(agent, &envelope);
	explicit_bzero(agent->packing.data, agent->packing.capacity);
}

static void tell_keys(struct agent *agent)
{
	for (size_t i = 0; i < node_work_count(agent->node); i++)
		tell_key(agent, node_work(agent->node, i).kept->reservation_id);
}

static void work_happened(void *context, enum input_kind kind, const struct work_event *event)
{
	struct agent *agent = context;
	struct works_slot slot;

	if (kind == INPUT_STARTED && works_slot(agent->works, event->reservation_id, &slot))
		slots_watch(agent->slots, event->reservation_id, &slot);
	if (kind == INPUT_EXITED || kind == INPUT_GONE || kind == INPUT_NOT_STARTED)
		slots_forget(agent->slots, event->reservation_id);
	if (kind == INPUT_READY)
		tell_key(agent, event->reservation_id);
	if (kind == INPUT_GONE)
		inputs_forget(agent->inputs, event->reservation_id);
	agent_apply(agent, (struct input){ .kind = (int32_t)kind, .event = *event });
}

static void agent_measured(void *context, const struct measured *measured)
{
	struct agent *agent = context;
	struct measured all = *measured;
	size_t count = (size_t)measured->process_count;

	buffer_clear(&agent->processes);
	buffer_clear(&agent->guards);
	buffer_clear(&agent->hidden);
	buffer_bytes(&agent->processes, measured->processes, count * sizeof(*measured->processes));
	struct process_reading *processes = (void *)agent->processes.data;
	works_guards(agent->works, processes, count, &agent->guards, &agent->hidden);
	all.processes = processes;
	all.guards = (const void *)agent->guards.data;
	all.guard_count = (int64_t)(agent->guards.size / sizeof(struct guard_reading));
	all.hidden = (const void *)agent->hidden.data;
	all.hidden_count = (int64_t)(agent->hidden.size / sizeof(struct hidden_reading));
	works_count_clients(agent->works, &all);
	agent_apply(agent, (struct input){ .kind = INPUT_MEASURED, .measured = all });
	if (agent->driver)
		driver_measured(agent->driver, &all);
	if (agent->plugins)
		plugins_measured(agent->plugins, &all);
}

static bool has_room(void *context)
{
	struct agent *agent = context;

	return uplink_waiting(agent->link) < ROOM_BYTES;
}

static void send_envelope(void *context, const struct envelope *envelope)
{
	struct agent *agent = context;

	agent_send(agent, envelope);
}

static void session_typed(void *context, int64_t reservation_id)
{
	agent_apply(context, (struct input){ .kind = INPUT_SESSION,
	                                     .event = { .reservation_id = reservation_id } });
}

static bool agent_load(void *context, int64_t key, const void *data, size_t size,
                       struct error *error)
{
	return node_load(context, key, data, size, error);
}

static bool recall(struct agent *agent, struct error *error)
{
	struct agent_settings *settings = &agent->settings;
	struct node_identity identity = settings->identity;

	host_read(&agent->host);
	if (!identity.boot || !*identity.boot)
		identity.boot = agent->host.boot;
	if (identity.cpu_milli <= 0)
		identity.cpu_milli = agent->host.cpu_milli;
	if (identity.host_bytes <= 0)
		identity.host_bytes = agent->host.memory_bytes;
	agent->state = state_open(settings->state_directory, error);
	if (!agent->state)
		return false;
	agent->keys = vault_keys(state_directory(agent->state), error);
	if (!agent->keys)
		return false;
	settings->run.keys = agent->keys;
	const char *instance = state_instance(agent->state);
	agent->label = file_path("%s%s%s", identity.name, *instance ? "-" : "", instance);
	settings->run.label = agent->label;
	agent->folders = folder_base(state_directory(agent->state), agent->label);
	settings->run.folders = agent->folders;
	if (settings->mps_control) {
		agent->mps =
		    mps_new(&(struct mps_settings){ .program = settings->mps_control,
		                                    .label = agent->label,
		                                    .memory_mib = settings->mps_memory_mib });
		settings->run.mps = agent->mps;
	}
	agent->homes = tenant_users_homes(state_directory(agent->state), agent->label);
	settings->run.homes = agent->homes;
	agent->node = node_new(&identity, &settings->policy);
	return state_each(agent->state, agent_load, agent->node, error);
}

static void make_parts(struct agent *agent, struct gpu_source *source)
{
	struct works_settings works = { .loop = agent->loop,
		                        .state_directory = state_directory(agent->state),
		                        .keeper = agent->settings.keeper,
		                        .cgroups = &agent->cgroups,
		                        .source = source,
		                        .run = agent->settings.run,
		                        .event = work_happened,
		                        .context = agent };
	struct follows_settings follows = { .loop = agent->loop,
		                            .state_directory = state_directory(agent->state),
		                            .has_room = has_room,
		                            .send = send_envelope,
		                            .context = agent };

	agent->works = works_new(&works);
	follows.works = agent->works;
	agent->follows = follows_new(&follows);
	struct session_links_settings sessions = { .loop = agent->loop,
		                                   .works = agent->works,
		                                   .has_room = has_room,
		                                   .send = send_envelope,
		                                   .typed = session_typed,
		                                   .context = agent };
	agent->sessions = session_links_new(&sessions);
	agent->inputs = inputs_new(agent->loop, agent->works, send_envelope, agent);
	agent->slots = slots_new(agent->loop, agent->settings.run.address, work_happened, agent);
	agent->measurements = measurements_new(agent->loop, source, agent->works, &agent->cgroups,
	                                       agent->mps, agent_measured, agent);
}

static void own_handle(struct agent *agent, uv_handle_t *handle)
{
	handle->data = agent;
	agent->handles++;
}

static void make_handles(struct agent *agent)
{
	uv_timer_init(agent->loop, &agent->wake);
	uv_timer_init(agent->loop, &agent->look);
	uv_prepare_init(agent->loop, &agent->prepare);
	uv_check_init(agent->loop, &agent->check);
	uv_signal_init(agent->loop, &agent->children);
	own_handle(agent, (uv_handle_t *)&agent->wake);
	own_handle(agent, (uv_handle_t *)&agent->look);
	own_handle(agent, (uv_handle_t *)&agent->prepare);
	own_handle(agent, (uv_handle_t *)&agent->check);
	own_handle(agent, (uv_handle_t *)&agent->children);
	uv_prepare_start(&agent->prepare, before_waiting);
	uv_check_start(&agent->check, after_waiting);
	uv_signal_start(&agent->children, children_ended, SIGCHLD);
	uv_timer_start(&agent->look, agent_look, LOOK_MS, LOOK_MS);
}

/* Work that an earlier agent left: the node decides about it, and what it keeps is watched
 * from now on. */
static void restart(struct agent *agent)
{
	struct input input = { .kind = INPUT_RESTART };
	struct found *found = works_found(agent->works, &input.restart.found_count);
	struct works_slot slot;

	input.restart.found = found;
	input.restart.lease_until_ms = state_lease(agent->state);
	agent_apply(agent, input);
	free(found);
	for (size_t i = 0; i < node_work_count(agent->node); i++) {
		struct work_view view = node_work(agent->node, i);
		works_adopt(agent->works, view.order, view.kept);
		if (!view.kept->gone && works_slot(agent->works, view.kept->reservation_id, &slot))
			slots_watch(agent->slots, view.kept->reservation_id, &slot);
	}
	works_sweep(agent->works);
}

static bool make_driver(struct agent *agent, struct gpu_source *source, struct error *error)
{
	struct driver_parts parts = { .loop = agent->loop,
		                      .node = agent->settings.identity.name,
		                      .state_directory = state_directory(agent->state),
		                      .policy = &agent->settings.policy,
		                      .local = agent->node,
		                      .measurements = agent->measurements,
		                      .source = source };

	if (agent->settings.driver.plugins != PLUGINS_NONE)
		agent->plugins = plugins_new(&(struct plugins_settings){
		    .loop = agent->loop,
		    .of = agent->settings.driver.plugins,
		    .kubelet_directory = agent->settings.driver.kubelet_directory,
		    .root = agent->settings.driver.root,
		    .source = source });
	if (!agent->settings.driver.is_on)
		return true;
	agent->driver = driver_new(&agent->settings.driver, &parts, error);
	return agent->driver != NULL;
}

static bool make_link(struct agent *agent, struct error *error)
{
	struct uplink_settings settings = agent->settings.link;

	settings.loop = agent->loop;
	settings.path = "/agent.AgentService/Connect";
	settings.user_agent = "gpu-agent/" GPU_SCHEDULER_VERSION;
	settings.connected = connected;
	settings.disconnected = disconnected;
	settings.received = received;
	settings.context = agent;
	agent->link = uplink_new(&settings, error);
	return agent->link != NULL;
}

static void agent_describe(const struct agent *agent, const struct gpu_source *source)
{
	struct buffer text = { 0 };

	cgroups_describe(&agent->cgroups, &text);
	log_at(LOG_INFO, text.data, LOG_TEXT("node", agent->settings.identity.name),
	       LOG_TEXT("gpus", source->kind->name),
	       LOG_NUMBER("works", (int64_t)node_work_count(agent->node)));
	buffer_free(&text);
}

static bool check_ports(const struct run_settings *run, struct error *error)
{
	return run->port_first <= run->port_last ||
	       error_set(error, ERROR_INVALID,
	                 "--model-port-first %lld is above --model-port-last %lld",
	                 (long long)run->port_first, (long long)run->port_last);
}

/* A certificate that cannot be used fails the start of the agent, not that of the first slot. */
static bool check_certificate(const struct run_settings *run, struct error *error)
{
	struct slot_certificate certificate;

	if (!run->slot_cert_file != !run->slot_key_file)
		return error_set(error, ERROR_INVALID,
		                 "--slot-cert-file and --slot-key-file belong together");
	if (!run->slot_cert_file)
		return true;
	if (!slot_certificate_read(run->slot_cert_file, run->slot_key_file, &certificate, error))
		return false;
	slot_certificate_free(&certificate);
	return true;
}

/* Only root may. In the network of the node a server's port is open to everyone on it. */
static void isolate_slots(struct run_settings *run)
{
	run->slot_networks = run->slot_networks && keeper_proxy_can_isolate();
	if (!run->slot_networks)
		log_at(LOG_INFO, "servers of models listen on loopback of the node: its users can "
		                 "reach them without a key");
}

struct agent *agent_new(uv_loop_t *loop, const struct agent_settings *settings,
                        struct gpu_source *source, struct error *error)
{
	struct agent *agent = NEW(struct agent);

	agent->loop = loop;
	agent->settings = *settings;
	if (!check_ports(&settings->run, error) || !check_certificate(&settings->run, error) ||
	    !recall(agent, error) || !make_link(agent, error)) {
		if (agent->node)
			node_delete(agent->node);
		if (agent->state)
			state_close(agent->state);
		secret_keys_free(agent->keys);
		mps_free(agent->mps);
		free(agent->label);
		free(agent->folders);
		free(agent->homes);
		gpu_source_close(source);
		free(agent);
		return NULL;
	}
	isolate_slots(&agent->settings.run);
	cgroups_open(&agent->cgroups, agent->label, settings->cgroup_parent);
	cgroups_limit_pids(&agent->cgroups, settings->pids_total);
	make_parts(agent, source);
	make_handles(agent);
	restart(agent);
	set_alarm(agent);
	agent_describe(agent, source);
	if (make_driver(agent, source, error))
		return agent;
	agent_free(agent);
	return NULL;
}

static void handle_closed(uv_handle_t *handle)
{
	struct agent *agent = handle->data;

	if (--agent->handles > 0)
		return;
	node_delete(agent->node);
	outputs_free(&agent->outputs);
	arena_free(&agent->messages);
	buffer_free(&agent->processes);
	buffer_free(&agent->guards);
	buffer_free(&agent->hidden);
	buffer_free(&agent->packing);
	state_wipe(agent->state, NULL);
	state_close(agent->state);
	cgroups_close(&agent->cgroups);
	secret_keys_free(agent->keys);
	free(agent->label);
	free(agent->folders);
	free(agent->homes);
	free(agent);
}

void agent_free(struct agent *agent)
{
	driver_free(agent->driver);
	plugins_free(agent->plugins);
	uplink_free(agent->link);
	follows_free(agent->follows);
	inputs_free(agent->inputs);
	session_links_free(agent->sessions);
	slots_free(agent->slots);
	measurements_free(agent->measurements);
	works_free(agent->works);
	uv_close((uv_handle_t *)&agent->wake, handle_closed);
	uv_close((uv_handle_t *)&agent->look, handle_closed);
	uv_close((uv_handle_t *)&agent->prepare, handle_closed);
	uv_close((uv_handle_t *)&agent->check, handle_closed);
	uv_close((uv_handle_t *)&agent->children, handle_closed);
}

const struct local_node *agent_node(const struct agent *agent)
{
	return agent->node;
}
