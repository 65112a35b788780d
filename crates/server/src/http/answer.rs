//! Dispatches a request to its answer.

use refrain::{Entry, Member};

use super::conditions::Validators;
use super::content::Content;
use super::content_type::content_type;
use super::exchange::{CacheTime, ContentResponse, Exchange, Served};
use super::head::Method;
use super::listing::link_to;
use super::response::Status;
use super::route::{Resource, query_of, route};
use super::target::{Target, parse_target};
use super::visit::{Visit, Way, follow};
use super::{directories, internal};
use crate::etag;
use crate::statistics::Operation;
use crate::tree::FileContent;

/// How long caches may keep content whose archive may be replaced by another, in seconds.
const CHANGING_MAX_AGE_SECONDS: u64 = 60;

pub(super) fn answer(exchange: &mut Exchange<'_, '_>) -> Served {
    exchange.run()
}

impl Exchange<'_, '_> {
    fn run(&mut self) -> Served {
        let served = match self.head.method {
            Method::Unknown => self.text(Status(501), "the method is not known", &[]),
            Method::Refused => self.not_allowed("GET, HEAD"),
            Method::Get | Method::Head | Method::Post => self.answer(),
        };
        match self.head.method {
            // HEAD does the same work, but sends no bytes.
            Method::Head => Served {
                operation: Operation::HttpHead,
                ..served
            },
            _ => served,
        }
    }

    fn answer(&mut self) -> Served {
        let target = match parse_target(&self.head.target) {
            Ok(target) => target,
            Err(why) => return self.text(Status(400), why, &[]),
        };
        match follow(self.shared, &target) {
            Ok(Way::Archive(visit, inside)) => {
                self.counts = visit.opened().service.counts().cloned();
                self.answer_in(&visit, &inside)
            }
            Ok(way) => self.answer_outside(&way, &target),
            Err(error) => self.failed(Operation::HttpPage, &error),
        }
    }

    /// Answers a request about no archive.
    fn answer_outside(&mut self, way: &Way<'_>, target: &Target) -> Served {
        let own_page = internal::page_of(&target.path);
        let own_page = own_page.or((target.path == b"metrics").then_some(internal::Page::Metrics));
        match (self.head.method, way, own_page) {
            (Method::Post, _, Some(internal::Page::Reset)) => internal::reset(self),
            (Method::Post, ..) => self.not_allowed("GET, HEAD"),
            (_, Way::List, _) => directories::archives(self),
            (_, Way::WithoutSlash, _) => {
                let location = format!("{}/{}", link_to(&target.path), query_of(target));
                self.redirect(Status(301), &location)
            }
            (_, _, Some(page)) => internal::answer(self, None, page, target),
            _ => self.text(Status(404), "there is no archive with this name", &[]),
        }
    }

    fn redirect(&mut self, status: Status, location: &str) -> Served {
        let text = format!("see {location}");
        self.text(status, &text, &[("Location", location)])
    }

    /// Answers a request about an archive, by a path in it.
    fn answer_in(&mut self, visit: &Visit<'_>, target: &Target) -> Served {
        let resource = match route(visit, target) {
            Ok(resource) => resource,
            Err(error) => return self.failed(Operation::HttpPage, &error),
        };
        if self.head.method == Method::Post {
            return match resource {
                Resource::Internal(internal::Page::Reset) => internal::reset(self),
                _ => self.not_allowed("GET, HEAD"),
            };
        }
        match resource {
            Resource::Directory { node, tar_above } => {
                directories::directory(self, visit, node, &target.path, tar_above)
            }
            Resource::File(FileContent::Member(number)) => {
                self.member(visit, number, content_type(&target.path))
            }
            Resource::File(FileContent::Entry(number, entry)) => {
                self.entry(visit, number, entry, content_type(&target.path))
            }
            Resource::TarStream(number, member) => self.tar_stream(visit, number, &member),
            Resource::Special => self.text(
                Status(403),
                "this is not a regular file (a device or a pipe)",
                &[],
            ),
            Resource::Redirect(status, location) => self.redirect(status, &location),
            Resource::Missing(text) => self.text(Status(404), &text, &[]),
            Resource::Internal(page) => internal::answer(self, Some(visit), page, target),
        }
    }

    /// How long caches may keep content of an archive.
    fn cache_of(&self, visit: &Visit<'_>) -> CacheTime {
        if visit.may_change() {
            CacheTime::Checked(CHANGING_MAX_AGE_SECONDS)
        } else {
            CacheTime::Immutable(self.shared.settings.max_age_seconds)
        }
    }

    fn entry(
        &mut self,
        visit: &Visit<'_>,
        number: usize,
        entry: Box<Entry>,
        content_type: &'static str,
    ) -> Served {
        let member = match visit.archive().member(number) {
            Ok(member) => member,
            Err(error) => return self.failed(Operation::HttpGet, &error.into()),
        };
        self.content(&ContentResponse {
            archive: visit.archive(),
            length_bytes: entry.size_bytes,
            content_type,
            validators: Validators {
                etag: etag::of_entry(&member, &entry),
                modified: Some(entry.modified.seconds),
            },
            content: &Content::Entry(number, entry),
            operation: Operation::HttpGet,
            cache: self.cache_of(visit),
        })
    }

    fn member(&mut self, visit: &Visit<'_>, number: usize, content_type: &'static str) -> Served {
        let member = match visit.archive().member(number) {
            Ok(member) => member,
            Err(error) => return self.failed(Operation::HttpGet, &error.into()),
        };
        self.content(&ContentResponse {
            archive: visit.archive(),
            content: &Content::Member(number),
            length_bytes: member.content_bytes,
            content_type,
            validators: Validators {
                etag: etag::of_content(&member),
                modified: member.modified.map(|time| time.seconds),
            },
            operation: Operation::HttpGet,
            cache: self.cache_of(visit),
        })
    }

    fn tar_stream(&mut self, visit: &Visit<'_>, number: usize, member: &Member) -> Served {
        let etag = match etag::of_tar_stream(visit.archive(), number, member) {
            Ok(etag) => etag,
            Err(error) => return self.failed(Operation::HttpGet, &error.into()),
        };
        self.content(&ContentResponse {
            archive: visit.archive(),
            content: &Content::TarStream(number),
            length_bytes: member.content_bytes,
            content_type: "application/x-tar",
            validators: Validators {
                etag,
                modified: member.modified.map(|time| time.seconds),
            },
            operation: Operation::HttpGet,
            cache: self.cache_of(visit),
        })
    }
}
