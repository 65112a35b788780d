//! Mounts a tree and unmounts it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fuser::{Config, MountOption, Session, SessionACL, SessionUnmounter};
use refrain_pool::Lock;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{getegid, geteuid};

use super::buffers::Buffers;
use super::dispatcher::Dispatcher;
use super::files_ahead::FilesAhead;
use super::handler::Handler;
use super::mount_point;
use super::mounts;
use super::options::MountOptions;
use super::page_cache::PageCache;
use super::read_ahead;
use super::watcher::Watcher;
use crate::error::{Error, Result};
use crate::service::Service;
use crate::share::Share;
use crate::tree::{Generations, NodeId, Tree, View};

/// The file system's type in the system's list: `fuse.refrain`.
const SUBTYPE: &str = "refrain";

/// A mounted archive. Dropping it unmounts.
pub struct Mount {
    session: Session<Dispatcher>,
    _watcher: Option<Watcher>,
    unmounter: Unmounter,
    hidden_members: u64,
}

/// Unmounts a mounted archive, from any thread.
#[derive(Clone)]
pub struct Unmounter {
    session: Arc<Lock<SessionUnmounter>>,
    directory: PathBuf,
}

impl Mount {
    /// Mounts a service's archive on a directory. The kernel's requests wait until [`Mount::serve`]
    /// is called.
    ///
    /// # Errors
    /// `Refused` if there is no device, the directory is missing or in use, or the archive has no
    /// such directory; `System` if the
    /// system does not allow the mount; otherwise as [`Tree::open`].
    pub fn new(service: Service, directory: &Path, options: &MountOptions) -> Result<Mount> {
        let directory = mount_point::check(directory)?;
        mount_point::check_device()?;
        let (view, hidden_members) = view_of(&service, options)?;
        let handler = Handler {
            service,
            view,
            owner: (geteuid().as_raw(), getegid().as_raw()),
            forced_owner: options.owner,
            buffers: Buffers::default(),
            page_cache: Arc::default(),
            files_ahead: FilesAhead::new(options.threads),
            share: Share::of_client(),
            readahead: Share::of_readahead(),
        };
        let page_cache = Arc::clone(&handler.page_cache);
        let answering_max = options.threads.max(1);
        let dispatcher = Dispatcher::new(handler, answering_max, options.allow_other);
        let session = Session::new(dispatcher, &directory, &config(options));
        let mut session = session.map_err(|error| {
            let what = format!("cannot mount on {}", directory.display());
            Error::system(what, error)
        })?;
        let device = mounts::device_on(&directory);
        if let Some(device) = &device {
            read_ahead::widen(device);
        }
        // Without a shell, a killed server leaves its mount behind.
        let watcher = device.and_then(|device| Watcher::start(&directory, &device).ok());
        // Without the cache, programs merely wait longer.
        let _ = page_cache.get_or_try_init(|| PageCache::for_device(&session));
        let unmounter = Unmounter {
            session: Arc::new(Lock::new(session.unmount_callable())),
            directory,
        };
        Ok(Mount {
            session,
            _watcher: watcher,
            unmounter,
            hidden_members,
        })
    }

    /// The number of members that are not shown: see [`Tree::hidden_members`]. 0 if one directory
    /// is mounted; of generations, those of each are reported when it is opened.
    pub fn hidden_members(&self) -> u64 {
        self.hidden_members
    }

    /// A handle that ends [`Mount::serve`] from another thread.
    pub fn unmounter(&self) -> Unmounter {
        self.unmounter.clone()
    }

    /// Answers the kernel's requests until the file system is unmounted, by [`Unmounter`] or anyone
    /// else.
    ///
    /// # Errors
    /// `System` if requests cannot be received.
    pub fn serve(self) -> Result<()> {
        let served = self.session.run();
        served.map_err(|error| Error::system("serving the mounted file system", error))
    }
}

impl Unmounter {
    /// Unmounts. If files are in use, the mount vanishes from its directory at once and ends with
    /// their last user.
    ///
    /// # Errors
    /// `System` if the system refuses.
    pub fn unmount(&self) -> Result<()> {
        let Err(error) = self.session.lock().unmount() else {
            return Ok(());
        };
        let detached = unmount(&self.directory, UnmountFlags::DETACH);
        detached.map_err(|_| {
            let what = format!("cannot unmount {}", self.directory.display());
            Error::system(what, error)
        })
    }
}

/// What is mounted, and the number of members that are not shown.
fn view_of(service: &Service, options: &MountOptions) -> Result<(View, u64)> {
    let archive = Arc::clone(service.archive());
    let (tree, root) = (&options.tree, &options.root);
    if options.generations {
        let journal = service.journal().clone();
        let reporter = move |line: &str| journal.report_once(line.to_owned(), line);
        let generations = Generations::new(archive, tree, root, Arc::new(reporter))?;
        return Ok((View::Generations(Box::new(generations)), 0));
    }
    let tree = Tree::open(archive, tree)?;
    tree.report_to(service.reporter());
    let is_all = root.is_empty();
    let hidden_members = if is_all { tree.hidden_members() } else { 0 };
    let root = root_of(&tree, root)?;
    Ok((View::Tree(Arc::new(tree), root), hidden_members))
}

/// The directory of the tree that is to be mounted.
fn root_of(tree: &Tree, path: &[u8]) -> Result<NodeId> {
    let Some(root) = tree.resolve(path)? else {
        let shown = String::from_utf8_lossy(path);
        return Err(Error::Refused(format!("the archive has no {shown:?}")));
    };
    tree.children(root, 0, &mut |_| false)?;
    Ok(root)
}

fn config(options: &MountOptions) -> Config {
    let mut config = Config::default();
    // One remains free.
    config.n_threads = Some(options.threads.max(1) + 1);
    config.mount_options = vec![
        MountOption::RO,
        MountOption::FSName(options.source_name.clone()),
        MountOption::Subtype(SUBTYPE.into()),
    ];
    if options.allow_other {
        config.acl = SessionACL::All;
        config.mount_options.push(MountOption::DefaultPermissions);
    }
    let extra = options.extra.iter().cloned().map(MountOption::CUSTOM);
    config.mount_options.extend(extra);
    config
}
