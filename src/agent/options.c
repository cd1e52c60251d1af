/* options.c - what gpu-agent is told on its command line and by its environment */
#include "agent/options.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/gpu/dcgm.h"
#include "agent/gpu/time_slices.h"
#include "agent/host/file.h"
#include "agent/host/host.h"
#include "agent/host/labels.h"
#include "base/log.h"
#include "base/number.h"
#include "base/options.h"
#include "core/record/orchestrator.h"

#define MIB (INT64_C(1) << 20)
#define PIDS_MOST 32768 /* of a task, unless it is said */

/* What is not in the settings as it is told. */
struct told {
	const char *schedulers, *overuse, *unguarded, *guard, *privileges, *uids, *slot_network,
	    *slot_tls, *plugins, *compute_shares;
	int64_t verbosity;
	bool help, version, kubernetes;
};

struct place {
	struct options options;
	struct told told;
};

/* What is on the command line takes precedence over the environment, and the last over the others,
 * so that a unit file's options can be overridden by appending to them. */
#define TEXT_OPTION(name, value, member, help)                                                     \
	OPTION("--" name, NULL, value, help, .repeats = true, STORES_TEXT(struct place, member))
#define WORD_OPTION(name, value, member, words_, help)                                             \
	OPTION("--" name, NULL, value, help, .repeats = true, STORES_TEXT(struct place, member),   \
	       .words = (words_))
#define FLAG_OPTION(name, member, help)                                                            \
	OPTION("--" name, NULL, NULL, help, .repeats = true, STORES_FLAG(struct place, member))
#define NUMBER_OPTION(name, value, member, its_least, its_most, its_unit, help)                    \
	OPTION("--" name, NULL, value, help, .repeats = true, .unit = (its_unit),                  \
	       STORES_NUMBER(struct place, member, its_least, its_most))

