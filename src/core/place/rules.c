/* rules.c - which nodes a demand allows: counted resources, classes, ports, rules about others */
#include "core/place/rules.h"

#include <string.h>

#include "core/cluster/reservation.h"
#include "core/place/fit.h"
#include "core/place/placement.h"
#include "core/queue/job.h"

/* A task or a guest on a node, as rules see it. */
struct neighbor {
	struct filter *filter;
	bool ending;
};

/* Walks over what is on a node: first reservations, then guests. */
static bool next_neighbor(const struct node *node, bool later, int *at, struct neighbor *neighbor)
{
	while (*at < node->reservation_count) {
		const struct reservation *reservation = node->reservations[(*at)++];
		bool ending = reservation->phase == PHASE_RELEASING;
		if (!reservation->job || !reservation->job->filter->demand || (ending && later))
			continue;
		*neighbor = (struct neighbor){ reservation->job->filter, ending };
		return true;
	}
	while (*at < node->reservation_count + node->guest_count) {
		const struct guest *guest = node->guests[(*at)++ - node->reservation_count];
		if (!guest->filter->demand)
			continue;
		*neighbor = (struct neighbor){ guest->filter, guest->r.ending };
		return true;
	}
	return false;
}

static bool selects(struct rule *rule, const struct filter *filter)
{
	return rule_selects(rule, filter->demand, filter->number);
}

/* Whether every rule to be together takes it. */
static bool all_take(struct demand *demand, const struct filter *filter)
{
	for (int i = 0; i < demand->rule_count; i++)
		if (demand->rules[i].kind == RULE_TOGETHER && !selects(&demand->rules[i], filter))
			return false;
	return true;
}

/* Whether the node counts for the spread: it has all domains that the demand spreads over. */
static bool counts_for(const struct demand *demand, const struct rule *rule,
                       const struct filter *filter, const struct node *node)
{
	size_t rank = (size_t)node->rank;
	bool classed = *demand->node_class != '\0';

	for (int i = 0; i < demand->rule_count; i++)
		if (demand->rules[i].kind == RULE_SPREAD && !demand->rules[i].domain_of[rank])
			return false;
	if (rule->wanted_only && classed && !bitset_has(&demand->wanted, rank))
		return false;
	if (rule->wanted_only && !node_has_labels(node, filter->labels))
		return false;
	return !rule->tolerated_only || !classed || bitset_has(&demand->tolerated, rank);
}

static void begin_count(struct demand *demand)
{
	for (int i = 0; i < demand->rule_count; i++) {
		struct rule *rule = &demand->rules[i];
		if (rule->kind == RULE_PORT)
			continue;
		memset(rule->members, 0, ((size_t)rule->domain_count + 1) * sizeof(*rule->members));
		if (rule->counted.words)
			memset(rule->counted.word, 0, rule->counted.words * sizeof(uint64_t));
		rule->all = 0;
	}
	if (demand->kept_off.words)
		memset(demand->kept_off.word, 0, demand->kept_off.words * sizeof(uint64_t));
}

/* `left_out`, by place: spreads that the node does not count for. */
static void count_neighbor(struct demand *demand, const struct node *node,
                           const struct neighbor *neighbor, uint64_t left_out)
{
	bool together = demand->brings_together && all_take(demand, neighbor->filter);

	for (int i = 0; i < demand->rule_count; i++) {
		struct rule *rule = &demand->rules[i];
		int32_t domain = rule->kind == RULE_PORT ? 0 : rule->domain_of[node->rank];
		if (domain == 0 || left_out >> i & 1 ||
		    (rule->kind == RULE_SPREAD && neighbor->ending))
			continue;
		if (rule->kind == RULE_TOGETHER ? !together : !selects(rule, neighbor->filter))
			continue;
		rule->members[domain]++;
		rule->all++;
	}
}

