//! What tenants are charged, and what they weigh.

use std::time::Duration;

use refrain_policy::{Charge, TENANTS_MAX, TenantId};

use super::*;
use crate::pool::tenants::Seat;
use crate::thread::kernel;

#[cfg(target_os = "linux")]
#[test]
fn a_tenant_is_charged_for_the_processor_time_and_not_for_waiting() {
    let pool = pool(1);
    let flow = |tenant| {
        let tenant = TenantId::new(tenant);
        pool.flow(Entity::new(Class::Normal).with_tenant(tenant))
    };
    let charged_ns = |run: &dyn Fn()| {
        let ledger = &pool.normal.ledger;
        let used_ns = || ledger.tenant_time_ns(TenantId::new(1), Class::Normal);
        let before_ns = used_ns();
        run();
        // What a worker has charged last is in the accounts when it has charged another tenant.
        for _ in 0..2 {
            flow(2).run(|| ()).unwrap();
        }
        used_ns() - before_ns
    };
    let waits = || std::thread::sleep(Duration::from_millis(50));
    let computes = || {
        let start_ns = kernel::thread_cpu_ns().unwrap();
        while kernel::thread_cpu_ns().unwrap() < start_ns + 50_000_000 {}
    };
    let waited_ns = charged_ns(&|| flow(1).run(waits).unwrap());
    assert!(waited_ns < 10_000_000, "{waited_ns}");
    let computed_ns = charged_ns(&|| flow(1).run(computes).unwrap());
    assert!(computed_ns >= 50_000_000, "{computed_ns}");
    let aside_ns = charged_ns(&|| flow(1).run(|| aside(computes)).unwrap());
    assert!(aside_ns >= 50_000_000, "{aside_ns}");
    // A flow on top of it is charged for itself.
    let with_nested_ns = charged_ns(&|| {
        let urgent = urgent(&pool);
        let run = || {
            computes();
            urgent.submit(computes);
            checkpoint();
        };
        flow(1).run(run).unwrap();
    });
    let range = 50_000_000..90_000_000;
    assert!(range.contains(&with_nested_ns), "{with_nested_ns}");
}

#[test]
fn a_shared_tenant_weighs_as_much_as_its_users_that_have_something_to_do() {
    let pool = pool(1);
    let seats: Vec<Seat> = (0..TENANTS_MAX)
        .map(|_| Seat::take(&pool.tenants))
        .collect();
    let (one, other) = (&seats[0], &seats[TENANTS_MAX - 1]);
    assert_eq!(one.tenant(), other.tenant());
    let ledger = &pool.normal.ledger;
    let used_ns = || ledger.tenant_time_ns(one.tenant(), Class::Normal);
    let charged_ns = || {
        let before_ns = used_ns();
        ledger.ran(&Charge {
            class: Class::Normal,
            tenant: one.tenant(),
            ran_ns: 1000,
            tenant_time_ns: before_ns,
            now_ns: 0,
            running_change: 0,
        });
        used_ns() - before_ns
    };
    assert_eq!(charged_ns(), 1000, "nobody");
    one.begin_work();
    one.begin_work();
    assert_eq!(charged_ns(), 1000, "one, twice");
    other.begin_work();
    assert_eq!(charged_ns(), 500, "both");
    one.end_work();
    assert_eq!(charged_ns(), 500);
    one.end_work();
    assert_eq!(charged_ns(), 1000, "the other");
}
