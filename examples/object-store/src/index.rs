//! The list of an archive's files, by the paths of their objects.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use object_store::path::{Path, PathPart};
use object_store::{ListResult, ObjectMeta};
use refrain::{Archive, Entry, EntryKind, MemberKind, Timestamp};

/// How many objects [`Index::below`] returns at once.
const PIECE_OBJECTS: usize = 1000;

/// Where an object is in the archive.
#[derive(Clone)]
pub(crate) struct Object {
    /// The number of the member.
    pub member: usize,
    /// The file in a directory or tar member.
    pub entry: Option<Arc<Entry>>,
    pub size_bytes: u64,
    pub modified: Option<Timestamp>,
}

/// All objects of an archive.
pub(crate) struct Index {
    pub objects: BTreeMap<Path, Object>,
    /// The archive's root hash: as nothing in an archive changes without it, it is every object's
    /// tag.
    tag: Option<String>,
}

impl Index {
    pub(crate) fn new(archive: &Archive) -> refrain::Result<Self> {
        let mut objects = BTreeMap::new();
        let members = archive.members()?;
        for (number, member) in members.iter().enumerate() {
            let name = if members.len() == 1 { b"" } else { &member.name[..] };
            if matches!(member.kind, MemberKind::Tree | MemberKind::Tar) {
                add_entries(archive, number, name, &mut objects)?;
            } else {
                let object = Object {
                    member: number,
                    entry: None,
                    size_bytes: member.content_bytes,
                    modified: member.modified,
                };
                objects.insert(location(&member.name, b""), object);
            }
        }
        let tag = archive
            .root_hash()
            .map(|hash| hash.iter().map(|b| format!("{b:02x}")).collect());
        Ok(Self { objects, tag })
    }

    pub(crate) fn meta(&self, location: &Path, object: &Object) -> ObjectMeta {
        ObjectMeta {
            location: location.clone(),
            last_modified: object.modified.map_or(DateTime::UNIX_EPOCH, time),
            size: object.size_bytes,
            e_tag: self.tag.clone(),
            version: None,
        }
    }

    /// The next objects after `last` in the directory `prefix` and those below it.
    pub(crate) fn below(&self, prefix: &Path, last: Option<&Path>) -> Vec<ObjectMeta> {
        self.all_below(prefix, last)
            .take(PIECE_OBJECTS)
            .map(|(location, object)| self.meta(location, object))
            .collect()
    }

    /// The objects of the directory `prefix`, and the directories in it.
    pub(crate) fn children(&self, prefix: &Path) -> ListResult {
        let mut objects = vec![];
        let mut directories = BTreeSet::new();
        for (location, object) in self.all_below(prefix, None) {
            let mut names = location.prefix_match(prefix).into_iter().flatten();
            match (names.next(), names.next()) {
                (Some(directory), Some(_)) => {
                    directories.insert(prefix.clone().join(directory));
                }
                _ => objects.push(self.meta(location, object)),
            }
        }
        ListResult {
            objects,
            common_prefixes: directories.into_iter().collect(),
            extensions: Default::default(),
        }
    }

    fn all_below(
        &self,
        prefix: &Path,
        last: Option<&Path>,
    ) -> impl Iterator<Item = (&Path, &Object)> {
        // `d.txt` and `d` are before what is in the directory `d`.
        let from = last.map_or(Bound::Included(prefix), Bound::Excluded);
        let spelled = self.objects.range((from, Bound::Unbounded));
        spelled
            .take_while(move |(location, _)| location.as_ref().starts_with(prefix.as_ref()))
            .filter(move |(location, _)| {
                location
                    .prefix_match(prefix)
                    .is_some_and(|mut names| names.next().is_some())
            })
    }
}

/// Adds the files of a directory or tar member. Of several with one path, as tar streams may have,
/// the last one counts.
fn add_entries(
    archive: &Archive,
    member: usize,
    name: &[u8],
    objects: &mut BTreeMap<Path, Object>,
) -> refrain::Result<()> {
    let mut files = HashMap::new();
    let mut links = vec![];
    archive.for_each_entry(member, &mut |entry| {
        match (entry.kind, &entry.link_target) {
            (EntryKind::File, _) => {
                files.insert(entry.path.clone(), Arc::new(entry.clone()));
            }
            (EntryKind::Hardlink, Some(target)) => links.push((entry.path.clone(), target.clone())),
            _ => {}
        }
        Ok(())
    })?;
    // A link may lead to another one; both follow their target.
    for (path, target) in links {
        if let Some(file) = files.get(&target).cloned() {
            files.insert(path, file);
        }
    }
    objects.extend(files.into_iter().map(|(path, entry)| {
        let object = Object {
            member,
            size_bytes: entry.size_bytes,
            modified: Some(entry.modified),
            entry: Some(entry),
        };
        (location(name, &path), object)
    }));
    Ok(())
}

/// The path of an object. Tar streams have names such as `./a` and `/a`.
fn location(member: &[u8], path: &[u8]) -> Path {
    let names = member
        .split(|byte| *byte == b'/')
        .chain(path.split(|byte| *byte == b'/'));
    let names = names.filter(|name| !name.is_empty() && *name != b".");
    names.map(PathPart::from).collect()
}

fn time(modified: Timestamp) -> DateTime<Utc> {
    DateTime::from_timestamp(modified.seconds, modified.nanoseconds).unwrap_or_default()
}
