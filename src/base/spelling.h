/* spelling.h - how far words are apart */
#ifndef BASE_SPELLING_H
#define BASE_SPELLING_H

/* The number of letters to insert, delete, change or swap with their neighbor to turn one
 * word into the other. INT_MAX for words of more than 63 letters. */
int spelling_distance(const char *word, const char *other);

#endif
