import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { CallSignal } from '../../call-signal.ts';
import type { EncodedText } from './encoder-messages.ts';
import { EncoderThread } from './encoder-thread.ts';

interface EncoderLimits {
  /** Texts that wait for the thread, one per call in progress; more are refused. */
  waiting: number;
  /** Of one text, and of the start for the first one, in milliseconds: then the thread hangs, and is ended. */
  textMs: number;
  /** A thread without a text ends after this time, in milliseconds: it has some 125 MiB. */
  idleMs: number;
}

const encoderLimits: EncoderLimits = { waiting: 256, textMs: 60_000, idleMs: 60_000 };

interface EncoderOptions extends Partial<EncoderLimits> {
  /** JavaScript of the thread; absent: the model. */
  program?: URL;
}

interface Waiting {
  text: string;
  onEncoded(encoded: EncodedText): void;
  fail(error: unknown): void;
}

/** Encodes texts one after the other in a thread, which the first of them starts; the next text after its end starts another one (ADR 140). */
export class Encoder {
  readonly #limits: EncoderLimits;
  readonly #program: URL;
  readonly #waiting = new Set<Waiting>();
  #thread: EncoderThread | null = null;
  #isEncoding = false;
  #isClosed = false;
  #idle: NodeJS.Timeout | undefined;

  constructor({ program = new URL('./encoder-thread.mjs', import.meta.url), ...limits }: EncoderOptions = {}) {
    this.#limits = { ...encoderLimits, ...limits };
    this.#program = program;
  }

  /**
   * An aborted text is not waited for. One that has begun is encoded to its end, or to its time limit, before the next begins.
   * @throws `router.provider_overloaded` when too many texts wait; `router.provider_unavailable` for a thread that ends or hangs; the signal's reason
   */
  async encode(text: string, signal: CallSignal): Promise<EncodedText> {
    signal.throwIfAborted();
    if (this.#isClosed) throw closed();
    if (this.#waiting.size >= this.#limits.waiting) {
      throw new SwitchyardError('router.provider_overloaded', 'too many texts wait for the sentence encoder');
    }
    let onAbort = () => {};
    try {
      return await new Promise<EncodedText>((resolve, reject) => {
        const waiting: Waiting = { text, onEncoded: resolve, fail: reject };
        onAbort = () => {
          this.#waiting.delete(waiting);
          reject(signal.reason);
        };
        signal.addEventListener('abort', onAbort);
        this.#waiting.add(waiting);
        this.#beginNext();
      });
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  /** Ends the thread; texts in progress fail. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#idle);
    for (const waiting of this.#waiting) waiting.fail(closed());
    this.#waiting.clear();
    await this.#thread?.end();
  }

  #beginNext(): void {
    const [next] = this.#waiting;
    if (this.#isEncoding || next === undefined) return;
    clearTimeout(this.#idle);
    this.#waiting.delete(next);
    this.#isEncoding = true;
    void this.#encodeNow(next);
  }

  /** Never rejects. */
  async #encodeNow({ text, onEncoded, fail }: Waiting): Promise<void> {
    try {
      if (this.#thread === null || this.#thread.isEnded) this.#thread = new EncoderThread(this.#program);
      onEncoded(await this.#thread.encode(text, this.#limits.textMs));
    } catch (error) {
      fail(error);
    }
    this.#isEncoding = false;
    if (this.#waiting.size > 0) this.#beginNext();
    else if (!this.#isClosed) this.#idle = setTimeout(() => void this.#thread?.end(), this.#limits.idleMs).unref();
  }
}

function closed(): SwitchyardError {
  return new SwitchyardError('router.provider_unavailable', 'the sentence encoder is shutting down');
}
