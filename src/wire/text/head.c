/* head.c - the head of a request while it arrives */
#include "wire/text/head.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"

enum { KEPT_BYTES = 8 << 10 };

void head_reset(struct head *head)
{
	if (head->bytes.capacity > KEPT_BYTES)
		buffer_free(&head->bytes);
	buffer_clear(&head->bytes);
	head->count = head->list_count = head->pseudo_count = 0;
	head->in_item = false;
}

static char *head_append(struct head *head, const char *data, size_t size)
{
	/* With room for the NUL that follows sooner or later. */
	array_reserve(head->bytes.data, head->bytes.capacity, head->bytes.size + size + 1);
	char *at = head->bytes.data + head->bytes.size;
	if (size > 0)
		memcpy(at, data, size);
	head->bytes.size += size;
	return at;
}

void head_name(struct head *head, const char *data, size_t size)
{
	if (!head->in_item) {
		array_reserve(head->marks, head->capacity, head->count + 1);
		head->marks[head->count++] =
		    (struct head_mark){ .name = (uint32_t)head->bytes.size };
		head->in_item = true;
	}
	char *at = head_append(head, data, size);
	for (size_t i = 0; i < size; i++)
		if (at[i] >= 'A' && at[i] <= 'Z')
			at[i] = (char)(at[i] - 'A' + 'a');
	head->marks[head->count - 1].name_size += (uint32_t)size;
}

void head_name_end(struct head *head)
{
	if (!head->in_item)
		head_name(head, NULL, 0);
	head_append(head, "", 1);
	head->marks[head->count - 1].value = (uint32_t)head->bytes.size;
}

void head_value(struct head *head, const char *data, size_t size)
{
	INVARIANT(head->in_item);
	head_append(head, data, size);
	head->marks[head->count - 1].value_size += (uint32_t)size;
}

void head_value_end(struct head *head)
{
	head_append(head, "", 1);
	head->in_item = false;
}

void head_add(struct head *head, struct text name, struct text value)
{
	head_name(head, name.data, name.size);
	head_name_end(head);
	head_value(head, value.data, value.size);
	head_value_end(head);
}

static struct header header_of(struct head *head, const struct head_mark *mark)
{
	struct text value = { head->bytes.data + mark->value, mark->value_size };
	value = text_trim(value);
	head->bytes.data[(size_t)(value.data - head->bytes.data) + value.size] = '\0';
	return (struct header){ { head->bytes.data + mark->name, mark->name_size }, value };
}

void head_finish(struct head *head, size_t reserve)
{
	INVARIANT(!head->in_item);
	array_reserve(head->bytes.data, head->bytes.capacity, head->bytes.size + reserve + 1);
	array_reserve(head->list, head->list_capacity, head->count);
	head->list_count = 0;
	for (int pseudo = 1; pseudo >= 0; pseudo--) {
		for (size_t i = 0; i < head->count; i++) {
			const struct head_mark *mark = &head->marks[i];
			bool is_pseudo = mark->name_size > 0 && head->bytes.data[mark->name] == ':';
			if (is_pseudo == (pseudo == 1))
				head->list[head->list_count++] = header_of(head, mark);
		}
		if (pseudo == 1)
			head->pseudo_count = head->list_count;
	}
}

struct headers head_headers(const struct head *head)
{
	return (struct headers){ head->list + head->pseudo_count,
		                 head->list_count - head->pseudo_count };
}

struct text head_pseudo(const struct head *head, const char *name)
{
	struct headers pseudo = { head->list, head->pseudo_count };
	return headers_get(&pseudo, name);
}

void head_free(struct head *head)
{
	buffer_free(&head->bytes);
	free(head->marks);
	free(head->list);
	*head = (struct head){ 0 };
}
