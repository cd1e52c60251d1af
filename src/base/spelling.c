/* spelling.c - how far words are apart */
#include "base/spelling.h"

#include <limits.h>
#include <string.h>

#include "base/number.h"

enum { LETTERS_MAX = 63, PREFIX_LEAST = 3, WRONG_MAX = 3 };

int spelling_distance(const char *word, const char *other)
{
	size_t rows = strlen(word), columns = strlen(other);
	int cost[LETTERS_MAX + 1][LETTERS_MAX + 1];

	if (rows > LETTERS_MAX || columns > LETTERS_MAX)
		return INT_MAX;
	for (size_t i = 0; i <= rows; i++)
		cost[i][0] = (int)i;
	for (size_t j = 0; j <= columns; j++)
		cost[0][j] = (int)j;
	for (size_t i = 1; i <= rows; i++)
		for (size_t j = 1; j <= columns; j++) {
			int changed = cost[i - 1][j - 1] + (word[i - 1] != other[j - 1]);
			int one = cost[i - 1][j] < cost[i][j - 1] ? cost[i - 1][j] : cost[i][j - 1];
			int least = one + 1 < changed ? one + 1 : changed;
			if (i > 1 && j > 1 && word[i - 1] == other[j - 2] &&
			    word[i - 2] == other[j - 1] && cost[i - 2][j - 2] + 1 < least)
				least = cost[i - 2][j - 2] + 1;
			cost[i][j] = least;
		}
	return cost[rows][columns];
}

void spelling_consider(struct spelling *spelling, const char *name)
{
	size_t dashes = strspn(spelling->word, "-"), length = strlen(spelling->word + dashes);
	int distance = spelling_distance(spelling->word, name);
	int most = length < 3 ? 0 : length < 6 ? 1 : (int)min64((int64_t)length / 3, WRONG_MAX);

	if (length >= PREFIX_LEAST && strncmp(spelling->word, name, strlen(spelling->word)) == 0)
		distance = distance < 1 ? distance : 1;
	if (distance > most || (spelling->nearest && distance >= spelling->distance))
		return;
	spelling->nearest = name;
	spelling->distance = distance;
}
