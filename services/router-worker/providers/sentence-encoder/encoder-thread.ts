import { Worker } from 'node:worker_threads';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { EncodedText, ToThread } from './encoder-messages.ts';

/** Beside the process's own. The weights lie outside of it, and count for no limit of a thread. */
const HEAP_MIB = 256;

interface Encoding {
  onEncoded(encoded: EncodedText): void;
  fail(error: SwitchyardError): void;
}

/** A thread that encodes one text at a time. What ends it is the error of that text. */
export class EncoderThread {
  readonly #worker: Worker;
  #encoding: Encoding | null = null;
  #isEnded = false;

  /** @param program JavaScript that answers each `ToThread` with an `EncodedText` */
  constructor(program: URL) {
    // No secret is within its reach, and what the library prints is no log line.
    this.#worker = new Worker(program, { execArgv: [], env: {}, stdout: true, stderr: true, resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB } });
    this.#worker.stdout.resume();
    this.#worker.stderr.resume();
    // A text in progress has a timer, which keeps the process alive for it.
    this.#worker.unref();
    this.#worker.on('message', (encoded: EncodedText) => this.#encoding?.onEncoded(encoded));
    this.#worker.on('error', (cause) => this.#fail(ended('its thread failed', { cause })));
    this.#worker.on('exit', () => this.#fail(ended('its thread ended')));
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /**
   * The first text waits for the weights, too.
   * @param limitMs after which the thread is ended
   * @throws `router.provider_unavailable`; the thread is over then
   */
  async encode(text: string, limitMs: number): Promise<EncodedText> {
    if (this.#isEnded) throw ended('its thread ended');
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise<EncodedText>((resolve, reject) => {
        this.#encoding = { onEncoded: resolve, fail: reject };
        timer = setTimeout(() => this.#fail(ended(`a text took more than ${limitMs} ms`, { details: { reason: 'timeout' } })), limitMs);
        this.#worker.postMessage({ text } satisfies ToThread);
      });
    } finally {
      clearTimeout(timer);
      this.#encoding = null;
    }
  }

  /** Also while a text is encoded, which fails. */
  async end(): Promise<void> {
    this.#fail(ended('it is shutting down'));
    await this.#worker.terminate();
  }

  #fail(error: SwitchyardError): void {
    this.#isEnded = true;
    this.#encoding?.fail(error);
    void this.#worker.terminate();
  }
}

function ended(why: string, options: ConstructorParameters<typeof SwitchyardError>[2] = {}): SwitchyardError {
  return new SwitchyardError('router.provider_unavailable', `the sentence encoder gave no vector: ${why}`, options);
}
