//! `list`: newest status first, then id descending; filters, positions, totals.

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_protocol::domain::{
    Artifact, ArtifactId, ArtifactUpdate, Event, EventBody, ListFilter, Message, Part, Role, Scope,
    StatusUpdate, Task, TaskState,
};
use baton_protocol::lifecycle::Snapshot;
use tokio::task::JoinSet;

use super::fixture::*;
use crate::store::{
    Append, Detail, ListPosition, ListQuery, Listed, Loaded, Store, StoredEvent, StoredSnapshot, said,
};

fn narrowed(filter: ListFilter) -> ListQuery {
    ListQuery { filter, ..query() }
}

fn by_states(states: &[TaskState]) -> ListQuery {
    narrowed(ListFilter { states: states.to_vec(), ..ListFilter::default() })
}

fn position(loaded: &Loaded) -> ListPosition {
    ListPosition { status_at: loaded.head.current.status_at, id: loaded.id.clone() }
}

/// Follows a listing to its end, page by page.
async fn all_pages(store: &Arc<dyn Store>, first: ListQuery) -> Vec<Loaded> {
    let mut query = first;
    let mut seen: Vec<Loaded> = Vec::new();
    loop {
        let page = tasks(store, &scope(), &query).await;
        let Some(last) = page.last() else { return seen };
        assert!(page.len() <= query.limit as usize);
        query.after = Some(position(last));
        seen.extend(page);
        assert!(seen.len() <= 5_000, "the listing does not end");
    }
}

pub(super) async fn newest_status_comes_first(store: &Arc<dyn Store>) {
    for (name, millis) in [("a", 30), ("b", 10), ("c", 40), ("d", 20), ("e", -5)] {
        written(store, birth(name).at(millis)).await;
    }
    assert_eq!(listed(store, &query()).await, ["c", "a", "d", "b", "e"]);
}

/// By bytes and not by a collation, so that a cursor means the same on every store.
pub(super) async fn ties_are_broken_by_the_bytes_of_the_id(store: &Arc<dyn Store>) {
    let mut names = [
        "a",
        "B",
        "b",
        "A",
        "a-",
        "a_b",
        "aB",
        "ab",
        "é",
        "z",
        "Z",
        "10",
        "9",
        "1",
        "_",
        "~",
        "\u{10000}",
        "\u{ffff}",
    ];
    for (name, state) in names.iter().zip(TaskState::ALL.into_iter().cycle()) {
        written(store, birth(name).state(state)).await;
    }
    names.sort_unstable_by(|a, b| b.as_bytes().cmp(a.as_bytes()));
    assert_eq!(listed(store, &query()).await, names);
    let paged = all_pages(store, ListQuery { limit: 1, ..query() }).await;
    assert_eq!(paged.iter().map(|loaded| loaded.id.as_str()).collect::<Vec<_>>(), names);
}

pub(super) async fn a_new_status_moves_the_task(store: &Arc<dyn Store>) {
    for (name, millis) in [("a", 1), ("b", 2), ("c", 3)] {
        written(store, birth(name).at(millis)).await;
    }
    written(store, next("a", 1).at(9)).await;
    assert_eq!(listed(store, &query()).await, ["a", "c", "b"]);
    assert_eq!(listed(store, &by_states(&[TaskState::Submitted])).await, ["c", "b"]);
    assert_eq!(listed(store, &by_states(&[TaskState::Working])).await, ["a"]);
    // The time may go back: stores do not check the engine's clock.
    written(store, next("a", 2).at(0)).await;
    assert_eq!(listed(store, &query()).await, ["c", "b", "a"]);
}

pub(super) async fn a_context_narrows(store: &Arc<dyn Store>) {
    for (name, context, millis) in [("a", "c1", 1), ("b", "c2", 2), ("c", "c1", 3), ("d", "c10", 4)] {
        written(store, birth(name).in_context(context).at(millis)).await;
    }
    let within = |text| narrowed(ListFilter { context_id: Some(context(text)), ..ListFilter::default() });
    assert_eq!(listed(store, &within("c1")).await, ["c", "a"]);
    assert_eq!(listed(store, &within("c2")).await, ["b"]);
    assert_eq!(listed(store, &within("c")).await, [] as [&str; 0]);
}

