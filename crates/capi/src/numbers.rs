//! The numbers of the interface. They never change; later versions add to them.

/// Success.
pub const REFRAIN_OK: i32 = 0;
/// Success, but files are missing from the result, or are not as they were at one moment. The
/// message names the first.
pub const REFRAIN_WITH_EXCEPTIONS: i32 = 4;

/// The call is invalid: a NULL pointer, contradictory options, a stream that has ended.
pub const REFRAIN_ERROR_USAGE: i32 = -1;
/// The input is damaged, truncated or forged.
pub const REFRAIN_ERROR_DAMAGED: i32 = -2;
/// The archive has a newer format, or needs something that this build lacks.
pub const REFRAIN_ERROR_UNSUPPORTED: i32 = -3;
/// A limit would be exceeded: memory, sizes, counts.
pub const REFRAIN_ERROR_LIMIT: i32 = -5;
/// Reading or writing failed.
pub const REFRAIN_ERROR_IO: i32 = -6;
/// The handle is NULL, was closed, or is of another type.
pub const REFRAIN_ERROR_HANDLE: i32 = -7;
/// The process was forked after its first call: only its parent can use the library.
pub const REFRAIN_ERROR_FORKED: i32 = -8;
/// The archive has no such member or entry.
pub const REFRAIN_ERROR_NOT_FOUND: i32 = -9;
/// The password or key that the archive needs is missing or wrong.
pub const REFRAIN_ERROR_LOCKED: i32 = -10;
/// A defect of this library. What was not finished was not published.
pub const REFRAIN_ERROR_INTERNAL: i32 = -70;
/// The progress callback returned something other than 0, or the stream was closed.
pub const REFRAIN_ERROR_CANCELLED: i32 = -130;

/// Number: the level, 1 (fastest) to 9 (densest). Default: 3, and 7 for lrzip's format.
pub const REFRAIN_OPTION_LEVEL: i32 = 1;
/// Number: worker threads, at most 65,535; 0 (the default) is one for each processor. The bytes of
/// an archive do not depend on it.
pub const REFRAIN_OPTION_THREADS: i32 = 2;
/// Number: the memory budget in bytes, at least 128 MiB. Default: by level, and 1 GiB for reading.
pub const REFRAIN_OPTION_MEMORY_BYTES: i32 = 3;
/// Number: the format to write, one of `REFRAIN_FORMAT_…`. Readers recognize it themselves.
pub const REFRAIN_OPTION_FORMAT: i32 = 4;
/// Number: the largest block in bytes, a multiple of 64 KiB up to 1 GiB, and at most a sixteenth of
/// the memory. Default: by level.
pub const REFRAIN_OPTION_BLOCK_BYTES: i32 = 5;
/// Number: how far back repeats are found in a stream, in bytes of archive that its reader keeps in
/// memory: at least some 3.2 MiB, and four blocks; at most half of the memory. Default: three
/// eighths of the memory.
pub const REFRAIN_OPTION_REACH_BYTES: i32 = 6;
/// Number: 1 for an archive from which small ranges are read often. Default: 0.
pub const REFRAIN_OPTION_FOR_SERVING: i32 = 7;
/// Number: 1 to replace existing files. Default: 0.
pub const REFRAIN_OPTION_OVERWRITE: i32 = 8;
/// Number: 1 to wait until a written file is on the disk. Default: 0.
pub const REFRAIN_OPTION_SYNC: i32 = 9;
/// Number: the most bytes to deliver; more is REFRAIN_ERROR_LIMIT. Default: 16 TiB, or 4,096 times
/// the size of the archive if that is more.
pub const REFRAIN_OPTION_CONTENT_BYTES_MAX: i32 = 10;
/// Number: the cipher for a password in lrzip's format, one of `REFRAIN_LRZIP_…`. Default:
/// AES-256-GCM.
pub const REFRAIN_OPTION_LRZIP_CIPHER: i32 = 11;
/// Number: what is opened or restored of a damaged archive, one of `REFRAIN_DAMAGED_…`.
pub const REFRAIN_OPTION_DAMAGED: i32 = 12;

/// Text: a codec, as `zstd` or `zstd:19`. Default: the level's.
pub const REFRAIN_OPTION_CODEC: i32 = 101;
/// Text: a password, for writing and reading: bytes, at least one.
pub const REFRAIN_OPTION_PASSWORD: i32 = 102;
/// Text: a secret key for reading, in age's text form. Set it once for each key.
pub const REFRAIN_OPTION_IDENTITY: i32 = 103;
/// Text: a public key for writing, of age or SSH. Set it once for each key.
pub const REFRAIN_OPTION_RECIPIENT: i32 = 104;
/// Text: a directory for temporary files, which have no names. Empty: none are made. Default:
/// /var/tmp.
pub const REFRAIN_OPTION_TEMPORARY_DIRECTORY: i32 = 105;
/// Text: the back end of lrzip's format: none, lzo, gzip, bzip2, lzma (the default) or zpaq.
pub const REFRAIN_OPTION_LRZIP_BACK_END: i32 = 106;
/// Text: a file of trusted certificates (PEM) for https. Default: the system's.
pub const REFRAIN_OPTION_CERTIFICATES: i32 = 107;
/// Text: the name of the content of a stream in the archive, of at most 4,096 bytes and without
/// NUL. Default: `stdin`, like the command's.
pub const REFRAIN_OPTION_MEMBER_NAME: i32 = 108;
/// Text: how much recovery data to append, as `10%`: from 0.1% to 100%. Default: none.
pub const REFRAIN_OPTION_RECOVERY: i32 = 109;
/// Text: the URL of an S3-compatible store. Default: Amazon's.
pub const REFRAIN_OPTION_S3_ENDPOINT: i32 = 110;
/// Text: the region of the store. Default: `us-east-1`.
pub const REFRAIN_OPTION_S3_REGION: i32 = 111;
/// Text: the id of the key for the store. Without it requests are not signed.
pub const REFRAIN_OPTION_S3_ACCESS_KEY_ID: i32 = 112;
/// Text: the key for the store.
pub const REFRAIN_OPTION_S3_SECRET_ACCESS_KEY: i32 = 113;
/// Text: the token of a session at the store.
pub const REFRAIN_OPTION_S3_SESSION_TOKEN: i32 = 114;

