/* pods_lab.c - pods in a test: objects of an API server in few words, and what came of them */
#include "pods/test/pods_lab.h"

#include <stdio.h>
#include <stdlib.h>

static bool lab_node_name(void *context, int64_t node_id, struct buffer *name)
{
	(void)context;
	buffer_print(name, "n%lld", (long long)node_id);
	return true;
}

static bool lab_gpu_uuid(void *context, int64_t gpu_id, struct buffer *uuid)
{
	(void)context;
	buffer_print(uuid, "GPU-%lld", (long long)gpu_id);
	return true;
}

static int64_t lab_tenant(void *context, const char *name)
{
	const struct lab *lab = context;

	for (int i = 0; i < lab->tenant_count; i++)
		if (strcmp(lab->tenant_names[i], name) == 0)
			return i + 2;
	return strcmp(name, "everyone") == 0 ? 1 : 0;
}

static void lab_tenant_record(void *context, const char *name, struct arena *arena,
                              struct tenant_record *tenant)
{
	const struct lab *lab = context;
	int64_t id = lab_tenant(context, name);

	(void)arena;
	*tenant = id > 1 ? lab->tenants[id - 2] : tenant_default(name);
	tenant->name = name;
}

/* Tenants are there at once. */
static void put_tenant(struct lab *lab, const struct tenant_record *tenant)
{
	int64_t at = tenant->id ? tenant->id - 2 : lab->tenant_count;

	assert_true(at >= 0 && at < LAB_TENANTS);
	lab->tenants[at] = *tenant;
	lab->tenants[at].id = at + 2;
	if (tenant->id)
		return;
	snprintf(lab->tenant_names[at], sizeof(lab->tenant_names[0]), "%s", tenant->name);
	lab->tenant_count++;
}

static void lab_command(void *context, const struct command *command, int64_t ticket)
{
	struct lab *lab = context;

	assert_true(lab->command_count < LAB_COMMANDS);
	struct lab_command *at = &lab->commands[lab->command_count++];
	*at = (struct lab_command){ .kind = command->kind };
	switch (command->kind) {
	case COMMAND_SUBMIT:
		assert_true(lab->ticket_count < LAB_COMMANDS);
		lab->tickets[lab->ticket_count] = ticket;
		snprintf(lab->keys[lab->ticket_count++], sizeof(lab->keys[0]), "%s",
		         command->submit.job.idempotency_key);
		at->tasks = command->submit.job.tasks;
		at->least = command->submit.job.min_available;
		at->priority = command->submit.job.priority;
		at->preemptible = command->submit.job.preemptible;
		at->tenant_id = command->submit.job.tenant_id;
		break;
	case COMMAND_TASK_EXITED:
	case COMMAND_TASK_REFUSED:
	case COMMAND_TASK_STARTED:
	case COMMAND_MEMORY_RELEASED:
		at->id = command->task.reservation_id;
		at->exit_code = command->task.exit_code;
		at->finished = command->task.finished;
		break;
	case COMMAND_HOLD:
	case COMMAND_UNHOLD:
	case COMMAND_CANCEL:
	case COMMAND_REQUEUE:
		at->id = command->id;
		break;
	case COMMAND_PUT_TENANT:
		put_tenant(lab, &command->tenant);
		break;
	default:
		break;
	}
}

static bool lab_no(void *context, const char *name)
{
	(void)context, (void)name;
	return false;
}

static void lab_amounts(void *context, const char *name, int64_t *cpu_milli, int64_t *host_bytes)
{
	(void)context, (void)name;
	*cpu_milli = *host_bytes = 0;
}

static bool lab_job_is_over(void *context, int64_t job_id, bool *cancelled)
{
	(void)context, (void)job_id;
	*cancelled = false;
	return false;
}

static void lab_order(void *context, const struct effect *effect)
{
	(void)context, (void)effect;
}

static int64_t lab_term(void *context)
{
	(void)context;
	return 1;
}

static void lab_note(void *context, const char *sentence)
{
	(void)context, (void)sentence;
}

json_t *lab_json(const char *format, ...)
{
	char text[4096];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	json_t *object = json_loads(text, 0, NULL);
	assert_non_null(object);
	return object;
}

void lab_restart(struct lab *lab)
{
	static const char *const names[] = { "gpu-scheduler", NULL };
	static const char *const tenants[] = { NULL };
	const struct pods_settings settings = { .scheduler_names = names,
		                                .default_tenant = "everyone",
		                                .tenants = tenants,
		                                .kai_queues = true,
		                                .force_release_ms = 1000,
		                                .replace_ms = 300000 };
	const struct pods_port port = { .command = lab_command,
		                        .node_name = lab_node_name,
		                        .gpu_uuid = lab_gpu_uuid,
		                        .tenant = lab_tenant,
		                        .tenant_record = lab_tenant_record,
		                        .node_has_agent = lab_no,
		                        .node_is_watched = lab_no,
		                        .node_amounts = lab_amounts,
		                        .job_is_over = lab_job_is_over,
		                        .order = lab_order,
		                        .term = lab_term,
		                        .note = lab_note,
		                        .context = lab };

	pods_free(lab->pods);
	lab->command_count = lab->write_count = lab->ticket_count = 0;
	lab->pods = pods_new(&settings, &port);
	pods_time(lab->pods, lab->now_ms);
	json_t *node = lab_json("{\"metadata\": {\"name\": \"n1\"}, \"status\": {\"allocatable\": "
	                        "{\"cpu\": \"64\", \"memory\": \"64Gi\", \"pods\": \"100\", "
	                        "\"nvidia.com/gpu\": \"8\"}, \"conditions\": [{\"type\": "
	                        "\"Ready\", \"status\": \"True\"}]}}");
	pods_node(lab->pods, REFLECTOR_PUT, node);
	json_decref(node);
	pods_node(lab->pods, REFLECTOR_SYNCED, NULL);
}

