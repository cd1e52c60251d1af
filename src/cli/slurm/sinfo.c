/* sinfo.c - sinfo: nodes, by partition and state */
#include <stdlib.h>
#include <string.h>

#include "cli/slurm/program.h"
#include "json/member.h"

static const struct option options[] = {
	OPTION("--Node", "-N", NULL, "one line for each node"),
	OPTION("--long", "-l", NULL, "more columns"),
	OPTION("--format", "-o", "FORMAT", "columns: '%9P %.5a %.6D %N'", .repeats = true),
	OPTION("--noheader", "-h", NULL, "without heads"),
	OPTION("--partition", "-p", "LIST", "these partitions", .repeats = true),
	OPTION("--nodes", "-n", "LIST", "these nodes", .repeats = true),
	OPTION("--states", "-t", "LIST", "nodes in these states: idle,mix,alloc,drain,down",
	       .repeats = true),
	OPTION("--summarize", "-s", NULL, "one line for each partition"),
	OPTION("--list-reasons", "-R", NULL, "nodes that are drained or down"),
	OPTION("--exact", "-e", NULL, NULL),
	OPTION("--all", "-a", NULL, NULL),
	{ 0 },
};

/* Nodes on one line. */
struct group {
	const char *partition, *state;
	const json_t *first;
	struct buffer names;
	int count, states[4]; /* allocated, idle, other, all */
	int64_t cpus, used_cpus, memory_mib, gpus;
};

enum { ALLOCATED, IDLE, OTHER, ALL };

static const char *partition_of(const json_t *node)
{
	const char *label = member_text(json_object_get(node, "labels"), "partition");
	return *label ? label : "all";
}

static const char *state_of(const json_t *node)
{
	int64_t gpus = member_integer(node, "total_gpus"),
		free = member_integer(node, "available_gpus");
	bool busy = member_integer(node, "reservations") > 0 || free < gpus;
	if (!member_flag(node, "online"))
		return "down";
	if (member_flag(node, "draining"))
		return busy ? "draining" : "drained";
	if (!busy)
		return "idle";
	return gpus > 0 && free == 0 ? "allocated" : "mixed";
}

static const struct group *group_of(const void *row)
{
	return row;
}

static void print_partition(struct buffer *to, const void *row)
{
	const char *name = group_of(row)->partition;
	buffer_print(to, "%s%s", name, strcmp(name, "all") == 0 ? "*" : "");
}

static void print_available(struct buffer *to, const void *row)
{
	(void)row;
	buffer_text(to, "up");
}

static void print_limit(struct buffer *to, const void *row)
{
	(void)row;
	buffer_text(to, "infinite");
}

static void print_count(struct buffer *to, const void *row)
{
	buffer_print(to, "%d", group_of(row)->count);
}

static void print_long_state(struct buffer *to, const void *row)
{
	const struct group *group = group_of(row);
	buffer_print(to, "%s%s", group->state, strcmp(group->state, "down") == 0 ? "*" : "");
}

static void sinfo_print_state(struct buffer *to, const void *row)
{
	static const char *const words[][2] = { { "allocated", "alloc" },
		                                { "mixed", "mix" },
		                                { "drained", "drain" },
		                                { "draining", "drng" },
		                                { "down", "down*" } };
	const char *state = group_of(row)->state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i][0], state) == 0)
			state = words[i][1];
	buffer_text(to, state);
}

static void print_names(struct buffer *to, const void *row)
{
	buffer_bytes(to, group_of(row)->names.data, group_of(row)->names.size);
}

static void print_cpus(struct buffer *to, const void *row)
{
	const struct group *group = group_of(row);
	buffer_print(to, "%lld", (long long)(group->count > 0 ? group->cpus / group->count : 0));
}

static void print_cpu_states(struct buffer *to, const void *row)
{
	const struct group *group = group_of(row);
	buffer_print(to, "%lld/%lld/0/%lld", (long long)group->used_cpus,
	             (long long)(group->cpus - group->used_cpus), (long long)group->cpus);
}

static void print_memory(struct buffer *to, const void *row)
{
	const struct group *group = group_of(row);
	buffer_print(to, "%lld",
	             (long long)(group->count > 0 ? group->memory_mib / group->count : 0));
}

static void print_gres(struct buffer *to, const void *row)
{
	const struct group *group = group_of(row);
	if (group->gpus > 0)
		buffer_print(to, "gpu:%lld", (long long)(group->gpus / group->count));
	else
		buffer_text(to, "(null)");
}

static void print_node_states(struct buffer *to, const void *row)
{
	const int *states = group_of(row)->states;
	buffer_print(to, "%d/%d/%d/%d", states[ALLOCATED], states[IDLE], states[OTHER],
	             states[ALL]);
}

static void print_reason(struct buffer *to, const void *row)
{
	const char *reason = member_text(group_of(row)->first, "drain_reason");
	if (strcmp(group_of(row)->state, "down") == 0)
		reason = "Not responding";
	buffer_text(to, *reason ? reason : "none");
}

static void print_features(struct buffer *to, const void *row)
{
	const json_t *labels = json_object_get(group_of(row)->first, "labels");
	const char *name;
	const json_t *value;
	bool any = false;
	json_object_foreach((json_t *)labels, name, value)
	{
		buffer_print(to, "%s%s=%s", any ? "," : "", name, json_string_value(value));
		any = true;
	}
	if (!any)
		buffer_text(to, "(null)");
}

static void print_one(struct buffer *to, const void *row)
{
	(void)row;
	buffer_text(to, "1");
}

