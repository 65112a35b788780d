//! The expected size of directories, for the percentage of a compression.

use std::fs::{self, Metadata};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use refrain_pool::{SignalDelivery, start_detached};

/// Headers and contents in a tar stream are multiples of this.
const TAR_BLOCK_BYTES: u64 = 512;

/// A size determined by a separate thread while the work already runs. Reading the metadata of a
/// large directory takes seconds, for which the work must not wait.
#[derive(Debug, Clone, Default)]
pub struct SizeEstimate {
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    bytes: AtomicU64,
    is_complete: AtomicBool,
    is_cancelled: AtomicBool,
}

impl SizeEstimate {
    /// Starts to sum the sizes of `paths`: files, and directories as tar streams.
    pub fn start(paths: Vec<PathBuf>) -> SizeEstimate {
        let estimate = SizeEstimate::default();
        let state = Arc::clone(&estimate.state);
        start_detached("sizes", SignalDelivery::OwnFaults, move || {
            for path in paths {
                state.add(path);
            }
            state.is_complete.store(true, Ordering::Release);
        });
        estimate
    }

    /// The size, once known.
    pub fn bytes(&self) -> Option<u64> {
        let is_complete = self.state.is_complete.load(Ordering::Acquire);
        let bytes = self.state.bytes.load(Ordering::Relaxed);
        (is_complete && !self.state.is_cancelled.load(Ordering::Relaxed)).then_some(bytes)
    }

    /// Ends the thread early.
    pub fn cancel(&self) {
        self.state.is_cancelled.store(true, Ordering::Relaxed);
    }
}

impl State {
    /// Adds a file, or everything in a directory. Unreadable files count as empty.
    fn add(&self, root: PathBuf) {
        let Ok(metadata) = fs::metadata(&root) else {
            return;
        };
        if !metadata.is_dir() {
            self.add_bytes(metadata.len());
            return;
        }
        let mut directories = vec![root];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                if self.is_cancelled.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(metadata) = entry.metadata() else {
                    continue;
                };
                self.add_bytes(tar_bytes(&metadata));
                if metadata.is_dir() {
                    directories.push(entry.path());
                }
            }
        }
    }

    fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The header and content of an entry. Long names and hard links make the true size slightly
/// different.
fn tar_bytes(metadata: &Metadata) -> u64 {
    let content_bytes = if metadata.is_file() {
        metadata.len().next_multiple_of(TAR_BLOCK_BYTES)
    } else {
        0
    };
    TAR_BLOCK_BYTES + content_bytes
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn directories_count_like_their_tar_streams() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("sub")).unwrap();
        fs::write(directory.path().join("sub/file"), vec![1; 513]).unwrap();
        let estimate = SizeEstimate::start(vec![directory.path().to_path_buf()]);
        let deadline = Instant::now() + Duration::from_secs(10);
        while estimate.bytes().is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(estimate.bytes(), Some(512 + 512 + 1024));
    }
}
