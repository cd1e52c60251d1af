/* internal.h - what the files of the stand-in driver share */
#ifndef GUARD_STANDIN_INTERNAL_H
#define GUARD_STANDIN_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>

#include "standin.h"

struct CUctx_st {
	CUdevice device;
	bool alive;
};
struct CUstream_st {
	CUcontext context;
	bool capturing;
};
struct CUmemPoolHandle_st {
	int gpu; /* -1: host memory */
	int64_t live_bytes, held_bytes, keep_bytes;
	bool destroyed;
};

/* One thing that was handed out, by its handle. `bytes` count on `gpu`. */
struct piece {
	uint64_t handle;
	int64_t bytes;
	int gpu;
	int kind;
	CUcontext context;
	CUmemoryPool pool;
	uint64_t other;      /* of a mapping: the physical memory; of an import: its size */
	CUdeviceptr address; /* of a mapping */
	int64_t references;  /* handles, mappings and files of physical memory */
	int64_t files;       /* of these: files */
	CUmemLocation location;
	bool hidden; /* NVML does not give it to the process */
	struct piece *next;
};
enum {
	PIECE_MEMORY,
	PIECE_ARRAY,
	PIECE_MIPMAP,
	PIECE_PHYSICAL,
	PIECE_MAPPING,
	PIECE_EXTERNAL,
	PIECE_IMPORT
};

extern pthread_mutex_t standin_mutex;

/* Under the mutex. Takes bytes of a GPU; false if it has not got them. */
bool standin_take(int gpu, int64_t bytes);
/* Hands out a piece with a handle that was never used before. */
struct piece *standin_add(int kind, int gpu, int64_t bytes);
/* Hides a piece from NVML, or shows it again. */
void standin_hide(struct piece *piece, bool hidden);
struct piece *standin_find(int kind, uint64_t handle);
struct piece *standin_find_mapping(CUdeviceptr address);
/* Takes a piece back, and what it counts. */
void standin_remove(struct piece *piece);
void standin_end_context(CUcontext context);
/* All pools give back what is not in use, as far as they shall. */
void standin_shrink_pools(void);

/* A stream that is captured allocates: a node of its graph. */
CUresult standin_capture_allocation(CUstream stream, CUdeviceptr *pointer, int64_t bytes);

/* In a forked child, which has none of its parent's memory. */
/* Looks which exported files are closed by now. */
void standin_sweep_files(void);
void standin_forget_files(void);
void standin_forget_pools(void);
void standin_forget_graphs(void);
/* Under the mutex: the last context of a GPU has ended. */
void standin_end_graphs(int gpu);
void standin_forget_pieces(void);
void standin_forget_modules(void);

/* The number on the machine of a visible device; -1 if there is none. */
int standin_gpu(CUdevice device);
int standin_current_gpu(void);
CUcontext standin_current(void);
void standin_count_call(void);

#endif
