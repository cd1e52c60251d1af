/* run.c - from an order to what a keeper is told: command, environment, user, limits */
#include "agent/workload/run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/host/environment.h"
#include "agent/host/vault.h"
#include "agent/workload/container.h"
#include "agent/workload/guarding.h"
#include "agent/workload/slot_command.h"
#include "agent/workload/user.h"
#include "base/number.h"
#include "json/json_reader.h"
#include "json/member.h"

#define PAYLOAD_BYTES ((size_t)32 << 20)
#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define MASTER_PORT_FIRST 29500
#define MASTER_PORTS 2000

/* The payload while it is read. */
struct reading {
	struct arena *arena;
	const struct run_settings *settings;
	const struct node_order *order;
	const json_t *payload;
	json_t *secrets;                /* variables that nobody else may see */
	struct environment environment; /* the task's */
	struct run_plan *plan;
	const char *home;
};

static const char *text_in(const struct reading *reading, const char *name)
{
	const char *text = member_text(reading->payload, name);

	return *text ? arena_string(reading->arena, text) : NULL;
}

static json_t *run_read_payload(const char *payload, struct error *error)
{
	struct json_limits limits = { .bytes = PAYLOAD_BYTES, .depth = 32, .values = 1000000 };

	if (!payload || !*payload)
		return json_object();
	return json_read(text_of(payload), &limits, error);
}

static void set_variables(struct reading *reading, json_t *variables)
{
	const char *key;
	json_t *value;

	json_object_foreach(variables, key,
	                    value) if (json_is_string(value) && *key && !strchr(key, '='))
	    environment_set(&reading->environment, key, json_string_value(value));
}

static void append_arguments(const struct reading *reading, const char *name, char **list,
                             size_t *count)
{
	const json_t *array = json_object_get(reading->payload, name);

	for (size_t i = 0; i < json_array_size(array); i++)
		if (json_is_string(json_array_get(array, i)))
			list[(*count)++] = arena_string(
			    reading->arena, json_string_value(json_array_get(array, i)));
}

static void set_command(struct reading *reading)
{
	size_t most = json_array_size(json_object_get(reading->payload, "command")) +
	              json_array_size(json_object_get(reading->payload, "args"));
	char **list = arena_alloc(reading->arena, (most + 1) * sizeof(*list));
	size_t count = 0;

	reading->plan->spec.script = text_in(reading, "script");
	append_arguments(reading, "command", list, &count);
	append_arguments(reading, "args", list, &count);
	list[count] = NULL;
	reading->plan->spec.arguments = list;
}

/* Allocated GPUs replace what anyone asked to see. */
static void set_gpus(const struct reading *reading, struct environment *environment)
{
	const struct node_order *order = reading->order;
	struct buffer uuids = { 0 }, memory = { 0 };
	int64_t least_mib = INT64_MAX;

	for (int64_t i = 0; i < order->part_count; i++) {
		buffer_print(&uuids, "%s%s", i > 0 ? "," : "", order->parts[i].uuid);
		buffer_print(&memory, "%s%lld", i > 0 ? "," : "",
		             (long long)order->parts[i].memory_mib);
		least_mib = min64(least_mib, order->parts[i].memory_mib);
	}
	buffer_text(&uuids, "");
	environment_set(environment, "CUDA_VISIBLE_DEVICES", uuids.data);
	environment_set(environment, "NVIDIA_VISIBLE_DEVICES",
	                order->part_count > 0 ? uuids.data : "void");
	environment_set(environment, "GPU_SCHEDULER_GPUS", uuids.data);
	environment_set_number(environment, "GPU_SCHEDULER_GPU_COUNT", order->part_count);
	if (order->part_count > 0) {
		environment_set_number(environment, "GPU_SCHEDULER_GPU_MEMORY_MIB", least_mib);
		environment_set(environment, "GPU_SCHEDULER_GPU_MEMORY_MIB_EACH", memory.data);
	}
	buffer_free(&uuids);
	buffer_free(&memory);
}

