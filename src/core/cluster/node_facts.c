/* node_facts.c - what is known of nodes beside their reports: counted resources, classes, guests */
#include "core/cluster/node_facts.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#define NODE_CLASS_BYTES_MAX (16 << 20)

struct node_count *node_count(const struct node *node, const char *name)
{
	for (int i = 0; i < node->count_count; i++)
		if (strcmp(node->counts[i].name, name) == 0)
			return &node->counts[i];
	return NULL;
}

struct node_count *node_count_made(struct node *node, const char *name)
{
	struct node_count *count = node_count(node, name);

	if (count)
		return count;
	if (node->count_count == node->count_capacity) {
		node->count_capacity = node->count_capacity ? 2 * node->count_capacity : 4;
		node->counts = memory_resize(node->counts,
		                             (size_t)node->count_capacity * sizeof(*node->counts));
	}
	count = &node->counts[node->count_count++];
	*count = (struct node_count){ .name = memory_text(name) };
	return count;
}

/* Lines of name=n, which have been checked. */
static void read_amounts(struct node *node, const char *lines, bool taken)
{
	while (*lines) {
		char name[256];
		size_t size = strcspn(lines, "\n");
		const char *equals = memchr(lines, '=', size);
		INVARIANT(equals && (size_t)(equals - lines) < sizeof(name));
		memcpy(name, lines, (size_t)(equals - lines));
		name[equals - lines] = '\0';
		struct node_count *count = node_count_made(node, name);
		*(taken ? &count->taken : &count->capacity) = strtoll(equals + 1, NULL, 10);
		lines += size + (lines[size] == '\n');
	}
}

/* Labels resource/NAME=N declare counted resources. Those that are not a number declare none. */
static void read_labels(struct node *node)
{
	static const char prefix[] = "resource/";
	const size_t begin = sizeof(prefix) - 1;

	for (const char *line = node->r.labels; *line;) {
		size_t size = strcspn(line, "\n");
		const char *equals = memchr(line, '=', size);
		char name[256], number[20];
		size_t digits = equals ? size - (size_t)(equals + 1 - line) : 0;
		if (equals && strncmp(line, prefix, begin) == 0 && equals > line + begin &&
		    (size_t)(equals - line) - begin < sizeof(name) && digits > 0 && digits < 16 &&
		    strspn(equals + 1, "0123456789") >= digits) {
			memcpy(name, line + begin, (size_t)(equals - line) - begin);
			name[(size_t)(equals - line) - begin] = '\0';
			memcpy(number, equals + 1, digits);
			number[digits] = '\0';
			node_count_made(node, name)->capacity = strtoll(number, NULL, 10);
		}
		line += size + (line[size] == '\n');
	}
}

void node_read_counts(struct node *node)
{
	for (int i = 0; i < node->count_count; i++)
		node->counts[i].capacity = node->counts[i].taken = 0;
	read_labels(node);
	read_amounts(node, node->r.resources, false);
	read_amounts(node, node->r.taken, true);
}

const char *node_domain(const struct node *node, const char *domain, size_t *size)
{
	const char *value = NULL;
	bool label = strncmp(domain, "label:", 6) == 0;

	domain += label ? 6 : 0;
	size_t key = strlen(domain);
	if (label)
		value = NULL;
	else if (strcmp(domain, "node") == 0)
		value = node->r.name;
	else if (strcmp(domain, "rack") == 0)
		value = *node->r.rack ? node->r.rack : NULL;
	else if (strcmp(domain, "zone") == 0)
		value = *node->r.zone ? node->r.zone : NULL;
	if (value) {
		*size = strlen(value);
		return value;
	}
	for (const char *line = node->r.labels; *line;) {
		size_t length = strcspn(line, "\n");
		if (length > key && line[key] == '=' && memcmp(line, domain, key) == 0) {
			*size = length - key - 1;
			return line + key + 1;
		}
		line += length + (line[length] == '\n');
	}
	return NULL;
}

struct node_class *cluster_node_class(const struct cluster *cluster, const char *name)
{
	return text_map_get(&cluster->class_by_name, name);
}