static void count_node(struct demand *demand, const struct filter *filter, const struct node *node,
                       bool later)
{
	struct neighbor neighbor;
	uint64_t left_out = 0;

	for (int i = 0; i < demand->rule_count; i++)
		if (demand->rules[i].kind == RULE_SPREAD &&
		    !counts_for(demand, &demand->rules[i], filter, node))
			left_out |= UINT64_C(1) << i;
	for (int at = 0; next_neighbor(node, later, &at, &neighbor);)
		count_neighbor(demand, node, &neighbor, left_out);
}

static void find_domains(struct demand *demand, const struct filter *filter,
                         const struct cluster *cluster)
{
	for (size_t rank = 0; demand->spreads && rank < cluster->node_count; rank++)
		for (int i = 0; i < demand->rule_count; i++) {
			struct rule *rule = &demand->rules[i];
			if (rule->kind == RULE_SPREAD &&
			    counts_for(demand, rule, filter, cluster->by_rank[rank]))
				bitset_add(&rule->counted, (size_t)rule->domain_of[rank]);
		}
}

static void find_fewest(struct rule *rule)
{
	int64_t domains = 0;

	rule->fewest = INT64_MAX;
	for (int32_t domain = 1; domain <= rule->domain_count; domain++)
		if (bitset_has(&rule->counted, (size_t)domain)) {
			rule->fewest = min64(rule->fewest, rule->members[domain]);
			domains++;
		}
	if (domains < rule->least || domains == 0)
		rule->fewest = 0;
}

/* Marks the nodes where a rule of another, whose tasks are in some domains, keeps it off. */
static void keep_off(struct demand *demand, const struct filter *filter, struct filter *other,
                     const struct placement *placement, bool later)
{
	const struct cluster *cluster = placement->cluster;

	for (int i = 0; i < other->demand->rule_count; i++) {
		struct rule *rule = &other->demand->rules[i];
		struct bitset domains = { 0 };
		if (rule->kind != RULE_APART || !selects(rule, filter))
			continue;
		bitset_grow(&domains, (size_t)rule->domain_count + 1);
		for (size_t rank = 0; rank < cluster->node_count; rank++) {
			struct neighbor neighbor;
			const struct node *node = cluster->by_rank[rank];
			for (int at = 0; next_neighbor(node, later, &at, &neighbor);)
				if (neighbor.filter == other && rule->domain_of[rank])
					bitset_add(&domains, (size_t)rule->domain_of[rank]);
		}
		for (size_t rank = 0; rank < cluster->node_count; rank++)
			if (bitset_has(&domains, (size_t)rule->domain_of[rank]) &&
			    rule->domain_of[rank])
				bitset_add(&demand->kept_off, rank);
		bitset_free(&domains);
	}
}

/* Works out what the rules find now, unless that is known. */
static void find_out(const struct placement *placement, const struct search *search)
{
	struct filter *filter = search->shape->filter;
	struct demand *demand = filter->demand;
	const struct cluster *cluster = placement->cluster;
	bool later = search->view != VIEW_NOW;

	INVARIANT(filter->refreshed == placement->cluster->version);
	if (demand->found == cluster->rules_version + 1 && demand->found_later == later)
		return;
	demand->found = cluster->rules_version + 1;
	placement->cluster->has_rules |= demand->rule_count > 0;
	demand->found_later = later;
	begin_count(demand);
	find_domains(demand, filter, cluster);
	for (size_t rank = 0; demand->rule_count > 0 && rank < cluster->node_count; rank++)
		count_node(demand, filter, cluster->by_rank[rank], later);
	for (int i = 0; i < demand->rule_count; i++)
		if (demand->rules[i].kind == RULE_SPREAD)
			find_fewest(&demand->rules[i]);
	for (size_t i = 0; i < placement->shapes->ruled_count; i++) {
		struct filter *other = placement->shapes->ruled[i];
		filter_refresh(other, cluster, placement->cluster->version);
		keep_off(demand, filter, other, placement, later);
	}
}

