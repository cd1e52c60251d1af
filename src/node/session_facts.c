/* session_facts.c - what a node says, as commands of the core */
#include <string.h>

#include "node/session_local.h"

void session_command(struct session *session, const struct command *command, int64_t change,
                     struct session_outputs *outputs)
{
	struct session_output *output = session_output(outputs, SESSION_COMMAND);

	INVARIANT(change == 0 || (change > 0 && session->connection > 0));
	output->command = command_copy(&outputs->arena, command);
	output->connection = session->connection;
	output->change = change;
	session->commanded = max64(session->commanded, change);
}

static struct address_source source_of(const struct session *session)
{
	return (struct address_source){ .rules = session->policy.addresses,
		                        .node = session->name,
		                        .peer = session->peer };
}

static void misreport(struct session_outputs *outputs, const char *reason)
{
	session_output(outputs, SESSION_MISREPORT)->reason = arena_string(&outputs->arena, reason);
}

/* The address to tell the core for a slot that takes requests; NULL: none can be believed. */
static const char *settle_address(const struct session *session, const char *announced,
                                  struct session_outputs *outputs)
{
	struct address_source source = source_of(session);
	struct error error = { 0 };
	bool replaced;
	const char *settled =
	    address_settle(&source, announced, &outputs->arena, &replaced, &error);

	if (replaced)
		error_set(&error, ERROR_FORBIDDEN,
		          "node %.90s announces the address '%.100s' for a slot, which is not its "
		          "own: %s is used instead",
		          session->name, announced, settled);
	if (!settled || replaced)
		misreport(outputs, error.text);
	return settled;
}

/* Slots as the core is to see them: one without a usable address does not take requests. */
static const struct slot_report *settle_slots(const struct session *session,
                                              const struct node_report_command *snapshot,
                                              struct session_outputs *outputs)
{
	size_t count = (size_t)snapshot->slot_count;
	struct slot_report *slots = arena_alloc(&outputs->arena, (count + 1) * sizeof(*slots));

	for (size_t i = 0; i < count; i++) {
		slots[i] = snapshot->slots[i];
		const char *address =
		    slots[i].ready ? settle_address(session, slots[i].address, outputs) : NULL;
		slots[i].ready = address != NULL;
		slots[i].address = address ? address : "";
	}
	return slots;
}

/* Tasks of a gang find each other by the label `address` of their nodes. */
static const char *settle_labels(const struct session *session, const char *labels,
                                 struct session_outputs *outputs)
{
	static const char key[] = "address=";
	struct address_source source = source_of(session);
	struct buffer settled = { 0 };

	if (!labels || !strstr(labels, key))
		return labels;
	buffer_text(&settled, "");
	for (const char *line = labels; *line;) {
		size_t size = strcspn(line, "\n");
		char *label = arena_copy(&outputs->arena, line, size + 1);
		label[size] = '\0';
		if (strncmp(label, key, sizeof(key) - 1) == 0 &&
		    !address_is_own(&source, label + sizeof(key) - 1))
			buffer_print(&settled, "%s%s", key,
			             *session->peer ? session->peer : session->name);
		else
			buffer_print(&settled, "%s", label);
		line += size;
		if (*line)
			buffer_print(&settled, "%c", *line++);
	}
	labels = arena_string(&outputs->arena, settled.data);
	buffer_free(&settled);
	return labels;
}

void session_take_snapshot(struct session *session, const struct message *message,
                           struct session_outputs *outputs)
{
	struct command command = { .kind = COMMAND_NODE_REPORT };
	size_t count = session->given_count, most = count + session->starts.held.count + 1;
	int64_t *coming = arena_alloc(&outputs->arena, most * sizeof(*coming));

	INVARIANT(message->kind == MESSAGE_SNAPSHOT && message->number > 0);
	for (size_t i = 0; i < session->given_count; i++)
		coming[i] = session->given[i].reservation_id;
	count += starts_held(&session->starts, coming + count);
	command.report = message->snapshot;
	command.report.coming = coming;
	command.report.coming_count = (int64_t)count;
	command.report.name = session->name;
	command.report.boot = session->boot;
	command.report.snapshot = true;
	command.report.labels = settle_labels(session, message->snapshot.labels, outputs);
	command.report.slots = settle_slots(session, &message->snapshot, outputs);
	told_snapshot(&session->told, &message->snapshot, &session->policy);
	session_command(session, &command, message->number, outputs);
}

static void tell_gpu(struct session *session, const struct gpu_sample *sample,
                     const struct measurement *measurements, int64_t count,
                     struct session_outputs *outputs)
{
	struct command command = { .kind = COMMAND_GPU_REPORT };

	command.gpu = (struct gpu_report_command){ .uuid = sample->uuid,
		                                   .foreign_mib = sample->foreign_mib,
		                                   .unexplained_mib = sample->unexplained_mib,
		                                   .temperature_c = sample->temperature_c,
		                                   .healthy = sample->healthy,
		                                   .measurements = measurements,
		                                   .measurement_count = count,
		                                   .node = session->name };
	told_sample(&session->told, sample, measurements, count, &session->policy);
	session_command(session, &command, 0, outputs);
}

static int64_t uses_on(const struct beat *beat, const char *uuid, struct measurement *measurements)
{
	int64_t count = 0;

	for (int64_t i = 0; i < beat->use_count; i++)
		if (strcmp(beat->uses[i].uuid, uuid) == 0)
			measurements[count++] = (struct measurement){
				.reservation_id = beat->uses[i].reservation_id,
				.uuid = uuid,
				.memory_mib = beat->uses[i].memory_mib,
			};
	return count;
}

static struct gpu_sample sample_in(const struct beat *beat, int64_t at)
{
	struct gpu_sample sample = beat->samples[at];