static const struct option table[] = {
	TEXT_OPTION("scheduler", "HOST:PORT[,...]", told.schedulers,
	            "gRPC addresses of the schedulers (default: 127.0.0.1:9090)"),
	TEXT_OPTION("name", "NODE", options.agent.identity.name,
	            "name of this node (default: the host's name)"),
	TEXT_OPTION("state", "DIR", options.agent.state_directory,
	            "state directory (default: /var/lib/gpu-agent)"),
	TEXT_OPTION("token-file", "FILE", options.agent.link.token_file, "the node's token"),
	FLAG_OPTION("tls", options.agent.link.tls, "connect with TLS"),
	TEXT_OPTION("ca-file", "FILE", options.agent.link.ca_file,
	            "certificate authorities to trust"),
	TEXT_OPTION("cert-file", "FILE", options.agent.link.cert_file, "the agent's certificate"),
	TEXT_OPTION("key-file", "FILE", options.agent.link.key_file,
	            "key of the agent's certificate"),
	TEXT_OPTION("server-name", "NAME", options.agent.link.server_name,
	            "name in the scheduler's certificate"),
	TEXT_OPTION("address", "ADDRESS", options.agent.run.address,
	            "address of this node for other nodes and clients"),
	TEXT_OPTION("zone", "NAME", options.agent.identity.zone, "zone of the node"),
	TEXT_OPTION("rack", "NAME", options.agent.identity.rack, "rack of the node"),
	TEXT_OPTION("labels", "K=V[,...]", options.agent.identity.labels, "labels of the node"),
	TEXT_OPTION("boot", "ID", options.agent.identity.boot,
	            "boot id to use instead of the machine's"),
	NUMBER_OPTION("cpus", "N", options.agent.identity.cpu_milli, 1, 65536, 1000,
	              "CPUs to offer (default: all)"),
	NUMBER_OPTION("memory-mib", "N", options.agent.identity.host_bytes, 1, INT64_C(1) << 28,
	              MIB, "host memory to offer, in MiB (default: all)"),
	TEXT_OPTION("fake-gpus", "SPEC", options.fake_gpus, "simulated GPUs: 8x80G[,4x24G:A10]"),
	FLAG_OPTION("no-gpus", options.no_gpus, "do not look for GPUs"),
	TEXT_OPTION("nvml", "FILE", options.nvml_library,
	            "NVIDIA's library, if it is not in the usual place"),
	TEXT_OPTION("dcgm-exporter", "URL", options.dcgm.exporter,
	            "DCGM exporter, for health and profiling: http://localhost:9400/metrics"),
	TEXT_OPTION("dcgm", "HOST[:PORT]", options.dcgm.engine,
	            "DCGM's host engine, instead of the exporter: localhost"),
	TEXT_OPTION("dcgm-library", "FILE", options.dcgm.library,
	            "DCGM's library (default: libdcgm.so.4 or libdcgm.so.3)"),
	TEXT_OPTION("device-plugin-config", "FILE", options.device_plugin_config,
	            "configuration of Kubernetes' device plugin, for time slices"),
	TEXT_OPTION("user", "NAME", options.agent.run.default_user,
	            "runs tasks without a user, if the agent is root (default: a user for each "
	            "tenant, from --uid-range)"),
	TEXT_OPTION("uid-range", "FIRST-LAST|none", told.uids,
	            "user ids for tenants without a user (default: 64000-64999); none: their "
	            "tasks run as nobody"),
	TEXT_OPTION("tenant-users", "TENANT=NAME,...", options.agent.run.tenant_users,
	            "users of these tenants' tasks on this node"),
	FLAG_OPTION("allow-root", options.agent.run.allow_root, "tasks may run as root"),
	FLAG_OPTION("trust-open-scheduler", options.agent.trust_open_scheduler,
	            "tasks may name their user although the scheduler has no sign-in"),
	WORD_OPTION("task-privileges", "bounded|keep", told.privileges, "bounded keep",
	            "of tasks without an image: keep lets setuid programs work; bounded"),
	TEXT_OPTION("prolog", "FILE", options.agent.run.prolog, "run before each task"),
	TEXT_OPTION("epilog", "FILE", options.agent.run.epilog, "run after each task"),
	TEXT_OPTION("guard", "shared|always|never|FILE", told.guard,
	            "which tasks have a hard limit on GPU memory (default: shared)"),
	TEXT_OPTION("guard-library", "FILE", options.agent.run.guard,
	            "libgpuguard.so (default: in ../lib or beside gpu-agent)"),
	WORD_OPTION("unguarded", "report|stop", told.unguarded, "report stop",
	            "action on tasks that use a GPU without their guard (default: report)"),
	WORD_OPTION("compute-shares", "none|mps", told.compute_shares, "none mps",
	            "shares of a GPU's compute for tasks that request them, by NVIDIA's MPS "
	            "(default: none)"),
	TEXT_OPTION("mps-control", "FILE", options.agent.mps_control,
	            "the program nvidia-cuda-mps-control (default: in PATH)"),
	NUMBER_OPTION("mps-memory-mib", "N", options.agent.mps_memory_mib, 0, 1 << 16, 1,
	              "MiB of each GPU that are kept free for its MPS server (default: 256)"),
	TEXT_OPTION("keeper", "FILE", options.agent.keeper,
	            "the program gpu-keeper (default: beside gpu-agent)"),
	TEXT_OPTION("container-runtime", "NAME", options.agent.run.container_runtime,
	            "podman, docker, none or auto (default: the scheduler's)"),
	FLAG_OPTION("kubernetes", told.kubernetes,
	            "this is a node of Kubernetes: follow its pods, run nothing else"),
	TEXT_OPTION("pod-cgroups", "DIR", options.agent.run.pod_cgroups,
	            "where the cgroups of pods are mounted (default: /sys/fs/cgroup)"),
	FLAG_OPTION("dra", options.agent.driver.is_on,
	            "with --kubernetes: be the driver of GPUs for the node's kubelet"),
	WORD_OPTION("device-plugin", "none|marker|all", told.plugins, "none marker all",
	            "with --kubernetes: advertise gpu-scheduler.io/gpu by a device plugin; all: "
	            "nvidia.com/gpu too (default: none)"),
	TEXT_OPTION("kubelet-dir", "DIR", options.agent.driver.kubelet_directory,
	            "directory of the kubelet (default: /var/lib/kubelet)"),
	TEXT_OPTION("cdi-dir", "DIR", options.agent.driver.cdi_directory,
	            "where the container runtime looks for devices (default: /var/run/cdi)"),
	TEXT_OPTION("kubeconfig", "FILE", options.agent.driver.kubeconfig,
	            "how to reach the API server (default: the account of the agent's pod)"),
	TEXT_OPTION("host-root", "DIR", options.agent.driver.root,
	            "where the node's / is mounted, for the driver's libraries"),
	TEXT_OPTION("cgroup-parent", "PATH", options.agent.cgroup_parent,
	            "parent of the tasks' cgroups; 'none': no cgroups"),
	NUMBER_OPTION("pids", "N", options.agent.run.pids, 0, 1 << 22, 1,
	              "processes and threads of a task at most; an eighth of what the kernel can "
	              "have, up to 32768; 0: not limited"),
	NUMBER_OPTION("pids-total", "N", options.agent.pids_total, 0, 1 << 22, 1,
	              "of all tasks together; three quarters of that; 0: not limited"),
	NUMBER_OPTION("model-port-first", "N", options.agent.run.port_first, 1024, 65535, 1,
	              "first port for servers of models, chosen at random (default: 19000)"),
	NUMBER_OPTION("model-port-last", "N", options.agent.run.port_last, 1024, 65535, 1,
	              "last port for servers of models (default: 28999)"),
	WORD_OPTION(
	    "slot-network", "own|node", told.slot_network, "own node",
	    "of servers of models, if the agent is root: own isolates them, with a proxy as "
	    "their way out (default: own)"),
	WORD_OPTION("slot-tls", "offer|require|off", told.slot_tls, "offer require off",
	            "TLS between who asks a model and this node: gateways use it where it is "
	            "offered; require refuses others (default: offer)"),
	TEXT_OPTION("slot-cert-file", "FILE", options.agent.run.slot_cert_file,
	            "certificate for that (default: one that the agent makes)"),
	TEXT_OPTION("slot-key-file", "FILE", options.agent.run.slot_key_file,
	            "key of that certificate"),
	NUMBER_OPTION("open-files", "N", options.agent.run.open_files, 0, 1 << 30, 1,
	              "limit on open files of a task's process; 0: the agent's"),
	FLAG_OPTION("errors-apart", options.agent.run.errors_apart,
	            "keep standard error separate from the output"),
	NUMBER_OPTION("output-file-mib", "N", options.agent.run.output.file_bytes, 1, 1 << 20, MIB,
	              "size of one file of a task's output, in MiB"),
	NUMBER_OPTION("output-files", "N", options.agent.run.output.files, 1, 1000, 1,
	              "files of output to keep for each task"),
	NUMBER_OPTION("output-total-mib", "N", options.agent.output_total_bytes, 1, 1 << 30, MIB,
	              "MiB of finished tasks' output to keep"),
	NUMBER_OPTION("output-days", "N", options.agent.output_age_s, 1, 36500, 86400,
	              "days to keep the output of finished tasks"),
	NUMBER_OPTION("beat-ms", "N", options.agent.policy.beat_ms, 50, 60000, 1,
	              "interval of measurements and reports (default: the scheduler's)"),
	NUMBER_OPTION("metrics-ms", "N", options.agent.policy.figures_ms, 1, 600000, 1,
	              "interval of reports of figures (default: the scheduler's)"),
	WORD_OPTION("overuse", "guarded|warn|stop", told.overuse, "guarded warn stop",
	            "action on tasks that use more than they reserved: guarded stops those that "
	            "have a guard and warns others (default: guarded)"),
	NUMBER_OPTION("overuse-tolerance-mib", "N", options.agent.policy.overuse_tolerance_mib, 0,
	              1 << 20, 1, "MiB above the reservation that are tolerated (default: 512)"),
	NUMBER_OPTION("overuse-stop-ms", "N", options.agent.policy.overuse_stop_ms, 0, 3600000, 1,
	              "how long overuse may last before the task is stopped (default: 1000)"),
	NUMBER_OPTION("watch-ms", "N", options.agent.policy.watch_ms, 50, 60000, 1,
	              "interval of measurements while tasks share a GPU (default: 500)"),
	NUMBER_OPTION("idle-minutes", "N", options.agent.policy.idle_ms, 0, 100000, 60000,
	              "report GPUs that are unused for this long; 0: never"),
	NUMBER_OPTION("idle-stop-minutes", "N", options.agent.policy.idle_stop_ms, 0, 100000, 60000,
	              "stop the task this long after the report; 0: never"),
	NUMBER_OPTION("idle-seconds", "N", options.agent.policy.idle_ms, 0, 6000000, 1000,
	              "like --idle-minutes, in seconds"),
	NUMBER_OPTION("idle-stop-seconds", "N", options.agent.policy.idle_stop_ms, 0, 6000000, 1000,
	              "like --idle-stop-minutes, in seconds"),
	NUMBER_OPTION("verbosity", "N", told.verbosity, 0, LOG_VERBOSITY_MAX, 1,
	              "detail of the log on standard error (default: 2)"),
	FLAG_OPTION("help", told.help, "this"),
	FLAG_OPTION("version", told.version, "print the version"),
	{ 0 },
};

