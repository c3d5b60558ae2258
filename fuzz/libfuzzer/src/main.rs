#![no_main]
fn main() {}
