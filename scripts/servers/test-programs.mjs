import { ensurePrograms } from './programs.mjs';

/** Finds or installs the programs that tests run. @param {(line: string) => void} [print] */
export function ensureTestPrograms(print = console.log) {
  return ensurePrograms(['nats', 'redis', 'postgresBin', 'chromium'], { purpose: 'The tests run against the real servers', print });
}
