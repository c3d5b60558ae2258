// The JavaScript `@a2a-js/sdk` 1.3.0 client. Bindings: `jsonrpc`, `rest`, `grpc`; with `-0.3` its compatibility transports.

import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';

import { expect, expectError, load, main, readAll, skip } from './harness.mjs';

const { Role, TaskState } = await load('@a2a-js/sdk');
const {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} = await load('@a2a-js/sdk', './client');
const { GrpcTransportFactory } = await load('@a2a-js/sdk', './client/grpc');
const { TaskNotCancelableError, TaskNotFoundError } = await load('@a2a-js/sdk', './errors');

const stateName = (state) => TaskState[state] ?? String(state);

function message(text, { contextId = '', taskId = '', returnImmediately = false } = {}) {
  return {
    tenant: '',
    message: {
      messageId: randomUUID(),
      contextId,
      taskId,
      role: Role.ROLE_USER,
      parts: [{ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' }],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
    },
    configuration: {
      acceptedOutputModes: [],
      taskPushNotificationConfig: undefined,
      historyLength: undefined,
      returnImmediately,
    },
    metadata: undefined,
  };
}

const textOf = (parts) => parts.map((part) => (part.content?.$case === 'text' ? part.content.value : '')).join('');

class Agent {
  constructor(card, client, binding, version) {
    Object.assign(this, { card, client, binding, version });
  }

  async send(text, options) {
    const reply = await this.client.sendMessage(message(text, options));
    expect('status' in reply, `no task in the reply: ${JSON.stringify(reply)}`);
    return reply;
  }

  /** Sends without waiting for the end. */
  async start(text) {
    const task = await this.send(text, { returnImmediately: true });
    const started = [TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING];
    expect(started.includes(task.status.state), `an immediate reply is ${stateName(task.status.state)}`);
    return task;
  }

  get(id) {
    return this.client.getTask({ tenant: '', id, historyLength: undefined });
  }

  list(contextId, pageSize, pageToken = '') {
    if (this.version === '0.3') skip('the SDK has no list operation in 0.3');
    return this.client.listTasks({
      tenant: '',
      contextId,
      status: TaskState.TASK_STATE_UNSPECIFIED,
      pageSize,
      pageToken,
      historyLength: undefined,
      statusTimestampAfter: undefined,
      includeArtifacts: undefined,
    });
  }

  cancel(id) {
    return this.client.cancelTask({ tenant: '', id, metadata: undefined });
  }

  stream(text, options) {
    return this.client.sendMessageStream(message(text, options));
  }
}

/** Reads a stream to its end: a Task, then updates of that task, the last of them its completion. */
async function checkStream(stream) {
  const events = await readAll(stream);
  expect(events.length > 0, 'the stream ended without an event');
  expect(events[0].payload?.$case === 'task', `the first event is ${events[0].payload?.$case}, not the task`);
  const task = events[0].payload.value;
  const updates = events.slice(1).map((event) => event.payload);
  expect(updates.length > 0, 'no update followed the task');
  for (const update of updates) {
    expect(['statusUpdate', 'artifactUpdate'].includes(update.$case), `an update is a ${update.$case}`);
    expect(update.value.taskId === task.id, `a ${update.$case} names another task`);
    expect(update.value.contextId === task.contextId, `a ${update.$case} names another context`);
  }
  const last = updates.at(-1);
  expect(last.$case === 'statusUpdate', 'the last event is not a status update');
  const state = last.value.status.state;
  expect(state === TaskState.TASK_STATE_COMPLETED, `the stream ended in ${stateName(state)}`);
  return { task, updates };
}

async function p02_discovers_card({ card, binding, version }) {
  expect(card.name !== '', 'the card has no name');
  expect(card.skills.length > 0, 'the card has no skill');
  expect(card.capabilities.streaming, 'the card does not offer streaming');
  const offered = card.supportedInterfaces.map((i) => `${i.protocolBinding} ${i.protocolVersion}`);
  expect(offered.includes(`${binding} ${version}`), `${binding} ${version} is not among ${offered.join(', ')}`);
}

async function p02_sends(agent) {
  const task = await agent.send('hello');
  expect(task.id !== '' && task.contextId !== '', 'the task lacks an id or a context');
  const state = task.status.state;
  expect(state === TaskState.TASK_STATE_COMPLETED, `a blocking send ended in ${stateName(state)}`);
  expect(task.status.timestamp, 'the status has no timestamp');
  expect(task.artifacts.length > 0 && textOf(task.artifacts[0].parts) === 'hello', 'the task has no echo');
}

async function p02_streams(agent) {
  const { updates } = await checkStream(agent.stream('tck-stream-basic hi'));
  const states = updates.filter((u) => u.$case === 'statusUpdate').map((u) => u.value.status.state);
  expect(states.includes(TaskState.TASK_STATE_WORKING), `never seen working: ${states.map(stateName)}`);
  expect(updates.some((u) => u.$case === 'artifactUpdate'), 'no artifact update');
}

async function p04_streams_plain_text_in_order(agent) {
  const { task, updates } = await checkStream(agent.stream('tck-stream-chunked'));
  const chunks = updates.filter((u) => u.$case === 'artifactUpdate').map((u) => u.value);
  expect(chunks.length > 1, `${chunks.length} chunks`);
  // The SDK drops `append` of answers in the proto's form of 0.3.
  const appended = (chunk, place) => Boolean(chunk.append) === place > 0;
  expect((agent.version === '0.3' && agent.binding !== 'JSONRPC') || chunks.every(appended), 'only the first chunk may not append');
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
  const said = got.history.map((m) => textOf(m.parts));
  expect(said.includes('to be read again'), `the message is not in the history: ${said}`);
}

async function p02_maps_unknown_task_error(agent) {
  await expectError(agent.get(randomUUID()), (e) => e instanceof TaskNotFoundError, 'an unknown task was found');
}

async function p02_maps_error_of_a_stream(agent) {
  // The SDK has no error classes for 0.3 streams, and puts the code into the text.
  const inText = (error) => agent.version === '0.3' && error.message.includes('(Code: -32001)');
  const wanted = (error) => error instanceof TaskNotFoundError || inText(error);
  const stream = agent.stream('nobody is there', { taskId: randomUUID() });
  await expectError(readAll(stream), wanted, 'an unknown task took a message');
}

/** Three tasks in one context and one outside it, read in pages of two. */
async function p02_lists_with_pages(agent) {
  const first = await agent.send('page 1');
  await agent.send('elsewhere');
  const { contextId } = first;
  const others = [await agent.send('page 2', { contextId }), await agent.send('page 3', { contextId })];

  const page = await agent.list(contextId, 2);
  expect(page.tasks.length === 2, `a page of two holds ${page.tasks.length}`);
  expect(page.totalSize === 3, `the total is ${page.totalSize}, not 3`);
  expect(page.nextPageToken !== '', 'the first of two pages has no token');

  const rest = await agent.list(contextId, 2, page.nextPageToken);
  expect(rest.tasks.length === 1, `the second page holds ${rest.tasks.length}, not 1`);
  expect(rest.nextPageToken === '', 'the last page has a token');
  const listed = [...page.tasks, ...rest.tasks].map((task) => task.id).sort();
  const mine = [first, ...others].map((task) => task.id).sort();
  expect(isDeepStrictEqual(listed, mine), 'the pages do not hold the tasks of the context, each once');
}

async function p06_lists_by_context(agent) {
  const mine = await agent.send('in a context of its own');
  const listed = (await agent.list(mine.contextId, 10)).tasks.map((task) => task.id);
  expect(isDeepStrictEqual(listed, [mine.id]), 'the context filter lets other tasks through');
  const none = await agent.list(randomUUID(), 10);
  expect(none.tasks.length === 0, 'an unknown context has tasks');
}

async function p02_cancels(agent) {
  const task = await agent.start('tck-cancel');
  const canceled = await agent.cancel(task.id);
  expect(canceled.id === task.id, 'another task came back');
  const state = canceled.status.state;
  expect(state === TaskState.TASK_STATE_CANCELED, `the cancel ended in ${stateName(state)}`);
}

async function p02_maps_not_cancelable_error(agent) {
  const task = await agent.send('already done');
  const wanted = (error) => error instanceof TaskNotCancelableError;
  await expectError(agent.cancel(task.id), wanted, 'a completed task was canceled');
}

async function p02_subscribes(agent) {
  const started = await agent.start('tck-long-running');
  const { task } = await checkStream(agent.client.resubscribeTask({ tenant: '', id: started.id }));
  expect(task.id === started.id, 'the stream shows another task');
}

async function p02_talks_until_done(agent) {
  let task = await agent.send('tck-multi-turn');
  const turns = [
    ['one more', TaskState.TASK_STATE_INPUT_REQUIRED],
    ['done', TaskState.TASK_STATE_COMPLETED],
  ];
  for (const [text, state] of turns) {
    const before = task.status.state;
    expect(before === TaskState.TASK_STATE_INPUT_REQUIRED, `before '${text}' the task is ${stateName(before)}`);
    const answered = await agent.send(text, { taskId: task.id, contextId: task.contextId });
    expect(answered.id === task.id, 'the answer went to another task');
    expect(answered.status.state === state, `after '${text}' the task is ${stateName(answered.status.state)}`);
    task = answered;
  }
  const said = task.history.filter((m) => m.role === Role.ROLE_USER).map((m) => textOf(m.parts));
  expect(isDeepStrictEqual(said, ['tck-multi-turn', 'one more', 'done']), `the history holds ${said}`);
}

/** Asked on one stream, answered on another, with the task's id alone. */
async function p02_resumes_after_input_required(agent) {
  const asked = await readAll(agent.stream('tck-input-required'));
  expect(asked[0].payload.$case === 'task', 'the first event is not the task');
  const last = asked.at(-1).payload.value.status;
  expect(last?.state === TaskState.TASK_STATE_INPUT_REQUIRED, `the stream ended in ${stateName(last?.state)}`);
  expect(last.message?.parts.length > 0, 'the question has no text');
  const taskId = asked[0].payload.value.id;
  const { task } = await checkStream(agent.stream('an answer', { taskId }));
  expect(task.id === taskId, 'the answer went to another task');
}

async function p02_gets_message_reply(agent) {
  const reply = await agent.client.sendMessage(message('tck-message-response'));
  const streamed = await readAll(agent.stream('tck-message-response'));
  expect(streamed.length === 1, `${streamed.length} events in reply to one message`);
  expect(streamed[0].payload.$case === 'message', `the stream brought a ${streamed[0].payload.$case}`);
  for (const { role, parts } of [reply, streamed[0].payload.value]) {
    expect(role === Role.ROLE_AGENT, 'the reply is not by the agent');
    expect(textOf(parts) !== '', 'the reply is empty');
  }
}

async function connect(baseUrl, bindingAndVersion) {
  const [name, version = '1.0'] = bindingAndVersion.split('-');
  const legacyCompat = { enabled: version === '0.3' };
  const factories = { jsonrpc: JsonRpcTransportFactory, rest: RestTransportFactory, grpc: GrpcTransportFactory };
  const transport = new factories[name]({ legacyCompat });
  const cardResolver = new DefaultAgentCardResolver({ legacyCompat });
  const card = await cardResolver.resolve(baseUrl);
  const factory = new ClientFactory({ transports: [transport], cardResolver });
  // The SDK takes the first interface that fits; only a card without 1.0 makes it speak 0.3.
  const supportedInterfaces = card.supportedInterfaces.filter((i) => i.protocolVersion === version);
  const client = await factory.createFromAgentCard({ ...card, supportedInterfaces });
  return new Agent(card, client, transport.protocolName, version);
}

await main(connect, [
  p02_discovers_card,
  p02_sends,
  p02_streams,
  p04_streams_plain_text_in_order,
  p02_gets_task,
  p02_maps_unknown_task_error,
  p02_maps_error_of_a_stream,
  p02_lists_with_pages,
  p06_lists_by_context,
  p02_cancels,
  p02_maps_not_cancelable_error,
  p02_subscribes,
  p02_talks_until_done,
  p02_resumes_after_input_required,
  p02_gets_message_reply,
]);
