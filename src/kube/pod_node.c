/* pod_node.c - what is fixed about a pod and a node: names, selectors, taints */
#include <string.h>

#include "kube/pod.h"
#include "kube/selector.h"
#include "json/member.h"

#define UNSCHEDULABLE_TAINT "node.kubernetes.io/unschedulable"
enum { BIT_ALLOWED = 1, BIT_WANTED = 2, BIT_TOLERATED = 4 };

static void keep_off(struct buffer *reasons, unsigned *mask, const char *sentence,
                     const char *detail)
{
	buffer_print(reasons, "%s%s%s", reasons->size > 0 ? "; " : "", sentence, detail);
	*mask &= ~(unsigned)BIT_ALLOWED;
}

static bool tolerates(const json_t *toleration, const char *key, const char *value,
                      const char *effect)
{
	const char *of_key = member_text(toleration, "key");
	const char *of_effect = member_text(toleration, "effect");
	const char *operator= member_text(toleration, "operator");

	if (*of_effect && strcmp(of_effect, effect) != 0)
		return false;
	if (*of_key && strcmp(of_key, key) != 0)
		return false;
	if (strcmp(operator, "Exists") == 0)
		return true;
	return (!*operator|| strcmp(operator, "Equal") == 0) && *of_key &&
	       strcmp(member_text(toleration, "value"), value) == 0;
}

static bool is_tolerated(const json_t *pod, const char *key, const char *value, const char *effect)
{
	const json_t *toleration;
	size_t i;

	json_array_foreach(json_object_get(json_object_get(pod, "spec"), "tolerations"), i,
	                   toleration) if (tolerates(toleration, key, value, effect)) return true;
	return false;
}

static bool is_unschedulable(const json_t *node)
{
	return member_flag(json_object_get(node, "spec"), "unschedulable");
}

static void judge_taints(const json_t *pod, const json_t *node, unsigned *mask,
                         struct buffer *reasons)
{
	const json_t *taint;
	size_t i;

	json_array_foreach(json_object_get(json_object_get(node, "spec"), "taints"), i, taint)
	{
		const char *effect = member_text(taint, "effect"), *key = member_text(taint, "key");
		if (strcmp(effect, "NoSchedule") != 0 && strcmp(effect, "NoExecute") != 0)
			continue;
		if (is_tolerated(pod, key, member_text(taint, "value"), effect))
			continue;
		if (*mask & BIT_TOLERATED)
			keep_off(reasons, mask, POD_JUDGE_TAINT, key);
		*mask &= ~(unsigned)BIT_TOLERATED;
	}
}

static bool is_selected(const json_t *pod, const json_t *node)
{
	const json_t *spec = json_object_get(pod, "spec");
	const json_t *affinity = json_object_get(json_object_get(spec, "affinity"), "nodeAffinity");
	const json_t *required =
	    json_object_get(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
	const json_t *labels = json_object_get(json_object_get(node, "metadata"), "labels");

	return selector_map_matches(json_object_get(spec, "nodeSelector"), labels) &&
	       (!json_is_object(required) || selector_matches_node(required, node));
}

unsigned pod_judge_node(const json_t *pod, const json_t *node, const json_t *enforced,
                        struct buffer *reasons)
{
	unsigned mask = BIT_ALLOWED | BIT_WANTED | BIT_TOLERATED;
	const char *wanted = member_text(json_object_get(pod, "spec"), "nodeName");
	const char *name = member_text(json_object_get(node, "metadata"), "name");
	const json_t *required =
	    json_object_get(enforced, "requiredDuringSchedulingIgnoredDuringExecution");

	if (*wanted && strcmp(wanted, name) != 0)
		keep_off(reasons, &mask, POD_JUDGE_NAME, wanted);
	if (is_unschedulable(node) && !is_tolerated(pod, UNSCHEDULABLE_TAINT, "", "NoSchedule"))
		keep_off(reasons, &mask, POD_JUDGE_UNSCHEDULABLE, "");
	if (json_is_object(required) && !selector_matches_node(required, node))
		keep_off(reasons, &mask, POD_JUDGE_ENFORCED, "");
	if (!is_selected(pod, node)) {
		keep_off(reasons, &mask, POD_JUDGE_SELECTOR, "");
		mask &= ~(unsigned)BIT_WANTED;
	}
	judge_taints(pod, node, &mask, reasons);
	return mask;
}
