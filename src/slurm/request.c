/* request.c - the job that options of Slurm ask for, as the service wants it */
#include "slurm/request.h"

#include <stdlib.h>
#include <string.h>

#include "base/calendar.h"
#include "slurm/script.h"
#include "slurm/value.h"

enum { TASKS_MOST = 4096, GPUS_MOST = 4096, CPUS_MOST = 65536 };

/* The shape of the job: tasks, and what each of them takes. */
struct shape {
	int64_t nodes, tasks, per_node; /* 0: not said */
	int64_t gpus, cpus, memory_mib; /* of each task */
	struct slurm_gpus type;
};

static bool read_number(const struct slurm_asked *asked, const char *name, int64_t most,
                        int64_t *number, struct error *error)
{
	const char *text = slurm_value(asked, name);
	return !text || slurm_number(name, text, 1, most, number, error);
}

static bool read_gpus(const struct slurm_asked *asked, const char *name, struct slurm_gpus *gpus,
                      struct error *error)
{
	const char *text = slurm_value(asked, name);
	if (!text)
		return true;
	return strcmp(name, "--gres") == 0 ? slurm_gres(name, text, gpus, error)
	                                   : slurm_gpus(name, text, gpus, error);
}

/* -N, -n and --ntasks-per-node: how many tasks. */
static bool read_tasks(const struct slurm_asked *asked, struct shape *shape, struct error *error)
{
	const char *nodes = slurm_value(asked, "--nodes");
	if (nodes && strchr(nodes, '-'))
		return error_set(error, ERROR_INVALID,
		                 "invalid --nodes '%.40s': a range of nodes is not supported, "
		                 "name one number",
		                 nodes);
	if (!read_number(asked, "--nodes", TASKS_MOST, &shape->nodes, error) ||
	    !read_number(asked, "--ntasks", TASKS_MOST, &shape->tasks, error) ||
	    !read_number(asked, "--ntasks-per-node", TASKS_MOST, &shape->per_node, error))
		return false;
	if (shape->tasks == 0)
		shape->tasks =
		    (shape->nodes ? shape->nodes : 1) * (shape->per_node ? shape->per_node : 1);
	if (shape->per_node == 0 && shape->nodes > 0)
		shape->per_node = (shape->tasks + shape->nodes - 1) / shape->nodes;
	if (shape->tasks > TASKS_MOST)
		return error_set(error, ERROR_INVALID, "a job has at most %d tasks", TASKS_MOST);
	return true;
}

/* GPUs of a node or of the job, divided among the tasks there. */
static bool divide(const char *name, int64_t gpus, int64_t tasks, int64_t *each,
                   struct error *error)
{
	if (tasks > 0 && gpus % tasks != 0)
		return error_set(error, ERROR_INVALID,
		                 "%s: %lld GPUs cannot be divided among %lld tasks: use "
		                 "--gpus-per-task",
		                 name, (long long)gpus, (long long)tasks);
	*each = gpus / (tasks > 0 ? tasks : 1);
	return true;
}

static bool read_shape_gpus(const struct slurm_asked *asked, struct shape *shape,
                            struct error *error)
{
	struct slurm_gpus task = { 0 }, node = { 0 }, gres = { 0 }, all = { 0 };
	if (!read_gpus(asked, "--gpus-per-task", &task, error) ||
	    !read_gpus(asked, "--gpus-per-node", &node, error) ||
	    !read_gpus(asked, "--gres", &gres, error) || !read_gpus(asked, "--gpus", &all, error))
		return false;
	if (node.count == 0)
		node = gres;
	shape->type = task.type ? task : node.type ? node : all;
	bool good = true;
	if (task.count > 0)
		shape->gpus = task.count;
	else if (node.count > 0)
		good =
		    divide("GPUs of each node", node.count,
		           shape->per_node ? shape->per_node : shape->tasks, &shape->gpus, error);
	else if (all.count > 0)
		good = divide("--gpus", all.count, shape->tasks, &shape->gpus, error);
	if (!good)
		return false;
	return shape->gpus <= GPUS_MOST ||
	       error_set(error, ERROR_INVALID, "a task has at most %d GPUs", GPUS_MOST);
}

