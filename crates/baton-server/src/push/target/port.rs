//! Which ports webhooks may call.

/// Ports above 1023 at which databases, queues, caches and control planes listen, which answer whoever connects. The server
/// must not be the one who knocks.
const SERVICES: &[u16] = &[
    1433, 1521, 1883, 2049, 2181, 2375, 2376, 2379, 2380, 3306, 3389, 4369, 5432, 5433, 5672, 5900, 5984,
    5985, 5986, 6000, 6379, 6443, 6660, 6661, 6662, 6663, 6664, 6665, 6666, 6667, 6668, 6669, 6697, 8086,
    9042, 9092, 9160, 9200, 9300, 10250, 10255, 11211, 15672, 27017, 27018, 27019,
];

/// The default ports of https and http, and those that anybody may open on a machine, except those of [`SERVICES`].
pub(crate) fn is_allowed(port: u16) -> bool {
    match port {
        80 | 443 => true,
        0..=1023 => false,
        port => SERVICES.binary_search(&port).is_err(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_other_services_are_refused() {
        assert!(SERVICES.is_sorted(), "searched by halves");
        for port in [80, 443, 1024, 3000, 8000, 8080, 8443, 9443, 65535] {
            assert!(is_allowed(port), "{port}");
        }
        for port in [0, 1, 22, 25, 53, 110, 465, 587, 993, 1023, 2375, 3306, 5432, 6379, 9200, 11211, 27017] {
            assert!(!is_allowed(port), "{port}");
        }
    }
}
