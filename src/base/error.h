/* error.h - errors are values with a reason a person can act on */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdbool.h>

enum error_code {
	ERROR_NONE = 0,
	ERROR_INVALID,     /* malformed: a field is missing, of the wrong kind or out of range */
	ERROR_FORBIDDEN,   /* more than a limit could ever allow, or not the caller's to touch */
	ERROR_NOT_FOUND,   /* names something that is not there */
	ERROR_CONFLICT,    /* the thing is in a state that does not permit this */
	ERROR_IMPOSSIBLE,  /* could never run on this cluster's hardware */
	ERROR_FULL,        /* a queue or a table is full: try again later */
	ERROR_NO_ROOM,     /* does not fit now; nothing was changed */
	ERROR_CORRUPT,     /* stored data contradicts itself */
	ERROR_UNAVAILABLE, /* something outside does not answer: it may later */
};

#define ERROR_TEXT_MAX 256

/* A reason with its code. `code` is ERROR_NONE exactly when `text` is empty. */
struct error {
	enum error_code code;
	char text[ERROR_TEXT_MAX];
};

/* Fills `error` (which may be NULL) and returns false, so that a function can
 * `return error_set(error, ERROR_INVALID, "gpu_count is %d, ...", n)`.
 * Text that is too long is cut. */
bool error_set(struct error *error, enum error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Makes `error` say that nothing went wrong. */
void error_clear(struct error *error);

/* The code as the API writes it: "invalid", "not_found", ... */
const char *error_code_name(enum error_code code);

/* Ends the program with a message, in every build: for a broken invariant, and when memory
 * runs out. Never for bad input. */
_Noreturn void panic(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* An invariant that is checked in every build. */
#define INVARIANT(condition)                                                                       \
	((condition) ? (void)0                                                                     \
	             : panic("%s:%d: broken invariant: %s", __FILE__, __LINE__, #condition))

#endif
