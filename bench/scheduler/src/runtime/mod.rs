//! `refrain-bench runtime`: compares the pool, timers and queues with alternatives in one run.
//!
//! Each row states its target. Rows that cannot be measured are absent.

mod background;
mod engine;
mod idle;
mod load;
mod locks;
mod pool;
mod queue;
mod random;
mod report;
mod row;
mod timers;

use row::Row;

#[derive(clap::Args)]
pub struct Arguments {
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Measurements of each contender
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Only the row of this name, or else the rows whose names begin with it
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// The file to compress and read in the rows `compress` and `reads` [default: generated text]
    #[arg(long, value_name = "FILE")]
    content: Option<std::path::PathBuf>,
    /// The level of the row `compress`
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=9))]
    level: u8,
}

pub fn run(arguments: &Arguments) -> Result<(), String> {
    let all = [
        timers::rows(),
        queue::rows(),
        idle::rows(),
        locks::rows(),
        pool::rows(),
        engine::rows(arguments.content.clone(), arguments.level),
        background::rows(arguments.content.clone()),
    ];
    let mut rows: Vec<Row> = all.into_iter().flatten().collect();
    if let Some(prefix) = &arguments.only {
        let is_a_name = rows.iter().any(|row| row.id == prefix);
        rows.retain(|row| row.id == prefix || !is_a_name && row.id.starts_with(prefix));
    }
    if rows.is_empty() {
        return Err("no row has that name".into());
    }
    let report = report::measure(rows, arguments.rounds.into());
    if arguments.json {
        return report.print_json();
    }
    report.print_table();
    Ok(())
}