pub(super) async fn states_narrow(store: &Arc<dyn Store>) {
    for (n, state) in (0..).zip(TaskState::ALL) {
        written(store, birth(&format!("{state:?}")).state(state).at(n)).await;
    }
    for state in TaskState::ALL {
        assert_eq!(listed(store, &by_states(&[state])).await, [format!("{state:?}")]);
    }
    let some = [TaskState::Failed, TaskState::Submitted, TaskState::AuthRequired];
    assert_eq!(listed(store, &by_states(&some)).await, ["Failed", "AuthRequired", "Submitted"]);
    assert_eq!(listed(store, &by_states(&TaskState::ALL)).await.len(), 8);
    assert_eq!(listed(store, &by_states(&[])).await.len(), 8, "an empty filter includes all states");
}

pub(super) async fn a_state_named_twice_counts_once(store: &Arc<dyn Store>) {
    written(store, birth("a")).await;
    let twice = by_states(&[TaskState::Submitted, TaskState::Submitted]);
    assert_eq!(listed(store, &twice).await, ["a"]);
    assert_eq!(total(store, &twice.filter).await, 1);
}

pub(super) async fn updated_since_is_inclusive(store: &Arc<dyn Store>) {
    for (name, millis) in [("a", 1), ("b", 2), ("c", 3)] {
        written(store, birth(name).at(millis)).await;
    }
    let since = |millis| narrowed(ListFilter { updated_since: Some(at(millis)), ..ListFilter::default() });
    assert_eq!(listed(store, &since(0)).await, ["c", "b", "a"]);
    assert_eq!(listed(store, &since(2)).await, ["c", "b"]);
    assert_eq!(listed(store, &since(4)).await, [] as [&str; 0]);
}

pub(super) async fn nothing_is_newer_than_the_bound(store: &Arc<dyn Store>) {
    for (name, millis) in [("a", 1), ("b", 2), ("c", 3)] {
        written(store, birth(name).at(millis)).await;
    }
    for (bound, expected) in [(3, vec!["c", "b", "a"]), (2, vec!["b", "a"]), (0, vec![])] {
        let bounded = ListQuery { not_after: at(bound), ..query() };
        assert_eq!(listed(store, &bounded).await, expected);
        let counted = page(store, &scope(), &ListQuery { counted: true, ..bounded }).await;
        assert_eq!(counted.total, Some(3), "the bound does not apply to the total");
    }
    // A bound before `updated_since` gives an empty page; a bound before the position wins over it.
    let filter = ListFilter { updated_since: Some(at(3)), ..ListFilter::default() };
    let crossed = ListQuery { filter, not_after: at(1), ..query() };
    assert_eq!(listed(store, &crossed).await, [] as [&str; 0]);
    let after = Some(ListPosition { status_at: at(3), id: id("c") });
    assert_eq!(listed(store, &ListQuery { after, not_after: at(1), ..query() }).await, ["a"]);
}

pub(super) async fn filters_narrow_together(store: &Arc<dyn Store>) {
    for n in 0..40_i64 {
        let state = TaskState::ALL[n as usize % 8];
        let name = format!("t{n:02}");
        written(store, birth(&name).in_context(if n % 2 == 0 { "even" } else { "odd" }).state(state).at(n))
            .await;
    }
    let filter = ListFilter {
        context_id: Some(context("even")),
        states: vec![TaskState::Submitted, TaskState::Completed, TaskState::Working],
        updated_since: Some(at(8)),
    };
    let narrow = ListQuery { not_after: at(32), ..narrowed(filter) };
    assert_eq!(listed(store, &narrow).await, ["t32", "t28", "t24", "t20", "t16", "t12", "t08"]);
    let after = Some(ListPosition { status_at: at(24), id: id("t24") });
    assert_eq!(listed(store, &ListQuery { after, limit: 2, ..narrow }).await, ["t20", "t16"]);
}

