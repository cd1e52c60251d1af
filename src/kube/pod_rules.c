/* pod_rules.c - host ports, affinity to pods and topology spread, as rules of the core */
#include <string.h>

#include "base/memory.h"
#include "kube/pod.h"
#include "kube/selector.h"
#include "json/member.h"

static const json_t *metadata_of(const json_t *object)
{
	return json_object_get(object, "metadata");
}

static const char *namespace_of(const json_t *pod)
{
	return member_text(metadata_of(pod), "namespace");
}

/* Marks are lines, and requirements of rules have separators: nothing else may be in them. */
static bool is_plain(const char *text)
{
	return !strpbrk(text, "\n =|&!");
}

void pod_marks(const json_t *pod, struct buffer *marks)
{
	json_t *labels = json_object_get(metadata_of(pod), "labels"), *value;
	const char *key, *name = namespace_of(pod);

	buffer_print(marks, "@namespace=%s", is_plain(name) ? name : "");
	json_object_foreach(labels, key, value) if (json_is_string(value) && *key &&
	                                            is_plain(key) &&
	                                            is_plain(json_string_value(value)))
	    buffer_print(marks, "\n%s=%s", key, json_string_value(value));
	if (strcmp(member_text(json_object_get(pod, "spec"), "preemptionPolicy"), "Never") == 0)
		buffer_text(marks, "\n@preempts=never");
}

static void begin_line(struct buffer *rules)
{
	if (rules->size > 0)
		buffer_text(rules, "\n");
}

/* Ends the rule with the requirements in `selector`, each after an '&'. */
static void print_selector(struct buffer *rules, const struct buffer *selector, bool none)
{
	if (none)
		buffer_text(rules, "-");
	else if (selector->size == 0)
		buffer_text(rules, "*");
	else
		buffer_text(rules, selector->data + 1);
}

static bool add_ports(const json_t *containers, bool sidecars, struct buffer *rules,
                      struct error *error)
{
	const json_t *container, *port;
	size_t i, j;

	json_array_foreach(containers, i, container)
	{
		if (sidecars && strcmp(member_text(container, "restartPolicy"), "Always") != 0)
			continue;
		json_array_foreach(json_object_get(container, "ports"), j, port)
		{
			const char *protocol = member_text(port, "protocol");
			const char *ip = member_text(port, "hostIP");
			int64_t number = member_integer(port, "hostPort");
			if (number <= 0)
				continue;
			if (!is_plain(ip) || !is_plain(protocol))
				return error_set(error, ERROR_INVALID, "a host port is malformed");
			begin_line(rules);
			buffer_print(rules, "port %s %lld %s", *protocol ? protocol : "TCP",
			             (long long)number, *ip ? ip : "0.0.0.0");
		}
	}
	return true;
}

/* The namespaces in which a term selects pods, as a requirement; nothing for all. */
static bool print_namespaces(const json_t *pod, const json_t *term,
                             const struct pod_settings *settings, struct buffer *selector,
                             bool *none)
{
	const json_t *listed = json_object_get(term, "namespaces"), *name, *space;
	const json_t *by_labels = json_object_get(term, "namespaceSelector");
	size_t i, count = 0;

	if (json_is_object(by_labels) && json_object_size(by_labels) == 0)
		return true;
	buffer_text(selector, "&@namespace=");
	json_array_foreach(listed, i,
	                   name) if (json_is_string(name) && is_plain(json_string_value(name)))
	    buffer_print(selector, "%s%s", count++ ? "|" : "", json_string_value(name));
	if (json_is_object(by_labels))
		json_array_foreach(settings ? settings->namespaces : NULL, i, space)
		{
			const json_t *labels = json_object_get(metadata_of(space), "labels");
			const char *text = member_text(metadata_of(space), "name");
			if (selector_matches(by_labels, labels) && is_plain(text))
				buffer_print(selector, "%s%s", count++ ? "|" : "", text);
		}
	else if (count == 0)
		buffer_print(selector, "%s%s", count++ ? "|" : "", namespace_of(pod));
	*none |= count == 0;
	return true;
}

static bool add_terms(const json_t *pod, const json_t *affinity, const char *verb,
                      const struct pod_settings *settings, struct buffer *rules,
                      struct error *error)
{
	const json_t *term;
	size_t i;

	json_array_foreach(
	    json_object_get(affinity, "requiredDuringSchedulingIgnoredDuringExecution"), i, term)
	{
		const char *domain = member_text(term, "topologyKey");
		struct buffer selector = { 0 };
		bool none = false;
		if (!*domain || !is_plain(domain))
			return error_set(error, ERROR_INVALID,
			                 "an affinity term has no topologyKey, or a malformed one");
		bool right = selector_print(&selector, json_object_get(term, "labelSelector"),
		                            &none, error) &&
		             print_namespaces(pod, term, settings, &selector, &none);
		if (right) {
			begin_line(rules);
			buffer_print(rules, "%s label:%s ", verb, domain);
			print_selector(rules, &selector, none);
		}
		buffer_free(&selector);
		if (!right)
			return false;
	}
	return true;
}