static void set_identity(const struct reading *reading, struct environment *environment)
{
	const struct node_order *order = reading->order;
	struct buffer job = { 0 };
	const char *tenant = text_in(reading, "tenant");

	buffer_print(&job, "job-%lld", (long long)order->job_id);
	environment_set(environment, "GPU_SCHEDULER_NODE", reading->settings->node);
	environment_set_number(environment, "GPU_SCHEDULER_RESERVATION", order->reservation_id);
	if (tenant)
		environment_set(environment, "GPU_SCHEDULER_TENANT", tenant);
	if (order->kind == ORDER_START) {
		environment_set(environment, "GPU_SCHEDULER_JOB_ID", job.data);
		environment_set_number(environment, "GPU_SCHEDULER_TASK", order->task);
		environment_set_number(environment, "GPU_SCHEDULER_TASKS", order->tasks);
	}
	if (order->cpu_milli > 0)
		environment_set_number(environment, "GPU_SCHEDULER_CPU_MILLI", order->cpu_milli);
	if (order->host_bytes > 0)
		environment_set_number(environment, "GPU_SCHEDULER_MEMORY_BYTES",
		                       order->host_bytes);
	if (order->max_runtime_ms > 0)
		environment_set_number(environment, "GPU_SCHEDULER_MAX_RUNTIME_SECONDS",
		                       order->max_runtime_ms / 1000);
	environment_set_number(environment, "GPU_SCHEDULER_GRACE_SECONDS", order->grace_ms / 1000);
	buffer_free(&job);
}

/* Its place in its array, also under the name that scripts for Slurm read. */
static void set_array(struct reading *reading)
{
	struct environment *environment = &reading->environment;
	const json_t *array = json_object_get(reading->payload, "array");
	int64_t count = member_integer(array, "count");
	char index[32];

	if (!array)
		return;
	snprintf(index, sizeof(index), "%lld", (long long)member_integer(array, "index"));
	environment_set(environment, "GPU_SCHEDULER_ARRAY_JOB_ID", member_text(array, "job"));
	environment_set(environment, "GPU_SCHEDULER_ARRAY_INDEX", index);
	environment_default(environment, "SLURM_ARRAY_TASK_ID", index);
	if (count == 0)
		return;
	environment_set_number(environment, "GPU_SCHEDULER_ARRAY_FIRST",
	                       member_integer(array, "first"));
	environment_set_number(environment, "GPU_SCHEDULER_ARRAY_LAST",
	                       member_integer(array, "last"));
	environment_set_number(environment, "GPU_SCHEDULER_ARRAY_COUNT", count);
}

/* Each task sees its own GPUs alone, so it is a node of its own to torchrun and its like. */
static void set_gang(struct reading *reading)
{
	const struct node_order *order = reading->order;
	struct environment *environment = &reading->environment;
	const json_t *gang = json_object_get(reading->payload, "gang");
	const json_t *addresses = json_object_get(gang, "addresses");
	const char *master = json_string_value(json_array_get(addresses, 0));
	int64_t port = member_integer(gang, "port");
	struct buffer list = { 0 };
	char number[32];

	if (order->kind != ORDER_START)
		return;
	for (size_t i = 0; i < json_array_size(addresses); i++) {
		const char *address = json_string_value(json_array_get(addresses, i));
		buffer_print(&list, "%s%s", i > 0 ? "," : "", address ? address : "");
	}
	if (port <= 0)
		port = MASTER_PORT_FIRST + order->job_id % MASTER_PORTS;
	snprintf(number, sizeof(number), "%lld", (long long)port);
	environment_set_number(environment, "RANK", order->task);
	environment_set_number(environment, "WORLD_SIZE", max64(order->tasks, 1));
	environment_set_number(environment, "NODE_RANK", order->task);
	environment_set_number(environment, "GROUP_RANK", order->task);
	environment_set_number(environment, "NNODES", max64(order->tasks, 1));
	environment_default(environment, "LOCAL_RANK", "0");
	environment_default(environment, "LOCAL_WORLD_SIZE", "1");
	environment_default(environment, "MASTER_ADDR", master && *master ? master : "127.0.0.1");
	environment_default(environment, "MASTER_PORT", number);
	if (list.size > 0)
		environment_set(environment, "GPU_SCHEDULER_NODES", list.data);
	buffer_free(&list);
}