static void show_help(void)
{
	printf("gpu-agent [--scheduler HOST:PORT] [OPTION...]\n"
	       "gpu-agent enroll --help\n"
	       "Runs what a scheduler orders on this node, and measures its GPUs.\n\n");
	options_print(stdout, table);
	printf(
	    "\nEach can be set by the environment too: GPU_AGENT_TOKEN_FILE for --token-file.\n");
}

static void set_defaults(struct place *place)
{
	struct agent_settings *agent = &place->options.agent;

	agent->policy = node_policy_default();
	agent->policy.acknowledge_ms = 50;
	agent->policy.watch_ms = 500;
	agent->policy.beat_ms = 0; /* until it is known whether that was said */
	agent->state_directory = "/var/lib/gpu-agent";
	agent->run.pod_cgroups = "/sys/fs/cgroup";
	agent->driver.kubelet_directory = "/var/lib/kubelet";
	agent->driver.cdi_directory = "/var/run/cdi";
	agent->driver.kubeconfig = agent->driver.root = "";
	agent->run.pids = agent->pids_total = -1; /* as the machine can bear */
	agent->run.port_first = 19000;
	agent->mps_memory_mib = 256;
	agent->run.port_last = 28999;
	agent->run.output = (struct output_limits){ .file_bytes = 64 * MIB, .files = 4 };
	agent->output_total_bytes = 10240 * MIB;
	agent->output_age_s = INT64_C(14) * 86400;
	agent->link.retry_least_ms = 200;
	agent->link.retry_most_ms = 10000;
	place->told.verbosity = LOG_INFO;
	place->told.uids = "64000-64999";
}

