/* place_spread.c - policy: use what is emptiest */
#include "core/place/place.h"

/* Most left over goes first: the opposite of packing. */
int64_t place_spread(struct placement *placement, const struct search *search,
                     struct choice *choice)
{
	INVARIANT(choice->node != NULL);
	return -place_pack(placement, search, choice);
}
