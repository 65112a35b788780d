//! Opens pages in headless Chromium.

use std::path::Path;
use std::process::{Command, Stdio};

const PROGRAMS: [&str; 2] = ["chromium", "chromium-browser"];

/// How much page time, in milliseconds, passes before the page is examined: timers and frames run,
/// however slow the machine is.
const VIRTUAL_MS: u32 = 5_000;

/// A page after its scripts have run.
#[derive(Debug)]
pub struct OpenedPage {
    /// Its elements, as HTML.
    pub elements: String,
    /// What it wrote on its console, including errors of scripts and policies.
    pub console: Vec<String>,
}

/// Opens a file in a window of this many pixels, and writes a picture of it (PNG) if there is a
/// path for that. `None` without Chromium.
///
/// # Panics
/// If the program fails.
pub fn open_page(
    page: &Path,
    (width, height): (u32, u32),
    picture: Option<&Path>,
) -> Option<OpenedPage> {
    let is_there = |program: &&str| {
        let mut command = Command::new(program);
        let command = command
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let program = PROGRAMS.into_iter().find(|program| is_there(program))?;
    let run = |what: &str| {
        let profile = page.with_extension("chromium");
        let output = Command::new(program)
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
            ])
            .args([
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--enable-logging=stderr",
            ])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg(format!("--window-size={width},{height}"))
            .arg(format!("--virtual-time-budget={VIRTUAL_MS}"))
            .arg(what)
            .arg(format!(
                "file://{}",
                page.canonicalize().unwrap_or_default().display()
            ))
            .output();
        let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
        let _ = std::fs::remove_dir_all(&profile);
        assert!(output.status.success(), "{program}: {output:?}");
        output
    };
    if let Some(picture) = picture {
        run(&format!("--screenshot={}", picture.display()));
    }
    let output = run("--dump-dom");
    let messages = String::from_utf8_lossy(&output.stderr);
    let console = messages.lines().filter(|line| line.contains("CONSOLE"));
    Some(OpenedPage {
        elements: String::from_utf8_lossy(&output.stdout).into_owned(),
        console: console.map(str::to_owned).collect(),
    })
}
