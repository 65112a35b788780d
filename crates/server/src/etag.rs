//! Entity tags from content hashes: equal tags mean equal bytes, in any archive.

use refrain::{Archive, DigestAlgorithm, DigestHasher, Entry, Member, Result};
use refrain_pool::compute;

/// How many bytes of a hash a tag contains.
const TAG_BYTES: usize = 16;

/// The tag of a member's content; `None` if the archive has no digest of it.
pub(crate) fn of_content(member: &Member) -> Option<String> {
    if member.blake3 != [0; 32] {
        return Some(tag(&member.blake3));
    }
    let (algorithm, value) = member.digests.first()?;
    let mut hasher = DigestHasher::new(DigestAlgorithm::Blake3);
    hasher.update(algorithm.name().as_bytes());
    hasher.update(value.as_bytes());
    Some(tag(hasher.finish().as_bytes()))
}

/// The tag of a directory or tar member as a tar stream, which is determined by its entries and
/// content; `None` if a hash is lost.
pub(crate) fn of_tar_stream(
    archive: &Archive,
    number: usize,
    member: &Member,
) -> Result<Option<String>> {
    let Some(entries_hash) = archive.entry_list(number)?.hash()? else {
        return Ok(None);
    };
    Ok((member.blake3 != [0; 32]).then(|| {
        let mut hasher = DigestHasher::new(DigestAlgorithm::Blake3);
        hasher.update(b"tar stream");
        hasher.update(&member.blake3);
        hasher.update(&entries_hash);
        hasher.update(&member.content_bytes.to_le_bytes());
        tag(hasher.finish().as_bytes())
    }))
}

/// The tag of an entry's data: the hash of the content that it is part of, and its range.
pub(crate) fn of_entry(member: &Member, entry: &Entry) -> Option<String> {
    if member.blake3 == [0; 32] {
        return None;
    }
    let mut hasher = DigestHasher::new(DigestAlgorithm::Blake3);
    hasher.update(b"entry");
    hasher.update(&member.blake3);
    hasher.update(&entry.content_offset.to_le_bytes());
    hasher.update(&entry.size_bytes.to_le_bytes());
    hasher.update(&[u8::from(entry.is_rebased)]);
    for range in entry.data_ranges.iter().flatten() {
        hasher.update(&range.start.to_le_bytes());
        hasher.update(&range.end.to_le_bytes());
    }
    Some(tag(hasher.finish().as_bytes()))
}

/// A BLAKE3 hash in hexadecimal digits.
pub(crate) fn hash_of(bytes: &[u8]) -> String {
    let mut hasher = DigestHasher::new(DigestAlgorithm::Blake3);
    compute(|| hasher.update(bytes));
    hasher.finish().to_string()
}

/// A strong tag from the first bytes of a hash.
fn tag(hash: &[u8]) -> String {
    let mut text = String::with_capacity(2 + 2 * TAG_BYTES);
    text.push('"');
    for byte in hash.iter().take(TAG_BYTES) {
        text.push_str(&format!("{byte:02x}"));
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain::MemberKind;

    fn member(first: u8) -> Member {
        let mut blake3 = [0; 32];
        blake3[0] = first;
        Member {
            name: b"a".to_vec(),
            kind: MemberKind::Tree,
            mode: None,
            modified: None,
            content_bytes: 10,
            blake3,
            is_sparse: false,
            has_layers: false,
            digests: vec![],
            entries: 1,
        }
    }

    #[test]
    fn tags_differ_with_content_range_and_holes() {
        let entry = Entry {
            size_bytes: 5,
            ..Entry::default()
        };
        let of = |entry: &Entry| of_entry(&member(1), entry).unwrap();
        let first = of(&entry);
        assert_eq!(first.len(), 2 + 2 * TAG_BYTES);
        assert_eq!(
            first,
            of(&Entry {
                mode: 0o600,
                ..entry.clone()
            })
        );
        for other in [
            Entry {
                size_bytes: 6,
                ..entry.clone()
            },
            Entry {
                content_offset: 1,
                ..entry.clone()
            },
            Entry {
                data_ranges: Some(vec![0..2, 4..5]),
                ..entry.clone()
            },
            Entry {
                data_ranges: Some(vec![0..1, 3..5]),
                ..entry.clone()
            },
        ] {
            assert_ne!(first, of(&other), "{other:?}");
        }
        assert_ne!(Some(first), of_entry(&member(2), &entry));
        assert_eq!(of_entry(&member(0), &entry), None);
        assert_eq!(of_content(&member(0)), None);
        assert_eq!(of_content(&member(0xab)).unwrap()[..4], *"\"ab0");
    }
}
