/*
 * Refrain, the long-range archive engine: the C interface.
 *
 * Made from the sources of crates/capi by `cargo test -p refrain-capi --test header`. Do not edit.
 *
 * Results. A call returns 0 or more if it succeeded, and otherwise one of REFRAIN_ERROR_, which are
 * below 0 and never change. refrain_message has everything known about the last failure.
 *
 * Handles (refrain_options, refrain_stream, refrain_archive, refrain_file, refrain_listing) are made
 * by a call ..._open and live until ..._close. They are not addresses: a handle that is NULL, was
 * closed, or is of another type is REFRAIN_ERROR_HANDLE. What a handle stands for is freed when it
 * is closed and the last call that uses it has returned.
 *
 * Memory. The library frees what it allocates, and nothing that the caller allocates. It keeps no
 * pointer of the caller's beyond a call, except the context of a progress callback. Texts that it
 * returns by pointer live for ever; those in a refrain_entry until the next call with its listing.
 *
 * Units. Every size, length and offset is in bytes, every time in seconds since 1970.
 *
 * Structures that begin with struct_bytes: set it to sizeof the structure. Later versions append
 * fields; what a version does not know is 0.
 *
 * Threads. Every function may be called on any thread at any time. With one handle: options,
 * archives and files serve any number of threads at once; calls with a stream take turns; a listing
 * is one thread's at a time. The work runs on threads of the library, which block all signals,
 * begin with the first call that needs them, and live as long as the process; so the shared library
 * is never unloaded.
 *
 * Fork. After the first call of the library, a forked child gets REFRAIN_ERROR_FORKED from every
 * call (until it executes another program); the parent is not affected.
 *
 * The library sets no signal handlers, does not change the locale, reads no variables of the
 * environment, prints nothing (except when a defect makes it panic: then Rust writes to standard
 * error) and does not end the process.
 */
#ifndef REFRAIN_H
#define REFRAIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header. */
#define REFRAIN_VERSION_MAJOR 0
#define REFRAIN_VERSION_MINOR 1
#define REFRAIN_VERSION_PATCH 0

/* Success. */
#define REFRAIN_OK 0

/* Success, but files are missing from the result, or are not as they were at one moment. The
 * message names the first. */
#define REFRAIN_WITH_EXCEPTIONS 4

/* The call is invalid: a NULL pointer, contradictory options, a stream that has ended. */
#define REFRAIN_ERROR_USAGE (-1)

/* The input is damaged, truncated or forged. */
#define REFRAIN_ERROR_DAMAGED (-2)

/* The archive has a newer format, or needs something that this build lacks. */
#define REFRAIN_ERROR_UNSUPPORTED (-3)

/* A limit would be exceeded: memory, sizes, counts. */
#define REFRAIN_ERROR_LIMIT (-5)

/* Reading or writing failed. */
#define REFRAIN_ERROR_IO (-6)

/* The handle is NULL, was closed, or is of another type. */
#define REFRAIN_ERROR_HANDLE (-7)

/* The process was forked after its first call: only its parent can use the library. */
#define REFRAIN_ERROR_FORKED (-8)

/* The archive has no such member or entry. */
#define REFRAIN_ERROR_NOT_FOUND (-9)

/* The password or key that the archive needs is missing or wrong. */
#define REFRAIN_ERROR_LOCKED (-10)

/* A defect of this library. What was not finished was not published. */
#define REFRAIN_ERROR_INTERNAL (-70)

/* The progress callback returned something other than 0, or the stream was closed. */
#define REFRAIN_ERROR_CANCELLED (-130)

/* Number: the level, 1 (fastest) to 9 (densest). Default: 3, and 7 for lrzip's format. */
#define REFRAIN_OPTION_LEVEL 1

/* Number: worker threads, at most 65,535; 0 (the default) is one for each processor. The bytes of
 * an archive do not depend on it. */
#define REFRAIN_OPTION_THREADS 2

/* Number: the memory budget in bytes, at least 128 MiB. Default: by level, and 1 GiB for reading. */
#define REFRAIN_OPTION_MEMORY_BYTES 3

