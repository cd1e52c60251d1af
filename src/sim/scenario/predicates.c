/* predicates.c - gpu-sim predicates: kube-scheduler's cases, answered by the core */
#include "sim/scenario/predicates.h"

#include <stdlib.h>
#include <string.h>

#include "core/place/place.h"
#include "core/sched.h"
#include "kube/pod.h"
#include "sim/world/driver.h"
#include "json/member.h"

#define CLASS_NAME "pod"
#define UNCOUNTED "9007199254740992" /* 2^53: a resource that is no business of the node */

static const char *name_of(const json_t *node)
{
	const char *name = member_text(json_object_get(node, "metadata"), "name");

	return *name ? name : "node";
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Labels as the core keeps them: lines, in order. */
static void print_labels(const json_t *node, struct buffer *labels)
{
	json_t *map = json_object_get(json_object_get(node, "metadata"), "labels"), *value;
	char **lines = memory_zero(json_object_size(map) + 1, sizeof(*lines));
	size_t count = 0;
	const char *key;

	json_object_foreach(map, key, value)
	{
		struct buffer line = { 0 };
		buffer_print(&line, "%s=%s", key,
		             json_is_string(value) ? json_string_value(value) : "");
		lines[count++] = line.data;
	}
	qsort(lines, count, sizeof(*lines), by_text);
	for (size_t i = 0; i < count; i++) {
		buffer_print(labels, "%s%s", i > 0 ? "\n" : "", lines[i]);
		free(lines[i]);
	}
	buffer_text(labels, "");
	free(lines);
}

static bool report_node(struct driver *driver, const json_t *node, struct error *error)
{
	struct pod_request capacity;
	struct buffer labels = { 0 };

	print_labels(node, &labels);
	bool sent = pod_node_capacity(node, &capacity, error) &&
	            driver_send(driver,
	                        (struct command){ .kind = COMMAND_NODE_REPORT,
	                                          .report = { .name = name_of(node),
	                                                      .boot = "",
	                                                      .zone = "",
	                                                      .rack = "",
	                                                      .labels = labels.data,
	                                                      .cpu_milli = capacity.cpu_milli,
	                                                      .host_bytes = capacity.memory_bytes,
	                                                      .snapshot = true } },
	                        error);
	buffer_free(&capacity.counts);
	buffer_free(&labels);
	return sent;
}

/* Adds lines name=n to those in `sum`, a map of numbers. */
static void add_lines(json_t *sum, const char *lines)
{
	while (*lines) {
		size_t size = strcspn(lines, "\n");
		const char *equals = memchr(lines, '=', size);
		char name[256];
		snprintf(name, sizeof(name), "%.*s", (int)(equals - lines), lines);
		json_int_t before = json_integer_value(json_object_get(sum, name));
		json_object_set_new(sum, name,
		                    json_integer(before + strtoll(equals + 1, NULL, 10)));
		lines += size + (lines[size] == '\n');
	}
}

static void print_lines(json_t *sum, struct buffer *lines)
{
	const char *name;
	json_t *value;

	json_object_foreach(sum, name, value)
	    buffer_print(lines, "%s%s=%lld", lines->size > 0 ? "\n" : "", name,
	                 (long long)json_integer_value(value));
	buffer_text(lines, "");
}

/* Resources of device classes are counted by whoever gives the devices out. */
static void leave_to_devices(const json_t *classes, struct buffer *resources)
{
	const json_t *class;
	size_t i;

	json_array_foreach(classes, i, class)
	{
		const char *name =
		    member_text(json_object_get(class, "spec"), "extendedResourceName");
		struct buffer line = { 0 };
		buffer_print(&line, "\n%s=", name);
		if (*name && !strstr(resources->data, line.data))
			buffer_print(resources, "\n%s=" UNCOUNTED, name);
		buffer_free(&line);
	}
}

/* What the node has to be counted, and what its pods take of it. */
static bool send_facts(struct driver *driver, const json_t *predicate_case, const json_t *node,
                       struct error *error)
{
	const json_t *args = json_object_get(predicate_case, "args"), *pod;
	struct node_facts_command facts = { .name = name_of(node) };
	struct pod_request capacity, request;
	struct buffer taken = { 0 };
	json_t *sum = json_object();
	bool right = pod_node_capacity(node, &capacity, error);
	size_t i;

	leave_to_devices(json_object_get(args, "deviceClasses"), &capacity.counts);
	json_array_foreach(json_object_get(predicate_case, "existing_pods"), i, pod)
	{
		const char *at = member_text(json_object_get(pod, "spec"), "nodeName");
		if (!right || strcmp(at, facts.name) != 0 || pod_has_ended(pod))
			continue;
		right = pod_request_read(pod, NULL, &request, error);
		facts.taken_cpu_milli += request.cpu_milli;
		facts.taken_host_bytes += request.memory_bytes;
		add_lines(sum, right ? request.counts.data : "");
		buffer_free(&request.counts);
	}
	print_lines(sum, &taken);
	facts.resources = capacity.counts.data;
	facts.taken = taken.data;
	right = right &&
	        driver_send(driver, (struct command){ .kind = COMMAND_NODE_FACTS, .facts = facts },
	                    error);
	json_decref(sum);
	buffer_free(&taken);
	buffer_free(&capacity.counts);
	return right;
}

static bool send_guest(struct driver *driver, const json_t *pod, const char *name,
                       const struct pod_settings *settings, struct error *error)
{
	const json_t *metadata = json_object_get(pod, "metadata");
	struct buffer marks = { 0 }, rules = { 0 };

	buffer_text(&rules, "");
	pod_marks(pod, &marks);
	bool sent =
	    pod_rules(pod, settings, &rules, error) &&
	    driver_send(
		driver,
		(struct command){
		    .kind = COMMAND_PUT_GUEST,
		    .guest = { .name = name,
	                       .node = member_text(json_object_get(pod, "spec"), "nodeName"),
	                       .marks = marks.data,
	                       .rules = rules.data,
	                       .ending = member_has(metadata, "deletionTimestamp") } },
		error);
	buffer_free(&marks);
	buffer_free(&rules);
	return sent;
}

static bool has_node(const json_t *nodes, const char *name)
{
	const json_t *node;
	size_t i;

	json_array_foreach(nodes, i, node) if (strcmp(name_of(node), name) == 0) return true;
	return false;
}

static bool send_cluster(struct driver *driver, const json_t *predicate_case,
                         const struct pod_settings *settings, struct error *error)
{
	const json_t *nodes = json_object_get(predicate_case, "nodes"), *node, *pod;
	size_t i;

	json_array_foreach(nodes, i,
	                   node) if (!report_node(driver, node, error) ||
	                             !send_facts(driver, predicate_case, node, error)) return false;
	json_array_foreach(json_object_get(predicate_case, "existing_pods"), i, pod)
	{
		char name[32];
		snprintf(name, sizeof(name), "existing-%zu", i);
		if (has_node(nodes, member_text(json_object_get(pod, "spec"), "nodeName")) &&
		    !pod_has_ended(pod) && !send_guest(driver, pod, name, settings, error))
			return false;
	}
	return true;
}

static bool send_class(struct driver *driver, const json_t *predicate_case, struct error *error)
{
	const json_t *args = json_object_get(predicate_case, "args"), *node;
	const json_t *pod = json_object_get(predicate_case, "pod");
	struct buffer nodes = { 0 };
	size_t i;

	buffer_text(&nodes, "");
	json_array_foreach(json_object_get(predicate_case, "nodes"), i, node)
	{
		struct buffer reasons = { 0 };
		buffer_text(&reasons, "");
		unsigned mask =
		    pod_judge_node(pod, node, json_object_get(args, "addedAffinity"), &reasons);
		buffer_print(&nodes, "%s%o %s\t%s", i > 0 ? "\n" : "", mask, name_of(node),
		             reasons.data);
		buffer_free(&reasons);
	}
	bool sent = driver_send(driver,
	                        (struct command){ .kind = COMMAND_PUT_NODE_CLASS,
	                                          .node_class = { CLASS_NAME, nodes.data } },
	                        error);
	buffer_free(&nodes);
	return sent;
}

/* The pod as a job; its id, or 0 with a reason. */
static int64_t submit(struct driver *driver, const json_t *pod, const struct pod_settings *settings,
                      struct error *error)
{
	struct pod_request request;
	struct buffer marks = { 0 }, rules = { 0 };

	buffer_text(&rules, "");
	pod_marks(pod, &marks);
	bool sent =
	    pod_request_read(pod, settings, &request, error) &&
	    pod_rules(pod, settings, &rules, error) &&
	    driver_send(driver,
	                (struct command){ .kind = COMMAND_SUBMIT,
	                                  .submit.job = { .tenant_id = 1,
	                                                  .name = "pod",
	                                                  .payload = "",
	                                                  .gpu_models = "",
	                                                  .node_labels = "",
	                                                  .idempotency_key = "",
	                                                  .user = "",
	                                                  .cpu_milli = request.cpu_milli,
	                                                  .host_bytes = request.memory_bytes,
	                                                  .resources = request.counts.data,
	                                                  .rules = rules.data,
	                                                  .marks = marks.data,
	                                                  .node_class = CLASS_NAME } },
	                error);
	buffer_free(&request.counts);
	buffer_free(&marks);
	buffer_free(&rules);
	return sent ? driver->effects.reply_id : 0;
}

/* kube-scheduler's plugins, and what they say. */
struct plugin_word {
	const char *plugin;
	enum check check;
	const char *begins; /* of the subject */
	const char *reason; /* with the resource's name where it has a %s */
};
static const struct plugin_word plugin_words[] = {
	{ "NodeResourcesFit", CHECK_COUNTED, "pods", "Too many pods" },
	{ "NodeResourcesFit", CHECK_COUNTED, "", "Insufficient " },
	{ "NodeResourcesFit", CHECK_CPU, "", "Insufficient " },
	{ "NodeResourcesFit", CHECK_HOST, "", "Insufficient " },
	{ "NodePorts", CHECK_PORT, "",
	  "node(s) didn't have free ports for the requested pod ports" },
	{ "InterPodAffinity", CHECK_TOGETHER, "", "node(s) didn't match pod affinity rules" },
	{ "InterPodAffinity", CHECK_APART, "", "node(s) didn't match pod anti-affinity rules" },
	{ "InterPodAffinity", CHECK_KEPT_OFF, "",
	  "node(s) didn't satisfy existing pods anti-affinity rules" },
	{ "PodTopologySpread", CHECK_SPREAD, "",
	  "node(s) didn't match pod topology spread constraints" },
	{ "NodeName", CHECK_CLASS, POD_JUDGE_NAME, "node(s) didn't match the requested node name" },
	{ "NodeUnschedulable", CHECK_CLASS, POD_JUDGE_UNSCHEDULABLE, "node(s) were unschedulable" },
	{ "NodeAffinity", CHECK_CLASS, POD_JUDGE_ENFORCED,
	  "node(s) didn't match scheduler-enforced node affinity" },
	{ "NodeAffinity", CHECK_CLASS, POD_JUDGE_SELECTOR,
	  "node(s) didn't match Pod's node affinity/selector" },
	{ "TaintToleration", CHECK_CLASS, POD_JUDGE_TAINT, "node(s) had untolerated taint(s)" },
};

/* What the core says of a node, as far as it concerns one plugin. */
struct verdict {
	const char *plugin;
	struct buffer reasons; /* lines */
	bool refused, lasting;
};

static void note(struct verdict *verdict, const struct plugin_word *word,
                 const struct node_refusal *refusal)
{
	bool first = !verdict->refused;

	/* Constraints are looked at in turn, and the first that fails has the say. */
	if (word->check == CHECK_SPREAD && !first)
		return;
	verdict->refused = true;
	verdict->lasting |= !refusal->clears && strcmp(word->reason, "Too many pods") != 0;
	buffer_print(&verdict->reasons, "%s%s%.*s", first ? "" : "\n", word->reason,
	             strcmp(word->reason, "Insufficient ") == 0 ? refusal->subject_size : 0,
	             refusal->subject);
}

static bool begins_in(const struct node_refusal *refusal, const char *begins)
{
	size_t size = strlen(begins);

	for (const char *at = refusal->subject; size > 0;) {
		size_t left = (size_t)(refusal->subject + refusal->subject_size - at);
		if (left >= size && memcmp(at, begins, size) == 0)
			return true;
		const char *next = left > 2 ? memchr(at, ';', left) : NULL;
		if (!next || (size_t)(next - at) + 2 >= left)
			return false;
		at = next + 2;
	}
	return true;
}

static void say(void *context, const struct node_refusal *refusal)
{
	struct verdict *verdict = context;

	for (size_t i = 0; i < sizeof(plugin_words) / sizeof(plugin_words[0]); i++) {
		const struct plugin_word *word = &plugin_words[i];
		if ((int32_t)word->check != refusal->check ||
		    strcmp(word->plugin, verdict->plugin) != 0)
			continue;
		bool whole = refusal->check == CHECK_COUNTED && *word->begins;
		if (whole ? refusal->subject_size != (int)strlen(word->begins) ||
		                !begins_in(refusal, word->begins)
		          : !begins_in(refusal, word->begins))
			continue;
		note(verdict, word, refusal);
		if (refusal->check == CHECK_COUNTED)
			return;
	}
}

/* Whether a reason of the case is among ours, as it is or for the same rule. */
static bool is_named(const struct verdict *verdict, const char *reason)
{
	static const char *const also[][2] = {
		{ "pod affinity terms conflict",
		  "node(s) didn't match Pod's node affinity/selector" },
		{ "node(s) didn't match pod topology spread constraints (missing required label)",
		  "node(s) didn't match pod topology spread constraints" },
	};
	const char *ours = verdict->reasons.data;

	for (size_t i = 0; i < sizeof(also) / sizeof(also[0]); i++)
		if (strcmp(reason, also[i][0]) == 0)
			reason = also[i][1];
	for (size_t size = strlen(reason); ours && (ours = strstr(ours, reason)); ours += size)
		if (ours[size] == '\0' || ours[size] == '\n')
			return true;
	return false;
}

static bool check_verdict(const struct verdict *verdict, const char *node, const json_t *expect,
                          struct buffer *reason)
{
	const char *code = !verdict->refused  ? "Success"
	                   : verdict->lasting ? "UnschedulableAndUnresolvable"
	                                      : "Unschedulable";
	const json_t *text;
	size_t i;

	if (strcmp(code, member_text(expect, "code")) != 0) {
		buffer_print(reason, "node %s: %s expected, %s found%s%s", node,
		             member_text(expect, "code"), code, verdict->refused ? ": " : "",
		             verdict->refused ? verdict->reasons.data : "");
		return false;
	}
	json_array_foreach(json_object_get(expect, "reasons"), i,
	                   text) if (!is_named(verdict, json_string_value(text)))
	{
		buffer_print(reason, "node %s: the reason '%s' is not named", node,
		             json_string_value(text));
		return false;
	}
	return true;
}

/* A pod that makes no sense is refused as a whole. */
static bool check_malformed(const json_t *expected, const struct error *error,
                            struct buffer *reason)
{
	const char *node;
	json_t *expect;

	json_object_foreach((json_t *)expected, node, expect)
	{
		const char *code = member_text(expect, "code");
		if (strcmp(code, "Error") == 0 || strcmp(code, "UnschedulableAndUnresolvable") == 0)
			continue;
		buffer_print(reason, "node %s: %s expected, the pod is refused: %s", node, code,
		             error->text);
		return false;
	}
	return true;
}

static bool check_nodes(struct driver *driver, int64_t job_id, const json_t *predicate_case,
                        struct buffer *reason)
{
	json_t *expect;
	const char *node;
	struct error error;
	bool right = true;

	json_object_foreach(json_object_get(predicate_case, "expect"), node, expect)
	{
		struct verdict verdict = { .plugin = member_text(predicate_case, "plugin") };
		if (!right)
			break;
		right = sched_why_node(driver->sched, job_id, *node ? node : "node", say, &verdict,
		                       &error);
		if (!right)
			buffer_text(reason, error.text);
		right = right && check_verdict(&verdict, node, expect, reason);
		buffer_free(&verdict.reasons);
	}
	return right;
}

static bool send_tenant(struct driver *driver, struct error *error)
{
	return driver_send(driver,
	                   (struct command){ .kind = COMMAND_PUT_TENANT,
	                                     .tenant = { .name = "pods",
	                                                 .payload = "",
	                                                 .limit_gpu = UNLIMITED,
	                                                 .limit_cpu = UNLIMITED,
	                                                 .limit_host = UNLIMITED,
	                                                 .limit_gpu_memory = UNLIMITED,
	                                                 .limit_jobs = UNLIMITED,
	                                                 .quota_gpu = UNLIMITED,
	                                                 .quota_cpu = UNLIMITED,
	                                                 .quota_host = UNLIMITED,
	                                                 .weight = 1000,
	                                                 .max_preemptions = UNLIMITED,
	                                                 .queue_max = UNLIMITED,
	                                                 .budget_per_month = UNLIMITED } },
	                   error);
}

bool predicates_is_left_out(const json_t *predicate_case)
{
	return json_object_size(
		   json_object_get(json_object_get(predicate_case, "args"), "features")) > 0;
}

bool predicates_run(const json_t *predicate_case, struct buffer *reason)
{
	const json_t *args = json_object_get(predicate_case, "args");
	const struct pod_settings settings = {
		.ignored_resources = json_object_get(args, "ignoredResources"),
		.ignored_groups = json_object_get(args, "ignoredResourceGroups"),
		.default_constraints = json_object_get(args, "defaultConstraints"),
		.services = json_object_get(args, "services"),
		.replica_sets = json_object_get(args, "replicaSets"),
		.namespaces = json_object_get(predicate_case, "namespaces"),
	};
	struct driver driver = { .now_ms = 1000, .check = true };
	struct error error;
	bool right;

	driver_start(&driver);
	if (!send_tenant(&driver, &error) ||
	    !send_cluster(&driver, predicate_case, &settings, &error) ||
	    !send_class(&driver, predicate_case, &error)) {
		buffer_text(reason, error.text);
		right = false;
	} else {
		int64_t id =
		    submit(&driver, json_object_get(predicate_case, "pod"), &settings, &error);
		right =
		    id ? check_nodes(&driver, id, predicate_case, reason)
		       : check_malformed(json_object_get(predicate_case, "expect"), &error, reason);
	}
	driver_free(&driver);
	return right;
}