	sample.unexplained_mib = 0;
	for (int64_t i = 0; i < beat->unexplained_count; i++)
		if (strcmp(beat->unexplained[i].uuid, sample.uuid) == 0)
			sample.unexplained_mib = beat->unexplained[i].memory_mib;
	return sample;
}

void session_take_beat(struct session *session, const struct beat *beat,
                       struct session_outputs *outputs)
{
	for (int64_t i = 0; i < beat->sample_count; i++) {
		struct gpu_sample sample = sample_in(beat, i);
		if (!told_is_news(&session->told, &sample, beat->uses, beat->use_count,
		                  &session->policy))
			continue;
		size_t most = (size_t)beat->use_count + 1;
		struct measurement *measurements =
		    arena_alloc(&outputs->arena, most * sizeof(*measurements));
		int64_t count = uses_on(beat, sample.uuid, measurements);
		tell_gpu(session, &sample, measurements, count, outputs);
	}
}

/* The core is to know exactly what the node measured when it refused, or it would
 * give the same order again. */
static void tell_figures(struct session *session, const struct change *change,
                         struct session_outputs *outputs)
{
	struct measurement *on =
	    arena_alloc(&outputs->arena, (size_t)(change->measurement_count + 1) * sizeof(*on));

	for (int64_t i = 0; i < change->sample_count; i++) {
		struct gpu_sample sample = change->samples[i];
		int64_t count = 0;
		sample.unexplained_mib = told_unexplained_mib(&session->told, sample.uuid);
		for (int64_t m = 0; m < change->measurement_count; m++)
			if (strcmp(change->measurements[m].uuid, sample.uuid) == 0)
				on[count++] = change->measurements[m];
		tell_gpu(session, &sample, on, count, outputs);
	}
}

static enum task_notice notice_of(const struct change *change)
{
	switch (change->kind) {
	case CHANGE_IDLE:
		return NOTICE_IDLE;
	case CHANGE_UNGUARDED:
		return NOTICE_UNGUARDED;
	case CHANGE_CROWDED:
		return NOTICE_CROWDED;
	case CHANGE_UNEXPLAINED:
		return NOTICE_UNEXPLAINED;
	default:
		return NOTICE_OVER;
	}
}

static struct command command_of(const struct session *session, const struct change *change)
{
	static const enum command_kind task_kinds[CHANGE_KINDS] = {
		[CHANGE_STARTED] = COMMAND_TASK_STARTED,
		[CHANGE_REFUSED] = COMMAND_TASK_REFUSED,
		[CHANGE_EXITED] = COMMAND_TASK_EXITED,
		[CHANGE_RELEASED] = COMMAND_MEMORY_RELEASED,
		[CHANGE_CHECKPOINT] = COMMAND_TASK_CHECKPOINT,
		[CHANGE_OVER] = COMMAND_TASK_NOTICE,
		[CHANGE_IDLE] = COMMAND_TASK_NOTICE,
		[CHANGE_UNGUARDED] = COMMAND_TASK_NOTICE,
		[CHANGE_SUSPENDED] = COMMAND_TASK_SUSPENDED,
		[CHANGE_RESUMED] = COMMAND_TASK_RESUMED,
		[CHANGE_CROWDED] = COMMAND_TASK_NOTICE,
		[CHANGE_UNEXPLAINED] = COMMAND_TASK_NOTICE,
	};
	static const enum command_kind slot_kinds[CHANGE_KINDS] = {
		[CHANGE_STARTED] = COMMAND_SLOT_LOADING,     [CHANGE_READY] = COMMAND_SLOT_READY,
		[CHANGE_REFUSED] = COMMAND_SLOT_EXITED,      [CHANGE_EXITED] = COMMAND_SLOT_EXITED,
		[CHANGE_RELEASED] = COMMAND_MEMORY_RELEASED,
	};
	struct command command = { .kind = (change->slot ? slot_kinds : task_kinds)[change->kind] };
	bool moved = change->kind == CHANGE_SUSPENDED || change->kind == CHANGE_RESUMED;

	if (change->slot && command.kind != COMMAND_MEMORY_RELEASED) {
		command.slot.reservation_id = change->reservation_id;
		command.slot.address = change->address;
		command.slot.message = change->message;
		command.slot.released = change->kind == CHANGE_REFUSED;
		command.slot.node = session->name;
	} else {
		command.task.reservation_id = change->reservation_id;
		command.task.exit_code = change->exit_code;
		command.task.message = change->message;
		command.task.notice = (int32_t)notice_of(change);
		command.task.ago_ms = moved ? change->took_ms : change->ago_ms;
		command.task.released = moved && change->exit_code == 0;
		command.task.foreign = change->reason == END_FOREIGN;
		command.task.use = change->use;
		command.task.node = session->name;
	}
	return command;
}

void session_take_change(struct session *session, const struct message *message,
                         struct session_outputs *outputs)
{
	const struct change *change = &message->change;
	struct command command = command_of(session, change);

	bool for_people = (change->kind >= CHANGE_LATE && change->kind <= CHANGE_UNGUARDED) ||
	                  change->kind == CHANGE_CROWDED || change->kind == CHANGE_UNEXPLAINED;

	INVARIANT(message->kind == MESSAGE_CHANGE && message->number > 0);
	if (for_people || change->kind == CHANGE_REFUSED)
		session_output(outputs, SESSION_NOTE)->message = message;
	if (change->kind == CHANGE_REFUSED)
		tell_figures(session, change, outputs);
	if (command.kind == COMMAND_SLOT_READY) {
		command.slot.address = settle_address(session, change->address, outputs);
		if (!command.slot.address)
			return;
	}
	if (command.kind != COMMAND_START) /* 0: this is for people */
		session_command(session, &command, message->number, outputs);
}
