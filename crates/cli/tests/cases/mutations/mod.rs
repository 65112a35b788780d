//! Small archives of every kind and format, changed at random: no verb may deliver other content
//! with exit code 0, crash, hang, or exceed its memory budget by more than a fifth.
//!
//! Every case is a function of its seed, which a failure names. `REFRAIN_TEST_SCALE` multiplies the
//! number of cases.

mod change;
mod samples;
mod verbs;

use std::thread;

use refrain_testkit::{Rng, scaled};

use crate::support::Case;
use change::change;
use samples::{Sample, samples};
use verbs::check;

/// Changed archives at scale 1, over all samples.
const CASES: u32 = 24;

#[test]
fn changed_archives_are_never_taken_for_whole_ones() {
    let case = Case::new();
    let samples = samples(&case);
    let threads = thread::available_parallelism().map_or(1, usize::from) as u64;
    let cases = u64::from(scaled(CASES));
    thread::scope(|scope| {
        for first in 0..threads {
            let samples = &samples;
            scope.spawn(move || {
                let folder = Case::new();
                (first..cases)
                    .step_by(threads as usize)
                    .for_each(|seed| one_case(&folder, samples, seed));
            });
        }
    });
}

/// Changes a sample and gives it to every verb.
fn one_case(folder: &Case, samples: &[Sample], seed: u64) {
    let sample = &samples[(seed % samples.len() as u64) as usize];
    let mut rng = Rng::new(seed);
    let (bytes, what) = change(&sample.bytes, &mut rng);
    if bytes == sample.bytes {
        return;
    }
    folder.write(&sample.file_name, &bytes);
    check(
        folder,
        sample,
        &format!("seed {seed}: {}: {what}", sample.file_name),
    );
}

/// The unchanged archives, to show that the checks can succeed.
#[test]
fn unchanged_archives_pass() {
    let case = Case::new();
    let samples = samples(&case);
    let folder = Case::new();
    for sample in &samples {
        folder.write(&sample.file_name, &sample.bytes);
        let passed = check(&folder, sample, &sample.file_name);
        assert!(passed, "{}: some verb refuses it", sample.file_name);
    }
}
