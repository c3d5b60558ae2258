// The JavaScript `@a2a-js/sdk` 0.3.14 client. Bindings: `jsonrpc`, `rest`, `grpc`.

import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';

import { cannot, expect, expectError, load, main, readAll } from './harness.mjs';

const { ClientFactory, JsonRpcTransportFactory, RestTransportFactory, AgentCardResolver } = await load('@a2a-js/sdk', './client');
const { GrpcTransportFactory } = await load('@a2a-js/sdk', './client/grpc');

// The client has a class of its own for each error and binding; all of them carry the name.
const named = (name) => (error) => error.constructor.name.startsWith(name);

function message(text, { contextId, taskId, blocking = true } = {}) {
  return {
    message: {
      kind: 'message',
      messageId: randomUUID(),
      role: 'user',
      parts: [{ kind: 'text', text }],
      ...(contextId && { contextId }),
      ...(taskId && { taskId }),
    },
    configuration: { blocking },
  };
}

const textOf = (parts) => parts.map((part) => (part.kind === 'text' ? part.text : '')).join('');

class Agent {
  constructor(card, client, binding) {
    Object.assign(this, { card, client, binding });
  }

  async send(text, options) {
    const reply = await this.client.sendMessage(message(text, options));
    expect(reply.kind === 'task', `no task in the reply: ${JSON.stringify(reply)}`);
    return reply;
  }

  /** Sends without waiting for the end. */
  async start(text) {
    const task = await this.send(text, { blocking: false });
    expect(['submitted', 'working'].includes(task.status.state), `an immediate reply is ${task.status.state}`);
    return task;
  }

  get(id) {
    return this.client.getTask({ id });
  }

  cancel(id) {
    return this.client.cancelTask({ id });
  }

  stream(text, options) {
    return this.client.sendMessageStream(message(text, options));
  }
}

/** Reads a stream to its end: a Task, then updates of that task, the last of them final and its completion. */
async function checkStream(stream) {
  const events = await readAll(stream);
  expect(events.length > 0, 'the stream ended without an event');
  expect(events[0].kind === 'task', `the first event is ${events[0].kind}, not the task`);
  const [task, ...updates] = events;
  expect(updates.length > 0, 'no update followed the task');
  for (const update of updates) {
    expect(['status-update', 'artifact-update'].includes(update.kind), `an update is a ${update.kind}`);
    expect(update.taskId === task.id, `a ${update.kind} names another task`);
    expect(update.contextId === task.contextId, `a ${update.kind} names another context`);
  }
  const finals = updates.map((update) => Boolean(update.final));
  expect(finals.indexOf(true) === finals.length - 1, `'final' of the updates: ${finals}`);
  const { state } = updates.at(-1).status;
  expect(state === 'completed', `the stream ended in ${state}`);
  return { task, updates };
}

async function p02_discovers_card({ card, binding }) {
  expect(card.name !== '', 'the card has no name');
  expect(card.skills.length > 0, 'the card has no skill');
  expect(card.capabilities.streaming, 'the card does not offer streaming');
  expect(card.protocolVersion?.startsWith('0.3'), `the card speaks ${card.protocolVersion}`);
  const offered = [card.preferredTransport, ...(card.additionalInterfaces ?? []).map((i) => i.transport)];
  expect(offered.includes(binding), `${binding} is not among ${offered}`);
}

async function p02_sends(agent) {
  const task = await agent.send('hello');
  expect(task.id !== '' && task.contextId !== '', 'the task lacks an id or a context');
  expect(task.status.state === 'completed', `a blocking send ended in ${task.status.state}`);
  expect(task.status.timestamp, 'the status has no timestamp');
  expect(task.artifacts?.length > 0 && textOf(task.artifacts[0].parts) === 'hello', 'the task has no echo');
}

async function p02_streams(agent) {
  const { updates } = await checkStream(agent.stream('tck-stream-basic hi'));
  const states = updates.filter((u) => u.kind === 'status-update').map((u) => u.status.state);
  expect(states.includes('working'), `never seen working: ${states}`);
  expect(updates.some((u) => u.kind === 'artifact-update'), 'no artifact update');
}

async function p04_streams_plain_text_in_order(agent) {
  const { task, updates } = await checkStream(agent.stream('tck-stream-chunked'));
  const chunks = updates.filter((u) => u.kind === 'artifact-update');
  expect(chunks.length > 1, `${chunks.length} chunks`);
  // The SDK drops `append` of answers in the proto's form.
  const appended = (chunk, place) => Boolean(chunk.append) === place > 0;
  expect(agent.binding !== 'JSONRPC' || chunks.every(appended), 'only the first chunk may not append');
  expect(chunks.findIndex((chunk) => chunk.lastChunk) === chunks.length - 1, 'the last chunk is not marked');
  const stored = await agent.get(task.id);
  const streamed = chunks.map((chunk) => textOf(chunk.artifact.parts)).join('');
  expect(textOf(stored.artifacts[0].parts) === streamed, 'the stored artifact differs from the streamed one');
}

