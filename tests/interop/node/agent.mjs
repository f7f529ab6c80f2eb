// An agent that knows the published protocol and no line of the dispatcher's code: renews library books.
//   node agent.mjs --document asyncapi.json --broker amqp://… [--key KEY] [--instance NAME]
// Prints one JSON object a line. SIGTERM: takes no more, finishes what is in hand, leaves, exits 0.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Link } from './link.mjs';
import { Membership } from './membership.mjs';

const MAX_LOAD = 8;
const MOST_OUTCOMES = 1_000;
const DECLARATION = {
  channel: 'rabbitmq',
  max_load: MAX_LOAD,
  capabilities: [
    {
      name: 'library.renew',
      descriptions: ['续借图书馆的书', 'Renews books borrowed from the library'],
      examples: ['帮我续借图书馆的书', '我借的书快到期了，能延期吗', 'renew my library books', '把《三体》续借一个月'],
      idempotent: true,
    },
  ],
};

const option = { type: 'string' };
const { values: options } = parseArgs({
  options: { document: option, broker: option, key: option, instance: { ...option, default: 'main' } },
});
const document = JSON.parse(readFileSync(options.document));
const identity = { agent_id: 'library', instance_id: randomUUID() };
const outcomes = new Map(); // idempotency key → the newest run of it: its `repeat` and the promise of how it ended
const inHand = new Set();
const leaving = new AbortController();

function log(event, facts = {}) {
  process.stdout.write(`${JSON.stringify({ event, ...facts })}\n`);
}

async function renew(task) {
  if (task.payload.text.includes('预约')) throw new Error('somebody waits for that book');
  const isChinese = /\p{Script=Han}/u.test(task.payload.text);
  const text = isChinese ? '已为您续借 30 天。' : 'Renewed for 30 days.';
  return { status: 'success', result: { text, data: { days: 30 } } };
}

async function run(task) {
  log('ran', { key: task.idempotency_key });
  try {
    return await renew(task);
  } catch (error) {
    return { status: 'error', error_code: 'handler_failed', error_message: String(error) };
  }
}

// What runs or ran is not run again, but for what failed, where an operator has it repeated.
async function outcomeOf(task) {
  const repeat = task.repeat ?? 0;
  for (let known = outcomes.get(task.idempotency_key); known; known = outcomes.get(task.idempotency_key)) {
    const outcome = await known.outcome;
    if (known !== outcomes.get(task.idempotency_key)) continue;
    if (outcome.status === 'error' && repeat > known.repeat) break;
    log('replayed', { key: task.idempotency_key });
    return outcome;
  }
  if (task.budget_ms <= 0 || task.start_within_ms <= 0) return { status: 'expired' };
  if (task.capability !== 'library.renew') {
    return { status: 'error', error_code: 'unknown_capability', can_retry: true };
  }
  const outcome = run(task);
  outcomes.set(task.idempotency_key, { repeat, outcome });
  if (outcomes.size > MOST_OUTCOMES) outcomes.delete(outcomes.keys().next().value);
  return outcome;
}

function read(content) {
  try {
    const frame = JSON.parse(content);
    return frame.v === 1 && frame.type === 'task' && frame.agent_id === identity.agent_id ? frame : null;
  } catch {
    return null;
  }
}

async function handle(link, delivery) {
  const task = read(delivery.content);
  if (!task) return link.tasks.reject(delivery, false);
  const { request_id, task_id, attempt, token } = task;
  const told = { v: 1, type: 'result', request_id, task_id, attempt, token, instance_id: identity.instance_id };
  await link.publishSurely('answer', { ...told, ...(await outcomeOf(task)) });
  link.tasks.ack(delivery);
}

function take(link, delivery) {
  if (!delivery) throw new Error('the task queue is gone');
  const handled = handle(link, delivery).finally(() => inHand.delete(handled));
  inHand.add(handled);
}

async function main() {
  const link = new Link(document, identity);
  await link.open(options.broker, () => leaving.signal.aborted || process.exit(1));
  const registration = {
    v: 1,
    type: 'register',
    ...identity,
    instance_name: options.instance,
    inbox: 'memory',
    declaration: DECLARATION,
    ...(options.key && { key: options.key }),
  };
  const membership = new Membership(link, registration, () => inHand.size, log);
  process.once('SIGTERM', () => leaving.abort());
  while (!leaving.signal.aborted) {
    await membership.join();
    const endConsumption = await link.consume(MAX_LOAD, (delivery) => take(link, delivery));
    log('ready');
    await membership.stay(leaving.signal);
    if (leaving.signal.aborted) await membership.drain();
    await endConsumption();
  }
  await Promise.all(inHand);
  await membership.leave();
  log('left');
  await link.close();
}

main().catch((error) => {
  log('failed', { reason: error.message });
  process.exit(1);
});
