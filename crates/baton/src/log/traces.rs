//! Sends spans to a collector by OTLP over HTTP in JSON.
//!
//! A separate thread sends them in batches. If the receiver is slow or unreachable, spans are dropped and the log says
//! so once a minute; no request ever waits for them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{Protocol, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider, SpanData, SpanExporter};
use tracing::{Level, Metadata};
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::filter::{FilterFn, Filtered};
use tracing_subscriber::{Layer as _, Registry};

use crate::config::{self, HttpUrl, Problem};
use crate::exit::Failure;

/// How long sending the last spans may take at the end.
const LAST_SPANS: Duration = Duration::from_secs(5);

/// Shortest time between two log lines about lost spans.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

type Wanted = Box<dyn Fn(&Metadata<'_>) -> bool + Send + Sync>;
pub(super) type Spans = Filtered<OpenTelemetryLayer<Registry, SdkTracer>, FilterFn<Wanted>, Registry>;

#[derive(Debug)]
pub(super) struct Traces {
    sending: Option<(SdkTracerProvider, Endpoint)>,
}

/// `service` is the service name unless `OTEL_SERVICE_NAME` is set; `detailed` includes the store's spans.
pub(super) fn open(
    config: &config::Traces,
    service: &str,
    detailed: bool,
) -> Result<(Traces, Option<Spans>), Failure> {
    let env = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let said = config.otlp.as_ref().map(HttpUrl::reveal);
    let endpoint = Endpoint::choose(said, env).map_err(|(name, reason)| match name {
        CONFIGURED => Problem::new(config.otlp.source().clone(), name, reason).to_string(),
        variable => format!("{variable}: {reason}"),
    });
    let Some(endpoint) = endpoint.map_err(Failure::usage)? else {
        return Ok((Traces { sending: None }, None));
    };
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpJson)
        .with_endpoint(&endpoint.url)
        .build()
        .map_err(|error| Failure::failed(format!("traces cannot be sent: {error}")))?;
    let name = env("OTEL_SERVICE_NAME").unwrap_or_else(|| service.to_owned());
    let resource = Resource::builder()
        .with_service_name(name)
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    let mut provider = SdkTracerProvider::builder()
        .with_batch_exporter(LossReporter::over(exporter))
        .with_resource(resource);
    // If unset, `OTEL_TRACES_SAMPLER` decides. A trace that began elsewhere keeps the decision made there.
    if config.sample.is_set() {
        let here = Sampler::TraceIdRatioBased(*config.sample);
        provider = provider.with_sampler(Sampler::ParentBased(Box::new(here)));
    }
    let provider = provider.build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("baton"))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_tracked_inactivity(false)
        // A request's span may get its parent after it was entered: a follow-up belongs to its task's trace.
        .with_context_activation(false);
    let wanted: Wanted = Box::new(move |metadata| is_wanted(metadata, detailed));
    let spans = layer.with_filter(FilterFn::new(wanted).with_max_level_hint(Level::DEBUG));
    Ok((Traces { sending: Some((provider, endpoint)) }, Some(spans)))
}

impl Traces {
    pub(super) fn announce(&self) {
        if let Some((_, endpoint)) = &self.sending {
            tracing::info!(otlp = %endpoint.url, "sending traces");
        }
    }

    pub(super) fn close(self) {
        if let Some((provider, _)) = self.sending
            && let Err(error) = provider.shutdown_with_timeout(LAST_SPANS)
        {
            tracing::warn!(%error, "the last spans could not be sent");
        }
    }
}

/// Our own spans, and events at the log's default level. Never those of other libraries: their spans may contain
/// request data, and the exporter's own spans would cause more spans.
fn is_wanted(metadata: &Metadata<'_>, detailed: bool) -> bool {
    let target = metadata.target();
    if !target.starts_with("baton") {
        return false;
    }
    if metadata.is_span() {
        return *metadata.level() <= Level::DEBUG && (detailed || !target.starts_with("baton_server::store"));
    }
    // The request's log line has the same content as its span.
    *metadata.level() <= if target == "baton_server::request" { Level::WARN } else { Level::INFO }
}

/// Where spans are sent.
#[derive(Debug, PartialEq, Eq)]
struct Endpoint {
    url: String,
}

/// The path of the receiver, below its base URL.
const PATH: &str = "/v1/traces";

/// The configuration key of the endpoint.
const CONFIGURED: &str = "traces.otlp";

