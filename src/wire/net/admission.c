/* admission.c - how many connections there may be, and of which kind */
#include "wire/net/admission.h"

struct admission admission_new(size_t most, size_t reserved)
{
	return (struct admission){ .most = most,
		                   .reserved = reserved < most / 4 ? reserved : most / 4 };
}

bool admission_has_place(const struct admission *admission, enum peer_kind kind)
{
	size_t taken = admission->counts[kind];
	for (int other = 0; other < PEER_KINDS; other++) {
		size_t count = admission->counts[other];
		if (other != (int)kind)
			taken += count > admission->reserved ? count : admission->reserved;
	}
	return taken < admission->most;
}
