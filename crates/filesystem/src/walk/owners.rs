//! The names of users and groups.
//!
//! They are read from `/etc/passwd` and `/etc/group`, each once. Users known only to a name service
//! (LDAP, SSSD) have no name here: their entries have just the number.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use refrain_entries::Owner;

const USERS_FILE: &str = "/etc/passwd";
const GROUPS_FILE: &str = "/etc/group";

/// The owners seen so far, shared by their entries.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    names: Option<OwnerNames>,
    known: BTreeMap<(u32, u32), Arc<Owner>>,
    /// Most entries have the same owner as the one before.
    last: Option<Arc<Owner>>,
}

impl Owners {
    pub(crate) fn get(&mut self, uid: u32, gid: u32) -> Arc<Owner> {
        let is_same = |owner: &&Arc<Owner>| owner.uid == uid.into() && owner.gid == gid.into();
        if let Some(owner) = self.last.as_ref().filter(is_same) {
            return owner.clone();
        }
        let names = self.names.get_or_insert_with(OwnerNames::from_system);
        let owner = self.known.entry((uid, gid));
        let owner = owner.or_insert_with(|| Arc::new(names.owner(uid, gid)));
        self.last = Some(owner.clone());
        owner.clone()
    }
}

/// The names of users and groups by id.
#[derive(Debug, Default)]
pub(crate) struct OwnerNames {
    users: BTreeMap<u32, Vec<u8>>,
    groups: BTreeMap<u32, Vec<u8>>,
}

impl OwnerNames {
    /// Names from this system; empty where a file cannot be read.
    pub(crate) fn from_system() -> OwnerNames {
        let read = |path| std::fs::read(Path::new(path)).unwrap_or_default();
        OwnerNames {
            users: parse_names(&read(USERS_FILE)),
            groups: parse_names(&read(GROUPS_FILE)),
        }
    }

    pub(crate) fn owner(&self, uid: u32, gid: u32) -> Owner {
        Owner {
            uid: uid.into(),
            gid: gid.into(),
            user: self.users.get(&uid).cloned().unwrap_or_default(),
            group: self.groups.get(&gid).cloned().unwrap_or_default(),
        }
    }
}

/// Parses lines of the form `name:password:id:…`. The first line with an id wins, as in the C
/// library; other lines are ignored.
fn parse_names(text: &[u8]) -> BTreeMap<u32, Vec<u8>> {
    let mut names = BTreeMap::new();
    for line in text.split(|byte| *byte == b'\n') {
        let mut fields = line.split(|byte| *byte == b':');
        let (name, id) = (fields.next().unwrap_or_default(), fields.nth(1));
        let id = id.and_then(|id| std::str::from_utf8(id).ok()?.parse().ok());
        if let (false, Some(id)) = (name.is_empty(), id) {
            names.entry(id).or_insert_with(|| name.to_vec());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_well_formed_lines_and_the_first_of_an_id_wins() {
        let text =
            b"root:x:0:0::/root:/bin/sh\n\n# c\ntoor:x:0:0\n:x:5:\nb\xff:*:7\nx:y:-1:\n+::::";
        let names = parse_names(text);
        assert_eq!(names.len(), 2);
        assert_eq!((&*names[&0], &*names[&7]), (&b"root"[..], &b"b\xff"[..]));
    }

    #[test]
    fn owners_are_shared_and_unknown_ids_have_no_name() {
        let mut owners = Owners::default();
        let (root, other) = (owners.get(0, 0), owners.get(4_000_000_000, 4_000_000_001));
        assert!(Arc::ptr_eq(&root, &owners.get(0, 0)));
        assert!(Arc::ptr_eq(
            &other,
            &owners.get(4_000_000_000, 4_000_000_001)
        ));
        assert_eq!((other.uid, other.gid), (4_000_000_000, 4_000_000_001));
        assert!(other.user.is_empty() && other.group.is_empty());
    }
}