/* Number: the format to write, one of REFRAIN_FORMAT_…. Readers recognize it themselves. */
#define REFRAIN_OPTION_FORMAT 4

/* Number: the largest block in bytes, a multiple of 64 KiB up to 1 GiB, and at most a sixteenth of
 * the memory. Default: by level. */
#define REFRAIN_OPTION_BLOCK_BYTES 5

/* Number: how far back repeats are found in a stream, in bytes of archive that its reader keeps in
 * memory: at least some 3.2 MiB, and four blocks; at most half of the memory. Default: three
 * eighths of the memory. */
#define REFRAIN_OPTION_REACH_BYTES 6

/* Number: 1 for an archive from which small ranges are read often. Default: 0. */
#define REFRAIN_OPTION_FOR_SERVING 7

/* Number: 1 to replace existing files. Default: 0. */
#define REFRAIN_OPTION_OVERWRITE 8

/* Number: 1 to wait until a written file is on the disk. Default: 0. */
#define REFRAIN_OPTION_SYNC 9

/* Number: the most bytes to deliver; more is REFRAIN_ERROR_LIMIT. Default: 16 TiB, or 4,096 times
 * the size of the archive if that is more. */
#define REFRAIN_OPTION_CONTENT_BYTES_MAX 10

/* Number: the cipher for a password in lrzip's format, one of REFRAIN_LRZIP_…. Default:
 * AES-256-GCM. */
#define REFRAIN_OPTION_LRZIP_CIPHER 11

/* Number: what is opened or restored of a damaged archive, one of REFRAIN_DAMAGED_…. */
#define REFRAIN_OPTION_DAMAGED 12

/* Text: a codec, as zstd or zstd:19. Default: the level's. */
#define REFRAIN_OPTION_CODEC 101

/* Text: a password, for writing and reading: bytes, at least one. */
#define REFRAIN_OPTION_PASSWORD 102

/* Text: a secret key for reading, in age's text form. Set it once for each key. */
#define REFRAIN_OPTION_IDENTITY 103

/* Text: a public key for writing, of age or SSH. Set it once for each key. */
#define REFRAIN_OPTION_RECIPIENT 104

/* Text: a directory for temporary files, which have no names. Empty: none are made. Default:
 * /var/tmp. */
#define REFRAIN_OPTION_TEMPORARY_DIRECTORY 105

/* Text: the back end of lrzip's format: none, lzo, gzip, bzip2, lzma (the default) or zpaq. */
#define REFRAIN_OPTION_LRZIP_BACK_END 106

/* Text: a file of trusted certificates (PEM) for https. Default: the system's. */
#define REFRAIN_OPTION_CERTIFICATES 107

/* Text: the name of the content of a stream in the archive, of at most 4,096 bytes and without
 * NUL. Default: stdin, like the command's. */
#define REFRAIN_OPTION_MEMBER_NAME 108

/* Text: how much recovery data to append, as 10%: from 0.1% to 100%. Default: none. */
#define REFRAIN_OPTION_RECOVERY 109

/* Text: the URL of an S3-compatible store. Default: Amazon's. */
#define REFRAIN_OPTION_S3_ENDPOINT 110

/* Text: the region of the store. Default: us-east-1. */
#define REFRAIN_OPTION_S3_REGION 111

/* Text: the id of the key for the store. Without it requests are not signed. */
#define REFRAIN_OPTION_S3_ACCESS_KEY_ID 112

/* Text: the key for the store. */
#define REFRAIN_OPTION_S3_SECRET_ACCESS_KEY 113

/* Text: the token of a session at the store. */
#define REFRAIN_OPTION_S3_SESSION_TOKEN 114

/* Refrain's own format. */
#define REFRAIN_FORMAT_NATIVE 0

/* lrzip's format, version 6 (with AES-256-GCM version 7). */
#define REFRAIN_FORMAT_LRZIP 1

/* A file of gzip, xz, zstd, bzip2, lz4 or zip. It can be read only. */
#define REFRAIN_FORMAT_FOREIGN 2

