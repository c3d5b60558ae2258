//! The metrics as text, for Prometheus and others that read its formats.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;

use baton_protocol::domain::TaskState;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use super::histogram::Values;
use super::labels::{self, Binding, Outcome, RequestKind};
use super::process::Process;
use super::{ByRequest, Telemetry};
use crate::engine::Load;
use crate::store::Measures;

/// Values that are read from the engine and the store at a scrape.
#[derive(Debug)]
pub(crate) struct CurrentValues {
    pub(crate) load: Load,
    pub(crate) store: Measures,
    /// Tasks in the store; `None` if the store did not answer in time.
    pub(crate) tasks_stored: Option<u64>,
    /// Webhooks that may still have something to deliver.
    pub(crate) webhooks_open: usize,
}

/// The text format of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The older Prometheus format, for clients that do not accept OpenMetrics.
    Plain,
}

impl Format {
    pub(crate) fn accepted(accept: Option<&str>) -> Self {
        match accept {
            Some(accept) if accept.contains("application/openmetrics-text") => Self::OpenMetrics,
            _ => Self::Plain,
        }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Plain => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

impl Telemetry {
    pub(crate) fn exposition(&self, current: CurrentValues, format: Format) -> String {
        let process = Process::read(self.inner.started);
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Scrape { telemetry: self.clone(), current, process }));
        let mut openmetrics = String::with_capacity(16 * 1024);
        text::encode(&mut openmetrics, &registry).expect("a string takes whatever is written");
        match format {
            Format::OpenMetrics => openmetrics,
            Format::Plain => plain(&openmetrics),
        }
    }
}

/// Converts OpenMetrics to the older format. There, a counter's `HELP` and `TYPE` have the name with `_total`, and there is
/// no type `info`.
fn plain(openmetrics: &str) -> String {
    let mut out = String::with_capacity(openmetrics.len());
    let mut help = None;
    for line in openmetrics.lines() {
        if let Some(described) = line.strip_prefix("# HELP ") {
            // Kept until its `TYPE` line, which comes next.
            help = described.split_once(' ');
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            let (suffix, kind) = match kind {
                "counter" => ("_total", kind),
                "info" => ("_info", "gauge"),
                _ => ("", kind),
            };
            let help = help.take().map_or("", |(_, help)| help);
            out += &format!("# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {kind}\n");
        } else if !line.starts_with("# UNIT ") && line != "# EOF" {
            out += line;
            out.push('\n');
        }
    }
    out
}

#[derive(Debug)]
struct Scrape {
    telemetry: Telemetry,
    current: CurrentValues,
    process: Process,
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut out = MetricsWriter(encoder);
        self.about(&mut out)?;
        self.requests(&mut out)?;
        self.tasks(&mut out)?;
        self.webhooks(&mut out)?;
        self.store(&mut out)
    }
}

impl Scrape {
    fn about(&self, out: &mut MetricsWriter<'_>) -> fmt::Result {
        let mut build =
            out.0.encode_descriptor("baton_build", "The running version.", None, MetricType::Info)?;
        build.encode_info(&[("version", env!("CARGO_PKG_VERSION"))])?;
        let process = &self.process;
        let help = "Start time of the process since the Unix epoch.";
        out.gauge("process_start_time", Some(Unit::Seconds), help, process.start_seconds)?;
        if let Some(seconds) = process.cpu_seconds {
            let mut cpu = out.0.encode_descriptor(
                "process_cpu",
                "Processor time the process has used.",
                Some(&Unit::Seconds),
                MetricType::Counter,
            )?;
            cpu.encode_counter::<NoLabelSet, f64, f64>(&seconds, None)?;
        }
        if let Some(bytes) = process.resident_bytes {
            out.gauge(
                "process_resident_memory",
                Some(Unit::Bytes),
                "Memory the process holds.",
                bytes as f64,
            )?;
        }
        if let Some(open) = process.open_files {
            out.gauge("process_open_fds", None, "Open file descriptors.", open as f64)?;
        }
        if let Some(most) = process.max_files {
            out.gauge("process_max_fds", None, "Most file descriptors that may be open.", most as f64)?;
        }
        Ok(())
    }

