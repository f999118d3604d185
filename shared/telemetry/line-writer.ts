import { destination } from 'pino';

/** Lines that wait for a slow reader. What comes beyond is dropped and counted: a log never holds the process up. */
const MAX_WAITING_BYTES = 1_048_576;

export interface LineWriter {
  write(line: string): void;
  /** Writes what waits, then closes the descriptor. */
  end(): Promise<void>;
}

interface LineWriterOptions {
  fd: number;
  service: string;
  /** Makes of each line, its end included, what is written. */
  shape?: (line: string) => string;
  onDrop?: () => void;
}

/**
 * Writes lines behind the back of the caller, and what is left of them when the process exits. Once the reader has caught up with a full
 * buffer, a line of its own says how many were dropped.
 * @param onDrop called for each line that is dropped
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
  // A log that can't be written, say to a terminal that is gone, is no reason to end a process that does its work.
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
