//! A loaded library.
//!
//! Loading and calling it is `unsafe`: nothing makes sure that it keeps to the header. Whoever
//! names a library trusts it as the program itself; here its addresses and lengths are correct, and
//! what it returns is checked.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char};
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::RangeInclusive;
use std::path::Path;

use refrain_codec::{CodecId, PluginKind, check_plugin, check_plugin_filter};

use crate::abi::{
    ABI, CODEC_ENTRY, CodecEntryFn, DecodeFn, Description, EncodeFn, FILTER_ENTRY,
    FilterDescription, FilterEntryFn, FilterFn, MEMORY_BYTES_MAX, NAME_BYTES_MAX,
};
use crate::error::Error;

/// A loaded library.
#[derive(Debug)]
pub(crate) enum Loaded {
    Codec(LoadedCodec),
    Filter(LoadedFilter),
}

/// A loaded library with a codec, and its description.
#[derive(Debug)]
pub(crate) struct LoadedCodec {
    pub number: u16,
    pub name: String,
    pub encode_memory_bytes: u64,
    pub decode_memory_bytes: u64,
    encode: EncodeFn,
    decode: DecodeFn,
    /// The functions are in it. Unloads when dropped, after the last call.
    _library: libloading::Library,
}

/// A loaded library with a filter, and its description.
#[derive(Debug)]
pub(crate) struct LoadedFilter {
    pub number: u8,
    pub name: String,
    pub parameters: RangeInclusive<u8>,
    pub memory_bytes: u64,
    encode: FilterFn,
    decode: FilterFn,
    /// As that of a codec.
    _library: libloading::Library,
}

impl Loaded {
    /// Loads a private copy of a file: so it may be replaced, and a new version of the same name is
    /// not taken for the old one.
    ///
    /// # Errors
    /// `Io`, `Temporary`, `Load`, `Version`, `Description`, `Number`, `Name`, `Memory`.
    pub(crate) fn open(path: &Path) -> Result<Loaded, Error> {
        let copy = copied(path)?;
        // The user knows nothing of the copy.
        let copied_to = format!("{}: ", copy.display());
        let in_folder = format!("its copy in {}: ", std::env::temp_dir().display());
        let failed = |error: libloading::Error| Error::Load {
            cause: error.to_string().replace(&copied_to, &in_folder),
        };
        // SAFETY: the initializers of the library run, which the user has named.
        let library = unsafe { libloading::Library::new(&copy) }.map_err(failed)?;
        // SAFETY: the header gives the functions these types.
        let (codec, filter) = unsafe {
            (
                library.get::<CodecEntryFn>(CODEC_ENTRY.as_bytes()),
                library.get::<FilterEntryFn>(FILTER_ENTRY.as_bytes()),
            )
        };
        match (codec, filter) {
            (Ok(_), Ok(_)) => Err(invalid("it has both a codec and a filter")),
            (Err(_), Ok(entry)) => {
                // SAFETY: it takes no arguments, and the library is loaded.
                let description = unsafe { entry() };
                // SAFETY: the header requires a description that stays valid.
                let description = unsafe { described(description, |found| found.abi) }?;
                LoadedFilter::new(&description, library).map(Loaded::Filter)
            }
            (codec, Err(_)) => {
                // SAFETY: as above.
                let description = unsafe { codec.map_err(failed)?() };
                // SAFETY: as above.
                let description = unsafe { described(description, |found| found.abi) }?;
                LoadedCodec::new(&description, library).map(Loaded::Codec)
            }
        }
    }
}

impl Loaded {
    /// Checks that nothing else has the number or the name, before it is added.
    ///
    /// # Errors
    /// `Taken`.
    pub(crate) fn check_free(&self) -> Result<(), Error> {
        let checked = match self {
            Loaded::Codec(codec) => check_plugin(CodecId(codec.number), &codec.name),
            Loaded::Filter(filter) => check_plugin_filter(filter.number, &filter.name),
        };
        checked.map_err(Error::Taken)
    }
}