    fn requests(&self, out: &mut MetricsWriter<'_>) -> fmt::Result {
        let numbers = &self.telemetry.inner;
        let counted = numbers.requests.iter().flat_map(|(agent, requests)| {
            requests.counted().map(move |counted| {
                let labels = [
                    ("agent", &**agent),
                    ("binding", counted.binding),
                    ("generation", counted.generation),
                    ("operation", counted.operation),
                    ("outcome", counted.outcome),
                ];
                (labels, counted.count)
            })
        });
        out.counters("baton_requests", "Requests answered, and those whose client hung up before.", counted)?;
        let help = "Time from a request's head to its answer; answers that are streams are not in here.";
        out.times("baton_request", help, of_requests(&numbers.request_time))?;
        let help = "Time from a request's head to the first event of the stream that answers it.";
        out.times("baton_stream_first_event", help, of_requests(&numbers.first_event_time))?;
        let help = "Messages that had been taken before and got the same answer again.";
        out.counter("baton_idempotent_replays", help, numbers.replays.load(Relaxed))?;
        out.gauge(
            "baton_streams_open",
            None,
            "Streams under way.",
            numbers.streams_open.load(Relaxed) as f64,
        )?;
        out.counter("baton_stream_events", "Events sent on streams.", numbers.stream_events.load(Relaxed))?;
        let broken = numbers.streams_broken.iter().enumerate().filter_map(|(at, count)| {
            let count = count.load(Relaxed);
            (count > 0).then(|| ([("reason", Outcome::name_at(at))], count))
        });
        out.counters("baton_streams_broken", "Streams that ended with an error.", broken)?;
        let help = "Connections that are open.";
        out.gauge("baton_connections_open", None, help, numbers.connections_open.load(Relaxed) as f64)?;
        out.counter("baton_connections", "Connections accepted.", numbers.connections.load(Relaxed))?;
        let refused = numbers.refused.iter().zip(400u64..).filter_map(|(count, status)| {
            let count = count.load(Relaxed);
            (count > 0).then_some(([("status", status)], count))
        });
        let help = "Requests and connections sent away before they came to an agent, by HTTP status.";
        out.counters("baton_refused", help, refused)?;
        let limited = labels::Limited::ALL.into_iter().zip(&numbers.limited);
        let limited = limited.map(|(limit, count)| ([("limit", limit.name())], count.load(Relaxed)));
        out.counters(
            "baton_limited",
            "Calls refused because their caller was at a limit of its own.",
            limited,
        )
    }

    fn tasks(&self, out: &mut MetricsWriter<'_>) -> fmt::Result {
        let numbers = &self.telemetry.inner;
        if let Some(tasks) = &self.current.store.tasks {
            let by_state = TaskState::ALL.into_iter().zip(tasks);
            let labelled =
                by_state.map(|(state, count)| ([("state", labels::state_name(state))], *count as f64));
            out.gauges("baton_tasks", "Tasks in the store, by their state.", labelled)?;
        }
        if let Some(stored) = self.current.tasks_stored {
            out.gauge("baton_tasks_stored", None, "Tasks in the store.", stored as f64)?;
        }
        let help = "Tasks that this process has created.";
        out.counter("baton_tasks_created", help, numbers.tasks_created.load(Relaxed))?;
        let ends = TaskState::ALL.into_iter().zip(&numbers.tasks_ended);
        let ends = ends.filter(|(state, _)| state.is_terminal());
        let ends = ends.map(|(state, count)| ([("state", labels::state_name(state))], count.load(Relaxed)));
        out.counters("baton_tasks_ended", "Tasks that came to their end in this process.", ends)?;
        let Load { running, queued, .. } = self.current.load;
        out.gauge("baton_turns_running", None, "Turns that run.", running as f64)?;
        out.gauge("baton_turns_queued", None, "Tasks that wait for a place to run.", queued as f64)?;
        out.histogram("baton_turn", Some(Unit::Seconds), "How long turns took.", &numbers.turn_time.seconds())
    }

    fn webhooks(&self, out: &mut MetricsWriter<'_>) -> fmt::Result {
        let help = "Webhooks that wait for events or for their delivery.";
        out.gauge("baton_webhooks_open", None, help, self.current.webhooks_open as f64)?;
        let calls = labels::WebhookCall::ALL.into_iter().zip(&self.telemetry.inner.webhook_calls);
        let calls = calls.map(|(call, count)| ([("result", call.name())], count.load(Relaxed)));
        out.counters("baton_webhook_calls", "Calls to webhooks, by what became of them.", calls)
    }