pub(super) async fn a_position_need_not_exist(store: &Arc<dyn Store>) {
    for (name, millis) in [("a", 1), ("c", 5), ("e", 5), ("g", 9)] {
        written(store, birth(name).at(millis)).await;
    }
    for (millis, name, expected) in [
        (5, "d", vec!["c", "a"]),
        (5, "c", vec!["a"]),
        (5, "b", vec!["a"]),
        (5, "zzz", vec!["e", "c", "a"]),
        (7, "a", vec!["e", "c", "a"]),
        (1, "a", vec![]),
        (0, "zzz", vec![]),
    ] {
        let after = Some(ListPosition { status_at: at(millis), id: id(name) });
        assert_eq!(listed(store, &ListQuery { after, ..query() }).await, expected, "{millis} {name}");
    }
}

pub(super) async fn a_page_holds_at_most_the_limit(store: &Arc<dyn Store>) {
    for n in 0..9 {
        written(store, birth(&format!("t{n}")).at(n)).await;
    }
    assert_eq!(listed(store, &ListQuery { limit: 1, ..query() }).await, ["t8"]);
    assert_eq!(listed(store, &ListQuery { limit: 4, ..query() }).await.len(), 4);
    assert_eq!(listed(store, &ListQuery { limit: 100, ..query() }).await.len(), 9);
}

/// A thousand tasks in 37 distinct milliseconds.
async fn a_thousand(store: &Arc<dyn Store>) {
    for n in 0..1_000_i64 {
        let name = format!("t{}", (n * 7_919) % 1_000);
        let append = birth(&name).in_context(if n % 3 == 0 { "third" } else { "rest" });
        written(store, append.state(TaskState::ALL[n as usize % 8]).at(n * n % 37)).await;
    }
}

fn check_each_once(pages: &[Loaded], expected: usize) {
    let ids: BTreeSet<_> = pages.iter().map(|loaded| loaded.id.as_str()).collect();
    assert_eq!((pages.len(), ids.len()), (expected, expected));
    let places: Vec<_> =
        pages.iter().map(|loaded| (loaded.head.current.status_at, loaded.id.as_str())).collect();
    assert!(places.windows(2).all(|pair| pair[0] > pair[1]), "strictly falling");
}

pub(super) async fn paging_shows_each_of_1000_tasks_once(store: &Arc<dyn Store>) {
    a_thousand(store).await;
    for limit in [7, 50, 1_000] {
        check_each_once(&all_pages(store, ListQuery { limit, ..query() }).await, 1_000);
    }
    let two = by_states(&[TaskState::Working, TaskState::Completed]);
    check_each_once(&all_pages(store, ListQuery { limit: 13, ..two }).await, 250);
}

pub(super) async fn paging_through_a_context_shows_each_once(store: &Arc<dyn Store>) {
    a_thousand(store).await;
    let within = narrowed(ListFilter { context_id: Some(context("third")), ..ListFilter::default() });
    check_each_once(&all_pages(store, ListQuery { limit: 10, ..within }).await, 334);
}

pub(super) async fn new_tasks_do_not_disturb_a_listing(store: &Arc<dyn Store>) {
    for n in 0..20 {
        written(store, birth(&format!("t{n:02}")).at(n)).await;
    }
    let first = ListQuery { limit: 10, not_after: at(19), ..query() };
    let before = tasks(store, &scope(), &first).await;
    for n in 20..25 {
        written(store, birth(&format!("t{n:02}")).at(n)).await;
    }
    let second = ListQuery { after: before.last().map(position), ..first.clone() };
    let rest = listed(store, &second).await;
    assert_eq!(rest, (0..10).rev().map(|n| format!("t{n:02}")).collect::<Vec<_>>());
    assert_eq!(tasks(store, &scope(), &first).await, before);
}

pub(super) async fn rows_are_whole_tasks(store: &Arc<dyn Store>) {
    written(store, birth("a").events(3).at(1)).await;
    written(store, birth("b").events(2).at(2).snapshot()).await;
    written(store, next("b", 2).events(2).at(3)).await;
    written(store, birth("c").ended(4)).await;
    store.fold_ended(at(100), at(100), 10).await.unwrap();
    let page = tasks(store, &scope(), &query()).await;
    let loaded = [load(store, "c").await, load(store, "b").await, load(store, "a").await];
    assert_eq!(page, loaded);
}

