//! The memory of Python objects: read and written by many threads without copies.
//!
//! `unsafe`: pyo3 offers buffers as addresses only, because Python code may write to them while
//! another thread reads. A buffer that is held is neither moved nor freed, and all accesses here
//! copy bytes, for which any value is valid; who changes a buffer meanwhile gets a mixture.

#![allow(unsafe_code)]

use std::io;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use refrain::storage::{Sink, Source};

/// A buffer in one piece, whatever the type of its items.
fn contiguous(object: &Bound<'_, PyAny>) -> PyResult<PyUntypedBuffer> {
    let buffer = PyUntypedBuffer::get(object)?;
    if buffer.format().to_bytes().contains(&b'O') {
        return Err(PyTypeError::new_err("the items are Python objects"));
    }
    if buffer.is_c_contiguous() {
        Ok(buffer)
    } else {
        Err(PyBufferError::new_err("the buffer is not contiguous"))
    }
}

/// An object with a buffer (bytes, memoryview, a numpy array) as a source. It is held, so a
/// bytearray cannot change its size.
pub struct BufferSource(PyUntypedBuffer);

impl BufferSource {
    /// Holds the buffer of an object.
    pub fn new(object: &Bound<'_, PyAny>) -> PyResult<BufferSource> {
        Ok(BufferSource(contiguous(object)?))
    }
}

impl Source for BufferSource {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.0.len_bytes() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.0.len_bytes();
        let start = usize::try_from(offset).map_or(length, |offset| offset.min(length));
        let count = buffer.len().min(length - start);
        if count > 0 {
            let from = self.0.buf_ptr().cast::<u8>().cast_const();
            // SAFETY: the buffer is contiguous and held, and `start + count` is within its length;
            // `buffer` is ours.
            unsafe { ptr::copy_nonoverlapping(from.add(start), buffer.as_mut_ptr(), count) };
        }
        Ok(count)
    }
}

/// An object with a writable buffer.
pub struct WritableBuffer(PyUntypedBuffer);

impl WritableBuffer {
    /// Holds the buffer of an object.
    pub fn new(object: &Bound<'_, PyAny>) -> PyResult<WritableBuffer> {
        let buffer = contiguous(object)?;
        if buffer.readonly() {
            return Err(PyBufferError::new_err("the buffer is read-only"));
        }
        Ok(WritableBuffer(buffer))
    }

    /// Its bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        let length = self.0.len_bytes();
        if length == 0 {
            return &mut [];
        }
        // SAFETY: the buffer is contiguous, writable and held as long as the result lives.
        unsafe { std::slice::from_raw_parts_mut(self.0.buf_ptr().cast(), length) }
    }
}

/// The bytes of an object for the time of a call that holds the interpreter's lock or not.
pub struct ReadableBuffer(PyUntypedBuffer);

impl ReadableBuffer {
    /// Holds the buffer of an object.
    pub fn new(object: &Bound<'_, PyAny>) -> PyResult<ReadableBuffer> {
        Ok(ReadableBuffer(contiguous(object)?))
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        let length = self.0.len_bytes();
        if length == 0 {
            return &[];
        }
        // SAFETY: the buffer is contiguous and held as long as the result lives. It is passed on to
        // the system and to hashes, for which any bytes are valid.
        unsafe { std::slice::from_raw_parts(self.0.buf_ptr().cast::<u8>(), length) }
    }
}

/// A bytes object that is filled before anybody else sees it.
pub struct NewBytes {
    object: Py<PyBytes>,
    length: usize,
    written: Arc<AtomicUsize>,
}

impl NewBytes {
    /// Allocates `length` bytes, which are not initialized.
    ///
    /// # Errors
    /// `MemoryError`.
    pub fn new(py: Python<'_>, length: usize) -> PyResult<NewBytes> {
        let signed = isize::try_from(length)
            .map_err(|_| PyValueError::new_err("the content does not fit into memory"))?;
        // SAFETY: a null pointer asks for bytes that the caller initializes; the result is a new
        // reference, or null with an exception.
        let object = unsafe {
            let object = pyo3::ffi::PyBytes_FromStringAndSize(ptr::null(), signed);
            Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked::<PyBytes>()
        };
        Ok(NewBytes {
            object: object.unbind(),
            length,
            written: Arc::default(),
        })
    }

    /// What fills it, from the front.
    pub fn sink(&self, py: Python<'_>) -> BytesSink {
        // SAFETY: the object is a bytes object.
        let address = unsafe { pyo3::ffi::PyBytes_AsString(self.object.as_ptr()) };
        BytesSink {
            _object: self.object.clone_ref(py),
            address: Address(address.cast()),
            length: self.length,
            written: self.written.clone(),
        }
    }

    /// The object.
    ///
    /// # Errors
    /// `ValueError` if it was not filled.
    pub fn finish(self, py: Python<'_>) -> PyResult<Bound<'_, PyBytes>> {
        if self.written.load(Ordering::Acquire) == self.length {
            Ok(self.object.into_bound(py))
        } else {
            Err(PyValueError::new_err("the content is shorter than stated"))
        }
    }
}

struct Address(*mut u8);

// SAFETY: only the sink writes there, and it keeps the object.
unsafe impl Send for Address {}

/// Writes into a [`NewBytes`].
pub struct BytesSink {
    _object: Py<PyBytes>,
    address: Address,
    length: usize,
    written: Arc<AtomicUsize>,
}

impl BytesSink {
    /// Where the next bytes go, which are counted as written.
    fn next(&mut self, count: usize) -> io::Result<*mut u8> {
        let at = self.written.load(Ordering::Relaxed);
        if count > self.length - at {
            return Err(io::Error::other("the content is longer than stated"));
        }
        self.written.store(at + count, Ordering::Release);
        // SAFETY: `at` is within the object.
        Ok(unsafe { self.address.0.add(at) })
    }
}

impl Sink for BytesSink {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let to = self.next(bytes.len())?;
        // SAFETY: the range is within the object, and nobody else has it yet.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        let count = usize::try_from(length_bytes).map_err(io::Error::other)?;
        let to = self.next(count)?;
        // SAFETY: as above.
        unsafe { ptr::write_bytes(to, 0, count) };
        Ok(())
    }

    fn publish(&mut self) -> io::Result<()> {
        Ok(())
    }
}
