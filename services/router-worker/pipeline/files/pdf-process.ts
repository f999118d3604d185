import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { CallSignal } from '../../call-signal.ts';
import { unavailable } from '../engine-client.ts';
import type { FromReader, PdfEnd, ToReader } from './pdf-messages.ts';

export interface FileLimits extends Omit<ToReader, 'bytes'> {
  /** From the moment that the file has a process, in milliseconds. */
  timeMs: number;
  /** Of the thread that parses, in MiB. */
  heapMib: number;
}

const PROGRAM = fileURLToPath(new URL('./pdf-process.mjs', import.meta.url));

/** A process for one file at a time (ADR 71). What ends it is the file's error. */
export class PdfProcess {
  readonly #limits: FileLimits;
  readonly #child: ChildProcess;
  #isReady = false;
  #isEnded = false;
  #files = 0;
  #timer: NodeJS.Timeout | undefined;
  #reading: { onText(text: string): void; end(end: PdfEnd): void; fail(error: unknown): void } | null = null;

  constructor(limits: FileLimits) {
    this.#limits = limits;
    // No secret is within the reach of a file.
    this.#child = fork(PROGRAM, [String(limits.heapMib)], { execArgv: [], env: {}, serialization: 'advanced', stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
    this.#holdsLoop(false);
    this.#child.on('message', (reported) => this.#onReported(reported as FromReader));
    this.#child.on('error', () => this.#onExit());
    this.#child.on('exit', () => this.#onExit());
  }

  /** That it has read or begun. */
  get files(): number {
    return this.#files;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** A refused file ends the process. @param onText gets the text in pieces @throws `router.plugin_unavailable` when the process does not start, or is ended; the signal's reason */
  async read(bytes: Uint8Array, signal: CallSignal, onText: (text: string) => void): Promise<PdfEnd> {
    clearTimeout(this.#timer);
    this.#files += 1;
    this.#holdsLoop(true);
    let onAbort = () => {};
    let timer: NodeJS.Timeout | undefined;
    try {
      const end = await new Promise<PdfEnd>((resolve, reject) => {
        this.#reading = { onText, end: resolve, fail: reject };
        onAbort = () => reject(signal.reason);
        signal.addEventListener('abort', onAbort);
        const { timeMs, heapMib: _, ...limits } = this.#limits;
        timer = setTimeout(() => resolve({ type: 'refused', reason: 'time' }), timeMs);
        if (this.#isEnded) return this.#onExit();
        this.#child.send({ bytes, ...limits } satisfies ToReader, (error) => error !== null && this.#onExit());
      });
      if (end.type === 'refused') this.end();
      return end;
    } catch (error) {
      this.end();
      throw error;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      this.#reading = null;
      this.#holdsLoop(false);
    }
  }

  endAfter(ms: number, onEnded: () => void): void {
    this.#timer = setTimeout(() => {
      onEnded();
      this.end();
    }, ms).unref();
  }

  /** A file that is read fails with `router.plugin_unavailable`. */
  end(): void {
    clearTimeout(this.#timer);
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#reading?.fail(unavailable('pdf-text', 'it was ended'));
    this.#child.kill('SIGKILL');
  }

  async ended(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null || this.#child.pid === undefined) return;
    this.#holdsLoop(true);
    await once(this.#child, 'exit');
  }

  /** Whether this process waits for it before it ends. */
  #holdsLoop(holds: boolean): void {
    for (const handle of [this.#child, this.#child.channel]) holds ? handle?.ref() : handle?.unref();
  }

  #onReported(reported: FromReader): void {
    if (reported.type === 'ready') this.#isReady = true;
    else if (reported.type === 'text') this.#reading?.onText(reported.text);
    else this.#reading?.end(reported);
  }

  /** V8 ends the process when a list outgrows the heap in one step. */
  #onExit(): void {
    this.#isEnded = true;
    if (this.#isReady) this.#reading?.end({ type: 'refused', reason: 'memory' });
    else this.#reading?.fail(unavailable('pdf-text', 'its process did not start'));
  }
}
