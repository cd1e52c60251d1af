/* demand.c - what a task asks for beside GPUs, CPU and memory */
#include "core/queue/demand.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define TEXT_MAX (64 << 10)
#define LINES_MAX 64 /* of rules: a word has a bit for each */
#define NAME_MAX_BYTES 255
#define AMOUNT_MAX (INT64_C(1) << 53)

/* A number of at most 16 digits that fills the text; -1: it is not one. */
static int64_t parse_amount(const char *text)
{
	int64_t amount = 0;
	size_t digits = strspn(text, "0123456789");

	if (digits == 0 || digits > 16 || text[digits])
		return -1;
	for (; *text; text++)
		amount = amount * 10 + (*text - '0');
	return amount <= AMOUNT_MAX ? amount : -1;
}

/* Cuts the next line off `*lines`; NULL at the end. */
static char *cut(char **rest, char separator)
{
	char *at = *rest;

	if (!at || !*at)
		return NULL;
	char *end = strchr(at, separator);
	if (end)
		*end = '\0';
	*rest = end ? end + 1 : NULL;
	return at;
}

static int count_lines(const char *lines)
{
	int count = *lines ? 1 : 0;

	for (; *lines; lines++)
		count += *lines == '\n' && lines[1];
	return count;
}

static bool parse_count(char *line, struct counted *counted, struct error *error)
{
	char *equals = strrchr(line, '=');

	if (!equals || equals == line || equals - line > NAME_MAX_BYTES)
		return error_set(error, ERROR_INVALID, "resource '%.80s' is not name=number", line);
	*equals = '\0';
	*counted = (struct counted){ line, parse_amount(equals + 1) };
	if (counted->amount >= 0)
		return true;
	return error_set(error, ERROR_INVALID,
	                 "resource %.80s: '%.40s' is not a number from 0 to 2^53", line,
	                 equals + 1);
}

static bool parse_requirement(char *text, struct requirement *requirement)
{
	char *equals = strchr(text, '=');

	*requirement = (struct requirement){ .key = text };
	if (equals) {
		requirement->negated = equals > text && equals[-1] == '!';
		equals[requirement->negated ? -1 : 0] = '\0';
		requirement->values = equals + 1;
	} else if (*text == '!') {
		requirement->negated = true;
		requirement->key = text + 1;
	}
	return *requirement->key != '\0';
}

static bool parse_selector(char *text, struct selector *selector, struct error *error)
{
	char *rest = text, *word;
	int count = 1;

	*selector = (struct selector){ .none = strcmp(text, "-") == 0 };
	if (selector->none || strcmp(text, "*") == 0)
		return true;
	for (const char *at = text; *at; at++)
		count += *at == '&';
	if (strstr(text, "&&") || (*text && text[strlen(text) - 1] == '&'))
		return error_set(error, ERROR_INVALID,
		                 "a rule's selector has an empty requirement");
	selector->at = memory_zero((size_t)count, sizeof(*selector->at));
	while ((word = cut(&rest, '&')))
		if (!parse_requirement(word, &selector->at[selector->count++]))
			return error_set(error, ERROR_INVALID,
			                 "a requirement of a rule has no key");
	return selector->count > 0 ||
	       error_set(error, ERROR_INVALID, "a rule has no selector: '*' selects all, '-' none");
}

static bool parse_spread(char **rest, struct rule *rule, struct error *error)
{
	char *skew = cut(rest, ' '), *least = skew ? cut(rest, ' ') : NULL;
	char *flags = least ? cut(rest, ' ') : NULL;

	if (!flags)
		return error_set(error, ERROR_INVALID,
		                 "a spread is 'spread DOMAIN SKEW LEAST FLAGS SELECTOR'");
	rule->skew = parse_amount(skew);
	rule->least = parse_amount(least);
	rule->wanted_only = strchr(flags, 'w') != NULL;
	rule->tolerated_only = strchr(flags, 't') != NULL;
	if (rule->skew < 1 || rule->least < 0)
		return error_set(error, ERROR_INVALID,
		                 "a spread over %.80s has a skew of at least 1 and a least number "
		                 "of domains of at least 0",
		                 rule->domain);
	return true;
}

static bool parse_port(char **rest, struct rule *rule, struct error *error)
{
	rule->port = cut(rest, ' ');
	rule->ip = rule->port ? cut(rest, ' ') : NULL;
	return rule->ip || error_set(error, ERROR_INVALID, "a port is 'port PROTOCOL PORT IP'");
}

static bool parse_rule(char *line, struct rule *rule, struct error *error)
{
	static const char *const names[] = { "apart", "together", "spread", "port" };
	char *rest = line, *word = cut(&rest, ' ');

	for (int i = 0; word && i < 4; i++) {
		if (strcmp(word, names[i]) != 0)
			continue;
		rule->kind = (enum rule_kind)i;
		rule->domain = cut(&rest, ' ');
		if (!rule->domain || !*rule->domain)
			return error_set(error, ERROR_INVALID, "a rule '%s' has no domain", word);
		if (rule->kind == RULE_PORT)
			return parse_port(&rest, rule, error);
		if (rule->kind == RULE_SPREAD && !parse_spread(&rest, rule, error))
			return false;
		return parse_selector(rest ? rest : (char *)"", &rule->selector, error);
	}
	return error_set(error, ERROR_INVALID,
	                 "rule '%.80s' is not apart, together, spread or port", word ? word : "");
}

