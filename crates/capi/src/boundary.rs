//! What happens at each call from C: panics and forks become numbers, pointers become slices.
//!
//! The file is unsafe: it reads and writes the caller's memory. A caller promises what the header
//! says about its pointers; what can be checked (NULL, sizes) is.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::failure::{Failure, Result};
use crate::numbers::REFRAIN_ERROR_FORKED;

thread_local! {
    /// The message of the last call on this thread that failed.
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The process that made the first call; 0 before that.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Threads do not survive a fork, and locks that they held stay locked: a child may use the library
/// only if its parent did not.
fn check_process() -> Result<()> {
    let this = std::process::id();
    let first = PROCESS.compare_exchange(0, this, Ordering::Relaxed, Ordering::Relaxed);
    match first {
        Err(first) if first != this => {
            let text = "the process was forked after its first call of the library";
            Err(Failure::new(REFRAIN_ERROR_FORKED, text))
        }
        _ => Ok(()),
    }
}

/// Runs a call. Its failure, or its panic, becomes this thread's message and a number.
pub(crate) fn call<N: From<i32>>(work: impl FnOnce() -> Result<N>) -> N {
    let work = || check_process().and_then(|()| work());
    let result = catch_unwind(AssertUnwindSafe(work));
    let result = result.unwrap_or_else(|payload| Err(Failure::from_panic(&*payload)));
    result.unwrap_or_else(|failure| {
        set_message(&failure.message);
        N::from(failure.number)
    })
}

/// Sets the message of this thread. While the thread ends, it has none.
pub(crate) fn set_message(message: &str) {
    let _ = MESSAGE.try_with(|last| message.clone_into(&mut last.borrow_mut()));
}

pub(crate) fn message() -> String {
    let message = MESSAGE.try_with(|last| last.borrow().clone());
    message.unwrap_or_default()
}

fn null(what: &str) -> Failure {
    Failure::usage(format!("{what} is NULL"))
}

/// The bytes at a pointer, which may be NULL if there are none.
///
/// # Safety
/// There are `size` readable bytes, which nobody changes meanwhile.
pub(crate) unsafe fn bytes<'a>(
    pointer: *const c_void,
    size: usize,
    what: &str,
) -> Result<&'a [u8]> {
    match (pointer.is_null(), size) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(null(what)),
        (false, _) if isize::try_from(size).is_err() => Err(too_large(what)),
        // SAFETY: the caller promises it.
        _ => Ok(unsafe { std::slice::from_raw_parts(pointer.cast(), size) }),
    }
}

/// The room at a pointer, which may be NULL if it is empty.
///
/// # Safety
/// There are `size` writable bytes, which nobody else uses meanwhile.
pub(crate) unsafe fn room<'a>(
    pointer: *mut c_void,
    size: usize,
    what: &str,
) -> Result<&'a mut [u8]> {
    match (pointer.is_null(), size) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err(null(what)),
        (false, _) if isize::try_from(size).is_err() => Err(too_large(what)),
        // SAFETY: the caller promises it. Bytes that were never written are only written here.
        _ => Ok(unsafe { std::slice::from_raw_parts_mut(pointer.cast(), size) }),
    }
}

fn too_large(what: &str) -> Failure {
    Failure::usage(format!("{what} is larger than memory"))
}

/// A path or URL that ends with a NUL byte.
///
/// # Safety
/// It does, and nobody changes it meanwhile.
pub(crate) unsafe fn path<'a>(pointer: *const c_char, what: &str) -> Result<&'a Path> {
    if pointer.is_null() {
        return Err(null(what));
    }
    // SAFETY: the caller promises it.
    let text = unsafe { CStr::from_ptr(pointer) };
    if text.is_empty() {
        return Err(Failure::usage(format!("{what} is empty")));
    }
    Ok(Path::new(OsStr::from_bytes(text.to_bytes())))
}

/// A descriptor of the caller's.
///
/// # Safety
/// It stays open while it is borrowed.
pub(crate) unsafe fn descriptor<'a>(number: i32) -> Result<BorrowedFd<'a>> {
    if number < 0 {
        return Err(Failure::usage(format!("{number} is no descriptor")));
    }
    // SAFETY: the caller promises it; -1, which is forbidden, was excluded.
    Ok(unsafe { BorrowedFd::borrow_raw(number) })
}

/// Something of the caller's that is changed in place.
///
/// # Safety
/// It is valid, and nobody else uses it meanwhile.
pub(crate) unsafe fn changed<'a, T>(pointer: *mut T, what: &str) -> Result<&'a mut T> {
    // SAFETY: the caller promises it.
    unsafe { pointer.as_mut() }.ok_or_else(|| null(what))
}

/// The largest structure that a later version may have, in bytes: more is no size.
const STRUCT_BYTES_MAX: usize = 4096;

