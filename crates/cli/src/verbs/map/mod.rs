//! `refrain map`: where the bytes of an archive come from: a table, a page, a picture, numbers.
//!
//! | file | what |
//! |---|---|
//!
//! `survey`
//! walks an archive once and collects the following, in bounded memory
//! | `curve` | how much content has introduced, and what the store takes |
//! | `places` | the files at some places of the content |
//! | `passages` | repeats by distance, by place, and the largest ones |
//!
//! `folders`
//! the cost of every folder
//! | `nights` | the cost of every generation |
//! | `words` | the summary and the table |
//! | `figures` | all numbers as JSON |
//! | `picture` | the main picture (SVG) |
//! | `page` | the page (HTML) |
//! | `shared`, `shared_page` | what two archives share |

mod curve;
mod figures;
mod folders;
mod nights;
mod page;
mod parts;
mod passages;
mod picture;
mod places;
mod shared;
mod shared_page;
mod survey;
mod words;

use std::path::Path;
use std::sync::Arc;

use refrain::{Archive, ReadOptions};
use serde_json::{Value, json};

use super::input::open_archive;
use crate::args::{MapArgs, OpeningArgs};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::files;
use crate::names;
use crate::paths::label;
use crate::plan::{InspectPlan, SeekableInput};
use crate::report::{DataTo, Outcome, Report, print};
use crate::session::Session;
use crate::text::json_text;
use survey::Survey;

/// Runs the verb.
pub fn run(args: &MapArgs, session: &Session) -> Exit {
    let mut report = Report::new("map", &args.report, session, DataTo::Elsewhere);
    let result = map(args, &report);
    report.add(result);
    report.finish()
}

/// The form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Page,
    Picture,
    Numbers,
}

impl Form {
    /// The form for a path's suffix.
    fn from_path(path: &Path) -> Result<Form> {
        match path.extension().and_then(|suffix| suffix.to_str()) {
            Some("html") => Ok(Form::Page),
            Some("svg") => Ok(Form::Picture),
            Some("json") => Ok(Form::Numbers),
            _ => {
                let text =
                    "has none of the suffixes .html, .svg and .json, which say what to write";
                Err(Failure::usage(label(path), text))
            }
        }
    }
}

/// A survey of one archive, with its name.
struct Surveyed {
    archive: Arc<Archive>,
    label: String,
    survey: Survey,
}

fn map(args: &MapArgs, report: &Report) -> Result<Outcome> {
    let form = args.output.as_deref().map(Form::from_path).transpose()?;
    let options = (args.generation)
        .with((args.limits).with(args.secrets.with(args.resources.read_options())?));
    let plan = InspectPlan::new(options, &args.archives, &args.secrets);
    let count = plan.archives.len() as u64;
    let options = ReadOptions {
        // The survey takes the other half.
        memory_bytes: plan.options.memory_bytes / 2 / count.max(1),
        ..plan.options.clone()
    };
    let inputs: Vec<SeekableInput> = plan.archives.into_iter().collect::<Result<_>>()?;
    let mut surveyed = vec![];
    for input in &inputs {
        surveyed.push(survey_of(input, &options, report)?);
    }
    let drawing = match surveyed.as_slice() {
        [only] => Drawing::for_one(only, form),
        [first, second] => {
            let session = report.session();
            Drawing::for_two(first, second, form, plan.options.memory_bytes, session)?
        }
        _ => return Err(Failure::usage("", "one or two archives have a map")),
    };
    let Some(path) = args.output.as_deref() else {
        if report.writes_text() {
            print(&drawing.text)?;
            return Ok(Outcome::complete(String::new(), Value::Null));
        }
        return Ok(Outcome::complete(String::new(), drawing.figures));
    };
    files::write_file(path, args.force, drawing.text.as_bytes())?;
    let (labels, output) = (drawing.labels, label(path));
    let summary = format!("{labels} -> {output}");
    let json = json!({ "file": labels, "output": output, "bytes": drawing.text.len() });
    Ok(Outcome::complete(summary, json))
}

/// What is written or printed.
struct Drawing {
    labels: String,
    figures: Value,
    /// In the requested form; by default the table.
    text: String,
}

impl Drawing {
    fn for_one(surveyed: &Surveyed, form: Option<Form>) -> Drawing {
        let Surveyed { label, survey, .. } = surveyed;
        let figures = figures::figures(label, survey);
        let text = match form {
            None => words::table(label, survey),
            Some(Form::Page) => page::page(label, survey, &figures),
            Some(Form::Picture) => picture::picture(survey),
            Some(Form::Numbers) => json_text(format_args!("{figures}\n")),
        };
        Drawing {
            labels: label.clone(),
            figures,
            text,
        }
    }

    fn for_two(
        first: &Surveyed,
        second: &Surveyed,
        form: Option<Form>,
        memory_bytes: u64,
        session: &Session,
    ) -> Result<Drawing> {
        let compared = shared::compare(
            [&first.archive, &second.archive],
            [&first.survey.costs, &second.survey.costs],
            [
                first.survey.info.store_bytes,
                second.survey.info.store_bytes,
            ],
            memory_bytes,
            session,
        );
        let labels = [first.label.as_str(), second.label.as_str()];
        let both = labels.join(" and ");
        let shared = compared.map_err(|error| Failure::engine(&both, error))?;
        let figures = shared_page::figures(labels, &shared);
        let text = match form {
            None => shared_page::table(labels, &shared),
            Some(Form::Page) => shared_page::page(labels, &shared, &figures),
            Some(Form::Picture) => shared_page::picture(labels, &shared),
            Some(Form::Numbers) => json_text(format_args!("{figures}\n")),
        };
        Ok(Drawing {
            labels: both,
            figures,
            text,
        })
    }
}

fn survey_of(input: &SeekableInput, options: &ReadOptions, report: &Report) -> Result<Surveyed> {
    let meter = report.meter(&input.label);
    let opening = OpeningArgs::default();
    let archive = open_archive(input, &opening, options, &meter, report.session())?;
    archive.use_memory_for_serving();
    let archive = Arc::new(archive);
    let name = names::of_member(&input.path, b"");
    let survey = Survey::new(&archive, &name, options.memory_bytes, report.session());
    let survey = survey.map_err(|error| Failure::engine(&input.label, error))?;
    meter.erase();
    Ok(Surveyed {
        archive,
        label: input.label.clone(),
        survey,
    })
}