static void note_kinds(struct demand *demand, enum rule_kind kind)
{
	demand->keeps_apart |= kind == RULE_APART;
	demand->brings_together |= kind == RULE_TOGETHER;
	demand->spreads |= kind == RULE_SPREAD;
	demand->has_ports |= kind == RULE_PORT;
}

static bool parse_all(struct demand *demand, char *resources, char *rules, struct error *error)
{
	char *line;

	while ((line = cut(&resources, '\n')))
		if (!parse_count(line, &demand->counts[demand->count_count++], error))
			return false;
	while ((line = cut(&rules, '\n'))) {
		struct rule *rule = &demand->rules[demand->rule_count++];
		if (!parse_rule(line, rule, error))
			return false;
		note_kinds(demand, rule->kind);
	}
	return true;
}

/* The lines as they were, each ended, for people. */
static void name_rules(struct demand *demand, char *lines)
{
	char *line;

	for (int i = 0; i < demand->rule_count && (line = cut(&lines, '\n')); i++)
		demand->rules[i].text = line;
}

static bool has_line(const char *lines, const char *line)
{
	size_t size = strlen(line);

	for (const char *at = lines; *at;) {
		size_t end = strcspn(at, "\n");
		if (end == size && memcmp(at, line, size) == 0)
			return true;
		at += end + (at[end] == '\n');
	}
	return false;
}

static struct demand *demand_parse(const char *resources, const char *rules, const char *marks,
                                   const char *node_class, struct error *error)
{
	struct demand *demand = NEW(struct demand);
	size_t sizes[] = { strlen(resources) + 1, strlen(rules) + 1, strlen(rules) + 1,
		           strlen(marks) + 1, strlen(node_class) + 1 };
	const char *texts[] = { resources, rules, rules, marks, node_class };
	char *copies[5], *at;

	at = demand->texts = memory_alloc(sizes[0] + sizes[1] + sizes[2] + sizes[3] + sizes[4]);
	for (int i = 0; i < 5; i++) {
		copies[i] = memcpy(at, texts[i], sizes[i]);
		at += sizes[i];
	}
	demand->marks = copies[3];
	demand->node_class = copies[4];
	demand->never_preempts = has_line(marks, MARK_NEVER_PREEMPTS);
	demand->counts = memory_zero((size_t)count_lines(resources) + 1, sizeof(*demand->counts));
	demand->rules = memory_zero((size_t)count_lines(rules) + 1, sizeof(*demand->rules));
	if (!parse_all(demand, copies[0], copies[1], error)) {
		demand_free(demand);
		return NULL;
	}
	name_rules(demand, copies[2]);
	return demand;
}

static bool check_marks(const char *marks, struct error *error)
{
	for (const char *at = marks; *at;) {
		size_t size = strcspn(at, "\n");
		const char *equals = memchr(at, '=', size);
		if (!equals || equals == at)
			return error_set(error, ERROR_INVALID, "mark '%.*s' is not key=value",
			                 (int)min64((int64_t)size, 80), at);
		at += size + (at[size] == '\n');
	}
	return true;
}

bool demand_check(const char *resources, const char *rules, const char *marks,
                  const char *node_class, struct error *error)
{
	if (!*resources && !*rules && !*marks && !*node_class)
		return true;
	if (strlen(resources) > TEXT_MAX || strlen(rules) > TEXT_MAX || strlen(marks) > TEXT_MAX ||
	    strlen(node_class) > NAME_MAX_BYTES)
		return error_set(error, ERROR_INVALID,
		                 "resources, rules or labels are longer than %d bytes", TEXT_MAX);
	if (count_lines(resources) > LINES_MAX || count_lines(rules) > LINES_MAX)
		return error_set(error, ERROR_INVALID,
		                 "there are at most %d resources and %d rules", LINES_MAX,
		                 LINES_MAX);
	if (strstr(resources, "\n\n") || strstr(rules, "\n\n") || *resources == '\n' ||
	    *rules == '\n')
		return error_set(error, ERROR_INVALID, "resources or rules have an empty line");
	if (!check_marks(marks, error))
		return false;
	struct demand *demand = demand_parse(resources, rules, marks, node_class, error);
	if (demand)
		demand_free(demand);
	return demand != NULL;
}

struct demand *demand_new(const char *resources, const char *rules, const char *marks,
                          const char *node_class)
{
	struct error error;

	if (!*resources && !*rules && !*marks && !*node_class)
		return NULL;
	struct demand *demand = demand_parse(resources, rules, marks, node_class, &error);
	if (!demand)
		panic("a checked demand was refused: %s", error.text);
	return demand;
}

