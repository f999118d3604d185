import { randomInt } from 'node:crypto';

const CALL_ID_LENGTH = 24;
const ALPHANUMERIC = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** For tool calls of upstreams that give none. */
export function newCallId(): string {
  let id = 'call_';
  for (let index = 0; index < CALL_ID_LENGTH; index += 1) id += ALPHANUMERIC[randomInt(ALPHANUMERIC.length)];
  return id;
}
