//! A view that records queries, and one that replays the answers.

use std::cell::{Cell, RefCell};
use std::sync::OnceLock;

use crate::class::{Class, TenantId};
use crate::key::Key;
use crate::ledger::{Ledger, LedgerRules};
use crate::topology::{CpuId, CpuMask, StripeId, Topology};
use crate::view::View;

/// A query to a [`View`]. The last field is the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the arguments and results of View's methods")]
pub enum Query {
    Now(u64),
    Idle(CpuMask),
    Running(CpuId, Key),
    IsScaledDown(CpuId, bool),
    Stripes(usize),
    StripeOf(CpuId, StripeId),
    BestKey(StripeId, Key),
    Queued(StripeId, usize),
    QueuedScore(StripeId, u64),
    Frontier(TenantId, Class, u64),
    TenantTime(TenantId, Class, u64),
    RunningFlows(TenantId, u32),
    IsIsoRefractory(bool),
}

/// Passes queries on to another view and records them.
pub(super) struct RecordingView<'a, V> {
    view: &'a V,
    queries: RefCell<Vec<Query>>,
}

impl<'a, V> RecordingView<'a, V> {
    pub(super) fn new(view: &'a V) -> Self {
        RecordingView {
            view,
            queries: RefCell::default(),
        }
    }

    pub(super) fn queries(self) -> Vec<Query> {
        self.queries.into_inner()
    }

    fn note<R: Copy>(&self, answer: R, query: impl FnOnce(R) -> Query) -> R {
        self.queries.borrow_mut().push(query(answer));
        answer
    }
}

impl<V: View> View for RecordingView<'_, V> {
    fn now_ns(&self) -> u64 {
        self.note(self.view.now_ns(), Query::Now)
    }
    fn topology(&self) -> &Topology {
        self.view.topology()
    }
    fn idle(&self) -> CpuMask {
        self.note(self.view.idle(), Query::Idle)
    }
    fn running(&self, cpu: CpuId) -> Key {
        self.note(self.view.running(cpu), |key| Query::Running(cpu, key))
    }
    fn is_scaled_down(&self, cpu: CpuId) -> bool {
        self.note(self.view.is_scaled_down(cpu), |is| {
            Query::IsScaledDown(cpu, is)
        })
    }
    fn stripes(&self) -> usize {
        self.note(self.view.stripes(), Query::Stripes)
    }
    fn stripe_of(&self, cpu: CpuId) -> StripeId {
        self.note(self.view.stripe_of(cpu), |stripe| {
            Query::StripeOf(cpu, stripe)
        })
    }
    fn best_key(&self, stripe: StripeId) -> Key {
        self.note(self.view.best_key(stripe), |key| {
            Query::BestKey(stripe, key)
        })
    }
    fn queued(&self, stripe: StripeId) -> usize {
        self.note(self.view.queued(stripe), |length| {
            Query::Queued(stripe, length)
        })
    }
    fn queued_score(&self, stripe: StripeId) -> u64 {
        self.note(self.view.queued_score(stripe), |sum| {
            Query::QueuedScore(stripe, sum)
        })
    }
    fn ledger(&self) -> &Ledger {
        self.view.ledger()
    }
    fn frontier_ns(&self, tenant: TenantId, class: Class) -> u64 {
        let answer = self.view.frontier_ns(tenant, class);
        self.note(answer, |time| Query::Frontier(tenant, class, time))
    }
    fn tenant_time_ns(&self, tenant: TenantId, class: Class) -> u64 {
        let answer = self.view.tenant_time_ns(tenant, class);
        self.note(answer, |time| Query::TenantTime(tenant, class, time))
    }
    fn running_flows(&self, tenant: TenantId) -> u32 {
        self.note(self.view.running_flows(tenant), |count| {
            Query::RunningFlows(tenant, count)
        })
    }
    fn is_iso_refractory(&self) -> bool {
        self.note(self.view.is_iso_refractory(), Query::IsIsoRefractory)
    }
}