static bool same_port(const struct rule *a, const struct rule *b)
{
	return strcmp(a->domain, b->domain) == 0 && strcmp(a->port, b->port) == 0 &&
	       (strcmp(a->ip, b->ip) == 0 || strcmp(a->ip, "0.0.0.0") == 0 ||
	        strcmp(b->ip, "0.0.0.0") == 0);
}

static bool port_is_taken(const struct rule *rule, const struct node *node, bool later)
{
	struct neighbor neighbor;

	for (int at = 0; next_neighbor(node, later, &at, &neighbor);)
		for (int i = 0; i < neighbor.filter->demand->rule_count; i++) {
			const struct rule *other = &neighbor.filter->demand->rules[i];
			if (other->kind == RULE_PORT && same_port(rule, other))
				return true;
		}
	return false;
}

/* One with no match anywhere may go anywhere, if its own marks are those it looks for. */
static bool is_together(struct demand *demand, const struct filter *filter, const struct node *node)
{
	bool all = true, first = all_take(demand, filter);

	for (int i = 0; i < demand->rule_count; i++) {
		const struct rule *rule = &demand->rules[i];
		if (rule->kind != RULE_TOGETHER)
			continue;
		if (rule->domain_of[node->rank] == 0)
			return false;
		all = all && rule->members[rule->domain_of[node->rank]] > 0;
		first = first && rule->all == 0;
	}
	return all || first;
}

/* CHECK_OK, or what the rule refuses the node on; `*clears` as in node_refusal. */
static enum check check_rule(const struct filter *filter, struct rule *rule,
                             const struct node *node, bool later, bool *clears)
{
	int32_t domain = rule->kind == RULE_PORT ? 0 : rule->domain_of[node->rank];

	*clears = true;
	switch (rule->kind) {
	case RULE_PORT:
		return port_is_taken(rule, node, later) ? CHECK_PORT : CHECK_OK;
	case RULE_APART:
		return domain && rule->members[domain] > 0 ? CHECK_APART : CHECK_OK;
	case RULE_SPREAD:
		*clears = domain != 0;
		if (!domain)
			return CHECK_SPREAD;
		return rule->members[domain] + selects(rule, filter) - rule->fewest > rule->skew
		           ? CHECK_SPREAD
		           : CHECK_OK;
	default:
		return CHECK_OK;
	}
}

static int64_t count_free(const struct search *search, const struct node_count *count)
{
	int64_t later, total;

	if (!count)
		return 0;
	if (search->empty)
		return count->capacity;
	total = count_total(count);
	later = host_free_later(&count->books, total);
	return search->view == VIEW_NOW ? min64(host_free_now(&count->books, total), later) : later;
}

static bool in_class(const struct demand *demand, const struct node *node)
{
	return !*demand->node_class || bitset_has(&demand->allowed, (size_t)node->rank);
}

enum check rules_check(const struct placement *placement, const struct search *search,
                       const struct node *node, int64_t *short_by)
{
	const struct filter *filter = search->shape->filter;
	struct demand *demand = filter->demand;
	bool clears;

	INVARIANT(demand != NULL);
	if (!in_class(demand, node))
		return CHECK_CLASS;
	for (int i = 0; i < demand->count_count; i++) {
		const struct counted *counted = &demand->counts[i];
		int64_t free_now = count_free(search, node_count(node, counted->name));
		if (counted->amount > 0 && free_now < counted->amount) {
			*short_by = counted->amount - free_now;
			return CHECK_COUNTED;
		}
	}
	if (search->empty)
		return CHECK_OK;
	find_out(placement, search);
	for (int i = 0; i < demand->rule_count; i++) {
		enum check check =
		    check_rule(filter, &demand->rules[i], node, search->view != VIEW_NOW, &clears);
		if (check != CHECK_OK)
			return check;
	}
	if (demand->brings_together && !is_together(demand, filter, node))
		return CHECK_TOGETHER;
	return bitset_has(&demand->kept_off, (size_t)node->rank) ? CHECK_KEPT_OFF : CHECK_OK;
}