/// Fills a structure whose first field is its size in bytes, as far as the caller knows it: its
/// program may have been compiled with an earlier or a later version of the header.
///
/// # Safety
/// `target` is NULL or has as many bytes as it says.
pub(crate) unsafe fn fill<T: Copy>(target: *mut T, value: T, what: &str) -> Result<()> {
    if target.is_null() {
        return Err(null(what));
    }
    let size_bytes = size_of::<usize>();
    // SAFETY: the first field of the structure is its size.
    let struct_bytes = unsafe { target.cast::<usize>().read() };
    if !(size_bytes..=STRUCT_BYTES_MAX).contains(&struct_bytes) {
        return Err(Failure::usage(format!(
            "{what}: struct_bytes is {struct_bytes}; it must be the size of the structure"
        )));
    }
    let known_bytes = struct_bytes.min(size_of::<T>());
    let (from, to) = ((&raw const value).cast::<u8>(), target.cast::<u8>());
    // SAFETY: both have as many bytes, and the structures have no padding that matters: bytes are
    // copied as they are. What this version does not know is zero.
    unsafe {
        let from = from.add(size_bytes);
        from.copy_to_nonoverlapping(to.add(size_bytes), known_bytes - size_bytes);
        to.add(known_bytes)
            .write_bytes(0, struct_bytes - known_bytes);
    }
    Ok(())
}

/// Gives the caller a new handle.
///
/// # Safety
/// `target` is NULL or can be written.
pub(crate) unsafe fn give<T>(
    target: *mut *mut T,
    open: impl FnOnce() -> Result<usize>,
) -> Result<i32> {
    if target.is_null() {
        return Err(null("the place for the handle"));
    }
    // SAFETY: the caller promises it.
    unsafe { target.write(std::ptr::null_mut()) };
    let token = open()?;
    // SAFETY: the caller promises it.
    unsafe { target.write(std::ptr::without_provenance_mut(token)) };
    Ok(0)
}

/// Copies a text with a NUL behind it, as much as there is room for. Returns its whole length.
///
/// # Safety
/// There are `size` writable bytes.
pub(crate) unsafe fn put_text(text: &str, buffer: *mut c_char, size: usize) -> Result<i64> {
    // SAFETY: the caller promises it.
    let room = unsafe { room(buffer.cast(), size, "the buffer") }?;
    if let Some(last) = size.checked_sub(1) {
        let count = text.len().min(last);
        room[..count].copy_from_slice(&text.as_bytes()[..count]);
        room[count] = 0;
    }
    Ok(i64::try_from(text.len()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::{REFRAIN_ERROR_INTERNAL, REFRAIN_ERROR_USAGE};

    #[test]
    fn a_panic_is_a_number_and_a_message() {
        let number: i64 = call(|| panic!("on purpose"));
        assert_eq!(number, i64::from(REFRAIN_ERROR_INTERNAL));
        assert_eq!(message(), "a defect: on purpose");
        let number: i32 = call(|| Err(Failure::usage("wrong")));
        assert_eq!((number, &*message()), (REFRAIN_ERROR_USAGE, "wrong"));
    }

    #[test]
    fn a_structure_is_filled_as_far_as_the_caller_knows_it() {
        #[repr(C)]
        #[derive(Clone, Copy)]
        struct Two {
            struct_bytes: usize,
            first: u64,
            second: u64,
        }
        let value = Two {
            struct_bytes: 0,
            first: 1,
            second: 2,
        };
        for (struct_bytes, expected) in [(24, [1, 2, 9]), (16, [1, 9, 9]), (32, [1, 2, 0])] {
            let mut target = [struct_bytes as u64, 9, 9, 9];
            // SAFETY: the array is as long as the largest size.
            let filled = unsafe { fill(target.as_mut_ptr().cast::<Two>(), value, "it") };
            filled.unwrap();
            assert_eq!(target[1..], expected);
            assert_eq!(target[0], struct_bytes as u64);
        }
        for struct_bytes in [0, 7, 5000, usize::MAX] {
            let mut target = [struct_bytes; 4];
            // SAFETY: as above.
            let filled = unsafe { fill(target.as_mut_ptr().cast::<Two>(), value, "it") };
            assert!(filled.is_err());
        }
    }

    #[test]
    fn texts_are_cut_where_the_buffer_ends() {
        for (size, expected) in [(0, "xxxx"), (1, "\0xxx"), (3, "ab\0x"), (4, "abc\0")] {
            let mut buffer = *b"xxxx";
            // SAFETY: the buffer has four bytes.
            let length = unsafe { put_text("abc", buffer.as_mut_ptr().cast(), size) };
            assert_eq!(length, Ok(3));
            assert_eq!(std::str::from_utf8(&buffer), Ok(expected));
        }
    }
}