static int64_t run_number_of(const struct environment *environment, const char *name)
{
	const char *text = environment_get(environment, name);

	return text && *text ? max64(atoll(text), 0) : -1;
}

static int64_t signal_of(const char *name)
{
	static const struct {
		const char *name;
		int number;
	} signals[] = {
		{ "USR1", SIGUSR1 }, { "USR2", SIGUSR2 }, { "INT", SIGINT }, { "HUP", SIGHUP }
	};

	for (size_t i = 0; name && i < sizeof(signals) / sizeof(*signals); i++)
		if (strcmp(name, signals[i].name) == 0 ||
		    (strncmp(name, "SIG", 3) == 0 && strcmp(name + 3, signals[i].name) == 0))
			return signals[i].number;
	return 0;
}

/* A job asks for the guard by its label: guard=always. */
static bool wants_guard(const struct reading *reading)
{
	const json_t *labels = json_object_get(reading->payload, "labels");

	return strcmp(member_text(labels, "guard"), "always") == 0;
}

static void set_guard(struct reading *reading)
{
	reading->plan->guarded =
	    guarding_is_due(reading->settings, reading->order, wants_guard(reading));
	guarding_prepare(reading->settings, reading->order, reading->plan, &reading->environment);
}

/* What prolog and epilog are told. They run as the agent's user, so nothing here may be of the
 * task's choosing: no variable that a loader, a shell or an interpreter reads, and no path. */
static char **hook_environment(const struct reading *reading)
{
	struct environment hook = { .arena = reading->arena };
	const struct spec *spec = &reading->plan->spec;
	const char *user = environment_get(&reading->environment, "USER");

	environment_set(&hook, "PATH", DEFAULT_PATH);
	environment_set(&hook, "HOME", "/");
	environment_set(&hook, "SHELL", "/bin/sh");
	set_gpus(reading, &hook);
	set_identity(reading, &hook);
	if (user)
		environment_set(&hook, "GPU_SCHEDULER_USER", user);
	environment_set_number(&hook, "GPU_SCHEDULER_UID",
	                       spec->uid >= 0 ? spec->uid : (int64_t)geteuid());
	return environment_finish(&hook);
}

/* PATH and who the user is, before anything that the task chose. */
static char **own_environment(const struct reading *reading)
{
	const struct environment *made = &reading->environment;
	struct environment copy = { .arena = reading->arena };

	for (size_t i = 0; i < made->count; i++)
		environment_add(&copy, made->at[i]);
	return environment_finish(&copy);
}

static bool run_open_up(struct reading *reading, struct error *error)
{
	struct run_plan *plan = reading->plan;
	const struct run_settings *settings = reading->settings;
	struct environment *environment = &reading->environment;

	environment->arena = reading->arena;
	plan->spec.uid = plan->spec.gid = -1;
	plan->spec.reservation_id = reading->order->reservation_id;
	plan->spec.grace_ms = reading->order->grace_ms;
	plan->spec.runtime_ms = reading->order->max_runtime_ms;
	plan->spec.prolog = settings->prolog;
	plan->spec.epilog = settings->epilog;
	plan->spec.open_files = settings->open_files;
	plan->spec.keeps_privileges = settings->keep_privileges;
	plan->spec.output = settings->output;
	plan->spec.errors_apart = settings->errors_apart;
	reading->secrets =
	    vault_open(settings->keys, reading->order->reservation_id, reading->payload, error);
	if (!reading->secrets)
		return false;
	environment_set(environment, "PATH", DEFAULT_PATH);
	if (!user_apply(settings, text_in(reading, "user"), text_in(reading, "tenant"), &plan->spec,
	                environment, &reading->home, error))
		return false;
	plan->spec.hook_environment = hook_environment(reading);
	plan->spec.clean_up_environment = own_environment(reading);
	set_variables(reading, json_object_get(reading->payload, "environment"));
	set_variables(reading, reading->secrets);
	set_gpus(reading, environment);
	set_identity(reading, environment);
	set_gang(reading);
	set_array(reading);
	return true;
}