/// Refrain's own format.
pub const REFRAIN_FORMAT_NATIVE: i32 = 0;
/// lrzip's format, version 6 (with AES-256-GCM version 7).
pub const REFRAIN_FORMAT_LRZIP: i32 = 1;
/// A file of gzip, xz, zstd, bzip2, lz4 or zip. It can be read only.
pub const REFRAIN_FORMAT_FOREIGN: i32 = 2;

/// AES-256-GCM, which lrzip reads since 0.7.1.
pub const REFRAIN_LRZIP_AES256_GCM: i32 = 0;
/// AES-128-CBC of lrzip 0.6, which detects no changes and resists only long random passwords.
pub const REFRAIN_LRZIP_AES128_CBC: i32 = 1;

/// The call ends with an error at the first damage. The default.
pub const REFRAIN_DAMAGED_REFUSE: i32 = 0;
/// What is proved intact can be read and is restored, also of an archive that is cut off; damaged
/// files are left out. A stream ends at the damage.
pub const REFRAIN_DAMAGED_OMIT: i32 = 1;
/// Damaged files are restored, too, with zeros for what is missing; of lrzip's format, which has no
/// checksums of parts, as far as they were decoded.
pub const REFRAIN_DAMAGED_KEEP: i32 = 2;

/// More input follows.
pub const REFRAIN_CONTINUE: i32 = 0;
/// Compression: everything so far becomes readable, at the price that what follows does not refer
/// to it. (It becomes an archive, and what follows another one; streams read both as one.)
pub const REFRAIN_FLUSH: i32 = 1;
/// The input buffer has the last input.
pub const REFRAIN_END: i32 = 2;

/// A file, or a member with the content of one.
pub const REFRAIN_TYPE_FILE: i32 = 1;
/// A directory, or a member with the content of one.
pub const REFRAIN_TYPE_DIRECTORY: i32 = 2;
/// A symbolic link.
pub const REFRAIN_TYPE_SYMLINK: i32 = 3;
/// Another name of a file of the same member.
pub const REFRAIN_TYPE_HARDLINK: i32 = 4;
/// A character device.
pub const REFRAIN_TYPE_CHARACTER_DEVICE: i32 = 5;
/// A block device.
pub const REFRAIN_TYPE_BLOCK_DEVICE: i32 = 6;
/// A named pipe.
pub const REFRAIN_TYPE_FIFO: i32 = 7;
/// Something else that a tar stream can hold.
pub const REFRAIN_TYPE_OTHER: i32 = 8;
/// A member that was read from a pipe.
pub const REFRAIN_TYPE_STREAM: i32 = 9;
/// A member that is a tar stream, with its entries.
pub const REFRAIN_TYPE_TAR: i32 = 10;

/// A size, an offset or a time that is not known.
pub const REFRAIN_UNKNOWN: u64 = u64::MAX;

/// Name and meaning of every error number.
pub(crate) const ERRORS: [(i32, &std::ffi::CStr, &std::ffi::CStr); 13] = [
    (REFRAIN_OK, c"ok", c"success"),
    (
        REFRAIN_WITH_EXCEPTIONS,
        c"with-exceptions",
        c"done, but files are missing or changed while they were read",
    ),
    (REFRAIN_ERROR_USAGE, c"usage", c"the call is invalid"),
    (
        REFRAIN_ERROR_DAMAGED,
        c"damaged",
        c"the input is damaged, truncated or forged",
    ),
    (
        REFRAIN_ERROR_UNSUPPORTED,
        c"unsupported",
        c"this build lacks what the archive needs",
    ),
    (REFRAIN_ERROR_LIMIT, c"limit", c"a limit would be exceeded"),
    (REFRAIN_ERROR_IO, c"io", c"reading or writing failed"),
    (
        REFRAIN_ERROR_HANDLE,
        c"handle",
        c"the handle is NULL, was closed, or is of another type",
    ),
    (
        REFRAIN_ERROR_FORKED,
        c"forked",
        c"the process was forked after its first call of the library",
    ),
    (
        REFRAIN_ERROR_NOT_FOUND,
        c"not-found",
        c"the archive has no such member or entry",
    ),
    (
        REFRAIN_ERROR_LOCKED,
        c"locked",
        c"the password or key that the archive needs is missing or wrong",
    ),
    (
        REFRAIN_ERROR_INTERNAL,
        c"internal",
        c"a defect of the library",
    ),
    (REFRAIN_ERROR_CANCELLED, c"cancelled", c"cancelled"),
];
