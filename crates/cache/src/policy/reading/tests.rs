//! Any events in any order.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::policy::Rules;

const NODES: usize = 4;

fn policy(rules: Rules) -> Policy {
    Policy::new(rules, ["a", "b", "c", "d"])
}

fn answers() -> impl Strategy<Value = Answer> {
    prop_oneof![
        Just(Answer::Value),
        Just(Answer::Missing),
        Just(Answer::Promised)
    ]
}

fn events() -> impl Strategy<Value = (Event, u64)> {
    let event = prop_oneof![
        3 => (0..NODES, answers()).prop_map(|(node, answer)| Event::Answered(node, answer)),
        1 => (0..NODES).prop_map(Event::Broke),
        4 => Just(Event::Time),
    ];
    (event, 0..3_000_000_u64)
}

/// Carries out commands, and checks that each may follow what came before.
#[derive(Default)]
struct Driver {
    /// Nodes that were asked since the last pause.
    asked: BTreeSet<Node>,
    asks: u64,
    added: u64,
    rounds: u64,
    is_paused: bool,
    ends: u64,
}

impl Driver {
    fn carry_out(&mut self, commands: Commands) {
        for command in commands.into_iter().flatten() {
            assert_eq!(self.ends, 0, "{command:?} after the end");
            self.added += u64::from(command.is_added());
            match command {
                Command::Probe(node) => assert!(!self.asked.contains(&node)),
                Command::Ask(node, purpose) => {
                    if purpose == Purpose::First {
                        self.rounds += 1;
                        self.is_paused = false;
                    }
                    assert!(!self.is_paused && self.asked.insert(node), "{command:?}");
                    self.asks += 1;
                }
                Command::Pause => {
                    assert!(!self.is_paused);
                    self.is_paused = true;
                    self.asked.clear();
                }
                Command::NextTier { .. } | Command::Finish => self.ends += 1,
            }
        }
    }
}

proptest! {
    #[test]
    fn events_in_any_order_have_one_outcome_and_stay_within_the_budget(
        reads in prop::collection::vec((any::<u8>(), prop::collection::vec(events(), 0..30)), 1..20),
        added_thousandths in 0..100_u64,
        added_at_once in 0..4_u64,
    ) {
        let rules = Rules { added_thousandths, added_at_once, ..Rules::default() };
        let mut policy = policy(rules);
        let (mut now_ns, mut added, mut rounds) = (0, 0, 0);
        for (byte, events) in reads {
            let begun_ns = now_ns;
            let (mut reading, commands) = Reading::begin(Key::new([byte; 32]), &mut policy, now_ns);
            let mut driver = Driver::default();
            driver.carry_out(commands);
            for (event, later_ns) in events {
                now_ns += later_ns;
                if let Event::Broke(node) = event {
                    policy.failed(node, now_ns);
                }
                driver.carry_out(reading.take(event, &mut policy, now_ns));
                prop_assert!(driver.ends == 0 || reading.wake_ns() == u64::MAX);
            }
            // Time alone ends it, and soon.
            while driver.ends == 0 {
                prop_assert!(reading.wake_ns() < begun_ns + rules.promise_ns_max + rules.deadline_ns + 3_000_000 * 30);
                now_ns = now_ns.max(reading.wake_ns());
                driver.carry_out(reading.take(Event::Time, &mut policy, now_ns));
            }
            for node in 0..NODES {
                driver.carry_out(reading.take(Event::Answered(node, Answer::Value), &mut policy, now_ns));
            }
            driver.carry_out(reading.take(Event::Time, &mut policy, u64::MAX));
            prop_assert_eq!(driver.ends, 1);
            prop_assert!(driver.asks <= 2 * driver.rounds);
            (added, rounds) = (added + driver.added, rounds + driver.rounds);
        }
        prop_assert!(added * 1000 <= added_at_once * 1000 + rounds * added_thousandths);
    }
}

/// The commands of a read that begins at 0, and what becomes of it.
fn begun(policy: &mut Policy) -> (Reading, [Node; 2]) {
    let (reading, commands) = Reading::begin(Key::new([1; 32]), policy, 0);
    let homes = policy.placed(&Key::new([1; 32])).map(Option::unwrap);
    assert_eq!(
        commands,
        [None, Some(Command::Ask(homes[0], Purpose::First))]
    );
    (reading, homes)
}

#[test]
fn a_late_reply_is_waited_for_beside_another_one() {
    let mut policy = policy(Rules::default());
    let (mut reading, [first, second]) = begun(&mut policy);
    assert_eq!(reading.wake_ns(), 2_000_000);
    assert_eq!(reading.take(Event::Time, &mut policy, 1_999_999), [None; 2]);
    let mut take = |event, now_ns| reading.take(event, &mut policy, now_ns);
    let asked = [Some(Command::Ask(second, Purpose::Added)), None];
    assert_eq!(take(Event::Time, 2_000_000), asked);
    let missing = Event::Answered(first, Answer::Missing);
    assert_eq!(take(missing, 2_500_000), [None; 2]);
    let value = Event::Answered(second, Answer::Value);
    assert_eq!(take(value, 2_600_000), [Some(Command::Finish), None]);
    assert_eq!(reading.without(), [first]);
    assert_eq!(policy.nodes()[first].late, 1);
}

#[test]
fn what_is_promised_is_asked_for_again_until_it_takes_too_long() {
    let rules = Rules::default();
    let mut policy = policy(rules);
    let (mut reading, [first, second]) = begun(&mut policy);
    let mut now_ns = 0;
    while now_ns < rules.promise_ns_max {
        let promised = Event::Answered(first, Answer::Promised);
        let asked = reading.take(promised, &mut policy, now_ns);
        assert_eq!(asked, [Some(Command::Ask(second, Purpose::Second)), None]);
        let missing = Event::Answered(second, Answer::Missing);
        let paused = reading.take(missing, &mut policy, now_ns);
        assert_eq!(paused, [Some(Command::Pause), None]);
        now_ns += ASK_AGAIN_NS;
        assert_eq!(reading.wake_ns(), now_ns);
        let again = reading.take(Event::Time, &mut policy, now_ns);
        assert_eq!(again, [None, Some(Command::Ask(first, Purpose::First))]);
    }
    // The second home is silent: nothing is paid for asking again, but now it is too late.
    reading.take(
        Event::Answered(first, Answer::Promised),
        &mut policy,
        now_ns,
    );
    let ended = reading.take(Event::Time, &mut policy, reading.wake_ns());
    let next_tier = Command::NextTier {
        absence: Absence::Promised,
        is_added: false,
    };
    assert_eq!(ended, [Some(next_tier), None]);
}
