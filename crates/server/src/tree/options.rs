//! Options for opening a tree.

/// Options for opening a [`Tree`](super::Tree).
#[derive(Debug, Clone)]
pub struct TreeOptions {
    /// The memory for frames of entries, in bytes. One frame is always held.
    pub frame_bytes: usize,
    /// The memory for tables, in bytes: names of members, paths of tar members.
    pub table_bytes: usize,
    /// The name of a member without one, as in an lrzip archive.
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
