//! Restores archives, whole or what is left of them, to any targets.

use refrain::{Damage, DamagedFile, Input, NotedProblems, Targets, Watch, extract, recover};

use crate::failure::Result;
use crate::numbers::{REFRAIN_OK, REFRAIN_WITH_EXCEPTIONS};
use crate::settings::{Damaged, Settings};

/// What a call wrote.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    pub content_bytes: u64,
    pub archive_bytes: u64,
    /// Files that are missing, changed or damaged, and the first of them.
    pub exceptions: u64,
    pub first_exception: Option<String>,
}

impl Done {
    /// The number that the call returns.
    pub(crate) fn number(&self) -> i32 {
        match &self.first_exception {
            None if self.exceptions == 0 => REFRAIN_OK,
            _ => REFRAIN_WITH_EXCEPTIONS,
        }
    }
}

/// Restores everything or, as the settings say, what is intact.
pub(crate) fn restore_all(
    input: impl Into<Input>,
    targets: &mut dyn Targets,
    settings: &Settings,
    watch: &dyn Watch,
) -> Result<Done> {
    let options = settings.read_options();
    let keeps_broken = settings.damaged == Damaged::Keep;
    let watch = NotedProblems::new(watch);
    let (summary, damage) = match settings.damaged {
        Damaged::Refuse => (
            extract(input, targets, &options, &watch)?,
            Damage::default(),
        ),
        Damaged::Omit | Damaged::Keep => recover(input, targets, keeps_broken, &options, &watch)?,
    };
    // Other programs' formats have no damage, but files that cannot be read.
    let (problems, first) = watch.into_problems();
    Ok(Done {
        content_bytes: summary.content_bytes,
        archive_bytes: summary.archive_bytes,
        exceptions: damage.file_count + damage.incomplete_lists + problems,
        first_exception: first_damage(&damage).or_else(|| first.first().map(ToString::to_string)),
    })
}

/// The first damaged file; of an archive that is damaged elsewhere that it is.
fn first_damage(damage: &Damage) -> Option<String> {
    let text = |file: &DamagedFile| {
        let name = String::from_utf8_lossy(file.path.as_ref().unwrap_or(&file.member_name));
        let name = if name.is_empty() { "the content" } else { &name };
        let how = if file.is_kept { "damaged, and kept" } else { "damaged" };
        format!("{name}: {how}")
    };
    let first = damage.files.first().map(text);
    let text = match damage.incomplete_lists {
        0 => "the archive is damaged",
        _ => "the archive is damaged: files are lost with their names",
    };
    first.or_else(|| (!damage.is_none()).then(|| text.to_owned()))
}
