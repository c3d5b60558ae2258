// An agent on `@a2a-js/sdk` 1.3.0, as its samples show one: JSON-RPC and REST, both of 1.0 and, through the SDK's
// compatibility layer, of 0.3; with streams, webhooks, the extended card, and users; with `--grpc` also gRPC, on a port of
// its own that the card names.
//
//     node js_1_3.mjs PORT [--grpc]
//
// It knows the `tck-` phrases of the conformance tests. Two users are known, by the bearer tokens below; the card is for
// everybody.

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

// The packages are in the working folder, not beside this file.
const require = createRequire(pathToFileURL(join(process.cwd(), 'package.json')));
const express = require('express');
const grpc = require('@grpc/grpc-js');
const { A2A_PROTOCOL_VERSION, AGENT_CARD_PATH, Role, TaskState } = require('@a2a-js/sdk');
const { AgentEvent, DefaultRequestHandler, InMemoryPushNotificationStore, InMemoryTaskStore } = require('@a2a-js/sdk/server');
const { agentCardHandler, jsonRpcHandler, restHandler } = require('@a2a-js/sdk/server/express');
const { A2AService, grpcService } = require('@a2a-js/sdk/server/grpc');
const { LegacyA2AService, legacyGrpcService } = require('@a2a-js/sdk/compat/v0_3/server/grpc');
const { createLegacyAwarePushNotificationSender } = require('@a2a-js/sdk/compat/v0_3/server');
const { duplicateInterfacesForLegacy } = require('@a2a-js/sdk/compat/v0_3');

const TOKENS = new Map([['first-token', 'first'], ['second-token', 'second']]);
const STORY = ['One runner, ', 'one baton, ', 'one lap.'];

const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const part = (content, more = {}) => ({ content, metadata: undefined, filename: '', mediaType: '', ...more });
const textPart = (text) => part({ $case: 'text', value: text }, { mediaType: 'text/plain' });

/** Publishes the events of one task. */
class Updates {
  constructor(context, bus) {
    this.ids = { taskId: context.taskId, contextId: context.contextId };
    this.bus = bus;
  }

  message(text) {
    return {
      messageId: crypto.randomUUID(),
      role: Role.ROLE_AGENT,
      parts: [textPart(text)],
      ...this.ids,
      extensions: [],
      metadata: {},
      referenceTaskIds: [],
    };
  }

  /** The same task on another event bus. */
  on(bus) {
    this.bus = bus;
    return this;
  }

  status(state, text) {
    const status = { state, timestamp: new Date().toISOString(), message: text ? this.message(text) : undefined };
    this.bus.publish(AgentEvent.statusUpdate({ ...this.ids, status, metadata: {} }));
  }

  artifact(parts, { id = crypto.randomUUID(), append = false, lastChunk = true } = {}) {
    const artifact = { artifactId: id, name: 'result', description: '', parts, metadata: {}, extensions: [] };
    this.bus.publish(AgentEvent.artifactUpdate({ ...this.ids, artifact, append, lastChunk, metadata: {} }));
  }
}

/** Does what the first text of a task asks for; a text it does not know is echoed. */
class Phrases {
  canceled = new Set();
  /** The running turns, and those that wait for the user. */
  running = new Set();
  waiting = new Map();

  cancelTask = async (taskId, bus) => {
    if (this.running.has(taskId)) {
      this.canceled.add(taskId);
    } else {
      this.waiting.get(taskId)?.on(bus).status(TaskState.TASK_STATE_CANCELED, 'Canceled.');
    }
  };

  async execute(context, bus) {
    const { userMessage, task, taskId, contextId } = context;
    const first = firstText(task?.history?.[0] ?? userMessage);
    const updates = new Updates(context, bus);
    if (first.startsWith('tck-message-response')) {
      bus.publish(AgentEvent.message({ ...updates.message('Just a message.'), taskId: '' }));
      return;
    }
    const submitted = {
      id: taskId,
      contextId,
      status: { state: TaskState.TASK_STATE_SUBMITTED, timestamp: new Date().toISOString(), message: undefined },
      artifacts: [],
      history: [userMessage],
      metadata: {},
    };
    bus.publish(AgentEvent.task(task ?? submitted));
    this.waiting.delete(taskId);
    this.running.add(taskId);
    try {
      await this.work(first, firstText(userMessage), task !== undefined, taskId, updates);
    } finally {
      this.running.delete(taskId);
      this.canceled.delete(taskId);
    }
  }

