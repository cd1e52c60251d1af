/* guess_text.h - what voices said, as text that a record can hold */
#ifndef CORE_PREDICT_GUESS_TEXT_H
#define CORE_PREDICT_GUESS_TEXT_H

#include "core/predict/mixture.h"

/* For each voice five characters, of which three are its weight, and its levels. All are
 * a number from 0 to 63 above '0'. */
#define VOICE_TEXT 5
#define GUESS_TEXT_MAX (VOICES * (VOICE_TEXT + GUESS_BINS))
#define JUDGED_TEXT_MAX (VOICES * (VOICE_TEXT + 1))

/* `text` has room for GUESS_TEXT_MAX + 1, or JUDGED_TEXT_MAX + 1, bytes. */
void guess_write(char *text, const struct guess *guess);
void judged_write(char *text, const struct experience *experience);

/* To be freed with free(); NULL: it is not what guess_write() writes. */
struct guess *guess_read(const char *text);
/* Sets count and voices; false: it is not what judged_write() writes. */
bool judged_read(const char *text, struct experience *experience);

#endif
