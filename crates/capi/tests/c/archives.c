/* Files and archives: archives DIRECTORY [ROUNDS]. With a number of rounds, the rest is short. */
#include "check.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct bytes file_content;

static int calls;

static int32_t count_and_stop(void *context, const refrain_progress *progress) {
    CHECK(progress->struct_bytes == sizeof *progress);
    calls++;
    return *(int *)context;
}

static void make_tree(void) {
    CHECK(mkdir("tree", 0755) == 0 && mkdir("tree/sub", 0755) == 0);
    write_file("tree/a", file_content);
    struct bytes small = {(unsigned char *)"small\n", 6, 6};
    write_file("tree/sub/b", small);
    CHECK(symlink("../a", "tree/sub/link") == 0 && link("tree/a", "tree/z") == 0);
}

static void whole_files(size_t large_bytes) {
    refrain_options *options;
    refrain_summary summary = {sizeof summary, 0, 0, 0};
    int answer = 0;
    CHECK(refrain_options_open(&options) == 0);
    CHECK(refrain_options_set_progress(options, count_and_stop, &answer) == 0);
    CHECK(refrain_compress_file("tree/a", "a.rfn", options, &summary) == 0);
    CHECK(summary.content_bytes == file_content.size && summary.archive_bytes > 0 && calls > 0);
    CHECK(refrain_compress_file("tree/a", "a.rfn", options, NULL) == REFRAIN_ERROR_IO);
    CHECK(refrain_options_set_number(options, REFRAIN_OPTION_OVERWRITE, 1) == 0);
    CHECK(refrain_compress_file("tree/a", "a.rfn", options, NULL) == 0);
    CHECK(refrain_verify_file("a.rfn", options, &summary) == 0);
    CHECK(refrain_decompress_file("a.rfn", "a.copy", options, &summary) == 0);
    struct bytes copy = read_file("a.copy");
    CHECK(is_equal(copy, file_content));
    free(copy.at);
    if (large_bytes > 0) {
        /* A callback that refuses to go on: nothing is published. */
        struct bytes large = content(large_bytes, 13);
        answer = 1;
        write_file("large", large);
        free(large.at);
        CHECK(refrain_compress_file("large", "stopped.rfn", options, NULL) == REFRAIN_ERROR_CANCELLED);
        CHECK(access("stopped.rfn", F_OK) != 0);
    }
    CHECK(refrain_options_close(options) == 0);

    CHECK(refrain_compress_file("tree", "tree.rfn", NULL, NULL) == 0);
    CHECK(refrain_decompress_file("tree.rfn", "tree.copy", NULL, &summary) == 0);
    CHECK(summary.exceptions == 0 && access("tree.copy/sub/b", F_OK) == 0);
    CHECK(refrain_compress_file("absent", "x", NULL, NULL) == REFRAIN_ERROR_IO);
    char text[100] = "";
    CHECK(refrain_message(NULL, text, sizeof text) > 0 && strstr(text, "absent") != NULL);
    CHECK(refrain_message(NULL, text, 3) > 3 && strlen(text) == 2);
    CHECK(refrain_compress_file(NULL, "x", NULL, NULL) == REFRAIN_ERROR_USAGE);
    CHECK(refrain_compress_file("tree/a", "", NULL, NULL) == REFRAIN_ERROR_USAGE);
    CHECK(refrain_verify_file("tree/a", NULL, NULL) == REFRAIN_ERROR_DAMAGED);
}

