//! The accounts that outlive a decision: virtual times, CPU time of tenants, the isochronous share.
//!
//! Policies only read them, through [`View`](crate::view::View), and return a [`Grant`] or a
//! [`Charge`] that the driver applies here. A decision is therefore a function of its inputs and
//! can be replayed.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::accounting::{Charge, Grant};
use crate::class::TENANTS_MAX;
use crate::class::{Class, TenantId};

/// The initial weight of a tenant.
pub const WEIGHT_DEFAULT: u32 = 1024;

/// The fixed parameters of a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerRules {
    /// The number of CPUs to which the isochronous share refers; 0 counts as 1.
    pub cpus: usize,
    /// The credit that a tenant keeps while it has nothing to run, nanoseconds of its virtual time.
    pub tenant_lag_ns: u64,
    /// The share of the machine, in thousandths, above which isochronous flows count as normal.
    pub iso_limit_permille: u32,
    /// The window over which that share decays, nanoseconds.
    pub iso_window_ns: u64,
}

/// The isochronous share: BFS's `iso_cpu`, 70 % over 5 s.
pub const ISO_LIMIT_PERMILLE: u32 = 700;
/// The window of [`ISO_LIMIT_PERMILLE`], nanoseconds.
pub const ISO_WINDOW_NS: u64 = 5_000_000_000;
/// Demoted flows become isochronous again below this part of the limit, in 128ths: BFS's 115 (90
/// %).
const ISO_RECOVERY_128THS: u64 = 115;
/// The share decays in steps of at least this length, so that rounding does not lose it over many
/// short runs.
const ISO_DECAY_STEP_NS: u64 = 1_000_000;

/// The accounts.
///
/// Every field is an independent statistic, so relaxed atomics suffice. Two workers that update the
/// ledger at the same moment may or may not see each other's entry; neither entry is lost.
#[derive(Debug)]
pub struct Ledger {
    rules: LedgerRules,
    tenants: Vec<TenantAccount>,
    /// The largest dispatched tenant time, by time account.
    tenant_frontier_ns: [AtomicU64; TIME_ACCOUNTS],
    iso: IsoMeter,
}

/// Idle-class time has a separate account, because it takes nothing from other tenants.
const TIME_ACCOUNTS: usize = 2;

fn time_account(class: Class) -> usize {
    match class {
        Class::Iso | Class::Normal => 0,
        Class::Idle => 1,
    }
}

#[derive(Debug)]
struct TenantAccount {
    weight: AtomicU32,
    used_ns: [AtomicU64; TIME_ACCOUNTS],
    frontier_ns: [AtomicU64; Class::COUNT],
    /// Negative for a moment if a worker reports the end of a run before another reports its
    /// beginning.
    running: AtomicI32,
}

impl Ledger {
    /// Returns a ledger of empty accounts.
    pub fn new(rules: LedgerRules) -> Ledger {
        let account = || TenantAccount {
            weight: AtomicU32::new(WEIGHT_DEFAULT),
            used_ns: Default::default(),
            frontier_ns: Default::default(),
            running: AtomicI32::new(0),
        };
        Ledger {
            rules,
            tenants: std::iter::repeat_with(account).take(TENANTS_MAX).collect(),
            tenant_frontier_ns: Default::default(),
            iso: IsoMeter::default(),
        }
    }

    /// Sets the weight of a tenant; tenants share the machine in proportion to their weights. 0
    /// counts as 1.
    pub fn set_weight(&self, tenant: TenantId, weight: u32) {
        if let Some(account) = self.tenants.get(tenant.index()) {
            account.weight.store(weight.max(1), Relaxed);
        }
    }

    /// Records that a flow was dispatched.
    pub fn dispatched(&self, grant: &Grant) {
        if let Some(account) = self.tenants.get(grant.tenant.index()) {
            raise(&account.frontier_ns[grant.class as usize], grant.start_ns);
        }
        raise(
            &self.tenant_frontier_ns[time_account(grant.class)],
            grant.tenant_time_ns,
        );
    }

    /// Records that a flow ran.
    pub fn ran(&self, charge: &Charge) {
        let time_account = time_account(charge.class);
        if let Some(account) = self.tenants.get(charge.tenant.index()) {
            let weight = u64::from(account.weight.load(Relaxed));
            let weighted_ns = charge.ran_ns.saturating_mul(u64::from(WEIGHT_DEFAULT)) / weight;
            // Added to the effective time, not to the raw one: credit beyond the lag expires once
            // the tenant runs.
            raise(&account.used_ns[time_account], charge.tenant_time_ns);
            account.used_ns[time_account].fetch_add(weighted_ns, Relaxed);
            if charge.running_change != 0 {
                account.running.fetch_add(charge.running_change, Relaxed);
            }
        }
        if charge.class == Class::Iso {
            self.iso.charge(charge.ran_ns, charge.now_ns, &self.rules);
        }
    }

