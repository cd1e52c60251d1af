/* place.h - a directory of its own for a test */
#ifndef AGENT_TEST_PLACE_H
#define AGENT_TEST_PLACE_H

/* Made, and removed with all that is in it. The path is valid until then. */
const char *place_make(void);
void place_remove(const char *path);

#endif
