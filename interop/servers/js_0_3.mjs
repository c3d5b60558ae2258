// An agent on `@a2a-js/sdk` 0.3.14, as its documentation shows one: JSON-RPC and REST of 0.3, with streams and webhooks;
// with `--grpc` also gRPC, on a port of its own that the card names.
//
//     node js_0_3.mjs PORT [--grpc]
//
// It knows those of the `tck-` phrases that the tour of our client says.

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

// The packages are in the working folder, not beside this file.
const require = createRequire(pathToFileURL(join(process.cwd(), 'package.json')));
const express = require('express');
const grpc = require('@grpc/grpc-js');
// The modules for `import`: those for `require` have an error class each, and do not know each other's errors.
const sdk = (module) => import(pathToFileURL(join(process.cwd(), 'node_modules/@a2a-js/sdk/dist', module, 'index.js')));
const { AGENT_CARD_PATH } = await sdk('');
const { DefaultRequestHandler, InMemoryTaskStore } = await sdk('server');
const { UserBuilder, agentCardHandler, jsonRpcHandler, restHandler } = await sdk('server/express');
const { A2AService, grpcService } = await sdk('server/grpc');

const STORY = ['One runner, ', 'one baton, ', 'one lap.'];

const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const text = (words) => ({ kind: 'text', text: words });
const firstText = (message) => message.parts.find((part) => part.kind === 'text')?.text ?? '';

/** Does what the first text of a task asks for; a text it does not know is echoed. */
class Phrases {
  canceled = new Set();

  cancelTask = async (taskId) => {
    this.canceled.add(taskId);
  };

  async execute({ userMessage, task, taskId, contextId }, bus) {
    const ids = { taskId, contextId };
    const now = () => new Date().toISOString();
    const says = (words) =>
      ({ kind: 'message', messageId: crypto.randomUUID(), role: 'agent', parts: [text(words)], ...ids });
    const status = (state, words, final = false) => {
      const message = words ? says(words) : undefined;
      bus.publish({ kind: 'status-update', ...ids, status: { state, message, timestamp: now() }, final });
    };
    const artifact = (words, { artifactId = crypto.randomUUID(), append = false, lastChunk = true } = {}) => {
      const artifact = { artifactId, name: 'result', parts: [text(words)] };
      bus.publish({ kind: 'artifact-update', ...ids, artifact, append, lastChunk });
    };
    const first = firstText(task?.history?.[0] ?? userMessage);
    if (first === 'tck-message-response') {
      bus.publish({ ...says('Just a message.'), taskId: undefined });
      bus.finished();
      return;
    }
    const submitted = { state: 'submitted', timestamp: now() };
    bus.publish(task ?? { kind: 'task', id: taskId, contextId, status: submitted, artifacts: [], history: [userMessage] });
    if (first === 'tck-input-required' && !task) {
      status('input-required', 'What is your name?', true);
    } else if (first === 'tck-cancel') {
      status('working', 'Waiting to be canceled.');
      for (let passed = 0; passed < 60_000 && !this.canceled.has(taskId); passed += 50) await pause(50);
      status(this.canceled.delete(taskId) ? 'canceled' : 'failed', undefined, true);
    } else if (first === 'tck-stream-chunked') {
      status('working');
      for (const [place, chunk] of STORY.entries()) {
        await pause(200);
        artifact(chunk, { artifactId: 'story', append: place > 0, lastChunk: place + 1 === STORY.length });
      }
      status('completed', undefined, true);
    } else {
      artifact(`You said: ${firstText(userMessage)}`);
      status('completed', undefined, true);
    }
    bus.finished();
  }
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
const calls = new grpc.Server();
const grpcPort = process.argv[3] === '--grpc' && (await bound(calls));
const card = {
  name: '@a2a-js/sdk 0.3.14',
  description: 'Does what tests ask for.',
  protocolVersion: '0.3.0',
  version: '1.0.0',
  url: `${url}/rpc`,
  preferredTransport: 'JSONRPC',
  additionalInterfaces: [
    { url: `${url}/rpc`, transport: 'JSONRPC' },
    { url: `${url}/rest`, transport: 'HTTP+JSON' },
    ...(grpcPort ? [{ url: `127.0.0.1:${grpcPort}`, transport: 'GRPC' }] : []),
  ],
  capabilities: { streaming: true, pushNotifications: true },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 'phrases', name: 'phrases', description: 'A skill for tests.', tags: ['test'] }],
};
const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Phrases());
const options = { requestHandler, userBuilder: UserBuilder.noAuthentication };
const app = express();
app.use(`/${AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: requestHandler }));
app.use('/rpc', jsonRpcHandler(options));
app.use('/rest', restHandler(options));
calls.addService(A2AService, grpcService(options));
app.listen(port, '127.0.0.1');
