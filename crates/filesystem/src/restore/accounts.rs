//! Translates names of users and groups to ids of this machine.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use refrain_pool::Lock;

use refrain_entries::Owner;

/// The ids of an owner on this machine; `None` for a number that is not a valid id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ids {
    pub(super) user: Option<u32>,
    pub(super) group: Option<u32>,
}

/// How many answers are remembered: a forged tree may have millions of owners.
const KNOWN_MAX: usize = 1 << 12;

/// Looks owners up and remembers the answers: a tree has few owners and many entries.
#[derive(Debug)]
pub(super) struct Accounts {
    numeric: bool,
    known: Lock<HashMap<Arc<Owner>, Ids>>,
}

impl Accounts {
    /// If `numeric`, names are ignored.
    pub(super) fn new(numeric: bool) -> Accounts {
        Accounts {
            numeric,
            known: Lock::default(),
        }
    }

    /// The ids of an owner: by its names if they exist on this machine, else its numbers.
    pub(super) fn ids(&self, owner: &Arc<Owner>) -> Ids {
        if let Some(ids) = self.known.lock().get(owner) {
            return *ids;
        }
        // The lock is not held: looking up may ask a server.
        let ids = self.look_up(owner);
        let mut known = self.known.lock();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(Arc::clone(owner), ids);
        ids
    }

    fn look_up(&self, owner: &Owner) -> Ids {
        let by_name = |name: &[u8], find: fn(&OsStr) -> Option<u32>| {
            // A name with NUL exists nowhere.
            let usable = !self.numeric && !name.is_empty() && !name.contains(&0);
            usable.then(|| find(OsStr::from_bytes(name))).flatten()
        };
        Ids {
            user: by_name(&owner.user, user_id).or_else(|| id(owner.uid)),
            group: by_name(&owner.group, group_id).or_else(|| id(owner.gid)),
        }
    }
}

fn user_id(name: &OsStr) -> Option<u32> {
    uzers::get_user_by_name(name).map(|user| user.uid())
}

fn group_id(name: &OsStr) -> Option<u32> {
    uzers::get_group_by_name(name).map(|group| group.gid())
}

/// The system takes the highest number as "no change", so it is not an id.
fn id(number: u64) -> Option<u32> {
    u32::try_from(number).ok().filter(|id| *id != u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(uid: u64, gid: u64, user: &str, group: &str) -> Arc<Owner> {
        Arc::new(Owner {
            uid,
            gid,
            user: user.as_bytes().to_vec(),
            group: group.as_bytes().to_vec(),
        })
    }

    #[test]
    fn names_win_over_numbers_unless_numeric() {
        let ids = |user, group| Ids { user, group };
        let foreign = owner(4242, 4343, "root", "no such group, surely");
        for _ in 0..2 {
            let accounts = Accounts::new(false);
            assert_eq!(accounts.ids(&foreign), ids(Some(0), Some(4343)));
            assert_eq!(accounts.ids(&foreign), ids(Some(0), Some(4343)));
        }
        let accounts = Accounts::new(true);
        assert_eq!(accounts.ids(&foreign), ids(Some(4242), Some(4343)));
    }

    #[test]
    fn numbers_that_no_id_can_have_are_refused() {
        let accounts = Accounts::new(false);
        let ids = accounts.ids(&owner(u64::from(u32::MAX), 1 << 32, "nul\0", ""));
        assert_eq!((ids.user, ids.group), (None, None));
    }
}
