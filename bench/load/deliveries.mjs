import { createHmac, randomUUID } from 'node:crypto';
import { ask, lastingConnection, requestBytes } from '../http/request.mjs';
import { closedLoop } from './closed-loop.mjs';

/**
 * @typedef {object} DeliveryLoad
 * @property {import('../http/connection.mjs').Address} address
 * @property {{ path: string, secret: string }} webhook of a routine, signed with `sha256` in `x-signature`
 * @property {number | null} repeated how many deliveries are posted again and again; null: each is new
 */

const BODY_BYTES = 4_096;

/**
 * Posts deliveries of 4 KiB.
 *
 * @param {DeliveryLoad & Omit<import('./closed-loop.mjs').LoopLoad, 'openSlot'>} load
 */
export function deliveries({ address, webhook: { path, secret }, repeated, ...loop }) {
  const next = () => {
    const body = JSON.stringify({ id: randomUUID() }).replace('}', `,"text":"`);
    const whole = `${body.padEnd(BODY_BYTES - 2, 'x')}"}`;
    const headers = { 'x-signature': createHmac('sha256', secret).update(whole).digest('hex') };
    return requestBytes({ address, path, headers, body: whole });
  };
  const kept = Array.from({ length: repeated ?? 0 }, next);
  let at = 0;
  return closedLoop({
    ...loop,
    openSlot: () => {
      const lasting = lastingConnection(address);
      return {
        run: async () => {
          at += 1;
          const request = kept[at % kept.length] ?? next();
          const { status, text } = await ask(await lasting.get(), request);
          if (status !== 202 && !(repeated !== null && status === 200)) throw new Error(`answered ${status}: ${text}`);
        },
        leave: lasting.leave,
      };
    },
  });
}
