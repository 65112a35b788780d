//! Extracts an archive opened for random access, member by member, each in its most efficient
//! order.

use std::io;
use std::sync::Arc;

use refrain_protect::{DigestHasher, MemberHasher};
use refrain_storage::{ReadBack, Sink, Source, in_zero_pieces};

use crate::archive::Archive;
use crate::archive_info::{Member, MemberKind};
use crate::damage::DamagedFile;
use crate::digests::hashers;
use crate::error::{Error, ErrorKind, Result};
use crate::going_on::{GoingOn, close_broken};
use crate::options::ReadOptions;
use crate::progress::{MemberWatch, Watch};
use crate::read::content_limit::{ContentLimit, ContentMeter};
use crate::read::native::frame_check::check_frames;
use crate::read::tree::recovery::Recovery;
use crate::store::frames::{ArchiveFeed, limits_for};
use crate::targets::{ExtractSummary, Target, Targets};
use crate::verify::verify;

/// A member that was begun and must be completed.
pub(crate) struct Begun {
    /// Its number. Earlier members were closed.
    pub member: usize,
    /// Its target, and how much of its content is there; `None` if it was not opened.
    pub target: Option<(Target, u64)>,
}

/// Extracts members, starting with the first or the one that was begun.
///
/// # Errors
/// From reading, unless the extraction continues after damage; from `targets`.
pub(crate) fn extract_members(
    archive: &Archive,
    targets: &mut dyn Targets,
    going_on: Option<(&GoingOn, Begun)>,
    options: &ReadOptions,
    watch: &dyn Watch,
) -> Result<ExtractSummary> {
    let (going_on, mut begun) = going_on.unzip();
    let first = begun.as_ref().map_or(0, |begun| begun.member);
    let is_part = targets.is_part();
    let source = &archive.source;
    let mut extraction = MemberExtraction {
        archive,
        source,
        targets,
        going_on,
        options,
        watch,
        meter: ContentMeter::new(ContentLimit::new(options, source.size_bytes()?)),
        is_verified: archive.is_scanned(),
        // Of an archive with generations only one is read.
        is_checked: archive.is_scanned() || archive.opened.generations().is_some(),
        is_part,
    };
    let (mut entries, mut content_bytes) = (0, 0_u64);
    for number in 0..archive.member_count() {
        let member = archive.member(number)?;
        content_bytes = content_bytes.saturating_add(member.content_bytes);
        entries += member.entries;
        if number >= first {
            let begun = begun.take().and_then(|begun| begun.target);
            extraction.member(number, &member, begun)?;
            if extraction.ends_after_damage() {
                break;
            }
        }
    }
    extraction.finish()?;
    Ok(ExtractSummary {
        content_bytes,
        archive_bytes: source.size_bytes()?,
        members: archive.member_count(),
        entries,
    })
}

struct MemberExtraction<'a> {
    archive: &'a Archive,
    source: &'a Arc<dyn Source>,
    targets: &'a mut dyn Targets,
    going_on: Option<&'a GoingOn>,
    options: &'a ReadOptions,
    watch: &'a dyn Watch,
    meter: ContentMeter,
    /// Whether all content was compared with its hash, or cannot be.
    is_verified: bool,
    /// Whether all frames were checked.
    is_checked: bool,
    /// Whether something was not requested.
    is_part: bool,
}

