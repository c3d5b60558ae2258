// A receiver of webhooks on this machine, which keeps what it got.

import { EventEmitter } from 'node:events';
import { createServer } from 'node:http';

// Calls arrive within milliseconds; whoever waits this long waits in vain.
const PATIENCE_SECONDS = 30;

/** Answers every call with 204. */
export class Receiver {
  #calls = new Map();
  #changed = new EventEmitter().setMaxListeners(0);
  #url;

  static async start() {
    const receiver = new Receiver();
    const server = createServer((request, response) => receiver.#take(request, response));
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    receiver.#url = `http://127.0.0.1:${server.address().port}`;
    return receiver;
  }

  /** A webhook with an address of its own. */
  hook(token = '', credentials = '') {
    const url = `${this.#url}/${this.#calls.size + 1}`;
    this.#calls.set(url, []);
    return { url, token, credentials };
  }

  calls(hook) {
    return [...this.#calls.get(hook.url)];
  }

  /** Waits until the calls of a webhook, at least one, are enough. */
  async until(hook, isEnough) {
    let look, timer;
    const enough = new Promise((resolve, reject) => {
      // A body that cannot be read is the result of the check.
      look = () => {
        const calls = this.calls(hook);
        try {
          if (calls.length > 0 && isEnough(calls)) resolve(calls);
        } catch (error) {
          reject(error);
        }
      };
      timer = setTimeout(() => {
        const calls = this.calls(hook);
        reject(new Error(`${calls.length} calls came, the last is ${calls.at(-1)?.body}`));
      }, PATIENCE_SECONDS * 1000);
    });
    this.#changed.on('call', look);
    look();
    try {
      return await enough;
    } finally {
      clearTimeout(timer);
      this.#changed.off('call', look);
    }
  }

  async #take(request, response) {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    const calls = this.#calls.get(this.#url + request.url);
    if (request.method === 'POST' && calls !== undefined) {
      calls.push({ at: performance.now(), headers: request.headersDistinct, body: Buffer.concat(pieces).toString() });
      this.#changed.emit('call');
    }
    response.writeHead(204).end();
  }
}
