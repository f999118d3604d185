import type { Bus, Subscription } from '#bus/bus.ts';
import { type ClientCall, clientCallText } from '#bus/messages/router.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { ObjectMap } from '#shared/object-map.ts';
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
  release(): void;
}

/** The bus knows an item again for 120 s; put on the queue after that, it could meet itself there. */
const SENT_AGAIN_WITHIN_MS = 100_000;

/** An offered call. Without its text once that is not needed: what holds on to the call must not hold on to the text. */
interface Dispatched {
  body: string | null;
  readonly dispatchedAt: number;
  isQueued: boolean;
  onLost: (error: unknown) => void;
}

interface Deps {
  bus: Pick<Bus, 'work' | 'flush'>;
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
  readonly #dispatched = new ObjectMap<Dispatched>();
  readonly #refusals: Subscription;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#refusals = deps.bus.work.onRefused((callId) => this.#queueDispatched(callId, this.#dispatched.get(callId), 0));
  }

  /**
   * @param requestText JSON of the request: mostly the client's own, which was read and found good, and need not be written anew
   * @param onRelease called once, when its text is not held any more
   */
  begin(call: ClientCall, requestText: string, onRelease: () => void): CallSending {
    const body = clientCallText(call, requestText);
    const isDispatched = !call.detached && body.length <= this.#deps.limits.dispatchedCharacters;
    return isDispatched ? this.#dispatching(call, body, onRelease) : this.#queueing(call.callId, body, onRelease);
  }

  stop(): Promise<void> {
    return this.#refusals.stop();
  }

  #dispatching({ callId, want }: ClientCall, body: string, onRelease: () => void): CallSending {
    const dispatched: Dispatched = { body, dispatchedAt: performance.now(), isQueued: false, onLost: () => {} };
    const { bus, log } = this.#deps;
    return {
      send: async (onLost) => {
        dispatched.onLost = onLost;
        this.#dispatched.set(callId, dispatched);
        bus.work.dispatch('router.call', callId, dispatched.body ?? '');
        // Of a stream its client waits for the first word. One that is alone has nothing to wait for.
        if (want === 'frames' || this.#dispatched.size === 1) bus.flush();
      },
      sendAgain: () => {
        if (dispatched.isQueued) return true;
        if (performance.now() - dispatched.dispatchedAt > SENT_AGAIN_WITHIN_MS) return false;
        log.warn({ call_id: callId }, 'nothing is heard of the worker of a call: it is put on the queue');
        this.#queueDispatched(callId, dispatched, 1);
        return true;
      },
      release: () => {
        if (dispatched.body === null) return;
        dispatched.body = null;
        this.#dispatched.delete(callId);
        onRelease();
      },
    };
  }

  /** At most once: from then on the queue sees to it that it comes to a worker. */
  #queueDispatched(callId: string, dispatched: Dispatched | undefined, earlierDeliveries: number): void {
    if (dispatched === undefined || dispatched.isQueued || dispatched.body === null) return;
    dispatched.isQueued = true;
    this.#queue(callId, dispatched.body, earlierDeliveries).catch((error) => dispatched.onLost(error));
  }

  #queueing(callId: string, text: string, onRelease: () => void): CallSending {
    let body: string | null = text;
    return {
      send: () => {
        const sent = this.#queue(callId, body ?? '', 0).finally(onRelease);
        // The bus has it from here on: what still held it would do so for as long as the answer takes.
        body = null;
        return sent;
      },
      sendAgain: () => true,
      release: () => {},
    };
  }

  /** Durable once it resolves. A second publish of the same call would change nothing: the call id is the message id. */
  async #queue(callId: string, body: string, earlierDeliveries: number): Promise<void> {
    const { bus, limits } = this.#deps;
    const late = () => new SwitchyardError('service.not_ready', 'the bus did not take the call in time', { details: { retryAfterMs: limits.retryAfterMs } });
    await within(limits.publishMs, bus.work.publish('router.call', callId, body, earlierDeliveries), late);
  }
}
