import { describe, expect, it, vi } from 'vitest';
import { Exchange } from './exchange.ts';

const controller = () => ({ aborted: false, paused: false, reason: null, abort: vi.fn(), pause: vi.fn(), resume: vi.fn() });
const read = async (exchange: Exchange) => {
  await exchange.news();
  return exchange.take()?.map(({ byteLength }) => byteLength) ?? null;
};
const piece = (sizeBytes: number) => new Uint8Array(sizeBytes);

describe('Exchange', () => {
  it('tells the pool at once of an abort that came while it waited for a connection', () => {
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
    await expect(read(exchange)).rejects.toBe(left);
    expect(pool.abort).not.toHaveBeenCalled();
  });

  it('passes over what only says that the response is on its way', async () => {
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

    expect(await read(exchange)).toEqual([256 * 1024, 1]);
    expect(pool.resume).toHaveBeenCalledTimes(1);
    exchange.onResponseData(pool, piece(2));
    exchange.onResponseEnd();
    expect(await read(exchange)).toEqual([2]);
    expect(await read(exchange)).toBeNull();
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
