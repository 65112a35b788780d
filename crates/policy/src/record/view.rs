//! A view that listens, and one that repeats what was heard.

use std::cell::{Cell, RefCell};
use std::sync::OnceLock;

use super::super::{Class, Key, Ledger, LedgerRules, Nice, TenantId, View};
use crate::topology::{CpuId, CpuMask, StripeId, Topology};

/// A question to a [`View`], with its answer last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the arguments and results of View's methods")]
pub enum Asked {
    Now(u64),
    Idle(CpuMask),
    Running(CpuId, Key),
    RunningNice(CpuId, Nice),
    IsScaledDown(CpuId, bool),
    Stripes(usize),
    StripeOf(CpuId, StripeId),
    BestKey(StripeId, Key),
    Queued(StripeId, usize),
    Frontier(TenantId, Class, u64),
    TenantTime(TenantId, Class, u64),
    IsIsoRefractory(bool),
}

pub(super) struct Listening<'a, V> {
    view: &'a V,
    heard: RefCell<Vec<Asked>>,
}

impl<'a, V> Listening<'a, V> {
    pub(super) fn new(view: &'a V) -> Self {
        Listening {
            view,
            heard: RefCell::default(),
        }
    }

    pub(super) fn heard(self) -> Vec<Asked> {
        self.heard.into_inner()
    }

    fn note<R: Copy>(&self, answer: R, asked: impl FnOnce(R) -> Asked) -> R {
        self.heard.borrow_mut().push(asked(answer));
        answer
    }
}

impl<V: View> View for Listening<'_, V> {
    fn now_ns(&self) -> u64 {
        self.note(self.view.now_ns(), Asked::Now)
    }
    fn topology(&self) -> &Topology {
        self.view.topology()
    }
    fn idle(&self) -> CpuMask {
        self.note(self.view.idle(), Asked::Idle)
    }
    fn running(&self, cpu: CpuId) -> Key {
        self.note(self.view.running(cpu), |key| Asked::Running(cpu, key))
    }
    fn running_nice(&self, cpu: CpuId) -> Nice {
        self.note(self.view.running_nice(cpu), |nice| {
            Asked::RunningNice(cpu, nice)
        })
    }
    fn is_scaled_down(&self, cpu: CpuId) -> bool {
        self.note(self.view.is_scaled_down(cpu), |is| {
            Asked::IsScaledDown(cpu, is)
        })
    }
    fn stripes(&self) -> usize {
        self.note(self.view.stripes(), Asked::Stripes)
    }
    fn stripe_of(&self, cpu: CpuId) -> StripeId {
        self.note(self.view.stripe_of(cpu), |stripe| {
            Asked::StripeOf(cpu, stripe)
        })
    }
    fn best_key(&self, stripe: StripeId) -> Key {
        self.note(self.view.best_key(stripe), |key| {
            Asked::BestKey(stripe, key)
        })
    }
    fn queued(&self, stripe: StripeId) -> usize {
        self.note(self.view.queued(stripe), |length| {
            Asked::Queued(stripe, length)
        })
    }
    fn ledger(&self) -> &Ledger {
        self.view.ledger()
    }
    fn frontier_ns(&self, tenant: TenantId, class: Class) -> u64 {
        let answer = self.view.frontier_ns(tenant, class);
        self.note(answer, |time| Asked::Frontier(tenant, class, time))
    }
    fn tenant_time_ns(&self, tenant: TenantId, class: Class) -> u64 {
        let answer = self.view.tenant_time_ns(tenant, class);
        self.note(answer, |time| Asked::TenantTime(tenant, class, time))
    }
    fn is_iso_refractory(&self) -> bool {
        self.note(self.view.is_iso_refractory(), Asked::IsIsoRefractory)
    }
}

/// Answers as before, as long as the questions are as before.
pub(super) struct Repeating<'a> {
    topology: &'a Topology,
    asked: &'a [Asked],
    next: Cell<usize>,
    has_diverged: Cell<bool>,
    /// Never asked by a policy that asks the view; empty accounts for one that does.
    ledger: OnceLock<Ledger>,
}

