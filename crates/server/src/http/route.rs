//! Which resource a path names.

use refrain::{EntryKind, Member, MemberKind};

use super::internal::{self, Page};
use super::listing::link_to;
use super::response::Status;
use super::target::{Target, parameter};
use super::visit::Visit;
use crate::error::{Error, Result};
use crate::tree::{FileContent, NodeId, Tree};

#[derive(Debug)]
pub(super) enum Resource {
    /// A member or an entry that is a file.
    File(FileContent),
    /// A directory or tar member as a tar stream.
    TarStream(usize, Box<Member>),
    /// The page of a directory.
    Directory {
        node: NodeId,
        /// How many directories up there is a member available as a tar stream.
        tar_above: Option<usize>,
    },
    /// Something without bytes: a device or a pipe.
    Special,
    /// Another address.
    Redirect(Status, String),
    /// Nothing, and why.
    Missing(String),
    Internal(Page),
}

const NOTHING: &str = "the archive has nothing with this name";

/// Finds the resource that a target names.
///
/// # Errors
/// If the archive cannot be read.
pub(super) fn route(visit: &Visit<'_>, target: &Target) -> Result<Resource> {
    let path = target.path.as_slice();
    if let Some(page) = internal::page_of(path) {
        return Ok(Resource::Internal(page));
    }
    if let Some(tar_stream) = tar_stream(visit, target)? {
        return Ok(tar_stream);
    }
    let found = match walk(visit.tree()?, path) {
        Ok(found) => found,
        // A dangling hard link.
        Err(Error::Refused(why)) => return Ok(Resource::Missing(why)),
        Err(error) => return Err(error),
    };
    match found {
        Walk::Found(node) => named(visit, target, node),
        Walk::Symlink { above, link, rest } => {
            Ok(redirect((&visit.base, target), &above, &link, &rest))
        }
        Walk::Missing if path == b"metrics" => Ok(Resource::Internal(Page::Metrics)),
        Walk::Missing => match path.strip_suffix(b".tar") {
            Some(name) => Ok(match directory_member(visit, name)? {
                Some((number, member)) => Resource::TarStream(number, Box::new(member)),
                None => Resource::Missing(NOTHING.into()),
            }),
            None => Ok(Resource::Missing(NOTHING.into())),
        },
    }
}

#[derive(Debug)]
enum Walk {
    Found(NodeId),
    /// Through the symbolic link in the directory `above`; `rest` is below its target.
    Symlink {
        above: Vec<Vec<u8>>,
        link: Vec<u8>,
        rest: Vec<Vec<u8>>,
    },
    Missing,
}

fn walk(tree: &Tree, path: &[u8]) -> Result<Walk> {
    let names: Vec<&[u8]> = path.split(|&byte| byte == b'/').collect();
    let names: Vec<&[u8]> = names.into_iter().filter(|name| !name.is_empty()).collect();
    let mut node = NodeId::ROOT;
    for (depth, name) in names.iter().enumerate() {
        node = match tree.lookup(node, name)? {
            Some(found) => found,
            None => return through_link(tree, node, &names, depth),
        };
    }
    if names.is_empty() {
        Ok(Walk::Found(node))
    } else {
        match through_link(tree, node, &names, names.len())? {
            Walk::Missing => Ok(Walk::Found(node)),
            found => Ok(found),
        }
    }
}

/// The symbolic link at the first `depth` names, if there is one.
fn through_link(tree: &Tree, node: NodeId, names: &[&[u8]], depth: usize) -> Result<Walk> {
    let entry = tree.entry(node)?;
    let entry = entry.filter(|entry| entry.kind == EntryKind::Symlink);
    let Some(link) = entry.and_then(|entry| entry.link_target) else {
        return Ok(Walk::Missing);
    };
    let owned = |names: &[&[u8]]| names.iter().map(|name| name.to_vec()).collect();
    let (above, rest) = names.split_at(depth);
    Ok(Walk::Symlink {
        above: owned(&above[..depth.saturating_sub(1)]),
        link,
        rest: owned(rest),
    })
}

/// Redirects to the target of a symbolic link, if it is in the archive's tree.
fn redirect(
    (base, target): (&str, &Target),
    above: &[Vec<u8>],
    link: &[u8],
    rest: &[Vec<u8>],
) -> Resource {
    let shown = String::from_utf8_lossy(link);
    if link.starts_with(b"/") {
        let text = format!("it is a symbolic link to {shown:?}, which is not in the archive");
        return Resource::Missing(text);
    }
    let mut names: Vec<&[u8]> = above.iter().map(Vec::as_slice).collect();
    let steps = link
        .split(|&byte| byte == b'/')
        .chain(rest.iter().map(Vec::as_slice));
    for step in steps {
        match step {
            b"" | b"." => {}
            b".." if names.pop().is_none() => {
                let text = format!("it is a symbolic link to {shown:?}, outside of the archive");
                return Resource::Missing(text);
            }
            b".." => {}
            name => names.push(name),
        }
    }
    let is_directory = target.path.ends_with(b"/") && !names.is_empty();
    let slash = if is_directory { "/" } else { "" };
    let path = link_to(&names.join(&b'/'));
    Resource::Redirect(
        Status(302),
        format!("{base}{path}{slash}{}", query_of(target)),
    )
}

