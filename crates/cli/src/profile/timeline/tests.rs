use refrain_testkit::chromium::{OpenedPage, open_page};
use refrain_trace::{Event, EventKind, TurnEnd};

use super::*;

/// Opens the page, runs `script` in it, and returns the script's output.
fn use_page(html: &str, script: &str) -> Option<(String, OpenedPage)> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    let used = format!(
        "<script>setTimeout(() => {{ const lines = []; const say = (...what) => lines.push(what.join(\" | \"));\n\
         {script}\ndocument.body.append(element(\"pre\", {{ id: \"said\" }}, lines.join(\"\\n\"))); }}, 400);</script></body>"
    );
    std::fs::write(&file, html.replace("</body>", &used)).unwrap();
    let Some(opened) = open_page(&file, (1400, 900), None) else {
        eprintln!("NOT TESTED: there is no Chromium");
        return None;
    };
    assert_eq!(opened.console, Vec::<String>::new());
    let from = opened
        .elements
        .find("<pre id=\"said\">")
        .expect("the script ran to its end");
    let said = opened.elements[from..].split_once('>').unwrap().1;
    let said = said.split_once("</pre>").unwrap().0.to_owned();
    Some((said, opened))
}

fn event(
    kind: EventKind,
    name: &'static str,
    flow: u32,
    from_us: u64,
    to_us: u64,
    argument: u64,
) -> Event {
    Event {
        kind,
        name,
        flow,
        start_ns: 5_000 + from_us * 1000,
        duration_ns: (to_us - from_us) * 1000,
        argument,
    }
}

/// Two workers: the first runs a flow that gives work to another one, and wakes the second for it.
fn small() -> Vec<ThreadTrace> {
    let thread = |name: &str, lost, events| ThreadTrace {
        name: name.into(),
        events,
        lost,
    };
    use EventKind::{Count, Idle, LockWait, Read, Ready, Run, Stage, Wait, Wake};
    let first = vec![
        event(Stage, "encode", 0, 100, 300, 2_000_000),
        event(Ready, "", 2, 320, 320, 0),
        event(Wake, "", 2, 325, 325, 1),
        event(LockWait, "a::b::Cache", 0, 400, 450, 77),
        event(Stage, "write", 0, 380, 600, 5_000),
        event(Run, "", 1, 50, 700, TurnEnd::SliceOver as u64),
        event(Stage, "encode", 0, 720, 800, 1_000_000),
        event(Run, "", 1, 710, 900, TurnEnd::NoJobs as u64),
    ];
    let second = vec![
        event(Idle, "", 0, 0, 330, 1),
        event(Read, "disk", 0, 350, 500, 1_500_000),
        event(Wait, "disk", 0, 350, 480, 0),
        event(Stage, "read", 0, 345, 510, 1_500_000),
        event(Run, "", 2, 340, 520, TurnEnd::Preempted as u64),
        event(Count, "jobs queued", 0, 345, 345, 3),
        event(Count, "jobs queued", 0, 500, 500, 1),
        event(Idle, "", 0, 520, 1000, 0),
    ];
    vec![
        thread("main", 0, vec![event(Wait, "<b>&", 0, 0, 10, 0)]),
        thread("worker-1", 12, second),
        thread("worker-0", 0, first),
    ]
}

