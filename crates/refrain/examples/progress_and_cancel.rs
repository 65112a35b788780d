//! Watches a run and cancels it: `progress_and_cancel INPUT BYTES` compresses INPUT into memory,
//! prints the progress, and cancels after BYTES of content.
#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use refrain::storage::{FileSource, MemorySink};
use refrain::{
    BlockInfo, CompressOptions, Content, ErrorKind, MemberInput, Progress, Watch, compress,
};

/// Prints the progress, and cancels the run after this many bytes.
struct Impatient {
    content_bytes_max: u64,
    stop: AtomicBool,
}

impl Watch for Impatient {
    fn progress(&self, progress: &Progress) {
        println!(
            "{} of {:?} bytes, archive {} bytes",
            progress.content_bytes_done, progress.content_bytes_total, progress.archive_bytes
        );
        if progress.content_bytes_done >= self.content_bytes_max {
            // Setting this flag cancels the run. Any thread may set it, and so may a signal
            // handler.
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    fn block(&self, block: &BlockInfo) {
        println!(
            "block {}: {} -> {} bytes, {}",
            block.block, block.raw_bytes, block.stored_bytes, block.codec
        );
    }

    fn notice(&self, notice: &str) {
        println!("notice: {notice}");
    }

    fn cancel_flag(&self) -> Option<&AtomicBool> {
        Some(&self.stop)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, input, content_bytes_max] = &arguments[..] else {
        return Err("usage: progress_and_cancel INPUT BYTES".into());
    };
    let watch = Impatient {
        content_bytes_max: content_bytes_max.parse()?,
        stop: AtomicBool::new(false),
    };
    let member = MemberInput {
        name: "input".into(),
        mode: None,
        modified: None,
        content: Content::Source(Arc::new(FileSource::open(input)?)),
    };
    let mut sink = MemorySink::new();
    let output = sink.output();
    let options = CompressOptions::default();
    match compress(vec![member], &mut sink, &options, &watch) {
        Ok(summary) => println!("done: {summary:?}"),
        // The sink was not published, so nothing remains.
        Err(error) if error.kind == ErrorKind::Cancelled => {
            println!("stopped; published: {}", output.published().is_some());
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