/// Returns the recorded answers while the queries match the recording.
pub(super) struct ReplayView<'a> {
    topology: &'a Topology,
    queries: &'a [Query],
    next: Cell<usize>,
    has_diverged: Cell<bool>,
    /// Empty accounts. A policy that queries the view instead of the ledger never reads it.
    ledger: OnceLock<Ledger>,
}

impl<'a> ReplayView<'a> {
    pub(super) fn new(topology: &'a Topology, queries: &'a [Query]) -> Self {
        ReplayView {
            topology,
            queries,
            next: Cell::new(0),
            has_diverged: Cell::new(false),
            ledger: OnceLock::new(),
        }
    }

    /// Whether the queries were exactly the recorded ones.
    pub(super) fn is_exhausted(&self) -> bool {
        self.next.get() == self.queries.len() && !self.has_diverged.get()
    }

    /// The next recorded answer if the query matches, else `default`.
    fn answer<R>(&self, matches: impl FnOnce(Query) -> Option<R>, default: R) -> R {
        let query = self.queries.get(self.next.get());
        self.next.set(self.next.get() + 1);
        query.and_then(|query| matches(*query)).unwrap_or_else(|| {
            self.has_diverged.set(true);
            default
        })
    }
}

/// The answer of the next recorded query, if it is this one with the same arguments.
macro_rules! answer {
    ($view:ident, $query:pat $(if $same:expr)? => $answer:ident, else $default:expr) => {
        $view.answer(
            |query| match query {
                $query $(if $same)? => Some($answer),
                _ => None,
            },
            $default,
        )
    };
}

impl View for ReplayView<'_> {
    fn now_ns(&self) -> u64 {
        answer!(self, Query::Now(time) => time, else 0)
    }
    fn topology(&self) -> &Topology {
        self.topology
    }
    fn idle(&self) -> CpuMask {
        answer!(self, Query::Idle(mask) => mask, else CpuMask::EMPTY)
    }
    fn running(&self, cpu: CpuId) -> Key {
        answer!(self, Query::Running(then, key) if then == cpu => key, else Key::NONE)
    }
    fn is_scaled_down(&self, cpu: CpuId) -> bool {
        answer!(self, Query::IsScaledDown(then, is) if then == cpu => is, else false)
    }
    fn stripes(&self) -> usize {
        answer!(self, Query::Stripes(count) => count, else 1)
    }
    fn stripe_of(&self, cpu: CpuId) -> StripeId {
        let default = StripeId::default();
        answer!(self, Query::StripeOf(then, stripe) if then == cpu => stripe, else default)
    }
    fn best_key(&self, stripe: StripeId) -> Key {
        answer!(self, Query::BestKey(then, key) if then == stripe => key, else Key::NONE)
    }
    fn queued(&self, stripe: StripeId) -> usize {
        answer!(self, Query::Queued(then, length) if then == stripe => length, else 0)
    }
    fn queued_score(&self, stripe: StripeId) -> u64 {
        answer!(self, Query::QueuedScore(then, sum) if then == stripe => sum, else 0)
    }
    fn ledger(&self) -> &Ledger {
        self.has_diverged.set(true);
        self.ledger.get_or_init(|| {
            Ledger::new(LedgerRules {
                cpus: self.topology.len(),
                tenant_lag_ns: 0,
                iso_limit_permille: 0,
                iso_window_ns: 0,
            })
        })
    }
    fn frontier_ns(&self, tenant: TenantId, class: Class) -> u64 {
        let same = |whose, which| (whose, which) == (tenant, class);
        answer!(self, Query::Frontier(whose, which, time) if same(whose, which) => time, else 0)
    }
    fn tenant_time_ns(&self, tenant: TenantId, class: Class) -> u64 {
        let same = |whose, which| (whose, which) == (tenant, class);
        answer!(self, Query::TenantTime(whose, which, time) if same(whose, which) => time, else 0)
    }
    fn running_flows(&self, tenant: TenantId) -> u32 {
        answer!(self, Query::RunningFlows(whose, count) if whose == tenant => count, else 0)
    }
    fn is_iso_refractory(&self) -> bool {
        answer!(self, Query::IsIsoRefractory(is) => is, else false)
    }
}