static bool set_schedulers(struct options *options, const char *list, struct error *error)
{
	char *copy = arena_string(&options->arena, list ? list : ""), *rest = NULL;
	size_t count = 0;

	for (char *one = strtok_r(copy, ", ", &rest); one; one = strtok_r(NULL, ", ", &rest)) {
		if (count == OPTIONS_SCHEDULERS_MAX)
			return error_set(error, ERROR_INVALID, "--scheduler names more than %d",
			                 OPTIONS_SCHEDULERS_MAX);
		options->schedulers[count++] = one;
	}
	if (count == 0)
		options->schedulers[0] = "127.0.0.1:9090";
	return true;
}

/* Where this program is, in the arena; NULL where that cannot be known. */
static const char *own_directory(struct options *options)
{
	char path[4096];
	ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (size <= 0)
		return NULL;
	path[size] = '\0';
	*strrchr(path, '/') = '\0';
	return arena_string(&options->arena, path);
}

/* The keeper is beside us. */
static bool find_keeper(struct options *options, struct error *error)
{
	const char *directory = own_directory(options);

	if (!options->agent.keeper && directory) {
		char *beside = file_path("%s/gpu-keeper", directory);
		options->agent.keeper = arena_string(&options->arena, beside);
		free(beside);
	}
	if (options->agent.keeper && access(options->agent.keeper, X_OK) == 0)
		return true;
	return error_set(error, ERROR_NOT_FOUND, "%s, which stays with tasks, cannot be run",
	                 options->agent.keeper ? options->agent.keeper : "gpu-keeper");
}