static void lrzip_and_descriptors(void) {
    refrain_options *options;
    CHECK(refrain_options_open(&options) == 0);
    CHECK(refrain_options_set_number(options, REFRAIN_OPTION_FORMAT, REFRAIN_FORMAT_LRZIP) == 0);
    CHECK(refrain_options_set_text(options, REFRAIN_OPTION_LRZIP_BACK_END, "gzip", 4) == 0);
    int from = open("tree/a", O_RDONLY), to = open("a.lrz", O_RDWR | O_CREAT, 0644);
    CHECK(from >= 0 && to >= 0);
    CHECK(refrain_compress_descriptor(from, to, options, NULL) == 0);
    CHECK(close(from) == 0 && close(to) == 0);
    refrain_archive *archive;
    refrain_info info = {.struct_bytes = sizeof info};
    CHECK(refrain_archive_open("a.lrz", NULL, &archive) == 0);
    CHECK(refrain_archive_info(archive, &info) == 0);
    CHECK(info.format == REFRAIN_FORMAT_LRZIP && info.content_bytes == file_content.size);
    CHECK(refrain_archive_close(archive) == 0);
    from = open("a.lrz", O_RDONLY), to = open("a.from-lrz", O_RDWR | O_CREAT, 0644);
    CHECK(refrain_decompress_descriptor(from, to, options, NULL) == 0);
    CHECK(close(from) == 0 && close(to) == 0);
    struct bytes copy = read_file("a.from-lrz");
    CHECK(is_equal(copy, file_content));
    free(copy.at);
    /* Streams of lrzip's format, which cannot be flushed. */
    refrain_stream *stream;
    struct bytes output = {0}, archive_bytes = compressed(file_content, options);
    CHECK(refrain_stream_open_decompress(NULL, &stream) == 0);
    CHECK(pass(stream, archive_bytes, &output, 65536, 65536, REFRAIN_END) == 0);
    refrain_progress progress = {.struct_bytes = sizeof progress};
    CHECK(refrain_stream_progress(stream, &progress) == 0);
    CHECK(progress.content_bytes_done == output.size && progress.content_bytes_total == output.size);
    CHECK(progress.archive_bytes == archive_bytes.size);
    CHECK(refrain_stream_close(stream) == 0 && is_equal(output, file_content));
    CHECK(refrain_stream_open_compress(options, &stream) == 0);
    CHECK(pass(stream, file_content, &output, 100, 100, REFRAIN_FLUSH) == REFRAIN_ERROR_USAGE);
    CHECK(refrain_stream_close(stream) == 0);
    CHECK(refrain_compress_descriptor(-1, 1, options, NULL) == REFRAIN_ERROR_USAGE);
    CHECK(refrain_compress_descriptor(1000, 1001, options, NULL) == REFRAIN_ERROR_IO);
    CHECK(refrain_options_close(options) == 0);
    free(output.at), free(archive_bytes.at);
}

/* Of a damaged archive of two files, and of one that is cut off, what is intact is restored on
 * request. */