impl<'a> Repeating<'a> {
    pub(super) fn new(topology: &'a Topology, asked: &'a [Asked]) -> Self {
        Repeating {
            topology,
            asked,
            next: Cell::new(0),
            has_diverged: Cell::new(false),
            ledger: OnceLock::new(),
        }
    }

    /// Whether all questions came again, and no others.
    pub(super) fn is_exhausted(&self) -> bool {
        self.next.get() == self.asked.len() && !self.has_diverged.get()
    }

    /// The next answer if the question fits, else `other`.
    fn answer<R>(&self, fits: impl FnOnce(Asked) -> Option<R>, other: R) -> R {
        let asked = self.asked.get(self.next.get());
        self.next.set(self.next.get() + 1);
        asked.and_then(|asked| fits(*asked)).unwrap_or_else(|| {
            self.has_diverged.set(true);
            other
        })
    }
}

impl View for Repeating<'_> {
    fn now_ns(&self) -> u64 {
        self.answer(
            |asked| {
                if let Asked::Now(time) = asked {
                    Some(time)
                } else {
                    None
                }
            },
            0,
        )
    }
    fn topology(&self) -> &Topology {
        self.topology
    }
    fn idle(&self) -> CpuMask {
        let fits = |asked| {
            if let Asked::Idle(mask) = asked {
                Some(mask)
            } else {
                None
            }
        };
        self.answer(fits, CpuMask::EMPTY)
    }
    fn running(&self, cpu: CpuId) -> Key {
        let fits = |asked| match asked {
            Asked::Running(then, key) if then == cpu => Some(key),
            _ => None,
        };
        self.answer(fits, Key::NONE)
    }
    fn running_nice(&self, cpu: CpuId) -> Nice {
        let fits = |asked| match asked {
            Asked::RunningNice(then, nice) if then == cpu => Some(nice),
            _ => None,
        };
        self.answer(fits, Nice::default())
    }
    fn is_scaled_down(&self, cpu: CpuId) -> bool {
        let fits = |asked| match asked {
            Asked::IsScaledDown(then, is) if then == cpu => Some(is),
            _ => None,
        };
        self.answer(fits, false)
    }
    fn stripes(&self) -> usize {
        self.answer(
            |asked| {
                if let Asked::Stripes(count) = asked {
                    Some(count)
                } else {
                    None
                }
            },
            1,
        )
    }
    fn stripe_of(&self, cpu: CpuId) -> StripeId {
        let fits = |asked| match asked {
            Asked::StripeOf(then, stripe) if then == cpu => Some(stripe),
            _ => None,
        };
        self.answer(fits, StripeId::default())
    }
    fn best_key(&self, stripe: StripeId) -> Key {
        let fits = |asked| match asked {
            Asked::BestKey(then, key) if then == stripe => Some(key),
            _ => None,
        };
        self.answer(fits, Key::NONE)
    }
    fn queued(&self, stripe: StripeId) -> usize {
        let fits = |asked| match asked {
            Asked::Queued(then, length) if then == stripe => Some(length),
            _ => None,
        };
        self.answer(fits, 0)
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
        let fits = |asked| match asked {
            Asked::Frontier(whose, which, time) if (whose, which) == (tenant, class) => Some(time),
            _ => None,
        };
        self.answer(fits, 0)
    }
    fn tenant_time_ns(&self, tenant: TenantId, class: Class) -> u64 {
        let fits = |asked| match asked {
            Asked::TenantTime(whose, which, time) if (whose, which) == (tenant, class) => {
                Some(time)
            }
            _ => None,
        };
        self.answer(fits, 0)
    }
    fn is_iso_refractory(&self) -> bool {
        let fits = |asked| {
            if let Asked::IsIsoRefractory(is) = asked {
                Some(is)
            } else {
                None
            }
        };
        self.answer(fits, false)
    }
}