  async work(first, text, isFollowUp, taskId, updates) {
    const known = first.startsWith('tck-') ? first.split(/\s/)[0] : '';
    const ask = (state, words) => {
      this.waiting.set(taskId, updates);
      updates.status(state, words);
    };
    if (known === 'tck-reject-task') {
      updates.status(TaskState.TASK_STATE_REJECTED, 'Refused, as asked.');
    } else if (known === 'tck-task-failure') {
      updates.status(TaskState.TASK_STATE_FAILED, 'Failed, as asked.');
    } else if (known === 'tck-input-required' && !isFollowUp) {
      ask(TaskState.TASK_STATE_INPUT_REQUIRED, 'What is your name?');
    } else if (known === 'tck-auth-required' && !isFollowUp) {
      ask(TaskState.TASK_STATE_AUTH_REQUIRED, 'Sign in, then send a message.');
    } else if (known === 'tck-multi-turn' && !(isFollowUp && text === 'done')) {
      ask(TaskState.TASK_STATE_INPUT_REQUIRED, 'Go on, or say done.');
    } else if (known === 'tck-cancel') {
      updates.status(TaskState.TASK_STATE_WORKING, 'Waiting to be canceled.');
      await this.uninterrupted(60_000, taskId, updates);
    } else if (known === 'tck-long-running') {
      updates.status(TaskState.TASK_STATE_WORKING, 'This takes a while.');
      if (await this.uninterrupted(5000, taskId, updates)) {
        updates.artifact([textPart('Here it is.')]);
        updates.status(TaskState.TASK_STATE_COMPLETED);
      }
    } else if (known === 'tck-stream-basic') {
      updates.status(TaskState.TASK_STATE_WORKING, 'Working.');
      if (!(await this.uninterrupted(600, taskId, updates))) return;
      updates.artifact([textPart('The result.')]);
      if (!(await this.uninterrupted(600, taskId, updates))) return;
      updates.status(TaskState.TASK_STATE_COMPLETED);
    } else if (known === 'tck-stream-chunked') {
      updates.status(TaskState.TASK_STATE_WORKING);
      for (const [place, chunk] of STORY.entries()) {
        await pause(200);
        updates.artifact([textPart(chunk)], { id: 'story', append: place > 0, lastChunk: place + 1 === STORY.length });
      }
      updates.status(TaskState.TASK_STATE_COMPLETED);
    } else {
      updates.artifact([result(known, text)]);
      updates.status(TaskState.TASK_STATE_COMPLETED);
    }
  }

  /** Works for that long; if it is canceled, publishes that and returns false. */
  async uninterrupted(ms, taskId, updates) {
    for (let passed = 0; passed < ms; passed += 50) {
      if (this.canceled.has(taskId)) {
        updates.status(TaskState.TASK_STATE_CANCELED, 'Canceled.');
        return false;
      }
      await pause(50);
    }
    return true;
  }
}

function firstText(message) {
  return message.parts.find((each) => each.content?.$case === 'text')?.content.value ?? '';
}

function result(known, text) {
  const file = { filename: 'file.txt', mediaType: 'text/plain' };
  switch (known) {
    case 'tck-artifact-file':
      return part({ $case: 'raw', value: Buffer.from('A file.\n') }, file);
    case 'tck-artifact-file-url':
      return part({ $case: 'url', value: 'https://example.com/file.txt' }, file);
    case 'tck-artifact-data':
      return part({ $case: 'data', value: { laps: 4, dropped: false } }, { mediaType: 'application/json' });
    default:
      return textPart(`You said: ${text}`);
  }
}

/** The name of the user with this token. */
function userOf(authorization = '') {
  const [scheme, token] = authorization.split(' ');
  return scheme.toLowerCase() === 'bearer' ? TOKENS.get(token) : undefined;
}