void lab_begin(struct lab *lab)
{
	pods_pod(lab->pods, REFLECTOR_SYNCED, NULL);
	pods_begin(lab->pods);
	lab_round(lab, 0);
	assert_true(pods_is_ready(lab->pods));
}

struct lab *lab_new(void)
{
	struct lab *lab = NEW(struct lab);

	lab->now_ms = 1000000;
	lab_restart(lab);
	return lab;
}

void lab_free(struct lab *lab)
{
	pods_free(lab->pods);
	free(lab);
}

void lab_pod(struct lab *lab, enum reflector_event event, json_t *object)
{
	pods_pod(lab->pods, event, object);
	json_decref(object);
}

json_t *lab_member(const char *name, int size, const char *node, const char *phase, const char *job)
{
	return lab_json(
	    "{\"metadata\": {\"name\": \"%s\", \"namespace\": \"default\", \"uid\": \"uid-%s\", "
	    "\"annotations\": {\"gpu-scheduler.io/group\": \"g\", "
	    "\"gpu-scheduler.io/group-size\": \"%d\", \"gpu-scheduler.io/job\": \"%s\"}}, "
	    "\"spec\": {\"schedulerName\": \"gpu-scheduler\", \"nodeName\": \"%s\", "
	    "\"containers\": [{\"name\": \"c\", \"resources\": {\"requests\": "
	    "{\"nvidia.com/gpu\": \"1\"}}}]}, \"status\": {\"phase\": \"%s\"}}",
	    name, name, size, job, node, phase);
}

static void answer_writes(struct lab *lab)
{
	struct writer *writer = pods_writer(lab->pods);
	struct write *write;

	while ((write = writer_next(writer, lab->now_ms))) {
		assert_true(lab->write_count < LAB_WRITES);
		struct lab_write *at = &lab->writes[lab->write_count++];
		at->kind = write->kind;
		snprintf(at->pod, sizeof(at->pod), "%s", write->object);
		snprintf(at->body, sizeof(at->body), "%s", write->body ? write->body : "");
		writer_answer(writer, write, 201, 0, "{}", lab->now_ms);
	}
}

static void answer_submits(struct lab *lab)
{
	const struct error none = { 0 };

	for (int i = 0; i < lab->ticket_count; i++) {
		if (!lab->tickets[i])
			continue;
		int64_t ticket = lab->tickets[i];
		lab->tickets[i] = 0;
		pods_submitted(lab->pods, ticket, ++lab->last_job, &none);
	}
}

void lab_round(struct lab *lab, int64_t ms)
{
	for (int64_t passed = 0; passed <= ms; passed += 500) {
		pods_time(lab->pods, lab->now_ms);
		pods_flush(lab->pods);
		answer_writes(lab);
		answer_submits(lab);
		lab->now_ms += 500;
	}
}

static void lab_effect(struct lab *lab, enum effect_kind kind, int64_t job_id, int64_t task,
                       int64_t reservation_id)
{
	const struct effect effect = { .kind = kind,
		                       .order = { .reservation_id = reservation_id,
		                                  .job_id = job_id,
		                                  .task = task,
		                                  .node_id = 1 } };

	pods_effect(lab->pods, PODS_KEY "group/default/own/g", &effect);
}

void lab_start(struct lab *lab, int64_t job_id, int64_t task, int64_t reservation_id)
{
	lab_effect(lab, EFFECT_START, job_id, task, reservation_id);
}

void lab_stop(struct lab *lab, int64_t job_id, int64_t task, int64_t reservation_id)
{
	lab_effect(lab, EFFECT_STOP, job_id, task, reservation_id);
}

int lab_count(const struct lab *lab, enum command_kind kind, int64_t id)
{
	int count = 0;

	for (int i = 0; i < lab->command_count; i++)
		count += lab->commands[i].kind == kind && (!id || lab->commands[i].id == id);
	return count;
}

const struct lab_command *lab_last(const struct lab *lab, enum command_kind kind)
{
	for (int i = lab->command_count - 1; i >= 0; i--)
		if (lab->commands[i].kind == kind)
			return &lab->commands[i];
	fail_msg("there was no command %s", command_kind_name(kind));
	return NULL;
}

int lab_written(const struct lab *lab, enum write_kind kind, const char *pod)
{
	int count = 0;

	for (int i = 0; i < lab->write_count; i++)
		count += lab->writes[i].kind == kind && strcmp(lab->writes[i].pod, pod) == 0;
	return count;
}
