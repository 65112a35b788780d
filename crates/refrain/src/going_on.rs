//! Records what an extraction that continues after damage meets.

use refrain_pool::Lock;
use refrain_storage::Source;

use crate::archive_info::Member;
use crate::damage::{Damage, DamagedFile, DamagedPlace};
use crate::error::Result;
use crate::options::ReadOptions;
use crate::read::native::scan::lost_places_of;
use crate::read::tree::recovery::Recovery;
use crate::store::frames::limits_for;
use crate::targets::{Target, Targets};

/// An extraction that continues after damage.
pub(crate) struct GoingOn {
    keep_broken: bool,
    damage: Lock<Damage>,
}

impl GoingOn {
    pub(crate) fn new(keep_broken: bool) -> GoingOn {
        GoingOn {
            keep_broken,
            damage: Lock::default(),
        }
    }

    /// Whether to deliver files with missing parts too.
    pub(crate) fn keeps_broken(&self) -> bool {
        self.keep_broken
    }

    /// For a pass over a member.
    pub(crate) fn recovery<'a>(&'a self, member: usize, member_name: &'a [u8]) -> Recovery<'a> {
        Recovery {
            keep_broken: self.keep_broken,
            damage: &self.damage,
            member,
            member_name,
        }
    }

    pub(crate) fn add_file(&self, file: DamagedFile) {
        self.damage.lock().add_file(file);
    }

    /// Takes back the file added last, if it is a member itself.
    pub(crate) fn take_file(&self) -> Option<DamagedFile> {
        let mut damage = self.damage.lock();
        let file = damage.files.pop_if(|file| file.path.is_none());
        if file.is_some() {
            damage.file_count -= 1;
        }
        file
    }

    /// What was lost so far, as a number that grows with every loss.
    pub(crate) fn losses(&self) -> u64 {
        let damage = self.damage.lock();
        damage.file_count + damage.incomplete_lists
    }

    /// Adds a file's damaged places. Returns whether there are any.
    pub(crate) fn add_places_of(&self, source: &dyn Source, options: &ReadOptions) -> Result<bool> {
        let places = lost_places_of(source, &limits_for(options.memory_bytes))?;
        let found = !places.is_empty();
        self.damage.lock().add_places(places);
        Ok(found)
    }

    /// Adds places found by reads.
    pub(crate) fn add_places(&self, places: Vec<DamagedPlace>) {
        self.damage.lock().add_places(places);
    }

    pub(crate) fn into_damage(self) -> Damage {
        std::mem::take(&mut *self.damage.lock())
    }
}

/// Closes a member with the file recorded last.
pub(crate) fn close_broken(
    targets: &mut dyn Targets,
    member: &Member,
    target: Target,
    going_on: &GoingOn,
) -> Result<()> {
    let Some(mut file) = going_on.take_file() else {
        return targets.close(member, target);
    };
    let closed = targets.close_broken(member, target, &mut file);
    going_on.add_file(file);
    closed
}
