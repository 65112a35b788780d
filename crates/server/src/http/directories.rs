//! Pages of directories: the members, and the entries below them.

use super::connection::Connection;
use super::exchange::{Exchange, Served};
use super::listing::{ListFormat, Listing, Row};
use super::page::PageError;
use super::target::percent_encoded;
use crate::error::{Error, Result};
use crate::tree::{Child, FileContent, NodeId, Tree};
use refrain::EntryKind;

/// How long caches may keep a page. Pages have no tag.
const CACHE_CONTROL: &str = "public, max-age=60";

/// Sends the page of a directory, whose path ends with a slash.
pub(super) fn directory<C: Connection>(
    exchange: &mut Exchange<'_, '_, C>,
    node: NodeId,
    path: &[u8],
    is_member: bool,
) -> Served {
    let format = ListFormat::of(exchange.head.accept.as_deref());
    let tree = &exchange.shared.tree;
    let shown = [b"/", path].concat();
    let tar_link = is_member.then_some("?tar");
    exchange.page(format.content_type(), CACHE_CONTROL, |page| {
        let mut listing = Listing::begin(page, format, &shown, tar_link)?;
        let mut failure = None;
        let listed = tree.children(node, 0, &mut |child| {
            let sent = row_of(tree, &child).map_err(PageError::from);
            let sent = sent.and_then(|row| listing.row(&row));
            failure = sent.err();
            failure.is_none()
        });
        match failure {
            Some(failure) => return Err(failure),
            None => listed?,
        }
        listing.end()
    })
}

/// The row of a child.
fn row_of<'a>(tree: &Tree, child: &Child<'a>) -> Result<Row<'a>> {
    let slash = match child.kind {
        EntryKind::Directory => "/",
        _ => "",
    };
    let mut row = Row {
        name: child.name,
        kind: kind_name(child.kind),
        link: format!("{}{slash}", percent_encoded(child.name)),
        size_bytes: None,
        modified: None,
        link_target: None,
    };
    // A directory that only a path implies has no entry, and neither has a member that is a file.
    if let Some(entry) = tree.entry(child.node)? {
        row.modified = Some(entry.modified);
        row.size_bytes = entry.kind.has_data().then_some(entry.size_bytes);
        row.link_target = entry.link_target;
    } else if let Some(FileContent::Member(number)) = tree.content(child.node)? {
        let member = tree.archive().member(number)?;
        row.modified = member.modified;
        row.size_bytes = Some(member.content_bytes);
    }
    Ok(row)
}

fn kind_name(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Directory => "directory",
        EntryKind::Symlink => "symlink",
        EntryKind::CharacterDevice => "character device",
        EntryKind::BlockDevice => "block device",
        EntryKind::Fifo => "pipe",
        EntryKind::File | EntryKind::Hardlink | EntryKind::Other | EntryKind::Raw => "file",
    }
}

impl From<Error> for PageError {
    fn from(error: Error) -> PageError {
        PageError::Archive(error)
    }
}
