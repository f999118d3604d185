import type { Bus } from '#bus/bus.ts';
import { addresses, patternOf } from '#bus/subjects.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Log } from '#shared/telemetry/log.ts';

/** Who waits for the frames of one call. Neither function throws. */
interface FrameReader {
  onFrame(frame: Uint8Array): void;
  /** The gateway gives the call up. */
  onEnd(error: SwitchyardError): void;
}

export interface TokenDemux {
  /** Workers send the frames of this gateway's calls to `tok.<origin>.<call>`. */
  readonly origin: string;
  /** From now on the reader gets every frame of the call, until the returned function is called. */
  hold(callId: string, reader: FrameReader): () => void;
  /** Ends every call that is held. */
  endAll(error: SwitchyardError): void;
  stop(): Promise<void>;
}

/** One subscription for the life of a gateway; frames find their reader in memory, since an interest change per call would reach every broker. */
export function openTokenDemux({ bus, origin, log }: { bus: Bus; origin: string; log: Log }): TokenDemux {
  const readers = new Map<string, FrameReader>();
  const pattern = patternOf(addresses.tokens, origin);
  const callIdAt = pattern.length - '*'.length;
  const subscription = bus.tokens.subscribe(pattern, (subject, frame) => {
    const reader = readers.get(subject.slice(callIdAt));
    // No reader: the client has left, and the worker has not heard yet.
    if (reader === undefined) return;
    try {
      reader.onFrame(frame);
    } catch (error) {
      log.error({ err: error, subject }, 'a frame could not be relayed');
      reader.onEnd(new SwitchyardError('internal', 'relaying a frame', { cause: error }));
    }
  });

  return {
    origin,
    hold: (callId, reader) => {
      readers.set(callId, reader);
      return () => readers.delete(callId);
    },
    endAll: (error) => {
      for (const reader of [...readers.values()]) reader.onEnd(error);
    },
    stop: () => subscription.stop(),
  };
}