#[test]
fn spans_are_drawn_found_and_explained() {
    let html = page(
        "Timeline of <i>x</i>",
        &Words {
            verdict: "the words".into(),
            remedy: Some("try -2".into()),
            shares: vec![Share {
                activity: Activity::Stage("encode"),
                share: 0.7,
            }],
            notes: vec!["a & b".into()],
        },
        &facts(),
        &small(),
    );
    let script = r##"
        say(threads.map((thread) => thread.title).join(), flows.map((lane) => lane.title).join("; "), counts[0].title);
        say(lanes.map((lane) => lane.kind).join());
        const worker = threads[0], other = threads[1];
        const point = (row, time) => ({ offsetX: xOf(time), offsetY: row.top + 5 - box.scrollTop });
        const move = (row, time) => { const { offsetX, offsetY } = point(row, time), area = canvas.getBoundingClientRect();
          canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: area.left + offsetX, clientY: area.top + offsetY, pointerId: 1, pointerType: "mouse" }));
          return byId("hover").textContent.replaceAll("\n", " / "); };
        say(move(worker.rows[1], 200e3));
        say(move(worker.rows[2], 425e3));
        say(move(worker.rows[0], 60e3));
        say(move(other.rows[0], 400e3));
        say(move(other.rows[0], 100e3));
        say(move(other.rows[1], 400e3));
        say(move(flows[0].rows[0], 800e3));
        canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: canvas.getBoundingClientRect().left + xOf(325e3),
          clientY: canvas.getBoundingClientRect().top + worker.top + 8 - box.scrollTop, pointerId: 1 }));
        say(byId("hover").textContent.replaceAll("\n", " / "));
        const pixel = (row, time) => pixels[Math.round((row.top + 6 - box.scrollTop) * ratio) * canvas.width + Math.floor(xOf(time) * ratio)];
        state.hovered = null;
        draw();
        const paint = (text) => pack(rgbOfPaint(names.findIndex((name) => name.text === text)));
        say(pixel(worker.rows[1], 110e3) === paint("encode"), pixel(worker.rows[2], 440e3) === paint("lock Cache"), pixel(other.rows[0], 600e3) === paint("idle"));
        const find = byId("find"), key = (target, name, more = {}) => target.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true, ...more }));
        const press = (text) => { find.value = text; key(find, "Enter"); };
        press("ENC");
        const selected = () => names[state.selected.row.names[state.selected.span]].text + " " + state.selected.row.starts[state.selected.span] / 1e3;
        say(byId("found").textContent, selected());
        key(find, "Enter");
        say(selected(), byId("details").textContent.split("\n")[0]);
        key(find, "Enter", { shiftKey: true });
        say(selected());
        press("flow 2");
        say(byId("found").textContent, selected());
        press("nothing like this");
        say(byId("found").textContent);
        press("");
        key(document.body, "0");
        const range = () => { draw(); return canvas.dataset.from + ".." + canvas.dataset.to; };
        say(range());
        key(document.body, "+");
        say(range());
        key(document.body, "ArrowRight");
        say(range());
        key(document.body, "-"); key(document.body, "-");
        say(range());
        const area = canvas.getBoundingClientRect();
        canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: -346.6, clientX: area.left + Math.round(width / 4), clientY: area.top + 50, cancelable: true }));
        range(); const [left, right] = [view.from, view.to];
        say(Math.abs(left - 125e3) < 1e3, Math.abs(right - 625e3) < 1e3);
        const press2 = (type, id, x) => canvas.dispatchEvent(new PointerEvent(type, { pointerId: id, pointerType: "touch", clientX: area.left + x, clientY: area.top + 50 }));
        press2("pointerdown", 5, 400); press2("pointermove", 5, 300); press2("pointerup", 5, 300);
        say(Math.abs(view.from - left - 100 / width * (right - left)) < 1);
        show(0, whole / 2);
        press2("pointerdown", 5, 200); press2("pointerdown", 6, 400); press2("pointermove", 6, 600); press2("pointerup", 5, 200); press2("pointerup", 6, 600);
        say(Math.round((view.to - view.from) / 1e3));
        show(0, 400e3);
        for (const row of totals()) say(row.text, row.count, row.own / 1e3, row.time / 1e3, Math.round(row.bytes));
    "##;
    let Some((said, opened)) = use_page(&html, script) else {
        return;
    };
    let expected = [
        "worker-0,worker-1,main | flow 1, 2 turns; flow 2, 1 turn | jobs queued",
        "group,thread,thread,thread,group,flow,flow,group,count",
        "encode: 200 µs / from 100.0 µs on worker-0 / 2.00 MB, 10.0 GB/s / inside flow 1",
        "lock Cache: 50.0 µs / from 400.0 µs on worker-0 / taken in line 77 of the source / inside write",
        "flow 1: 650 µs / from 50.0 µs on worker-0 / it ended because its slice was over",
        "flow 2: 180 µs / from 340.0 µs on worker-1 / it ended because a more urgent flow \
         took the worker / given work by worker-0 20.0 µs before",
        "idle: 330 µs / from 0.0 µs on worker-1 / it slept / woken by worker-0 5.00 µs before",
        "read: 165 µs / from 345.0 µs on worker-1 / 1.50 MB, 9.09 GB/s / inside flow 2",
        "flow 1: 190 µs / from 710.0 µs on worker-0 / it ended because it had no job left",
        "worker-0 wakes worker-1 for flow 2 / at 325.0 µs",
        "true | true | true",
        "2 found | encode 100",
        "encode 720 | encode: 80.0 µs",
        "encode 100",
        "1 found | flow 340",
        "nothing found",
        "0..1000000",
        "200000..800000",
        "290000..890000",
        "0..1000000",
        "true | true",
        "true",
        "250",
        "idle | 1 | 330 | 330 | 0",
        "encode | 1 | 200 | 200 | 2000000",
        "flow, outside of stages | 2 | 135 | 410 | 0",
        "wait for disk | 1 | 50 | 50 | 0",
        "write | 1 | 20 | 20 | 455",
        "wait for &lt;b&gt;&amp; | 1 | 10 | 10 | 0",
        "read | 1 | 5 | 55 | 500000",
        "read disk | 1 | 0 | 50 | 500000",
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
    let has = |text: &str| assert!(opened.elements.contains(text), "{text}");
    has("Timeline of &lt;i&gt;x&lt;/i&gt;</h1>");
    has("<p id=\"verdict\">the words. <span id=\"remedy\">try -2</span></p>");
    has("a &amp; b");
    has("<i style=\"width:70.00%;background:hsl(165 52% var(--stage))\"");
    has(
        "command: <b>refrain compress x</b> · level: <b>3</b> · input: <b>x</b> · date: <b>2026-11-26</b>",
    );
    has("waits for a lock");
    has("<td>wait for &lt;b&gt;&amp;</td>");
}

