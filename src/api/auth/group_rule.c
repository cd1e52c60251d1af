/* group_rule.c - what the members of a provider's groups may do here */
#include <stdlib.h>

#include "api/auth/gate_local.h"
#include "api/auth/id_token.h"
#include "base/memory.h"

static char *copy_part(const char *from, size_t size)
{
	char *copy = memory_zero(1, size + 1);

	for (size_t i = 0; i < size; i++)
		copy[i] = from[i];
	return copy;
}

bool group_rule_read(const char *text, struct group_rule *rule, struct error *error)
{
	const char *equals = strrchr(text, '=');
	char role[32] = "";
	size_t size = equals ? strcspn(equals + 1, ":") : 0;

	*rule = (struct group_rule){ 0 };
	if (!equals || equals == text || size == 0 || size >= sizeof(role))
		return error_set(error, ERROR_INVALID,
		                 "'%.80s' is not GROUP=ROLE or GROUP=ROLE:TENANT", text);
	memcpy(role, equals + 1, size);
	const char *tenant = equals + 1 + size;
	tenant += *tenant == ':';
	if (!gate_role_read(role, &rule->role) || rule->role == ROLE_AGENT ||
	    rule->role == ROLE_GATEWAY)
		return error_set(error, ERROR_INVALID,
		                 "'%.80s' has a role that people cannot have: it is admin, "
		                 "tenant, tenant_admin, viewer or inference",
		                 text);
	const struct identity identity = { .role = rule->role, .tenant_id = *tenant ? 1 : 0 };
	if (!gate_identity_check(&identity, error))
		return false;
	rule->group = copy_part(text, (size_t)(equals - text));
	rule->tenant = memory_text(tenant);
	return true;
}

void group_rule_free(struct group_rule *rule)
{
	free(rule->group);
	free(rule->tenant);
}

bool group_rules_read(const char *const *texts, struct group_rules *rules, struct error *error)
{
	size_t count = 0;

	while (texts && texts[count])
		count++;
	*rules = (struct group_rules){ .of = memory_zero(count + 1, sizeof(*rules->of)) };
	for (size_t i = 0; i < count; i++) {
		if (!group_rule_read(texts[i], &rules->of[i], error)) {
			group_rules_free(rules);
			return false;
		}
		rules->count++;
	}
	return true;
}

void group_rules_free(struct group_rules *rules)
{
	for (size_t i = 0; i < rules->count; i++)
		group_rule_free(&rules->of[i]);
	free(rules->of);
	*rules = (struct group_rules){ 0 };
}

static bool applies(const struct group_rule *rule, const json_t *groups)
{
	if (strcmp(rule->group, "*") == 0)
		return true;
	for (size_t i = 0; i < json_array_size(groups); i++) {
		const json_t *group = json_array_get(groups, i);
		if (json_string_length(group) == strlen(rule->group) &&
		    strcmp(json_string_value(group), rule->group) == 0)
			return true;
	}
	return false;
}

const struct group_rule *group_rules_find(const struct group_rules *rules, const json_t *groups)
{
	for (size_t i = 0; i < rules->count; i++)
		if (applies(&rules->of[i], groups))
			return &rules->of[i];
	return NULL;
}