/* AES-256-GCM, which lrzip reads since 0.7.1. */
#define REFRAIN_LRZIP_AES256_GCM 0

/* AES-128-CBC of lrzip 0.6, which detects no changes and resists only long random passwords. */
#define REFRAIN_LRZIP_AES128_CBC 1

/* The call ends with an error at the first damage. The default. */
#define REFRAIN_DAMAGED_REFUSE 0

/* What is proved intact can be read and is restored, also of an archive that is cut off; damaged
 * files are left out. A stream ends at the damage. */
#define REFRAIN_DAMAGED_OMIT 1

/* Damaged files are restored, too, with zeros for what is missing; of lrzip's format, which has no
 * checksums of parts, as far as they were decoded. */
#define REFRAIN_DAMAGED_KEEP 2

/* More input follows. */
#define REFRAIN_CONTINUE 0

/* Compression: everything so far becomes readable, at the price that what follows does not refer
 * to it. (It becomes an archive, and what follows another one; streams read both as one.) */
#define REFRAIN_FLUSH 1

/* The input buffer has the last input. */
#define REFRAIN_END 2

/* A file, or a member with the content of one. */
#define REFRAIN_TYPE_FILE 1

/* A directory, or a member with the content of one. */
#define REFRAIN_TYPE_DIRECTORY 2

/* A symbolic link. */
#define REFRAIN_TYPE_SYMLINK 3

/* Another name of a file of the same member. */
#define REFRAIN_TYPE_HARDLINK 4

/* A character device. */
#define REFRAIN_TYPE_CHARACTER_DEVICE 5

/* A block device. */
#define REFRAIN_TYPE_BLOCK_DEVICE 6

/* A named pipe. */
#define REFRAIN_TYPE_FIFO 7

/* Something else that a tar stream can hold. */
#define REFRAIN_TYPE_OTHER 8

/* A member that was read from a pipe. */
#define REFRAIN_TYPE_STREAM 9

/* A member that is a tar stream, with its entries. */
#define REFRAIN_TYPE_TAR 10

/* A size, an offset or a time that is not known. */
#define REFRAIN_UNKNOWN UINT64_MAX

/* Options: of any type of call. A handle may be used for many calls, and from several threads;
 * each call uses what was set when it began. */
typedef struct refrain_options refrain_options;

/* A stream that is compressed or decompressed. Calls from several threads take turns. */
typedef struct refrain_stream refrain_stream;

/* An opened archive. Any number of threads may use it at once. */
typedef struct refrain_archive refrain_archive;

/* A file in an archive. Any number of threads may use it at once. It keeps its archive open. */
typedef struct refrain_file refrain_file;

/* A walk over the members and entries of an archive, which it keeps open. One thread uses it at a
 * time. */
typedef struct refrain_listing refrain_listing;

/* Input: size bytes at bytes, of which the library has read pos. The library changes only
 * pos, and reads the bytes only during the call. */
typedef struct refrain_in_buffer {
    /* The bytes. NULL if size is 0. */
    const void *bytes;
    /* How many there are. */
    size_t size;
    /* How many of them were read. */
    size_t pos;
} refrain_in_buffer;

/* Room for output: size bytes at bytes, of which pos are filled. The library changes only
 * pos and the bytes behind it, and only during the call. */
typedef struct refrain_out_buffer {
    /* The room. NULL if size is 0. */
    void *bytes;
    /* Its size in bytes. */
    size_t size;
    /* How many bytes of it are filled. */
    size_t pos;
} refrain_out_buffer;

/* How far a call is. */
typedef struct refrain_progress {
    /* The size of this structure in bytes, set by whoever provides it. */
    size_t struct_bytes;
    /* Bytes of content that are done. */
    uint64_t content_bytes_done;
    /* All bytes of content, or REFRAIN_UNKNOWN. */
    uint64_t content_bytes_total;
    /* Bytes of the archive so far. */
    uint64_t archive_bytes;
} refrain_progress;