pub(super) async fn the_total_is_what_a_listing_shows(store: &Arc<dyn Store>) {
    a_thousand(store).await;
    let contexts = [None, Some(context("third")), Some(context("none"))];
    let states = [vec![], vec![TaskState::Failed], vec![TaskState::Canceled, TaskState::Working]];
    for context_id in contexts {
        for states in &states {
            for updated_since in [None, Some(at(20))] {
                let filter =
                    ListFilter { context_id: context_id.clone(), states: states.clone(), updated_since };
                let listed = all_pages(store, narrowed(filter.clone())).await;
                assert_eq!(total(store, &filter).await, listed.len() as u64, "{filter:?}");
            }
        }
    }
    assert_eq!(page(store, &scope(), &query()).await.total, None, "the total was not asked for");
    let nobody = Scope::new("agent", "tenant", "nobody");
    assert_eq!(page(store, &nobody, &ListQuery { counted: true, ..query() }).await.total, Some(0));
}

/// For a context with more than a thousand tasks, stores may keep counters; the total must stay right as tasks change.
pub(super) async fn the_total_of_a_large_context_stays_right(store: &Arc<dyn Store>) {
    let filter = |states: &[TaskState]| ListFilter {
        context_id: Some(context("c")),
        states: states.to_vec(),
        ..ListFilter::default()
    };
    let mut births = JoinSet::new();
    for n in 0..1_010 {
        let store = Arc::clone(store);
        births.spawn(async move { written(&store, birth(&format!("t{n}")).at(n)).await });
    }
    births.join_all().await;
    // Twice, since the first query may be what creates the counters.
    for _ in 0..2 {
        assert_eq!(total(store, &filter(&[])).await, 1_010);
        assert_eq!(total(store, &filter(&[TaskState::Submitted])).await, 1_010);
    }
    written(store, birth("elsewhere").in_context("other").at(3)).await;
    written(store, birth("one more").at(4)).await;
    written(store, next("t1", 1).ended(5)).await;
    written(store, next("t2", 1).ended(6)).await;
    written(store, next("t3", 1).at(7)).await;
    assert_eq!(total(store, &filter(&[])).await, 1_011);
    assert_eq!(total(store, &filter(&[TaskState::Submitted])).await, 1_008);
    assert_eq!(total(store, &filter(&[TaskState::Completed])).await, 2);
    assert_eq!(store.purge_ended(at(6), 10).await.unwrap(), 1);
    assert_eq!(total(store, &filter(&[TaskState::Completed])).await, 1);
    assert_eq!(total(store, &filter(&[TaskState::Completed, TaskState::Working])).await, 2);
    assert_eq!(total(store, &filter(&[])).await, 1_010);
    let since = ListFilter { updated_since: Some(at(1_000)), ..filter(&[]) };
    assert_eq!(total(store, &since).await, 10);
}

pub(super) async fn a_page_tells_whether_others_follow(store: &Arc<dyn Store>) {
    for n in 0..3 {
        written(store, birth(&format!("t{n}")).at(n)).await;
    }
    for detail in [Detail::Status, Detail::Whole] {
        for (limit, more) in [(1, true), (2, true), (3, false), (4, false)] {
            let page = page(store, &scope(), &ListQuery { limit, detail, ..query() }).await;
            assert_eq!((page.tasks.len(), page.more), (limit.min(3) as usize, more), "{limit} {detail:?}");
        }
    }
}

