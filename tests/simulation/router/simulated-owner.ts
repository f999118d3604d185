import type { EffectRow } from '../../../actors/effects/effect-row.ts';
import { DispatchedEffects } from '../../../actors/runtime/publish/dispatched-effects.ts';
import type { Bus } from '../../../bus/bus.ts';
import { type Heartbeat, heartbeat } from '../../../bus/messages/heartbeat.ts';
import type { RouterCall } from '../../../bus/messages/router.ts';
import { partitionOf } from '../../../bus/partition.ts';
import { addresses, patternOf } from '../../../bus/subjects.ts';
import { silentLog } from '../../../shared/telemetry/log.ts';

const SILENCE_MS = 6_000;
const RETRY_MS = 1_000;

interface OwnerOptions {
  bus: Bus;
  /** Whether the result of a call is not in the command log. */
  isOpen(callId: string): boolean;
  lastOf(partition: number): number;
}

/** The dispatches of an actor host, by its own rules for what was lost; it has applied all commands at once, and is never lost itself. */
export class SimulatedOwner {
  readonly #bus: Bus;
  readonly #isOpen: OwnerOptions['isOpen'];
  readonly #dispatched: DispatchedEffects;
  /** By id. */
  readonly #calls = new Map<string, RouterCall>();

  constructor({ bus, isOpen, lastOf }: OwnerOptions) {
    this.#bus = bus;
    this.#isOpen = isOpen;
    this.#dispatched = new DispatchedEffects({
      ...{ bus, log: silentLog, silenceMs: SILENCE_MS, cursorOf: lastOf },
      onRefused: ({ id }) => this.#publish(id, { republished: false, earlierDeliveries: 0 }),
      onStored: () => {},
      onLost: ({ id }) => this.#publish(id, { republished: true, earlierDeliveries: 1 }),
    });
    bus.notices.subscribe(patternOf(addresses.heartbeats), (_, body) => this.#onHeartbeat(heartbeat.parse(JSON.parse(body))));
  }

  get callIds(): readonly string[] {
    return [...this.#calls.keys()];
  }

  dispatch(call: RouterCall & { reply: NonNullable<RouterCall['reply']> }): void {
    const { callId, reply } = call;
    this.#calls.set(callId, call);
    this.#bus.work.dispatch('router.turn', callId, Buffer.from(JSON.stringify(call)));
    this.#dispatched.follow({ id: callId, sessionId: reply.sessionId, partition: partitionOf(reply.sessionId) } as EffectRow);
  }

  /** The queue was lost. */
  publishAgain(): void {
    for (const callId of this.#calls.keys()) if (!this.#dispatched.has(callId)) this.#publish(callId, { republished: true, earlierDeliveries: 0 });
  }

  #onHeartbeat({ calls }: Heartbeat): void {
    this.#dispatched.onHeartbeat(calls);
  }

  /** Until the queue has it. */
  #publish(callId: string, queued: { republished: boolean; earlierDeliveries: number }): void {
    const call = this.#calls.get(callId);
    if (call === undefined || !this.#isOpen(callId)) return;
    const body = JSON.stringify({ ...call, republished: queued.republished });
    this.#bus.work.publish('router.turn', callId, body, queued.earlierDeliveries).catch(() => {
      setTimeout(() => this.#publish(callId, { ...queued, republished: true }), RETRY_MS);
    });
  }
}