int64_t rules_most(const struct search *search, const struct node *node)
{
	const struct demand *demand = search->shape->filter->demand;
	int64_t most = demand->has_ports ? 1 : TASKS_MAX;

	for (int i = 0; i < demand->count_count; i++)
		if (demand->counts[i].amount > 0)
			most = min64(
			    most,
			    max64(count_free(search, node_count(node, demand->counts[i].name)), 0) /
				demand->counts[i].amount);
	return most;
}

static void explain_class(const struct placement *placement, const struct demand *demand,
                          const struct node *node, node_refusal_say *say, void *context)
{
	const struct node_class *class = cluster_node_class(placement->cluster, demand->node_class);
	struct node_refusal refusal = { .check = CHECK_CLASS, .subject = "" };
	struct node_class_line line;

	for (const char *nodes = class ? class->r.nodes : ""; node_class_next(&nodes, &line);)
		if ((size_t)line.name_size == strlen(node->r.name) &&
		    memcmp(line.name, node->r.name, (size_t)line.name_size) == 0) {
			refusal.subject = line.reason;
			refusal.subject_size = line.reason_size;
		}
	say(context, &refusal);
}

static void explain_amount(enum check check, const char *name, int64_t asked, int64_t available,
                           int64_t total, node_refusal_say *say, void *context)
{
	struct node_refusal refusal = { .check = (int32_t)check,
		                        .clears = asked <= total,
		                        .subject = name,
		                        .subject_size = (int)strlen(name),
		                        .asked = asked,
		                        .free = available };

	if (asked > 0 && available < asked)
		say(context, &refusal);
}

static void explain_rules(const struct placement *placement, const struct search *search,
                          const struct node *node, node_refusal_say *say, void *context)
{
	const struct filter *filter = search->shape->filter;
	struct demand *demand = filter->demand;
	struct node_refusal refusal = { .subject = "" };

	find_out(placement, search);
	for (int i = 0; i < demand->rule_count; i++) {
		enum check check =
		    check_rule(filter, &demand->rules[i], node, false, &refusal.clears);
		refusal.check = (int32_t)check;
		refusal.subject = demand->rules[i].text;
		refusal.subject_size = (int)strlen(refusal.subject);
		if (refusal.check != CHECK_OK)
			say(context, &refusal);
	}
	refusal = (struct node_refusal){ .check = CHECK_TOGETHER, .subject = "" };
	if (demand->brings_together && !is_together(demand, filter, node))
		say(context, &refusal);
	refusal = (struct node_refusal){ .check = CHECK_KEPT_OFF, .subject = "", .clears = true };
	if (bitset_has(&demand->kept_off, (size_t)node->rank))
		say(context, &refusal);
}

void rules_explain(const struct placement *placement, const struct search *search,
                   const struct node *node, node_refusal_say *say, void *context)
{
	const struct shape_request *request = &search->shape->request;
	const struct filter *filter = search->shape->filter;
	const struct demand *demand = filter->demand;

	if (!node_is_open(node))
		say(context, &(struct node_refusal){ .check = CHECK_NODE, .subject = "" });
	if (!node_has_labels(node, filter->labels))
		say(context, &(struct node_refusal){ .check = CHECK_LABELS, .subject = "" });
	if (demand && !in_class(demand, node))
		explain_class(placement, demand, node, say, context);
	explain_amount(CHECK_CPU, "cpu", request->cpu_milli, fit_cpu_free(search, node),
	               node->r.cpu_milli, say, context);
	explain_amount(CHECK_HOST, "memory", request->host_bytes, fit_host_free(search, node),
	               node->r.host_bytes, say, context);
	for (int i = 0; demand && i < demand->count_count; i++) {
		const struct node_count *count = node_count(node, demand->counts[i].name);
		explain_amount(CHECK_COUNTED, demand->counts[i].name, demand->counts[i].amount,
		               count_free(search, count), count ? count->capacity : 0, say,
		               context);
	}
	if (demand)
		explain_rules(placement, search, node, say, context);
}
