import { setTimeout as delay } from 'node:timers/promises';
import type { Bus, Subscription } from '#bus/bus.ts';
import { bodyFrame } from '#bus/messages/frame.ts';
import { type RouterCall, routerCall } from '#bus/messages/router.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';

/** The text of the answer, or the status of an error; null: none comes. */
export type ModelReply = string | number | null;

/** A router worker's double for calls of gateways. */
export class ModelWorker {
  readonly calls: RouterCall[] = [];
  /** Of the next calls, in order; the last one is of all further calls. */
  replies: ModelReply[] = [null];
  /** Before each reply. */
  pauseMs = 0;
  readonly #bus: Bus;
  readonly #consuming: Subscription;

  constructor(bus: Bus) {
    this.#bus = bus;
    this.#consuming = bus.work.consume('router.call', { concurrency: 8, ackWaitMs: 30_000 }, async (item) => {
      const call = routerCall.parse(JSON.parse(item.body));
      this.calls.push(call);
      const reply = this.replies.length > 1 ? this.replies.shift() : this.replies[0];
      await delay(this.pauseMs);
      if (reply !== null && reply !== undefined) this.#publish(call, reply);
      await item.ack();
    });
  }

  stop(): Promise<void> {
    return this.#consuming.stop();
  }

  #publish({ origin, callId }: RouterCall, reply: string | number): void {
    const answer = { finishReason: 'stop', usage: null, text: reply, toolCalls: [], error: null };
    const frame = typeof reply === 'string' ? bodyFrame(200, JSON.stringify(answer)) : bodyFrame(reply, '{"error":{"message":"secret"}}');
    this.#bus.tokens.publish(subjectOf(addresses.tokens, origin, callId), frame);
  }
}
