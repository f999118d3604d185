import type { Log } from '../telemetry/log.ts';

/**
 * Logs an uncaught exception or unhandled rejection and ends the process: its state is unknown, and the next process continues everything that was
 * accepted.
 */
export function exitOnFault(log: Log): void {
  process.on('uncaughtException', (error, origin) => {
    log.error({ err: error, origin }, 'uncaught exception or unhandled rejection: exiting');
    process.exit(1);
  });
}
