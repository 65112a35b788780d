//! The members and entries of an archive as one tree of files and directories.
//!
//! The root holds the members under their names; a name with slashes leads through directories. A
//! directory or tar member is a directory of its entries, any other member a file. So a path is
//! MEMBER or MEMBER/PATH.
//!
//! A directory's entries ascend by path over frames that the index finds by path. So a node is a
//! position in that list, its number follows from the position, and the children of a directory are
//! found by skipping what is below each of them: this needs no table of entries, however many there
//! are. A bounded cache holds frames in compact form. A tar stream's entries keep their order and
//! spelling of paths, so their first use builds a table of paths, within a memory limit.
//!
//! Names that a directory cannot hold (empty, `.`, `..`) and paths through them do not exist in the
//! tree. Symbolic links are not followed.

mod attributes;
mod frame;
mod frames;
mod generations;
mod links;
mod members;
mod navigation;
mod node;
mod operations;
mod options;
mod paths;
mod position;
mod spelling;
mod table;
#[cfg(test)]
mod tests;
mod view;
mod walk_order;

pub use attributes::Attributes;
pub(crate) use frames::TreeMemory;
pub(crate) use generations::Generations;
pub use node::NodeId;
pub use operations::{Child, FileContent, Tree};
pub use options::TreeOptions;
pub(crate) use view::View;
pub use walk_order::{WalkPosition, WalkedFile};
