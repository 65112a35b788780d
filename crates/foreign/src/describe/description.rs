//! What a file states about itself.

use std::collections::BTreeMap;

use crate::format::Format;

/// What a file states. `None` where the format states nothing, or only decoding would tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// The format.
    pub format: Format,
    /// The length of the file.
    pub file_bytes: u64,
    /// The length of the content.
    pub content_bytes: Option<u64>,
    /// The number of independent parts, named by [`Format::part_name`], without skipped frames.
    pub parts: Option<u64>,
    /// The number of frames that hold no content.
    pub skipped_frames: u64,
    /// The number of blocks.
    pub blocks: Option<u64>,
    /// The largest content of one block.
    pub block_bytes_max: Option<u64>,
    /// The memory of the largest window.
    pub window_bytes: Option<u64>,
    /// The checksums of the content, each once; empty if there are none.
    pub checks: Vec<&'static str>,
    /// The name in the first gzip member.
    pub name: Option<Vec<u8>>,
    /// The time in the first gzip member, in seconds since 1970.
    pub modified: Option<u32>,
    /// The length of the last gzip member, modulo 2^32.
    pub last_member_bytes: Option<u32>,
    /// The entries of a zip file.
    pub zip: Option<ZipCounts>,
}

/// The entries of a zip file, in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ZipCounts {
    /// The number of files.
    pub files: u64,
    /// The number of encrypted entries.
    pub encrypted: u64,
    /// The number of files by the name of their method.
    pub methods: BTreeMap<String, u64>,
}

impl Description {
    pub(crate) fn new(format: Format, file_bytes: u64) -> Description {
        Description {
            format,
            file_bytes,
            content_bytes: None,
            parts: None,
            skipped_frames: 0,
            blocks: None,
            block_bytes_max: None,
            window_bytes: None,
            checks: Vec::new(),
            name: None,
            modified: None,
            last_member_bytes: None,
            zip: None,
        }
    }

    pub(crate) fn add_check(&mut self, check: &'static str) {
        if !self.checks.contains(&check) {
            self.checks.push(check);
        }
    }

    pub(crate) fn add_part(&mut self, content_bytes: Option<u64>) {
        self.parts = Some(self.parts.unwrap_or(0).saturating_add(1));
        self.content_bytes = match (self.content_bytes, content_bytes) {
            (Some(sum), Some(more)) => Some(sum.saturating_add(more)),
            _ => None,
        };
    }
}
