//! The metadata of a directory as bytes, for the notes of a restore.

use std::sync::Arc;

use super::metadata::Metadata;
use refrain_entries::{EntryKind, ExtendedAttribute, Owner, Timestamp};

impl Metadata {
    pub(super) fn write_to(&self, bytes: &mut Vec<u8>) {
        let owner = &self.owner;
        bytes.extend(self.mode.to_le_bytes());
        bytes.extend(self.modified.seconds.to_le_bytes());
        bytes.extend(self.modified.nanoseconds.to_le_bytes());
        bytes.extend(owner.uid.to_le_bytes());
        bytes.extend(owner.gid.to_le_bytes());
        write_text(bytes, &owner.user);
        write_text(bytes, &owner.group);
        for attribute in &self.attributes {
            write_text(bytes, &attribute.name);
            write_text(bytes, &attribute.value);
        }
    }

    /// Reads what [`write_to`](Metadata::write_to) appended; `None` for anything else.
    pub(super) fn read_from(bytes: &[u8]) -> Option<Metadata> {
        let rest = &mut &*bytes;
        let mode = u32::from_le_bytes(read(rest)?);
        let modified = Timestamp {
            seconds: i64::from_le_bytes(read(rest)?),
            nanoseconds: u32::from_le_bytes(read(rest)?),
        };
        let owner = Owner {
            uid: u64::from_le_bytes(read(rest)?),
            gid: u64::from_le_bytes(read(rest)?),
            user: read_text(rest)?,
            group: read_text(rest)?,
        };
        let mut attributes = Vec::new();
        while !rest.is_empty() {
            attributes.push(ExtendedAttribute {
                name: read_text(rest)?,
                value: read_text(rest)?,
            });
        }
        Some(Metadata {
            kind: EntryKind::Directory,
            mode,
            owner: Arc::new(owner),
            modified,
            attributes,
        })
    }
}

fn write_text(bytes: &mut Vec<u8>, text: &[u8]) {
    // Names and values are shorter than 4 GiB by the format's limits.
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(text);
}

fn read<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (found, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*found)
}

fn read_text(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let length = u32::from_le_bytes(read(rest)?);
    let (text, tail) = rest.split_at_checked(length as usize)?;
    *rest = tail;
    Some(text.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_entries::Entry;

    #[test]
    fn metadata_comes_back() {
        let text = |text: &str| text.as_bytes().to_vec();
        let entry = Entry {
            kind: EntryKind::Directory,
            mode: 0o2750,
            owner: Arc::new(Owner {
                uid: 1 << 40,
                gid: 7,
                user: text("someone"),
                group: text(""),
            }),
            modified: Timestamp {
                seconds: -3,
                nanoseconds: 999_999_999,
            },
            attributes: vec![
                ExtendedAttribute {
                    name: text("user.a"),
                    value: vec![0, 255],
                },
                ExtendedAttribute {
                    name: text("user.b"),
                    value: vec![],
                },
            ],
            ..Entry::default()
        };
        let metadata = Metadata::from_entry(&entry);
        let mut bytes = Vec::new();
        metadata.write_to(&mut bytes);
        let found = Metadata::read_from(&bytes).unwrap();
        assert_eq!(format!("{found:?}"), format!("{metadata:?}"));
        assert!(Metadata::read_from(&bytes[..bytes.len() - 1]).is_none());
    }
}
