//! How many processors the process may use.

use refrain_policy::topology::Allowance;

/// The number of processors that the calling thread may use now: those of its affinity mask and
/// cpuset, and no more than its control groups' quota of processor time, rounded up. Reads a few
/// small files, so ask once for a run; runs then follow when an administrator changes the set.
pub fn processors() -> usize {
    Allowance::of_this_thread().workers()
}

#[cfg(all(test, not(loom), target_os = "linux"))]
#[allow(
    clippy::unwrap_used,
    reason = "clippy does not take `all(test, not(loom))` for a test"
)]
mod tests {
    use super::*;
    use crate::thread::class::KernelClass;
    use crate::thread::settings::ThreadSettings;

    #[test]
    fn the_number_follows_when_the_allowed_set_changes() {
        std::thread::spawn(|| {
            let all = ThreadSettings::from_process(KernelClass::Normal);
            all.apply();
            let before = processors();
            let machine = refrain_policy::topology::Machine::discover();
            let first = machine.topology.cpus().first().unwrap().os_number;
            all.on_processors(std::iter::once(first)).apply();
            assert_eq!(processors(), 1);
            all.apply();
            assert_eq!(processors(), before);
        })
        .join()
        .unwrap();
    }
}