/* So is what stands before servers of models. */
static bool find_slot_proxy(struct options *options, struct error *error)
{
	const char *directory = own_directory(options);
	char *beside = file_path("%s/gpu-slot-proxy", directory ? directory : ".");

	options->agent.run.slot_proxy = arena_string(&options->arena, beside);
	free(beside);
	return access(options->agent.run.slot_proxy, X_OK) == 0 ||
	       error_set(error, ERROR_NOT_FOUND,
	                 "%s, which stands before servers of models, cannot be run",
	                 options->agent.run.slot_proxy);
}

static const char *find_library(struct options *options)
{
	static const char *const places[] = { "../lib", ".", "../lib/gpu-scheduler" };
	const char *directory = own_directory(options), *found = NULL;

	for (size_t i = 0; directory && !found && i < sizeof(places) / sizeof(*places); i++) {
		char *path = file_path("%s/%s/libgpuguard.so", directory, places[i]);
		char *real = realpath(path, NULL);
		if (real)
			found = arena_string(&options->arena, real);
		free(real);
		free(path);
	}
	if (!found && access(GPU_SCHEDULER_LIBDIR "/libgpuguard.so", R_OK) == 0)
		found = GPU_SCHEDULER_LIBDIR "/libgpuguard.so";
	return found;
}

/* A file that is named is meant for all tasks. */
static bool set_guard(struct options *options, const char *told, struct error *error)
{
	struct run_settings *run = &options->agent.run;

	if (told && strchr(told, '/')) {
		run->guard = told;
		run->guarding = GUARDING_ALWAYS;
	} else if (told && strcmp(told, "always") == 0) {
		run->guarding = GUARDING_ALWAYS;
	} else if (told && strcmp(told, "never") == 0) {
		run->guarding = GUARDING_NEVER;
	} else if (told && strcmp(told, "shared") != 0) {
		return error_set(error, ERROR_INVALID,
		                 "--guard is '%s'; it is shared, always, never, or the path of "
		                 "libgpuguard.so",
		                 told);
	}
	if (run->guard && access(run->guard, R_OK) != 0)
		return error_set(error, ERROR_NOT_FOUND, "the guard %s cannot be read", run->guard);
	if (!run->guard)
		run->guard = find_library(options);
	if (!run->guard && run->guarding == GUARDING_ALWAYS)
		return error_set(
		    error, ERROR_NOT_FOUND,
		    "--guard always, and libgpuguard.so is not in ../lib: name it with "
		    "--guard-library");
	if (!run->guard && run->guarding == GUARDING_SHARED && !options->no_gpus)
		log_at(LOG_WARNING, "tasks that share a GPU have no hard limit of its memory",
		       LOG_TEXT("reason", "libgpuguard.so is not in ../lib"));
	return true;
}

/* A name is part of paths and of names of cgroups. */
static bool options_check_name(const char *name, struct error *error)
{
	size_t size = strlen(name);

	for (size_t i = 0; i < size; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("-_.", name[i]))
			return error_set(
			    error, ERROR_INVALID,
			    "--name '%s' has more in it than letters, digits and '-_.'", name);
	if (size == 0 || size > 200 || name[0] == '.')
		return error_set(error, ERROR_INVALID, "--name '%s' is not a name for a node",
		                 name);
	return true;
}

