/* gpu_books.h - what is on a GPU, added up for people */
#ifndef API_READ_GPU_BOOKS_H
#define API_READ_GPU_BOOKS_H

#include "api/read/catalogue.h"

/* All in MiB. What is free can be given to a newcomer now. */
struct gpu_books {
	int64_t capacity, overhead, foreign;
	int64_t reserved;  /* held and live */
	int64_t releasing; /* told to stop, or ended; not confirmed as back */
	int64_t claimed;
	int64_t used; /* the larger of reserved and measured, by owner, and foreign, overhead */
	int64_t free;
	int64_t owners;  /* with a right */
	int64_t share;   /* thousandths that are reserved */
	int64_t compute; /* thousandths of its compute that are reserved */
	bool whole;      /* someone has it for itself */
	bool usable;     /* present, healthy, no parent of MIG instances, not hot */
};

/* The catalogue is locked. */
struct gpu_books gpu_books(const struct catalogue *catalogue, const struct gpu_record *gpu);
/* Whether the GPU could be given whole now: usable, on a node that takes work, and empty. */
bool gpu_is_available(const struct node_record *node, const struct gpu_books *books);

#endif
