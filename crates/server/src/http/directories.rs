//! Directory pages: the members, and the entries below them.

use super::exchange::{Exchange, Served};
use super::listing::{ListFormat, ListedName, Listing, Place};
use super::page::PageError;
use super::route::directory_member;
use super::target::percent_encoded;
use super::visit::Visit;
use crate::error::{Error, Result};
use crate::statistics::Operation;
use crate::tree::{Child, FileContent, NodeId};
use refrain::EntryKind;

/// How long caches may keep a page. Pages have no tag.
const CACHE_CONTROL: &str = "public, max-age=60";

/// Sends the page of a directory, whose path ends with a slash.
pub(super) fn directory(
    exchange: &mut Exchange<'_, '_>,
    visit: &Visit<'_>,
    node: NodeId,
    path: &[u8],
    tar_above: Option<usize>,
) -> Served {
    let format = ListFormat::from_accept(exchange.head.accept.as_deref());
    let tree = match visit.tree() {
        Ok(tree) => tree,
        Err(error) => return exchange.failed(Operation::HttpPage, &error),
    };
    let shown = visit.shown(path);
    let shared = exchange.shared;
    // Directories above members belong to no member.
    let above = (path, tar_above.is_none());
    let place = Place {
        archive: &shared.settings.archive_name,
        path: &shown,
        tar_above,
    };
    exchange.page(format.content_type(), CACHE_CONTROL, |page| {
        let mut listing = Listing::begin(page, format, &place)?;
        let is_directory = |child: &Child<'_>| child.kind == EntryKind::Directory;
        // For people, directories come first. Programs get all names in order in one pass.
        let passes: &[&dyn Fn(&Child<'_>) -> bool] = match format {
            ListFormat::Json => &[&|_| true],
            ListFormat::Html => &[&is_directory, &|child| !is_directory(child)],
        };
        for is_in_pass in passes {
            let mut failure = None;
            let listed = tree.children(node, 0, &mut |child| {
                if is_in_pass(&child) {
                    let sent = row_of(visit, above, &child).map_err(PageError::from);
                    let sent = sent.and_then(|row| listing.row(&row));
                    failure = sent.err();
                }
                failure.is_none()
            });
            match failure {
                Some(failure) => return Err(failure),
                None => listed?,
            }
        }
        listing.end()
    })
}

/// Sends the list of the archives, which opens none of them.
pub(super) fn archives(exchange: &mut Exchange<'_, '_>) -> Served {
    let format = ListFormat::from_accept(exchange.head.accept.as_deref());
    let shared = exchange.shared;
    let place = Place {
        archive: &shared.settings.archive_name,
        path: b"/",
        tar_above: None,
    };
    exchange.page(format.content_type(), "no-cache", |page| {
        let mut listing = Listing::begin(page, format, &place)?;
        for archive in shared.archives.list() {
            listing.row(&ListedName {
                name: &archive.name,
                kind: "directory",
                link: format!("{}/", percent_encoded(&archive.name)),
                size_bytes: archive.size_bytes,
                modified: archive.modified,
                link_target: None,
                is_tar: false,
            })?;
        }
        listing.end()
    })
}

/// The row of a child of the directory `above`, which may be outside of all members.
fn row_of<'a>(
    visit: &Visit<'_>,
    (above, is_outside): (&[u8], bool),
    child: &Child<'a>,
) -> Result<ListedName<'a>> {
    let tree = visit.tree()?;
    let slash = match child.kind {
        EntryKind::Directory => "/",
        _ => "",
    };
    let mut row = ListedName {
        name: child.name,
        kind: kind_name(child.kind),
        link: format!("{}{slash}", percent_encoded(child.name)),
        size_bytes: None,
        modified: None,
        link_target: None,
        is_tar: false,
    };
    if is_outside && child.kind == EntryKind::Directory {
        let path = [above, child.name].concat();
        row.is_tar = directory_member(visit, &path)?.is_some();
    }
    // Directories implied by a path and members that are files have no entry.
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
        EntryKind::File
        | EntryKind::Hardlink
        | EntryKind::Other
        | EntryKind::Raw
        | EntryKind::Removed => "file",
    }
}

impl From<Error> for PageError {
    fn from(error: Error) -> PageError {
        PageError::Archive(error)
    }
}
