//! What a file of another format states about itself, without decoding its content.

mod bytes;
mod description;
mod gzip;
mod lz4;
mod xz;
mod zstd;

pub use bytes::Bytes;
pub use description::{Description, ZipCounts};

use crate::error::{Error, Result};
use crate::format::Format;

/// Describes a file of this format.
///
/// # Errors
/// `Damaged` and `Truncated` for its headers, `Unsupported` for a format that holds files, `Io`.
pub fn describe(format: Format, file: &dyn Bytes) -> Result<Description> {
    let description = Description::new(format, file.size_bytes()?);
    match format {
        Format::Gzip => gzip::describe(file, description),
        Format::Xz => xz::describe(file, description),
        Format::Zstd => zstd::describe(file, description),
        Format::Lz4 => lz4::describe(file, description),
        Format::Bzip2 => bzip2(file, description),
        Format::Zip => Err(Error::unsupported(
            0,
            "a zip file holds files, not a stream",
        )),
    }
}

/// bzip2 states the size of the blocks of its first stream, but no counts or lengths.
fn bzip2(file: &dyn Bytes, mut description: Description) -> Result<Description> {
    let [.., level] = bytes::exact::<4>(file, 0, "the header of a bzip2 stream")?;
    description.add_check("CRC-32");
    description.block_bytes_max = Some(u64::from(level.saturating_sub(b'0')) * 100_000);
    Ok(description)
}