/* So that no task, and no set of tasks, can take every process of the machine. */
static void set_pids(struct agent_settings *agent)
{
	int64_t capacity = host_process_capacity();

	if (agent->run.pids < 0)
		agent->run.pids = min64(max64(capacity / 8, 1), PIDS_MOST);
	if (agent->pids_total < 0)
		agent->pids_total = max64(capacity / 4 * 3, 1);
}

/* Only pods are placed on it. */
static const char *with_orchestrator(struct arena *arena, const char *labels)
{
	struct buffer text = { 0 };

	buffer_print(&text, "%s%s" NODE_ORCHESTRATOR "=kubernetes", labels ? labels : "",
	             labels && *labels ? "," : "");
	labels = arena_string(arena, text.data);
	buffer_free(&text);
	return labels;
}

/* The label as which the scheduler knows that this node gives shares. */
static const char *with_shares(struct arena *arena, const char *labels)
{
	struct buffer text = { 0 };

	buffer_print(&text, "%s%s" NODE_COMPUTE_SHARES "=mps", labels ? labels : "",
	             labels && *labels ? "," : "");
	labels = arena_string(arena, text.data);
	buffer_free(&text);
	return labels;
}

static const char *find_in_path(struct options *options, const char *name)
{
	const char *path = getenv("PATH"), *found = NULL;
	char *copy = arena_string(&options->arena, path ? path : "/usr/bin"), *rest = NULL;

	for (char *one = strtok_r(copy, ":", &rest); one && !found;
	     one = strtok_r(NULL, ":", &rest)) {
		char *file = file_path("%s/%s", one, name);
		if (access(file, X_OK) == 0)
			found = arena_string(&options->arena, file);
		free(file);
	}
	return found;
}

/* Without MPS the node runs, and gives no shares. */
static void set_compute_shares(struct options *options, const char *told)
{
	struct agent_settings *agent = &options->agent;

	if (!told || strcmp(told, "mps") != 0) {
		agent->mps_control = NULL;
		return;
	}
	if (!agent->mps_control)
		agent->mps_control = find_in_path(options, "nvidia-cuda-mps-control");
	if (agent->mps_control && access(agent->mps_control, X_OK) != 0)
		agent->mps_control = NULL;
	if (agent->mps_control)
		agent->identity.labels = with_shares(&options->arena, agent->identity.labels);
	else
		log_at(LOG_WARNING, "no shares of compute: nvidia-cuda-mps-control is not there");
}

