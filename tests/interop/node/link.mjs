// An agent's link to its dispatcher over AMQP. Names, keys, arguments and properties are read from the
// AsyncAPI document; nothing here knows them otherwise.
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import amqp from 'amqplib';

const CALL_TIMEOUT_MS = 10_000;
const LONGEST_PAUSE_MS = 5_000;

export class Link {
  #waiting = new Map();
  #returned = new Set();

  constructor(document, names) {
    this.document = document;
    this.names = names;
  }

  // Publishing and consuming have a connection each: an alarm of the broker stops one that publishes, acks included.
  async open(url, lost) {
    const [out, into] = await Promise.all([amqp.connect(url), amqp.connect(url)]);
    this.connections = [out, into];
    for (const connection of this.connections) {
      connection.on('error', () => {});
      connection.on('close', lost);
    }
    this.out = await out.createConfirmChannel();
    this.out.on('return', ({ properties }) => this.#returned.add(properties.messageId));
    this.replies = await into.createChannel();
    this.tasks = await into.createChannel();
    for (const channel of [this.out, this.replies, this.tasks]) {
      channel.on('error', () => {});
      channel.on('close', lost);
    }
    await this.#openReplies();
  }

  async close() {
    await Promise.all(this.connections.map((connection) => connection.close()));
  }

  // Returns the decoded reply; throws when none comes in time, and calling again is safe.
  async call(operation, frame) {
    const correlationId = randomUUID();
    const reply = new Promise((resolve) => this.#waiting.set(correlationId, resolve));
    const late = pause(CALL_TIMEOUT_MS, null, { ref: false });
    try {
      await this.publish(operation, frame, { correlationId, replyTo: this.ownQueue });
      const answer = await Promise.race([reply, late]);
      if (!answer) throw new Error(`${operation}: no reply`);
      return answer;
    } finally {
      this.#waiting.delete(correlationId);
    }
  }

  // Resolves when the broker has confirmed; throws when it refused the message or no queue took it.
  async publish(operation, frame, properties = {}) {
    const { channel, messages, bindings } = this.document.operations[operation];
    const to = this.#resolve(channel.$ref);
    const message = this.#resolve(this.#resolve(messages[0].$ref).$ref);
    const { deliveryMode, mandatory } = bindings.amqp;
    const messageId = randomUUID();
    const options = {
      messageId,
      deliveryMode,
      mandatory,
      contentType: message.contentType,
      type: message.bindings.amqp.messageType,
      ...properties,
    };
    const body = Buffer.from(JSON.stringify(frame));
    await new Promise((resolve, reject) => {
      const confirmed = (error) => (error ? reject(error) : resolve());
      this.out.publish(to.bindings.amqp.exchange.name, this.#address(to), body, options, confirmed);
    });
    if (this.#returned.delete(messageId)) throw new Error(`${operation}: no queue took it`);
  }

  // Publishes again, with growing pauses, until it is confirmed.
  async publishSurely(operation, frame) {
    for (let ms = 100; ; ms = Math.min(2 * ms, LONGEST_PAUSE_MS)) {
      try {
        return await this.publish(operation, frame);
      } catch {
        await pause(ms);
      }
    }
  }

  // Hands each delivery to `take`, which settles it; the returned function ends that.
  async consume(prefetch, take) {
    const queue = this.#address(this.#resolve(this.document.operations.take_task.channel.$ref));
    await this.tasks.prefetch(prefetch);
    const { consumerTag } = await this.tasks.consume(queue, take);
    return () => this.tasks.cancel(consumerTag);
  }

  async #openReplies() {
    const { queue } = this.document.channels.replies.bindings.amqp;
    const { durable, exclusive, autoDelete } = queue;
    const options = { durable, exclusive, autoDelete, arguments: queue['x-arguments'] };
    this.ownQueue = this.#address(this.document.channels.replies);
    await this.replies.assertQueue(this.ownQueue, options);
    await this.replies.consume(this.ownQueue, (message) => this.#hear(message), { noAck: true });
  }

  #hear(message) {
    const resolve = message && this.#waiting.get(message.properties.correlationId);
    if (resolve) resolve(JSON.parse(message.content));
  }

  #resolve(reference) {
    const steps = reference.replace(/^#\//, '').split('/');
    return steps.reduce((found, step) => found[step], this.document);
  }

  #address(channel) {
    return channel.address.replace(/\{(\w+)\}/g, (_, name) => this.names[name]);
  }
}
