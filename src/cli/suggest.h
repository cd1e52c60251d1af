/* suggest.h - what somebody may have meant by a word that is not known */
#ifndef CLI_SUGGEST_H
#define CLI_SUGGEST_H

#include "cli/options.h"

/* The name of a command that is close to the word, or that does what a command of another
 * scheduler does; NULL: none comes to mind. */
const char *suggest_command(const char *word);

/* Options of other schedulers, for struct arguments. */
extern const struct option_habit suggest_options[];

#endif