/// The query with its question mark, if there is one.
pub(super) fn query_of(target: &Target) -> String {
    let is_plain = target.query.iter().all(|byte| byte.is_ascii_graphic());
    if target.query.is_empty() || !is_plain {
        String::new()
    } else {
        format!("?{}", String::from_utf8_lossy(&target.query))
    }
}

/// The tar stream that a path names: a member that was one has it under its own name, others on
/// request. It is sent without a table of the member's paths.
fn tar_stream(visit: &Visit<'_>, target: &Target) -> Result<Option<Resource>> {
    let name = target.path.strip_suffix(b"/").unwrap_or(&target.path);
    let is_wanted = |member: &Member| {
        let has_slash = target.path.ends_with(b"/");
        parameter(&target.query, b"tar").is_some() || (member.kind == MemberKind::Tar && !has_slash)
    };
    let member = directory_member(visit, name)?.filter(|(_, member)| is_wanted(member));
    Ok(member.map(|(number, member)| Resource::TarStream(number, Box::new(member))))
}

fn named(visit: &Visit<'_>, target: &Target, node: NodeId) -> Result<Resource> {
    let tree = visit.tree()?;
    let has_slash = target.path.ends_with(b"/") || target.path.is_empty();
    if let Some(content) = tree.content(node)? {
        return Ok(if has_slash {
            Resource::Missing("it is a file, not a directory".into())
        } else {
            Resource::File(content)
        });
    }
    let entry = tree.entry(node)?;
    if entry.is_some_and(|entry| entry.kind != EntryKind::Directory) {
        return Ok(Resource::Special);
    }
    let name = target.path.strip_suffix(b"/").unwrap_or(&target.path);
    if has_slash {
        let tar_above = tar_above(visit, name)?;
        Ok(Resource::Directory { node, tar_above })
    } else {
        let path = link_to(&target.path);
        let location = format!("{}{path}/{}", visit.base, query_of(target));
        Ok(Resource::Redirect(Status(301), location))
    }
}

/// How many directories up there is a directory or tar member.
fn tar_above(visit: &Visit<'_>, path: &[u8]) -> Result<Option<usize>> {
    let mut path = path;
    let mut up = 0;
    loop {
        if directory_member(visit, path)?.is_some() {
            return Ok(Some(up));
        }
        let Some(slash) = path.iter().rposition(|&byte| byte == b'/') else {
            return Ok(None);
        };
        (path, up) = (&path[..slash], up + 1);
    }
}

pub(super) fn directory_member(visit: &Visit<'_>, name: &[u8]) -> Result<Option<(usize, Member)>> {
    let archive = visit.archive();
    let mut found = if name.is_empty() { None } else { archive.find_member(name)? };
    if found.is_none() && name == visit.unnamed() {
        found = archive.find_member(b"")?;
    }
    let Some(number) = found else {
        return Ok(None);
    };
    let member = archive.member(number)?;
    let has_entries = matches!(member.kind, MemberKind::Tree | MemberKind::Tar);
    Ok(has_entries.then_some((number, member)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(path: &str, above: &[&str], link: &str, rest: &[&str]) -> Option<String> {
        let target = Target {
            path: path.as_bytes().to_vec(),
            query: b"x=1".to_vec(),
        };
        let owned = |names: &[&str]| -> Vec<Vec<u8>> {
            names.iter().map(|name| name.as_bytes().to_vec()).collect()
        };
        match redirect(("", &target), &owned(above), link.as_bytes(), &owned(rest)) {
            Resource::Redirect(_, location) => Some(location),
            _ => None,
        }
    }

    #[test]
    fn symbolic_links_lead_inside_the_archive() {
        let of = |link: &str| location("m/d/l", &["m", "d"], link, &[]);
        assert_eq!(of("a b").as_deref(), Some("/m/d/a%20b?x=1"));
        assert_eq!(of("../x").as_deref(), Some("/m/x?x=1"));
        assert_eq!(of("./../../n//o/.").as_deref(), Some("/n/o?x=1"));
        assert_eq!(of("../.."), Some("/?x=1".into()));
        assert_eq!(of("../../.."), None);
        assert_eq!(of("/etc/passwd"), None);
        let below = location("m/l/f/", &["m"], "d", &["f"]);
        assert_eq!(below.as_deref(), Some("/m/d/f/?x=1"));
    }
}
