//! What is behind the doors: one archive, or several under their names.
//!
//! Of several, each is opened when somebody asks for it, from a file that is held open, and closed
//! when nobody has asked for a while or others need its memory. Whoever reads an archive holds it:
//! replacing or removing it concerns those who come later.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use refrain::{Archive, DamagedPlace, ReadStatistics, Timestamp};
use refrain_pool::{Lock, OnceValue};
use refrain_sync::clock::{Clock, RealClock};

use crate::archive_counts::{ArchiveCounts, ArchiveRow};
use crate::error::{Error, Result};
use crate::service::{Journal, Reporter, Service};
use crate::tree::{Tree, TreeMemory, TreeOptions};

/// The name of the pages about the server itself, which no archive may have.
pub(crate) const OWN_PAGES: &[u8] = b".refrain";

/// What is served. Clones share it.
#[derive(Clone)]
pub struct Archives(Arc<State>);

struct State {
    journal: Journal,
    content: Content,
    /// What was read of archives that are closed, or no longer served.
    closed: Lock<ReadStatistics>,
}

enum Content {
    Only(Lock<Arc<OpenedArchive>>),
    Named(Named),
}

/// Archives with names.
struct Named {
    slots: Lock<BTreeMap<Vec<u8>, Arc<Slot>>>,
    /// How many are kept open while they are not in use.
    open_max: usize,
    clock: RealClock,
}

/// An archive with a name.
struct Slot {
    name: Vec<u8>,
    file: ArchiveFile,
    counts: Arc<ArchiveCounts>,
    opening: Lock<Opening>,
}

#[derive(Default)]
struct Opening {
    cell: Arc<OnceValue<Arc<OpenedArchive>>>,
    /// When somebody last asked for it.
    used: Duration,
    /// What is damaged, as far as it was found before the archive was closed.
    damaged: Vec<DamagedPlace>,
}

/// The file of an archive.
pub struct ArchiveFile {
    /// What messages call it.
    pub label: String,
    /// Tells the file from others, and from itself after a change; `None` if nothing does.
    pub version: Option<FileVersion>,
    /// Its length, if known.
    pub size_bytes: Option<u64>,
    /// The time of its last change.
    pub modified: Option<Timestamp>,
    /// Opens the archive, whatever its path leads to meanwhile.
    pub open: Box<dyn Fn() -> refrain::Result<Archive> + Send + Sync>,
}

/// Numbers that tell a file from others, and from itself after a change.
pub type FileVersion = [i128; 6];

/// An archive in a list.
#[derive(Debug, Clone)]
pub(crate) struct ListedArchive {
    pub name: Vec<u8>,
    pub size_bytes: Option<u64>,
    pub modified: Option<Timestamp>,
}

/// An opened archive, with its tree once that is needed.
pub(crate) struct OpenedArchive {
    pub service: Service,
    tree: OnceValue<Tree>,
}

impl OpenedArchive {
    fn new(service: Service) -> Arc<OpenedArchive> {
        Arc::new(OpenedArchive {
            service,
            tree: OnceValue::default(),
        })
    }

    /// The members and entries. A member without a name is called `unnamed`.
    ///
    /// # Errors
    /// As [`Tree::open`].
    pub(crate) fn tree(
        &self,
        options: &TreeOptions,
        unnamed: &[u8],
        memory: &Arc<TreeMemory>,
    ) -> Result<&Tree> {
        self.tree.get_or_try_init(|| {
            let archive = Arc::clone(self.service.archive());
            let options = TreeOptions {
                unnamed: unnamed.to_vec(),
                ..*options
            };
            let tree = Tree::open_sharing(archive, &options, memory)?;
            tree.report_to(self.service.reporter());
            Ok(tree)
        })
    }
}