static bool read_shape(const struct slurm_asked *asked, struct shape *shape, struct error *error)
{
	int64_t per_gpu = 0, memory = 0;
	if (!read_tasks(asked, shape, error) || !read_shape_gpus(asked, shape, error) ||
	    !read_number(asked, "--cpus-per-task", CPUS_MOST, &shape->cpus, error) ||
	    !read_number(asked, "--cpus-per-gpu", CPUS_MOST, &per_gpu, error))
		return false;
	if (shape->cpus == 0 && per_gpu > 0)
		shape->cpus = per_gpu * shape->gpus;
	const char *text = slurm_value(asked, "--mem");
	if (text) {
		if (!slurm_memory("--mem", text, &memory, error))
			return false;
		int64_t tasks = shape->per_node ? shape->per_node : shape->tasks;
		shape->memory_mib = (memory + tasks - 1) / tasks;
	} else if ((text = slurm_value(asked, "--mem-per-cpu"))) {
		if (!slurm_memory("--mem-per-cpu", text, &memory, error))
			return false;
		shape->memory_mib = memory * (shape->cpus ? shape->cpus : 1);
	} else if ((text = slurm_value(asked, "--mem-per-gpu"))) {
		if (!slurm_memory("--mem-per-gpu", text, &memory, error))
			return false;
		shape->memory_mib = memory * shape->gpus;
	}
	return true;
}

static void set_text(json_t *job, const char *name, const char *text)
{
	if (text)
		json_object_set_new(job, name, json_string(text));
}

static void set_number(json_t *job, const char *name, int64_t number)
{
	if (number > 0)
		json_object_set_new(job, name, json_integer(number));
}

static void set_shape(json_t *job, const struct shape *shape)
{
	if (shape->tasks > 1)
		json_object_set_new(job, "tasks", json_integer(shape->tasks));
	set_number(job, "gpu_count", shape->gpus);
	set_number(job, "cpu_cores", shape->cpus);
	set_number(job, "memory_mb", shape->memory_mib);
	if (shape->type.type_length > 0)
		json_object_set_new(
		    job, "gpu_model",
		    json_stringn(shape->type.type, (size_t)shape->type.type_length));
}

static bool set_times(json_t *job, const struct slurm_job *from, struct error *error)
{
	const char *limit = slurm_value(from->asked, "--time");
	const char *deadline = slurm_value(from->asked, "--deadline");
	const char *begin = slurm_value(from->asked, "--begin");
	int64_t seconds = 0, moment;
	char text[CALENDAR_TEXT_MAX];
	if (limit && !slurm_time("--time", limit, &seconds, error))
		return false;
	if (seconds > 0)
		json_object_set_new(job, "max_runtime", json_sprintf("%llds", (long long)seconds));
	if (deadline) {
		if (!slurm_moment("--deadline", deadline, from->now_ms, &moment, error))
			return false;
		calendar_write(moment * 1000, 0, text);
		set_text(job, "deadline", text);
	}
	if (begin) {
		if (!slurm_moment("--begin", begin, from->now_ms, &moment, error))
			return false;
		calendar_write(moment * 1000, 0, text);
		if (moment > from->now_ms)
			set_text(job, "begin", text);
	}
	return true;
}

/* One group such as afterok:12:13. */
static bool add_dependencies(json_t *list, const char *group, size_t size, struct error *error)
{
	const char *colon = memchr(group, ':', size);
	size_t length = colon ? (size_t)(colon - group) : size;
	bool any = length == 8 && memcmp(group, "afterany", 8) == 0;
	if (!colon || (!any && !(length == 7 && memcmp(group, "afterok", 7) == 0)))
		return error_set(error, ERROR_INVALID,
		                 "--dependency '%.*s' is not supported: use afterok:ID or "
		                 "afterany:ID",
		                 (int)size, group);
	const char *at = colon + 1, *end = group + size;
	while (at < end) {
		const char *next = memchr(at, ':', (size_t)(end - at));
		if (!next)
			next = end;
		char id[64];
		int digits = (int)strspn(at, "0123456789");
		snprintf(id, sizeof(id), "%s%.*s", digits == next - at ? "job-" : "",
		         (int)(next - at), at);
		json_array_append_new(
		    list, json_pack("{s:s, s:s}", "job", id, "condition", any ? "any" : "success"));
		at = next < end ? next + 1 : end;
	}
	return true;
}

