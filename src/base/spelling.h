/* spelling.h - how far words are apart */
#ifndef BASE_SPELLING_H
#define BASE_SPELLING_H

/* The number of letters to insert, delete, change or swap with their neighbor to turn one
 * word into the other. INT_MAX for words of more than 63 letters. */
int spelling_distance(const char *word, const char *other);

/* The name nearest to a word, among those considered so far. Starts with the word alone. */
struct spelling {
	const char *word, *nearest; /* nearest: NULL while none is close enough */
	int distance;
};
/* A name that starts with the word is as near as a slip of one letter; otherwise about one letter
 * in three may be wrong. Of equally near names the first is kept. */
void spelling_consider(struct spelling *spelling, const char *name);

#endif
