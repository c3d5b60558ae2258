// The checks of webhooks, for every version of the JavaScript SDK; `webhooks_1_3.mjs` and `webhooks_0_3.mjs` run them.
//
//     cd FOLDER_WITH_NODE_MODULES && \
//       SCRIPTED_AGENT=http://127.0.0.1:3001 AGENT_WITHOUT_WEBHOOKS=http://127.0.0.1:3002 \
//       node webhooks_1_3.mjs http://127.0.0.1:3000 jsonrpc
//
// `cargo xtask interop --webhooks` starts the agents. The scripted one does what the text of a message says, line by
// line (`baton serve --exec cat --exec-output jsonl`). Webhooks are registered with the SDK's client, and what comes is
// read into the SDK's types; the verification of signatures is ours, since the SDKs have none.
//
// A session is the SDK's client with one agent:
//
// | member | |
// |---|---|
// | `protocol` | the version: what is sent depends on it |
// | `send(text, hook)` | the SDK's task, once the agent rests |
// | `start(text)` | the task's id, without waiting |
// | `stream(text, hook, taskId)` | the task's id, and what a webhook has to show, by what the stream showed |
// | `cancel(taskId)` | |
// | `create`, `read`, `list`, `remove` | webhooks, as `{ id, url, token, credentials }` |
// | `event(body)` | `{ taskId, state, shown }`; fails if the SDK's types have no such member |
// | `isAsIn(shown, task)` | whether the last event shows the task as the reply does |
// | `isBadUrl(error)`, `isNotSupported(error)` | |

