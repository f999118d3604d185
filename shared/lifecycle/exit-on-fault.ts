import type { Log } from '../telemetry/log.ts';

/**
 * Ends the process on an uncaught exception or unhandled rejection, and logs it with secrets masked: the process's state is unknown, while
 * everything accepted is stored and continued by the next process.
 */
export function exitOnFault(log: Log): void {
  process.on('uncaughtException', (error, origin) => {
    log.error({ err: error, origin }, 'a fault that nobody caught: the process ends');
    process.exit(1);
  });
}
