import { ObjectMap } from '#shared/object-map.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Listening } from '../../bus.ts';
import { eachFrameIn, liveAddressOf, livePatternOf } from './live-batches.ts';

type FrameHandler = (subject: string, frame: Uint8Array) => void;

interface Reader {
  readonly handler: FrameHandler;
  stopped: boolean;
}

/** Lists are replaced, never changed: a reader may stop during a delivery. */
interface OriginSubscription {
  readonly listening: Listening;
  ofAllCalls: readonly Reader[];
  readonly ofOneCall: Map<string, readonly Reader[]>;
}

interface LiveReadersDeps {
  /** Subscribes at the broker. */
  listen(pattern: string, handler: (subject: string, message: Uint8Array) => void): Listening;
  log: Log;
}

const NO_READERS: readonly Reader[] = [];

/**
 * The readers of live frames, with one subscription per origin: with one per call, a gateway would get each batch of an origin as often as it reads calls of
 * it.
 */
export class LiveReaders {
  readonly #deps: LiveReadersDeps;
  readonly #origins = new ObjectMap<OriginSubscription>();

  constructor(deps: LiveReadersDeps) {
    this.#deps = deps;
  }

  /** @param pattern of stored frames (`tok.…`): of one call, or all of an origin */
  read(pattern: string, handler: FrameHandler): Listening {
    const { origin, callId } = liveAddressOf(pattern);
    const subscription = this.#origins.get(origin) ?? this.#subscribe(origin);
    const reader: Reader = { handler, stopped: false };
    if (callId === '*') subscription.ofAllCalls = [...subscription.ofAllCalls, reader];
    else subscription.ofOneCall.set(callId, [...(subscription.ofOneCall.get(callId) ?? NO_READERS), reader]);
    return {
      ready: () => subscription.listening.ready(),
      stop: async () => {
        if (reader.stopped) return;
        reader.stopped = true;
        removeReader(subscription, callId, reader);
        if (subscription.ofAllCalls.length > 0 || subscription.ofOneCall.size > 0) return;
        this.#origins.delete(origin);
        await subscription.listening.stop();
      },
    };
  }

  #subscribe(origin: string): OriginSubscription {
    const listening = this.#deps.listen(livePatternOf(origin), (subject, message) => this.#onMessage(subscription, subject, message));
    const subscription: OriginSubscription = { listening, ofAllCalls: NO_READERS, ofOneCall: new Map() };
    this.#origins.set(origin, subscription);
    return subscription;
  }

  #onMessage(subscription: OriginSubscription, subject: string, message: Uint8Array): void {
    eachFrameIn(subject, message, (retainedAt, callId, frame) => {
      for (const reader of subscription.ofAllCalls) this.#deliver(reader, retainedAt, callId, frame);
      if (subscription.ofOneCall.size > 0)
        for (const reader of subscription.ofOneCall.get(callId) ?? NO_READERS) this.#deliver(reader, retainedAt, callId, frame);
    });
  }

  /** A reader that throws misses a frame; others don't. */
  #deliver(reader: Reader, retainedAt: string, callId: string, frame: Uint8Array): void {
    if (reader.stopped) return;
    const subject = `${retainedAt}${callId}`;
    try {
      reader.handler(subject, frame);
    } catch (fault) {
      this.#deps.log.error({ err: fault, subject }, 'a handler of notices or tokens threw');
    }
  }
}

function removeReader(subscription: OriginSubscription, callId: string, reader: Reader): void {
  const others = (readers: readonly Reader[]) => readers.filter((one) => one !== reader);
  if (callId === '*') {
    subscription.ofAllCalls = others(subscription.ofAllCalls);
    return;
  }
  const left = others(subscription.ofOneCall.get(callId) ?? NO_READERS);
  if (left.length > 0) subscription.ofOneCall.set(callId, left);
  else subscription.ofOneCall.delete(callId);
}