/* What the task can only have got wrong: nothing of it is run. */
static bool run_give_up(struct reading *reading, const char *name, const char *value,
                        const char *what)
{
	struct spec *spec = &reading->plan->spec;
	struct buffer text = { 0 };

	buffer_print(&text, "%s is '%s', which is not %s", name, value, what);
	spec->failure = arena_string(reading->arena, text.data);
	spec->arguments = arena_copy(reading->arena, &(char *){ NULL }, sizeof(char *));
	spec->script = spec->checkpoint_path = NULL;
	buffer_free(&text);
	return false;
}

/* A path is never meant from where the agent happens to have been started, and an image is never
 * an option of the runtime. */
static bool check_names(struct reading *reading)
{
	static const char *const paths[] = { "working_directory", "submit_directory",
		                             "checkpoint_path" };
	const char *image = text_in(reading, "image");

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		const char *path = text_in(reading, paths[i]);
		if (path && *path != '/')
			return run_give_up(reading, paths[i], path, "an absolute path");
	}
	return !image || *image != '-' ||
	       run_give_up(reading, "image", image, "the name of an image");
}

/* The first task of a job or all of them, as the job says. */
static bool reads_input(const struct reading *reading)
{
	const char *tasks = member_text(reading->payload, "standard_input");

	return strcmp(tasks, "all") == 0 ||
	       (strcmp(tasks, "first") == 0 && reading->order->task == 0);
}

static bool has_terminal(const struct reading *reading)
{
	return strcmp(member_text(reading->payload, "standard_input"), "terminal") == 0 &&
	       reading->order->task == 0;
}

/* A task with a share of its GPU's compute is a client of the daemon there. */
static bool set_compute(struct reading *reading, struct error *error)
{
	const struct node_order *order = reading->order;
	int64_t compute = member_integer(reading->payload, "compute");
	int64_t processes = max64(member_integer(reading->payload, "gpu_processes"), 1);
	const char *pipe = NULL;
	char percent[24];

	if (compute <= 0)
		return true;
	if (compute > WHOLE_GPU || order->part_count != 1)
		return error_set(error, ERROR_INVALID, "no share of compute can be %lld of %lld",
		                 (long long)compute, (long long)order->part_count);
	if (!reading->settings->mps)
		return error_set(error, ERROR_UNAVAILABLE,
		                 "this node gives no shares of compute: its agent runs without "
		                 "--compute-shares mps");
	pipe = mps_join(reading->settings->mps, order->parts[0].uuid,
	                member_integer(reading->payload, "sharer"), error);
	if (!pipe)
		return false;
	/* Each process may use the percentage that it begins with, however many there are. In
	 * hundredths of a percent, rounded down. */
	int64_t each = max64(10 * compute / processes, 1);
	snprintf(percent, sizeof(percent), "%lld.%02lld", (long long)each / 100,
	         (long long)each % 100);
	reading->plan->gpu_processes = processes;
	environment_set(&reading->environment, "CUDA_MPS_PIPE_DIRECTORY", pipe);
	environment_set(&reading->environment, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percent);
	environment_set_number(&reading->environment, "GPU_SCHEDULER_GPU_COMPUTE_MILLI", compute);
	return true;
}

static void run_finish(struct reading *reading)
{
	struct run_plan *plan = reading->plan;
	struct environment *environment = &reading->environment;

	plan->spec.directory = text_in(reading, "working_directory");
	plan->spec.home = reading->home;
	if (!plan->spec.directory && !plan->container)
		plan->spec.submit_directory = text_in(reading, "submit_directory");
	plan->fake_memory_mib = run_number_of(environment, "FAKE_GPU_MEMORY_MIB");
	plan->fake_utilisation = run_number_of(environment, "FAKE_GPU_UTILISATION");
	const char *suspend = environment_get(environment, "FAKE_GPU_SUSPEND");
	plan->fake_suspend = suspend ? arena_string(reading->arena, suspend) : NULL;
	plan->spec.environment = environment_finish(environment);
}

