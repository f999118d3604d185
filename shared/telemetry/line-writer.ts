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

/**
 * Writes lines asynchronously, those of some milliseconds at once, and what is left when the process exits. A warning or an error is written without a pause,
 * behind the lines before it. After the reader has caught up with a full buffer, one line reports how many were dropped.
 */
export function lineWriter({ fd, service, shape = (line) => line, onDrop = () => {} }: LineWriterOptions): LineWriter {
  const stream = destination({ dest: fd, sync: false, maxLength: MAX_WAITING_BYTES });
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
  /** A write of the stream would be asynchronous, and may not be done any more. */
  const flushAtExit = () => {
    const lines = takeHeld();
    if (lines !== '') destination({ dest: fd, sync: true }).on('error', ignore).write(lines);
  };
  // Behind the stream's own listener, which writes what it has in its buffer.
  process.on('exit', flushAtExit);
  return {
    write: (line) => {
      held += shape(line);
      if (held.length > MAX_HELD_CHARACTERS || !HELD_LEVELS.test(line)) flush();
      else timer ??= setTimeout(flush, HELD_MS).unref();
    },
    end: () => {
      flush();
      process.off('exit', flushAtExit);
      return new Promise((resolve) => {
        stream.once('close', resolve);
        stream.end();
      });
    },
  };
}

function ignore(): void {}
