//! Files of other formats, read like archives with one member.
//!
//! | file | what |
//! |---|---|
//! | `content` | the decoded content, counted and limited |
//! | `blocks` | bzip2 files, whose blocks are decoded in parallel |
//! | `pieces` | the content in pieces, decoded ahead of their delivery |
//! | `range` | a range of the content |
//! | `tar_stream` | the entries of a compressed tar stream, and their data |
//! | `tar` | lists, reads and restores such entries |
//! | `zip` | zip files |
//! | `archive` | a file as an opened archive |

pub(crate) mod archive;
pub(crate) mod blocks;
pub(crate) mod content;
pub(crate) mod pieces;
pub(crate) mod range;
pub(crate) mod tar;
pub(crate) mod tar_stream;
pub(crate) mod zip;
