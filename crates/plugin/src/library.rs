//! A loaded library.
//!
//! Loading and calling it is `unsafe`: nothing makes sure that it keeps to the header. Whoever
//! names a library trusts it as the program itself; here its addresses and lengths are correct, and
//! what it returns is checked.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::path::Path;

use crate::abi::{ABI, DecodeFn, Description, ENTRY, EncodeFn, EntryFn};
use crate::error::Error;

/// The longest name, in bytes. That of the format.
const NAME_BYTES_MAX: usize = 31;

/// A loaded library, and its description.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub number: u16,
    pub name: String,
    pub encode_memory_bytes: u64,
    pub decode_memory_bytes: u64,
    encode: EncodeFn,
    decode: DecodeFn,
    /// The functions are in it. Unloads when dropped, after the last call.
    _library: libloading::Library,
}

impl Loaded {
    /// Loads a private copy of a file: so it may be replaced, and a new version of the same name is
    /// not taken for the old one.
    ///
    /// # Errors
    /// `Io`, `Load`, `Version`, `Description`.
    pub(crate) fn open(path: &Path) -> Result<Loaded, Error> {
        let mut copy = tempfile::Builder::new()
            .prefix("refrain-plugin-")
            .tempfile()?;
        io::copy(&mut File::open(path)?, copy.as_file_mut())?;
        let copy = copy.into_temp_path();
        let failed = |error: libloading::Error| Error::Load {
            cause: error.to_string(),
        };
        // SAFETY: the initializers of the library run, which the user has named.
        let library = unsafe { libloading::Library::new(&copy) }.map_err(failed)?;
        // SAFETY: the header gives the function this type.
        let entry = unsafe { library.get::<EntryFn>(ENTRY.as_bytes()) }.map_err(failed)?;
        // SAFETY: it takes no arguments, and the library is loaded.
        let description = unsafe { entry() };
        // SAFETY: the header requires a description that stays valid; NULL gives `None`.
        let description = unsafe { description.as_ref() };
        let invalid = |cause| Error::Description { cause };
        let description = description.ok_or(invalid("it returns no description"))?;
        // Later versions may lay out differently what follows.
        if description.abi != ABI {
            return Err(Error::Version {
                found: description.abi,
            });
        }
        let (Some(encode), Some(decode)) = (description.encode, description.decode) else {
            return Err(invalid("a function is missing"));
        };
        let number = u16::try_from(description.number);
        Ok(Loaded {
            number: number.map_err(|_| invalid("its number is not one for plug-ins"))?,
            name: name_of(description).ok_or(invalid("its name is not one for plug-ins"))?,
            encode_memory_bytes: description.encode_memory_bytes,
            decode_memory_bytes: description.decode_memory_bytes,
            encode,
            decode,
            _library: library,
        })
    }

    /// Encodes `raw` into `out`. Returns what the library returns.
    pub(crate) fn encode(&self, raw: &[u8], out: &mut [u8], level: i32) -> i64 {
        let (to, room) = (out.as_mut_ptr(), out.len());
        // SAFETY: the buffers have these lengths, and the library is loaded as long as `self` is.
        unsafe { (self.encode)(raw.as_ptr(), raw.len(), to, room, level) }
    }

    /// Decodes `data` into `out`. Returns what the library returns.
    pub(crate) fn decode(&self, data: &[u8], out: &mut [u8]) -> i64 {
        let (to, room) = (out.as_mut_ptr(), out.len());
        // SAFETY: as for `encode`.
        unsafe { (self.decode)(data.as_ptr(), data.len(), to, room) }
    }
}

/// The name, if it is valid.
fn name_of(description: &Description) -> Option<String> {
    if description.name.is_null() {
        return None;
    }
    // SAFETY: not NULL, and the header requires a zero at the end.
    let name = unsafe { CStr::from_ptr(description.name) }.to_str().ok()?;
    let is_usual = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
    let is_valid = (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_usual);
    is_valid.then(|| name.to_owned())
}