    /// The virtual time of a tenant's class: the latest start (deadline minus offset) of a
    /// dispatched flow.
    ///
    /// This is the clock of start-time fair queueing (Goyal, Vin, Cheng 1996). It advances with the
    /// work done, not with real time, so shares stay exact for any number of flows.
    pub fn frontier_ns(&self, tenant: TenantId, class: Class) -> u64 {
        let account = self.tenants.get(tenant.index());
        account.map_or(0, |account| {
            account.frontier_ns[class as usize].load(Relaxed)
        })
    }

    /// The CPU time of a tenant divided by its weight. Credit older than the lag does not count.
    pub fn tenant_time_ns(&self, tenant: TenantId, class: Class) -> u64 {
        let time_account = time_account(class);
        let frontier_ns = self.tenant_frontier_ns[time_account].load(Relaxed);
        let account = self.tenants.get(tenant.index());
        let used_ns = account.map_or(0, |account| account.used_ns[time_account].load(Relaxed));
        used_ns.max(frontier_ns.saturating_sub(self.rules.tenant_lag_ns))
    }

    /// The number of a tenant's flows that had more to do when they stopped last: those that run on
    /// and on. Flows that only wake for a moment do not count.
    pub fn running_flows(&self, tenant: TenantId) -> u32 {
        let account = self.tenants.get(tenant.index());
        let running = account.map_or(0, |account| account.running.load(Relaxed));
        u32::try_from(running).unwrap_or(0)
    }

    /// Whether isochronous flows have exceeded their share and not recovered since.
    pub fn is_iso_refractory(&self, now_ns: u64) -> bool {
        self.iso.is_refractory(now_ns, &self.rules)
    }
}

fn raise(cell: &AtomicU64, to: u64) {
    // A load before the update leaves the cache line shared while the value does not change.
    if cell.load(Relaxed) < to {
        cell.fetch_max(to, Relaxed);
    }
}

/// Isochronous time over a decaying window.
///
/// BFS updates it on each tick: `used ← used · (P − 1) / P + 1` while an isochronous task runs.
/// Here it is updated on each stop: `used ← (used + ran) · P / (P + passed)`, which converges to
/// the same value for short steps and remains accurate for long ones.
#[derive(Debug, Default)]
struct IsoMeter {
    used_ns: AtomicU64,
    decayed_at_ns: AtomicU64,
    is_refractory: AtomicBool,
}

impl IsoMeter {
    fn charge(&self, ran_ns: u64, now_ns: u64, rules: &LedgerRules) {
        self.used_ns.fetch_add(ran_ns, Relaxed);
        let since_ns = self.decayed_at_ns.load(Relaxed);
        let passed_ns = now_ns.saturating_sub(since_ns);
        // Only the thread that wins the exchange subtracts, and never more than it read; others
        // only add.
        let is_mine = passed_ns >= ISO_DECAY_STEP_NS
            && self
                .decayed_at_ns
                .compare_exchange(since_ns, now_ns, Relaxed, Relaxed)
                .is_ok();
        if is_mine {
            let used_ns = self.used_ns.load(Relaxed);
            let lost_ns = used_ns - decayed(used_ns, passed_ns, rules);
            self.used_ns.fetch_sub(lost_ns, Relaxed);
        }
        let used_ns = self.used_ns.load(Relaxed);
        if used_ns > limit_ns(rules) {
            self.is_refractory.store(true, Relaxed);
        } else if used_ns < recovery_ns(rules) {
            self.is_refractory.store(false, Relaxed);
        }
    }

    fn is_refractory(&self, now_ns: u64, rules: &LedgerRules) -> bool {
        // Demoted flows may not run at all for a while, so no charge arrives: apply the decay here.
        self.is_refractory.load(Relaxed) && {
            let passed_ns = now_ns.saturating_sub(self.decayed_at_ns.load(Relaxed));
            decayed(self.used_ns.load(Relaxed), passed_ns, rules) >= recovery_ns(rules)
        }
    }
}

