use std::fs;

use proptest::prelude::*;

use super::*;
use crate::topology::{CpuId, Locality};

/// A file tree of a captured or invented machine: paths below the root and contents.
struct Tree {
    root: tempfile::TempDir,
}

impl Tree {
    fn new(files: &[(&str, &str)]) -> Tree {
        let root = tempfile::tempdir().unwrap();
        let tree = Tree { root };
        files.iter().for_each(|(path, text)| tree.write(path, text));
        tree
    }

    fn write(&self, path: &str, text: &str) {
        let file = self.root.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// Writes a CPU as sysfs shows it: its siblings, and the CPUs behind its level-3 cache.
    fn write_cpu(&self, number: u32, siblings: &str, cache: &str) {
        let cpu = format!("sys/devices/system/cpu/cpu{number}");
        self.write(&format!("{cpu}/topology/core_cpus_list"), siblings);
        for (index, level, kind, members) in [
            (0, "1", "Data", siblings),
            (1, "1", "Instruction", siblings),
            (2, "2", "Unified", siblings),
            (3, "3", "Unified", cache),
        ] {
            let directory = format!("{cpu}/cache/index{index}");
            self.write(&format!("{directory}/level"), level);
            self.write(&format!("{directory}/type"), kind);
            self.write(&format!("{directory}/shared_cpu_list"), members);
        }
    }

    fn machine(&self, affinity: &[u32]) -> Machine {
        Machine::from_sources(&Sources {
            sys: self.root.path().join("sys"),
            proc: self.root.path().join("proc"),
            affinity: affinity.to_vec(),
        })
    }
}

/// Two nodes of two cores of two threads. Siblings are numbered as on Intel's servers: the second
/// thread of core n is n + 4.
fn server() -> Tree {
    let tree = Tree::new(&[
        ("sys/devices/system/cpu/online", "0-7\n"),
        ("sys/devices/system/node/node0/cpulist", "0-1,4-5\n"),
        ("sys/devices/system/node/node1/cpulist", "2-3,6-7\n"),
    ]);
    for cpu in 0..8u32 {
        let core = cpu % 4;
        let cache = if core < 2 { "0-1,4-5" } else { "2-3,6-7" };
        tree.write_cpu(cpu, &format!("{core},{}\n", core + 4), cache);
    }
    tree
}

fn os_numbers(machine: &Machine) -> Vec<u32> {
    machine
        .topology
        .cpus()
        .iter()
        .map(|cpu| cpu.os_number)
        .collect()
}

#[test]
fn discovers_a_two_node_server() {
    let machine = server().machine(&[]);
    let locality = |to| machine.topology.locality(CpuId::FIRST, CpuId::new(to));
    assert_eq!(
        [1, 4, 2, 6].map(locality),
        [
            Locality::Cache,
            Locality::Sibling,
            Locality::Distant,
            Locality::Distant
        ]
    );
    assert_eq!((machine.workers(), machine.quota_permille), (8, None));
}

#[test]
fn affinity_and_offline_cpus_reduce_the_machine() {
    let tree = server();
    tree.write("sys/devices/system/cpu/online", "0,2-7");
    let machine = tree.machine(&[0, 1, 5, 6]);
    assert_eq!(os_numbers(&machine), [0, 5, 6]);
    assert_eq!(
        machine.topology.locality(CpuId::new(0), CpuId::new(1)),
        Locality::Cache
    );
    assert_eq!(
        machine.topology.locality(CpuId::new(0), CpuId::new(2)),
        Locality::Distant
    );
    // An affinity mask without any CPU of this machine is ignored.
    assert_eq!(tree.machine(&[100]).topology.len(), 7);
}

#[test]
fn applies_cpusets_and_quotas_of_control_groups_version_2() {
    let tree = server();
    tree.write("proc/self/cgroup", "0::/user/job\n");
    tree.write("sys/fs/cgroup/user/cpuset.cpus.effective", "1-3\n");
    tree.write("sys/fs/cgroup/user/job/cpu.max", "max 100000\n");
    tree.write("sys/fs/cgroup/user/cpu.max", "150000 100000\n");
    let machine = tree.machine(&[]);
    assert_eq!(os_numbers(&machine), [1, 2, 3]);
    assert_eq!((machine.quota_permille, machine.workers()), (Some(1500), 2));
    tree.write("sys/fs/cgroup/user/job/cpuset.cpus.effective", "3\n");
    assert_eq!(os_numbers(&tree.machine(&[])), [3]);
}

#[test]
fn applies_cpusets_and_quotas_of_control_groups_version_1() {
    let tree = server();
    tree.write(
        "proc/self/cgroup",
        "3:cpuset:/box\n2:cpu,cpuacct:/box\n0::/elsewhere\n",
    );
    tree.write("sys/fs/cgroup/cpuset/box/cpuset.cpus", "4-5\n");
    tree.write("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "50000\n");
    tree.write("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
    let machine = tree.machine(&[]);
    assert_eq!(os_numbers(&machine), [4, 5]);
    assert_eq!((machine.quota_permille, machine.workers()), (Some(500), 1));
    // −1 means "no limit" here.
    tree.write("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "-1\n");
    assert_eq!(tree.machine(&[]).quota_permille, None);
}

#[test]
fn speeds_follow_capacity_or_frequency() {
    let tree = server();
    let speeds = |machine: Machine| -> Vec<u16> {
        machine
            .topology
            .cpus()
            .iter()
            .map(|cpu| cpu.capacity)
            .collect()
    };
    for cpu in 0..8 {
        let directory = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq");
        let full = if cpu < 4 { "4000000" } else { "2000000" };
        tree.write(&format!("{directory}/cpuinfo_max_freq"), full);
    }
    assert_eq!(
        speeds(tree.machine(&[])),
        [1024, 1024, 1024, 1024, 512, 512, 512, 512]
    );
    for cpu in 0..8 {
        let capacity = if cpu == 0 { "1024" } else { "256" };
        tree.write(
            &format!("sys/devices/system/cpu/cpu{cpu}/cpu_capacity"),
            capacity,
        );
    }
    assert_eq!(speeds(tree.machine(&[]))[..3], [1024, 256, 256]);
    tree.write("sys/devices/system/cpu/cpu3/cpu_capacity", "0");
    assert_eq!(
        speeds(tree.machine(&[]))[..3],
        [1024, 1024, 1024],
        "falls back to frequencies"
    );
}

#[test]
fn missing_files_give_a_flat_machine() {
    let tree = Tree::new(&[]);
    assert_eq!(os_numbers(&tree.machine(&[3, 9])), [3, 9]);
    assert!(!tree.machine(&[]).topology.is_empty());
    // Directories without lists, topology or caches: equal CPUs, each a separate core.
    let tree = Tree::new(&[]);
    for cpu in [0, 2] {
        tree.write(&format!("sys/devices/system/cpu/cpu{cpu}/uevent"), "");
    }
    let machine = tree.machine(&[]);
    assert_eq!(os_numbers(&machine), [0, 2]);
    assert_eq!(
        machine.topology.locality(CpuId::new(0), CpuId::new(1)),
        Locality::Node
    );
}

#[test]
fn this_machine_has_at_least_one_cpu() {
    let machine = Machine::discover();
    assert_eq!(machine.workers(), Allowance::of_process().workers());
    assert!((1..=CPUS_MAX).contains(&machine.topology.len()));
    assert!(machine.workers() <= machine.topology.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(refrain_testkit::scaled(64)))]

    /// Any file contents: no panic, and the CPUs of one core share one cache.
    #[test]
    fn malformed_files_give_a_valid_machine(
        texts in proptest::collection::vec("[0-9,\\-x\n ]{0,12}", 24),
        affinity in proptest::collection::vec(0u32..10, 0..4),
    ) {
        let tree = Tree::new(&[("proc/self/cgroup", "0::/a\n1:cpu,cpuset:/b\nnonsense\n")]);
        let mut texts = texts.iter();
        let mut text = || texts.next().unwrap();
        tree.write("sys/devices/system/cpu/online", text());
        tree.write("sys/fs/cgroup/a/cpuset.cpus.effective", text());
        tree.write("sys/fs/cgroup/a/cpu.max", text());
        tree.write("sys/fs/cgroup/cpu/b/cpu.cfs_quota_us", text());
        tree.write("sys/fs/cgroup/cpu/b/cpu.cfs_period_us", text());
        tree.write("sys/devices/system/node/node1/cpulist", text());
        for cpu in 0..4 {
            tree.write_cpu(cpu, text(), text());
            tree.write(&format!("sys/devices/system/cpu/cpu{cpu}/cpu_capacity"), text());
        }
        let machine = tree.machine(&affinity);
        prop_assert!((1..=CPUS_MAX).contains(&machine.topology.len()));
        prop_assert!(machine.workers() >= 1);
        for (index, cpu) in machine.topology.cpus().iter().enumerate() {
            let id = CpuId::new(index);
            prop_assert!(machine.topology.core_of(id).contains(id));
            prop_assert!(machine.topology.core_of(id).is_subset_of(&machine.topology.cache_of(id)));
            prop_assert!((1..=CAPACITY_MAX).contains(&cpu.capacity));
        }
    }
}
