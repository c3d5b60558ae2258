use std::task::Waker;

use super::*;

const MIB: usize = 1 << 20;
const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// One customer may have 10 MiB, and 4 MiB on one HTTP/2 connection.
fn room() -> (Arc<AnswerRoom>, Instant) {
    let mut options = Connections::default();
    (options.max_answers_bytes, options.max_answers_per_connection) = (20 * MIB, 4 * MIB);
    (AnswerRoom::new(&options), Instant::now())
}

/// An HTTP/1 reader, and the way to see what it does.
fn reader(room: &Arc<AnswerRoom>, epoch: Instant) -> (Asker, Arc<Pulse>) {
    let pulse = Arc::new(Pulse::new(epoch));
    let here = CustomerOfRequest::new(HERE, [None, None]);
    (Asker::new(&room.of_connection(), Reader::Connection(Arc::clone(&pulse)), here), pulse)
}

/// A stream of an HTTP/2 connection, likewise.
fn stream(of: &Arc<OfConnection>) -> (Asker, Arc<Watch>) {
    let watch = Arc::new(Watch::new());
    (Asker::new(of, Reader::Stream(Arc::clone(&watch)), CustomerOfRequest::new(HERE, [None, None])), watch)
}

#[tokio::test(start_paused = true)]
async fn the_reader_that_is_stuck_longest_makes_room() {
    let (room, epoch) = room();
    let readers: Vec<_> = (0..3).map(|_| reader(&room, epoch)).collect();
    let mut shares: Vec<_> = readers.iter().map(|(asker, _)| asker.try_enter(3 * MIB)).collect();
    assert!(shares.iter().all(Option::is_some));
    // The second is stuck first, the first later; the third reads all the time.
    readers[1].1.write_blocked();
    tokio::time::advance(Duration::from_secs(3)).await;
    readers[0].1.write_blocked();
    let (newcomer, _) = reader(&room, epoch);
    assert!(newcomer.try_enter(3 * MIB).is_none());
    assert!(newcomer.try_enter(MIB).is_some(), "what fits need not wait");
    let entering =
        tokio::spawn(async move { newcomer.enter(3 * MIB).await.map(|share| (share, Instant::now())) });
    let told = |at: usize| readers[at].1.order() == Order::Leave;
    tokio::time::sleep(Duration::from_millis(6900)).await;
    assert_eq!([told(0), told(1), told(2)], [false; 3], "not before its ten seconds");
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!([told(0), told(1), told(2)], [false, true, false]);
    // It is gone a moment later.
    shares[1] = None;
    let (share, _) = entering.await.unwrap().expect("there is room now");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!([told(0), told(2)], [false; 2], "nobody else needs room");
    drop((share, shares));
    assert_eq!(room.all.taken(), 0);
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_are_served_in_order_or_told_that_there_is_no_room() {
    let (room, epoch) = room();
    let all = reader(&room, epoch).0.try_enter(usize::MAX).expect("an answer of any size");
    let (one, two) = (reader(&room, epoch).0, reader(&room, epoch).0);
    let asker = one.clone();
    let first = tokio::spawn(async move { asker.enter(9 * MIB).await });
    tokio::task::yield_now().await;
    let second = tokio::spawn(async move { two.enter(MIB).await });
    tokio::task::yield_now().await;
    assert_eq!(one.enter(MIB).await.err(), Some(NoRoom), "after its time");
    assert_eq!([first.await.unwrap().err(), second.await.unwrap().err()], [Some(NoRoom); 2]);
    drop(all);
    assert!(one.try_enter(10 * MIB).is_some());
}

#[tokio::test(start_paused = true)]
async fn the_streams_of_one_connection_share_its_part() {
    let (room, _) = room();
    let connection = room.of_http2(None);
    let stream = || stream(&connection).0;
    let held = stream().try_enter(3 * MIB).expect("room");
    assert!(stream().try_enter(2 * MIB).is_none(), "its connection has as much as it may");
    assert!(stream().try_enter(MIB).is_some());
    let (other, _) = self::stream(&room.of_http2(None));
    assert!(other.try_enter(4 * MIB).is_some());
    drop(held);
    assert!(stream().try_enter(usize::MAX).is_some(), "a large answer takes what a connection may have");
}

#[tokio::test(start_paused = true)]
async fn the_stuck_streams_of_a_full_connection_make_room() {
    let (room, _) = room();
    let (connection, elsewhere) = (room.of_http2(None), room.of_http2(None));
    let streams = [stream(&elsewhere), stream(&connection), stream(&connection)];
    let mut shares: Vec<_> = streams.iter().map(|(asker, _)| asker.try_enter(2 * MIB)).collect();
    assert!(shares.iter().all(Option::is_some));
    // The stream of another connection is stuck longest, but it is not in the way.
    for (_, watch) in &streams {
        watch.offered();
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    let waiting = [stream(&connection).0, stream(&connection).0]
        .map(|asker| tokio::spawn(async move { asker.enter(2 * MIB).await }));
    let cut = || [0, 1, 2].map(|at: usize| streams[at].1.is_cut(Waker::noop()));
    tokio::time::sleep(Duration::from_millis(7900)).await;
    assert_eq!(cut(), [false; 3], "not before its ten seconds");
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(cut(), [false, true, false], "the first who waits needs no more");
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(cut(), [false, true, false], "and it has not gone yet");
    shares[1] = None;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(cut(), [false, true, true], "the second needs room as well");
    shares[2] = None;
    for waiting in waiting {
        waiting.await.unwrap().expect("there is room now");
    }
}

#[test]
fn bytes_keep_their_share_while_any_part_of_them_is_there() {
    let (room, epoch) = room();
    let share = reader(&room, epoch).0.try_enter(MIB).expect("room");
    let bytes = share.holding(Bytes::from_static(b"abc"));
    let part = bytes.slice(1..2);
    drop(bytes);
    assert_eq!((&part[..], room.all.taken()), (&b"b"[..], MIB));
    drop(part);
    assert_eq!(room.all.taken(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_takes_a_few_bytes_now_and_then_is_stuck_all_the_same() {
    let (room, epoch) = room();
    let (trickling, trickle) = reader(&room, epoch);
    let (slow, progress) = reader(&room, epoch);
    let _held = [&trickling, &slow].map(|asker| asker.try_enter(5 * MIB).expect("room"));
    let (newcomer, _) = reader(&room, epoch);
    let waiting = tokio::spawn(async move { newcomer.enter_in_turn(MIB).await });
    for _ in 0..4 {
        for (pulse, bytes) in [(&trickle, 100), (&progress, 30_000)] {
            pulse.count_taken(bytes);
            pulse.wrote();
            pulse.write_blocked();
        }
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    assert_eq!([trickle.order(), progress.order()], [Order::Leave, Order::None]);
    waiting.abort();
}

#[tokio::test(start_paused = true)]
async fn small_answers_wait_for_those_of_their_own_connection_only() {
    let (room, _) = room();
    let connection = room.of_http2(None);
    let streams: Vec<_> = (0..8).map(|_| stream(&connection)).collect();
    let mut shares: Vec<_> = streams.iter().map(|(asker, _)| asker.try_enter(SMALL)).collect();
    assert!(shares.iter().all(Option::is_some));
    let (ninth, _) = stream(&connection);
    assert!(ninth.try_enter(FREE).is_some(), "what costs nothing is not counted");
    assert!(ninth.try_enter(SMALL).is_none());
    assert!(ninth.try_enter(2 * SMALL).is_some(), "large ones have another room");
    assert!(stream(&room.of_http2(None)).0.try_enter(SMALL).is_some());
    assert!(reader(&room, Instant::now()).0.try_enter(SMALL).is_some(), "HTTP/1");
    for (_, watch) in &streams {
        watch.offered();
    }
    let waiting = tokio::spawn(async move { ninth.enter(SMALL).await });
    tokio::time::sleep(Duration::from_secs(11)).await;
    let cut = streams.iter().position(|(_, watch)| watch.is_cut(Waker::noop())).expect("one makes room");
    shares[cut] = None;
    waiting.await.unwrap().expect("there is room now");
    drop((shares, streams));
    assert_eq!(room.all.taken(), 0);
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_for_much_stands_in_line_once() {
    let (room, epoch) = room();
    let all = reader(&room, epoch).0.try_enter(usize::MAX).expect("room");
    let (mut crowd, greedy) = (Vec::new(), reader(&room, epoch).0);
    for _ in 0..5 {
        let asker = greedy.clone();
        crowd.push(tokio::spawn(async move { asker.enter_in_turn(10 * MIB).await }));
        tokio::task::yield_now().await;
    }
    let elsewhere = CustomerOfRequest::new(IpAddr::from([192, 0, 2, 1]), [None, None]);
    let other = Asker { customer: elsewhere, ..greedy };
    let other = tokio::spawn(async move { other.enter_in_turn(10 * MIB).await });
    tokio::task::yield_now().await;
    drop(all);
    drop(crowd.remove(0).await.unwrap());
    other.await.expect("next after the first of them");
    assert!(crowd.iter().all(|waiting| !waiting.is_finished()));
    for waiting in crowd {
        waiting.await.expect("room");
    }
}

#[test]
fn an_answer_that_turned_out_to_be_small_leaves_the_room_of_large_ones() {
    let asker = Asker::alone();
    let share = asker.try_enter(MIB).expect("room");
    let share = asker.fit(share, MIB + MIB / 5).expect("it is large enough");
    assert_eq!(asker.taken(), MIB);
    let bytes = asker.fit(share, SMALL).expect("room").holding(Bytes::from(vec![0; SMALL]));
    let small = &asker.connection.streams.as_ref().unwrap().small;
    assert_eq!((asker.taken(), small.taken()), (0, SMALL));
    drop(bytes);
    assert_eq!(small.taken(), 0);
}

#[test]
fn an_answer_that_turned_out_to_be_larger_needs_more_room() {
    let asker = Asker::alone();
    let uncounted = asker.try_enter(FREE).expect("it costs nothing");
    let share = asker.fit(uncounted, 2 * MIB).expect("room");
    assert_eq!(asker.taken(), 2 * MIB);
    let rest = asker.try_enter(14 * MIB).expect("the rest of the connection's room");
    assert_eq!(asker.fit(share, 4 * MIB).err(), Some(NoRoom));
    assert_eq!(asker.taken(), 14 * MIB);
    let joined = asker.try_enter(FREE).expect("room").joined(rest);
    let bytes = joined.holding(Bytes::from_static(b"abc"));
    assert_eq!(asker.taken(), 14 * MIB);
    drop(bytes);
    assert_eq!(asker.taken(), 0);
}

/// A reader of a customer that the application knows, at the same address as all others.
fn reader_of(name: &str, room: &Arc<AnswerRoom>, epoch: Instant) -> (Asker, Arc<Pulse>) {
    let (asker, pulse) = reader(room, epoch);
    asker.set_customer(Customer::Named(Arc::from(name)));
    (asker, pulse)
}

#[tokio::test(start_paused = true)]
async fn s12_a_customer_with_all_it_may_have_keeps_nobody_waiting() {
    let (room, epoch) = room();
    let readers: Vec<_> = (0..5).map(|_| reader_of("greedy", &room, epoch)).collect();
    let held: Vec<_> = readers.iter().map(|(asker, _)| asker.try_enter(2 * MIB).expect("room")).collect();
    assert!(readers[0].0.try_enter(SMALL + 1).is_none(), "it has half of the room");
    let waiting: Vec<_> = readers.iter().map(|(asker, _)| asker.clone()).collect();
    let waiting = waiting.into_iter().map(|asker| tokio::spawn(async move { asker.enter(2 * MIB).await }));
    let waiting: Vec<_> = waiting.collect();
    tokio::task::yield_now().await;
    // On one HTTP/2 connection with it, as behind a proxy, and on another.
    let connection = room.of_http2(None);
    let (unread, _) = stream(&connection);
    unread.set_customer(Customer::Named(Arc::from("greedy too")));
    let _unread = unread.try_enter(4 * MIB).expect("room");
    let (other, _) = stream(&connection);
    other.set_customer(Customer::Named(Arc::from("calm")));
    drop(other.try_enter(4 * MIB).expect("its own part of the connection"));
    drop(reader_of("calm", &room, epoch).0.try_enter(6 * MIB).expect("nobody is in its way"));
    drop(held);
    for waiting in waiting {
        waiting.await.unwrap().expect("when others of the same customer were read");
    }
}

/// One answer that is larger than the whole room leaves half of it to others, however slowly it is read.
#[tokio::test(start_paused = true)]
async fn s12_one_huge_answer_keeps_nobody_waiting() {
    let (room, epoch) = room();
    let (greedy, _) = reader_of("greedy", &room, epoch);
    let _huge = greedy.try_enter(100 * MIB).expect("one answer is always possible");
    assert!(greedy.try_enter(SMALL + 1).is_none());
    let _calm = reader_of("calm", &room, epoch).0.try_enter(8 * MIB).expect("the half that is left");
}

#[tokio::test(start_paused = true)]
async fn s12_who_holds_least_is_served_first() {
    let (room, epoch) = room();
    let shares = [("a", 8), ("b", 8), ("c", 3)]
        .map(|(name, mib)| reader_of(name, &room, epoch).0.try_enter(mib * MIB).expect("room"));
    let [_of_a, _of_b, of_c] = shares;
    let mut waiting = Vec::new();
    for (name, mib) in [("a", 2), ("d", 4)] {
        let (asker, _) = reader_of(name, &room, epoch);
        waiting.push(tokio::spawn(async move { asker.enter_in_turn(mib * MIB).await }));
        tokio::task::yield_now().await;
    }
    assert!(reader_of("e", &room, epoch).0.try_enter(MIB).is_none(), "others wait");
    drop(of_c);
    let served = waiting.pop().unwrap().await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(!waiting[0].is_finished(), "it came first and holds more");
    drop(served);
    waiting.pop().unwrap().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn s12_the_stuck_readers_of_who_holds_most_are_cut_off_first() {
    let (room, epoch) = room();
    let readers = [("calm", 2), ("greedy", 5), ("greedy", 5), ("other", 8)];
    let readers = readers.map(|(name, mib)| (reader_of(name, &room, epoch), mib));
    let _held = readers.each_ref().map(|((asker, _), mib)| asker.try_enter(mib * MIB).expect("room"));
    for ((_, pulse), _) in &readers[..3] {
        pulse.write_blocked();
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    tokio::time::advance(Duration::from_secs(10)).await;
    let (newcomer, _) = reader_of("newcomer", &room, epoch);
    let waiting = tokio::spawn(async move { newcomer.enter_in_turn(6 * MIB).await });
    tokio::task::yield_now().await;
    let told = readers.each_ref().map(|((_, pulse), _)| pulse.order() == Order::Leave);
    assert_eq!(told, [false, true, true, false], "not the one that is stuck longest");
    waiting.abort();
}
