//! Computes lost slices from the others of their columns and from parity.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use refrain_format::{RecoveryPart, RecoverySet};
use refrain_pool::{Lane, crew};
use refrain_protect::recovery::{ColumnDecoder, slice_digest};
use refrain_storage::Source;

use super::depot::Depot;
use super::encode::{internal, threads_within};
use super::frames::{FoundFrame, FoundSet, frame_data};
use super::healed::Patchwork;
use super::options::RecoveryOptions;
use crate::error::{Error, Result};
use crate::progress::{Watch, is_cancelled, next_event};

/// The bytes of neighboring columns that are solved together because they lack the same rows.
const SOLVED_BYTES: u64 = 8 << 20;

/// Columns that lack the same slices.
struct Columns {
    range: Range<u64>,
    lost_rows: Vec<usize>,
    /// Rows of parity, as many as are lost.
    parity_rows: Vec<usize>,
}

/// The slices that are in no input, and how to compute them.
pub(crate) struct Losses {
    columns: Vec<Columns>,
    /// Ascending.
    slices: Vec<u64>,
}

impl Losses {
    /// Lists what is lost.
    ///
    /// # Errors
    /// `Damaged` if that is more than there is parity for.
    pub(crate) fn new(patchwork: &Patchwork, parity: &Parity) -> Result<Losses> {
        let parameters = &patchwork.parameters;
        let count = parameters.columns();
        let is_lost = |slice: &u64| patchwork.places.place(*slice).is_none();
        let slices: Vec<u64> = (0..parameters.slice_count()).filter(is_lost).collect();
        let mut by_column: Vec<_> = (slices.iter())
            .map(|slice| (slice % count, (slice / count) as usize))
            .collect();
        by_column.sort_unstable();
        let slice_bytes = u64::from(parameters.slice_bytes);
        let column_bytes = u64::from(parameters.data_rows) * slice_bytes;
        let columns_max = (SOLVED_BYTES / column_bytes).max(1);
        let (mut columns, mut hopeless, mut lost_there) = (Vec::<Columns>::new(), 0, 0);
        for lost in by_column.chunk_by(|one, other| one.0 == other.0) {
            let column = lost[0].0;
            let lost_rows: Vec<usize> = lost.iter().map(|(_, row)| *row).collect();
            let parity_rows = parity.rows_of(column, lost_rows.len());
            if parity_rows.len() < lost_rows.len() {
                hopeless += 1;
                lost_there += lost_rows.len() as u64 * slice_bytes;
                continue;
            }
            match columns.last_mut() {
                Some(last)
                    if last.range.end == column
                        && column - last.range.start < columns_max
                        && last.lost_rows == lost_rows
                        && last.parity_rows == parity_rows =>
                {
                    last.range.end += 1;
                }
                _ => columns.push(Columns {
                    range: column..column + 1,
                    lost_rows,
                    parity_rows,
                }),
            }
        }
        if hopeless > 0 {
            return Err(Error::damaged(format!(
                "there is more damage than the recovery data can heal: {} of {count} columns lack more slices than they have parity left, {lost_there} bytes in all",
                hopeless
            )));
        }
        Ok(Losses { columns, slices })
    }

    /// The number of slices.
    pub(crate) fn count(&self) -> u64 {
        self.slices.len() as u64
    }

    /// The numbers of the slices, ascending.
    pub(crate) fn slices(&self) -> &[u64] {
        &self.slices
    }

    /// Computes the slices into a depot, in ascending order, each in a slot of the size of a slice.
    /// Returns where they begin in it.
    ///
    /// # Errors
    /// `Damaged` if a computed slice is not what its digest says; `Io`, `Limit`, `Cancelled`.
    pub(crate) fn solve(
        &self,
        patchwork: &Arc<Patchwork>,
        (parity, digests): (&Arc<Parity>, &Arc<[u64]>),
        depot: &Depot,
        options: &RecoveryOptions,
        watch: &dyn Watch,
    ) -> Result<u64> {
        let slice_bytes = u64::from(patchwork.parameters.slice_bytes);
        let start = depot.reserve(self.count() * slice_bytes)?;
        let threads = threads_within(&patchwork.parameters, options)?;
        let mut waiting = self.columns.iter();
        crew(if threads > 1 { threads } else { 0 }, |crew| {
            let submit = |solver: Option<Box<Solver>>, columns: Option<&Columns>| {
                let Some(columns) = columns else { return };
                let mut solver =
                    solver.unwrap_or_else(|| Box::new(Solver::new(patchwork, parity, digests)));
                solver.range = columns.range.clone();
                solver.lost_rows.clone_from(&columns.lost_rows);
                solver.parity_rows.clone_from(&columns.parity_rows);
                crew.submit(Lane::Normal, move || solver.run().map(|()| solver));
            };
            for _ in 0..threads {
                submit(None, waiting.next());
            }
            while let Some(solver) = next_event(crew, watch)? {
                if is_cancelled(watch) {
                    return Err(Error::cancelled());
                }
                let solver: Box<Solver> = solver??;
                self.keep(&solver, depot, start)?;
                submit(Some(solver), waiting.next());
            }
            Ok(())
        })?;
        Ok(start)
    }

