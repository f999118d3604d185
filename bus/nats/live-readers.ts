import { Dictionary } from '#shared/object-map.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Listening } from '../bus.ts';
import { eachFrameIn, liveAddressOf, livePatternOf } from './live-batches.ts';

type FrameHandler = (subject: string, frame: Uint8Array) => void;

interface Reader {
  readonly handler: FrameHandler;
  stopped: boolean;
}

/** What is read of one origin. Lists are never changed, only replaced, so that a reader may leave while frames are handed out. */
interface Heard {
  readonly listening: Listening;
  ofAllCalls: readonly Reader[];
  readonly ofOneCall: Map<string, readonly Reader[]>;
}

interface LiveReadersDeps {
  /** Hears the messages of a pattern at the broker. */
  listen(pattern: string, handler: (subject: string, message: Uint8Array) => void): Listening;
  log: Log;
}

const NOBODY: readonly Reader[] = [];

/**
 * Who reads live frames. A batch holds frames of many calls, and the broker sends it to each subscription: so there is one for each origin,
 * however many of its calls are read here. With one for each call, a gateway to which the streams of another have come would be sent all
 * of them as often as there are.
 */
export class LiveReaders {
  readonly #deps: LiveReadersDeps;
  readonly #origins = new Dictionary<Heard>();

  constructor(deps: LiveReadersDeps) {
    this.#deps = deps;
  }

  /** @param pattern of the subjects at which the frames are kept: of one call, or of all calls of an origin */
  read(pattern: string, handler: FrameHandler): Listening {
    const { origin, callId } = liveAddressOf(pattern);
    const heard = this.#origins.get(origin) ?? this.#hear(origin);
    const reader: Reader = { handler, stopped: false };
    if (callId === '*') heard.ofAllCalls = [...heard.ofAllCalls, reader];
    else heard.ofOneCall.set(callId, [...(heard.ofOneCall.get(callId) ?? NOBODY), reader]);
    return {
      ready: () => heard.listening.ready(),
      stop: async () => {
        if (reader.stopped) return;
        reader.stopped = true;
        forget(heard, callId, reader);
        if (heard.ofAllCalls.length > 0 || heard.ofOneCall.size > 0) return;
        this.#origins.delete(origin);
        await heard.listening.stop();
      },
    };
  }

  #hear(origin: string): Heard {
    const listening = this.#deps.listen(livePatternOf(origin), (subject, message) => this.#take(heard, subject, message));
    const heard: Heard = { listening, ofAllCalls: NOBODY, ofOneCall: new Map() };
    this.#origins.set(origin, heard);
    return heard;
  }

  #take(heard: Heard, subject: string, message: Uint8Array): void {
    eachFrameIn(subject, message, (keptAt, callId, frame) => {
      for (const reader of heard.ofAllCalls) this.#give(reader, keptAt, callId, frame);
      if (heard.ofOneCall.size > 0) for (const reader of heard.ofOneCall.get(callId) ?? NOBODY) this.#give(reader, keptAt, callId, frame);
    });
  }

  /** A reader that throws has lost a frame, and nobody else has. */
  #give(reader: Reader, keptAt: string, callId: string, frame: Uint8Array): void {
    if (reader.stopped) return;
    const subject = `${keptAt}${callId}`;
    try {
      reader.handler(subject, frame);
    } catch (fault) {
      this.#deps.log.error({ err: fault, subject }, 'a handler of notices or tokens threw');
    }
  }
}

function forget(heard: Heard, callId: string, reader: Reader): void {
  const others = (readers: readonly Reader[]) => readers.filter((one) => one !== reader);
  if (callId === '*') {
    heard.ofAllCalls = others(heard.ofAllCalls);
    return;
  }
  const left = others(heard.ofOneCall.get(callId) ?? NOBODY);
  if (left.length > 0) heard.ofOneCall.set(callId, left);
  else heard.ofOneCall.delete(callId);
}