async function p02_gets_task(agent) {
  const sent = await agent.send('to be read again');
  const got = await agent.get(sent.id);
  expect(got.id === sent.id && got.contextId === sent.contextId, 'another task came back');
  expect(isDeepStrictEqual(got.status, sent.status), 'the status differs from the one the send returned');
  expect(isDeepStrictEqual(got.artifacts, sent.artifacts), 'the artifacts differ from those the send returned');
  const said = (got.history ?? []).map((m) => textOf(m.parts));
  expect(said.includes('to be read again'), `the message is not in the history: ${said}`);
}

async function p02_maps_unknown_task_error(agent) {
  await expectError(agent.get(randomUUID()), named('TaskNotFound'), 'an unknown task was found');
}

async function p02_maps_error_of_a_stream(agent) {
  // Over JSON-RPC the SDK has no error classes for streams, and puts the code into the text.
  const wanted = (error) => named('TaskNotFound')(error) || error.message.includes('(Code: -32001)');
  const stream = agent.stream('nobody is there', { taskId: randomUUID() });
  await expectError(readAll(stream), wanted, 'an unknown task took a message');
}

async function p02_cancels(agent) {
  const task = await agent.start('tck-cancel');
  const canceled = await agent.cancel(task.id);
  expect(canceled.id === task.id, 'another task came back');
  expect(canceled.status.state === 'canceled', `the cancel ended in ${canceled.status.state}`);
}

async function p02_maps_not_cancelable_error(agent) {
  const task = await agent.send('already done');
  await expectError(agent.cancel(task.id), named('TaskNotCancelable'), 'a completed task was canceled');
}

async function p02_subscribes(agent) {
  const started = await agent.start('tck-long-running');
  const events = await readAll(agent.client.resubscribeTask({ id: started.id }));
  expect(events.length > 0, 'the stream ended without an event');
  expect(events.every((e) => (e.taskId ?? e.id) === started.id), 'the stream shows another task');
  const { state } = events.at(-1).status;
  expect(state === 'completed', `the stream ended in ${state}`);
}

async function p02_talks_until_done(agent) {
  let task = await agent.send('tck-multi-turn');
  for (const [text, state] of [['one more', 'input-required'], ['done', 'completed']]) {
    expect(task.status.state === 'input-required', `before '${text}' the task is ${task.status.state}`);
    const answered = await agent.send(text, { taskId: task.id, contextId: task.contextId });
    expect(answered.id === task.id, 'the answer went to another task');
    expect(answered.status.state === state, `after '${text}' the task is ${answered.status.state}`);
    task = answered;
  }
  const said = task.history.filter((m) => m.role === 'user').map((m) => textOf(m.parts));
  expect(isDeepStrictEqual(said, ['tck-multi-turn', 'one more', 'done']), `the history holds ${said}`);
}

/** Asked on one stream, answered on another, with the task's id alone. */
async function p02_resumes_after_input_required(agent) {
  const asked = await readAll(agent.stream('tck-input-required'));
  expect(asked[0].kind === 'task', 'the first event is not the task');
  const last = asked.at(-1);
  expect(last.status?.state === 'input-required', `the stream ended in ${last.status?.state}`);
  expect(last.kind === 'task' || last.final, 'the last update is not final');
  expect(last.status.message?.parts.length > 0, 'the question has no text');
  const taskId = asked[0].id;
  const { task } = await checkStream(agent.stream('an answer', { taskId }));
  expect(task.id === taskId, 'the answer went to another task');
}

async function p02_gets_message_reply(agent) {
  const reply = await agent.client.sendMessage(message('tck-message-response'));
  const streamed = await readAll(agent.stream('tck-message-response'));
  expect(streamed.length === 1, `${streamed.length} events in reply to one message`);
  for (const { kind, role, parts } of [reply, streamed[0]]) {
    expect(kind === 'message', `the reply is a ${kind}`);
    expect(role === 'agent', 'the reply is not by the agent');
    expect(textOf(parts) !== '', 'the reply is empty');
  }
}

async function connect(baseUrl, binding) {
  const factories = { jsonrpc: JsonRpcTransportFactory, rest: RestTransportFactory, grpc: GrpcTransportFactory };
  const transport = new factories[binding]();
  const card = await AgentCardResolver.default.resolve(baseUrl);
  const client = await new ClientFactory({ transports: [transport] }).createFromAgentCard(card);
  return new Agent(card, client, transport.protocolName);
}

await main(connect, [
  p02_discovers_card,
  p02_sends,
  p02_streams,
  p04_streams_plain_text_in_order,
  p02_gets_task,
  p02_maps_unknown_task_error,
  p02_maps_error_of_a_stream,
  cannot('p02_lists_with_pages', 'the SDK has no list operation'),
  cannot('p06_lists_by_context', 'the SDK has no list operation'),
  p02_cancels,
  p02_maps_not_cancelable_error,
  p02_subscribes,
  p02_talks_until_done,
  p02_resumes_after_input_required,
  p02_gets_message_reply,
]);
