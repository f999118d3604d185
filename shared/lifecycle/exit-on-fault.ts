import type { Log } from '../telemetry/log.ts';

/**
 * Ends the process at an error that nobody caught, also one of a promise: what state it left behind is unknown, and everything that was
 * accepted is stored, so that the next process goes on where this one was. The log says what it was, with secrets masked.
 */
export function exitOnFault(log: Log): void {
  process.on('uncaughtException', (error, origin) => {
    log.error({ err: error, origin }, 'a fault that nobody caught: the process ends');
    process.exit(1);
  });
}