static bool options_finish(struct options *options, const struct told *told, struct error *error)
{
	struct agent_settings *agent = &options->agent;
	struct host host;

	host_read(&host);
	set_pids(agent);
	agent->own_beat = agent->policy.beat_ms > 0;
	agent->own_figures = agent->policy.figures_ms > 0;
	if (!agent->own_beat)
		agent->policy.beat_ms = node_policy_default().beat_ms;
	if (!agent->identity.name)
		agent->identity.name = arena_string(&options->arena, host.name);
	if (!options_check_name(agent->identity.name, error) ||
	    !set_schedulers(options, told->schedulers, error) || !find_keeper(options, error) ||
	    !find_slot_proxy(options, error))
		return false;
	agent->run.slot_tls = !told->slot_tls || strcmp(told->slot_tls, "offer") == 0
	                          ? SLOT_TLS_OFFER
	                      : strcmp(told->slot_tls, "require") == 0 ? SLOT_TLS_REQUIRE
	                                                               : SLOT_TLS_OFF;
	agent->run.slot_networks = !told->slot_network || strcmp(told->slot_network, "own") == 0;
	if (told->overuse)
		agent->policy.overuse = strcmp(told->overuse, "stop") == 0   ? OVERUSE_STOP
		                        : strcmp(told->overuse, "warn") == 0 ? OVERUSE_WARN
		                                                             : OVERUSE_GUARDED;
	if (told->unguarded)
		agent->policy.unguarded =
		    strcmp(told->unguarded, "stop") == 0 ? UNGUARDED_STOP : UNGUARDED_REPORT;
	if (options->dcgm.exporter && options->dcgm.engine)
		return error_set(
		    error, ERROR_INVALID,
		    "--dcgm and --dcgm-exporter are both given: one of them is enough");
	agent->run.keep_privileges = told->privileges && strcmp(told->privileges, "keep") == 0;
	if (!set_guard(options, told->guard, error))
		return false;
	if (!uid_range_parse(told->uids, &agent->run.uids, error) ||
	    (agent->run.tenant_users && !tenant_users_check(agent->run.tenant_users, error)))
		return false;
	if (!agent->run.address)
		agent->run.address = arena_string(&options->arena, host.name);
	if (told->plugins)
		agent->driver.plugins = strcmp(told->plugins, "all") == 0      ? PLUGINS_ALL
		                        : strcmp(told->plugins, "marker") == 0 ? PLUGINS_MARKER
		                                                               : PLUGINS_NONE;
	if ((agent->driver.is_on || agent->driver.plugins != PLUGINS_NONE) && !told->kubernetes)
		return error_set(error, ERROR_INVALID,
		                 "%s is for nodes of Kubernetes: give --kubernetes too",
		                 agent->driver.is_on ? "--dra" : "--device-plugin");
	if (told->kubernetes)
		agent->identity.labels = with_orchestrator(&options->arena, agent->identity.labels);
	set_compute_shares(options, told->compute_shares);
	agent->identity.labels =
	    labels_read(&options->arena, agent->identity.labels, agent->run.address, error);
	if (!agent->identity.labels)
		return false;
	agent->run.node = agent->identity.name;
	agent->run.simulated = options->fake_gpus != NULL;
	log_set_verbosity((int)told->verbosity);
	return true;
}

enum options_result agent_options_read(struct options *options, int argc, char **argv,
                                       struct error *error)
{
	struct place place = { 0 };

	set_defaults(&place);
	bool good =
	    options_store_environment(table, "GPU_AGENT", &place, &place.options.arena, error) &&
	    options_store(table, argc - 1, argv + 1, &place, error);
	if (place.told.help)
		show_help();
	else if (place.told.version)
		printf("gpu-agent %s\n", GPU_SCHEDULER_VERSION);
	else
		good = good && options_finish(&place.options, &place.told, error);
	*options = place.options;
	/* The list moved with the struct. */
	options->agent.link.addresses = options->schedulers;
	if (!good)
		return OPTIONS_WRONG;
	return place.told.help || place.told.version ? OPTIONS_SHOWN : OPTIONS_RUN;
}

void options_free(struct options *options)
{
	arena_free(&options->arena);
}

static struct gpu_source *open_source(const struct options *options, struct error *error)
{
	struct error reason = { 0 };

	if (options->fake_gpus) {
		char *control = file_path("%s/fake-gpus", options->agent.state_directory);
		struct gpu_source *source =
		    fake_open(options->fake_gpus, options->agent.run.node, control, error);
		free(control);
		return source;
	}
	if (options->no_gpus)
		return none_open();
	int64_t replicas =
	    options->device_plugin_config ? time_slices_read(options->device_plugin_config) : 1;
	struct gpu_source *source = nvml_open(options->nvml_library, replicas, &reason);
	if (source)
		return source;
	log_at(LOG_INFO, "no GPUs are offered", LOG_TEXT("reason", reason.text));
	return none_open();
}

struct gpu_source *options_source(const struct options *options, struct error *error)
{
	struct gpu_source *source = open_source(options, error);

	return source && (options->dcgm.exporter || options->dcgm.engine)
	           ? dcgm_open(source, &options->dcgm, error)
	           : source;
}
