import { writeSync } from 'node:fs';
import { destination } from 'pino';

/** Lines beyond it are dropped and counted: logging never blocks the process. */
const MAX_WAITING_BYTES = 1_048_576;

/**
 * How long a line at `info` or below waits for others. A write costs many times a line: a thread of the pool and the reader are woken for it, often on the
 * core of this process.
 */
const HELD_MS = 20;
/** Held lines are written before their time beyond it. */
const MAX_HELD_CHARACTERS = 16_384;
/** As pino begins the line. */
const HELD_LEVELS = /^\{"level":"(trace|debug|info)"/;

/** How long an exit waits for a reader that takes nothing: then what is left is lost. */
const AT_EXIT_MS = 1_000;
/** Between two tries at a full pipe. */
const AT_EXIT_PAUSE_MS = 10;

/** Writes log lines without blocking. */
export interface LineWriter {
  write(line: string): void;
  /** Flushes, then closes the descriptor. */
  end(): Promise<void>;
}

interface LineWriterOptions {
  fd: number;
  service: string;
  /** Gets each line with its line end. */
  shape?: (line: string) => string;
  onDrop?: () => void;
}

/** Of all open writers: one listener of the process, however many logs it makes. */
const flushesAtExit = new Set<(untilMs: number) => void>();
let listens = false;

function flushAllAtExit(): void {
  const untilMs = performance.now() + AT_EXIT_MS;
  for (const flush of flushesAtExit) flush(untilMs);
}

/**
 * Writes lines asynchronously, those of some milliseconds at once, and what is left when the process exits. A warning or an error is written without a pause,
 * behind the lines before it. After the reader has caught up with a full buffer, one line reports how many were dropped.
 */
export function lineWriter({ fd, service, shape = (line) => line, onDrop = () => {} }: LineWriterOptions): LineWriter {
  /** Null until the process exits. */
  let exitUntilMs: number | null = null;
  const isLate = () => exitUntilMs !== null && performance.now() >= exitUntilMs;
  const stream = destination({ dest: fd, sync: false, maxLength: MAX_WAITING_BYTES, retryEAGAIN: () => !isLate() });
  let dropped = 0;
  stream.on('drop', (lines: string) => {
    for (let at = lines.indexOf('\n'); at >= 0; at = lines.indexOf('\n', at + 1)) {
      dropped += 1;
      onDrop();
    }
  });
  stream.on('drain', () => {
    if (dropped === 0) return;
    const line = {
      level: 'warn',
      time: new Date().toISOString(),
      service,
      pid: process.pid,
      dropped,
      msg: 'log lines were dropped: their reader was too slow',
    };
    dropped = 0;
    stream.write(shape(`${JSON.stringify(line)}\n`));
  });
  // A closed terminal must not end the process.
  stream.on('error', ignore);

  let held = '';
  let timer: NodeJS.Timeout | null = null;
  const takeHeld = () => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    const lines = held;
    held = '';
    return lines;
  };
  const flush = () => {
    const lines = takeHeld();
    if (lines !== '') stream.write(lines);
  };
  const writeAtExit = (lines: string) => {
    try {
      writeAll(fd, Buffer.from(lines), isLate);
    } catch {
      // Closed, or full for too long.
    }
  };
  /** Before the stream's own listener, which would try a full pipe for ever. A write of the stream would be asynchronous, and may not be done any more. */
  const flushAtExit = (untilMs: number) => {
    exitUntilMs = untilMs;
    const lines = takeHeld();
    try {
      stream.flushSync();
    } catch {
      // Closed, or full for too long.
    }
    writeAtExit(lines);
    stream.destroy();
  };
  flushesAtExit.add(flushAtExit);
  if (!listens) process.prependListener('exit', flushAllAtExit);
  listens = true;
  return {
    write: (line) => {
      if (exitUntilMs !== null) return writeAtExit(shape(line));
      held += shape(line);
      if (held.length > MAX_HELD_CHARACTERS || !HELD_LEVELS.test(line)) flush();
      else timer ??= setTimeout(flush, HELD_MS).unref();
    },
    end: () => {
      flush();
      return new Promise((resolve) => {
        stream.once('close', () => {
          flushesAtExit.delete(flushAtExit);
          resolve();
        });
        stream.end();
      });
    },
  };
}

function ignore(): void {}

/** @throws once `isLate` and the pipe is full, or when it is closed */
function writeAll(fd: number, bytes: Buffer, isLate: () => boolean): void {
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (let left = bytes; left.byteLength > 0; ) {
    try {
      left = left.subarray(writeSync(fd, left));
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN') || isLate()) throw error;
      Atomics.wait(pause, 0, 0, AT_EXIT_PAUSE_MS);
    }
  }
}
