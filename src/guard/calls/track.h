/* track.h - what this process has allocated, by the handle that frees it
 *
 * A hash table in memory of its own, so that it works before main, and whatever
 * the program does to malloc. All functions may be called from any thread. */
#ifndef GUARD_CALLS_TRACK_H
#define GUARD_CALLS_TRACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Handles of different kinds may have the same value. */
enum track_kind {
	TRACK_FREE = 0, /* an empty place of the table */
	TRACK_POINTER,  /* a device pointer: freed by cuMemFree or cuMemFreeAsync */
	TRACK_ARRAY,
	TRACK_MIPMAP,
	TRACK_IMPORT, /* a device pointer that another process exported */
	TRACK_EXTERNAL,
	TRACK_HANDLE,  /* of physical memory */
	TRACK_MAPPING, /* an address range where physical memory is mapped */
	TRACK_OBJECT,  /* physical memory itself, by a number of our own */
	TRACK_GRAPH,   /* a graph that can be launched; bytes: what that allocates */
	TRACK_POOL,    /* a pool that another process exported */
	TRACK_GLOBAL,  /* a managed variable; owner: its module or library */
};

/* One thing that was allocated. */
struct track_item {
	uint64_t key;        /* the handle */
	int64_t bytes;       /* charged; of a mapping: its size */
	uint64_t context;    /* the context that it ends with; 0: none */
	uint64_t owner;      /* the pool that it is from, or the object behind it; 0: none */
	uint32_t references; /* how often it has to be given back until it is */
	int32_t share;       /* the share that carries its charge; or SHARE_NONE, ... */
	uint8_t kind;
	int8_t gpu;       /* in the segment; -1: not charged */
	uint8_t hidden;   /* NVML does not give it to the process */
	uint8_t imported; /* from another process */
};

/* Remembers an item. False if there is no memory for it. */
bool track_add(const struct track_item *item);

/* Finds an item, or finds it and takes it away. False if there is none. */
bool track_find(enum track_kind kind, uint64_t key, struct track_item *item);
bool track_remove(enum track_kind kind, uint64_t key, struct track_item *item);

/* Changes the references of an item; returns how many there are then, and forgets it
 * with the last one. `item` is it, as it is then. -1: there is none. */
int64_t track_refer(enum track_kind kind, uint64_t key, int change, struct track_item *item);

/* Sets the bytes and the share of an item, if its share is still `before`: false if
 * another thread was faster, or the item is gone. */
bool track_charge(enum track_kind kind, uint64_t key, int before, int64_t bytes, int share);

/* Removes an item that ends with the context; false if there is none left. `from` is 0 at
 * first, and then the position where the search continues. */
bool track_remove_of_context(uint64_t context, size_t *from, struct track_item *item);

/* Removes a variable of a module or library; false if there is none left. */
bool track_remove_global(uint64_t module, struct track_item *item);

/* Finds the mapping that an address is in; false if there is none. */
bool track_find_mapping(uint64_t address, struct track_item *item);

/* How many items there are. */
int64_t track_count(void);

/* Forgets everything, locks included: in a forked child, which owns none of it. */
void track_reset(void);

#endif
