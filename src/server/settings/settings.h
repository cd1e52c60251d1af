/* settings.h - the table of all settings: names, ranges, defaults, meanings */
#ifndef SERVER_SETTINGS_H
#define SERVER_SETTINGS_H

#include "server/settings/config.h"

enum setting_kind {
	SETTING_FLAG,    /* bool */
	SETTING_INTEGER, /* int64_t from `least` to `most` */
	SETTING_DECIMAL, /* int64_t, thousandths, likewise */
	SETTING_WORD,    /* int64_t, the place of one of `words` */
	SETTING_TEXT,    /* const char * */
	SETTING_SECRET,  /* const char *; or KEY_file names a file that it is in */
	SETTING_LIST,    /* struct texts */
};

/* `fallback` is the default, as a user would write it. */
struct setting {
	const char *section, *key;
	enum setting_kind kind;
	size_t offset; /* in struct config */
	int64_t least, most;
	const char *const *words;   /* NULL behind the last */
	const char *const *aliases; /* other names of the words, "" without one; NULL: none */
	const char *fallback;
	bool reloads; /* takes effect on SIGHUP */
	const char *meaning;
};

extern const struct setting settings[];
extern const size_t setting_count;

/* The setting, or NULL. `length` bytes of the key are looked at. */
const struct setting *setting_find(const char *section, const char *key, size_t length);
/* Like setting_find(), and also accepts KEY_file of a secret, which `*in_file` says. */
const struct setting *setting_find_given(const char *section, const char *key, bool *in_file);
bool setting_has_section(const char *section, size_t length);
/* What is meant, perhaps: the nearest name of a section, or of a key in one; NULL:
 * nothing is near. */
const char *setting_nearest_section(const char *name);
const char *setting_nearest_key(const char *section, const char *name);

/* Sets a setting from text. False with a reason, which states the range. It does not repeat the
 * value of a secret. */
bool setting_take(const struct setting *setting, struct config *config, const char *text,
                  struct error *error);
/* Like setting_take(), for a list; the texts are copied. */
void setting_take_list(const struct setting *setting, struct config *config,
                       const char *const *texts, size_t count);
/* Takes a secret from the file at `path`, without the newline at its end. */
bool setting_take_file(const struct setting *setting, struct config *config, const char *path,
                       struct error *error);
bool setting_equal(const struct setting *setting, const struct config *a, const struct config *b);

/* The table for docs/configuration.md, in Markdown. */
void settings_describe(struct buffer *text);

#endif
