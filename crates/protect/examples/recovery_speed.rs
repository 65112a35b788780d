//! Measures parity and digests of bytes in memory, on one thread: `recovery_speed [SHARE [MIB]]`,
//! with the share in hundredths of a percent. Prints GB/s of the data for each step and for both.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use refrain_protect::recovery::{ColumnDecoder, ColumnEncoder, RecoveryParameters, slice_digest};

/// The best of five runs, in seconds.
fn best(mut run: impl FnMut()) -> f64 {
    let seconds = (0..5).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    });
    seconds.fold(f64::INFINITY, f64::min)
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse().unwrap());
    let share = arguments.next().unwrap_or(1000);
    let file_bytes = u64::from(arguments.next().unwrap_or(64)) << 20;
    let parameters = RecoveryParameters::choose(file_bytes, share).unwrap();
    let (data_rows, parity_rows) = (
        parameters.data_rows as usize,
        parameters.parity_rows as usize,
    );
    // As much as stays in memory between reading and encoding.
    let slice_bytes = parameters.slice_bytes as usize;
    let width = (parameters.columns() as usize).min(6) * slice_bytes;
    let mut data: Vec<u8> = (0..data_rows * width)
        .map(|at| ((at * at) >> 7) as u8)
        .collect();
    let mut parity = vec![0; parity_rows * width];
    let mut encoder = ColumnEncoder::new(data_rows, parity_rows).unwrap();
    let encoding = best(|| encoder.encode(&data, width, &mut parity).unwrap());
    let digests = best(|| {
        data.chunks(slice_bytes)
            .for_each(|slice| _ = black_box(slice_digest(slice)));
    });
    let lost: Vec<usize> = (0..parity_rows.min(data_rows)).collect();
    let rows: Vec<_> = parity.chunks(width).enumerate().take(lost.len()).collect();
    let mut decoder = ColumnDecoder::new(data_rows, parity_rows).unwrap();
    let decoding = best(|| decoder.decode(&mut data, width, &lost, &rows).unwrap());
    let rate = |seconds: f64| data.len() as f64 / 1e9 / seconds;
    println!(
        "{data_rows} rows and {parity_rows} of parity: parity {:.2}, digests {:.2}, both {:.2}, healing {:.2} GB/s",
        rate(encoding),
        rate(digests),
        rate(encoding + digests),
        rate(decoding)
    );
}
