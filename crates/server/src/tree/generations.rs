//! The generations of an archive, each as a directory with its tree.
//!
//! The directories have the number and the time of their generation as names. Whatever chooses a
//! generation (a number, a tag, a time, `latest`) is a symbolic link to one, which only `latest`
//! is listed as. A generation is opened when something in it is asked for, and shares what was
//! decoded with the others; the most recently used ones stay open.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use refrain::{Archive, GenerationChoice, GenerationInfo};
use refrain_page::utc_text;
use refrain_pool::{Lock, OnceValue};
use rustix::io::Errno;

use super::frames::TreeMemory;
use super::node::{NodeId, Numbering, no_node};
use super::operations::Tree;
use super::options::TreeOptions;
use crate::error::{Error, Result};
use crate::service::Reporter;

/// How many generations stay open.
const OPEN_MAX: usize = 32;

/// The link to the last generation.
pub(super) const LATEST: &str = "latest";

/// An opened generation.
pub(super) struct OpenGeneration {
    pub tree: Arc<Tree>,
    /// What is shown of it.
    pub root: NodeId,
}

/// A generation that is open, or about to be.
type OpenCell = Arc<OnceValue<Arc<OpenGeneration>>>;

/// The generations of an archive.
pub(crate) struct Generations {
    archive: Arc<Archive>,
    /// Of an archive to which nothing was added.
    only: Option<GenerationInfo>,
    options: TreeOptions,
    /// The directory that is shown of each, as MEMBER or MEMBER/PATH; empty for all members.
    pub(super) root: Vec<u8>,
    memory: Arc<TreeMemory>,
    reporter: Arc<Reporter>,
    /// The most recently used are at the end.
    open: Lock<Vec<(u16, OpenCell)>>,
}

impl Generations {
    /// Opens no generation, unless only some directory of each is shown.
    ///
    /// # Errors
    /// `Refused` if no generation has that directory; from opening generations to find it.
    pub(crate) fn new(
        archive: Arc<Archive>,
        options: &TreeOptions,
        root: &[u8],
        reporter: Arc<Reporter>,
    ) -> Result<Generations> {
        let is_one = archive.generations().is_empty();
        let generations = Generations {
            only: is_one.then(|| the_only_one(&archive)),
            archive,
            options: options.clone(),
            root: root.to_vec(),
            memory: TreeMemory::new(options),
            reporter,
            open: Lock::default(),
        };
        generations.check_root()?;
        Ok(generations)
    }

    /// Those that are kept, oldest first.
    pub(super) fn rows(&self) -> &[GenerationInfo] {
        match &self.only {
            Some(only) => std::slice::from_ref(only),
            None => self.archive.generations(),
        }
    }

    /// A kept generation by its number.
    pub(super) fn row(&self, number: u16) -> Result<&GenerationInfo> {
        let rows = self.rows();
        let at = rows.binary_search_by_key(&number, |row| row.number);
        at.ok().and_then(|at| rows.get(at)).ok_or_else(no_node)
    }

    /// The directory with this name, or the link.
    pub(super) fn find(&self, name: &[u8]) -> Option<NodeId> {
        let text = str::from_utf8(name).ok()?;
        let numbering = |row: &GenerationInfo| Numbering::Generation(row.number);
        let number = text
            .split('-')
            .next()
            .and_then(|number| number.parse().ok());
        let row = number.and_then(|number| self.row(number).ok());
        if let Some(row) = row.filter(|row| name_of(row) == text) {
            return Some(numbering(row).root());
        }
        let choice: GenerationChoice = text.parse().ok()?;
        let row = choice.of(self.rows()).ok()?;
        Some(numbering(row).link())
    }

    /// Opens a generation, if it is not.
    ///
    /// # Errors
    /// From opening it; `System` if it lacks the directory that is shown of each.
    pub(super) fn open(&self, number: u16) -> Result<Arc<OpenGeneration>> {
        let cell = self.cell(number);
        let opened = cell.get_or_try_init(|| self.open_tree(number))?;
        Ok(Arc::clone(opened))
    }

    /// Whether a generation is open.
    pub(super) fn is_open(&self, number: u16) -> bool {
        let open = self.open.lock();
        let mut cells = open.iter().filter(|(kept, _)| *kept == number);
        cells.any(|(_, cell)| cell.get().is_some())
    }

    /// The place of a generation among those that are open. Closes others, if there is no room.
    fn cell(&self, number: u16) -> OpenCell {
        let mut closed = vec![];
        let mut open = self.open.lock();
        if let Some(at) = open.iter().position(|(kept, _)| *kept == number) {
            open[at..].rotate_left(1);
        } else {
            while open.len() >= OPEN_MAX {
                closed.push(open.remove(0));
            }
            if self.has_little_memory() {
                closed.append(&mut open);
            }
            open.push((number, OpenCell::default()));
        }
        let cell = open.last().map(|(_, cell)| Arc::clone(cell));
        drop(open);
        cell.unwrap_or_default()
    }

    /// Whether open generations have tables of more than half of the memory for them.
    fn has_little_memory(&self) -> bool {
        let left = self.memory.table_bytes_left.load(Ordering::Relaxed);
        left < self.options.table_bytes / 2
    }

    fn open_tree(&self, number: u16) -> Result<Arc<OpenGeneration>> {
        let archive = self.archive.at_generation(number)?;
        let numbering = Numbering::Generation(number);
        let tree = Tree::open_numbered(archive, &self.options, &self.memory, numbering)?;
        let (reporter, name) = (Arc::clone(&self.reporter), name_of(self.row(number)?));
        let report = move |line: &str| reporter(&format!("{name}: {line}"));
        if self.root.is_empty() && tree.hidden_members() > 0 {
            report("members with unsafe names, or with those of others, cannot be shown");
        }
        tree.report_to(Arc::new(report));
        let root = tree.resolve(&self.root)?.ok_or_else(|| {
            let shown = String::from_utf8_lossy(&self.root);
            let error = io::Error::from(Errno::NOENT);
            Error::system(format!("generation {number} has no {shown:?}"), error)
        })?;
        let tree = Arc::new(tree);
        Ok(Arc::new(OpenGeneration { tree, root }))
    }

    /// Checks that some generation has the directory that is shown of each.
    fn check_root(&self) -> Result<()> {
        if self.root.is_empty() {
            return Ok(());
        }
        for row in self.rows().iter().rev() {
            match self.open(row.number) {
                Ok(opened) => return opened.tree.children(opened.root, 0, &mut |_| false),
                // Another one may have it.
                Err(Error::System(..)) => {}
                Err(error) => return Err(error),
            }
        }
        let shown = String::from_utf8_lossy(&self.root);
        let text = format!("no generation of the archive has {shown:?}");
        Err(Error::Refused(text))
    }
}

/// The name of a generation's directory: names ascend with the numbers, and a shell needs no quotes
/// for them.
pub(super) fn name_of(row: &GenerationInfo) -> String {
    let number = row.number;
    match row.created {
        Some(created) => format!(
            "{number:05}-{}",
            utc_text(created.seconds).replace(':', "-")
        ),
        None => format!("{number:05}"),
    }
}

/// The generation of an archive to which nothing was added.
fn the_only_one(archive: &Archive) -> GenerationInfo {
    GenerationInfo {
        number: archive.generation(),
        start: 0,
        end: None,
        first_member: 0,
        member_count: archive.member_count() as u64,
        content_start: 0,
        content_bytes: 0,
        store_bytes: 0,
        created: None,
        host: vec![],
        comment: vec![],
        tags: vec![],
    }
}