static void damaged_files(void) {
    refrain_options *options;
    refrain_summary summary = {sizeof summary, 0, 0, 0};
    struct bytes one = content(600000, 21), two = content(600000, 22);
    CHECK(mkdir("pair", 0755) == 0);
    write_file("pair/one", one), write_file("pair/two", two);
    CHECK(refrain_options_open(&options) == 0);
    CHECK(refrain_options_set_number(options, REFRAIN_OPTION_BLOCK_BYTES, 65536) == 0);
    CHECK(refrain_compress_file("pair", "pair.rfn", options, NULL) == 0);
    struct bytes archive = read_file("pair.rfn"), copy;
    archive.at[archive.size / 4] ^= 1;
    write_file("broken.rfn", archive);
    archive.at[archive.size / 4] ^= 1;

    CHECK(refrain_decompress_file("broken.rfn", "broken", options, NULL) == REFRAIN_ERROR_DAMAGED);
    CHECK(access("broken", F_OK) != 0);
    CHECK(refrain_options_set_number(options, REFRAIN_OPTION_DAMAGED, REFRAIN_DAMAGED_OMIT) == 0);
    CHECK(refrain_decompress_file("pair.rfn", "pair.copy", options, &summary) == 0);
    CHECK(refrain_decompress_file("broken.rfn", "broken", options, &summary) == REFRAIN_WITH_EXCEPTIONS);
    char text[100] = "";
    CHECK(refrain_message(NULL, text, sizeof text) > 0 && strcmp(text, "one: damaged") == 0);
    CHECK(summary.exceptions == 1 && access("broken/one", F_OK) != 0);
    copy = read_file("broken/two");
    CHECK(is_equal(copy, two));
    free(copy.at);
    CHECK(refrain_options_set_number(options, REFRAIN_OPTION_DAMAGED, REFRAIN_DAMAGED_KEEP) == 0);
    CHECK(refrain_decompress_file("broken.rfn", "kept", options, &summary) == REFRAIN_WITH_EXCEPTIONS);
    copy = read_file("kept/one");
    CHECK(summary.exceptions == 1 && copy.size == one.size && !is_equal(copy, one));
    free(copy.at);
    struct bytes cut = read_file("a.rfn");
    cut.size /= 2;
    write_file("cut.rfn", cut);
    CHECK(refrain_decompress_file("cut.rfn", "cut", options, &summary) == REFRAIN_WITH_EXCEPTIONS);
    copy = read_file("cut");
    CHECK(copy.size > 100 && copy.size <= file_content.size && memcmp(copy.at, file_content.at, 100) == 0);
    free(copy.at), free(cut.at);
    int from = open("broken.rfn", O_RDONLY), to = open("broken.tar", O_RDWR | O_CREAT, 0644);
    CHECK(refrain_decompress_descriptor(from, to, options, &summary) == REFRAIN_WITH_EXCEPTIONS);
    CHECK(close(from) == 0 && close(to) == 0);
    copy = read_file("broken.tar");
    CHECK(copy.size > one.size + two.size);
    /* The same from a file to a pipe. */
    FILE *pipe = popen("cat > piped.tar", "w");
    from = open("broken.rfn", O_RDONLY);
    CHECK(refrain_decompress_descriptor(from, fileno(pipe), options, NULL) == REFRAIN_WITH_EXCEPTIONS);
    CHECK(close(from) == 0 && pclose(pipe) == 0);
    struct bytes piped = read_file("piped.tar");
    CHECK(is_equal(piped, copy));
    free(piped.at);
    free(copy.at), free(archive.at), free(one.at), free(two.at);
    CHECK(refrain_options_close(options) == 0);
}

/* Files of a zip that cannot be read are exceptions, and errors of a check. */
static void damaged_zip(void) {
    refrain_summary summary = {sizeof summary, 0, 0, 0};
    CHECK(system("zip -q -0 -y -r whole.zip tree") == 0);
    CHECK(refrain_verify_file("whole.zip", NULL, &summary) == 0);
    struct bytes zip = read_file("whole.zip");
    size_t at = 0;
    while (memcmp(zip.at + at, file_content.at, 100) != 0) at++;
    zip.at[at + 50] ^= 1;
    write_file("broken.zip", zip);
    free(zip.at);
    CHECK(refrain_verify_file("broken.zip", NULL, NULL) == REFRAIN_ERROR_DAMAGED);
    CHECK(refrain_decompress_file("broken.zip", "unzipped", NULL, &summary) == REFRAIN_WITH_EXCEPTIONS);
    /* One of the two names of the content. */
    CHECK(summary.exceptions == 1 && access("unzipped/tree/sub/b", F_OK) == 0);
    CHECK((access("unzipped/tree/a", F_OK) == 0) != (access("unzipped/tree/z", F_OK) == 0));
    /* A list of what cannot be read has an end. */
    refrain_archive *archive;
    refrain_listing *listing;
    refrain_entry entry = {.struct_bytes = sizeof entry};
    CHECK(system("gzip -c tree/a | head -c 1000 > cut.gz") == 0);
    CHECK(refrain_archive_open("cut.gz", NULL, &archive) == 0);
    CHECK(refrain_listing_open(archive, &listing) == 0);
    int steps = 0;
    while (refrain_listing_next(listing, &entry) != 0 && steps < 10) steps++;
    CHECK(steps < 10);
    CHECK(refrain_listing_close(listing) == 0 && refrain_archive_close(archive) == 0);
}

