//! The defects, one table per suite of cases. A row says what is wrong, by which faults, and who must notice.
//!
//! To add one: take a fault of [`fault`](crate::mutant::fault), name the case, run `cargo nextest run -p baton-lab mutants`. A
//! case that no fault can make fail is a case that checks nothing.

mod two_agents;
mod v0_1_agents;
mod v0_1_streams;
mod v0_1_tasks;
mod v0_3_agents;
mod v0_3_grpc;
mod v0_3_jsonrpc;
mod v0_3_push;
mod v0_3_rest;
mod v0_3_send;
mod v0_3_streams;
mod v1_cancel;
mod v1_cards;
mod v1_contexts;
mod v1_data;
mod v1_equivalence;
mod v1_errors;
mod v1_get;
mod v1_grpc;
mod v1_hostile;
mod v1_jsonrpc;
mod v1_lifecycle;
mod v1_lists;
mod v1_push;
mod v1_rest;
mod v1_security;
mod v1_send;
mod v1_streams;
mod v1_subscribe;

use baton_lab::generation::{Binding, Generation};

use crate::mutant::fault::{ALWAYS, Defect, Only};
use crate::mutant::profile::Profile;

/// What a row need not say.
const USUAL: Defect = Defect {
    name: "",
    wrong: "",
    profile: Profile::Open,
    faults: &[],
    second: &[],
    caught_by: &[],
    related: &[],
    alone: false,
};

const V1: Only = ALWAYS.within(Generation::V1);
const RPC: Only = V1.over(Binding::Jsonrpc);
const REST: Only = V1.over(Binding::Rest);

const V0_3: Only = ALWAYS.within(Generation::V0_3);
const RPC_V0_3: Only = V0_3.over(Binding::Jsonrpc);
const REST_V0_3: Only = V0_3.over(Binding::Rest);

const V0_1: Only = ALWAYS.within(Generation::V0_1);

/// The phrase most cases send.
const COMPLETE: &str = "tck-complete-task";

/// Every table, with its name.
pub(crate) static TABLES: &[(&str, &[Defect])] = &[
    ("two_agents", two_agents::ALL),
    ("v0_1_agents", v0_1_agents::ALL),
    ("v0_1_streams", v0_1_streams::ALL),
    ("v0_1_tasks", v0_1_tasks::ALL),
    ("v0_3_agents", v0_3_agents::ALL),
    ("v0_3_grpc", v0_3_grpc::ALL),
    ("v0_3_jsonrpc", v0_3_jsonrpc::ALL),
    ("v0_3_push", v0_3_push::ALL),
    ("v0_3_rest", v0_3_rest::ALL),
    ("v0_3_send", v0_3_send::ALL),
    ("v0_3_streams", v0_3_streams::ALL),
    ("v1_cancel", v1_cancel::ALL),
    ("v1_cards", v1_cards::ALL),
    ("v1_contexts", v1_contexts::ALL),
    ("v1_data", v1_data::ALL),
    ("v1_equivalence", v1_equivalence::ALL),
    ("v1_errors", v1_errors::ALL),
    ("v1_get", v1_get::ALL),
    ("v1_grpc", v1_grpc::ALL),
    ("v1_hostile", v1_hostile::ALL),
    ("v1_jsonrpc", v1_jsonrpc::ALL),
    ("v1_lifecycle", v1_lifecycle::ALL),
    ("v1_lists", v1_lists::ALL),
    ("v1_push", v1_push::ALL),
    ("v1_rest", v1_rest::ALL),
    ("v1_security", v1_security::ALL),
    ("v1_send", v1_send::ALL),
    ("v1_streams", v1_streams::ALL),
    ("v1_subscribe", v1_subscribe::ALL),
];

pub(crate) fn all() -> impl Iterator<Item = &'static Defect> {
    TABLES.iter().flat_map(|(_, table)| table.iter())
}

pub(crate) fn table(name: &str) -> &'static [Defect] {
    TABLES.iter().find(|(known, _)| *known == name).expect("the table is listed").1
}