impl LoadedCodec {
    fn new(description: &Description, library: libloading::Library) -> Result<Self, Error> {
        let (Some(encode), Some(decode)) = (description.encode, description.decode) else {
            return Err(invalid("a function is missing"));
        };
        Ok(LoadedCodec {
            number: number(PluginKind::Codec, description.number)?,
            name: name_at(description.name)?,
            encode_memory_bytes: memory(description.encode_memory_bytes)?,
            decode_memory_bytes: memory(description.decode_memory_bytes)?,
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

impl LoadedFilter {
    fn new(description: &FilterDescription, library: libloading::Library) -> Result<Self, Error> {
        let (Some(encode), Some(decode)) = (description.encode, description.decode) else {
            return Err(invalid("a function is missing"));
        };
        let parameters = [description.parameter_min, description.parameter_max].map(u8::try_from);
        let [Ok(first), Ok(last)] = parameters else {
            return Err(invalid("a parameter is above 255"));
        };
        if first > last {
            return Err(invalid("its last parameter is before the first"));
        }
        Ok(LoadedFilter {
            number: number(PluginKind::Filter, description.number)?,
            name: name_at(description.name)?,
            parameters: first..=last,
            memory_bytes: memory(description.memory_bytes)?,
            encode,
            decode,
            _library: library,
        })
    }

    /// Filters `bytes`. Returns what the library returns.
    pub(crate) fn encode(&self, bytes: &mut [u8], parameter: u8) -> i64 {
        // SAFETY: the buffer has this length, and the library is loaded as long as `self` is.
        unsafe { (self.encode)(bytes.as_mut_ptr(), bytes.len(), parameter.into()) }
    }

    /// Undoes that. Returns what the library returns.
    pub(crate) fn decode(&self, bytes: &mut [u8], parameter: u8) -> i64 {
        // SAFETY: as for `encode`.
        unsafe { (self.decode)(bytes.as_mut_ptr(), bytes.len(), parameter.into()) }
    }
}

fn invalid(cause: &'static str) -> Error {
    Error::Description { cause }
}

/// A copy of a description that a library returned.
///
/// # Errors
/// `Description` for NULL; `Version`.
///
/// # Safety
/// It is NULL or valid, or begins with the number of another version.
unsafe fn described<D: Copy>(found: *const D, abi: fn(&D) -> u32) -> Result<D, Error> {
    // SAFETY: the caller's.
    let found = unsafe { found.as_ref() };
    let found = found.ok_or(invalid("it returns no description"))?;
    // Later versions may lay out differently what follows.
    match abi(found) {
        ABI => Ok(*found),
        found => Err(Error::Version { found }),
    }
}

/// The number, if it is one for plug-ins of this kind, which have numbers of type `N`.
fn number<N: TryFrom<u32>>(kind: PluginKind, number: u32) -> Result<N, Error> {
    let is_valid = kind.numbers().contains(&number);
    let valid = N::try_from(number).ok().filter(|_| is_valid);
    valid.ok_or(Error::Number { kind, number })
}

/// The memory that a description states, if there can be so much.
fn memory(bytes: u64) -> Result<u64, Error> {
    if bytes <= MEMORY_BYTES_MAX { Ok(bytes) } else { Err(Error::Memory { bytes }) }
}

/// The name, if it is valid.
fn name_at(name: *const c_char) -> Result<String, Error> {
    if name.is_null() {
        return Err(invalid("it has no name"));
    }
    // SAFETY: not NULL, and the header requires a zero at the end.
    let name = unsafe { CStr::from_ptr(name) };
    let name = name.to_string_lossy().into_owned();
    let is_usual = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
    let is_valid = (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_usual);
    if is_valid { Ok(name) } else { Err(Error::Name { name }) }
}

/// A private copy of a file.
fn copied(path: &Path) -> Result<tempfile::TempPath, Error> {
    let mut bytes = Vec::new();
    File::open(path)?.read_to_end(&mut bytes)?;
    let failed = |error: io::Error| Error::Temporary {
        folder: std::env::temp_dir(),
        // Nor of the name that `tempfile` chose.
        error: without_path(error),
    };
    let copy = tempfile::Builder::new()
        .prefix("refrain-plugin-")
        .tempfile();
    let mut copy = copy.map_err(failed)?;
    copy.write_all(&bytes).map_err(failed)?;
    Ok(copy.into_temp_path())
}

/// An error of the crate `tempfile` without the path, which stands behind that of the system and
/// names a file that nobody knows.
fn without_path(error: io::Error) -> io::Error {
    let text = error.to_string();
    match text.split_once(" at path ") {
        Some((cause, _)) => io::Error::new(error.kind(), cause),
        None => error,
    }
}
