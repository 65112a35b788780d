/* A codec or a filter for Refrain in a shared library. See docs/plugins.md.
 *
 * The library exports one function, refrain_plugin() for a codec or refrain_filter_plugin() for a
 * filter, that returns a description which stays valid and unchanged while the library is loaded.
 * All functions may be called from several threads at once. They must not write outside the buffers
 * that they are given, unwind, or keep a pointer. There is no sandbox: a plug-in can do whatever the
 * program can. */
#ifndef REFRAIN_PLUGIN_H
#define REFRAIN_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. */
#define REFRAIN_PLUGIN_ABI 1

/* The numbers that codecs may have. Archives record number and name. */
#define REFRAIN_PLUGIN_NUMBER_FIRST 65024
#define REFRAIN_PLUGIN_NUMBER_LAST 65279

/* The numbers that filters may have. */
#define REFRAIN_FILTER_PLUGIN_NUMBER_FIRST 224
#define REFRAIN_FILTER_PLUGIN_NUMBER_LAST 255

/* What functions return instead of a length. */
#define REFRAIN_PLUGIN_FAILED (-1)
#define REFRAIN_PLUGIN_DAMAGED (-2)
#define REFRAIN_PLUGIN_NO_ROOM (-3)

typedef struct refrain_plugin_description {
    /* REFRAIN_PLUGIN_ABI. */
    uint32_t abi;
    /* The number of the codec in archives. */
    uint32_t number;
    /* Its name: 1 to 31 of a to z, 0 to 9, - and _, and a zero. */
    const char *name;
    /* The memory that each function needs at most for any block, in bytes, without the buffers: at
     * most 2^40. A codec that states more than there is for a block is not used for it. */
    uint64_t encode_memory_bytes;
    uint64_t decode_memory_bytes;
    /* Encodes 1 to 2^30 raw bytes at a level from 1 (fast) to 9 (dense). Returns the length of the
     * data, 1 to out_bytes, or a negative number: Refrain then uses another codec. That is
     * REFRAIN_PLUGIN_NO_ROOM if the data does not fit, which is usual and not reported, and
     * REFRAIN_PLUGIN_FAILED if it cannot be made. The same bytes and level must always give the same
     * data. */
    int64_t (*encode)(const uint8_t *raw, size_t raw_bytes, uint8_t *out, size_t out_bytes,
                      int32_t level);
    /* Decodes data, which may be anything, into exactly out_bytes. Returns out_bytes, or
     * REFRAIN_PLUGIN_DAMAGED (or another negative number) if the data is damaged. Data of n raw bytes
     * must be refused for every other out_bytes: the decoder has to notice that data ends too early,
     * or goes on behind the last byte. */
    int64_t (*decode)(const uint8_t *data, size_t data_bytes, uint8_t *out, size_t out_bytes);
} refrain_plugin_description;

const refrain_plugin_description *refrain_plugin(void);

typedef struct refrain_filter_plugin_description {
    /* REFRAIN_PLUGIN_ABI. */
    uint32_t abi;
    /* The number of the filter in archives. */
    uint32_t number;
    /* Its name, as that of a codec. */
    const char *name;
    /* The parameters that it may be given, of 0 to 255. Without any, both are 0. */
    uint32_t parameter_min;
    uint32_t parameter_max;
    /* The memory that either function needs at most for any block, in bytes, without the bytes: as
     * that of a codec. */
    uint64_t memory_bytes;
    /* Changes 1 to 2^30 bytes in place, so that a codec makes less of them. Returns their number, or
     * REFRAIN_PLUGIN_FAILED (or another negative number) if it cannot; Refrain then uses no filter.
     * The same bytes and parameter must always give the same bytes. */
    int64_t (*encode)(uint8_t *bytes, size_t bytes_count, uint32_t parameter);
    /* Undoes that in place. The bytes may be anything. Returns their number, or
     * REFRAIN_PLUGIN_DAMAGED (or another negative number) if they are damaged. */
    int64_t (*decode)(uint8_t *bytes, size_t bytes_count, uint32_t parameter);
} refrain_filter_plugin_description;

const refrain_filter_plugin_description *refrain_filter_plugin(void);

#ifdef __cplusplus
}
#endif

#endif
