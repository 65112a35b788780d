//! The verb merge: several archives become one, with the generations of all.
//!
//! Generation by generation, in the order of their times, the bytes of the store that the new
//! archive lacks pass through the pipeline of `compress`, which finds what they repeat. Content is
//! not decoded: the extents and the lists of entries of each generation are translated. So a merge
//! costs about what the stores of the archives cost, however much content refers to them.

mod members;
mod new_bytes;
mod pieces;
mod prefix;
mod source;
mod store_map;
mod target;
mod trees;

use refrain_format::GenerationInfo;
use refrain_storage::Sink;

use crate::error::{Error, ErrorKind, Result};
use crate::merge::members::Copied;
use crate::merge::prefix::Prefix;
use crate::merge::source::{Opened, in_order};
use crate::merge::target::{MAPS_SHARE, MergeWatch, Target};
use crate::options::{CompressOptions, Level};
use crate::progress::Watch;
use crate::store::envelope::sink::EnvelopeSink;
use crate::tuning::Tuning;

pub use crate::merge::source::MergeSource;
pub use crate::merge::target::MergeSummary;

/// The number of generations of an archive.
const GENERATIONS_MAX: usize = 65_535;

/// Archives that are to be merged. Of a single one, the new archive has what is kept and nothing
/// else, also of blocks that [compacting](crate::Compaction) leaves, being needed in part.
#[must_use]
pub struct Merge {
    archives: Vec<Opened>,
    /// Their generations in the order of the new archive, with the numbers of their archives.
    order: Vec<(usize, GenerationInfo)>,
    /// What is copied as it is.
    prefix: Option<Prefix>,
    level: Option<Level>,
    memory_bytes: u64,
}

impl Merge {
    /// Opens archives and puts their generations in order: by time, but those of one archive in
    /// its own order, even if its clock went back. Those without a time come before others of their
    /// archive. Of equal ones that of the first archive comes first.
    ///
    /// With a level everything is compressed anew. Without one, the level is that of the archive
    /// with the largest store, and generations of one archive that come before all others are
    /// copied as they are.
    ///
    /// # Errors
    /// `Usage` if there is none, no secret opens one, or none has a generation;
    /// `Unsupported` for several archives in one file; `Limit` for too many generations; `Damaged`,
    /// `Io`. The location names the archive.
    pub fn open(
        sources: Vec<MergeSource>,
        level: Option<Level>,
        options: &CompressOptions,
    ) -> Result<Merge> {
        let usage = |text: &str| Err(Error::new(ErrorKind::Usage, text.to_owned()));
        if sources.is_empty() {
            return usage("nothing to merge");
        }
        let (count, threads) = (sources.len() as u64, options.threads);
        let memory_bytes = Tuning::new(options)?.memory_bytes;
        let open = |source: MergeSource| Opened::open(source, memory_bytes, count, threads);
        let archives = sources.into_iter().map(open).collect::<Result<Vec<_>>>()?;
        let order = in_order(&archives);
        if order.is_empty() {
            return usage("none of the archives has a generation");
        }
        if order.len() > GENERATIONS_MAX {
            let text = format!("the archives have {} generations together", order.len());
            return Err(Error::limit(format!(
                "{text}: at most {GENERATIONS_MAX} fit into one"
            )));
        }
        let is_carrying = carries_decoders(&archives, options)?;
        let prefix = match level {
            None => match Prefix::of(&archives, &order, memory_bytes)? {
                Some(prefix) if is_carrying && !prefix.can_carry(order.len())? => None,
                prefix => prefix,
            },
            Some(_) => None,
        };
        Ok(Merge {
            archives,
            order,
            prefix,
            level,
            memory_bytes,
        })
    }

    /// The generations in the order of the new archive, with the numbers of their archives.
    pub fn generations(&self) -> &[(usize, GenerationInfo)] {
        &self.order
    }

    /// The number of the first generation in the new archive, which others follow without a gap: 1,
    /// or 0 for the content of an archive that was not added to.
    #[must_use]
    pub fn first_number(&self) -> u16 {
        let first = self.order.first().filter(|_| self.prefix.is_some());
        first.map_or(1, |(_, row)| row.number)
    }

