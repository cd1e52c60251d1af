/* reflector.h - follows all objects of one resource of the API server, as a state machine */
#ifndef KUBE_REFLECTOR_H
#define KUBE_REFLECTOR_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/map.h"

enum reflector_event {
	REFLECTOR_PUT,    /* the object is new, or as it is now */
	REFLECTOR_GONE,   /* `object` as it last was */
	REFLECTOR_SYNCED, /* all that there is has been said; no object */
};
typedef void reflector_sink(void *context, enum reflector_event event, const json_t *object);

/* It asks for a watch that begins with all objects, and continues from the last version it saw. A
 * server that cannot do that is asked for lists in pages first. When the server has forgotten the
 * version (410), all is asked for again, and deleted objects are reported as gone: the
 * receiver never holds on to an object that was deleted while nobody looked: of one that was made
 * again under its name, it hears first that the old one is gone. Versions are opaque.
 * Zero-initialised, but for the first four. */
struct reflector {
	const char *path;  /* "/api/v1/pods" */
	const char *query; /* more parameters, each after an '&'; "" */
	reflector_sink *sink;
	void *context;

	bool paged;     /* the server cannot begin a watch with all objects */
	bool listing;   /* pages are being read */
	bool synced;    /* the receiver has heard of all objects at least once */
	uint64_t round; /* of asking for all */
	char version[128], page[1024];
	struct text_map objects; /* by "namespace/name" */
	struct buffer line;      /* of the watch, as far as it has come */
};

/* Appends what to GET next. */
void reflector_request(struct reflector *reflector, struct buffer *path);
/* The head of the answer: false if it is not to be read, with a reason. */
bool reflector_status(struct reflector *reflector, int status, struct error *error);
/* Bytes of the body. False with a reason: the answer is given up, and the next one asked for. */
bool reflector_feed(struct reflector *reflector, const char *data, size_t size,
                    struct error *error);
/* The answer has ended. False with a reason if it was half a list. */
bool reflector_end(struct reflector *reflector, struct error *error);
/* The connection ended without a last word, or none was made. A store that is set back is back
 * behind the versions that were seen, and says nothing until it has passed them; its servers are
 * stopped for that. So all is asked for again. */
void reflector_lost(struct reflector *reflector);
void reflector_free(struct reflector *reflector);

#endif
