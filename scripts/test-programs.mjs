import { ensurePrograms } from './programs.mjs';

/** The programs that tests run for real. @param {(line: string) => void} [say] */
export function ensureTestPrograms(say = console.log) {
  return ensurePrograms(['nats', 'redis', 'postgresBin', 'chromium'], { purpose: 'The tests run against the real servers', say });
}
