//! Why a plug-in cannot be used.

use std::path::PathBuf;
use std::{fmt, io};

use refrain_codec::PluginKind;

use crate::abi::{ABI, MEMORY_BYTES_MAX, NAME_BYTES_MAX};

/// Why a plug-in cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    Io(io::Error),
    /// No copy of it can be made in the folder for temporary files.
    Temporary {
        /// The folder.
        folder: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The system cannot load the file.
    Load {
        /// What it says.
        cause: String,
    },
    /// The library has another version of the interface.
    Version {
        /// The version that it states.
        found: u32,
    },
    /// The description is not valid.
    Description {
        /// What is wrong with it.
        cause: &'static str,
    },
    /// The description states a number that is not one for plug-ins.
    Number {
        /// What the library has.
        kind: PluginKind,
        /// The number.
        number: u32,
    },
    /// The description states a name that is not one for plug-ins.
    Name {
        /// The name, as far as it is text.
        name: String,
    },
    /// The description states more memory than there can be.
    Memory {
        /// What it states, in bytes.
        bytes: u64,
    },
    /// The new version of a plug-in has another number or name.
    Different {
        /// The name so far.
        name: &'static str,
    },
    /// Its number or name belongs to another codec or filter.
    Taken(refrain_codec::Error),
    /// It did what no plug-in may do with a sample.
    Sample {
        /// The sample.
        sample: &'static str,
        /// What it did.
        cause: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Temporary { folder, error } => write!(
                f,
                "cannot be loaded: no copy of it can be made in the folder for temporary files, \
                 {} (TMPDIR): {error}",
                folder.display()
            ),
            Self::Load { cause } => write!(f, "cannot be loaded: {cause}"),
            Self::Version { found } => write!(
                f,
                "has version {found} of the interface for plug-ins; this program has {}",
                ABI
            ),
            Self::Description { cause } => write!(f, "is not a plug-in: {cause}"),
            Self::Number { kind, number } => {
                let error = refrain_codec::Error::PluginNumber {
                    kind: *kind,
                    number: *number,
                };
                write!(f, "is not a plug-in: {error}")
            }
            Self::Name { name } => write!(
                f,
                "is not a plug-in: its name '{name}' is not one for plug-ins, which have 1 to \
                 {NAME_BYTES_MAX} of a to z, 0 to 9, - and _"
            ),
            Self::Memory { bytes } => write!(
                f,
                "is not a plug-in: it states that it needs {bytes} bytes of memory, more than \
                 {MEMORY_BYTES_MAX}"
            ),
            Self::Different { name } => {
                write!(
                    f,
                    "is another plug-in than '{name}', whose place it should take"
                )
            }
            Self::Taken(error) => write!(f, "cannot be added: {error}"),
            Self::Sample { sample, cause } => write!(f, "with {sample}: {cause}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Io(error)
    }
}
