import type { Bus, Subscription } from '#bus/bus.ts';
import { deferredCallBytes } from '#bus/messages/deferred-call.ts';
import { type ClientCall, clientCallBytes } from '#bus/messages/router.ts';
import { type ErrorCode, failureOf, SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { failPoint } from '#shared/fail-points.ts';
import { ObjectMap } from '#shared/object-map.ts';
import type { ModelRequest } from '#shared/surfaces/surface.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { within } from '#shared/within.ts';
import type { GatewayLimits } from './limits.ts';

/** @param isUnsent no worker has the call, or can get it */
type OnLost = (error: unknown, isUnsent: boolean) => void;

/** The request of a call. */
interface SentRequest {
  value: ModelRequest;
  /** Its JSON in UTF-8, as its client sent it; null: the gateway has changed it. */
  asGiven: Uint8Array | null;
  /** Of the client's body, in bytes. */
  givenBytes: number;
}

/** Sends one call to a worker. */
export interface OutgoingCall {
  /**
   * Called once. Resolves when the call is dispatched or queued.
   * @param onLost called when it later turns out that the call could not be queued
   * @throws when the bus does not take the call; it may have, unless the error is a refusal (`isRefusal`)
   */
  send(onLost: OnLost): Promise<void>;
  /**
   * Queues a dispatched call after a long silence of its worker; idempotent.
   * @returns false when it is too late: the call is lost
   */
  resend(): boolean;
  /** Queues a dispatched call whose worker was lost after content: another worker ends and bills it. Idempotent; never throws. */
  settle(): void;
  /** Drops the body: the call has ended, so it is not sent again. */
  release(): void;
}

const NO_BYTES = Buffer.alloc(0);
/** The stream WORK dedupes for 120 s; a later publish could duplicate an item. */
const RESEND_WITHIN_MS = 100_000;

/** With which the bus takes nothing. After all others it may have taken what was sent. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set(['bus.full', 'bus.closed', 'bus.body_too_large']);

/** Whether the error of a call that was not sent says that no worker can get it. */
export function isRefusal(error: unknown): boolean {
  return REFUSALS.has(failureOf(error).code);
}

/** A dispatched call. `body` is null once released: references to the call must not retain its text. */
interface Dispatched {
  body: Buffer | null;
  /** Of a long text; 0: it is short. */
  readonly longBytes: number;
  readonly dispatchedAt: number;
  isQueued: boolean;
  onLost: OnLost;
}

interface Deps {
  bus: Pick<Bus, 'work' | 'flush'>;
  log: Log;
  limits: GatewayLimits;
  /** Monotonic; absent: `performance.now()`. */
  nowMs?: () => number;
}

/**
 * Sends calls to workers. A call is dispatched to a free slot, at most once; its text stays in memory until it ends, as the
 * worker may die: before content another one executes the call, after it another one bills what was shown. A detached call must survive this process, and long
 * ones share a byte budget: what is detached or beyond it is queued, which costs the broker a write to disk and a read.
 *
 *   dispatched ──refused: no free worker──▶ queued, as first delivery
 *        └──silence, no heartbeat of its worker──▶ queued, as second delivery
 */
export class CallSender {
  readonly #deps: Deps;
  readonly #nowMs: () => number;
  readonly #dispatched = new ObjectMap<Dispatched>();
  /** Of the long texts among them. */
  #longBytes = 0;
  readonly #refusals: Subscription;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#nowMs = deps.nowMs ?? (() => performance.now());
    this.#refusals = deps.bus.work.onRefused((callId) => this.#queueDispatched(callId, this.#dispatched.get(callId), 0));
  }

  /** @param onRelease called once, when the text is held no longer */
  begin(call: ClientCall, request: SentRequest, onRelease: () => void): OutgoingCall {
    const { value, asGiven } = request;
    const body = this.#deferredBytes(call, request) ?? clientCallBytes(call, asGiven ?? Buffer.from(JSON.stringify(value)));
    const longBytes = body.byteLength <= this.#deps.limits.shortDispatchBytes ? 0 : body.byteLength;
    const isDispatched = !call.detached && this.#mayDispatch(longBytes);
    return isDispatched ? this.#dispatchedCall(call, { body, longBytes }, onRelease) : this.#queuedCall(call.callId, body, onRelease);
  }

  /** Of a long call that is dispatched, with messages that its worker need not parse. Null: any other, and a request that became too large as it was written. */
  #deferredBytes(call: ClientCall, { value, givenBytes }: SentRequest): Buffer | null {
    const isShort = givenBytes <= this.#deps.limits.shortDispatchBytes;
    if (isShort || call.detached || call.embedding !== undefined || !this.#mayDispatch(givenBytes)) return null;
    const bytes = deferredCallBytes(call, value, givenBytes);
    return bytes !== null && this.#mayDispatch(bytes.byteLength) ? bytes : null;
  }

  #mayDispatch(longBytes: number): boolean {
    const { bus, limits } = this.#deps;
    const fits = () => longBytes <= Math.min(limits.longDispatchBytes, bus.work.maxDispatchBytes());
    return longBytes === 0 || (this.#longBytes + longBytes <= limits.longDispatchesBytes && fits());
  }

  stop(): Promise<void> {
    return this.#refusals.stop();
  }

  #dispatchedCall({ callId, want }: ClientCall, { body, longBytes }: Pick<Dispatched, 'body' | 'longBytes'>, onRelease: () => void): OutgoingCall {
    const dispatched: Dispatched = { body, longBytes, dispatchedAt: this.#nowMs(), isQueued: false, onLost: () => {} };
    this.#longBytes += longBytes;
    const { bus, log } = this.#deps;
    return {
      send: async (onLost) => {
        dispatched.onLost = onLost;
        this.#dispatched.set(callId, dispatched);
        // Connected to another broker since it began, whose messages are smaller.
        if (dispatched.longBytes > bus.work.maxDispatchBytes()) {
          dispatched.isQueued = true;
          return this.#queue(callId, dispatched.body ?? NO_BYTES, 0);
        }
        // no fail point, because nothing is stored of the call: it ends with its gateway
        bus.work.dispatch('router.call', callId, dispatched.body ?? NO_BYTES);
        // A stream's client waits for its first token; a lone call has nothing to be batched with.
        if (want === 'frames' || this.#dispatched.size === 1) bus.flush();
      },
      resend: () => {
        if (dispatched.isQueued) return true;
        if (this.#nowMs() - dispatched.dispatchedAt > RESEND_WITHIN_MS) return false;
        const fields = { call_id: callId, waited_ms: Math.round(this.#nowMs() - dispatched.dispatchedAt) };
        log.warn(fields, 'nothing came of a call in time, from a worker that is gone or too busy: the call is queued for another worker');
        this.#queueDispatched(callId, dispatched, 1);
        return true;
      },
      // Later than a call may be sent again, since one of which content was shown is not executed a second time.
      settle: () => this.#queueDispatched(callId, dispatched, 1),
      release: () => {
        if (dispatched.body === null) return;
        dispatched.body = null;
        this.#longBytes -= dispatched.longBytes;
        this.#dispatched.delete(callId);
        onRelease();
      },
    };
  }

  /** At most once: from then on redelivery is up to the queue. */
  #queueDispatched(callId: string, dispatched: Dispatched | undefined, earlierDeliveries: number): void {
    if (dispatched === undefined || dispatched.isQueued || dispatched.body === null) return;
    dispatched.isQueued = true;
    this.#queue(callId, dispatched.body, earlierDeliveries).catch((error) => dispatched.onLost(error, earlierDeliveries === 0 && isRefusal(error)));
  }

  #queuedCall(callId: string, bytes: Buffer, onRelease: () => void): OutgoingCall {
    let body: Buffer | null = bytes;
    return {
      send: () => {
        const sent = this.#queue(callId, body ?? NO_BYTES, 0).finally(onRelease);
        // The bus has the text now; this closure would retain it until the response ends.
        body = null;
        return sent;
      },
      resend: () => true,
      settle: () => {},
      release: () => {},
    };
  }

  /** Stored once it resolves. Idempotent: the call id is the message id. */
  async #queue(callId: string, body: Buffer, earlierDeliveries: number): Promise<void> {
    const { bus, limits } = this.#deps;
    const late = () => {
      throw new SwitchyardError('service.not_ready', 'the bus did not accept the call in time', { details: { retryAfterMs: limits.retryAfterMs } });
    };
    await within(limits.publishMs, bus.work.publish('router.call', callId, body.toString(), earlierDeliveries), late);
    failPoint('call.queued');
  }
}