bool run_plan_task(struct arena *arena, const struct run_settings *settings,
                   const struct node_order *order, struct run_plan *plan, struct error *error)
{
	json_t *payload = run_read_payload(order->payload, error);
	struct reading reading = { .arena = arena,
		                   .settings = settings,
		                   .order = order,
		                   .payload = payload,
		                   .plan = plan };
	bool good = payload != NULL;

	*plan = (struct run_plan){ 0 };
	good = good && run_open_up(&reading, error);
	if (good) {
		struct container_order container = {
			.image = text_in(&reading, "image"),
			.directory = text_in(&reading, "working_directory"),
			.secrets = reading.secrets,
		};
		set_command(&reading);
		plan->spec.checkpoint_path = text_in(&reading, "checkpoint_path");
		plan->notice_signal = signal_of(text_in(&reading, "checkpoint_signal"));
		if (plan->spec.checkpoint_path)
			environment_set(&reading.environment, "GPU_SCHEDULER_CHECKPOINT_PATH",
			                plan->spec.checkpoint_path);
		plan->container = container.image != NULL;
		plan->reads_input = reads_input(&reading);
		plan->spec.terminal = has_terminal(&reading);
		set_guard(&reading);
		good = set_compute(&reading, error);
		run_finish(&reading);
		if (check_names(&reading) && plan->container && good)
			good = container_plan(arena, settings, order, &container, plan, error);
	}
	free(reading.environment.at);
	vault_forget(reading.secrets);
	json_decref(payload);
	return good;
}

/* What a client may say about its terminal and its language. */
static bool is_of_terminal(const char *variable)
{
	static const char *const names[] = { "TERM=", "COLORTERM=", "LANG=", "LC_ALL=", "TZ=" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strncmp(variable, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* Those that a client may set. */
static char **session_variables(struct arena *arena, const struct session_open *open)
{
	struct environment environment = { .arena = arena };

	for (char **variable = open->environment; *variable; variable++)
		if (is_of_terminal(*variable))
			environment_add(&environment, arena_string(arena, *variable));
	return environment_finish(&environment);
}

bool run_plan_session(struct arena *arena, const struct run_settings *settings,
                      const struct node_order *order, const struct session_open *open,
                      struct spec *command, struct error *error)
{
	char **variables = session_variables(arena, open);
	struct environment environment = { .arena = arena };
	struct run_plan plan;

	if (!open->command[0])
		return error_set(error, ERROR_INVALID, "no command given");
	if (!run_plan_task(arena, settings, order, &plan, error))
		return false;
	if (plan.spec.failure)
		return error_set(error, ERROR_CONFLICT, "%s", plan.spec.failure);
	*command = plan.spec;
	command->script = NULL;
	/* A spec is not complete without; the keeper has its own. */
	command->status_path = command->output_directory = "";
	if (plan.container) {
		container_session(arena, open, variables, command);
		return true;
	}
	command->arguments = open->command;
	for (char **variable = plan.spec.environment; *variable; variable++)
		environment_add(&environment, *variable);
	for (char **variable = variables; *variable; variable++)
		environment_add(&environment, *variable);
	command->environment = environment_finish(&environment);
	return true;
}

/* slot_command.c has what is special about slots. */
bool run_plan_slot(struct arena *arena, const struct run_settings *settings,
                   const struct node_order *order, struct run_plan *plan, struct error *error)
{
	json_t *payload = run_read_payload(order->payload, error);
	struct reading reading = { .arena = arena,
		                   .settings = settings,
		                   .order = order,
		                   .payload = payload,
		                   .plan = plan };
	bool good = payload != NULL;

	*plan = (struct run_plan){ 0 };
	good = good && run_open_up(&reading, error);
	if (good) {
		set_guard(&reading);
		good = slot_command_plan(arena, settings, order, payload, &reading.environment,
		                         plan, error);
		run_finish(&reading);
	}
	free(reading.environment.at);
	vault_forget(reading.secrets);
	json_decref(payload);
	return good;
}
