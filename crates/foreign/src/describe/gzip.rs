//! gzip states the length of the last member, and name and time of the first. The number of members
//! is known only after decoding.

use super::bytes::{Bytes, exact, up_to};
use super::description::Description;
use crate::error::Result;

/// How many bytes of the header are searched for the name.
const HEADER_BYTES_MAX: usize = 70 << 10;
const TRAILER_BYTES: u64 = 8;

pub(super) fn describe(file: &dyn Bytes, mut description: Description) -> Result<Description> {
    let [.., flags, a, b, c, d, _, _] = exact::<10>(file, 0, "the header of a gzip member")?;
    let modified = u32::from_le_bytes([a, b, c, d]);
    description.modified = Some(modified).filter(|time| *time != 0);
    description.add_check("CRC-32");
    let header = up_to(file, 10, HEADER_BYTES_MAX)?;
    description.name = name(flags, &header);
    if let Some(trailer) = description.file_bytes.checked_sub(TRAILER_BYTES) {
        let [_, _, _, _, length @ ..] = exact::<8>(file, trailer, "the trailer of a gzip member")?;
        description.last_member_bytes = Some(u32::from_le_bytes(length));
    }
    Ok(description)
}

fn name(flags: u8, mut header: &[u8]) -> Option<Vec<u8>> {
    if flags & 4 != 0 {
        let (length, rest) = header.split_first_chunk::<2>()?;
        header = rest.get(usize::from(u16::from_le_bytes(*length))..)?;
    }
    let is_named = flags & 8 != 0;
    let end = header.iter().position(|byte| *byte == 0)?;
    header.get(..end).filter(|_| is_named).map(<[u8]>::to_vec)
}
