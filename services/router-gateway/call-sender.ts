import type { Bus, Subscription } from '#bus/bus.ts';
import { type ClientCall, clientCallText } from '#bus/messages/router.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { Dictionary } from '#shared/object-map.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { GatewayLimits } from './limits.ts';
import { within } from './within.ts';

/** A call on its way to a worker. */
export interface CallSending {
  /**
   * Called once. Resolves when a worker has it or will get it, as far as can be told.
   * @param onLost called when it turns out later that no worker can get it
   * @throws when it could not be put on the bus
   */
  send(onLost: (error: unknown) => void): Promise<void>;
  /**
   * Nothing was heard of the call for long: another worker gets it, unless it waits for one already. Does so once.
   * @returns false when it is too late for that: the call is lost
   */
  sendAgain(): boolean;
  /** It need not be sent again: an answer has begun, or nobody waits for it. */
  forget(): void;
}

/** The bus knows an item again for 120 s; put on the queue after that, it could meet itself there. */
const SENT_AGAIN_WITHIN_MS = 100_000;

/** An offered call. Without its text once that is not needed: what holds on to the call must not hold on to the text. */
interface Held {
  body: string | null;
  readonly offeredAt: number;
  isQueued: boolean;
  onLost: (error: unknown) => void;
}

interface Deps {
  bus: Pick<Bus, 'work' | 'hurry'>;
  log: Log;
  limits: GatewayLimits;
}

/**
 * Brings calls to workers. A small one is offered: handed to a worker that is free, which costs the broker no more than passing it on, and
 * kept here until its answer begins, since whoever has it may die. Hearing nothing of it, the gateway puts it on the queue. A large one is
 * not worth the memory, and a detached one outlives this process: those go to the queue at once.
 *
 *   offered ──refused: no worker is there──▶ queued, and delivered as for the first time
 *      └──silence, though workers speak of each call that they make──▶ queued, and delivered as for the second time
 */
export class CallSender {
  readonly #deps: Deps;
  readonly #held = new Dictionary<Held>();
  readonly #refusals: Subscription;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#refusals = deps.bus.work.onRefused((callId) => this.#queueHeld(callId, this.#held.get(callId), 0));
  }

  /**
   * @param requestText JSON of the request: mostly the client's own, which was read and found good, and need not be written anew
   * @param onForget called once, when its text is not held any more
   */
  begin(call: ClientCall, requestText: string, onForget: () => void): CallSending {
    const body = clientCallText(call, requestText);
    const isOffered = !call.detached && body.length <= this.#deps.limits.offeredCharacters;
    return isOffered ? this.#offering(call, body, onForget) : this.#queueing(call.callId, body, onForget);
  }

  stop(): Promise<void> {
    return this.#refusals.stop();
  }

  #offering({ callId, want }: ClientCall, body: string, onForget: () => void): CallSending {
    const held: Held = { body, offeredAt: performance.now(), isQueued: false, onLost: () => {} };
    const { bus, log } = this.#deps;
    return {
      send: async (onLost) => {
        held.onLost = onLost;
        this.#held.set(callId, held);
        bus.work.offer('router.call', callId, held.body ?? '');
        // Of a stream its client waits for the first word. One that is alone has nothing to wait for.
        if (want === 'frames' || this.#held.size === 1) bus.hurry();
      },
      sendAgain: () => {
        if (held.isQueued) return true;
        if (performance.now() - held.offeredAt > SENT_AGAIN_WITHIN_MS) return false;
        log.warn({ call_id: callId }, 'nothing is heard of the worker of a call: it is put on the queue');
        this.#queueHeld(callId, held, 1);
        return true;
      },
      forget: () => {
        if (held.body === null) return;
        held.body = null;
        this.#held.delete(callId);
        onForget();
      },
    };
  }

  /** At most once: from then on the queue sees to it that it comes to a worker. */
  #queueHeld(callId: string, held: Held | undefined, earlierDeliveries: number): void {
    if (held === undefined || held.isQueued || held.body === null) return;
    held.isQueued = true;
    this.#queue(callId, held.body, earlierDeliveries).catch((error) => held.onLost(error));
  }

  #queueing(callId: string, text: string, onForget: () => void): CallSending {
    let body: string | null = text;
    return {
      send: () => {
        const sent = this.#queue(callId, body ?? '', 0).finally(onForget);
        // The bus has it from here on: what still held it would do so for as long as the answer takes.
        body = null;
        return sent;
      },
      sendAgain: () => true,
      forget: () => {},
    };
  }

  /** Durable once it resolves. A second publish of the same call would change nothing: the call id is the message id. */
  async #queue(callId: string, body: string, earlierDeliveries: number): Promise<void> {
    const { bus, limits } = this.#deps;
    const late = () => new SwitchyardError('service.not_ready', 'the bus did not take the call in time', { details: { retryAfterMs: limits.retryAfterMs } });
    await within(limits.publishMs, bus.work.publish('router.call', callId, body, earlierDeliveries), late);
  }
}
