//! A picture: latency over time, for each client.

use std::fmt::Write;
use std::time::Duration;

use super::report::Measured;

/// The size of the picture, and of what is around the diagrams, in pixels.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;

/// Latencies are shown from 0.1 ms to 10 s, each decade alike.
const LOWEST_MS: f64 = 0.1;
const DECADES: f64 = 5.0;

/// A line goes through the 99th percentiles of so many parts of the run; each read is a dot.
const PARTS: usize = 60;

/// Colors that people with color blindness tell apart (Okabe and Ito).
const COLORS: [&str; 3] = ["#0072b2", "#e69f00", "#d55e00"];

/// The picture as SVG.
pub fn as_svg(measured: &[Measured]) -> String {
    let total = measured
        .first()
        .map_or(Duration::ZERO, |run| run.well * 2 + run.sick);
    let axes = Axes {
        total_s: total.as_secs_f64().max(1e-9),
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    if let Some(run) = measured.first() {
        let (from, to) = (run.well.as_secs_f64(), (run.well + run.sick).as_secs_f64());
        let (from, to) = (axes.x(from), axes.x(to));
        let (width, height) = (to - from, HEIGHT - TOP - BOTTOM);
        let _ = writeln!(
            svg,
            "<rect x=\"{from:.1}\" y=\"{TOP}\" width=\"{width:.1}\" height=\"{height}\" \
             fill=\"#eeeeee\"/>\n<text x=\"{:.1}\" y=\"{}\">trouble</text>",
            from + 4.0,
            TOP + 16.0
        );
    }
    axes.draw(&mut svg);
    for (number, run) in measured.iter().enumerate() {
        let color = COLORS
            .get(number % COLORS.len())
            .copied()
            .unwrap_or("black");
        draw_run(&mut svg, run, &axes, color);
        let x = LEFT + number as f64 * 150.0;
        let _ = writeln!(
            svg,
            "<text x=\"{x}\" y=\"24\" fill=\"{color}\" font-weight=\"bold\">{}</text>",
            run.name()
        );
    }
    svg.push_str("</svg>\n");
    svg
}

struct Axes {
    total_s: f64,
}

impl Axes {
    fn x(&self, seconds: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * (seconds / self.total_s).clamp(0.0, 1.0)
    }

    fn y(&self, ms: f64) -> f64 {
        let share = (ms.max(LOWEST_MS) / LOWEST_MS).log10() / DECADES;
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share.clamp(0.0, 1.0)
    }

    fn draw(&self, svg: &mut String) {
        for decade in 0..=DECADES as u32 {
            let ms = LOWEST_MS * 10_f64.powi(decade as i32);
            let (y, end) = (self.y(ms), WIDTH - RIGHT);
            let label = if ms < 1000.0 { format!("{ms} ms") } else { format!("{} s", ms / 1000.0) };
            let _ = writeln!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{end}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#cccccc\"/>\n\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                LEFT - 8.0,
                y + 4.0
            );
        }
        let step = (self.total_s / 10.0).ceil().max(1.0);
        let mut seconds = 0.0;
        while seconds <= self.total_s {
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{seconds} s</text>",
                self.x(seconds),
                HEIGHT - BOTTOM + 20.0
            );
            seconds += step;
        }
        let _ = writeln!(
            svg,
            "<text x=\"{LEFT}\" y=\"{}\">when reads should have begun; dots: reads, lines: 99th \
             percentiles</text>",
            HEIGHT - 10.0
        );
    }
}

fn draw_run(svg: &mut String, run: &Measured, axes: &Axes, color: &str) {
    let mut parts = vec![Vec::new(); PARTS];
    let mut dots = String::new();
    for sample in &run.samples {
        let (seconds, ms) = (
            sample.intended_ns as f64 / 1e9,
            sample.latency_ns as f64 / 1e6,
        );
        let (x, y) = (axes.x(seconds), axes.y(ms));
        let _ = write!(dots, "M{x:.1} {y:.1}h0");
        let part = (seconds / axes.total_s * PARTS as f64) as usize;
        if let Some(part) = parts.get_mut(part) {
            part.push(ms);
        }
    }
    let _ = writeln!(
        svg,
        "<path d=\"{dots}\" stroke=\"{color}\" stroke-width=\"2\" stroke-linecap=\"round\" \
         stroke-opacity=\"0.35\" fill=\"none\"/>"
    );
    let mut line = String::new();
    for (number, part) in parts.iter_mut().enumerate() {
        part.sort_by(f64::total_cmp);
        let rank = (part.len() * 99).div_ceil(100).max(1);
        let Some(ms) = part.get(rank - 1) else { continue };
        let seconds = (number as f64 + 0.5) / PARTS as f64 * axes.total_s;
        let _ = write!(line, "{:.1},{:.1} ", axes.x(seconds), axes.y(*ms));
    }
    let _ = writeln!(
        svg,
        "<polyline points=\"{line}\" stroke=\"{color}\" stroke-width=\"2\" fill=\"none\"/>"
    );
}
