import { destination } from 'pino';

/** Lines beyond it are dropped and counted: logging never blocks the process. */
const MAX_WAITING_BYTES = 1_048_576;

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
 * Writes lines asynchronously, and flushes when the process exits. After the reader has caught up with a full buffer, one line reports how many
 * were dropped.
 */
export function lineWriter({ fd, service, shape = (line) => line, onDrop = () => {} }: LineWriterOptions): LineWriter {
  const stream = destination({ dest: fd, sync: false, maxLength: MAX_WAITING_BYTES });
  let dropped = 0;
  stream.on('drop', () => {
    dropped += 1;
    onDrop();
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
  stream.on('error', () => {});
  return {
    write: (line) => {
      stream.write(shape(line));
    },
    end: () =>
      new Promise((resolve) => {
        stream.once('close', resolve);
        stream.end();
      }),
  };
}
