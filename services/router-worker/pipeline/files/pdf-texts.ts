import { availableParallelism } from 'node:os';
import { cleanText } from '#shared/clean-text.ts';
import { MAX_FILE_PAGES } from '#shared/credit/parsed-files.ts';
import type { CallSignal } from '../../call-signal.ts';
import { unavailable } from '../engine-client.ts';
import type { PdfRefusal } from './pdf-messages.ts';
import { type FileLimits, PdfProcess } from './pdf-process.ts';

export type PdfReading = { type: 'read'; text: string; pages: number } | { type: 'refused'; reason: PdfRefusal };

interface PdfLimits extends FileLimits {
  /** Files that are read at once. */
  processes: number;
  /** A process is replaced after so many files: caches of the library, and whatever a file has left there. */
  filesPerProcess: number;
  /** Files that wait for a process, and their bytes; more are refused. */
  waiting: number;
  waitingBytes: number;
  /** A process without a file ends after this time, in milliseconds. */
  idleMs: number;
}

const MIB = 1_024 * 1_024;

/** Of one worker. A file's limits stand in the message of its error. */
export const pdfLimits: PdfLimits = {
  pages: MAX_FILE_PAGES,
  textChars: 2 * MIB,
  timeMs: 30_000,
  heapMib: 192,
  memoryBytes: 256 * MIB,
  // One core is left to the event loop, and a container's memory holds both.
  processes: Math.min(2, Math.max(1, availableParallelism() - 1)),
  filesPerProcess: 50,
  waiting: 64,
  waitingBytes: 128 * MIB,
  idleMs: 60_000,
};

/** Reads the text of PDFs. */
export interface PdfTexts {
  /** @returns its text, cleaned @throws `router.plugin_unavailable` when too many files wait, or no process can be started; the signal's reason */
  read(bytes: Uint8Array, signal: CallSignal): Promise<PdfReading>;
}

interface Waiting {
  begin(): void;
}

/** In processes of their own, so that neither time nor memory of a file is that of the event loop. They are started by the first files. */
export class PdfProcesses implements PdfTexts {
  readonly #limits: PdfLimits;
  readonly #idle: PdfProcess[] = [];
  readonly #all = new Set<PdfProcess>();
  #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #reading = 0;
  #isClosed = false;

  /** @param limits others than `pdfLimits`, for tests */
  constructor(limits: Partial<PdfLimits> = {}) {
    this.#limits = { ...pdfLimits, ...limits };
  }

  async read(bytes: Uint8Array, signal: CallSignal): Promise<PdfReading> {
    signal.throwIfAborted();
    if (this.#isClosed) throw closed();
    if (this.#reading < this.#limits.processes) this.#reading += 1;
    else await this.#turn(bytes.byteLength, signal);
    try {
      return await this.#readNow(bytes, signal);
    } finally {
      this.#passTurn();
    }
  }

  /** Ends all processes, also those that read. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const all = [...this.#all];
    for (const process of all) process.end();
    await Promise.all(all.map((process) => process.ended()));
  }

  async #readNow(bytes: Uint8Array, signal: CallSignal): Promise<PdfReading> {
    if (this.#isClosed) throw closed();
    const process = this.#acquire();
    try {
      const pieces: string[] = [];
      const end = await process.read(bytes, signal, (text) => pieces.push(cleanText(text)));
      return end.type === 'refused' ? end : { type: 'read', text: pieces.join('').trim(), pages: end.pages };
    } finally {
      this.#release(process);
    }
  }

  /** Waits for the end of another file. */
  #turn(bytes: number, signal: CallSignal): Promise<void> {
    const { waiting, waitingBytes } = this.#limits;
    if (this.#waiting.length >= waiting || this.#waitingBytes + bytes > waitingBytes) throw unavailable('pdf-text', 'too many files wait for it');
    return new Promise((resolve, reject) => {
      const leave = () => {
        signal.removeEventListener('abort', onAbort);
        this.#waiting = this.#waiting.filter((other) => other !== entry);
        this.#waitingBytes -= bytes;
      };
      const entry: Waiting = {
        begin: () => {
          leave();
          resolve();
        },
      };
      const onAbort = () => {
        leave();
        reject(signal.reason);
      };
      this.#waiting.push(entry);
      this.#waitingBytes += bytes;
      signal.addEventListener('abort', onAbort);
    });
  }

  #acquire(): PdfProcess {
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      if (!idle.isEnded) return idle;
      this.#all.delete(idle);
    }
    const process = new PdfProcess(this.#limits);
    this.#all.add(process);
    return process;
  }

  #release(process: PdfProcess): void {
    if (this.#isClosed || process.isEnded || process.files >= this.#limits.filesPerProcess) this.#drop(process);
    else {
      this.#idle.push(process);
      process.endAfter(this.#limits.idleMs, () => this.#drop(process));
    }
  }

  /** To the file that has waited longest. */
  #passTurn(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#reading -= 1;
    else next.begin();
  }

  #drop(process: PdfProcess): void {
    const at = this.#idle.indexOf(process);
    if (at !== -1) this.#idle.splice(at, 1);
    this.#all.delete(process);
    process.end();
  }
}

function closed(): Error {
  return unavailable('pdf-text', 'it is shutting down');
}
