/* Streams: pieces of any size, flushes, damage, and streams that are closed early. */
#include "check.h"

#include <pthread.h>
#include <unistd.h>

/* A stream that has ended tells of all that passed it. */
static void check_whole(const refrain_stream *stream, uint64_t content_bytes, uint64_t archive_bytes) {
    refrain_progress progress = {sizeof progress, 1, 1, 1};
    CHECK(refrain_stream_progress(stream, &progress) == 0);
    CHECK(progress.content_bytes_done == content_bytes && progress.content_bytes_total == content_bytes);
    CHECK(progress.archive_bytes == archive_bytes);
}

static void pieces(size_t size) {
    struct bytes input = content(size, 1), whole = compressed(input, NULL), output = {0};
    size_t sizes[][2] = {{1000, 777}, {3 << 20, 65536}, {65536, 3 << 20}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        refrain_stream *stream;
        struct bytes again = {0};
        /* The bytes do not depend on the pieces. */
        CHECK(refrain_stream_open_compress(NULL, &stream) == 0);
        CHECK(pass(stream, input, &again, sizes[i][0], sizes[i][1], REFRAIN_END) == 0);
        check_whole(stream, size, again.size);
        CHECK(refrain_stream_close(stream) == 0);
        CHECK(is_equal(again, whole));
        free(again.at);
        output.size = 0;
        CHECK(refrain_stream_open_decompress(NULL, &stream) == 0);
        CHECK(pass(stream, whole, &output, sizes[i][0], sizes[i][1], REFRAIN_END) == 0);
        check_whole(stream, size, whole.size);
        CHECK(refrain_stream_close(stream) == 0);
        CHECK(is_equal(output, input));
    }
    free(input.at), free(whole.at), free(output.at);
}

/* What was flushed can be read alone, and all of it together. */
static void flushes(void) {
    struct bytes parts[3] = {content(100000, 1), content(1, 2), content(2000000, 3)};
    struct bytes all = {0}, archive = {0}, output = {0};
    size_t ends[3];
    refrain_stream *stream;
    CHECK(refrain_stream_open_compress(NULL, &stream) == 0);
    for (int i = 0; i < 3; i++) {
        CHECK(pass(stream, parts[i], &archive, 65536, 65536, REFRAIN_FLUSH) == 0);
        append(&all, parts[i].at, parts[i].size);
        ends[i] = archive.size;
        /* All that was flushed is done, but more may follow. */
        refrain_progress progress = {sizeof progress, 1, 1, 1};
        CHECK(refrain_stream_progress(stream, &progress) == 0);
        CHECK(progress.content_bytes_done == all.size && progress.archive_bytes == archive.size);
        CHECK(progress.content_bytes_total == REFRAIN_UNKNOWN);
    }
    struct bytes nothing = {0};
    CHECK(pass(stream, nothing, &archive, 1, 100, REFRAIN_FLUSH) == 0);
    CHECK(pass(stream, nothing, &archive, 1, 100, REFRAIN_END) == 0);
    CHECK(archive.size == ends[2]);
    check_whole(stream, all.size, archive.size);
    CHECK(pass(stream, parts[0], &archive, 65536, 65536, REFRAIN_END) == REFRAIN_ERROR_USAGE);
    CHECK(refrain_stream_close(stream) == 0);
    for (int i = 0; i < 3; i++) {
        struct bytes until = {archive.at, ends[i], ends[i]};
        size_t expected = i == 0 ? parts[0].size : i == 1 ? parts[0].size + 1 : all.size;
        output.size = 0;
        CHECK(refrain_stream_open_decompress(NULL, &stream) == 0);
        CHECK(pass(stream, until, &output, 65536, 65536, REFRAIN_END) == 0);
        check_whole(stream, expected, ends[i]);
        CHECK(refrain_stream_close(stream) == 0);
        CHECK(output.size == expected && memcmp(output.at, all.at, expected) == 0);
    }
    for (int i = 0; i < 3; i++) free(parts[i].at);
    free(all.at), free(archive.at), free(output.at);
}

static void no_content(void) {
    struct bytes nothing = {0}, archive = compressed(nothing, NULL), output = {0};
    refrain_stream *stream;
    CHECK(archive.size > 0);
    CHECK(refrain_stream_open_decompress(NULL, &stream) == 0);
    CHECK(pass(stream, archive, &output, 10, 10, REFRAIN_END) == 0);
    CHECK(refrain_stream_close(stream) == 0);
    CHECK(output.size == 0);
    /* Nothing is no archive. */
    CHECK(refrain_stream_open_decompress(NULL, &stream) == 0);
    CHECK(pass(stream, nothing, &output, 10, 10, REFRAIN_END) == REFRAIN_ERROR_DAMAGED);
    CHECK(refrain_stream_close(stream) == 0);
    free(archive.at), free(output.at);
}

