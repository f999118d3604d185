import { ask, lastingConnection } from '../http/request.mjs';
import { closedLoop } from './closed-loop.mjs';

/**
 * @typedef {object} WholeLoad
 * @property {import('../http/connection.mjs').Address} address
 * @property {Buffer} request
 * @property {(text: string) => boolean} isRight of the body of a 200
 */

/**
 * Repeats a request over keep-alive connections.
 *
 * @param {WholeLoad & Omit<import('./closed-loop.mjs').LoopLoad, 'openSlot'>} load
 */
export function wholeRequests({ address, request, isRight, ...loop }) {
  return closedLoop({
    ...loop,
    openSlot: () => {
      const lasting = lastingConnection(address);
      return {
        run: async () => {
          const { status, text } = await ask(await lasting.get(), request);
          if (status !== 200 || !isRight(text)) throw new Error(`answered ${status}: ${text}`);
        },
        leave: lasting.leave,
      };
    },
  });
}