import { createHash, createHmac, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';

import { expect, expectError, main, note } from './harness.mjs';
import { Receiver } from './receiver.mjs';

// For every state at which a turn can end, what the scripted agent is told.
const scripts = Object.fromEntries(
  Object.entries(JSON.parse(readFileSync(new URL('../scripted_agent.json', import.meta.url), 'utf8'))).map(([state, lines]) => [
    state,
    lines.map((line) => JSON.stringify(line)).join('\n'),
  ]),
);

/** What came, up to this state. */
async function events({ receiver }, session, hook, last) {
  const calls = await receiver.until(hook, (calls) => session.event(calls.at(-1).body).state === last);
  return calls.map((call) => session.event(call.body));
}

async function p02_makes_a_webhook(site) {
  const { demo, receiver } = site;
  const taskId = await demo.start('tck-cancel');
  const hook = receiver.hook('a-token', 'a-secret');
  const made = await demo.create(taskId, 'hook-1', hook);
  expect(made.id === 'hook-1' && made.url === hook.url, `the reply shows ${JSON.stringify(made)}`);
  const read = await demo.read(taskId, 'hook-1');
  expect(isDeepStrictEqual(read, made), `made ${JSON.stringify(made)}, read ${JSON.stringify(read)}`);
  expect(read.token === hook.token, `the token is '${read.token}'`);
  expect(!read.credentials.includes(hook.credentials), 'the credentials are shown');
  await demo.cancel(taskId);
  const came = await events(site, demo, hook, 'canceled');
  expect(came.every((event) => event.taskId === taskId), 'an event names another task');
}

async function p02_lists_webhooks({ demo, receiver }) {
  const taskId = await demo.start('tck-cancel');
  const made = [];
  for (const id of ['hook-1', 'hook-2']) made.push(await demo.create(taskId, id, receiver.hook()));
  const listed = (await demo.list(taskId)).sort((one, other) => one.id.localeCompare(other.id));
  expect(isDeepStrictEqual(listed, made), `made ${JSON.stringify(made)}, listed ${JSON.stringify(listed)}`);
  await demo.cancel(taskId);
}

async function p02_removes_a_webhook(site) {
  const { demo, receiver } = site;
  const taskId = await demo.start('tck-cancel');
  const [removed, kept, other] = [receiver.hook(), receiver.hook(), receiver.hook()];
  await demo.create(taskId, 'removed', removed);
  await demo.create(taskId, 'kept', kept);
  for (const _ of ['once', 'twice']) await demo.remove(taskId, 'removed');
  await expectError(demo.read(taskId, 'removed'), () => true, 'the webhook is still there');
  await demo.cancel(taskId);
  await events(site, demo, kept, 'canceled');
  // Another round gives a call that should not be made the time to arrive.
  await demo.send('hello', other);
  await events(site, demo, other, 'completed');
  const states = receiver.calls(removed).map((call) => demo.event(call.body).state);
  expect(!states.includes('canceled'), 'a webhook that was removed is called');
}

async function s14_webhook_bodies_have_no_unknown_member(site) {
  const { scripted, receiver } = site;
  for (const [state, script] of Object.entries(scripts)) {
    const hook = receiver.hook();
    const task = await scripted.send(script, hook);
    const came = await events(site, scripted, hook, state);
    expect(came.every((event) => event.taskId === task.id), 'an event names another task');
    const { shown } = came.at(-1);
    expect(scripted.isAsIn(shown, task), `${state}: ${JSON.stringify(shown)} is not ${JSON.stringify(task)}`);
  }
}

async function s14_webhooks_show_what_a_stream_shows(site) {
  const { demo, scripted, receiver } = site;
  for (const [session, text] of [[scripted, scripts.completed], [demo, 'tck-stream-chunked']]) {
    const hook = receiver.hook();
    const { shown } = await session.stream(text, hook);
    expectSame(await events(site, session, hook, 'completed'), shown);
  }
  // The webhook of the first message tells of later turns, too.
  const hook = receiver.hook();
  const asked = await demo.stream('tck-input-required', hook);
  await events(site, demo, hook, 'input-required');
  const answered = await demo.stream('an answer', undefined, asked.taskId);
  // A stream begins with the task as it is; the webhook knows it already.
  const more = demo.protocol === '1.0' ? answered.shown.slice(1) : answered.shown;
  expectSame(await events(site, demo, hook, 'completed'), [...asked.shown, ...more]);
}

function expectSame(came, streamed) {
  expect(came.length === streamed.length, `${came.length} calls for ${streamed.length} events`);
  came.forEach(({ shown }, place) => {
    const both = `${JSON.stringify(shown)}, the stream ${JSON.stringify(streamed[place])}`;
    expect(isDeepStrictEqual(shown, streamed[place]), `call ${place} shows ${both}`);
  });
}

async function s14_webhooks_are_signed(site) {
  const { demo, receiver } = site;
  const secret = `whsec_${randomBytes(32).toString('base64')}`;
  for (const [token, credentials] of [['a-token', 'a-secret'], [secret, ''], ['', 'a-secret']]) {
    const hook = receiver.hook(token, credentials);
    await demo.send('hello', hook);
    await events(site, demo, hook, 'completed');
    const calls = receiver.calls(hook);
    for (const call of calls) checkHeaders(demo.protocol, hook, call);
    const ids = new Set(calls.map((call) => header(call, 'webhook-id')));
    expect(ids.size === calls.length, `${calls.length} events have ${ids.size} ids`);
  }
}

function header(call, name) {
  const values = call.headers[name] ?? [];
  expect(values.length <= 1, `${name} comes ${values.length} times`);
  return values[0];
}

function checkHeaders(protocol, { token, credentials }, call) {
  const expectHeader = (name, wanted) => {
    const value = header(call, name);
    expect(value === wanted, `${name} is ${value}, not ${wanted}`);
  };
  expectHeader('content-type', protocol === '1.0' ? 'application/a2a+json' : 'application/json');
  expectHeader('a2a-version', protocol);
  expectHeader('x-a2a-notification-token', token || undefined);
  expectHeader('a2a-notification-token', token || undefined);
  expectHeader('authorization', credentials ? `Bearer ${credentials}` : undefined);
  const [id, at] = [header(call, 'webhook-id'), header(call, 'webhook-timestamp')];
  expect(id, 'the event has no id');
  expect(Math.abs(Date.now() / 1000 - Number(at)) < 300, `the timestamp is ${at}`);
  expectHeader('webhook-signature', token ? signature(token, `${id}.${at}.${call.body}`) : undefined);
}

/** As Standard Webhooks has it; a token that is no such secret is hashed to one. */
function signature(token, signed) {
  const isSecret = token.startsWith('whsec_');
  const key = isSecret ? Buffer.from(token.slice(6), 'base64') : createHash('sha256').update(token).digest();
  return `v1,${createHmac('sha256', key).update(signed).digest('base64')}`;
}

/** It takes about one millisecond; a busy machine may take longer. */
const finalEventMs = 100;

/** A client that reads right after the reply finds it: half of the time within `finalEventMs`. */
async function s14_the_final_event_comes_with_the_reply(site) {
  const { demo, receiver } = site;
  const waits = [];
  for (let round = 0; round < 20; round += 1) {
    const hook = receiver.hook();
    await demo.send('hello', hook);
    const replied = performance.now();
    await events(site, demo, hook, 'completed');
    waits.push(receiver.calls(hook).at(-1).at - replied);
  }
  waits.sort((one, other) => one - other);
  const [median, most] = [waits[10], waits.at(-1)].map((wait) => wait.toFixed(1));
  note(`the final event came ${median} ms after the reply (median), ${most} ms at most`);
  expect(waits[10] <= finalEventMs, `the final event comes ${median} ms after the reply (median of 20)`);
}

async function s14_refuses_webhooks_of_local_networks({ demo }) {
  const hosts = ['10.0.0.1', '192.168.0.1', '169.254.169.254', '[fd00::1]', 'metadata.google.internal'];
  const urls = ['http', 'https'].flatMap((scheme) => hosts.map((host) => `${scheme}://${host}/`));
  const taskId = await demo.start('tck-cancel');
  for (const url of [...urls, 'ftp://127.0.0.1/']) {
    const hook = { url, token: '', credentials: '' };
    await expectError(demo.send('hello', hook), demo.isBadUrl, `${url} came with a message`);
    await expectError(demo.create(taskId, 'hook-1', hook), demo.isBadUrl, `${url} was taken`);
  }
  await demo.cancel(taskId);
}

async function p02_maps_push_not_supported_error({ without, receiver }) {
  const hook = receiver.hook();
  await expectError(without.send('hello', hook), without.isNotSupported, 'a webhook came with a message');
  const taskId = await without.start('tck-cancel');
  await expectError(without.create(taskId, 'hook-1', hook), without.isNotSupported, 'a webhook was taken');
  await without.cancel(taskId);
}

/** The task after each change of its status and each whole artifact: what webhooks of 0.3 are called for. */
export function tasksAfter(first, updates) {
  const task = { ...first, artifacts: [...(first.artifacts ?? [])] };
  const [found, open] = [[], new Set()];
  for (const { status, artifact, append, lastChunk } of updates) {
    if (artifact === undefined) {
      task.status = status;
    } else {
      const { artifactId } = artifact;
      const place = task.artifacts.findIndex((artifact) => artifact.artifactId === artifactId);
      // Over HTTP+JSON the SDKs drop `append`: what follows a piece that was not the last is added.
      const before = place >= 0 && (append || open.has(artifactId)) ? task.artifacts[place].parts : [];
      const whole = { ...artifact, parts: [...before, ...artifact.parts] };
      task.artifacts.splice(place < 0 ? task.artifacts.length : place, 1, whole);
      open.add(artifactId);
      if (!lastChunk) continue;
      open.delete(artifactId);
    }
    found.push({ ...task, artifacts: [...task.artifacts] });
  }
  return found;
}

/** `connect` makes a session for a base URL and a binding. */
export async function run(connect) {
  const site = async (baseUrl, binding) => ({
    demo: await connect(baseUrl, binding),
    scripted: await connect(process.env.SCRIPTED_AGENT, binding),
    without: await connect(process.env.AGENT_WITHOUT_WEBHOOKS, binding),
    receiver: await Receiver.start(),
  });
  await main(site, [
    p02_makes_a_webhook,
    p02_lists_webhooks,
    p02_removes_a_webhook,
    s14_webhook_bodies_have_no_unknown_member,
    s14_webhooks_show_what_a_stream_shows,
    s14_webhooks_are_signed,
    s14_the_final_event_comes_with_the_reply,
    s14_refuses_webhooks_of_local_networks,
    p02_maps_push_not_supported_error,
  ]);
}