    /// The bytes of the stores of all archives, at most which pass through the pipeline.
    #[must_use]
    pub fn store_bytes(&self) -> u64 {
        let stores = self.archives.iter().map(|opened| opened.store_bytes);
        stores.fold(0, u64::saturating_add)
    }

    /// Writes the new archive, and publishes `sink`.
    ///
    /// The same archives and options (except `threads`) give the same bytes, unless they are
    /// encrypted. Contents, entries, names, times, tags, hosts and comments are those of the
    /// archives; numbers and root hashes are new, and signatures are left out.
    ///
    /// # Errors
    /// `Usage` if the sink cannot be read back; as [`add`](crate::add()). Then the sink is not
    /// published.
    pub fn run(
        self,
        sink: &mut dyn Sink,
        options: &CompressOptions,
        watch: &dyn Watch,
    ) -> Result<MergeSummary> {
        let Some(encryption) = &options.encryption else {
            return self.write(sink, options, watch);
        };
        let mut sealed = EnvelopeSink::begin(sink, encryption, self.memory_bytes)?;
        let written = self.write(&mut sealed, options, watch)?;
        Ok(MergeSummary {
            archive_bytes: sealed.archive_bytes(),
            ..written
        })
    }

    fn write(
        self,
        sink: &mut dyn Sink,
        options: &CompressOptions,
        watch: &dyn Watch,
    ) -> Result<MergeSummary> {
        let options = &CompressOptions {
            carry_decoders: carries_decoders(&self.archives, options)?,
            ..options.clone()
        };
        let total_bytes = self.order.iter().map(|(_, info)| info.content_bytes);
        let watch = MergeWatch::new(watch, total_bytes.fold(0, u64::saturating_add));
        let largest = self.archives.iter().max_by_key(|opened| opened.store_bytes);
        let level = self
            .level
            .or(largest.map(Opened::level))
            .unwrap_or_default();
        let target = Target::new(sink, (level, self.memory_bytes), options);
        let mut copied: Vec<_> = self.archives.iter().map(|_| Copied::default()).collect();
        let mut target = match &self.prefix {
            None => target.empty()?,
            Some(prefix) => {
                let opened = self.archives.get(prefix.archive);
                let known = copied.get_mut(prefix.archive);
                if let (Some(opened), Some(known)) = (opened, known) {
                    *known = prefix.copied(opened)?;
                }
                target.beginning_with(prefix, &watch)?
            }
        };
        let first = self.prefix.as_ref().map_or(0, |prefix| prefix.generations);
        for (_, info) in self.order.iter().take(first) {
            watch.generation_done(info.content_bytes);
        }
        for (number, (archive, info)) in self.order.iter().enumerate().skip(first) {
            let (Some(opened), Some(of_archive)) =
                (self.archives.get(*archive), copied.get_mut(*archive))
            else {
                continue;
            };
            let is_last_of_host = self.is_last_of_host(number);
            let maps_bytes = self.memory_bytes / MAPS_SHARE / self.archives.len() as u64;
            of_archive.store.shrink_to(maps_bytes);
            let in_archive = |error: Error| error.in_file(opened.name.clone());
            target
                .add(opened, info, of_archive, is_last_of_host, &watch)
                .map_err(in_archive)?;
            watch.generation_done(info.content_bytes);
        }
        target.finish(self.order.len())
    }

    /// Whether no later generation is of the same host, so that the next one that is added is
    /// compared with this one.
    fn is_last_of_host(&self, number: usize) -> bool {
        let host = |number: usize| self.order.get(number).map(|(_, info)| &info.host);
        let later = number + 1..self.order.len();
        !later.into_iter().any(|later| host(later) == host(number))
    }
}

/// Whether the new archive carries decoders: if that is wanted, or one of the others does.
fn carries_decoders(archives: &[Opened], options: &CompressOptions) -> Result<bool> {
    for opened in archives {
        if options.carry_decoders || !opened.archive.carried_decoders()?.is_empty() {
            return Ok(true);
        }
    }
    Ok(options.carry_decoders)
}