/// Why an archive cannot have a name; `None` if it can.
pub fn name_problem(name: &[u8]) -> Option<&'static str> {
    match name {
        b"" => Some("is empty"),
        b"." | b".." => Some("means another directory in a URL"),
        OWN_PAGES => Some("is that of the service's own pages"),
        _ if name.contains(&b'/') => Some("contains a slash"),
        _ if name.contains(&0) => Some("contains a NUL byte"),
        _ => None,
    }
}

/// The name of an archive at the beginning of a path, and what follows its slash, if it has one.
pub(crate) fn split_name(path: &[u8]) -> (&[u8], Option<&[u8]>) {
    match path.iter().position(|&byte| byte == b'/') {
        Some(slash) => (&path[..slash], Some(&path[slash + 1..])),
        None => (path, None),
    }
}

impl From<Service> for Archives {
    fn from(service: Service) -> Archives {
        Archives(Arc::new(State {
            journal: service.journal().clone(),
            content: Content::Only(Lock::new(OpenedArchive::new(service))),
            closed: Lock::default(),
        }))
    }
}

impl Archives {
    /// No archives yet. About `open_max` are kept open while nobody reads them.
    pub fn named(reporter: Arc<Reporter>, open_max: usize) -> Archives {
        Archives(Arc::new(State {
            journal: Journal::new(reporter),
            content: Content::Named(Named {
                slots: Lock::default(),
                open_max: open_max.max(1),
                clock: RealClock::new(),
            }),
            closed: Lock::default(),
        }))
    }

    pub(crate) fn journal(&self) -> &Journal {
        &self.0.journal
    }

    /// The receiver of reports.
    pub fn reporter(&self) -> Arc<Reporter> {
        self.0.journal.reporter()
    }

    /// The archive without a name; `None` if archives have names.
    pub(crate) fn only(&self) -> Option<Arc<OpenedArchive>> {
        match &self.0.content {
            Content::Only(opened) => Some(Arc::clone(&opened.lock())),
            Content::Named(_) => None,
        }
    }

    /// Serves this in place of the archive without a name. Whoever reads that goes on.
    pub fn replace(&self, archive: Archive) {
        let Content::Only(opened) = &self.0.content else {
            return;
        };
        let new = OpenedArchive::new(Service::renewed(archive, self.0.journal.clone()));
        let old = std::mem::replace(&mut *opened.lock(), new);
        self.keep_statistics([&*old]);
        old.service.archive().use_memory_for_serving();
        drop(old);
        self.divide_memory();
    }

    /// Gives each open archive its part of the memory.
    fn divide_memory(&self) {
        let open = (self.slots().into_iter()).filter_map(|slot| slot.opened());
        for opened in open.chain(self.only()) {
            opened.service.archive().use_memory_for_serving();
        }
    }

