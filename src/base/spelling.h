/* spelling.h - how far words are apart */
#ifndef BASE_SPELLING_H
#define BASE_SPELLING_H

/* How many letters have to be added, left out, changed or swapped with their neighbour to
 * make one word of the other. Of words over 63 letters: INT_MAX. */
int spelling_distance(const char *word, const char *other);

#endif