    fn keep(&self, solver: &Solver, depot: &Depot, start: u64) -> Result<()> {
        let slice_bytes = solver.slice_bytes();
        for row in &solver.lost_rows {
            for (number, slice) in (0_u64..).zip(solver.row(*row).chunks_exact(slice_bytes)) {
                let at = solver.slice(*row, solver.range.start + number);
                if let Ok(slot) = self.slices.binary_search(&at) {
                    depot.write_at(start + (slot * slice_bytes) as u64, slice)?;
                }
            }
        }
        Ok(())
    }
}

/// The slices of parity that were found.
pub(crate) struct Parity {
    set: RecoverySet,
    frames: HashMap<u64, FoundFrame>,
    inputs: Vec<Arc<dyn Source>>,
}

impl Parity {
    pub(crate) fn new(set: RecoverySet, found: &FoundSet, inputs: Vec<Arc<dyn Source>>) -> Parity {
        let frames = found.frames().iter();
        let parity = frames.filter(|frame| frame.place.part == RecoveryPart::Parity);
        let frames = parity.map(|frame| (frame.place.index, *frame)).collect();
        Parity {
            set,
            frames,
            inputs,
        }
    }

    fn frame(&self, row: usize, column: u64) -> Option<&FoundFrame> {
        let columns = self.set.parameters.columns();
        self.frames.get(&(row as u64 * columns + column))
    }

    /// The first rows of parity that a column has, at most `count`.
    fn rows_of(&self, column: u64, count: usize) -> Vec<usize> {
        let rows = 0..self.set.parameters.parity_rows as usize;
        let rows = rows.filter(|row| self.frame(*row, column).is_some());
        rows.take(count).collect()
    }

    fn slice(&self, row: usize, column: u64) -> Result<Vec<u8>> {
        let frame = self.frame(row, column);
        let frame =
            frame.and_then(|frame| Some((self.inputs.get(usize::from(frame.input))?, frame)));
        let (input, frame) = frame.ok_or_else(|| Error::damaged("parity is missing"))?;
        frame_data(&**input, &self.set, frame)
    }
}

/// Solves columns that lack the same rows.
struct Solver {
    patchwork: Arc<Patchwork>,
    parity: Arc<Parity>,
    digests: Arc<[u64]>,
    decoder: Option<ColumnDecoder>,
    range: Range<u64>,
    lost_rows: Vec<usize>,
    parity_rows: Vec<usize>,
    data: Vec<u8>,
}

impl Solver {
    fn new(patchwork: &Arc<Patchwork>, parity: &Arc<Parity>, digests: &Arc<[u64]>) -> Solver {
        Solver {
            patchwork: patchwork.clone(),
            parity: parity.clone(),
            digests: digests.clone(),
            decoder: None,
            range: 0..0,
            lost_rows: Vec::new(),
            parity_rows: Vec::new(),
            data: Vec::new(),
        }
    }

    fn slice_bytes(&self) -> usize {
        self.patchwork.parameters.slice_bytes as usize
    }

    fn width(&self) -> usize {
        (self.range.end - self.range.start) as usize * self.slice_bytes()
    }

    fn slice(&self, row: usize, column: u64) -> u64 {
        row as u64 * self.patchwork.parameters.columns() + column
    }

    fn row(&self, row: usize) -> &[u8] {
        let width = self.width();
        self.data
            .get(row * width..(row + 1) * width)
            .unwrap_or_default()
    }

    fn run(&mut self) -> Result<()> {
        self.read()?;
        let parameters = self.patchwork.parameters;
        let mut parity = Vec::new();
        for row in &self.parity_rows {
            let mut bytes = Vec::with_capacity(self.width());
            for column in self.range.clone() {
                bytes.extend_from_slice(&self.parity.slice(*row, column)?);
            }
            parity.push((*row, bytes));
        }
        let parity: Vec<_> = parity
            .iter()
            .map(|(row, bytes)| (*row, &bytes[..]))
            .collect();
        let width = self.width();
        let mut decoder = match self.decoder.take() {
            Some(decoder) => decoder,
            None => {
                let rows = (
                    parameters.data_rows as usize,
                    parameters.parity_rows as usize,
                );
                ColumnDecoder::new(rows.0, rows.1).map_err(internal)?
            }
        };
        let solved = decoder.decode(&mut self.data, width, &self.lost_rows, &parity);
        solved.map_err(internal)?;
        self.decoder = Some(decoder);
        self.check()
    }

    fn read(&mut self) -> Result<()> {
        let slice_bytes = self.slice_bytes() as u64;
        let (width, rows) = (self.width(), self.patchwork.parameters.data_rows as usize);
        self.data.resize(rows * width, 0);
        for row in 0..rows {
            let offset = self.slice(row, self.range.start) * slice_bytes;
            let bytes = &mut self.data[row * width..(row + 1) * width];
            let count = self.patchwork.read_at(offset, bytes)?;
            bytes[count..].fill(0);
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        for row in &self.lost_rows {
            let slices = self.row(*row).chunks_exact(self.slice_bytes());
            for (column, slice) in self.range.clone().zip(slices) {
                let at = self.slice(*row, column);
                if self.digests.get(at as usize) != Some(&slice_digest(slice)) {
                    let text = "recovery data contradicts itself: nothing can be healed with it";
                    return Err(Error::damaged(text));
                }
            }
        }
        Ok(())
    }
}