/** For Express: refuses requests without a token. */
function authenticate(request, response, next) {
  const userName = userOf(request.headers.authorization);
  if (userName === undefined) {
    response.status(401).set('WWW-Authenticate', 'Bearer').json({ error: 'a bearer token is needed' });
    return;
  }
  request.user = { userName };
  next();
}

const authorizationOf = (metadata) => metadata.get('authorization')[0]?.toString();

/** For gRPC: refuses calls without a token. */
function authenticateCall(_, call) {
  const refusal = { code: grpc.status.UNAUTHENTICATED, details: 'a bearer token is needed' };
  const onReceiveMetadata = (metadata, next) => {
    if (userOf(authorizationOf(metadata)) === undefined) call.sendStatus(refusal);
    else next(metadata);
  };
  return new grpc.ServerInterceptingCall(call, { start: (next) => next({ onReceiveMetadata }) });
}

/** For the SDK: the user of a request, and of a call. */
const userBuilder = async (request) => ({ isAuthenticated: true, userName: request.user.userName });
const callerBuilder = async (call) => ({ isAuthenticated: true, userName: userOf(authorizationOf(call.metadata)) });

function card(url, grpcPort, name) {
  const place = (address, protocolBinding) =>
    ({ url: address, protocolBinding, tenant: '', protocolVersion: A2A_PROTOCOL_VERSION });
  const places = [place(`${url}/rpc`, 'JSONRPC'), place(`${url}/rest`, 'HTTP+JSON')];
  if (grpcPort) places.push(place(`127.0.0.1:${grpcPort}`, 'GRPC'));
  const skill = (id, example) => ({
    id,
    name: id,
    description: 'A skill for tests.',
    tags: ['test'],
    examples: [example],
    inputModes: [],
    outputModes: [],
    securityRequirements: [],
  });
  return {
    name,
    description: 'Does what conformance tests ask for.',
    version: '1.0.0',
    supportedInterfaces: duplicateInterfacesForLegacy(places, ['JSONRPC', 'HTTP+JSON', 'GRPC']),
    provider: undefined,
    capabilities: { streaming: true, pushNotifications: true, extensions: [], extendedAgentCard: true },
    securitySchemes: {
      bearer: {
        scheme: { $case: 'httpAuthSecurityScheme', value: { description: '', scheme: 'bearer', bearerFormat: '' } },
      },
    },
    securityRequirements: [{ schemes: { bearer: { list: [] } } }],
    defaultInputModes: ['text/plain', 'application/json'],
    defaultOutputModes: ['text/plain', 'application/json'],
    skills: [skill('phrases', 'tck-complete-task'), skill('echo', 'hello')],
    documentationUrl: '',
    signatures: [],
  };
}

/** Binds a server to a free port. */
function bound(server) {
  return new Promise((resolve, reject) => {
    const done = (error, chosen) => (error ? reject(error) : resolve(chosen));
    server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), done);
  });
}

const port = Number(process.argv[2]);
const url = `http://127.0.0.1:${port}`;
const calls = new grpc.Server({ interceptors: [authenticateCall] });
const grpcPort = process.argv[3] === '--grpc' && (await bound(calls));
const webhooks = new InMemoryPushNotificationStore();
const requestHandler = new DefaultRequestHandler(
  card(url, grpcPort, '@a2a-js/sdk 1.3.0'),
  new InMemoryTaskStore(),
  new Phrases(),
  undefined,
  webhooks,
  createLegacyAwarePushNotificationSender(webhooks),
  card(url, grpcPort, '@a2a-js/sdk 1.3.0, for users'),
  undefined,
  { validateInputModes: true },
);
const options = { requestHandler, userBuilder, legacyCompat: { enabled: true } };
const app = express();
app.use(`/${AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: requestHandler, legacyCompat: { enabled: true } }));
app.use('/rpc', authenticate, jsonRpcHandler(options));
app.use('/rest', authenticate, restHandler(options));
calls.addService(A2AService, grpcService({ requestHandler, userBuilder: callerBuilder }));
calls.addService(LegacyA2AService, legacyGrpcService({ requestHandler, userBuilder: callerBuilder }));
app.listen(port, '127.0.0.1');
