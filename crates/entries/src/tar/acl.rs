//! POSIX access control lists: converts the value of Linux's extended attributes to the text that
//! tar programs exchange.

/// The attribute of the access list, and the key of its pax record.
pub(crate) const ACCESS: (&[u8], &[u8]) = (b"system.posix_acl_access", b"SCHILY.acl.access");
/// The attribute of the default list of a directory, and the key of its pax record.
pub(crate) const DEFAULT: (&[u8], &[u8]) = (b"system.posix_acl_default", b"SCHILY.acl.default");

/// The version of the attribute's format, little-endian.
const VERSION: &[u8] = &[2, 0, 0, 0];
/// Tag, permissions and id of an entry: 16, 16 and 32 bits, little-endian.
const ENTRY_BYTES: usize = 8;

/// The list as text, with numeric owners: `user::rw-,user:1000:r--,group::r--`. `None` if the value
/// is not such a list.
pub(crate) fn text(value: &[u8]) -> Option<Vec<u8>> {
    let entries = value.strip_prefix(VERSION)?;
    if entries.is_empty() || !entries.len().is_multiple_of(ENTRY_BYTES) {
        return None;
    }
    let mut text = Vec::new();
    for entry in entries.chunks_exact(ENTRY_BYTES) {
        let [tag, 0, permissions @ 0..=7, 0, id @ ..] = entry else {
            return None;
        };
        let id = u32::from_le_bytes(*id.first_chunk()?);
        let (name, has_id) = match *tag {
            0x01 => ("user", false),
            0x02 => ("user", true),
            0x04 => ("group", false),
            0x08 => ("group", true),
            0x10 => ("mask", false),
            0x20 => ("other", false),
            _ => return None,
        };
        if !text.is_empty() {
            text.push(b',');
        }
        let id = if has_id { id.to_string() } else { String::new() };
        let sign = |bit: u8, sign: char| if permissions & bit != 0 { sign } else { '-' };
        let (read, write, execute) = (sign(4, 'r'), sign(2, 'w'), sign(1, 'x'));
        let entry = format!("{name}:{id}:{read}{write}{execute}");
        text.extend_from_slice(entry.as_bytes());
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_become_text() {
        let entry = |tag: u8, permissions: u8, id: u32| {
            [&[tag, 0, permissions, 0][..], &id.to_le_bytes()].concat()
        };
        let none = u32::MAX;
        let list = [
            VERSION.to_vec(),
            entry(1, 6, none),
            entry(2, 5, 1000),
            entry(4, 4, none),
            entry(8, 0, 7),
            entry(0x10, 7, none),
            entry(0x20, 1, none),
        ]
        .concat();
        let expected = "user::rw-,user:1000:r-x,group::r--,group:7:---,mask::rwx,other::--x";
        assert_eq!(text(&list), Some(expected.as_bytes().to_vec()));
        assert_eq!(text(&list[..list.len() - 1]), None);
        assert_eq!(text(VERSION), None);
        assert_eq!(text(&[&[1, 0, 0, 0], &list[4..]].concat()), None);
        let odd = [VERSION.to_vec(), entry(3, 6, none)].concat();
        assert_eq!(text(&odd), None);
    }
}