static void lists(void) {
    static const struct {
        const char *path;
        int32_t kind;
        int is_member;
    } expected[] = {
        {"tree", REFRAIN_TYPE_DIRECTORY, 1},   {"a", REFRAIN_TYPE_FILE, 0},
        {"sub", REFRAIN_TYPE_DIRECTORY, 0},    {"sub/b", REFRAIN_TYPE_FILE, 0},
        {"sub/link", REFRAIN_TYPE_SYMLINK, 0}, {"z", REFRAIN_TYPE_HARDLINK, 0},
    };
    size_t count = 0, known = sizeof expected / sizeof *expected;
    refrain_archive *archive;
    refrain_listing *listing;
    CHECK(refrain_archive_open("tree.rfn", NULL, &archive) == 0);
    CHECK(refrain_listing_open(archive, &listing) == 0);
    CHECK(refrain_archive_close(archive) == 0);
    refrain_entry entry = {.struct_bytes = sizeof entry};
    while (refrain_listing_next(listing, &entry) == 1) {
        if (strcmp(entry.path, ".") == 0) continue; /* the directory itself */
        CHECK(count < known && strcmp(entry.path, expected[count].path) == 0);
        CHECK(entry.kind == expected[count].kind && (int)entry.is_member == expected[count].is_member);
        CHECK(strlen(entry.path) == entry.path_bytes && entry.member == 0);
        if (strcmp(entry.path, "a") == 0) CHECK(entry.size == file_content.size && entry.mode == 0644);
        if (entry.kind == REFRAIN_TYPE_SYMLINK) CHECK(strcmp(entry.link_target, "../a") == 0);
        count++;
    }
    CHECK(count == known);
    CHECK(refrain_listing_next(listing, &entry) == 0);
    entry.struct_bytes = 3;
    CHECK(refrain_listing_next(listing, NULL) == 0);
    CHECK(refrain_listing_close(listing) == 0);
    CHECK(refrain_listing_next(listing, &entry) == REFRAIN_ERROR_HANDLE);
}

struct reader {
    const refrain_archive *archive;
    const refrain_file *file;
    unsigned seed;
};

static void *read_ranges(void *argument) {
    struct reader *reader = argument;
    unsigned char buffer[5000];
    for (int i = 0; i < 300; i++) {
        uint64_t offset = (uint64_t)rand_r(&reader->seed) % (file_content.size + 1);
        size_t left = file_content.size - offset, size = left < sizeof buffer ? left : sizeof buffer;
        int64_t read = i % 2 ? refrain_archive_pread(reader->archive, 0, buffer, sizeof buffer, offset)
                             : refrain_file_pread(reader->file, buffer, sizeof buffer, offset);
        CHECK(read == (int64_t)size && memcmp(buffer, file_content.at + offset, size) == 0);
    }
    return NULL;
}

