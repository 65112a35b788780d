//! Memory limits of control groups: <https://docs.kernel.org/admin-guide/cgroup-v2.html>, and
//! `cgroup-v1/memory.html`.
//!
//! A group is also limited by those above it, as far as this process can see them: in a container
//! with its own name space, up to the container's group.

use std::fs;
use std::path::{Path, PathBuf};

/// The files of one version.
struct Version {
    limits: &'static [&'static str],
    usage: &'static str,
    /// Lines of `memory.stat` with reclaimable memory: pages of files.
    reclaimable: [&'static str; 2],
}

const ONE: Version = Version {
    limits: &["memory.limit_in_bytes"],
    usage: "memory.usage_in_bytes",
    reclaimable: ["total_inactive_file", "total_active_file"],
};

const TWO: Version = Version {
    limits: &["memory.max", "memory.high"],
    usage: "memory.current",
    reclaimable: ["inactive_file", "active_file"],
};

/// The bytes that its control groups leave to this process; `None` without a limit.
pub fn left() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    left_in(&groups, &mounts)
}

/// As [`left`], from the texts of `/proc/self/cgroup` and `/proc/self/mountinfo`.
fn left_in(groups: &str, mounts: &str) -> Option<u64> {
    let mounts = mounts.lines().filter_map(Mount::parse);
    let left = mounts.filter_map(|mount| {
        let path = mount.group_path(groups)?;
        let below = path.strip_prefix(&mount.root).unwrap_or(Path::new(""));
        let group = mount.point.join(below);
        let all = group.ancestors();
        let all = all.take_while(|directory| directory.starts_with(&mount.point));
        all.filter_map(|directory| mount.version.left(directory))
            .min()
    });
    left.min()
}

/// A hierarchy of groups in the file system.
struct Mount {
    version: &'static Version,
    /// The group at its topmost directory.
    root: PathBuf,
    point: PathBuf,
}

impl Mount {
    /// Parses a line of `/proc/self/mountinfo` about memory; see `proc_pid_mountinfo(5)`.
    fn parse(line: &str) -> Option<Mount> {
        let (place, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        let version = match (kind.next()?, kind.nth(1)?) {
            ("cgroup2", _) => &TWO,
            ("cgroup", options) if options.split(',').any(|name| name == "memory") => &ONE,
            _ => return None,
        };
        let mut place = place.split(' ').skip(3);
        Some(Mount {
            version,
            root: unescaped(place.next()?),
            point: unescaped(place.next()?),
        })
    }

    /// This process's group in this hierarchy, from `/proc/self/cgroup`.
    fn group_path<'a>(&self, groups: &'a str) -> Option<&'a Path> {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            let is_this = if self.version.usage == TWO.usage {
                controllers.is_empty()
            } else {
                controllers.split(',').any(|name| name == "memory")
            };
            is_this.then_some(Path::new(path))
        })
    }
}

impl Version {
    /// What the group in `directory` leaves.
    fn left(&self, directory: &Path) -> Option<u64> {
        let read = |name: &str| fs::read_to_string(directory.join(name)).ok();
        // "max" does not parse as a number.
        let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
        let limits = self.limits.iter().filter_map(|name| number(name));
        // Version 1 states the largest number of pages if there is no limit.
        let limit = limits.filter(|limit| *limit < i64::MAX as u64 / 2).min()?;
        let statistics = read("memory.stat").unwrap_or_default();
        let reclaimable: u64 = (statistics.lines())
            .filter_map(|line| line.split_once(' '))
            .filter(|(name, _)| self.reclaimable.contains(name))
            .filter_map(|(_, bytes)| bytes.trim().parse::<u64>().ok())
            .fold(0, u64::saturating_add);
        let used = number(self.usage).unwrap_or(0);
        Some(limit.saturating_sub(used.saturating_sub(reclaimable)))
    }
}

/// Decodes a path in `mountinfo`, where blanks and the like are octal.
fn unescaped(text: &str) -> PathBuf {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n")];
    let text = (escapes.iter()).fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
    PathBuf::from(text.replace("\\134", "\\"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(directory: &Path, files: &[(&str, &str)]) {
        fs::create_dir_all(directory).unwrap();
        for (name, text) in files {
            fs::write(directory.join(name), text).unwrap();
        }
    }

    #[test]
    fn the_tightest_group_of_version_2_counts_with_what_others_use() {
        let directory = tempfile::tempdir().unwrap();
        let point = directory.path().join("with blank");
        write(
            &point.join("outer"),
            &[
                ("memory.max", "1000000\n"),
                ("memory.high", "max\n"),
                ("memory.current", "700000\n"),
                (
                    "memory.stat",
                    "anon 5\ninactive_file 200000\nactive_file 100000\nshmem 9\n",
                ),
            ],
        );
        let inner = point.join("outer/inner");
        write(
            &inner,
            &[("memory.max", "max\n"), ("memory.high", "900000\n")],
        );
        let text = point.to_str().unwrap().replace(' ', "\\040");
        let mounts = format!(
            "31 23 0:28 / /sys rw - sysfs sysfs rw\n\
             38 31 0:35 / {text} rw,relatime shared:9 - cgroup2 cgroup2 rw\n"
        );
        let groups = "1:cpu:/other\n0::/outer/inner\n";
        assert_eq!(left_in(groups, &mounts), Some(600_000));
        fs::write(inner.join("memory.max"), "500000").unwrap();
        assert_eq!(left_in(groups, &mounts), Some(500_000));
        assert_eq!(left_in("0::/elsewhere\n", &mounts), None);
    }

    #[test]
    fn a_container_of_version_1_sees_its_own_group_alone() {
        let directory = tempfile::tempdir().unwrap();
        let point = directory.path().join("memory");
        write(
            &point,
            &[
                ("memory.limit_in_bytes", "300000\n"),
                ("memory.usage_in_bytes", "50000\n"),
                (
                    "memory.stat",
                    "total_inactive_file 10000\ntotal_active_file 15000\n",
                ),
            ],
        );
        let mounts = |root: &str| {
            let point = point.display();
            format!("35 31 0:32 {root} {point} rw - cgroup cgroup rw,memory\n")
        };
        let groups = "4:cpu,memory:/docker/1234\n0::/\n";
        for root in ["/docker/1234", "/", "/../.."] {
            assert_eq!(left_in(groups, &mounts(root)), Some(275_000), "{root}");
        }
        let unlimited = "9223372036854771712";
        fs::write(point.join("memory.limit_in_bytes"), unlimited).unwrap();
        assert_eq!(left_in(groups, &mounts("/")), None);
    }
}
