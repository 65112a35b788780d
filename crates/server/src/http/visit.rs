//! Which archive a request is about.

use std::sync::Arc;

use refrain::Archive;

use super::listing::link_to;
use super::shared::Shared;
use super::target::Target;
use crate::archives::{OpenedArchive, split_name};
use crate::error::Result;
use crate::tree::Tree;

/// An archive that a request is about, held until it is answered.
pub(super) struct Visit<'a> {
    opened: Arc<OpenedArchive>,
    shared: &'a Shared,
    /// The name of the archive, if it has one.
    name: Vec<u8>,
    /// What addresses in the archive begin with: nothing, or a slash and the name.
    pub base: String,
    /// How the tree calls a member without a name.
    unnamed: Vec<u8>,
}

/// Where a path leads.
pub(super) enum Way<'a> {
    /// To the list of archives.
    List,
    /// Into an archive; the target is a path in it.
    Archive(Visit<'a>, Target),
    /// To an archive, but without the slash at the end.
    WithoutSlash,
    /// To no archive.
    Nowhere,
}

/// Follows a path to its archive.
///
/// # Errors
/// If the archive cannot be opened.
pub(super) fn follow<'a>(shared: &'a Shared, target: &Target) -> Result<Way<'a>> {
    if let Some(opened) = shared.archives.only() {
        let visit = Visit {
            opened,
            shared,
            name: vec![],
            base: String::new(),
            unnamed: shared.settings.tree.unnamed.clone(),
        };
        return Ok(Way::Archive(visit, target.clone()));
    }
    if target.path.is_empty() {
        return Ok(Way::List);
    }
    let (name, rest) = split_name(&target.path);
    let Some(opened) = shared.archives.get(name)? else {
        return Ok(Way::Nowhere);
    };
    let Some(rest) = rest else {
        return Ok(Way::WithoutSlash);
    };
    let visit = Visit {
        opened,
        shared,
        name: name.to_vec(),
        base: link_to(name),
        unnamed: name.to_vec(),
    };
    let inside = Target {
        path: rest.to_vec(),
        query: target.query.clone(),
    };
    Ok(Way::Archive(visit, inside))
}

impl Visit<'_> {
    pub(super) fn archive(&self) -> &Arc<Archive> {
        self.opened.service.archive()
    }

    pub(super) fn opened(&self) -> &OpenedArchive {
        &self.opened
    }

    /// The members and entries.
    ///
    /// # Errors
    /// As [`Tree::open`].
    pub(super) fn tree(&self) -> Result<&Tree> {
        let shared = self.shared;
        (self.opened).tree(&shared.settings.tree, &self.unnamed, &shared.tree_memory)
    }

    /// How the tree calls a member without a name.
    pub(super) fn unnamed(&self) -> &[u8] {
        &self.unnamed
    }

    /// The path of a directory of the archive as it is shown: from the root of the service.
    pub(super) fn shown(&self, path: &[u8]) -> Vec<u8> {
        if self.name.is_empty() {
            [b"/", path].concat()
        } else {
            [b"/", &self.name[..], b"/", path].concat()
        }
    }

    /// Whether another archive may have this name later.
    pub(super) fn may_change(&self) -> bool {
        !self.name.is_empty()
    }
}