static bool set_dependencies(json_t *job, const struct slurm_asked *asked, struct error *error)
{
	const char *text = slurm_value(asked, "--dependency");
	if (!text)
		return true;
	if (strchr(text, '?'))
		return error_set(error, ERROR_INVALID,
		                 "--dependency '%.80s': alternatives (?) are not supported", text);
	json_t *list = json_array();
	bool good = true;
	for (const char *at = text; good && *at;) {
		size_t size = strcspn(at, ",");
		good = add_dependencies(list, at, size, error);
		at += size + (at[size] == ',');
	}
	json_object_set_new(job, "depends_on", list);
	return good;
}

static bool set_priority(json_t *job, const struct slurm_asked *asked, struct error *error)
{
	const char *priority = slurm_value(asked, "--priority"),
		   *nice = slurm_value(asked, "--nice");
	int64_t number = 500, less = 0;
	if (priority && !slurm_number("--priority", priority, 0, INT32_MAX, &number, error))
		return false;
	if (nice && !slurm_number("--nice", nice, -INT32_MAX, INT32_MAX, &less, error))
		return false;
	if (priority || nice) {
		number -= less;
		if (number < INT32_MIN || number > INT32_MAX)
			return error_set(error, ERROR_INVALID, "--nice '%.40s' is too large", nice);
		json_object_set_new(job, "priority", json_integer(number));
	}
	return true;
}

static void set_variable(json_t *environment, const char *pair)
{
	const char *equals = strchr(pair, '=');
	/* What belongs to the caller's own session or job means nothing on a node. */
	static const char *const kept_back[] = { "SLURM_",
		                                 "SBATCH_",
		                                 "GPU_SCHEDULER_",
		                                 "HOME=",
		                                 "USER=",
		                                 "LOGNAME=",
		                                 "PWD=",
		                                 "OLDPWD=",
		                                 "SHELL=",
		                                 "SHLVL=",
		                                 "_=",
		                                 "TERM=",
		                                 "SSH_",
		                                 "XDG_",
		                                 "DBUS_",
		                                 "CUDA_VISIBLE_DEVICES=",
		                                 "NVIDIA_VISIBLE_DEVICES=",
		                                 "LD_",
		                                 "HOSTNAME=",
		                                 "MAIL=",
		                                 "LOGNAME=",
		                                 "TMUX" };
	if (!equals || equals == pair)
		return;
	for (size_t i = 0; i < sizeof(kept_back) / sizeof(kept_back[0]); i++)
		if (strncmp(pair, kept_back[i], strlen(kept_back[i])) == 0)
			return;
	char *name = strndup(pair, (size_t)(equals - pair));
	if (name)
		json_object_set_new(environment, name, json_string(equals + 1));
	free(name);
}

static const char *caller_value(const struct slurm_job *from, const char *name, size_t size)
{
	for (char *const *at = from->environment; at && *at; at++)
		if (strncmp(*at, name, size) == 0 && (*at)[size] == '=')
			return *at;
	return NULL;
}

/* --export. ALL is the default of Slurm; here it is what --export=ALL asks for, because nodes
 * rarely have the caller's paths. */
static void set_environment(json_t *job, const struct slurm_job *from)
{
	json_t *environment = json_object();
	const char *list = slurm_value(from->asked, "--export");
	for (const char *at = list; at && *at;) {
		size_t size = strcspn(at, ",");
		char *word = strndup(at, size);
		if (word && strcmp(word, "ALL") == 0)
			for (char *const *pair = from->environment; pair && *pair; pair++)
				set_variable(environment, *pair);
		else if (word && strchr(word, '='))
			set_variable(environment, word);
		else if (word && caller_value(from, word, size))
			set_variable(environment, caller_value(from, word, size));
		free(word);
		at += size + (at[size] == ',');
	}
	set_text(environment, "SLURM_SUBMIT_DIR", from->directory);
	if (json_object_size(environment) > 0)
		json_object_set(job, "environment", environment);
	json_decref(environment);
}

