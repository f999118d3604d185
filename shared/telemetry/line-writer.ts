import { destination } from 'pino';

/** Buffer for a slow reader. Lines beyond it are dropped and counted: logging never blocks the process. */
const MAX_WAITING_BYTES = 1_048_576;

export interface LineWriter {
  write(line: string): void;
  /** Flushes the buffer, then closes the descriptor. */
  end(): Promise<void>;
}

interface LineWriterOptions {
  fd: number;
  service: string;
  /** Transforms each line, its line end included. */
  shape?: (line: string) => string;
  onDrop?: () => void;
}

/**
 * Writes lines asynchronously, and flushes the rest when the process exits. After the reader has caught up with a full buffer, one line reports how
 * many were dropped.
 * @param onDrop called for each dropped line
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
  // An unwritable log, such as a closed terminal, must not end the process.
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
