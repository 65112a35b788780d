//! Describes an archive's contents piece by piece: extents, blocks, and the content of members.

use crate::archive::Archive;
use crate::error::Result;

pub use crate::read::archive_layout::{ContentExtent, EachMemberContent, ExtentOrigin, StoreBlock};

/// What an archive in Refrain's own format consists of, for pictures and copies of it: extents,
/// blocks, frames. Nothing of it is decoded, except by [`Layout::read_store`].
///
/// Every method fails with `Unsupported` for an archive of another format.
#[derive(Clone, Copy)]
pub struct Layout<'a> {
    pub(crate) archive: &'a Archive,
}

impl Archive {
    /// What the archive consists of.
    pub fn layout(&self) -> Layout<'_> {
        Layout { archive: self }
    }
}

impl Layout<'_> {
    /// Calls `each` for the extents of all content, in order: first occurrences, repeats, and runs.
    /// References to earlier lists of extents are resolved.
    ///
    /// There may be billions, and a forged archive of a few bytes may claim as many: see
    /// [`Archive::check_content_limit`]. An error of `each` ends the walk.
    ///
    /// # Errors
    /// `Damaged`, `Limit` and `Io` for the frames of extents; errors of `each`.
    pub fn for_each_extent(self, each: &mut dyn FnMut(ContentExtent) -> Result<()>) -> Result<()> {
        self.archive.opened.for_each_extent(each)
    }

    /// Calls `each` for every block, in store order. Reads only the index.
    ///
    /// # Errors
    /// `Damaged`, `Limit` and `Io` for the index; errors of `each`.
    pub fn for_each_block(self, each: &mut dyn FnMut(StoreBlock) -> Result<()>) -> Result<()> {
        self.archive.opened.for_each_store_block(each)
    }

    /// Calls `each` for every member, its number, and its range of content, in the offsets of
    /// [`ContentExtent`]. Offsets of entries
    /// ([`Entry::content_range`](crate::Entry::content_range)) count from its start.
    ///
    /// # Errors
    /// As [`Layout::for_each_block`].
    pub fn for_each_member(self, each: &mut EachMemberContent<'_>) -> Result<()> {
        self.archive.opened.for_each_member_content(each)
    }

    /// Reads the store at `offset_in_store` into `buffer`. Returns the number of bytes read, which
    /// may be less than the length of `buffer`; 0 at the end of the store.
    ///
    /// # Errors
    /// [Given back](crate::Error::is_given_back) if some of it was; as [`Archive::read_at`].
    pub fn read_store(self, offset_in_store: u64, buffer: &mut [u8]) -> Result<usize> {
        self.archive.opened.read_store(offset_in_store, buffer)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use refrain_storage::{MemorySink, MemorySource};
    use refrain_testkit::data::{random, sparse, text, versions};

    use super::*;
    use crate::{
        CompressOptions, Content, ErrorKind, MemberInput, ReadOptions, Unwatched, compress,
    };

    fn archive_of(contents: &[Vec<u8>]) -> Vec<u8> {
        let member = |content: &Vec<u8>| MemberInput {
            name: "a".into(),
            mode: None,
            modified: None,
            content: Content::Source(Arc::new(MemorySource::new(content.clone()))),
        };
        let mut sink = MemorySink::new();
        let output = sink.output();
        let options = CompressOptions::default();
        let members = contents.iter().map(member).collect();
        compress(members, &mut sink, &options, &Unwatched).unwrap();
        output.published().unwrap()
    }

    fn open(bytes: Vec<u8>) -> Archive {
        Archive::open(Arc::new(MemorySource::new(bytes)), &ReadOptions::default()).unwrap()
    }

    fn store_of(archive: &Archive) -> Vec<u8> {
        let mut store = vec![];
        let mut buffer = vec![0; 77_777];
        loop {
            let count = archive
                .layout()
                .read_store(store.len() as u64, &mut buffer)
                .unwrap();
            store.extend_from_slice(&buffer[..count]);
            if count == 0 {
                return store;
            }
        }
    }

    /// Compares everything told about an archive with its content, byte by byte.
    fn check(archive: &Archive, content: &[u8]) {
        let store = store_of(archive);
        let info = archive.info().unwrap();
        assert_eq!(store.len() as u64, info.store_bytes);
        let (mut at, mut first, mut repeated, mut filled) = (0, 0, 0, 0);
        archive
            .layout()
            .for_each_extent(&mut |extent| {
                assert_eq!(extent.content_offset, at);
                let range = at as usize..(at + extent.length_bytes) as usize;
                let in_store =
                    |offset: u64| &store[offset as usize..(offset + extent.length_bytes) as usize];
                match extent.origin {
                    ExtentOrigin::First { offset_in_store } => {
                        assert_eq!(offset_in_store, first);
                        assert_eq!(in_store(offset_in_store), &content[range]);
                        first += extent.length_bytes;
                    }
                    ExtentOrigin::Repeat { offset_in_store } => {
                        assert!(offset_in_store + extent.length_bytes <= first);
                        assert_eq!(in_store(offset_in_store), &content[range]);
                        repeated += extent.length_bytes;
                    }
                    ExtentOrigin::Fill { is_zero } => {
                        let all_zero = content[range].iter().all(|&byte| byte == 0);
                        assert_eq!(is_zero, all_zero);
                        filled += extent.length_bytes;
                    }
                }
                at += extent.length_bytes;
                Ok(())
            })
            .unwrap();
        assert_eq!(at, content.len() as u64);
        assert_eq!(first, info.store_bytes);
        assert_eq!((repeated, filled), (info.matched_bytes, info.run_bytes));
        let (mut store_at, mut stored_bytes) = (0, 0);
        archive
            .layout()
            .for_each_block(&mut |block| {
                assert_eq!(block.offset_in_store, store_at);
                store_at += block.raw_bytes;
                stored_bytes += block.stored_bytes;
                Ok(())
            })
            .unwrap();
        assert_eq!(store_at, info.store_bytes);
        let of_codecs = info.codecs.iter().map(|codec| codec.stored_bytes);
        assert_eq!(stored_bytes, of_codecs.sum::<u64>());
        let mut content_at = 0;
        archive
            .layout()
            .for_each_member(&mut |number, member, range| {
                assert_eq!(archive.member(number).unwrap(), *member);
                assert_eq!(range, content_at..content_at + member.content_bytes);
                content_at = range.end;
                Ok(())
            })
            .unwrap();
        assert_eq!(content_at, content.len() as u64);
    }

    fn contents(seed: u64) -> Vec<Vec<u8>> {
        let old = versions(300_000, 5, 20, seed);
        let far = [random(90_000, seed), text(200_000, seed), old.clone()].concat();
        vec![old, sparse(500_000, seed), vec![], far]
    }

    #[test]
    fn extents_blocks_and_members_describe_all_content() {
        for seed in 0..4 {
            let contents = contents(seed);
            check(&open(archive_of(&contents)), &contents.concat());
        }
    }

    #[test]
    fn archives_one_behind_the_other_have_one_content_and_one_store() {
        let (one, two) = (contents(7), contents(7)[..2].to_vec());
        let empty = vec![vec![]];
        let archives = [archive_of(&one), archive_of(&empty), archive_of(&two)];
        let content = [one.concat(), two.concat()].concat();
        check(&open(archives.concat()), &content);
    }

    #[test]
    fn an_error_ends_the_walk() {
        let archive = open(archive_of(&contents(3)));
        let mut calls = 0;
        let ended = archive.layout().for_each_extent(&mut |_| {
            calls += 1;
            Err(crate::Error::new(ErrorKind::Cancelled, "enough"))
        });
        assert_eq!((calls, ended.unwrap_err().kind), (1, ErrorKind::Cancelled));
    }

    #[test]
    fn damaged_archives_yield_errors_or_what_is_there() {
        let contents = contents(1);
        let intact = archive_of(&contents);
        let content_bytes = contents.concat().len() as u64;
        for step in 0..200 {
            let mut bytes = intact.clone();
            let at = bytes.len() * step / 200;
            bytes[at] ^= 1 << (step % 8);
            let source = Arc::new(MemorySource::new(bytes));
            let Ok(archive) = Archive::open(source, &ReadOptions::default()) else {
                continue;
            };
            let mut seen = 0;
            let walked = archive.layout().for_each_extent(&mut |extent| {
                seen += extent.length_bytes;
                Ok(())
            });
            assert!(walked.is_err() || seen == content_bytes);
        }
    }
}