    /// Keeps the statistics of archives that are no longer served.
    fn keep_statistics<'a>(&self, opened: impl IntoIterator<Item = &'a OpenedArchive>) {
        let mut closed = self.0.closed.lock();
        for opened in opened {
            *closed = closed.plus(opened.service.archive().read_statistics());
        }
    }

    fn slots(&self) -> Vec<Arc<Slot>> {
        match &self.0.content {
            Content::Only(_) => vec![],
            Content::Named(named) => named.slots.lock().values().cloned().collect(),
        }
    }

    fn slot(&self, name: &[u8]) -> Option<Arc<Slot>> {
        match &self.0.content {
            Content::Only(_) => None,
            Content::Named(named) => named.slots.lock().get(name).cloned(),
        }
    }

    /// The archive with this name, opened if it is not; `None` if there is none.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub(crate) fn get(&self, name: &[u8]) -> Result<Option<Arc<OpenedArchive>>> {
        let Content::Named(named) = &self.0.content else {
            return Ok(None);
        };
        let Some(slot) = self.slot(name) else {
            return Ok(None);
        };
        let cell = {
            let mut opening = slot.opening.lock();
            opening.used = named.clock.now();
            Arc::clone(&opening.cell)
        };
        let mut is_new = false;
        let opened = cell.get_or_try_init(|| {
            is_new = true;
            let archive = (slot.file.open)()?;
            let (journal, counts) = (self.0.journal.clone(), Arc::clone(&slot.counts));
            Ok::<_, refrain::Error>(OpenedArchive::new(Service::named(
                archive, journal, &slot.name, counts,
            )))
        });
        let opened = match opened {
            Ok(opened) => Arc::clone(opened),
            Err(error) => return Err(Error::from(error).in_file(&slot.file.label)),
        };
        if is_new {
            self.close_unused(Duration::MAX);
        }
        Ok(Some(opened))
    }

    /// Closes archives that nobody reads: those not asked for within `time`, and the least recently
    /// used ones if too many are open. The others divide the memory.
    pub fn close_unused(&self, time: Duration) {
        if let Content::Named(named) = &self.0.content {
            let mut open: Vec<(Duration, Arc<Slot>)> = (self.slots().into_iter())
                .filter_map(|slot| Some((slot.used_if_open()?, slot)))
                .collect();
            open.sort_by_key(|(used, _)| *used);
            let (now, mut count) = (named.clock.now(), open.len());
            for (used, slot) in open {
                let is_wanted = now.saturating_sub(used) < time && count <= named.open_max;
                if let Some(closed) = (!is_wanted).then(|| slot.close()).flatten() {
                    self.keep_statistics([&*closed]);
                    count -= 1;
                }
            }
        }
        self.divide_memory();
    }

    /// Whether this version of a file is served under this name.
    pub fn has(&self, name: &[u8], version: Option<FileVersion>) -> bool {
        let slot = self.slot(name);
        slot.is_some_and(|slot| version.is_some() && slot.file.version == version)
    }

    /// Serves an archive under a name from now on. Whoever reads another that had the name goes on.
    ///
    /// # Errors
    /// If it cannot be opened, or cannot have this name: then nothing changes.
    pub fn put(&self, name: Vec<u8>, file: ArchiveFile) -> Result<()> {
        let Content::Named(named) = &self.0.content else {
            return Err(Error::Refused(
                "there is one archive, without a name".into(),
            ));
        };
        if let Some(problem) = name_problem(&name) {
            let shown = String::from_utf8_lossy(&name);
            return Err(Error::Refused(format!(
                "it cannot be called {shown:?}: the name {problem}"
            )));
        }
        drop((file.open)()?);
        let counts = self.slot(&name).map(|slot| Arc::clone(&slot.counts));
        let slot = Slot {
            name: name.clone(),
            file,
            counts: counts.unwrap_or_default(),
            opening: Lock::default(),
        };
        let replaced = named.slots.lock().insert(name, Arc::new(slot));
        self.keep_statistics(replaced.and_then(|slot| slot.opened()).as_deref());
        Ok(())
    }

    /// No longer serves archives whose names are not wanted. Whoever reads them goes on.
    pub fn retain(&self, mut is_wanted: impl FnMut(&[u8]) -> bool) {
        let Content::Named(named) = &self.0.content else {
            return;
        };
        let mut removed = vec![];
        named.slots.lock().retain(|name, slot| {
            let stays = is_wanted(name);
            if !stays {
                removed.push(Arc::clone(slot));
            }
            stays
        });
        for slot in removed {
            self.keep_statistics(slot.opened().as_deref());
        }
    }

    /// How many archives there are.
    pub fn count(&self) -> usize {
        match &self.0.content {
            Content::Only(_) => 1,
            Content::Named(named) => named.slots.lock().len(),
        }
    }

    /// The names, ascending.
    pub(crate) fn names(&self) -> Vec<Vec<u8>> {
        self.slots().iter().map(|slot| slot.name.clone()).collect()
    }

    /// The archives by name, without opening them.
    pub(crate) fn list(&self) -> Vec<ListedArchive> {
        let slots = self.slots();
        let listed = slots.iter().map(|slot| ListedArchive {
            name: slot.name.clone(),
            size_bytes: slot.file.size_bytes,
            modified: slot.file.modified,
        });
        listed.collect()
    }

    /// What was asked of each archive.
    pub(crate) fn rows(&self) -> Vec<ArchiveRow> {
        let slots = self.slots();
        let row = |slot: &Arc<Slot>| slot.counts.row(&slot.name, slot.opened().is_some());
        slots.iter().map(row).collect()
    }

    /// Sets all counts to zero.
    pub(crate) fn reset_statistics(&self) {
        self.0.journal.statistics().reset();
        self.slots().iter().for_each(|slot| slot.counts.reset());
    }

    /// What was read of all archives.
    pub(crate) fn read_statistics(&self) -> ReadStatistics {
        let open = (self.slots().into_iter()).filter_map(|slot| slot.opened());
        let open = open.chain(self.only());
        let of_open = open.map(|opened| opened.service.archive().read_statistics());
        of_open.fold(*self.0.closed.lock(), ReadStatistics::plus)
    }

    /// What was found to be damaged in archives with names, with what messages call them.
    pub fn damaged_places(&self) -> Vec<(String, Vec<DamagedPlace>)> {
        let slots = self.slots();
        let places = slots.iter().map(|slot| {
            let found = match slot.opened() {
                Some(opened) => opened.service.archive().damaged_places(),
                None => slot.opening.lock().damaged.clone(),
            };
            (slot.file.label.clone(), found)
        });
        places.filter(|(_, found)| !found.is_empty()).collect()
    }
}

