/* symbol.c - finds functions in libraries that are loaded, without dlsym */
#define _GNU_SOURCE
#include "guard/calls/symbol.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The tables of one loaded object. */
struct tables {
	const char *own_name;
	const char *strings;
	const ElfW(Sym) * symbols;
	const uint32_t *hashes;     /* the newer kind of table, */
	const uint32_t *old_hashes; /* or the older; one of them may be NULL */
	const uint16_t *versions;   /* NULL: symbols have no versions */
};

/* An address that the loader gives as a number. */
static void *pointer_to(ElfW(Addr) address)
{
	void *pointer;
	memcpy(&pointer, &address, sizeof pointer);
	return pointer;
}

/* The loader has made most of these addresses, but not everywhere and not in the
 * objects of the kernel. */
static const void *address_of(const struct dl_phdr_info *object, ElfW(Addr) address)
{
	return pointer_to(address < object->dlpi_addr ? object->dlpi_addr + address : address);
}

static bool read_tables(const struct dl_phdr_info *object, struct tables *tables)
{
	*tables = (struct tables){ 0 };
	const ElfW(Dyn) *dynamic = NULL;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dynamic = pointer_to(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
	}
	if (dynamic == NULL)
		return false;
	ElfW(Xword) own_name = 0;
	for (; dynamic->d_tag != DT_NULL; dynamic++) {
		const void *table = address_of(object, dynamic->d_un.d_ptr);
		switch (dynamic->d_tag) {
		case DT_STRTAB:
			tables->strings = table;
			break;
		case DT_SYMTAB:
			tables->symbols = table;
			break;
		case DT_GNU_HASH:
			tables->hashes = table;
			break;
		case DT_HASH:
			tables->old_hashes = table;
			break;
		case DT_VERSYM:
			tables->versions = table;
			break;
		case DT_SONAME:
			own_name = dynamic->d_un.d_val;
			break;
		default:
			break;
		}
	}
	if (tables->strings == NULL || own_name == 0)
		return false;
	tables->own_name = tables->strings + own_name;
	return tables->symbols != NULL && (tables->hashes != NULL || tables->old_hashes != NULL);
}

/* Whether a symbol is the function of that name; `*hidden` is one that is not the
 * default among several versions. */
static const ElfW(Sym) *
    match(const struct tables *tables, uint32_t at, const char *name, const ElfW(Sym) * *hidden)
{
	const ElfW(Sym) *symbol = &tables->symbols[at];
	if (symbol->st_shndx == SHN_UNDEF || (symbol->st_info & 0xf) != STT_FUNC ||
	    strcmp(tables->strings + symbol->st_name, name) != 0)
		return NULL;
	if (tables->versions == NULL || (tables->versions[at] & 0x8000) == 0)
		return symbol;
	*hidden = symbol;
	return NULL;
}

static uint32_t hash_name(const char *name)
{
	uint32_t hash = 5381;
	for (; *name != '\0'; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

/* Walks the chain of the name's hash: buckets, then one word for each symbol from
 * `first` on, whose lowest bit ends a chain. */
static const ElfW(Sym) * find_in_hashes(const struct tables *tables, const char *name)
{
	uint32_t buckets = tables->hashes[0];
	uint32_t first = tables->hashes[1];
	uint32_t filter_words = tables->hashes[2] * (uint32_t)(sizeof(ElfW(Addr)) / 4);
	if (buckets == 0)
		return NULL;
	const uint32_t *bucket = tables->hashes + 4 + filter_words;
	const uint32_t *chains = bucket + buckets;
	uint32_t hash = hash_name(name);
	const ElfW(Sym) *hidden = NULL;
	for (uint32_t at = bucket[hash % buckets]; at >= first; at++) {
		if ((chains[at - first] | 1) == (hash | 1)) {
			const ElfW(Sym) *symbol = match(tables, at, name, &hidden);
			if (symbol != NULL)
				return symbol;
		}
		if ((chains[at - first] & 1) != 0)
			break;
	}
	return hidden;
}

static uint32_t old_hash_name(const char *name)
{
	uint32_t hash = 0;
	for (; *name != '\0'; name++) {
		hash = (hash << 4) + (unsigned char)*name;
		uint32_t high = hash & 0xf0000000;
		hash = (hash ^ high >> 24) & ~high;
	}
	return hash;
}

/* The older table: how many buckets and symbols, the buckets, and for each symbol the
 * next of its chain; 0 ends it. */
static const ElfW(Sym) * find_in_old_hashes(const struct tables *tables, const char *name)
{
	uint32_t buckets = tables->old_hashes[0];
	const uint32_t *bucket = tables->old_hashes + 2;
	const uint32_t *next = bucket + buckets;
	const ElfW(Sym) *hidden = NULL;
	if (buckets == 0)
		return NULL;
	for (uint32_t at = bucket[old_hash_name(name) % buckets]; at != 0; at = next[at]) {
		const ElfW(Sym) *symbol = match(tables, at, name, &hidden);
		if (symbol != NULL)
			return symbol;
	}
	return hidden;
}

static const ElfW(Sym) * find_in(const struct tables *tables, const char *name)
{
	return tables->hashes != NULL ? find_in_hashes(tables, name)
	                              : find_in_old_hashes(tables, name);
}

struct search {
	const char *library_name;
	const char *name;
	struct symbol_library *library;
	void *found;
};

static int look_into(struct dl_phdr_info *object, size_t size, void *data)
{
	(void)size;
	struct search *search = data;
	struct tables tables;
	if (!read_tables(object, &tables) || strcmp(tables.own_name, search->library_name) != 0)
		return 0;
	size_t length = strlen(object->dlpi_name) + 1;
	if (search->library != NULL && length <= sizeof search->library->path)
		memcpy(search->library->path, object->dlpi_name, length);
	const ElfW(Sym) *symbol = find_in(&tables, search->name);
	if (symbol != NULL)
		search->found = pointer_to(object->dlpi_addr + symbol->st_value);
	return search->found != NULL;
}

void *symbol_find(const char *library_name, const char *name, struct symbol_library *library)
{
	struct search search = { .library_name = library_name, .name = name, .library = library };
	if (library != NULL)
		library->path[0] = '\0';
	dl_iterate_phdr(look_into, &search);
	return search.found;
}

static int count_loads(struct dl_phdr_info *object, size_t size, void *data)
{
	if (size >= offsetof(struct dl_phdr_info, dlpi_adds) + sizeof object->dlpi_adds)
		*(unsigned long long *)data = object->dlpi_adds;
	return 1;
}

unsigned long long symbol_loads(void)
{
	unsigned long long loads = 0;
	dl_iterate_phdr(count_loads, &loads);
	return loads;
}