/// A million spans and moments of eight workers, as from work in small pieces.
fn facts() -> Facts {
    Facts {
        command: "refrain compress x".into(),
        level: Some(3),
        inputs: vec!["x".into()],
        date: "2026-11-26".into(),
    }
}

fn million() -> Vec<ThreadTrace> {
    const STAGES: [&str; 6] = ["encode", "scan", "match", "read", "hash", "write"];
    let mut seed = 1_u64;
    let mut random = move |below: u64| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let worker = |number: u64| {
        let mut events = vec![];
        let mut now_us = random(50);
        while events.len() < 125_000 {
            let start_us = now_us;
            for _ in 0..1 + random(4) {
                let took_us = 2 + random(120);
                let stage = STAGES[random(6) as usize];
                events.push(event(
                    EventKind::Stage,
                    stage,
                    0,
                    now_us,
                    now_us + took_us,
                    took_us * 999,
                ));
                now_us += took_us + random(3);
            }
            let flow = 1 + random(32) as u32;
            events.push(event(
                EventKind::Run,
                "",
                flow,
                start_us,
                now_us,
                random(TurnEnd::ALL.len() as u64),
            ));
            events.push(event(
                EventKind::Ready,
                "",
                1 + random(32) as u32,
                now_us,
                now_us,
                0,
            ));
            events.push(event(EventKind::Wake, "", flow, now_us, now_us, random(8)));
            events.push(event(
                EventKind::Count,
                "jobs queued",
                0,
                now_us,
                now_us,
                random(40),
            ));
            let idle_us = random(60);
            events.push(event(EventKind::Idle, "", 0, now_us, now_us + idle_us, 1));
            now_us += idle_us;
        }
        ThreadTrace {
            name: format!("worker-{number}"),
            events,
            lost: 0,
        }
    };
    (0..8).map(worker).collect()
}

#[test]
fn a_million_events_are_all_there() {
    let threads = million();
    let spans = |kind: EventKind, name: &str| {
        let events = threads.iter().flat_map(|thread| &thread.events);
        events
            .filter(|event| event.kind == kind && event.name == name)
            .count()
    };
    let encode = spans(EventKind::Stage, "encode");
    let all = threads
        .iter()
        .map(|thread| thread.events.len())
        .sum::<usize>();
    assert!(all >= 1_000_000);
    let html = page("A million", &Words::default(), &facts(), &threads);
    assert!(html.len() < 16 << 20, "{}", html.len());
    let script = r##"
        say(threads.length, flows.length, counts[0].times.length);
        const find = byId("find");
        find.value = "encode";
        find.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
        say(byId("found").dataset.count);
        // Jumping visits the matches in order of time.
        let last = -1, rising = 0;
        for (let step = 0; step < 50; step += 1) { jump(1); const start = state.selected.row.starts[state.selected.span]; if (start >= last) rising += 1; last = start; }
        say(rising);
        search("");
        show(0, whole);
        say(totals().filter((row) => row.kind === "stage").reduce((sum, row) => sum + row.count, 0));
        // Every drawing mode shows something in every row of a worker.
        const ink = (row) => { const from = Math.round((row.top + 6) * ratio) * canvas.width;
          return pixels.subarray(from, from + canvas.width).reduce((sum, pixel) => sum + (pixel === ground ? 0 : 1), 0) / canvas.width; };
        for (const span of [whole, whole / 40, whole / 2000]) {
          show(whole / 2, whole / 2 + span); box.scrollTop = 0; draw();
          say(threads.slice(0, 4).every((thread) => ink(thread.rows[0]) > 0.5 && ink(thread.rows[1]) > 0.3));
        }
    "##;
    let Some((said, _)) = use_page(&html, script) else {
        return;
    };
    let stages = threads.iter().flat_map(|thread| &thread.events);
    let stages = stages
        .filter(|event| event.kind == EventKind::Stage)
        .count();
    let counts = spans(EventKind::Count, "jobs queued");
    let expected = format!("8 | 32 | {counts}\n{encode}\n50\n{stages}\ntrue\ntrue\ntrue");
    assert_eq!(said, expected);
}

#[test]
#[ignore = "writes a page to measure by hand: how long it takes to open, frames while panning"]
fn a_page_to_measure() {
    let html = page("A million", &Words::default(), &facts(), &million());
    std::fs::write(std::env::temp_dir().join("refrain-million.html"), html).unwrap();
}