impl Slot {
    fn opened(&self) -> Option<Arc<OpenedArchive>> {
        self.opening.lock().cell.get().cloned()
    }

    /// When somebody last asked for the archive, if it is open.
    fn used_if_open(&self) -> Option<Duration> {
        let opening = self.opening.lock();
        opening.cell.get().map(|_| opening.used)
    }

    /// Closes the archive, by returning it, unless somebody reads it.
    fn close(&self) -> Option<Arc<OpenedArchive>> {
        let mut opening = self.opening.lock();
        // Who asks for it has the cell, and gets that under the lock.
        let is_asked_for = Arc::strong_count(&opening.cell) > 1;
        let opened = opening.cell.get().filter(|_| !is_asked_for)?;
        if Arc::strong_count(opened) > 1 || opened.service.is_in_use() {
            return None;
        }
        let opened = Arc::clone(opened);
        opening.damaged = opened.service.archive().damaged_places();
        opening.cell = Arc::default();
        Some(opened)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{archive_of, open};

    /// A set of which one archive stays open unused, with these archives. Each has a member of its
    /// own name, as content too.
    fn set(names: &[&str]) -> Archives {
        let archives = Archives::named(Arc::new(|_: &str| {}), 1);
        for name in names {
            archives
                .put(name.as_bytes().to_vec(), file(name, 0))
                .unwrap();
        }
        archives
    }

    fn file(name: &str, version: i128) -> ArchiveFile {
        let bytes = archive_of(name, name.into()).unwrap();
        ArchiveFile {
            label: format!("{name}.rfn"),
            version: Some([version; 6]),
            size_bytes: Some(bytes.len() as u64),
            modified: None,
            open: Box::new(move || open(bytes.clone())),
        }
    }

    fn member(opened: &OpenedArchive) -> Vec<u8> {
        opened.service.archive().member(0).unwrap().name
    }

    fn get(archives: &Archives, name: &str) -> Option<Arc<OpenedArchive>> {
        archives.get(name.as_bytes()).unwrap()
    }

    fn open_names(archives: &Archives) -> Vec<Vec<u8>> {
        let open = archives.rows().into_iter().filter(|row| row.is_open);
        open.map(|row| row.name).collect()
    }

    #[test]
    fn archives_are_opened_when_asked_for_and_closed_when_unused() {
        let archives = set(&["a", "b", "c"]);
        assert!(open_names(&archives).is_empty());
        assert!(get(&archives, "x").is_none());
        let a = get(&archives, "a").unwrap();
        assert_eq!(member(&a), b"a");
        drop(get(&archives, "b"));
        assert_eq!(open_names(&archives), [b"a", b"b"], "both were in use");
        drop(get(&archives, "c"));
        assert_eq!(
            open_names(&archives),
            [b"a", b"c"],
            "one too many is unused"
        );
        archives.close_unused(Duration::ZERO);
        assert_eq!(open_names(&archives), [b"a"]);
        // Whoever has a file of it counts as well.
        let service = a.service.clone();
        drop(a);
        archives.close_unused(Duration::ZERO);
        assert_eq!(open_names(&archives), [b"a"]);
        drop(service);
        archives.close_unused(Duration::ZERO);
        assert!(open_names(&archives).is_empty());
    }

    #[test]
    fn who_reads_an_archive_goes_on_when_another_has_its_name() {
        let archives = set(&["a", "b"]);
        let old = get(&archives, "a").unwrap();
        assert!(archives.has(b"a", Some([0; 6])) && !archives.has(b"a", Some([1; 6])));
        let mut new = file("new", 1);
        new.label = "a.rfn".into();
        archives.put(b"a".to_vec(), new).unwrap();
        assert!(archives.has(b"a", Some([1; 6])) && !archives.has(b"a", None));
        assert_eq!(member(&get(&archives, "a").unwrap()), b"new");
        archives.retain(|name| name == b"b");
        assert!(get(&archives, "a").is_none());
        assert_eq!(member(&old), b"a");
        assert_eq!(archives.names(), [b"b"]);
    }

    #[test]
    fn what_cannot_be_opened_changes_nothing() {
        let archives = set(&["a"]);
        let mut bad = file("a", 1);
        bad.open = Box::new(|| open(b"no archive, but bytes".to_vec()));
        assert!(archives.put(b"a".to_vec(), bad).is_err());
        assert_eq!(member(&get(&archives, "a").unwrap()), b"a");
        for wrong in ["", ".", "..", "a/b", "a\0", ".refrain"] {
            let refused = archives.put(wrong.into(), file("x", 0)).unwrap_err();
            assert!(
                refused.to_string().contains("cannot be called"),
                "{refused}"
            );
        }
        for name in ["..a", "a\"'\n", "\u{9b}31m", "metrics", "a b"] {
            assert_eq!(name_problem(name.as_bytes()), None, "{name:?}");
        }
        assert_eq!(name_problem(b"\xff"), None);
        assert_eq!(archives.count(), 1);
    }

    #[test]
    fn a_name_ends_at_the_first_slash() {
        assert_eq!(split_name(b"a"), (&b"a"[..], None));
        assert_eq!(split_name(b"a/"), (&b"a"[..], Some(&b""[..])));
        assert_eq!(split_name(b"a/b/c"), (&b"a"[..], Some(&b"b/c"[..])));
        assert_eq!(split_name(b"/a"), (&b""[..], Some(&b"a"[..])));
    }

    #[test]
    fn what_was_read_is_counted_also_of_archives_that_are_closed() {
        let archives = set(&["a", "b"]);
        let mut buffer = [0; 1];
        for name in ["a", "b"] {
            let opened = get(&archives, name).unwrap();
            assert_eq!(
                opened.service.archive().read_at(0, 0, &mut buffer).unwrap(),
                1
            );
        }
        let delivered = |archives: &Archives| archives.read_statistics().delivered_bytes;
        assert_eq!(delivered(&archives), 2);
        archives.close_unused(Duration::ZERO);
        archives.retain(|name| name != b"b");
        assert_eq!((open_names(&archives).len(), delivered(&archives)), (0, 2));
    }
}
