/* number_text.h - numbers from text, by one grammar: decimal digits and nothing around them
 *
 * No blanks, no plus sign, no hexadecimal, and nothing after the number. A number that is refused
 * leaves what it would have been stored in unchanged. */
#ifndef BASE_NUMBER_TEXT_H
#define BASE_NUMBER_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

/* A whole number from `least` to `most`, of at most 19 digits, with a minus sign if negative. */
bool number_read(struct text text, int64_t least, int64_t most, int64_t *number);
/* A number with at most `places` digits after the point, times 10^places: 1.5 with 3 places is
 * 1500. `least` and `most` are in the same unit. A digit is required after the point. */
bool number_read_decimal(struct text text, int places, int64_t least, int64_t most,
                         int64_t *number);

/* Takes a whole number of at least one digit off the front of `*text`. False, with nothing taken,
 * if there is none or it is larger than `most`. most >= 0. */
bool number_take(struct text *text, int64_t most, int64_t *number);
/* Like number_take(), with up to `places` digits after a point, times 10^places. Digits beyond
 * those are left in `*text`. At most 9 places. */
bool number_take_decimal(struct text *text, int places, int64_t most, int64_t *number);
/* Takes exactly `count` digits off the front. At most 18. */
bool number_take_digits(struct text *text, int count, int64_t *number);

/* A TCP port, 1 to 65535, in at most five digits. */
bool number_read_port(struct text text, int64_t *port);

#endif
