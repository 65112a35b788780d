//! The CPU limits that control groups set for this process: which CPUs, and how much CPU time.
//!
//! Sources: `Documentation/admin-guide/cgroup-v2.rst`, `cgroup-v1/cpusets.rst`,
//! `scheduler/sched-bwc.rst`.

use std::path::{Component, Path, PathBuf};

use super::files::{read_list, read_number, read_text};
use super::sources::Sources;

const DEPTH_MAX: usize = 64;

pub(super) struct ControlGroups {
    /// Directories with the version 2 files, or with the files of version 1's `cpuset` and `cpu`
    /// controllers.
    unified: Vec<PathBuf>,
    cpuset: Vec<PathBuf>,
    cpu: Vec<PathBuf>,
}

impl ControlGroups {
    pub(super) fn from_process(sources: &Sources) -> ControlGroups {
        let text = read_text(&sources.proc.join("self/cgroup")).unwrap_or_default();
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

    /// The CPUs of the innermost group that restricts them; empty if no group does.
    pub(super) fn cpuset(&self) -> Vec<u32> {
        let unified = self
            .unified
            .iter()
            .map(|directory| directory.join("cpuset.cpus.effective"));
        let old = |file: &'static str| {
            self.cpuset
                .iter()
                .map(move |directory| directory.join(file))
        };
        let files = unified
            .chain(old("cpuset.effective_cpus"))
            .chain(old("cpuset.cpus"));
        files
            .map(|file| read_list(&file))
            .find(|cpus| !cpus.is_empty())
            .unwrap_or_default()
    }

    /// The tightest quota of this process's group and all groups above it.
    pub(super) fn quota_permille(&self) -> Option<u64> {
        let unified = self.unified.iter().filter_map(|directory| {
            let text = read_text(&directory.join("cpu.max"))?;
            let (quota, period) = text.trim().split_once(' ')?;
            permille(quota.parse().ok()?, period.parse().ok()?)
        });
        let old = self.cpu.iter().filter_map(|directory| {
            let quota = read_number(&directory.join("cpu.cfs_quota_us"))?;
            permille(quota, read_number(&directory.join("cpu.cfs_period_us"))?)
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

/// `path` below `mount`, and all directories between them. Ignores `..` components, which the
/// kernel shows for groups outside of the process's namespace.
fn upwards(mount: &Path, path: &str) -> Vec<PathBuf> {
    let names = Path::new(path)
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name),
            _ => None,
        });
    let mut directories = vec![mount.to_path_buf()];
    for name in names.take(DEPTH_MAX) {
        let inner = directories.last().map(|directory| directory.join(name));
        directories.extend(inner);
    }
    directories.reverse();
    directories
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_cannot_leave_the_mount() {
        let directories = upwards(Path::new("/m"), "/../../etc/./x");
        assert_eq!(
            directories,
            [Path::new("/m/etc/x"), Path::new("/m/etc"), Path::new("/m")]
        );
    }

    #[test]
    fn a_quota_is_at_least_one_permille() {
        assert_eq!(
            [permille(1, 1_000_000), permille(150, 100)],
            [Some(1), Some(1500)]
        );
        assert_eq!([permille(5, 0), permille(u64::MAX, 1)], [None, None]);
    }
}