impl Endpoint {
    /// The configuration overrides OpenTelemetry's own variables, which are read as OpenTelemetry defines them. An
    /// error names the key or variable.
    fn choose(
        configured: Option<&str>,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, (&'static str, &'static str)> {
        const EXACT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
        const BASE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
        let (said, base, path) = if let Some(base) = configured {
            (CONFIGURED, base.to_owned(), PATH)
        } else if env("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
            || env("OTEL_TRACES_EXPORTER").is_some_and(|value| value == "none")
        {
            return Ok(None);
        } else if let Some(url) = env(EXACT) {
            (EXACT, url, "")
        } else if let Some(base) = env(BASE) {
            (BASE, base, PATH)
        } else {
            return Ok(None);
        };
        check(base.trim()).map_err(|reason| (said, reason))?;
        let url = if path.is_empty() { base } else { format!("{}{path}", base.trim().trim_end_matches('/')) };
        Ok(Some(Endpoint { url }))
    }
}

/// The error never contains the URL, since it may contain a password.
fn check(url: &str) -> Result<(), &'static str> {
    let Some(rest) = url.strip_prefix("http://") else {
        return Err(match url.starts_with("https://") {
            true => {
                "this binary sends traces over plain HTTP only; give the http:// address of a collector near it, \
                 which passes them on"
            }
            false => "expected a URL such as http://127.0.0.1:4318",
        });
    };
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.is_empty() {
        return Err("the host is missing, as in http://127.0.0.1:4318");
    }
    if authority.contains('@') {
        return Err("credentials are not allowed in the URL; use OTEL_EXPORTER_OTLP_HEADERS");
    }
    if rest.contains(['?', '#']) || rest.contains(char::is_whitespace) {
        return Err("it may not hold a query, a fragment or a space");
    }
    Ok(())
}

/// Logs when spans are lost, and when sending works again.
#[derive(Debug)]
struct LossReporter {
    inner: opentelemetry_otlp::SpanExporter,
    lost: AtomicU64,
    reported: Mutex<Option<Instant>>,
}

impl LossReporter {
    fn over(inner: opentelemetry_otlp::SpanExporter) -> Self {
        LossReporter { inner, lost: AtomicU64::new(0), reported: Mutex::new(None) }
    }

    fn sent(&self) {
        let lost = self.lost.swap(0, Relaxed);
        if lost > 0 {
            *self.reported.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = None;
            tracing::info!(lost, "sending traces works again");
        }
    }

    fn failed(&self, spans: u64, error: &dyn std::fmt::Display) {
        let lost = self.lost.fetch_add(spans, Relaxed) + spans;
        let mut reported = self.reported.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if reported.is_none_or(|at| at.elapsed() >= REPORT_INTERVAL) {
            *reported = Some(Instant::now());
            tracing::warn!(%error, lost, "traces could not be sent; requests are not affected");
        }
    }
}

impl SpanExporter for LossReporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len() as u64;
        let result = self.inner.export(batch).await;
        match &result {
            Ok(()) => self.sent(),
            Err(error) => self.failed(spans, error),
        }
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_wins_then_the_environment_as_opentelemetry_reads_it() {
        const BASE: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://base:4318/");
        const EXACT: (&str, &str) = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://exact:4318/spans");
        type Row<'a> = (Option<&'a str>, &'a [(&'a str, &'a str)], Option<&'a str>);
        let rows: &[Row<'_>] = &[
            (None, &[], None),
            (Some("http://flag:4318"), &[], Some("http://flag:4318/v1/traces")),
            (Some("http://flag:4318/"), &[BASE, EXACT], Some("http://flag:4318/v1/traces")),
            (None, &[BASE], Some("http://base:4318/v1/traces")),
            (None, &[BASE, EXACT], Some("http://exact:4318/spans")),
            (None, &[BASE, ("OTEL_SDK_DISABLED", "true")], None),
            (None, &[BASE, ("OTEL_TRACES_EXPORTER", "none")], None),
            (None, &[BASE, ("OTEL_TRACES_EXPORTER", "otlp")], Some("http://base:4318/v1/traces")),
        ];
        for (flag, env, expected) in rows {
            let env = |name: &str| env.iter().find(|(known, _)| *known == name).map(|(_, v)| (*v).to_owned());
            let chosen = Endpoint::choose(*flag, env).unwrap();
            assert_eq!(chosen.as_ref().map(|endpoint| endpoint.url.as_str()), *expected, "{flag:?}");
        }
    }

    #[test]
    fn urls_that_cannot_work_are_refused_without_being_repeated() {
        for (url, reason) in [
            ("https://secret.example", "plain HTTP only"),
            ("secret.example:4318", "a URL such as"),
            ("grpc://secret.example", "a URL such as"),
            ("http://", "the host is missing"),
            ("http://user:secret@h:4318", "OTEL_EXPORTER_OTLP_HEADERS"),
            ("http://h?key=secret", "a query"),
        ] {
            let refused = Endpoint::choose(Some(url), |_| None).unwrap_err();
            let text = format!("{refused:?}");
            assert!(text.contains(reason) && text.contains(CONFIGURED) && !text.contains("secret"), "{text}");
        }
    }
}
