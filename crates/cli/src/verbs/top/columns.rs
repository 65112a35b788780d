//! Cells in columns.

/// Rows of right-aligned cells, the last one left-aligned.
pub fn aligned<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..COLUMNS)
        .map(|column| width(column).unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            if column + 1 == COLUMNS {
                line += cell
            } else {
                line += &format!("{cell:>width$}  ", width = widths[column])
            }
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}
