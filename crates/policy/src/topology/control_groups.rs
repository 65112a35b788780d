//! Limits that control groups put on this process: which CPUs, and how much of them.
//!
//! Sources: `Documentation/admin-guide/cgroup-v2.rst`, `cgroup-v1/cpusets.rst`, `scheduler/sched-bwc.rst`.

use std::path::{Component, Path, PathBuf};

use super::Sources;
use super::files::{list_in, number_in, text_in};

/// Depth of control groups walked up.
const DEPTH_MAX: usize = 64;

/// The control groups of this process, from its own up to the root.
pub(super) struct ControlGroups {
    /// Folders with the version 2 files, or with those of the `cpuset` and `cpu` controllers of version 1.
    unified: Vec<PathBuf>,
    cpuset: Vec<PathBuf>,
    cpu: Vec<PathBuf>,
}

impl ControlGroups {
    pub(super) fn of_this_process(sources: &Sources) -> ControlGroups {
        let text = text_in(&sources.proc.join("self/cgroup")).unwrap_or_default();
        let mount = sources.sys.join("fs/cgroup");
        let mut groups = ControlGroups {
            unified: Vec::new(),
            cpuset: Vec::new(),
            cpu: Vec::new(),
        };
        for line in text.lines() {
            let mut fields = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(path)) =
                (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            if controllers.is_empty() {
                groups.unified = upwards(&mount, path);
                groups.unified.extend(upwards(&mount.join("unified"), path));
            }
            for controller in controllers.split(',') {
                match controller {
                    "cpuset" => groups.cpuset = upwards(&mount.join("cpuset"), path),
                    "cpu" => groups.cpu = upwards(&mount.join("cpu"), path),
                    _ => {}
                }
            }
        }
        groups
    }

    /// CPUs of the innermost group that says something; empty when none does.
    pub(super) fn cpuset(&self) -> Vec<u32> {
        let unified = self
            .unified
            .iter()
            .map(|folder| folder.join("cpuset.cpus.effective"));
        let old = |file: &'static str| self.cpuset.iter().map(move |folder| folder.join(file));
        let files = unified
            .chain(old("cpuset.effective_cpus"))
            .chain(old("cpuset.cpus"));
        files
            .map(|file| list_in(&file))
            .find(|cpus| !cpus.is_empty())
            .unwrap_or_default()
    }

    /// The tightest quota of all groups above this process.
    pub(super) fn quota_permille(&self) -> Option<u64> {
        let unified = self.unified.iter().filter_map(|folder| {
            let text = text_in(&folder.join("cpu.max"))?;
            let (quota, period) = text.trim().split_once(' ')?;
            permille(quota.parse().ok()?, period.parse().ok()?)
        });
        let old = self.cpu.iter().filter_map(|folder| {
            let quota = number_in(&folder.join("cpu.cfs_quota_us"))?;
            permille(quota, number_in(&folder.join("cpu.cfs_period_us"))?)
        });
        unified.chain(old).min()
    }
}

fn permille(quota_us: u64, period_us: u64) -> Option<u64> {
    quota_us
        .checked_mul(1000)?
        .checked_div(period_us)
        .map(|permille| permille.max(1))
}

/// `path` below `mount`, and all folders between them. Steps out of `mount`, which the kernel shows for groups outside of one's
/// own namespace, are left out.
fn upwards(mount: &Path, path: &str) -> Vec<PathBuf> {
    let names = Path::new(path)
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name),
            _ => None,
        });
    let mut folders = vec![mount.to_path_buf()];
    for name in names.take(DEPTH_MAX) {
        let inner = folders.last().map(|folder| folder.join(name));
        folders.extend(inner);
    }
    folders.reverse();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_cannot_leave_the_mount() {
        let folders = upwards(Path::new("/m"), "/../../etc/./x");
        assert_eq!(
            folders,
            [Path::new("/m/etc/x"), Path::new("/m/etc"), Path::new("/m")]
        );
    }

    #[test]
    fn a_quota_is_never_nothing() {
        assert_eq!(
            [permille(1, 1_000_000), permille(150, 100)],
            [Some(1), Some(1500)]
        );
        assert_eq!([permille(5, 0), permille(u64::MAX, 1)], [None, None]);
    }
}
