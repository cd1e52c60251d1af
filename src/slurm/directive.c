/* directive.c - the options in the lines of a script that begin with #SBATCH */
#include "slurm/directive.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

static const char mark[] = "#SBATCH";

static bool is_blank(char letter)
{
	return letter == ' ' || letter == '\t' || letter == '\r';
}

static void add_word(struct directives *directives, const struct buffer *word, size_t line,
                     struct arena *arena)
{
	array_reserve(directives->words, directives->capacity, directives->count + 2);
	array_reserve(directives->lines, directives->line_capacity, directives->count + 2);
	directives->words[directives->count] = word->size > 0
	                                           ? arena_copy(arena, word->data, word->size + 1)
	                                           : arena_string(arena, "");
	directives->lines[directives->count] = line;
	directives->words[++directives->count] = NULL;
}

/* The words of one line; false: a quote does not end. */
static bool read_line(struct directives *directives, const char *at, const char *end, size_t line,
                      struct arena *arena, struct buffer *word)
{
	while (at < end) {
		while (at < end && is_blank(*at))
			at++;
		if (at == end || *at == '#')
			return true;
		char quote = 0;
		buffer_clear(word);
		for (; at < end && (quote || !is_blank(*at)); at++) {
			if (*at == '\\' && quote != '\'' && at + 1 < end)
				buffer_bytes(word, ++at, 1);
			else if (quote && *at == quote)
				quote = 0;
			else if (!quote && (*at == '"' || *at == '\''))
				quote = *at;
			else if (*at)
				buffer_bytes(word, at, 1);
		}
		if (quote)
			return false;
		buffer_text(word, "");
		add_word(directives, word, line, arena);
	}
	return true;
}

bool directives_read(struct directives *directives, const char *script, size_t size,
                     struct arena *arena, struct error *error)
{
	const char *at = script, *end = script + size;
	struct buffer word = { 0 };
	bool good = true;
	for (size_t line = 1; good && at < end; line++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;
		const char *first = at;
		while (first < stop && is_blank(*first))
			first++;
		if (first < stop && *first != '#')
			break;
		size_t length = (size_t)(stop - at);
		if (length > strlen(mark) && memcmp(at, mark, strlen(mark)) == 0 &&
		    is_blank(at[strlen(mark)]))
			good =
			    read_line(directives, at + strlen(mark), stop, line, arena, &word) ||
			    error_set(error, ERROR_INVALID, "line %zu: a quote does not end", line);
		at = newline ? newline + 1 : end;
	}
	buffer_free(&word);
	return good;
}

void directives_free(struct directives *directives)
{
	free(directives->words);
	free(directives->lines);
	*directives = (struct directives){ 0 };
}

char **slurm_split_letters(int *count, char *const *words, bool (*takes)(const char *option),
                           struct arena *arena)
{
	int total = 0, made = 0;
	bool is_value = false, is_command = false;
	while (words && words[total])
		total++;
	size_t most = 1;
	for (int i = 0; i < total; i++)
		most += strlen(words[i]) + 2;
	char **split = arena_alloc(arena, sizeof(*split) * most);
	for (int i = 0; i < total; i++) {
		char *word = words[i];
		bool is_option = !is_value && !is_command && word[0] == '-' && word[1];
		is_command = is_command || (!is_value && (!is_option || strcmp(word, "--") == 0));
		is_value = false;
		if (!is_option || word[1] == '-') {
			is_value = is_option && !strchr(word, '=') && takes(word);
			split[made++] = word;
			continue;
		}
		/* Letters without values, then perhaps one with the rest as its value. */
		while (*++word && !is_value) {
			char letter[] = { '-', *word, '\0' };
			split[made++] = arena_copy(arena, letter, sizeof(letter));
			is_value = takes(letter);
		}
		if (is_value && *word) {
			split[made++] = word;
			is_value = false;
		}
	}
	split[made] = NULL;
	*count = made;
	return split;
}