/* Called now and then, at most some dozen times a second, on the thread that called the library,
 * with the context that was set. progress is valid during the call. A result other than 0 ends
 * the work with REFRAIN_ERROR_CANCELLED, unless it is done: the first call for some megabytes may
 * be the last. It must return: no exception, no longjmp. */
typedef int32_t (*refrain_progress_callback)(void *context, const refrain_progress *progress);

/* What was written. */
typedef struct refrain_summary {
    /* The size of this structure in bytes, set by the caller. */
    size_t struct_bytes;
    /* Bytes of content, of a damaged archive with what is missing; a directory counts as a tar
     * stream. */
    uint64_t content_bytes;
    /* Bytes of the archive. */
    uint64_t archive_bytes;
    /* Files that are missing from the result, or are not as they were at one moment. */
    uint64_t exceptions;
} refrain_summary;

/* An archive, as it describes itself. */
typedef struct refrain_info {
    /* The size of this structure in bytes, set by the caller. */
    size_t struct_bytes;
    /* One of REFRAIN_FORMAT_. */
    int32_t format;
    /* The level it was written with; 0 if the format does not say. */
    int32_t level;
    /* The version of the format. */
    uint32_t version_major;
    /* The version of the format. */
    uint32_t version_minor;
    /* Bytes of the archive. */
    uint64_t archive_bytes;
    /* Bytes of content; a directory counts as a tar stream. REFRAIN_UNKNOWN for other formats. */
    uint64_t content_bytes;
    /* Bytes that remain when each passage is stored once. */
    uint64_t store_bytes;
    /* The number of members. */
    uint64_t members;
    /* What must be decoded at most to read one byte, in bytes. */
    uint64_t block_bytes_max;
    /* How much of the archive a reader of a stream keeps in memory at most, in bytes. */
    uint64_t reach_bytes;
    /* 1 if root_hash is known. */
    uint32_t has_root_hash;
    /* 0. */
    uint32_t reserved;
    /* BLAKE3 of everything that a reader shows. */
    uint8_t root_hash[32];
} refrain_info;

/* A member of an archive, or an entry of a member that is a directory or a tar stream. */
typedef struct refrain_entry {
    /* The size of this structure in bytes, set by the caller. */
    size_t struct_bytes;
    /* The number of the member. */
    uint64_t member;
    /* 1 for the member itself, which its entries follow; 0 for an entry. */
    uint32_t is_member;
    /* One of REFRAIN_TYPE_. */
    int32_t kind;
    /* The name of the member, or the path of the entry in it: bytes, not always UTF-8, never to
     * be trusted as a path. A NUL byte follows. Valid until the next call with this listing. */
    const char *path;
    /* The length of path in bytes, without the NUL. */
    size_t path_bytes;
    /* The target of a link, likewise; NULL for anything else. */
    const char *link_target;
    /* The length of link_target in bytes. */
    size_t link_target_bytes;
    /* Bytes of the content. A directory as a member is as long as its tar stream. REFRAIN_UNKNOWN
     * for a member of another format, which has to be decoded to know. */
    uint64_t size;
    /* For an entry with data: where it begins in the content of its member, in which equal files
     * are one. Otherwise REFRAIN_UNKNOWN. (refrain_archive_pread counts in the tar stream.) */
    uint64_t content_offset;
    /* Permission bits, as in st_mode & 07777; 0 if unknown. */
    uint32_t mode;
    /* The nanoseconds of the time of modification. */
    uint32_t modified_nanoseconds;
    /* The time of modification in seconds since 1970; INT64_MIN if unknown. */
    int64_t modified_seconds;
    /* The owner's number; REFRAIN_UNKNOWN for members. */
    uint64_t uid;
    /* The group's number; REFRAIN_UNKNOWN for members. */
    uint64_t gid;
} refrain_entry;

/* The version of the library that runs, as 0x010203 for 1.2.3. */
uint32_t refrain_version_number(void);

/* The version of the library that runs, as 1.2.3. Never freed. */
const char *refrain_version(void);

/* A short name of a result of 0, 4 or below 0, as damaged; unknown for any other number. Never
 * freed. */
