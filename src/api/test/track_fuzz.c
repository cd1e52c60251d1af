/* track_fuzz.c - a kept track is refused, or written again it reads the same */
#include <stdint.h>
#include <string.h>

#include "api/live/track.h"
#include "base/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct text rest = { (const char *)data, size };
	struct error error = { 0 };
	struct track track, again;

	bool read = track_read(&track, &rest, &error);
	INVARIANT(read == (error.code == ERROR_NONE));
	struct buffer text = { 0 };
	track_write(&track, &text);
	rest = (struct text){ text.data, text.size };
	INVARIANT(track_read(&again, &rest, &error));
	INVARIANT(rest.size == 0 && memcmp(&track, &again, sizeof(track)) == 0);
	track_add(&again, again.last[TRACK_DAY] * 300000, 1);
	buffer_free(&text);
	return 0;
}