/* Labels of the pod itself that a constraint's selector takes on. */
static bool print_own_labels(const json_t *pod, const json_t *keys, struct buffer *selector)
{
	const json_t *labels = json_object_get(metadata_of(pod), "labels"), *key;
	size_t i;

	json_array_foreach(keys, i, key)
	{
		const char *name = json_string_value(key);
		const char *value = name ? json_string_value(json_object_get(labels, name)) : NULL;
		if (value && is_plain(name) && is_plain(value))
			buffer_print(selector, "&%s=%s", name, value);
	}
	return true;
}

static bool add_constraint(const json_t *pod, const json_t *constraint, const json_t *selects,
                           struct buffer *rules, struct error *error)
{
	const char *domain = member_text(constraint, "topologyKey");
	const char *affinity = member_text(constraint, "nodeAffinityPolicy");
	bool honors_taints = strcmp(member_text(constraint, "nodeTaintsPolicy"), "Honor") == 0;
	bool honors_affinity = strcmp(affinity, "Ignore") != 0;
	int64_t skew = member_integer(constraint, "maxSkew");
	int64_t least =
	    member_has(constraint, "minDomains") ? member_integer(constraint, "minDomains") : 1;
	struct buffer selector = { 0 };
	bool none = false;

	if (strcmp(member_text(constraint, "whenUnsatisfiable"), "ScheduleAnyway") == 0)
		return true;
	if (!*domain || !is_plain(domain) || skew < 1 || least < 0)
		return error_set(error, ERROR_INVALID,
		                 "a topology spread constraint is malformed: '%.80s', maxSkew %lld",
		                 domain, (long long)skew);
	bool right =
	    selector_print(&selector, selects, &none, error) &&
	    print_own_labels(pod, json_object_get(constraint, "matchLabelKeys"), &selector);
	if (right) {
		begin_line(rules);
		buffer_print(&selector, "&@namespace=%s", namespace_of(pod));
		buffer_print(rules, "spread label:%s %lld %lld %s%s ", domain, (long long)skew,
		             (long long)least, honors_affinity ? "w" : "-",
		             honors_taints ? "t" : "");
		print_selector(rules, &selector, none);
	}
	buffer_free(&selector);
	return right;
}

/* The selector of the pod's services and its replica set, for constraints that name none; to be
 * given back with json_decref. NULL: nothing selects it. */
static json_t *default_selector(const json_t *pod, const struct pod_settings *settings)
{
	const json_t *labels = json_object_get(metadata_of(pod), "labels"), *item;
	json_t *selector = json_object(), *map = json_object(), *expressions = json_array();
	size_t i, j, k;

	json_array_foreach(settings->services, i, item)
	{
		const json_t *own = json_object_get(json_object_get(item, "spec"), "selector");
		if (json_object_size(own) > 0 && selector_map_matches(own, labels) &&
		    strcmp(namespace_of(item), namespace_of(pod)) == 0)
			json_object_update(map, (json_t *)own);
	}
	const json_t *owners = json_object_get(metadata_of(pod), "ownerReferences"), *owner;
	json_array_foreach(owners, j, owner) json_array_foreach(settings->replica_sets, k, item)
	{
		const json_t *own = json_object_get(json_object_get(item, "spec"), "selector");
		if (!member_flag(owner, "controller") ||
		    strcmp(member_text(owner, "kind"), "ReplicaSet") != 0 ||
		    strcmp(member_text(owner, "name"), member_text(metadata_of(item), "name")) != 0)
			continue;
		json_object_update(map, json_object_get(own, "matchLabels"));
		json_array_extend(expressions, json_object_get(own, "matchExpressions"));
	}
	bool empty = json_object_size(map) == 0 && json_array_size(expressions) == 0;
	json_object_set_new(selector, "matchLabels", map);
	json_object_set_new(selector, "matchExpressions", expressions);
	if (empty)
		json_decref(selector);
	return empty ? NULL : selector;
}

static bool add_spread(const json_t *pod, const struct pod_settings *settings, struct buffer *rules,
                       struct error *error)
{
	const json_t *own =
	    json_object_get(json_object_get(pod, "spec"), "topologySpreadConstraints");
	const json_t *constraint;
	bool right = true;
	size_t i;

	json_array_foreach(own, i, constraint) right =
	    right && add_constraint(pod, constraint, json_object_get(constraint, "labelSelector"),
	                            rules, error);
	if (json_array_size(own) > 0 || !settings || !settings->default_constraints)
		return right;
	json_t *selector = default_selector(pod, settings);
	json_array_foreach(settings->default_constraints, i, constraint) right =
	    right && (!selector || add_constraint(pod, constraint, selector, rules, error));
	json_decref(selector);
	return right;
}

bool pod_rules(const json_t *pod, const struct pod_settings *settings, struct buffer *rules,
               struct error *error)
{
	const json_t *spec = json_object_get(pod, "spec");
	const json_t *affinity = json_object_get(spec, "affinity");

	return add_ports(json_object_get(spec, "containers"), false, rules, error) &&
	       add_ports(json_object_get(spec, "initContainers"), true, rules, error) &&
	       add_terms(pod, json_object_get(affinity, "podAffinity"), "together", settings, rules,
	                 error) &&
	       add_terms(pod, json_object_get(affinity, "podAntiAffinity"), "apart", settings,
	                 rules, error) &&
	       add_spread(pod, settings, rules, error);
}