const char *refrain_error_name(int64_t number);

/* What a result of 0, 4 or below 0 means, in a few words. Never freed. refrain_message tells more. */
const char *refrain_error_text(int64_t number);

/* Copies the message of the last call that failed (or returned REFRAIN_WITH_EXCEPTIONS) with
 * handle, a handle of any type, or, if it is NULL, on this thread. The text is UTF-8, cut to
 * size bytes with its NUL; empty if there is none. Returns its whole length in bytes, without
 * the NUL, or an error, with an empty text. Does not change the message.
 *
 * Requires: buffer has room for size bytes, or is NULL and size is 0. */
int64_t refrain_message(const void *handle, char *buffer, size_t size);

/* The number of handles that are open in this process, of all types: 0 when everything was closed. */
int64_t refrain_open_handles(void);

/* Makes options with their defaults. Close them with refrain_options_close.
 *
 * Requires: options can be written. It becomes NULL if the call fails. */
int32_t refrain_options_open(refrain_options **options);

/* Sets an option that is a number, one of REFRAIN_OPTION_LEVEL to REFRAIN_OPTION_DAMAGED.
 * REFRAIN_ERROR_USAGE if there is no such option, or the number is out of its range. */
int32_t refrain_options_set_number(refrain_options *options, int32_t option, int64_t value);

/* Sets an option that is a text of size bytes, one of REFRAIN_OPTION_CODEC to
 * REFRAIN_OPTION_S3_SESSION_TOKEN. The text is copied. REFRAIN_ERROR_USAGE if there is no such
 * option, or the text means nothing to it.
 *
 * Requires: text has size bytes; it needs no NUL. */
int32_t refrain_options_set_text(
    refrain_options *options,
    int32_t option,
    const void *text,
    size_t size);

/* Sets the function that calls on whole files and descriptors tell of their progress; NULL for
 * none. It gets context, which the library does nothing with. Streams have
 * refrain_stream_progress instead. */
int32_t refrain_options_set_progress(
    refrain_options *options,
    refrain_progress_callback callback,
    void *context);

/* Closes options. Calls that use them go on. */
int32_t refrain_options_close(refrain_options *options);

/* Opens a stream that is compressed, with options or, if they are NULL, their defaults. Close it
 * with refrain_stream_close.
 *
 * Requires: stream can be written. It becomes NULL if the call fails. */
int32_t refrain_stream_open_compress(const refrain_options *options, refrain_stream **stream);

/* Opens a stream that is decompressed, from Refrain's format, lrzip's, or that of gzip, xz, zstd,
 * bzip2 or lz4. Several members follow each other; a directory becomes a tar stream. Close it with
 * refrain_stream_close.
 *
 * Requires: stream can be written. It becomes NULL if the call fails. */
int32_t refrain_stream_open_decompress(const refrain_options *options, refrain_stream **stream);

/* Reads input, writes output, and moves the pos of both. directive is REFRAIN_CONTINUE,
 * REFRAIN_FLUSH (compression only), or REFRAIN_END with the last input. Repeat a call with
 * REFRAIN_FLUSH or REFRAIN_END, with the rest of the input, until it returns 0.
 *
 * Returns 0 when what the directive asks for is done: the archive is complete, or all of it was
 * decompressed and proved right. A result above 0 says that there is more to do, and that at least
 * the result minus 1 bytes of output wait. A result below 0 is an error, which the stream keeps,
 * except for REFRAIN_ERROR_USAGE. What was written of Refrain's format before damage was proved
 * right. It may end well before the damage, and of an archive that is cut off be nothing. Other
 * formats have checksums behind what they are of: there it may be wrong when an error follows.
 * With REFRAIN_DAMAGED_KEEP all content was written when REFRAIN_ERROR_DAMAGED tells of zeros.
 *
 * With REFRAIN_CONTINUE the result is above 0 until a decompressed stream has ended, also if
 * nothing waits: the pos of the input says how much of it was read.
 *
 * The library buffers some megabytes. A call waits only if neither input nor output can move; with
 * REFRAIN_CONTINUE often neither the input is written nor the output that will come of it.
 *
 * Requires: The buffers are as they say, and nobody else uses them meanwhile. Those of input and output do
 * not overlap. */
