//! Every experiment runs in quick mode and yields sensible results. Times are not judged: the test
//! machine is busy.

// Helpers of tests may panic.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr
)]

use std::sync::atomic::Ordering;
use std::time::Duration;

use refrain_lab::{ALL, Cell, Context, Error, Machine, Profile, Report, Unit, by_name, run};
use refrain_testkit::chromium::open_page;

/// A quick context with files in a fresh directory.
fn quick() -> (tempfile::TempDir, Context) {
    let directory = tempfile::tempdir().unwrap();
    let mut context = Context::new(directory.path());
    context.is_quick = true;
    (directory, context)
}

fn report(name: &str) -> Report {
    let (directory, context) = quick();
    let report = run(by_name(name).unwrap(), &context).unwrap();
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert!(left.is_empty(), "{name} left {left:?}");
    check(&report);
    report
}

/// What holds for every experiment.
fn check(report: &Report) {
    assert!(!report.outcome.sections.is_empty() && !report.outcome.findings.is_empty());
    for section in &report.outcome.sections {
        assert!(
            !section.rows.is_empty(),
            "{}: {}",
            report.name,
            section.title
        );
        for row in &section.rows {
            assert_eq!(row.len(), section.columns.len(), "{row:?}");
            for (cell, column) in row.iter().zip(&section.columns) {
                let place = format!("{}: {}: {}", report.name, section.title, column.name);
                match cell {
                    Cell::Number(value) => {
                        assert!(value.is_finite(), "{place}: {value}");
                        // A measurement takes time; what could not be measured is not zero.
                        let is_measured = matches!(
                            column.unit,
                            Unit::BytesPerSecond | Unit::PerSecond | Unit::Times
                        );
                        assert!(!is_measured || *value > 0.0, "{place}: {value}");
                    }
                    Cell::Text(text) => assert!(!text.is_empty(), "{place}"),
                    Cell::NotAvailable(reason) => assert!(!reason.is_empty(), "{place}"),
                }
            }
        }
        if let Some(chart) = section.chart {
            let last = section.columns.len();
            assert!(chart.x < last && chart.y < last && chart.by.is_none_or(|by| by < last));
            assert_ne!(section.columns[chart.y].unit, Unit::Text);
        }
    }
    let text = report.text();
    let json = report.json().to_string();
    for finding in &report.outcome.findings {
        assert!(text.contains(finding), "{text}");
    }
    assert!(json.contains(report.name));
}

#[test]
fn memory_experiments_have_a_row_for_each_size() {
    let cache = report("cache");
    let rows = &cache.outcome.sections[0].rows;
    assert_eq!(rows.first().unwrap()[0], Cell::Number(4096.0));
    assert_eq!(
        rows.last().unwrap()[0],
        Cell::Number((256_u64 << 20) as f64)
    );
    assert!(
        rows.windows(2)
            .all(|pair| pair[0][0].number() < pair[1][0].number())
    );
    assert_eq!(report("bandwidth").outcome.sections[0].rows.len(), 27);
    assert_eq!(report("matrix").outcome.sections[0].rows.len(), 8);
    assert_eq!(report("pages").outcome.sections[0].rows.len(), 14);
}

#[test]
fn what_exceeds_the_memory_limit_is_not_available() {
    let (_directory, mut context) = quick();
    context.memory_bytes = 1 << 20;
    for name in ["cache", "bandwidth", "matrix", "pages"] {
        let report = run(by_name(name).unwrap(), &context).unwrap();
        check(&report);
        let rows = &report.outcome.sections[0].rows;
        let is_missing =
            |cell: &Cell| matches!(cell, Cell::NotAvailable(why) if why.contains("memory"));
        assert!(
            rows.last().unwrap().iter().any(is_missing),
            "{name}: {rows:?}"
        );
        assert!(!rows[0].iter().any(is_missing), "{name}: {rows:?}");
    }
}

#[test]
fn experiments_with_threads_say_when_processors_are_too_few() {
    for name in ["sharing", "ring", "locks"] {
        report(name);
        let (_directory, mut context) = quick();
        context.processors = 1;
        let report = run(by_name(name).unwrap(), &context).unwrap();
        check(&report);
        let rows = report.outcome.sections[0].rows.iter().flatten();
        let reasons = rows
            .filter(|cell| matches!(cell, Cell::NotAvailable(why) if why.contains("processor")));
        assert!(reasons.count() > 0, "{name}");
    }
}

#[test]
fn pipes_timers_and_disks_yield_rows() {
    let pipe = report("pipe");
    assert_eq!(pipe.outcome.sections[0].rows.len(), 24);
    assert!(
        pipe.outcome
            .measured
            .pipe_bytes
            .is_some_and(|bytes| bytes >= 4096)
    );
    let timers = report("timers");
    assert_eq!(timers.outcome.sections.len(), 2);
    // No timer is early.
    for row in &timers.outcome.sections[1].rows {
        assert!(row[2].number().unwrap() >= 0.0, "{row:?}");
    }
    let disk = report("disk");
    assert_eq!(disk.outcome.sections[1].rows.len(), 3);
}

