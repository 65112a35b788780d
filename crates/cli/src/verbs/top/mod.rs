//! `refrain top`: shows the statistics of a running service as a live table.
//!
//! | file | what |
//! |---|---|
//! | `client` | asks the service over HTTP |
//! | `table` | the numbers as a table |
//! | `tiers` | caches and their nodes |
//! | `columns` | cells in columns |

mod client;
mod columns;
mod table;
mod tiers;

use std::io;

use client::Client;

use crate::args::TopArgs;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::messages;
use crate::report::{clear_screen, print};
use crate::session::Session;
use crate::standard;
use crate::text::json_text;

/// Runs the verb.
pub fn run(args: &TopArgs, session: &Session) -> Exit {
    match top(args, session) {
        // A signal is how one leaves the live table.
        Ok(()) => Exit::Done,
        Err(failure) => {
            let exit = failure.exit();
            if !failure.is_broken_pipe() {
                messages::tell(session.program, &failure.to_string());
            }
            exit
        }
    }
}

fn top(args: &TopArgs, session: &Session) -> Result<()> {
    let client = Client::new(&args.address)?;
    if args.reset && !args.once {
        client.reset()?;
    }
    let is_live = !args.once && !args.json && standard::takes_escapes(&io::stdout());
    loop {
        let statistics = client.statistics()?;
        let text = if args.json {
            json_text(format_args!("{statistics}\n"))
        } else {
            let table = table::text(&args.address, &statistics);
            let table = table.ok_or_else(|| {
                let text =
                    "this is not the service of an archive: its statistics have another form";
                Failure::refused(&args.address, text)
            })?;
            if is_live || args.once { table } else { format!("{table}\n") }
        };
        if is_live {
            clear_screen()?;
        }
        print(&text)?;
        if args.once {
            return if args.reset { client.reset() } else { Ok(()) };
        }
        if session.cancellation().event().wait_for(args.interval) {
            return Ok(());
        }
    }
}