static const struct slurm_column columns[] = {
	{ 'P', "Partition", "PARTITION", 9, print_partition },
	{ 'R', "PartitionName", "PARTITION", 9, print_partition },
	{ 'a', "Available", "AVAIL", 5, print_available },
	{ 'l', "Time", "TIMELIMIT", 10, print_limit },
	{ 'D', "Nodes", "NODES", 6, print_count },
	{ 't', "StateCompact", "STATE", 6, sinfo_print_state },
	{ 'T', "StateLong", "STATE", 11, print_long_state },
	{ 'N', "NodeList", "NODELIST", 15, print_names },
	{ 'n', "NodeHost", "HOSTNAMES", 15, print_names },
	{ 'c', "CPUs", "CPUS", 4, print_cpus },
	{ 'C', "CPUsState", "CPUS(A/I/O/T)", 15, print_cpu_states },
	{ 'm', "Memory", "MEMORY", 6, print_memory },
	{ 'G', "Gres", "GRES", 12, print_gres },
	{ 'F', "NodeAIOT", "NODES(A/I/O/T)", 15, print_node_states },
	{ 'A', "NodeAI", "NODES(A/I/O/T)", 15, print_node_states },
	{ 'E', "Reason", "REASON", 20, print_reason },
	{ 'f', "Features", "AVAIL_FEATURES", 15, print_features },
	{ 'w', "Weight", "WEIGHT", 6, print_one },
	{ 0 },
};

static void count(struct group *group, const json_t *node)
{
	const char *state = state_of(node);
	if (group->count == 0)
		group->first = node;
	buffer_print(&group->names, "%s%s", group->count > 0 ? "," : "", member_text(node, "name"));
	group->count++;
	group->cpus += member_integer(node, "total_cpu_cores");
	group->used_cpus += member_integer(node, "used_cpu_cores");
	group->memory_mib += member_integer(node, "total_memory_mb");
	group->gpus += member_integer(node, "total_gpus");
	group->states[ALL]++;
	if (strcmp(state, "idle") == 0)
		group->states[IDLE]++;
	else if (strcmp(state, "allocated") == 0 || strcmp(state, "mixed") == 0)
		group->states[ALLOCATED]++;
	else
		group->states[OTHER]++;
}

static bool is_wanted(const struct slurm_call *call, const json_t *node)
{
	const char *states = slurm_option(call, "--states");
	struct group one = { .state = state_of(node) };
	struct buffer word = { 0 };
	sinfo_print_state(&word, &one);
	bool down = strcmp(one.state, "down") == 0 || strncmp(one.state, "drain", 5) == 0;
	bool wanted = slurm_in_list(slurm_option(call, "--partition"), partition_of(node)) &&
	              slurm_in_list(slurm_option(call, "--nodes"), member_text(node, "name")) &&
	              (slurm_in_list(states, one.state) || slurm_in_list(states, word.data)) &&
	              (down || !slurm_given(call, "--list-reasons"));
	buffer_free(&word);
	return wanted;
}

/* The group that the node belongs to, new or not. */
static struct group *find_group(const struct slurm_call *call, struct group *groups, size_t *many,
                                const json_t *node)
{
	bool each = slurm_given(call, "--Node") || slurm_given(call, "--list-reasons");
	const char *partition = partition_of(node), *state = state_of(node);
	for (size_t i = 0; i < *many && !each; i++)
		if (strcmp(groups[i].partition, partition) == 0 &&
		    (slurm_given(call, "--summarize") || strcmp(groups[i].state, state) == 0))
			return &groups[i];
	groups[*many] = (struct group){ .partition = partition, .state = state };
	return &groups[(*many)++];
}

static const char *default_format(const struct slurm_call *call)
{
	const char *text = slurm_option(call, "--format");
	if (text)
		return text;
	if (slurm_given(call, "--list-reasons"))
		return "%20E %15N %T";
	if (slurm_given(call, "--summarize"))
		return "%9P %.5a %.10l %.16F %N";
	if (slurm_given(call, "--Node"))
		return slurm_given(call, "--long") ? "%15N %.6D %9P %.11T %.4c %.8m %.10G %20E"
		                                   : "%15N %.6D %9P %6t";
	if (getenv("SINFO_FORMAT"))
		return getenv("SINFO_FORMAT");
	return slurm_given(call, "--long") ? "%9P %.5a %.10l %.6D %.11T %.10G %N"
	                                   : "%9P %.5a %.10l %.6D %.6t %N";
}

static int sinfo_run(struct slurm_call *call)
{
	static struct slurm_format format;
	struct error error = { 0 };
	struct buffer text = { 0 };
	size_t place, many = 0;
	const json_t *node;
	if (!slurm_format_read(&format, columns, default_format(call), &error))
		return slurm_fail(call, "%s", error.text);
	if (!slurm_open(call))
		return 1;
	json_t *answer = session_get(&call->session, "/api/v1/nodes", &error);
	if (!answer)
		return slurm_fail(call, "%s", error.text);
	const json_t *nodes = json_object_get(answer, "nodes");
	struct group *groups = calloc(json_array_size(nodes) + 1, sizeof(*groups));
	if (slurm_given(call, "--long") && !slurm_given(call, "--noheader"))
		slurm_print_date(&text);
	if (!slurm_given(call, "--noheader"))
		slurm_format_print_heads(&format, &text);
	json_array_foreach(nodes, place, node) if (groups && is_wanted(call, node))
	    count(find_group(call, groups, &many, node), node);
	for (size_t i = 0; i < many; i++) {
		slurm_format_print(&format, &text, &groups[i]);
		buffer_free(&groups[i].names);
	}
	free(groups);
	json_decref(answer);
	return slurm_print(&text);
}

const struct slurm_program slurm_sinfo = {
	.name = "sinfo",
	.usage = "[OPTION...]",
	.summary = "show nodes and partitions",
	.notes = "A node's partition is its label 'partition'; nodes without it are in 'all'.\n",
	.options = options,
	.run = sinfo_run,
};