/// The page ends before the task that would exceed the limit, but has at least one task.
pub(super) async fn a_page_is_bounded_in_bytes(store: &Arc<dyn Store>) {
    let large = |name: &str, n: i64, bytes: usize| {
        birth(name).at(n).with(|append| append.events = vec![large_event(1, bytes)])
    };
    let snapped = |append: Append, bytes: usize| {
        append.with(|append| append.snapshot = Some(snapshot(1, &"s".repeat(bytes))))
    };
    written(store, birth("t0").at(0)).await;
    written(store, large("t1", 1, 60_000)).await;
    written(store, snapped(birth("t2").at(2), 60_000)).await;
    written(store, snapped(birth("t3").at(3), 60_000)).await;
    written(store, birth("t4").at(4)).await;
    let within = |most_bytes| ListQuery { most_bytes, ..query() };
    for (bytes, expected) in [
        (0, &["t4"] as &[&str]),
        (10_000, &["t4"]),
        (70_000, &["t4", "t3"]),
        (130_000, &["t4", "t3", "t2"]),
        (200_000, &["t4", "t3", "t2", "t1", "t0"]),
    ] {
        assert_eq!(listed(store, &within(bytes)).await, expected, "{bytes}");
        assert_eq!(page(store, &scope(), &within(bytes)).await.more, expected.len() < 5, "{bytes}");
    }
    // A listing can continue after each of them.
    check_each_once(&all_pages(store, within(1)).await, 5);
    // Of brief tasks only the event with the status message is read and counted.
    let brief = |most_bytes| ListQuery { detail: Detail::Status, ..within(most_bytes) };
    assert_eq!(listed(store, &brief(50_000)).await, ["t4", "t3", "t2"], "t1 has a large status event");
    assert_eq!(listed(store, &brief(70_000)).await, ["t4", "t3", "t2", "t1", "t0"]);
}

/// A list without history shows the status message: also after a later artifact and after the log was folded, but no longer
/// after the next status or user message.
pub(super) async fn brief_tasks_say_what_their_status_says(store: &Arc<dyn Store>) {
    let message = |text: &str| Message::new(message_id(text), Role::Agent, vec![Part::text(text)]);
    let status = |state, text: Option<&str>| {
        EventBody::Status(StatusUpdate { state, message: text.map(message), metadata: None })
    };
    let artifact = || {
        let artifact = Artifact::new(ArtifactId::parse("a").unwrap(), vec![Part::text("made")]);
        let update = ArtifactUpdate {
            artifact,
            append: false,
            joins: false,
            last_chunk: false,
            ordinal: 0,
            metadata: None,
        };
        EventBody::Artifact(update)
    };
    let asked = || EventBody::said(Message::new(message_id("q"), Role::User, vec![Part::text("go")]));
    let attempt = || EventBody::AttemptStarted { attempt: 1, skill: None };
    use TaskState::*;
    let appends = [
        vec![asked()],
        vec![attempt(), status(Working, None)],
        vec![status(Working, Some("on it")), artifact()],
        vec![artifact()],
        vec![],
        vec![status(InputRequired, Some("which?"))],
        vec![asked()],
        vec![attempt(), status(Working, Some("aha")), artifact(), status(Completed, Some("done"))],
    ];
    let mut task = Snapshot::begin(id("t"), context("c"), at(0));
    let shown = || async {
        let page = page(store, &scope(), &ListQuery { detail: Detail::Status, ..query() }).await;
        match &page.tasks[..] {
            [Listed::Status(brief)] => said::task(brief).unwrap(),
            other => panic!("{other:?}"),
        }
    };
    let mut expected = None;
    for bodies in appends {
        let version = task.version;
        let mut events = Vec::new();
        for (number, body) in (version + 1..).zip(bodies) {
            let event = Event { number, at: at(number as i64), body };
            events.push(StoredEvent::encode(&id("t"), &context("c"), &event));
            task.apply(event).unwrap();
        }
        let append = if version == 0 { birth("t") } else { next("t", version) };
        let mut append = append.state(task.state()).with(|append| {
            append.events = events;
            append.head.status_at = task.task.status.timestamp;
        });
        if task.state().is_terminal() {
            append.snapshot = Some(StoredSnapshot::encode(&task));
        }
        written(store, append).await;
        let brief = Task { history: vec![], artifacts: vec![], transitions: vec![], ..task.task.clone() };
        assert_eq!(shown().await, brief, "{}", task.version);
        expected = Some(brief);
    }
    assert_eq!(store.fold_ended(at(100), at(100), 10).await.unwrap(), 1);
    assert_eq!(store.events(&scope(), &id("t"), 0, 100).await.unwrap(), []);
    assert_eq!(Some(shown().await), expected);
    assert_eq!(store.purge_ended(at(100), 10).await.unwrap(), 1);
    assert_eq!(listed(store, &ListQuery { detail: Detail::Status, ..query() }).await, [] as [&str; 0]);
}