static void set_labels(json_t *job, const struct slurm_asked *asked)
{
	const char *partition = slurm_value(asked, "--partition");
	if (partition && strcmp(partition, "all") != 0)
		json_object_set_new(job, "node_labels", json_pack("{s:s}", "partition", partition));
	const char *comment = slurm_value(asked, "--comment");
	if (comment)
		json_object_set_new(job, "annotations", json_pack("{s:s}", "comment", comment));
	const char *models = slurm_value(asked, "--constraint");
	if (models && !json_object_get(job, "gpu_model"))
		set_text(job, "gpu_model", models);
}

static bool set_work(json_t *job, const struct slurm_job *from, const struct shape *shape,
                     struct error *error)
{
	json_t *words = json_array();
	for (size_t i = 0; i < from->command_count; i++)
		json_array_append_new(words, json_string(from->command[i]));
	if (!from->script) {
		json_object_set_new(job, "command", words);
		return true;
	}
	if (from->command_count > 0)
		json_object_set(job, "args", words);
	json_decref(words);
	struct slurm_script script = {
		.text = from->script,
		.size = from->script_size,
		.name = slurm_value(from->asked, "--job-name"),
		.output = slurm_value(from->asked, "--output"),
		.error = slurm_value(from->asked, "--error"),
		.input = slurm_value(from->asked, "--input"),
		.appends = slurm_value(from->asked, "--open-mode") &&
		           slurm_value(from->asked, "--open-mode")[0] == 'a',
		.tasks = shape->tasks,
		.nodes = shape->nodes ? shape->nodes : 1,
		.cpus = shape->cpus,
		.is_array = slurm_value(from->asked, "--array"),
	};
	if (!script.name)
		script.name = from->script_name ? from->script_name : "sbatch";
	struct buffer text = { 0 };
	bool good = slurm_script_print(&script, &text, error);
	if (good)
		json_object_set_new(job, "script", json_stringn(text.data, text.size));
	buffer_free(&text);
	if (good && !json_object_get(job, "script"))
		good = error_set(error, ERROR_INVALID, "the script is not UTF-8 text");
	return good;
}

static bool check_refused(const struct slurm_asked *asked, struct error *error)
{
	for (const struct option *option = slurm_job_options; option->name; option++)
		if (slurm_refusal(option->name) && slurm_has(asked, option->name))
			return error_set(error, ERROR_INVALID, "%s is not supported: %s",
			                 option->name, slurm_refusal(option->name));
	return true;
}

json_t *slurm_request(const struct slurm_job *from, struct error *error)
{
	json_t *job = json_object();
	struct shape shape = { 0 };
	const char *name = slurm_value(from->asked, "--job-name");
	if (!name)
		name = from->script_name         ? from->script_name
		       : from->command_count > 0 ? from->command[0]
		                                 : NULL;
	set_text(job, "name", name);
	set_text(job, "tenant_id", slurm_value(from->asked, "--account"));
	set_text(job, "array", slurm_value(from->asked, "--array"));
	set_text(job, "window", slurm_value(from->asked, "--reservation"));
	const char *directory = slurm_value(from->asked, "--chdir");
	set_text(job, "working_directory", directory ? directory : from->directory);
	if (slurm_has(from->asked, "--hold"))
		json_object_set_new(job, "hold", json_true());
	if (slurm_has(from->asked, "--no-requeue"))
		json_object_set_new(job, "preemptible", json_false());
	else if (slurm_has(from->asked, "--requeue"))
		json_object_set_new(job, "preemptible", json_true());
	bool good = check_refused(from->asked, error) && read_shape(from->asked, &shape, error);
	if (good)
		set_shape(job, &shape);
	good = good && set_times(job, from, error) && set_dependencies(job, from->asked, error) &&
	       set_priority(job, from->asked, error) && set_work(job, from, &shape, error);
	if (!good) {
		json_decref(job);
		return NULL;
	}
	set_environment(job, from);
	set_labels(job, from->asked);
	return job;
}