    fn store(&self, out: &mut MetricsWriter<'_>) -> fmt::Result {
        let numbers = &self.telemetry.inner;
        let help = "Time an append took, waiting for its commit included.";
        out.histogram("baton_store_append", Some(Unit::Seconds), help, &numbers.append_time.seconds())?;
        let errors = labels::STORE_ERRORS.into_iter().zip(&numbers.store_errors);
        let errors = errors.map(|(kind, count)| ([("kind", kind)], count.load(Relaxed)));
        out.counters("baton_store_errors", "Calls of the store that failed.", errors)?;
        if let Some(batches) = &self.current.store.batches {
            out.counter("baton_store_commits", "Commits since the store was opened.", batches.count)?;
            let help = "Writes that shared a commit.";
            out.histogram("baton_store_batch_size", None, help, batches)?;
        }
        Ok(())
    }
}

/// The histograms that are not empty: most combinations never occur.
fn of_requests(times: &ByRequest) -> impl Iterator<Item = ([(&'static str, &'static str); 2], Values)> {
    let combinations =
        Binding::ALL.iter().copied().flat_map(|binding| RequestKind::all().map(move |kind| (binding, kind)));
    combinations.filter_map(|(binding, kind)| {
        let histogram = times.of(binding, kind);
        let labels = [("binding", binding.name()), ("operation", kind.name())];
        (!histogram.is_empty()).then(|| (labels, histogram.seconds()))
    })
}

/// The encoder, with a method for each kind of metric.
struct MetricsWriter<'a>(DescriptorEncoder<'a>);

impl MetricsWriter<'_> {
    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        metric.encode_counter::<NoLabelSet, u64, u64>(&value, None)
    }

    fn counters<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, u64)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in values {
            metric.encode_family(&labels)?.encode_counter::<NoLabelSet, u64, u64>(&value, None)?;
        }
        Ok(())
    }

    fn gauge(&mut self, name: &str, unit: Option<Unit>, help: &str, value: f64) -> fmt::Result {
        self.0.encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?.encode_gauge(&value)
    }

    fn gauges<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, f64)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in values {
            metric.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    fn times<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, Values)>,
    ) -> fmt::Result {
        let seconds = Some(&Unit::Seconds);
        let mut metric = self.0.encode_descriptor(name, help, seconds, MetricType::Histogram)?;
        for (labels, Values { sum, count, buckets }) in values {
            metric.encode_family(&labels)?.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
        }
        Ok(())
    }

    fn histogram(&mut self, name: &str, unit: Option<Unit>, help: &str, values: &Values) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, unit.as_ref(), MetricType::Histogram)?;
        metric.encode_histogram::<NoLabelSet>(values.sum, values.count, &values.buckets, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_format_names_counters_as_their_samples() {
        let openmetrics = "# HELP a_seconds How long.\n# TYPE a_seconds counter\n# UNIT a_seconds seconds\n\
                           a_seconds_total 1\n# HELP b What.\n# TYPE b info\nb_info{v=\"# EOF\"} 1\n\
                           # HELP c A gauge.\n# TYPE c gauge\nc 2\n# EOF\n";
        let expected = "# HELP a_seconds_total How long.\n# TYPE a_seconds_total counter\na_seconds_total 1\n\
                        # HELP b_info What.\n# TYPE b_info gauge\nb_info{v=\"# EOF\"} 1\n\
                        # HELP c A gauge.\n# TYPE c gauge\nc 2\n";
        assert_eq!(plain(openmetrics), expected);
    }

    #[test]
    fn openmetrics_is_for_those_who_ask() {
        let prometheus =
            "application/openmetrics-text;version=1.0.0;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        for (accept, format) in [
            (Some(prometheus), Format::OpenMetrics),
            (Some("*/*"), Format::Plain),
            (Some("text/plain"), Format::Plain),
            (None, Format::Plain),
        ] {
            assert_eq!(Format::accepted(accept), format, "{accept:?}");
        }
    }
}