int64_t refrain_stream_step(
    refrain_stream *stream,
    refrain_out_buffer *output,
    refrain_in_buffer *input,
    int32_t directive);

/* How far a stream is. Any thread may ask, also during a call on another one. When the stream has
 * ended (a step with REFRAIN_END, or of decompression, returned 0) everything that passed is
 * counted, and content_bytes_total known.
 *
 * Requires: progress has as many bytes as it says. */
int32_t refrain_stream_progress(const refrain_stream *stream, refrain_progress *progress);

/* Closes a stream, complete or not, and waits until its threads have stopped: at most as long as a
 * block takes. A call on another thread fails with REFRAIN_ERROR_CANCELLED. */
int32_t refrain_stream_close(refrain_stream *stream);

/* Compresses a file, directory or pipe into a file, which appears complete or not at all. Waits
 * until it is done. summary may be NULL. Returns REFRAIN_OK, REFRAIN_WITH_EXCEPTIONS or an
 * error.
 *
 * Requires: The paths end with a NUL byte; summary has as many bytes as it says. */
int32_t refrain_compress_file(
    const char *input,
    const char *output,
    const refrain_options *options,
    refrain_summary *summary);

/* Restores an archive of any format that is read, at a path or URL (https://, http://,
 * s3://BUCKET/KEY), to a path: a file, or a directory. Of several members each is restored below
 * that path, under its name. Waits until it is done. summary may be NULL. Returns REFRAIN_OK,
 * REFRAIN_WITH_EXCEPTIONS or an error.
 *
 * Of a damaged archive each member appears complete or not at all: of a directory with a damaged
 * file nothing, and of several members not always those without damage. Of an archive that is cut
 * off nothing appears. REFRAIN_OPTION_DAMAGED restores more: the result is then
 * REFRAIN_WITH_EXCEPTIONS, the summary counts the damaged files, and the message names the first;
 * 0 exceptions say that the archive is damaged, and everything was restored. Files of a zip or tar
 * of other programs that cannot be read are exceptions in any case. When an error is returned,
 * members that were complete before it remain, and files of a directory if the disk is full.
 *
 * Requires: The paths end with a NUL byte; summary has as many bytes as it says. */
int32_t refrain_decompress_file(
    const char *input,
    const char *output,
    const refrain_options *options,
    refrain_summary *summary);

/* Reads and checks everything in an archive at a path or URL, and writes nothing. summary may be
 * NULL.
 *
 * Requires: The path ends with a NUL byte; summary has as many bytes as it says. */
int32_t refrain_verify_file(
    const char *input,
    const refrain_options *options,
    refrain_summary *summary);

/* Compresses what a descriptor has from its position on into another one. Both stay open; their
 * positions afterwards are not stated. summary may be NULL.
 *
 * Requires: The descriptors stay open during the call; summary has as many bytes as it says. */
int32_t refrain_compress_descriptor(
    int32_t input,
    int32_t output,
    const refrain_options *options,
    refrain_summary *summary);

/* Decompresses what a descriptor has from its position on into another one, from the formats of
 * refrain_stream_open_decompress. Both stay open; their positions afterwards are not stated.
 * summary may be NULL.
 *
 * Of a damaged archive the output keeps what was proved right before the damage, which from a pipe
 * is less than from a file; of one that is cut off it may keep nothing. REFRAIN_OPTION_DAMAGED
 * delivers more, with REFRAIN_WITH_EXCEPTIONS.
 *
 * Requires: The descriptors stay open during the call; summary has as many bytes as it says. */
int32_t refrain_decompress_descriptor(
    int32_t input,
    int32_t output,
    const refrain_options *options,
    refrain_summary *summary);

/* Opens an archive at a path or URL (https://, http://, s3://BUCKET/KEY). Reads its end, not
 * its content, so that one that is cut off is REFRAIN_ERROR_DAMAGED. Close it with
 * refrain_archive_close.
 *
 * Requires: The path ends with a NUL byte. archive can be written; it becomes NULL if the call fails. */