void demand_free(struct demand *demand)
{
	for (int i = 0; demand && i < demand->rule_count; i++) {
		struct rule *rule = &demand->rules[i];
		free(rule->selector.at);
		free(rule->domain_of);
		free(rule->selected);
		free(rule->members);
		bitset_free(&rule->counted);
	}
	if (!demand)
		return;
	bitset_free(&demand->allowed);
	bitset_free(&demand->wanted);
	bitset_free(&demand->tolerated);
	bitset_free(&demand->kept_off);
	free(demand->counts);
	free(demand->rules);
	free(demand->texts);
	free(demand);
}

/* The value of a mark; NULL: there is none with the key. */
static const char *mark_value(const char *marks, const char *key, size_t *size)
{
	size_t key_size = strlen(key);

	while (*marks) {
		size_t line = strcspn(marks, "\n");
		if (line > key_size && marks[key_size] == '=' &&
		    memcmp(marks, key, key_size) == 0) {
			*size = line - key_size - 1;
			return marks + key_size + 1;
		}
		marks += line + (marks[line] == '\n');
	}
	return NULL;
}

static bool is_among(const char *values, const char *value, size_t size)
{
	for (;;) {
		size_t listed = strcspn(values, "|");
		if (listed == size && memcmp(values, value, size) == 0)
			return true;
		if (values[listed] == '\0')
			return false;
		values += listed + 1;
	}
}

static bool is_met(const struct requirement *requirement, const char *marks)
{
	size_t size = 0;
	const char *value = mark_value(marks, requirement->key, &size);
	bool met = value && (!requirement->values || is_among(requirement->values, value, size));

	return met != requirement->negated;
}

bool selector_takes(const struct selector *selector, const char *marks)
{
	for (int i = 0; i < selector->count; i++)
		if (!is_met(&selector->at[i], marks))
			return false;
	return !selector->none;
}

bool rule_selects(struct rule *rule, const struct demand *other, int64_t number)
{
	size_t at = (size_t)number;

	if (at >= rule->selected_count) {
		size_t count = at + 64;
		rule->selected = memory_resize(rule->selected, count);
		memset(rule->selected + rule->selected_count, 0, count - rule->selected_count);
		rule->selected_count = count;
	}
	if (!rule->selected[at])
		rule->selected[at] = selector_takes(&rule->selector, other->marks) ? 2 : 1;
	return rule->selected[at] == 2;
}

static void number_domains(struct rule *rule, const struct cluster *cluster)
{
	struct text_map numbers = { 0 };
	struct buffer value = { 0 };
	int32_t *ordinals = memory_zero(cluster->node_count + 1, sizeof(*ordinals));
	size_t size = 0;

	free(rule->domain_of);
	rule->domain_of = memory_zero(cluster->node_count + 1, sizeof(*rule->domain_of));
	rule->domain_count = 0;
	for (size_t rank = 0; rank < cluster->node_count; rank++) {
		const char *domain = node_domain(cluster->by_rank[rank], rule->domain, &size);
		if (!domain)
			continue;
		value.size = 0;
		buffer_print(&value, "=%.*s", (int)size, domain);
		int32_t *number = text_map_get(&numbers, value.data);
		if (!number) {
			number = &ordinals[rule->domain_count];
			ordinals[rule->domain_count] = rule->domain_count + 1;
			rule->domain_count++;
			text_map_put(&numbers, value.data, number);
		}
		rule->domain_of[rank] = *number;
	}
	free(rule->members);
	rule->members = memory_zero((size_t)rule->domain_count + 1, sizeof(*rule->members));
	bitset_free(&rule->counted);
	bitset_grow(&rule->counted, (size_t)rule->domain_count + 1);
	text_map_free(&numbers);
	free(ordinals);
	buffer_free(&value);
}

static void renew(struct bitset *set, size_t size)
{
	bitset_free(set);
	bitset_grow(set, size + 1);
}

static void read_class(struct demand *demand, const struct cluster *cluster)
{
	const struct node_class *class = cluster_node_class(cluster, demand->node_class);
	struct node_class_line line;
	struct buffer name = { 0 };

	renew(&demand->allowed, cluster->node_count);
	renew(&demand->wanted, cluster->node_count);
	renew(&demand->tolerated, cluster->node_count);
	for (const char *nodes = class ? class->r.nodes : ""; node_class_next(&nodes, &line);) {
		name.size = 0;
		buffer_print(&name, "%.*s", line.name_size, line.name);
		const struct node *node = cluster_node(cluster, name.data);
		if (!node)
			continue;
		bitset_assign(&demand->allowed, (size_t)node->rank, line.mask & NODE_ALLOWED);
		bitset_assign(&demand->wanted, (size_t)node->rank, line.mask & NODE_WANTED);
		bitset_assign(&demand->tolerated, (size_t)node->rank, line.mask & NODE_TOLERATED);
	}
	buffer_free(&name);
}

void demand_refresh(struct demand *demand, const struct cluster *cluster)
{
	INVARIANT(cluster->ordered);
	demand->ranks = cluster->node_count;
	demand->found = 0;
	for (int i = 0; i < demand->rule_count; i++)
		if (demand->rules[i].kind != RULE_PORT)
			number_domains(&demand->rules[i], cluster);
	renew(&demand->kept_off, cluster->node_count);
	if (*demand->node_class)
		read_class(demand, cluster);
}
