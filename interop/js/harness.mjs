// What the check scripts share: running checks against one agent and printing the verdicts.
//
//     cd FOLDER_WITH_NODE_MODULES && node client_1_3.mjs http://127.0.0.1:3000 jsonrpc
//
// Each script prints `ok <name>`, `FAIL <name>: <reason>` or `skip <name>: <why>` for each check, then
// `N passed, N failed`; the exit code is 1 when a check failed. `note …` tells a figure that nothing depends on.
// The agent has to obey the `tck-…` behaviours that Baton's demo agent obeys, and echo any other text. Names carry ids of
// docs/mission-ledger.tsv, from which docs/mission.md is generated; docs/interop.md has a column for each name.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

// A check that takes longer than this hangs; the slowest behaviour (`tck-long-running`) works for about 5 s.
const CHECK_SECONDS = 40;

/**
 * A module of a package in the folder the script runs in: several versions of one package are under test, and
 * `import` would look beside the script.
 */
export async function load(packageName, module = '.') {
  const folder = join(process.cwd(), 'node_modules', packageName);
  const { exports } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  return import(pathToFileURL(join(folder, exports[module].import ?? exports[module].default)));
}

class Skipped extends Error {}

export function expect(condition, otherwise) {
  if (!condition) throw new Error(otherwise);
}

export function skip(why) {
  throw new Skipped(why);
}

/** Prints something worth knowing that no verdict depends on. */
export function note(what) {
  console.log(`note ${what}`);
}

/** A check that this client does not support, under any binding. */
export function cannot(name, why) {
  return Object.defineProperty(async () => skip(why), 'name', { value: name });
}

export async function expectError(call, wanted, otherwise) {
  let error;
  try {
    await call;
  } catch (caught) {
    error = caught;
  }
  expect(error !== undefined, otherwise);
  expect(wanted(error), `the error is ${error?.constructor?.name}: ${error?.message}`);
}

export async function readAll(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}

/** `connect` opens the client for a base URL and a binding; its failure is the first check's failure. */
export async function main(connect, checks) {
  if (process.argv.length !== 4) {
    console.error(`usage: ${process.argv[1]} BASE_URL BINDING`);
    process.exit(2);
  }
  const tally = { ok: 0, FAIL: 0, skip: 0 };
  const report = (verdict, name, reason = '') => {
    tally[verdict] += 1;
    const words = reason.split(/\s+/).join(' ').trim();
    console.log(words ? `${verdict} ${name}: ${words}` : `${verdict} ${name}`);
  };

  let agent;
  try {
    agent = await within(connect(process.argv[2], process.argv[3]));
  } catch (error) {
    report('FAIL', checks[0].name, String(error));
    for (const check of checks.slice(1)) report('FAIL', check.name, 'no connection');
  }
  if (agent !== undefined) {
    for (const check of checks) {
      try {
        await within(check(agent));
        report('ok', check.name);
      } catch (error) {
        if (error instanceof Skipped) report('skip', check.name, error.message);
        else report('FAIL', check.name, String(error));
      }
    }
  }
  console.log(`${tally.ok} passed, ${tally.FAIL} failed`);
  // Streams that a failed check left open must not keep the process alive.
  process.exit(tally.FAIL === 0 ? 0 : 1);
}

async function within(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end after ${CHECK_SECONDS} s`)), CHECK_SECONDS * 1000);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
