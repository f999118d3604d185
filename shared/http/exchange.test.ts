import { describe, expect, it, vi } from 'vitest';
import { Exchange } from './exchange.ts';

const controller = () => ({ aborted: false, paused: false, reason: null, abort: vi.fn(), pause: vi.fn(), resume: vi.fn() });
/** Lengths of the pieces read, and how the reading ends. */
const reading = (exchange: Exchange, wantsMore: (received: number) => boolean = () => true) => {
  const received: number[] = [];
  const ended = exchange.read(({ byteLength }) => wantsMore(received.push(byteLength)));
  return { received, ended };
};
const piece = (sizeBytes: number) => Buffer.alloc(sizeBytes);

describe('Exchange', () => {
  it('reports to the pool at once an abort while it waited for a connection', () => {
    const [exchange, pool] = [new Exchange(), controller()];
    exchange.abort(new Error('left'));
    exchange.onRequestStart(pool);
    expect(pool.abort).toHaveBeenCalledTimes(1);
  });

  it('stops a connection that is begun for it after it was aborted', () => {
    const [exchange, stop] = [new Exchange(), vi.fn()];
    exchange.abort(new Error('left'));
    exchange.connecting(stop);
    expect(stop).toHaveBeenCalledTimes(1);
  });

  it('throws the reason of an abort also when the whole response has come, and leaves the connection alone', async () => {
    const [exchange, pool, left] = [new Exchange(), controller(), new Error('left')];
    exchange.onRequestStart(pool);
    exchange.onResponseStart(pool, 200, {});
    exchange.onResponseData(pool, piece(1));
    exchange.onResponseEnd();
    exchange.abort(left);
    const { received, ended } = reading(exchange);
    await expect(ended).rejects.toBe(left);
    expect(received).toEqual([]);
    expect(pool.abort).not.toHaveBeenCalled();
  });

  it('skips informational responses', async () => {
    const [exchange, pool] = [new Exchange(), controller()];
    exchange.onResponseStart(pool, 103, { link: 'x' });
    exchange.onResponseStart(pool, 200, { via: ['a', 'b'], age: '7' });
    await exchange.begun();
    expect([exchange.status, exchange.header('via'), exchange.header('age'), exchange.header('link')]).toEqual([200, 'a', '7', null]);
  });

  it('reads the connection no further while more than 256 KiB wait, and goes on once they are read', async () => {
    const [exchange, pool] = [new Exchange(), controller()];
    exchange.onRequestStart(pool);
    exchange.onResponseStart(pool, 200, {});
    exchange.onResponseData(pool, piece(256 * 1024));
    expect(pool.pause).not.toHaveBeenCalled();
    exchange.onResponseData(pool, piece(1));
    expect(pool.pause).toHaveBeenCalledTimes(1);

    // As undici's pool: held-back pieces, even the whole rest, arrive before `resume` returns.
    pool.resume.mockImplementation(() => {
      exchange.onResponseData(pool, piece(300 * 1024));
      exchange.onResponseEnd();
    });
    const { received, ended } = reading(exchange);
    expect(await ended).toBe(true);
    expect(received).toEqual([256 * 1024, 1, 300 * 1024]);
    expect(pool.pause).toHaveBeenCalledTimes(1);
  });

  it('delivers a body that had ended, or broken, before it was read', async () => {
    const [whole, broken, pool] = [new Exchange(), new Exchange(), controller()];
    for (const exchange of [whole, broken]) {
      exchange.onRequestStart(pool);
      exchange.onResponseStart(pool, 200, {});
      exchange.onResponseData(pool, piece(1));
    }
    whole.onResponseEnd();
    broken.onResponseError(pool, new Error('reset'));
    const [first, second] = [reading(whole), reading(broken)];
    expect(await first.ended).toBe(true);
    await expect(second.ended).rejects.toThrow('reset');
    expect([first.received, second.received]).toEqual([[1], [1]]);
  });

  it('delivers nothing more to a consumer that stops or throws', async () => {
    const [sated, failing, pool] = [new Exchange(), new Exchange(), controller()];
    const failed = new Error('too long');
    for (const exchange of [sated, failing]) {
      exchange.onRequestStart(pool);
      exchange.onResponseStart(pool, 200, {});
      for (const size of [1, 2, 3]) exchange.onResponseData(pool, piece(size));
    }
    const first = reading(sated, (received) => received < 2);
    const second = reading(failing, () => {
      throw failed;
    });
    for (const exchange of [sated, failing]) {
      exchange.onResponseData(pool, piece(4));
      exchange.onResponseEnd();
    }
    expect(await first.ended).toBe(false);
    await expect(second.ended).rejects.toBe(failed);
    expect([first.received, second.received]).toEqual([[1, 2], [1]]);
    expect(pool.abort).not.toHaveBeenCalled();
  });

  it('goes on when it is released, whatever waits', () => {
    const [exchange, pool] = [new Exchange(), controller()];
    exchange.onRequestStart(pool);
    exchange.onResponseStart(pool, 200, {});
    exchange.onResponseData(pool, piece(300 * 1024));
    exchange.release();
    expect(pool.resume).toHaveBeenCalledTimes(1);
    exchange.onResponseEnd();
    expect(pool.abort).not.toHaveBeenCalled();
  });
});
