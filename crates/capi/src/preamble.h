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
