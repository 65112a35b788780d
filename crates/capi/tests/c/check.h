/* What the test programs have in common. */
#ifndef CHECK_H
#define CHECK_H

#include <refrain.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program with the message of the library if the condition does not hold. */
#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            char text[1000] = "";                                                     \
            refrain_message(NULL, text, sizeof text);                                 \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, text); \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

struct bytes {
    unsigned char *at;
    size_t size;
    size_t room;
};

static inline void append(struct bytes *all, const void *more, size_t size) {
    if (all->size + size > all->room) {
        all->room = (all->size + size) * 2;
        all->at = realloc(all->at, all->room);
        CHECK(all->at != NULL);
    }
    memcpy(all->at + all->size, more, size);
    all->size += size;
}

/* Content in which passages repeat, the same for the same seed. */
static inline struct bytes content(size_t size, uint64_t seed) {
    struct bytes all = {malloc(size + 1), size, size};
    CHECK(all.at != NULL);
    for (size_t at = 0; at < size; at++) {
        if (at % 5000 == 0) seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t word = (seed >> (at / 50000 % 8)) * (at % 5000 / 4 + 1) * 0x9E3779B97F4A7C15u;
        all.at[at] = (unsigned char)(word >> 56) & 0x3F;
    }
    return all;
}

/* Passes all input through a stream, in pieces of these sizes. */
static inline int64_t pass(refrain_stream *stream, struct bytes input, struct bytes *output,
                           size_t input_piece, size_t output_piece, int32_t last) {
    unsigned char *room = malloc(output_piece);
    CHECK(room != NULL);
    int64_t left = 1;
    size_t at = 0;
    do {
        size_t size = input.size - at < input_piece ? input.size - at : input_piece;
        refrain_in_buffer in = {input.at + at, size, 0};
        int32_t directive = at + size == input.size ? last : REFRAIN_CONTINUE;
        do {
            refrain_out_buffer out = {room, output_piece, 0};
            left = refrain_stream_step(stream, &out, &in, directive);
            append(output, room, out.pos);
            if (left < 0) goto end;
        } while (in.pos < in.size || (directive != REFRAIN_CONTINUE && left > 0));
        at += size;
    } while (at < input.size);
end:
    free(room);
    return left;
}

static inline struct bytes compressed(struct bytes input, const refrain_options *options) {
    refrain_stream *stream;
    struct bytes output = {0};
    CHECK(refrain_stream_open_compress(options, &stream) == 0);
    CHECK(pass(stream, input, &output, 64 << 10, 64 << 10, REFRAIN_END) == 0);
    CHECK(refrain_stream_close(stream) == 0);
    return output;
}

static inline int is_equal(struct bytes one, struct bytes other) {
    return one.size == other.size && memcmp(one.at, other.at, one.size) == 0;
}

static inline void write_file(const char *path, struct bytes bytes) {
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(bytes.at, 1, bytes.size, file) == bytes.size);
    CHECK(fclose(file) == 0);
}

static inline struct bytes read_file(const char *path) {
    struct bytes all = {0};
    unsigned char buffer[4096];
    size_t count;
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    while ((count = fread(buffer, 1, sizeof buffer, file)) > 0) append(&all, buffer, count);
    fclose(file);
    return all;
}

#endif