int32_t refrain_archive_open(
    const char *path_or_url,
    const refrain_options *options,
    refrain_archive **archive);

/* Opens the archive in a file, by a descriptor, which stays the caller's and can be closed at
 * once. Close the archive with refrain_archive_close.
 *
 * Requires: The descriptor stays open during the call. archive can be written; it becomes NULL if the call
 * fails. */
int32_t refrain_archive_open_descriptor(
    int32_t number,
    const refrain_options *options,
    refrain_archive **archive);

/* Describes an archive, without reading its content.
 *
 * Requires: info has as many bytes as it says. */
int32_t refrain_archive_info(const refrain_archive *archive, refrain_info *info);

/* The number of members. They have the numbers 0, 1, 2 and so on. */
int64_t refrain_archive_member_count(const refrain_archive *archive);

/* The number of the first member with this name of size bytes, or REFRAIN_ERROR_NOT_FOUND.
 *
 * Requires: name has size bytes. */
int64_t refrain_archive_find_member(const refrain_archive *archive, const void *name, size_t size);

/* Reads up to size bytes at offset of the content of a member (a directory as a tar stream)
 * into buffer. Decodes the blocks of the range only, and keeps some for later calls. Returns the
 * number of bytes, less than size only at the end of the content, or an error:
 * REFRAIN_ERROR_NOT_FOUND if there is no such member, REFRAIN_ERROR_UNSUPPORTED for other formats
 * than Refrain's and lrzip's. Ranges of lrzip's format are not proved right, because it has a hash
 * of all content only: refrain_verify_file compares that.
 *
 * Requires: buffer has room for size bytes. */
int64_t refrain_archive_pread(
    const refrain_archive *archive,
    uint64_t member,
    void *buffer,
    size_t size,
    uint64_t offset);

/* Closes an archive. Files and listings of it, and calls on other threads, go on. */
int32_t refrain_archive_close(refrain_archive *archive);

/* Opens a file in a member that is a directory or a tar stream, by its path of size bytes there
 * (hard links are followed), or with an empty path the whole member. The path has to be, byte for
 * byte, one that a listing has: REFRAIN_ERROR_NOT_FOUND if there is none, or no such member.
 * Directories, symbolic links and special files are REFRAIN_ERROR_USAGE. Close it with
 * refrain_file_close.
 *
 * Requires: entry_path has size bytes. file can be written; it becomes NULL if the call fails. */
int32_t refrain_file_open(
    const refrain_archive *archive,
    uint64_t member,
    const void *entry_path,
    size_t size,
    refrain_file **file);

/* The size of a file in bytes. REFRAIN_ERROR_USAGE for a member of another format, which does not
 * state it. */
int64_t refrain_file_size(const refrain_file *file);

/* Reads up to size bytes at offset of a file into buffer, holes as zeros. Returns the number
 * of bytes, less than size only at the end of the file, or an error.
 *
 * Requires: buffer has room for size bytes. */
int64_t refrain_file_pread(const refrain_file *file, void *buffer, size_t size, uint64_t offset);

/* Closes a file. Calls on other threads go on. */
int32_t refrain_file_close(refrain_file *file);

/* Begins to list an archive: each member, and behind it its entries, in the order of the archive.
 * Close the listing with refrain_listing_close.
 *
 * Requires: listing can be written. It becomes NULL if the call fails. */
int32_t refrain_listing_open(const refrain_archive *archive, refrain_listing **listing);

/* Fills entry with what comes next, and returns 1; 0 at the end; or an error. After
 * REFRAIN_ERROR_DAMAGED, the next call goes on behind the damage.
 *
 * Requires: entry has as many bytes as it says. */
int32_t refrain_listing_next(refrain_listing *listing, refrain_entry *entry);

/* Closes a listing. What its entries point to is freed. */
int32_t refrain_listing_close(refrain_listing *listing);

#ifdef __cplusplus
}
#endif

#endif /* REFRAIN_H */
