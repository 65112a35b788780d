//! Dispatches a request to its answer.

use refrain::{Entry, Member};

use super::conditions::Validators;
use super::content::Content;
use super::content_type::content_type;
use super::exchange::{ContentResponse, Exchange, Served};
use super::head::Method;
use super::response::Status;
use super::route::{Resource, route};
use super::target::parse_target;
use super::{directories, internal};
use crate::etag;
use crate::statistics::Operation;
use crate::tree::FileContent;

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
        let resource = match route(self.shared, &target) {
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
                directories::directory(self, node, &target.path, tar_above)
            }
            Resource::File(FileContent::Member(number)) => {
                self.member(number, content_type(&target.path))
            }
            Resource::File(FileContent::Entry(number, entry)) => {
                self.entry(number, entry, content_type(&target.path))
            }
            Resource::TarStream(number, member) => self.tar_stream(number, &member),
            Resource::Special => self.text(
                Status(403),
                "this is not a regular file (a device or a pipe)",
                &[],
            ),
            Resource::Redirect(status, location) => {
                let text = format!("see {location}");
                self.text(status, &text, &[("Location", &location)])
            }
            Resource::Missing(text) => self.text(Status(404), &text, &[]),
            Resource::Internal(page) => internal::answer(self, page, &target),
        }
    }

    fn entry(&mut self, number: usize, entry: Box<Entry>, content_type: &'static str) -> Served {
        let member = match self.shared.service.archive().member(number) {
            Ok(member) => member,
            Err(error) => return self.failed(Operation::HttpGet, &error.into()),
        };
        self.content(&ContentResponse {
            length_bytes: entry.size_bytes,
            content_type,
            validators: Validators {
                etag: etag::of_entry(&member, &entry),
                modified: Some(entry.modified.seconds),
            },
            content: &Content::Entry(number, entry),
            operation: Operation::HttpGet,
            max_age_seconds: self.shared.settings.max_age_seconds,
        })
    }

    fn member(&mut self, number: usize, content_type: &'static str) -> Served {
        let member = match self.shared.service.archive().member(number) {
            Ok(member) => member,
            Err(error) => return self.failed(Operation::HttpGet, &error.into()),
        };
        self.content(&ContentResponse {
            content: &Content::Member(number),
            length_bytes: member.content_bytes,
            content_type,
            validators: Validators {
                etag: etag::of_content(&member),
                modified: member.modified.map(|time| time.seconds),
            },
            operation: Operation::HttpGet,
            max_age_seconds: self.shared.settings.max_age_seconds,
        })
    }

    fn tar_stream(&mut self, number: usize, member: &Member) -> Served {
        let etag = match etag::of_tar_stream(self.shared.service.archive(), number, member) {
            Ok(etag) => etag,
            Err(error) => return self.failed(Operation::HttpGet, &error.into()),
        };
        self.content(&ContentResponse {
            content: &Content::TarStream(number),
            length_bytes: member.content_bytes,
            content_type: "application/x-tar",
            validators: Validators {
                etag,
                modified: member.modified.map(|time| time.seconds),
            },
            operation: Operation::HttpGet,
            max_age_seconds: self.shared.settings.max_age_seconds,
        })
    }
}
