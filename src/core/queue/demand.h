/* demand.h - what a task asks for beside GPUs, CPU and memory */
#ifndef CORE_QUEUE_DEMAND_H
#define CORE_QUEUE_DEMAND_H

#include "base/bitset.h"
#include "base/error.h"
#include "core/cluster/cluster.h"

/* Four texts of a job, and two of a guest, as they are stored:
 *
 * resources   counted resources that a task takes of its node: lines `name=n`
 * marks       by which rules select its tasks: lines `key=value`. With `@preempts=never` no
 *             task is stopped, and no slot that serves, to make room for it
 * node class  the class whose nodes alone it goes to; empty: any
 * rules       lines, of words that one space separates:
 *     apart DOMAIN SELECTOR      no task with these marks is in the same domain
 *     together DOMAIN SELECTOR   one with these marks is; with several such rules, one that
 *                                all of them select. The first of its kind goes anywhere
 *     spread DOMAIN SKEW LEAST FLAGS SELECTOR
 *                                with it, its domain has at most SKEW more of them than the
 *                                domain with the fewest, which counts as 0 if there are fewer
 *                                than LEAST domains. FLAGS: `w`, only nodes that its class
 *                                wants count; `t`, only those that it tolerates; `-`
 *     port PROTOCOL PORT IP      none on its node has the port, on this address or all (0.0.0.0)
 *
 * A DOMAIN is node, rack, zone or the key of a label of nodes, which is written
 * label:KEY where it might be one of those words. A SELECTOR is `*` (all), `-`
 * (none), or requirements that '&' joins: key=a|b, key!=a|b, key, !key. */

enum rule_kind { RULE_APART, RULE_TOGETHER, RULE_SPREAD, RULE_PORT };

struct requirement {
	const char *key, *values; /* values: 'a|b'; NULL: any */
	bool negated;
};

struct selector {
	struct requirement *at;
	int count;
	bool none;
};

struct rule {
	enum rule_kind kind;
	const char *text;   /* the line, for people */
	const char *domain; /* of a port: the protocol */
	int64_t skew, least;
	bool wanted_only, tolerated_only;
	const char *port, *ip;
	struct selector selector;
	/* By rank, the domain's number or 0; of demand_refresh. */
	int32_t *domain_of;
	int32_t domain_count;
	/* By the number of another filter: 0 unknown, 1 not selected, 2 selected. */
	uint8_t *selected;
	size_t selected_count;
	/* Scratch of rules.c. */
	int32_t *members; /* by domain */
	struct bitset counted;
	int64_t fewest, all;
	uint64_t stamp;
};

struct counted {
	const char *name;
	int64_t amount;
};

/* Parsed once for each filter. */
struct demand {
	char *texts;
	const char *marks, *node_class;
	struct counted *counts;
	int count_count;
	struct rule *rules;
	int rule_count;
	bool keeps_apart, brings_together, spreads, has_ports; /* it has such rules */
	bool never_preempts;
	/* Of demand_refresh. */
	struct bitset allowed, wanted, tolerated; /* nodes, by rank; unused without a class */
	size_t ranks;
	/* Scratch of rules.c: what the rules found, for one state of the cluster. */
	uint64_t found;
	bool found_later;
	struct bitset kept_off; /* nodes where others' rules keep it off */
};

/* The mark of tasks for which none is stopped. */
#define MARK_NEVER_PREEMPTS "@preempts=never"

/* Whether the texts make sense; a sentence that names the line where not. */
bool demand_check(const char *resources, const char *rules, const char *marks,
                  const char *node_class, struct error *error);
/* Checked texts, parsed; NULL where all are empty. */
struct demand *demand_new(const char *resources, const char *rules, const char *marks,
                          const char *node_class);
void demand_free(struct demand *demand);

/* Whether the selector takes marks. */
bool selector_takes(const struct selector *selector, const char *marks);
/* Like selector_takes(), for a rule and the marks of the filter with this number; remembered. */
bool rule_selects(struct rule *rule, const struct demand *other, int64_t number);

/* Brings domains and the sets of its class up to date with the cluster, whose ranks must be
 * right. */
void demand_refresh(struct demand *demand, const struct cluster *cluster);

#endif