static void damage(void) {
    struct bytes input = content(3000000, 5), archive = compressed(input, NULL), output = {0};
    refrain_stream *stream;
    archive.at[archive.size * 3 / 4] ^= 1;
    CHECK(refrain_stream_open_decompress(NULL, &stream) == 0);
    CHECK(pass(stream, archive, &output, 65536, 65536, REFRAIN_END) == REFRAIN_ERROR_DAMAGED);
    CHECK(output.size < input.size && memcmp(output.at, input.at, output.size) == 0);
    /* The stream keeps its error and its message. */
    CHECK(pass(stream, archive, &output, 65536, 65536, REFRAIN_END) == REFRAIN_ERROR_DAMAGED);
    char text[200] = "";
    CHECK(refrain_message(stream, text, sizeof text) > 0 && strlen(text) > 10);
    CHECK(refrain_stream_close(stream) == 0);
    free(input.at), free(archive.at), free(output.at);
}

static void early_ends(void) {
    struct bytes input = content(9000000, 7), archive = compressed(input, NULL);
    for (int way = 0; way < 6; way++) {
        refrain_stream *stream;
        struct bytes from = way % 2 ? archive : input;
        CHECK((way % 2 ? refrain_stream_open_decompress : refrain_stream_open_compress)(NULL, &stream) == 0);
        unsigned char room[100];
        refrain_in_buffer in = {from.at, way / 2 ? from.size / (way / 2) : 0, 0};
        refrain_out_buffer out = {room, sizeof room, 0};
        int64_t left = refrain_stream_step(stream, &out, &in, REFRAIN_CONTINUE);
        CHECK(left > 0);
        CHECK(refrain_stream_close(stream) == 0);
        CHECK(refrain_stream_step(stream, &out, &in, REFRAIN_CONTINUE) == REFRAIN_ERROR_HANDLE);
        CHECK(refrain_stream_close(stream) == REFRAIN_ERROR_HANDLE);
    }
    free(input.at), free(archive.at);
}

static void *close_later(void *stream) {
    usleep(50000);
    CHECK(refrain_stream_close(stream) == 0);
    return NULL;
}

/* A stream that is closed while another thread waits for it. */
static void closed_meanwhile(void) {
    struct bytes input = content(30000000, 9), output = {0};
    refrain_stream *stream;
    refrain_options *options;
    CHECK(refrain_options_open(&options) == 0);
    CHECK(refrain_options_set_number(options, REFRAIN_OPTION_LEVEL, 9) == 0);
    CHECK(refrain_stream_open_compress(options, &stream) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, close_later, stream) == 0);
    int64_t left = pass(stream, input, &output, 65536, 65536, REFRAIN_END);
    CHECK(left == REFRAIN_ERROR_CANCELLED || left == REFRAIN_ERROR_HANDLE);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(refrain_options_close(options) == 0);
    free(input.at), free(output.at);
}

static void misuse(void) {
    refrain_stream *stream;
    unsigned char room[10];
    refrain_in_buffer in = {NULL, 0, 0};
    refrain_out_buffer out = {room, sizeof room, 0};
    CHECK(refrain_stream_open_compress(NULL, NULL) == REFRAIN_ERROR_USAGE);
    CHECK(refrain_stream_step(NULL, &out, &in, REFRAIN_END) == REFRAIN_ERROR_HANDLE);
    CHECK(refrain_stream_step((refrain_stream *)room, &out, &in, REFRAIN_END) == REFRAIN_ERROR_HANDLE);
    CHECK(refrain_stream_open_compress(NULL, &stream) == 0);
    CHECK(refrain_stream_step(stream, NULL, &in, REFRAIN_END) == REFRAIN_ERROR_USAGE);
    CHECK(refrain_stream_step(stream, &out, NULL, REFRAIN_END) == REFRAIN_ERROR_USAGE);
    CHECK(refrain_stream_step(stream, &out, &in, 3) == REFRAIN_ERROR_USAGE);
    refrain_in_buffer missing = {NULL, 1, 0}, behind = {room, 1, 2}, huge = {room, SIZE_MAX, 0};
    CHECK(refrain_stream_step(stream, &out, &missing, REFRAIN_END) == REFRAIN_ERROR_USAGE);
    CHECK(refrain_stream_step(stream, &out, &behind, REFRAIN_END) == REFRAIN_ERROR_USAGE);
    CHECK(refrain_stream_step(stream, &out, &huge, REFRAIN_END) == REFRAIN_ERROR_USAGE);
    /* Buffers without room: the call says that there is more. */
    refrain_out_buffer none = {NULL, 0, 0};
    CHECK(refrain_stream_step(stream, &none, &in, REFRAIN_END) > 0);
    int64_t left;
    do {
        out.pos = 0;
        left = refrain_stream_step(stream, &out, &in, REFRAIN_END);
    } while (left > 0);
    CHECK(left == 0);
    CHECK(refrain_stream_step(stream, &out, &in, REFRAIN_END) == 0);
    CHECK(refrain_stream_close(stream) == 0);
    CHECK(refrain_stream_open_decompress(NULL, &stream) == 0);
    CHECK(refrain_stream_step(stream, &out, &in, REFRAIN_FLUSH) == REFRAIN_ERROR_USAGE);
    CHECK(refrain_stream_close(stream) == 0);
}

int main(int count, char **arguments) {
    size_t size = count > 1 ? strtoul(arguments[1], NULL, 10) : 5000000;
    pieces(size);
    flushes();
    no_content();
    damage();
    early_ends();
    closed_meanwhile();
    misuse();
    CHECK(refrain_open_handles() == 0);
    return 0;
}
