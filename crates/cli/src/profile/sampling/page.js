// The tables of a profile.
{
  const share = (samples) => (data.samples === 0 ? 0 : (samples / data.samples) * 100);
  const percent = (value) => value.toFixed(value >= 9.95 ? 1 : 2) + " %";
  const known = (text) => (value) => (value === null ? "n/a" : text(value));
  const count = (value) => value.toLocaleString("en");
  const billions = known((value) => (value / 1e9).toFixed(2));
  const put = (id, ...children) => document.getElementById(id).replaceChildren(...children);
  const faults = (samples) => samples * data.faults_per_sample;
  const sums = [
    ["self", (row) => share(row.own), percent],
    ["with callees", (row) => share(row.total), percent],
    ["faults", (row) => faults(row.own_faults), count],
    ["with callees", (row) => faults(row.total_faults), count],
  ];

  put("stages", table(data.stages, [
    ["stage", (row) => row.stage],
    ["samples", (row) => share(row.samples), percent],
    ["CPU", (row) => row.samples * data.cpu_ns_per_sample, duration],
    ["faults", (row) => faults(row.faults), count],
  ]));
  put("measured", table([...data.measured.stages, { stage: "whole program", pieces: null, ...data.measured.whole_program }], [
    ["stage", (row) => row.stage],
    ["pieces", (row) => row.pieces, known(count)],
    ["time", (row) => row.time_ns, duration],
    ["CPU", (row) => row.cpu_ns, duration],
    ["bytes", (row) => row.bytes, bytes],
    ["faults", (row) => row.minor_faults + row.major_faults, count],
    ["waits", (row) => row.waits, count],
    ["preempted", (row) => row.preemptions, count],
    ["Gcycles", (row) => row.cycles, billions],
    ["Ginstructions", (row) => row.instructions, billions],
  ]));
  put("origins", table(data.origins, [["crate", (row) => row.name], ...sums]));
  put("threads", table(data.threads, [
    ["thread", (row) => row.name],
    ["samples", (row) => share(row.samples), percent],
    ["CPU", (row) => row.samples * data.cpu_ns_per_sample, duration],
    ["faults", (row) => faults(row.faults), count],
  ]));

  const FIRST = 40;
  const functions = [["function", (row) => row.name], ["crate", (row) => row.origin], ...sums];
  const filter = document.getElementById("filter");
  const show = () => {
    const wanted = filter.value.trim().toLowerCase();
    const found = data.functions.filter((row) => (row.name + " " + row.origin).toLowerCase().includes(wanted));
    put("functions", table(found.slice(0, FIRST), functions));
    put("shown", found.length > FIRST ? `The first ${FIRST} of ${found.length}.` : `${found.length} found.`);
  };
  filter.addEventListener("input", show);
  show();
}