static void ranges(void) {
    refrain_archive *archive, *tree;
    refrain_file *file;
    CHECK(refrain_archive_open("a.rfn", NULL, &archive) == 0);
    CHECK(refrain_archive_open("tree.rfn", NULL, &tree) == 0);
    /* By a hard link. */
    CHECK(refrain_file_open(tree, 0, "z", 1, &file) == 0);
    CHECK(refrain_file_size(file) == (int64_t)file_content.size);
    pthread_t threads[4];
    struct reader readers[4];
    for (unsigned i = 0; i < 4; i++) {
        readers[i] = (struct reader){archive, file, i};
        CHECK(pthread_create(&threads[i], NULL, read_ranges, &readers[i]) == 0);
    }
    for (int i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);

    unsigned char byte;
    CHECK(refrain_archive_pread(archive, 0, &byte, 1, file_content.size) == 0);
    CHECK(refrain_archive_pread(archive, 0, &byte, 1, UINT64_MAX) == 0);
    CHECK(refrain_archive_pread(archive, 0, NULL, 0, 0) == 0);
    CHECK(refrain_archive_pread(archive, 0, NULL, 1, 0) == REFRAIN_ERROR_USAGE);
    CHECK(refrain_archive_pread(archive, 1, &byte, 1, 0) == REFRAIN_ERROR_NOT_FOUND);
    CHECK(refrain_archive_pread((refrain_archive *)file, 0, &byte, 1, 0) == REFRAIN_ERROR_HANDLE);
    CHECK(refrain_archive_member_count(archive) == 1);
    CHECK(refrain_archive_find_member(archive, "a", 1) == 0);
    CHECK(refrain_archive_find_member(archive, "b", 1) == REFRAIN_ERROR_NOT_FOUND);
    refrain_file *none = (refrain_file *)1;
    CHECK(refrain_file_open(tree, 0, "absent", 6, &none) == REFRAIN_ERROR_NOT_FOUND && none == NULL);
    CHECK(refrain_file_open(tree, 9, "a", 1, &none) == REFRAIN_ERROR_NOT_FOUND);
    CHECK(refrain_file_open(tree, 1, "", 0, &none) == REFRAIN_ERROR_NOT_FOUND);
    CHECK(refrain_archive_pread(tree, 99, NULL, 0, 0) == REFRAIN_ERROR_NOT_FOUND);
    CHECK(refrain_archive_pread(tree, UINT64_MAX, NULL, 0, 0) == REFRAIN_ERROR_NOT_FOUND);
    CHECK(refrain_file_open(tree, 0, "sub", 3, &none) == REFRAIN_ERROR_USAGE);
    CHECK(refrain_file_open(archive, 0, NULL, 0, &none) == 0);
    CHECK(refrain_file_size(none) == (int64_t)file_content.size && refrain_file_close(none) == 0);
    CHECK(refrain_archive_close(archive) == 0 && refrain_archive_close(tree) == 0);
    CHECK(refrain_file_pread(file, &byte, 1, 0) == 1 && byte == file_content.at[0]);
    CHECK(refrain_file_close(file) == 0);
    CHECK(refrain_archive_open("tree/a", NULL, &archive) == REFRAIN_ERROR_DAMAGED && archive == NULL);
    CHECK(refrain_archive_open("absent", NULL, &archive) == REFRAIN_ERROR_IO);
    CHECK(refrain_archive_open("http://127.0.0.1:1/a.rfn", NULL, &archive) == REFRAIN_ERROR_IO);
    int number = open("a.rfn", O_RDONLY);
    CHECK(refrain_archive_open_descriptor(number, NULL, &archive) == 0 && close(number) == 0);
    CHECK(refrain_archive_pread(archive, 0, &byte, 1, 0) == 1);
    CHECK(refrain_archive_close(archive) == 0);
}

static void passwords(void) {
    refrain_options *options;
    refrain_archive *archive;
    CHECK(refrain_options_open(&options) == 0);
    CHECK(refrain_options_set_text(options, REFRAIN_OPTION_PASSWORD, "secret", 6) == 0);
    CHECK(refrain_compress_file("tree/sub/b", "b.rfn", options, NULL) == 0);
    CHECK(refrain_archive_open("b.rfn", NULL, &archive) == REFRAIN_ERROR_LOCKED);
    CHECK(refrain_archive_open("b.rfn", options, &archive) == 0);
    unsigned char text[10];
    CHECK(refrain_archive_pread(archive, 0, text, 10, 0) == 6 && memcmp(text, "small\n", 6) == 0);
    CHECK(refrain_archive_close(archive) == 0 && refrain_options_close(options) == 0);
}

