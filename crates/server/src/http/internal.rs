//! Serves everything below `/.refrain/`: frames, metrics, statistics.

use refrain_page::json_text;

use super::exchange::{Exchange, Served};
use super::response::Status;
use super::target::Target;
use super::visit::Visit;
use super::{frames, metrics, tier_metrics};
use crate::archives::OWN_PAGES;

/// The first component of these paths. A member of this name is not served.
pub(super) const ROOT: &[u8] = OWN_PAGES;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Page {
    /// The index of these pages.
    Index,
    /// `metrics`
    Metrics,
    /// `statistics`
    Statistics,
    /// `statistics/reset`
    Reset,
    /// `frames`
    Frames,
    /// `frames/NAME`
    Frame(Vec<u8>),
    Missing,
}

const INDEX: &str = "\
metrics           statistics for Prometheus
statistics        the same as JSON
statistics/reset  POST: sets them to zero
frames            the frames of the archive, with their hashes (JSON)";

/// `None` if the path is not below [`ROOT`].
pub(super) fn page_of(path: &[u8]) -> Option<Page> {
    let rest = path.strip_prefix(ROOT)?;
    Some(match rest.strip_prefix(b"/") {
        None if rest.is_empty() => Page::Index,
        None => return None,
        Some(b"") => Page::Index,
        Some(b"metrics") => Page::Metrics,
        Some(b"statistics") => Page::Statistics,
        Some(b"statistics/reset") => Page::Reset,
        Some(b"frames" | b"frames/") => Page::Frames,
        Some(rest) => match rest.strip_prefix(b"frames/") {
            Some(name) => Page::Frame(name.to_vec()),
            None => Page::Missing,
        },
    })
}

/// The index where archives have names.
const INDEX_OF_ALL: &str = "\
metrics           statistics for Prometheus
statistics        the same as JSON
statistics/reset  POST: sets them to zero";

/// Answers with a page about an archive, or about all of several.
pub(super) fn answer(
    exchange: &mut Exchange<'_, '_>,
    visit: Option<&Visit<'_>>,
    page: Page,
    target: &Target,
) -> Served {
    let archives = exchange.shared.archives.clone();
    let statistics = archives.journal().statistics();
    match page {
        Page::Index if visit.is_none() => {
            exchange.text(Status(200), INDEX_OF_ALL, &[("Cache-Control", "no-cache")])
        }
        Page::Index => exchange.text(Status(200), INDEX, &[("Cache-Control", "no-cache")]),
        Page::Missing => exchange.text(Status(404), "there is nothing here", &[]),
        Page::Reset => exchange.text(
            Status(405),
            "the method is not allowed here",
            &[("Allow", "POST")],
        ),
        Page::Metrics => {
            let mut text = metrics::text(statistics, &exchange.shared.metrics(), &archives.rows());
            text += &tier_metrics::text(&exchange.shared.tiers());
            exchange.page(metrics::TEXT_TYPE, "no-store", |page| {
                page.put(format_args!("{text}"))
            })
        }
        Page::Statistics => {
            let mut document =
                metrics::document(statistics, &exchange.shared.metrics(), &archives.rows());
            document["tiers"] = tier_metrics::document(&exchange.shared.tiers());
            exchange.page("application/json", "no-store", |page| {
                page.put(format_args!("{}\n", json_text(document)))
            })
        }
        Page::Frames | Page::Frame(_) => {
            let Some(visit) = visit else {
                let text = "the frames of an archive are below its name: /NAME/.refrain/frames";
                return exchange.text(Status(404), text, &[]);
            };
            match page {
                Page::Frame(name) => frames::frame(exchange, visit, &name),
                _ => frames::list(exchange, visit, target),
            }
        }
    }
}

/// Resets the statistics.
pub(super) fn reset(exchange: &mut Exchange<'_, '_>) -> Served {
    let may_reset = exchange.is_local && !exchange.head.has_origin;
    if !may_reset && !exchange.shared.settings.resets_from_anywhere {
        let text = "only programs on the server's machine may do this";
        return exchange.text(Status(403), text, &[]);
    }
    exchange.shared.archives.reset_statistics();
    exchange.shared.reset_tiers();
    exchange.text(Status(200), "the statistics are zero", &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_the_root_have_pages() {
        assert_eq!(
            page_of(b".refrain/frames/8-ab"),
            Some(Page::Frame(b"8-ab".to_vec()))
        );
        assert_eq!(page_of(b".refrain/frames"), Some(Page::Frames));
        assert_eq!(page_of(b".refrain/x"), Some(Page::Missing));
        assert_eq!(page_of(b".refrain"), Some(Page::Index));
        assert_eq!(page_of(b".refrain2"), None);
        assert_eq!(page_of(b"a/.refrain"), None);
    }
}