fn decayed(used_ns: u64, passed_ns: u64, rules: &LedgerRules) -> u64 {
    let window_ns = u128::from(rules.iso_window_ns.max(1));
    let left = u128::from(used_ns) * window_ns / (window_ns + u128::from(passed_ns));
    // At most `used_ns`, so the cast does not truncate.
    left as u64
}

fn limit_ns(rules: &LedgerRules) -> u64 {
    let whole_ns = rules.iso_window_ns.saturating_mul(rules.cpus.max(1) as u64);
    whole_ns / 1000 * u64::from(rules.iso_limit_permille)
}

fn recovery_ns(rules: &LedgerRules) -> u64 {
    limit_ns(rules) / 128 * ISO_RECOVERY_128THS
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn ledger(cpus: usize) -> Ledger {
        Ledger::new(LedgerRules {
            cpus,
            tenant_lag_ns: 10 * MS,
            iso_limit_permille: ISO_LIMIT_PERMILLE,
            iso_window_ns: ISO_WINDOW_NS,
        })
    }

    fn charge(ledger: &Ledger, class: Class, tenant: TenantId, ran_ns: u64, now_ns: u64) {
        ledger.ran(&Charge {
            class,
            tenant,
            ran_ns,
            tenant_time_ns: ledger.tenant_time_ns(tenant, class),
            now_ns,
            running_change: 0,
        });
    }

    /// Runs an isochronous CPU-bound flow on one of `cpus` CPUs. Returns when it is demoted, and
    /// how long it then takes to recover without running.
    fn demotion_and_recovery_ms(cpus: usize, step_ns: u64) -> (Option<u64>, u64) {
        let ledger = ledger(cpus);
        let mut now_ns = 0;
        while !ledger.is_iso_refractory(now_ns) {
            now_ns += step_ns;
            charge(&ledger, Class::Iso, TenantId::default(), step_ns, now_ns);
            if now_ns > 100_000 * MS {
                return (None, 0);
            }
        }
        let demoted_ns = now_ns;
        while ledger.is_iso_refractory(now_ns) {
            now_ns += MS;
        }
        (Some(demoted_ns / MS), (now_ns - demoted_ns) / MS)
    }

    #[test]
    fn a_cpu_bound_isochronous_flow_is_demoted_and_recovers() {
        // Continuous form: used/window = 1 − e^(−t/5 s), which reaches 70 % after 5 s · ln(1/0.3) =
        // 6.02 s. The decay back to 115/128 of that takes about 5 s · ln(128/115) = 0.54 s.
        for step_ns in [MS / 4, MS, 6 * MS] {
            let (demoted_ms, recovered_ms) = demotion_and_recovery_ms(1, step_ns);
            let demoted_ms = demoted_ms.unwrap();
            assert!(
                (5_900..6_150).contains(&demoted_ms),
                "{demoted_ms} with {step_ns}"
            );
            assert!(
                (500..600).contains(&recovered_ms),
                "{recovered_ms} with {step_ns}"
            );
        }
        // One of two CPUs is half of the machine, below the limit.
        assert_eq!(demotion_and_recovery_ms(2, MS).0, None);
    }

    #[test]
    fn tenants_are_charged_by_weight_and_old_credit_expires() {
        let ledger = ledger(1);
        let (rich, poor, late) = (TenantId::new(1), TenantId::new(2), TenantId::new(3));
        ledger.set_weight(rich, 2 * WEIGHT_DEFAULT);
        ledger.set_weight(poor, 0);
        charge(&ledger, Class::Normal, rich, 100 * MS, 0);
        assert_eq!(ledger.tenant_time_ns(rich, Class::Normal), 50 * MS);
        charge(&ledger, Class::Normal, poor, MS, 0);
        assert_eq!(ledger.tenant_time_ns(poor, Class::Normal), 1024 * MS);
        assert_eq!(
            ledger.tenant_time_ns(rich, Class::Idle),
            0,
            "idle-class time is separate"
        );
        ledger.dispatched(&Grant {
            slice_ns: MS,
            start_ns: 7,
            class: Class::Normal,
            tenant: rich,
            tenant_time_ns: 50 * MS,
        });
        assert_eq!(ledger.frontier_ns(rich, Class::Normal), 7);
        assert_eq!(ledger.frontier_ns(late, Class::Normal), 0);
        assert_eq!(ledger.tenant_time_ns(late, Class::Normal), 40 * MS);
        charge(&ledger, Class::Normal, late, MS, 0);
        assert_eq!(ledger.tenant_time_ns(late, Class::Normal), 41 * MS);
    }
}
