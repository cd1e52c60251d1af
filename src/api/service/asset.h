/* asset.h - the files of the dashboard, as they were built into the program */
#ifndef API_SERVICE_ASSET_H
#define API_SERVICE_ASSET_H

#include <stddef.h>

/* `name` is "" for the page itself; others are named after their content, so that what is
 * behind a name never changes. `packed` is the same as gzip. */
struct asset {
	const char *name, *content_type;
	const unsigned char *data, *packed;
	size_t size, packed_size;
};

/* All of them; ends with a name that is NULL. */
extern const struct asset assets[];

#endif
