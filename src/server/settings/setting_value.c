/* setting_value.c - values of settings: from text into the config, and compared */
#include <string.h>

#include "base/number_text.h"
#include "server/settings/file.h"
#include "server/settings/settings.h"

/* The longest list that is taken. */
enum { LIST_MAX = 256 };

static void *member_of(const struct setting *setting, struct config *config)
{
	return (char *)config + setting->offset;
}

static bool take_flag(const struct setting *setting, struct config *config, const char *text,
                      struct error *error)
{
	bool is_true = strcmp(text, "true") == 0;
	if (!is_true && strcmp(text, "false") != 0)
		return error_set(error, ERROR_INVALID, "%s.%s is '%.40s': write true or false",
		                 setting->section, setting->key, text);
	*(bool *)member_of(setting, config) = is_true;
	return true;
}

static bool setting_value_take_number(const struct setting *setting, struct config *config,
                                      const char *text, struct error *error)
{
	bool decimal = setting->kind == SETTING_DECIMAL;
	int64_t number = 0, unit = decimal ? 1000 : 1;
	if (!number_read_decimal(text_of(text), decimal ? 3 : 0, -INT64_MAX, INT64_MAX, &number))
		return error_set(error, ERROR_INVALID, "%s.%s is '%.40s': write a %s",
		                 setting->section, setting->key, text,
		                 decimal ? "number with up to 3 decimals"
		                         : "whole number, without quotes or units");
	if (number < setting->least || number > setting->most)
		return error_set(error, ERROR_INVALID, "%s.%s is %.40s: it may be %lld to %lld",
		                 setting->section, setting->key, text,
		                 (long long)(setting->least / unit),
		                 (long long)(setting->most / unit));
	*(int64_t *)member_of(setting, config) = number;
	return true;
}

static int64_t word_place(const struct setting *setting, const char *text)
{
	for (int64_t i = 0; setting->words[i]; i++)
		if (strcmp(setting->words[i], text) == 0 ||
		    (setting->aliases && *text && strcmp(setting->aliases[i], text) == 0))
			return i;
	return -1;
}

static bool refuse_word(const struct setting *setting, const char *text, struct error *error)
{
	struct buffer words = { 0 };
	for (int i = 0; setting->words[i]; i++)
		buffer_print(&words, "%s%s", i == 0 ? "" : ", ", setting->words[i]);
	error_set(error, ERROR_INVALID, "%s.%s is '%.40s': it may be one of %s", setting->section,
	          setting->key, text, words.data);
	buffer_free(&words);
	return false;
}

static void setting_set_text(const struct setting *setting, struct config *config, const char *text)
{
	*(const char **)member_of(setting, config) = arena_string(&config->arena, text);
}

/* A list in one text has commas between its entries. */
static bool take_split(const struct setting *setting, struct config *config, const char *text,
                       struct error *error)
{
	const char *entries[LIST_MAX];
	size_t count = 0;
	char *at = arena_string(&config->arena, text);
	while (*at) {
		at += strspn(at, ", ");
		if (!*at)
			break;
		if (count == LIST_MAX)
			return error_set(error, ERROR_INVALID, "%s.%s has more than %d entries",
			                 setting->section, setting->key, LIST_MAX);
		entries[count++] = at;
		at += strcspn(at, ", ");
		if (*at)
			*at++ = '\0';
	}
	setting_take_list(setting, config, entries, count);
	return true;
}

bool setting_take(const struct setting *setting, struct config *config, const char *text,
                  struct error *error)
{
	switch (setting->kind) {
	case SETTING_FLAG:
		return take_flag(setting, config, text, error);
	case SETTING_INTEGER:
	case SETTING_DECIMAL:
		return setting_value_take_number(setting, config, text, error);
	case SETTING_WORD:
		*(int64_t *)member_of(setting, config) = word_place(setting, text);
		return word_place(setting, text) >= 0 || refuse_word(setting, text, error);
	case SETTING_LIST:
		return take_split(setting, config, text, error);
	default:
		setting_set_text(setting, config, text);
		return !setting->words || !*text || word_place(setting, text) >= 0 ||
		       refuse_word(setting, text, error);
	}
}

void setting_take_list(const struct setting *setting, struct config *config,
                       const char *const *texts, size_t count)
{
	const char **copies = arena_alloc(&config->arena, (count + 1) * sizeof(*copies));
	for (size_t i = 0; i < count; i++)
		copies[i] = arena_string(&config->arena, texts[i]);
	copies[count] = NULL;
	*(struct texts *)member_of(setting, config) = (struct texts){ copies, count };
}

static bool lists_equal(const struct texts *a, const struct texts *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(a->at[i], b->at[i]) != 0)
			return false;
	return true;
}

bool setting_equal(const struct setting *setting, const struct config *a, const struct config *b)
{
	const void *left = (const char *)a + setting->offset;
	const void *right = (const char *)b + setting->offset;
	switch (setting->kind) {
	case SETTING_FLAG:
		return *(const bool *)left == *(const bool *)right;
	case SETTING_INTEGER:
	case SETTING_DECIMAL:
	case SETTING_WORD:
		return *(const int64_t *)left == *(const int64_t *)right;
	case SETTING_LIST:
		return lists_equal(left, right);
	default:
		return strcmp(*(const char *const *)left, *(const char *const *)right) == 0;
	}
}

bool setting_take_file(const struct setting *setting, struct config *config, const char *path,
                       struct error *error)
{
	enum { SECRET_BYTES_MAX = 65536 };
	struct buffer text = { 0 };
	if (!file_read(path, SECRET_BYTES_MAX, &text, error))
		return false;
	while (text.size > 0 &&
	       (text.data[text.size - 1] == '\n' || text.data[text.size - 1] == '\r'))
		text.size--;
	bool has_nul = text.size > 0 && memchr(text.data, 0, text.size);
	buffer_bytes(&text, "", 1);
	bool done = !has_nul && setting_take(setting, config, text.data, error);
	if (has_nul)
		error_set(error, ERROR_INVALID, "%s: there is a NUL in it", path);
	explicit_bzero(text.data, text.size);
	buffer_free(&text);
	return done;
}