#[test]
fn the_atomicity_of_this_file_system_is_described() {
    let report = report("atomicity");
    let [together, mixed, fates, pipes] = &report.outcome.sections[..] else {
        panic!("{:?}", report.outcome.sections);
    };
    assert_eq!((together.rows.len(), mixed.rows.len()), (12, 12));
    for row in mixed.rows.iter().chain(&pipes.rows) {
        let counts: Vec<f64> = row.iter().filter_map(Cell::number).collect();
        let (looks, mixed) = (counts[1], counts[2]);
        assert!(looks > 0.0 && mixed <= looks, "{row:?}");
    }
    // Linux and POSIX guarantee that appends are not lost, and writes up to PIPE_BUF are not mixed.
    for row in fates
        .rows
        .iter()
        .filter(|row| row[0] == Cell::from("appends (O_APPEND)"))
    {
        assert_eq!(row[3].number(), Some(0.0), "{row:?}");
    }
    for row in &pipes.rows[..2] {
        assert_eq!(row[2].number(), Some(0.0), "{row:?}");
    }
}

#[test]
fn a_cancelled_run_ends_soon_and_leaves_nothing() {
    for experiment in ALL {
        let (directory, context) = quick();
        context.cancelled.store(true, Ordering::Relaxed);
        let ended = run(experiment, &context);
        assert!(
            matches!(ended, Err(Error::Cancelled)),
            "{}",
            experiment.name()
        );
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
    // In the middle of a long experiment.
    let (_directory, mut context) = quick();
    context.is_quick = false;
    let cancelled = context.cancelled.clone();
    let cancel = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        cancelled.store(true, Ordering::Relaxed);
    });
    let ended = run(by_name("atomicity").unwrap(), &context);
    assert!(matches!(ended, Err(Error::Cancelled)));
    cancel.join().unwrap();
}

#[test]
fn a_directory_that_is_missing_or_may_not_be_written_is_an_error() {
    let (directory, mut context) = quick();
    context.directory = directory.path().join("missing");
    for name in ["disk", "atomicity"] {
        let error = run(by_name(name).unwrap(), &context).unwrap_err();
        assert!(error.to_string().contains("missing"), "{error}");
        assert_eq!(error.io_kind(), Some(std::io::ErrorKind::NotFound));
    }
    // Even root cannot create files in the kernel's.
    context.directory = "/proc/self".into();
    let error = run(by_name("atomicity").unwrap(), &context).unwrap_err();
    assert!(error.to_string().contains("/proc/self"), "{error}");
}

#[test]
fn a_browser_draws_a_chart_for_each_table_that_has_one() {
    let (directory, context) = quick();
    let reports: Vec<Report> = ["matrix", "ring", "locks", "atomicity"]
        .iter()
        .map(|name| run(by_name(name).unwrap(), &context).unwrap())
        .collect();
    let html = refrain_lab::page::html(&Machine::this(2), &context, &reports);
    let file = directory.path().join("lab.html");
    std::fs::write(&file, html).unwrap();
    for window in [(1400, 900), (400, 800)] {
        let Some(opened) = open_page(&file, window, None) else {
            eprintln!("NOT TESTED: there is no Chromium");
            return;
        };
        assert!(opened.console.is_empty(), "{:?}", opened.console);
        let sections = reports.iter().flat_map(|report| &report.outcome.sections);
        let charts = sections.filter(|section| section.chart.is_some()).count();
        let drawn = opened.elements.matches("<svg").count();
        let empty = opened
            .elements
            .matches("<p class=\"faint\">Nothing to draw")
            .count();
        assert_eq!(drawn + empty, charts);
        assert!(drawn > 0 && opened.elements.contains("<polyline"));
        assert!(!opened.elements.contains("NaN") && !opened.elements.contains("undefined"));
    }
}

#[test]
fn a_profile_is_made_of_what_was_measured() {
    let machine = Machine::this(2);
    let reports = ["pages", "locks", "pipe"].map(report);
    let measured = reports
        .iter()
        .fold(Default::default(), |sum: refrain_lab::Measured, report| {
            sum.and(report.outcome.measured)
        });
    let profile = Profile::new(&machine, &measured);
    assert!(profile.pipe_bytes.is_some());
    let processors = std::thread::available_parallelism().unwrap().get();
    assert_eq!(profile.lock_spins_max.is_some(), processors > 1);
    let (_directory, context) = quick();
    let defaults = refrain_lab::compare::Defaults { pipe_bytes: 4096 };
    let compared = refrain_lab::compare::compare(&context, defaults, &profile).unwrap();
    check_comparison(&compared);
}

fn check_comparison(compared: &Report) {
    let rows = &compared.outcome.sections[0].rows;
    assert_eq!(rows.len(), 3);
    // A pipe of one page is never the best.
    assert!(
        rows[0][3].number().is_some_and(|gain| gain > 0.0),
        "{rows:?}"
    );
}