impl MemberExtraction<'_> {
    /// Extracts a member, which may have been delivered in part.
    fn member(
        &mut self,
        number: usize,
        member: &Member,
        begun: Option<(Target, u64)>,
    ) -> Result<()> {
        let mut target = match begun {
            Some((Target::Sink(inner), delivered_bytes)) => Target::Sink(Box::new(ResumedSink {
                inner,
                skip_bytes: delivered_bytes,
            })),
            Some((target, _)) => target,
            None => self.targets.open(&member.start(number))?,
        };
        let losses = self.losses();
        let recovery = self.going_on.map(|on| on.recovery(number, &member.name));
        let delivered = self.deliver(number, member, &mut target, recovery.as_ref());
        let is_compared = match (delivered, self.going_on) {
            (Err(error), Some(going_on)) if error.kind == ErrorKind::Damaged => {
                // Nothing of it is proven.
                going_on.add_file(unproven(number, member));
                return close_broken(self.targets, member, target, going_on);
            }
            (delivered, _) => delivered.map_err(|error| in_member(error, member))?,
        };
        self.is_part |= matches!(&target, Target::Skipped)
            || matches!(&target, Target::Tree(tree) if tree.selection.is_some());
        if let Some(going_on) = self.going_on.filter(|on| on.losses() > losses) {
            self.is_verified = true;
            return match target {
                Target::Tree(_) => self.targets.close(member, target),
                target => close_broken(self.targets, member, target, going_on),
            };
        }
        if !is_compared && !self.is_verified {
            // There was too little memory to hash content read in another order.
            let verified = verify(self.source.clone(), self.options, self.watch);
            self.unless_damaged_elsewhere(verified.map(|_| ()))?;
            self.is_verified = true;
        }
        let is_read = !matches!(target, Target::Skipped);
        let is_all = is_read && !self.is_part;
        if is_all && self.going_on.is_none() && !self.is_verified && !self.is_checked {
            self.check_frames()?;
        }
        self.targets.close(member, target)
    }

    /// Writes a member. Returns whether its requested content was compared with its hash.
    fn deliver(
        &self,
        number: usize,
        member: &Member,
        target: &mut Target,
        recovery: Option<&Recovery<'_>>,
    ) -> Result<bool> {
        let (archive, meter) = (self.archive, &self.meter);
        let watch = &MemberWatch {
            inner: self.watch,
            number,
            name: match archive.member_count() {
                1 => b"",
                _ => &member.name,
            },
        };
        let sink: Option<&mut dyn Sink> = match target {
            Target::Tree(tree) => {
                let selection = tree.selection.as_ref();
                let target = (&tree.restore, selection);
                let is_compared =
                    archive.restore_counted(number, target, meter, recovery, watch)?;
                return Ok(is_compared || selection.is_some());
            }
            Target::Sink(sink) => Some(&mut **sink),
            Target::Nowhere => None,
            Target::Skipped => return Ok(true),
        };
        let losses = self.losses();
        let mut checked = CheckedSink::new(member, sink);
        let is_compared = archive.write_counted(number, &mut checked, meter, recovery, watch)?;
        Ok(self.losses() > losses || checked.check()? || is_compared)
    }

    fn losses(&self) -> u64 {
        self.going_on.map_or(0, GoingOn::losses)
    }

    fn check_frames(&mut self) -> Result<()> {
        let feed = ArchiveFeed::Source(self.source.clone());
        let limits = limits_for(self.options.memory_bytes);
        let checked = check_frames(feed, &limits, self.watch);
        self.unless_damaged_elsewhere(checked.map(|_| ()))?;
        self.is_checked = true;
        Ok(())
    }

    /// The error of checking the whole archive, unless the extraction continues and only unneeded
    /// frames are damaged.
    fn unless_damaged_elsewhere(&mut self, checked: Result<()>) -> Result<()> {
        match (checked, self.going_on) {
            (Err(error), Some(going_on)) if error.kind == ErrorKind::Damaged => {
                self.is_verified = true;
                if going_on.add_places_of(&**self.source, self.options)? {
                    Ok(())
                } else {
                    Err(error)
                }
            }
            (checked, _) => checked,
        }
    }

    /// Whether nothing more is delivered because a stream of several members ended at damage.
    fn ends_after_damage(&self) -> bool {
        self.losses() > 0 && self.targets.ends_at_damage()
    }

    /// Finds all damage of an archive if everything was requested.
    fn finish(&mut self) -> Result<()> {
        let Some(going_on) = self.going_on else {
            return Ok(());
        };
        if self.losses() == 0 && !self.is_part && !self.is_verified && !self.is_checked {
            self.check_frames()?;
        }
        let places = self.archive.damaged_places();
        let is_scanned = self.archive.is_scanned();
        going_on.add_places(places);
        if self.losses() > 0 && !self.is_part && !is_scanned {
            going_on.add_places_of(&**self.source, self.options)?;
        }
        Ok(())
    }
}

/// A member whose content contradicts its hash.
fn unproven(number: usize, member: &Member) -> DamagedFile {
    DamagedFile {
        member: number,
        member_name: member.name.clone(),
        path: None,
        size_bytes: member.content_bytes,
        missing: Vec::new(),
        is_kept: false,
        delivered_bytes: member.content_bytes,
    }
}

