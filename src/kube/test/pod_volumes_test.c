/* pod_volumes_test.c - which nodes can mount the volumes of a pod */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kube/pod_volumes.h"

static json_t *json_of(const char *text)
{
	json_t *value = json_loads(text, 0, NULL);

	assert_non_null(value);
	return value;
}

/* An object with two members: claims and volumes, by name. */
static const json_t *find_in(const void *context, bool volume, const char *namespace,
                             const char *name)
{
	assert_string_equal(namespace, volume ? "" : "default");
	return json_object_get(json_object_get(context, volume ? "volumes" : "claims"), name);
}

#define POD(volume)                                                                                \
	"{\"metadata\": {\"name\": \"p\", \"namespace\": \"default\"}, \"spec\": {\"volumes\": ["  \
	"{\"name\": \"empty\", \"emptyDir\": {}}, " volume "]}}"
#define CLAIMED POD("{\"name\": \"v\", \"persistentVolumeClaim\": {\"claimName\": \"data\"}}")
#define BOUND_CLAIM "{\"spec\": {\"volumeName\": \"disk\"}, \"status\": {\"phase\": \"Bound\"}}"

static json_t *volumes_of(const char *pod, const char *cluster, json_t **known, struct error *error)
{
	json_t *object = json_of(pod);

	*known = json_of(cluster);
	json_t *volumes = pod_volumes(object, find_in, *known, error);
	json_decref(object);
	return volumes;
}

static void assert_refused(const char *pod, const char *cluster, const char *reason)
{
	struct error error = { 0 };
	json_t *known;

	assert_null(volumes_of(pod, cluster, &known, &error));
	assert_non_null(strstr(error.text, reason));
	json_decref(known);
}

static void a_claim_that_is_not_bound_is_named(void **state)
{
	(void)state;
	assert_refused(CLAIMED, "{}", "its claim data does not exist");
	assert_refused(CLAIMED, "{\"claims\": {\"data\": {\"status\": {\"phase\": \"Pending\"}}}}",
	               "its claim data is not bound");
	assert_refused(CLAIMED, "{\"claims\": {\"data\": " BOUND_CLAIM "}}",
	               "the volume disk of its claim data does not exist");
	assert_refused(POD("{\"name\": \"v\", \"ephemeral\": {}}"), "{}",
	               "its claim p-v does not exist");
}

static void assert_suits(const char *volume, const char *node_labels, bool suits)
{
	char cluster[1024], node[256];
	struct error error = { 0 };
	struct buffer reasons = { 0 };
	json_t *known;

	snprintf(cluster, sizeof(cluster),
	         "{\"claims\": {\"data\": " BOUND_CLAIM "}, \"volumes\": {\"disk\": %s}}", volume);
	snprintf(node, sizeof(node), "{\"metadata\": {\"name\": \"n\", \"labels\": %s}}",
	         node_labels);
	json_t *volumes = volumes_of(CLAIMED, cluster, &known, &error), *at = json_of(node);
	assert_non_null(volumes);
	buffer_text(&reasons, "");
	assert_int_equal(pod_volumes_suit(volumes, at, &reasons), suits);
	assert_int_equal(reasons.size > 0, !suits);
	buffer_free(&reasons);
	json_decref(volumes);
	json_decref(known);
	json_decref(at);
}

static void a_volume_is_mounted_where_its_affinity_says(void **state)
{
	static const char local[] =
	    "{\"spec\": {\"nodeAffinity\": {\"required\": {\"nodeSelectorTerms\": "
	    "[{\"matchExpressions\": [{\"key\": \"disk\", \"operator\": \"In\", \"values\": "
	    "[\"a\"]}]}]}}}}";

	(void)state;
	assert_suits("{}", "{}", true);
	assert_suits(local, "{\"disk\": \"a\"}", true);
	assert_suits(local, "{\"disk\": \"b\"}", false);
	assert_suits(local, "{}", false);
}

static void a_volume_is_mounted_in_its_zones(void **state)
{
	static const char zoned[] =
	    "{\"metadata\": {\"labels\": {\"topology.kubernetes.io/zone\": \"z1__z2\"}}}";
	static const char old[] =
	    "{\"metadata\": {\"labels\": {\"failure-domain.beta.kubernetes.io/zone\": \"z1\"}}}";

	(void)state;
	assert_suits(zoned, "{\"topology.kubernetes.io/zone\": \"z2\"}", true);
	assert_suits(zoned, "{\"topology.kubernetes.io/zone\": \"z3\"}", false);
	assert_suits(zoned, "{\"topology.kubernetes.io/zone\": \"z\"}", false);
	assert_suits(zoned, "{}", false);
	assert_suits(old, "{\"topology.kubernetes.io/zone\": \"z1\"}", true);
	assert_suits(old, "{\"topology.kubernetes.io/zone\": \"z2\"}", false);
}

static void volumes_of_other_places_are_of_another_class(void **state)
{
	json_t *none = json_array();
	json_t *one = json_of("[{\"metadata\": {\"labels\": {\"zone\": \"a\"}}}]");
	json_t *other = json_of("[{\"metadata\": {\"labels\": {\"zone\": \"b\"}}}]");
	struct buffer names[3] = { 0 };

	(void)state;
	for (int i = 0; i < 3; i++)
		buffer_text(&names[i], "class");
	pod_volumes_class(none, &names[0]);
	pod_volumes_class(one, &names[1]);
	pod_volumes_class(other, &names[2]);
	assert_string_equal(names[0].data, "class");
	assert_string_not_equal(names[1].data, names[2].data);
	for (int i = 0; i < 3; i++)
		buffer_free(&names[i]);
	json_decref(none);
	json_decref(one);
	json_decref(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_claim_that_is_not_bound_is_named),
		cmocka_unit_test(a_volume_is_mounted_where_its_affinity_says),
		cmocka_unit_test(a_volume_is_mounted_in_its_zones),
		cmocka_unit_test(volumes_of_other_places_are_of_another_class),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
