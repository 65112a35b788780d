//! The tree of a flame graph.

use crate::profile::{Count, FunctionNumber, Profile};

/// What a box of a flame graph stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    /// Everything.
    All,
    /// A stage; `None` outside of any stage.
    Stage(Option<&'static str>),
    /// A function, called by the function of the box below.
    Function(FunctionNumber),
    /// Scheduler functions, collapsed into one box.
    Scheduler,
}

/// A box of a flame graph, with the boxes on top of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flame {
    /// What it stands for.
    pub label: Label,
    /// Its samples, including the boxes on top.
    pub count: Count,
    /// The boxes on top, largest first.
    pub inner: Vec<Flame>,
}

/// Everything, by stage and then by call path. Leaves out the functions at the start of each thread
/// that belong to the system and the standard library (`is_start`). Scheduler functions
/// (`is_scheduler`) are left out where they lead to other work, and collapsed into one box
/// elsewhere.
pub fn tree(
    profile: &Profile,
    is_start: impl Fn(FunctionNumber) -> bool,
    is_scheduler: impl Fn(FunctionNumber) -> bool,
) -> Flame {
    let mut root = Flame::new(Label::All);
    let mut functions = vec![];
    for row in &profile.rows {
        functions.clear();
        functions.extend(profile.functions_of(row.path));
        functions.reverse();
        let is_servant =
            |function: &&FunctionNumber| is_start(**function) || is_scheduler(**function);
        let start = functions.iter().take_while(is_servant).count();
        root.count.add(row.count);
        let mut at = root.on(Label::Stage(row.stage));
        at.count.add(row.count);
        let has_work = start < functions.len();
        let mut rest = if has_work { &functions[start..] } else { &functions[..] };
        // A thread that only starts, or looks for work, is shown.
        if !has_work && rest.iter().any(|&function| is_scheduler(function)) {
            rest = &[];
            at = at.on(Label::Scheduler);
            at.count.add(row.count);
        }
        while let Some((&function, after)) = rest.split_first() {
            let label = if !is_scheduler(function) {
                rest = after;
                Label::Function(function)
            } else {
                rest = &after[after.iter().take_while(is_servant).count()..];
                Label::Scheduler
            };
            at = at.on(label);
            at.count.add(row.count);
        }
    }
    root.sort();
    root
}

impl Flame {
    fn new(label: Label) -> Flame {
        Flame {
            label,
            count: Count::default(),
            inner: vec![],
        }
    }

    /// The box with this label on top of this one.
    fn on(&mut self, label: Label) -> &mut Flame {
        let index = self.inner.iter().position(|inner| inner.label == label);
        let index = index.unwrap_or_else(|| {
            self.inner.push(Flame::new(label));
            self.inner.len() - 1
        });
        &mut self.inner[index]
    }

    fn sort(&mut self) {
        self.inner
            .sort_by_key(|inner| std::cmp::Reverse((inner.count.cpu, inner.count.faults)));
        self.inner.iter_mut().for_each(Flame::sort);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{CallPath, StackSamples};

    #[test]
    fn stages_come_first_and_beginnings_are_left_out() {
        // start (0) calls main (1), which calls work (2).
        let paths = [(0, 0), (0, 0), (1, 1), (2, 2)];
        let count = |cpu| Count { cpu, faults: 0 };
        let row = |stage, path, cpu| StackSamples {
            stage,
            thread_id: 1,
            path,
            count: count(cpu),
        };
        let profile = Profile {
            paths: paths
                .map(|(caller, function)| CallPath { caller, function })
                .into(),
            rows: vec![row(None, 2, 1), row(Some("encode"), 3, 5), row(None, 1, 3)],
            ..Profile::default()
        };
        let flame = |label, cpu, inner| Flame {
            label,
            count: count(cpu),
            inner,
        };
        let work = flame(Label::Function(2), 5, vec![]);
        let expected = flame(
            Label::All,
            9,
            vec![
                flame(
                    Label::Stage(Some("encode")),
                    5,
                    vec![flame(Label::Function(1), 5, vec![work])],
                ),
                flame(
                    Label::Stage(None),
                    4,
                    vec![
                        flame(Label::Function(0), 3, vec![]),
                        flame(Label::Function(1), 1, vec![]),
                    ],
                ),
            ],
        );
        let none = |_| false;
        assert_eq!(tree(&profile, |function| function == 0, none), expected);
    }

    #[test]
    fn the_scheduler_is_left_out_below_work_and_one_box_elsewhere() {
        // start (0), two of the scheduler (1, 2), work (3), the scheduler again (1, 2), work (4).
        let paths = [
            (0, 0),
            (0, 0),
            (1, 1),
            (2, 2),
            (3, 3),
            (4, 1),
            (5, 2),
            (6, 4),
        ];
        let count = |cpu| Count { cpu, faults: 0 };
        let row = |path, cpu| StackSamples {
            stage: None,
            thread_id: 1,
            path,
            count: count(cpu),
        };
        let profile = Profile {
            paths: paths
                .map(|(caller, function)| CallPath { caller, function })
                .into(),
            rows: vec![row(4, 5), row(7, 2), row(3, 1)],
            ..Profile::default()
        };
        let flame = |label, cpu, inner| Flame {
            label,
            count: count(cpu),
            inner,
        };
        let other = flame(Label::Function(4), 2, vec![]);
        let again = flame(Label::Scheduler, 2, vec![other]);
        let work = flame(Label::Function(3), 7, vec![again]);
        let stage = flame(
            Label::Stage(None),
            8,
            vec![work, flame(Label::Scheduler, 1, vec![])],
        );
        let found = tree(
            &profile,
            |function| function == 0,
            |function| function == 1 || function == 2,
        );
        assert_eq!(found, flame(Label::All, 8, vec![stage]));
    }
}