fn in_member(error: Error, member: &Member) -> Error {
    match error.kind {
        ErrorKind::Damaged => error.in_file(String::from_utf8_lossy(&member.name).into_owned()),
        _ => error,
    }
}

/// What is known about a member when it begins.
/// A sink that compares what is written with a member's hash and digests.
pub(crate) struct CheckedSink<'a> {
    inner: Option<&'a mut dyn Sink>,
    member: &'a Member,
    /// `None` for a directory: what is written is not its content.
    hash: Option<MemberHasher>,
    hashers: Vec<DigestHasher>,
}

impl<'a> CheckedSink<'a> {
    pub(crate) fn new(member: &'a Member, inner: Option<&'a mut dyn Sink>) -> CheckedSink<'a> {
        let is_content = matches!(member.kind, MemberKind::File | MemberKind::Stream);
        let algorithms = member.digests.iter().map(|(algorithm, _)| *algorithm);
        CheckedSink {
            inner,
            member,
            hash: is_content.then(|| member.hasher()),
            hashers: match member.kind {
                MemberKind::Tree => Vec::new(),
                _ => hashers(&algorithms.collect::<Vec<_>>()),
            },
        }
    }

    /// Returns whether the content was compared.
    pub(crate) fn check(self) -> Result<bool> {
        let is_content = self.hash.is_some();
        let name = || String::from_utf8_lossy(&self.member.name).into_owned();
        // Without its end, a member has no hash.
        let is_known = self.member.blake3 != [0; 32];
        if self
            .hash
            .is_some_and(|hash| is_known && hash.value() != self.member.blake3)
        {
            let message = "the content does not match its BLAKE3 hash";
            return Err(Error::damaged(message).in_file(name()));
        }
        let made: Vec<_> = (self.hashers.into_iter())
            .map(|hasher| (hasher.algorithm(), hasher.finish()))
            .collect();
        for (algorithm, value) in &self.member.digests {
            if made
                .iter()
                .any(|(other, made)| other == algorithm && made != value)
            {
                let algorithm = algorithm.name();
                let message = format!("the content does not match its {algorithm} digest");
                return Err(Error::damaged(message).in_file(name()));
            }
        }
        Ok(is_content)
    }
}

impl Sink for CheckedSink<'_> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(hash) = &mut self.hash {
            hash.push_bytes(bytes).map_err(io::Error::other)?;
        }
        self.hashers
            .iter_mut()
            .for_each(|hasher| hasher.update(bytes));
        match &mut self.inner {
            Some(inner) => inner.write_all(bytes),
            None => Ok(()),
        }
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        if let Some(hash) = &mut self.hash {
            hash.push_zeros(length_bytes).map_err(io::Error::other)?;
        }
        for hasher in &mut self.hashers {
            in_zero_pieces(length_bytes, |zeros| {
                hasher.update(zeros);
                Ok::<_, io::Error>(())
            })?;
        }
        match &mut self.inner {
            Some(inner) => inner.write_zeros(length_bytes),
            None => Ok(()),
        }
    }

    fn publish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A sink that already has the first bytes.
struct ResumedSink {
    inner: Box<dyn Sink>,
    skip_bytes: u64,
}

impl Sink for ResumedSink {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let skipped = usize::try_from(self.skip_bytes).unwrap_or(usize::MAX);
        let skipped = skipped.min(bytes.len());
        self.skip_bytes -= skipped as u64;
        match bytes.get(skipped..).unwrap_or_default() {
            [] => Ok(()),
            rest => self.inner.write_all(rest),
        }
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        let skipped = self.skip_bytes.min(length_bytes);
        self.skip_bytes -= skipped;
        self.inner.write_zeros(length_bytes - skipped)
    }

    fn read_back(&self) -> Option<Arc<dyn Source>> {
        self.inner.read_back()
    }

    fn is_stored(&self) -> bool {
        self.inner.is_stored()
    }

    fn read_back_result(&self) -> Option<ReadBack> {
        self.inner.read_back_result()
    }

    fn publish(&mut self) -> io::Result<()> {
        self.inner.publish()
    }
}
