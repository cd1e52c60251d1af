/* facts.c - what is known of nodes beside their reports: always recorded */
#include <string.h>

#include "core/queue/demand.h"
#include "core/state.h"

static struct node *facts_node(const struct sched *sched, const char *name, struct error *error)
{
	struct node *node = name ? cluster_node(&sched->cluster, name) : NULL;

	if (!node)
		error_set(error, ERROR_NOT_FOUND, "node %s is not known", name ? name : "(none)");
	return node;
}

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

/* Something may fit, or not any more, for reasons that are not about GPUs. */
static void facts_moved(struct sched *sched)
{
	sched->cluster.rules_version++;
	if (sched->index.built)
		index_freed(&sched->index);
}

bool facts_apply(struct sched *sched, const struct node_facts_command *facts, struct error *error)
{
	struct node *node = facts_node(sched, facts->name, error);

	INVARIANT(!sched->plan.open && sched->effects != NULL);
	if (!node || !demand_check(or_empty(facts->resources), "", "", "", error) ||
	    !demand_check(or_empty(facts->taken), "", "", "", error))
		return false;
	if (facts->taken_cpu_milli < 0 || facts->taken_cpu_milli > CPU_MILLI_MAX ||
	    facts->taken_host_bytes < 0 || facts->taken_host_bytes > HOST_BYTES_MAX)
		return error_set(error, ERROR_INVALID,
		                 "node %s: what others take of it is not an amount", facts->name);
	struct node_record record = node->r;
	record.resources = or_empty(facts->resources);
	record.taken = or_empty(facts->taken);
	record.taken_cpu_milli = facts->taken_cpu_milli;
	record.taken_host_bytes = facts->taken_host_bytes;
	if (record_equal(RECORD_NODE, &record, &node->r))
		return true;
	node_rename(node, &record);
	sched->cluster.counted = false;
	if (sched->index.built)
		index_touch(&sched->index, node, &sched->config);
	facts_moved(sched);
	sched_dirty_node(sched, node);
	return true;
}

bool node_class_apply(struct sched *sched, const char *name, const char *nodes, struct error *error)
{
	struct node_class_record record = { .name = name, .nodes = or_empty(nodes) };

	INVARIANT(!sched->plan.open && sched->effects != NULL);
	if (!node_class_check(name, record.nodes, error))
		return false;
	struct node_class *class = cluster_node_class(&sched->cluster, name);
	if (class && strcmp(class->r.nodes, record.nodes) == 0)
		return true;
	if (!class && !*record.nodes)
		return true;
	record.id = class ? class->r.id : ++sched->meta.last_class_id;
	if (*record.nodes) {
		cluster_put_node_class(&sched->cluster, &record);
		effects_put(sched->effects, RECORD_NODE_CLASS, &record);
	} else {
		effects_delete(sched->effects, RECORD_NODE_CLASS, record.id, 0);
		cluster_remove_node_class(&sched->cluster, class);
	}
	sched_cluster_changed(sched, true); /* filters look at the class again */
	facts_moved(sched);
	return true;
}

struct guest *guest_load(struct sched *sched, const struct guest_record *record)
{
	struct node *node = map_get(&sched->cluster.node_by_id, record->node_id);
	struct filter *filter = shapes_guest_filter(&sched->shapes, record->marks, record->rules);

	return cluster_add_guest(&sched->cluster, node, filter, record);
}

bool guest_put(struct sched *sched, const struct guest_command *command, struct error *error)
{
	struct node *node = facts_node(sched, command->node, error);

	INVARIANT(!sched->plan.open && sched->effects != NULL);
	if (!node)
		return false;
	if (!command->name || !*command->name)
		return error_set(error, ERROR_INVALID, "a guest of node %s has no name",
		                 command->node);
	if (!demand_check("", or_empty(command->rules), or_empty(command->marks), "", error))
		return false;
	struct guest *guest = text_map_get(&sched->cluster.guest_by_name, command->name);
	struct guest_record record = {
		.id = guest ? guest->r.id : sched->meta.last_guest_id + 1,
		.node_id = node->r.id,
		.name = command->name,
		.marks = or_empty(command->marks),
		.rules = or_empty(command->rules),
		.ending = command->ending,
	};
	if (guest && record_equal(RECORD_GUEST, &record, &guest->r))
		return true;
	if (guest)
		cluster_remove_guest(&sched->cluster, guest);
	else
		sched->meta.last_guest_id++;
	guest_load(sched, &record);
	effects_put(sched->effects, RECORD_GUEST, &record);
	facts_moved(sched);
	return true;
}

static void guest_leaves(struct sched *sched, struct guest *guest)
{
	effects_delete(sched->effects, RECORD_GUEST, guest->r.id, 0);
	cluster_remove_guest(&sched->cluster, guest);
	facts_moved(sched);
}

bool guest_remove(struct sched *sched, const char *name, struct error *error)
{
	struct guest *guest = name ? text_map_get(&sched->cluster.guest_by_name, name) : NULL;

	INVARIANT(!sched->plan.open && sched->effects != NULL);
	if (!guest)
		return error_set(error, ERROR_NOT_FOUND, "guest %s is not known",
		                 name ? name : "(none)");
	guest_leaves(sched, guest);
	return true;
}

void guests_leave(struct sched *sched, struct node *node)
{
	while (node->guest_count > 0)
		guest_leaves(sched, node->guests[node->guest_count - 1]);
}
