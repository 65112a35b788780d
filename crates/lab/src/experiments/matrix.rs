//! A matrix summed along its rows and along its columns.

use std::hint::black_box;

use refrain_pool::HugeBuffer;

use super::walk::fits;
use crate::context::Context;
use crate::error::Result;
use crate::experiment::Experiment;
use crate::outcome::{Cell, Outcome, Section, Unit};
use refrain_page::binary_text;

/// Rows (and columns) of the matrices.
const SIDES: [usize; 4] = [128, 512, 1024, 2048];

pub(super) struct Matrix;

impl Experiment for Matrix {
    fn name(&self) -> &'static str {
        "matrix"
    }

    fn measures(&self) -> &'static str {
        "how long the sum of a matrix takes along its rows and along its columns"
    }

    fn explains(&self) -> &'static str {
        "The sums are equal and the additions are as many. Along a row the next number is in the \
         same cache line; along a column each number is in another line, and by the time the next \
         column comes the line is gone. The difference is the price of a wrong order of loops."
    }

    fn seconds(&self, is_quick: bool) -> f64 {
        if is_quick { 0.4 } else { 2.0 }
    }

    fn run(&self, context: &Context) -> Result<Outcome> {
        let columns = [
            ("matrix", Unit::Bytes),
            ("order", Unit::Text),
            ("per number", Unit::Nanoseconds),
        ];
        let mut section =
            Section::new("Time of one addition", &columns).with_chart(0, 2, Some(1), true);
        let mut findings = Vec::new();
        for side in SIDES {
            let bytes = (side * side * 8) as u64;
            if !fits(context, bytes) {
                for order in ["rows", "columns"] {
                    let reason = Cell::not_available("more than the memory of the run");
                    section.push([bytes.into(), order.into(), reason]);
                }
                continue;
            }
            let mut matrix = HugeBuffer::zeroed(side * side)?;
            for (place, word) in (0..).zip(matrix.words_mut()) {
                *word = place;
            }
            let words = matrix.words();
            let rows_ns = sum_ns(context, words, || by_rows(words))?;
            let columns_ns = sum_ns(context, words, || by_columns(words, side))?;
            section.push([bytes.into(), "rows".into(), rows_ns.into()]);
            section.push([bytes.into(), "columns".into(), columns_ns.into()]);
            findings = vec![format!(
                "The columns of a matrix of {} take {:.1} times as long as its rows.",
                binary_text(bytes),
                columns_ns / rows_ns
            )];
        }
        Ok(Outcome {
            sections: vec![section],
            findings,
            ..Outcome::default()
        })
    }
}

fn sum_ns(context: &Context, words: &[u64], sum: impl Fn() -> u64) -> Result<f64> {
    let mut least_ns = f64::INFINITY;
    context.repeat(context.time(40, 200), || {
        let start_ns = context.now_ns();
        black_box(sum());
        least_ns = least_ns.min((context.now_ns() - start_ns).max(1) as f64);
        Ok(())
    })?;
    Ok(least_ns / words.len() as f64)
}

fn by_rows(words: &[u64]) -> u64 {
    let sum = |sum: u64, word: &u64| sum.wrapping_add(black_box(*word));
    words.iter().fold(0, sum)
}

fn by_columns(words: &[u64], side: usize) -> u64 {
    let column = |first: usize| words.iter().skip(first).step_by(side);
    (0..side)
        .flat_map(column)
        .fold(0, |sum, word| sum.wrapping_add(black_box(*word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_orders_have_the_same_sum() {
        let words: Vec<u64> = (0..49).map(|word| word * word).collect();
        assert_eq!(by_rows(&words), by_columns(&words, 7));
        assert_eq!(by_rows(&words), 48 * 49 * 97 / 6);
    }
}
