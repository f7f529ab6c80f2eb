// An instance's place in the registry: joining, staying, leaving (docs/protocol.md, "Registering").
import { setTimeout as pause } from 'node:timers/promises';

const CHECK_EVERY = 2;
const RETRY_MS = 500;
const LOST = new Set(['unknown_agent', 'unknown_instance', 'lease_superseded']);
const TRANSIENT = new Set(['unavailable', 'overloaded', 'internal_error']);

export class Membership {
  #lease = null;

  constructor(link, registration, running, log) {
    Object.assign(this, { link, registration, running, log });
  }

  // Registers, as often as it takes; throws when the dispatcher says no.
  async join() {
    for (;;) {
      const reply = await this.#ask('register', this.registration);
      if (reply?.type === 'registered') {
        this.#lease = reply;
        this.log('registered', { lease_id: reply.lease_id, warnings: reply.warnings });
        return;
      }
      if (reply && !TRANSIENT.has(reply.code)) throw new Error(`${reply.code}: ${reply.message}`);
      await pause(RETRY_MS);
    }
  }

  // Sends heartbeats until stopped or until the lease is lost: stop consuming then, before joining again.
  async stay(signal) {
    for (let beats = 1; ; beats += 1) {
      await pause(this.#lease.heartbeat_ms, null, { signal }).catch(() => {});
      if (signal.aborted) return;
      await this.link.publish('heartbeat', this.#heartbeat()).catch(() => {});
      if (beats % CHECK_EVERY === 0 && (await this.#isLost())) return;
    }
  }

  async drain() {
    await this.#ask('drain', this.#frame('drain'));
  }

  async leave() {
    await this.#ask('leave', this.#frame('leave'));
  }

  async #isLost() {
    const reply = await this.#ask('check_lease', this.#heartbeat());
    return reply?.type === 'refused' && LOST.has(reply.code);
  }

  async #ask(operation, frame) {
    return this.link.call(operation, frame).catch((error) => this.log('unanswered', { reason: error.message }));
  }

  #heartbeat() {
    return { ...this.#frame('heartbeat'), running: this.running() };
  }

  #frame(type) {
    const { agent_id, instance_id } = this.registration;
    return { v: 1, type, agent_id, instance_id, lease_id: this.#lease.lease_id };
  }
}
