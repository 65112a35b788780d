//! How a tree is opened.

/// How a [`Tree`](super::Tree) is opened.
#[derive(Debug, Clone)]
pub struct TreeOptions {
    /// The memory for frames of entries, in bytes. One frame is held in any case.
    pub frame_bytes: usize,
    /// The memory for tables in bytes: names of members, paths of tar members.
    pub table_bytes: usize,
    /// The name of a member without one, as that of an lrzip archive.
    pub unnamed: Vec<u8>,
}

impl Default for TreeOptions {
    fn default() -> Self {
        TreeOptions {
            frame_bytes: 32 << 20,
            table_bytes: 64 << 20,
            unnamed: b"content".to_vec(),
        }
    }
}
