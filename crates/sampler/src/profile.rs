//! A sampled profile: a tree of calls, and counts by stage and thread.

use std::collections::HashMap;

/// An index into [`Profile::functions`].
pub type FunctionNumber = u32;
/// An index into [`Profile::paths`]; [`ROOT`] is the empty path.
pub type PathNumber = u32;
/// The empty path: a stack without known functions.
pub const ROOT: PathNumber = 0;

/// A function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// The demangled name without hash, for people.
    pub name: String,
    /// The linker's name; for several instances, the first one seen.
    pub linker_name: String,
    /// The crate or the library.
    pub origin: String,
    /// The file that contains its code; empty if unknown.
    pub module: String,
}

impl Function {
    pub(crate) fn without_symbol(name: &str, origin: &str) -> Function {
        Function {
            name: name.to_owned(),
            linker_name: name.to_owned(),
            origin: origin.to_owned(),
            module: String::new(),
        }
    }
}

/// A function called on some path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallPath {
    /// The path of the caller.
    pub caller: PathNumber,
    /// The function that was called.
    pub function: FunctionNumber,
}

/// The number of samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Samples of processor time.
    pub cpu: u64,
    /// Samples of page faults.
    pub faults: u64,
}

impl Count {
    /// Adds another count.
    pub fn add(&mut self, other: Count) {
        self.cpu += other.cpu;
        self.faults += other.faults;
    }
}

/// The samples of one stack in one stage of one thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackSamples {
    /// The stage; `None` outside of any stage.
    pub stage: Option<&'static str>,
    /// The kernel's number of the thread.
    pub thread_id: u32,
    /// The call path.
    pub path: PathNumber,
    /// The number of samples.
    pub count: Count,
}

/// The samples of a run.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// The functions that were seen.
    pub functions: Vec<Function>,
    /// The call paths, each after its caller's; the first is [`ROOT`].
    pub paths: Vec<CallPath>,
    /// The counts.
    pub rows: Vec<StackSamples>,
    /// The names of threads, by the kernel's thread number.
    pub threads: Vec<(u32, String)>,
    /// The processor time per sample, in nanoseconds.
    pub cpu_ns_per_sample: u64,
    /// The page faults per sample.
    pub faults_per_sample: u64,
    /// The page faults that the kernel counted.
    pub faults: u64,
    /// The processor time that the kernel counted, in nanoseconds.
    pub cpu_ns: u64,
    /// The start, in nanoseconds since 1970-01-01 00:00:00 UTC.
    pub start_unix_ns: u64,
    /// The duration, in nanoseconds.
    pub elapsed_ns: u64,
    /// Samples dropped because the kernel's memory was full.
    pub lost: u64,
    /// Samples whose stack could not be unwound to its start.
    pub cut: u64,
    /// Stage changes that were not recorded: later samples may be in a wrong stage.
    pub stage_changes_lost: u64,
    /// Whether the kernel's work for the program was sampled too, if permitted.
    pub with_kernel: bool,
}

impl Profile {
    /// The functions of a path, innermost first.
    pub fn functions_of(&self, path: PathNumber) -> impl Iterator<Item = FunctionNumber> {
        let mut at = path;
        std::iter::from_fn(move || {
            let call = self.paths.get(at as usize).filter(|_| at != ROOT)?;
            at = call.caller;
            Some(call.function)
        })
    }

    /// The sum of all samples.
    pub fn total(&self) -> Count {
        let mut total = Count::default();
        self.rows.iter().for_each(|row| total.add(row.count));
        total
    }
}

/// Collects samples in memory proportional to the number of distinct paths.
#[derive(Debug)]
pub(crate) struct Paths {
    paths: Vec<CallPath>,
    by_call: HashMap<(PathNumber, FunctionNumber), PathNumber>,
    rows: HashMap<(Option<&'static str>, u32, PathNumber), Count>,
}

impl Paths {
    pub(crate) fn new() -> Paths {
        Paths {
            // The root's own fields are never read.
            paths: vec![CallPath {
                caller: ROOT,
                function: 0,
            }],
            by_call: HashMap::new(),
            rows: HashMap::new(),
        }
    }

    /// The path that continues the caller's path with a function.
    pub(crate) fn called(&mut self, caller: PathNumber, function: FunctionNumber) -> PathNumber {
        *self.by_call.entry((caller, function)).or_insert_with(|| {
            self.paths.push(CallPath { caller, function });
            self.paths.len() as PathNumber - 1
        })
    }

    pub(crate) fn add(
        &mut self,
        stage: Option<&'static str>,
        thread_id: u32,
        path: PathNumber,
        count: Count,
    ) {
        self.rows
            .entry((stage, thread_id, path))
            .or_default()
            .add(count);
    }

    /// Paths and rows, the rows in a fixed order.
    pub(crate) fn into_parts(self) -> (Vec<CallPath>, Vec<StackSamples>) {
        let mut rows: Vec<StackSamples> = self
            .rows
            .into_iter()
            .map(|((stage, thread_id, path), count)| StackSamples {
                stage,
                thread_id,
                path,
                count,
            })
            .collect();
        rows.sort_by_key(|row| (row.stage, row.thread_id, row.path));
        (self.paths, rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_paths_are_one() {
        let mut paths = Paths::new();
        let main = paths.called(ROOT, 5);
        let inner = paths.called(main, 7);
        assert_eq!(paths.called(main, 7), inner);
        let cpu = Count { cpu: 1, faults: 0 };
        let fault = Count { cpu: 0, faults: 1 };
        paths.add(Some("encode"), 1, inner, cpu);
        paths.add(Some("encode"), 1, inner, fault);
        paths.add(None, 2, main, cpu);
        let (paths, rows) = paths.into_parts();
        let profile = Profile {
            paths,
            rows,
            ..Profile::default()
        };
        assert_eq!(profile.rows.len(), 2);
        assert_eq!(profile.total(), Count { cpu: 2, faults: 1 });
        let functions: Vec<_> = profile.functions_of(inner).collect();
        assert_eq!(functions, [7, 5]);
        assert_eq!(profile.functions_of(ROOT).count(), 0);
    }
}
