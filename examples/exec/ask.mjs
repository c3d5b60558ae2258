#!/usr/bin/env node
// Asks before it answers: baton serve --exec examples/exec/ask.mjs --exec-input json --exec-output jsonl
import { createInterface } from "node:readline";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const hear = async () => JSON.parse((await lines.next()).value).message.parts.map((part) => part.text).join(" ");
const say = (what) => console.log(JSON.stringify(what));

const order = await hear();
say({ progress: `Looking at "${order}"` });
say({ inputRequired: "For how many people?" });
const people = await hear();
say({ artifact: { name: "order", data: { order, people } } });
say({ complete: `${order} for ${people}, coming up.` });
