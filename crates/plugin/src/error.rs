//! Why a plug-in cannot be used.

use std::{fmt, io};

use crate::abi::ABI;

/// Why a plug-in cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read, or no copy of it can be made.
    Io(io::Error),
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
            Self::Load { cause } => write!(f, "cannot be loaded: {cause}"),
            Self::Version { found } => write!(
                f,
                "has version {found} of the interface for plug-ins; this program has {}",
                ABI
            ),
            Self::Description { cause } => write!(f, "is not a plug-in: {cause}"),
            Self::Different { name } => {
                write!(
                    f,
                    "is another plug-in than '{name}', whose place it should take"
                )
            }
            Self::Taken(error) => error.fmt(f),
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