bool node_class_next(const char **nodes, struct node_class_line *line)
{
	const char *at = *nodes;
	size_t size = strcspn(at, "\n");

	if (!*at)
		return false;
	*line = (struct node_class_line){ 0 };
	while (*at >= '0' && *at <= '7')
		line->mask = line->mask * 8 + (unsigned)(*at++ - '0');
	at += *at == ' ';
	line->name = at;
	line->name_size = (int)strcspn(at, "\t\n");
	at += line->name_size;
	if (*at == '\t')
		at++;
	line->reason = at;
	line->reason_size = (int)(*nodes + size - at);
	*nodes += size + ((*nodes)[size] == '\n');
	return true;
}

bool node_class_check(const char *name, const char *nodes, struct error *error)
{
	if (!name || !*name || strlen(name) > 255)
		return error_set(error, ERROR_INVALID, "a node class has a name of 1 to 255 bytes");
	if (!nodes || strlen(nodes) > NODE_CLASS_BYTES_MAX)
		return error_set(error, ERROR_INVALID,
		                 "node class %s: its nodes are missing or too long", name);
	for (const char *at = nodes; *at;) {
		size_t size = strcspn(at, "\n");
		bool right = size > 2 && at[0] >= '0' && at[0] <= '7' && at[1] == ' ' &&
		             strcspn(at + 2, "\t\n") > 0;
		if (!right)
			return error_set(error, ERROR_INVALID,
			                 "node class %s: a line is not 'mask node<tab>reason'",
			                 name);
		at += size + (at[size] == '\n');
	}
	return true;
}

struct node_class *cluster_put_node_class(struct cluster *cluster,
                                          const struct node_class_record *record)
{
	struct node_class *class = cluster_node_class(cluster, record->name);

	if (!class) {
		class = NEW(struct node_class);
		class->r.id = record->id;
		class->r.name = memory_text(record->name);
		class->r.nodes = NULL;
		text_map_put(&cluster->class_by_name, class->r.name, class);
	}
	free((char *)class->r.nodes);
	class->r.nodes = memory_text(record->nodes);
	return class;
}

void node_class_free(struct node_class *class)
{
	free((char *)class->r.name);
	free((char *)class->r.nodes);
	free(class);
}

void cluster_remove_node_class(struct cluster *cluster, struct node_class *class)
{
	text_map_remove(&cluster->class_by_name, class->r.name);
	node_class_free(class);
}

struct guest *cluster_add_guest(struct cluster *cluster, struct node *node, struct filter *filter,
                                const struct guest_record *record)
{
	struct guest *guest = NEW(struct guest);

	guest->r = *record;
	guest->r.node_id = node->r.id;
	guest->r.name = memory_text(record->name);
	guest->r.marks = memory_text(record->marks);
	guest->r.rules = memory_text(record->rules);
	guest->node = node;
	guest->filter = filter;
	if (node->guest_count == node->guest_capacity) {
		node->guest_capacity = node->guest_capacity ? 2 * node->guest_capacity : 8;
		node->guests = memory_resize(node->guests,
		                             (size_t)node->guest_capacity * sizeof(struct guest *));
	}
	int at = node->guest_count++;
	for (; at > 0 && node->guests[at - 1]->r.id > record->id; at--)
		node->guests[at] = node->guests[at - 1];
	node->guests[at] = guest;
	text_map_put(&cluster->guest_by_name, guest->r.name, guest);
	return guest;
}

void cluster_remove_guest(struct cluster *cluster, struct guest *guest)
{
	struct node *node = guest->node;
	int at = 0;

	while (at < node->guest_count && node->guests[at] != guest)
		at++;
	INVARIANT(at < node->guest_count);
	node->guest_count--;
	for (; at < node->guest_count; at++)
		node->guests[at] = node->guests[at + 1];
	text_map_remove(&cluster->guest_by_name, guest->r.name);
	free((char *)guest->r.name);
	free((char *)guest->r.marks);
	free((char *)guest->r.rules);
	free(guest);
}
