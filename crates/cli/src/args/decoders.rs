//! Which decoders read an archive.

use std::collections::BTreeSet;

use clap::{Args, ValueEnum};
use refrain::{DecoderChoice, DecoderListener, ReadOptions};
use refrain_pool::Lock;

use crate::messages;

/// Which decoders read an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Decoders {
    /// Those of this program, and the archive's for a codec that it lacks
    #[default]
    Own,
    /// Those that the archive carries, in an interpreter: far slower
    Carried,
}

/// Which decoders read an archive.
#[derive(Debug, Clone, Default, Args)]
pub struct DecoderArgs {
    /// Decode with this program's decoders, or only with those that the archive carries (`compress
    /// --carry-decoders`): the proof that it opens without this program
    #[arg(
        long,
        value_name = "WHICH",
        default_value = "own",
        hide_default_value = true
    )]
    decoders: Decoders,
}

impl DecoderArgs {
    /// `options` with these decoders. Unless the run `is_quiet`, it says which decoders of the
    /// archive stand in for those that this program lacks.
    pub fn with(&self, options: ReadOptions, is_quiet: bool) -> ReadOptions {
        let (decoders, is_silent) = match self.decoders {
            Decoders::Own => (DecoderChoice::Own, is_quiet),
            // They were asked for.
            Decoders::Carried => (DecoderChoice::Carried, true),
        };
        let told = options.decoder_listener;
        ReadOptions {
            decoders,
            decoder_listener: if is_silent { DecoderListener::SILENT } else { told },
            ..options
        }
    }
}

/// Says once for each codec and filter that the archive's decoder is used.
pub(super) fn telling() -> DecoderListener {
    let told = Lock::new(BTreeSet::new());
    DecoderListener::new(move |role| {
        if told.lock().insert(role) {
            let text =
                format!("this version lacks {role}: the decoder that the archive carries is used");
            messages::tell("refrain", &text);
        }
    })
}