/* A child of fork gets an error from every call, and the parent goes on. */
static void forks(void) {
    refrain_archive *archive;
    refrain_stream *stream;
    unsigned char byte;
    CHECK(refrain_archive_open("a.rfn", NULL, &archive) == 0);
    CHECK(refrain_stream_open_compress(NULL, &stream) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        int is_right = refrain_archive_pread(archive, 0, &byte, 1, 0) == REFRAIN_ERROR_FORKED &&
                       refrain_stream_close(stream) == REFRAIN_ERROR_FORKED &&
                       refrain_compress_file("tree/a", "x", NULL, NULL) == REFRAIN_ERROR_FORKED;
        char text[] = "before";
        is_right = is_right && refrain_message(NULL, text, sizeof text) == REFRAIN_ERROR_FORKED && text[0] == 0;
        /* Another program may do as it likes. */
        if (is_right) execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(refrain_archive_pread(archive, 0, &byte, 1, 0) == 1);
    CHECK(refrain_archive_close(archive) == 0 && refrain_stream_close(stream) == 0);
}

static void numbers(void) {
    CHECK(refrain_version_number() ==
          (REFRAIN_VERSION_MAJOR << 16 | REFRAIN_VERSION_MINOR << 8 | REFRAIN_VERSION_PATCH));
    CHECK(strcmp(refrain_error_name(REFRAIN_ERROR_DAMAGED), "damaged") == 0);
    CHECK(strcmp(refrain_error_name(-99), "unknown") == 0 && strlen(refrain_error_text(-5)) > 5);
    CHECK(refrain_message((void *)77, NULL, 0) == REFRAIN_ERROR_HANDLE);
    char text[] = "before";
    CHECK(refrain_message((void *)77, text, sizeof text) == REFRAIN_ERROR_HANDLE && text[0] == 0);
}

/* What no archive can have is refused when it is set. */
static void options(void) {
    refrain_options *options;
    refrain_stream *stream;
    CHECK(refrain_options_open(&options) == 0);
    CHECK(refrain_options_set_number(options, REFRAIN_OPTION_MEMORY_BYTES, 1) == REFRAIN_ERROR_USAGE);
    CHECK(refrain_options_set_number(options, REFRAIN_OPTION_BLOCK_BYTES, 65535) == REFRAIN_ERROR_USAGE);
    CHECK(refrain_options_set_number(options, REFRAIN_OPTION_REACH_BYTES, 0) == REFRAIN_ERROR_USAGE);
    CHECK(refrain_options_set_text(options, REFRAIN_OPTION_PASSWORD, "", 0) == REFRAIN_ERROR_USAGE);
    CHECK(refrain_options_set_text(options, REFRAIN_OPTION_MEMBER_NAME, "a\0b", 3) == REFRAIN_ERROR_USAGE);
    char text[100] = "";
    CHECK(refrain_message(options, text, sizeof text) > 0 && strstr(text, "name") != NULL);
    /* What contradicts another option, when both are used. */
    CHECK(refrain_options_set_number(options, REFRAIN_OPTION_MEMORY_BYTES, 128 << 20) == 0);
    CHECK(refrain_options_set_number(options, REFRAIN_OPTION_BLOCK_BYTES, 16 << 20) == 0);
    CHECK(refrain_stream_open_compress(options, &stream) == REFRAIN_ERROR_LIMIT && stream == NULL);
    CHECK(refrain_options_close(options) == 0);
}

/* Handles that are opened and closed again and again. */
static void handles(long rounds) {
    for (long i = 0; i < rounds; i++) {
        refrain_options *options;
        refrain_stream *stream;
        CHECK(refrain_options_open(&options) == 0);
        CHECK(refrain_stream_open_compress(options, &stream) == 0);
        CHECK(refrain_options_close(options) == 0 && refrain_stream_close(stream) == 0);
        if (i % 100 == 0) {
            refrain_archive *archive;
            refrain_listing *listing;
            refrain_file *file;
            CHECK(refrain_archive_open("tree.rfn", NULL, &archive) == 0);
            CHECK(refrain_listing_open(archive, &listing) == 0);
            CHECK(refrain_file_open(archive, 0, "a", 1, &file) == 0);
            CHECK(refrain_archive_close(archive) == 0 && refrain_listing_close(listing) == 0);
            CHECK(refrain_file_close(file) == 0);
        }
    }
}

int main(int count, char **arguments) {
    CHECK(count >= 2 && chdir(arguments[1]) == 0);
    umask(022);
    int is_short = count > 2;
    file_content = content(is_short ? 200000 : 2500000, 11);
    numbers();
    options();
    make_tree();
    whole_files(is_short ? 0 : 40 << 20);
    if (!is_short) lrzip_and_descriptors(), damaged_files(), damaged_zip(), passwords();
    lists();
    ranges();
    forks();
    handles(is_short ? atol(arguments[2]) : 10000);
    CHECK(refrain_open_handles() == 0);
    free(file_content.at);
    return 0;
}
