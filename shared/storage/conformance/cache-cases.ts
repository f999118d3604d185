import { expect, it } from 'vitest';
import { type Cache, cacheLimits } from '../cache.ts';

/** Longer than any test. */
const LONG_MS = 60_000;

export function valueCases(name: string, cache: () => Cache, advance: (ms: number) => Promise<void>): void {
  it(`${name}: has nothing under a key that was never set`, async () => {
    expect(await cache().get('unknown')).toBeNull();
    await cache().delete('unknown');
  });

  it(`${name}: refuses keys and values beyond the limits`, async () => {
    const longKey = 'k'.repeat(cacheLimits.keyCharacters);
    const longValue = 'v'.repeat(cacheLimits.valueCharacters);

    await expect(cache().get(`${longKey}k`)).rejects.toThrow(RangeError);
    await expect(cache().set('key', `${longValue}v`, LONG_MS)).rejects.toThrow(RangeError);
    await cache().set(longKey, longValue, LONG_MS);
    expect((await cache().get(longKey)) === longValue).toBe(true);
  });

  it(`${name}: holds keys and values at the limits, in any script`, async () => {
    for (const letter of ['v', 'ü', '漢', '\u0000', '"', '\ud800']) {
      const key = letter.repeat(cacheLimits.keyCharacters);
      const value = letter.repeat(cacheLimits.valueCharacters);
      await cache().set(key, value, LONG_MS);
      expect((await cache().get(key)) === value).toBe(true);
      expect(await cache().get(key.slice(1))).toBeNull();
    }
  });

  it(`${name}: refuses a time to live that is no number`, async () => {
    for (const ttlMs of [Number.NaN, Number.POSITIVE_INFINITY]) {
      await expect(cache().set('value', 'value', ttlMs)).rejects.toThrow(RangeError);
      await expect(cache().increment('counter', 1, ttlMs)).rejects.toThrow(RangeError);
      await expect(cache().acquireSlot('slots', 'me', 1, ttlMs)).rejects.toThrow(RangeError);
    }
    expect(await cache().get('value')).toBeNull();
    expect(await cache().get('counter')).toBeNull();
    expect(await cache().acquireSlot('slots', 'you', 1, LONG_MS)).toBe(true);
  });

  it(`${name}: takes a time to live of centuries, or of a fraction of a millisecond`, async () => {
    await cache().set('value', 'kept', 1e18);
    await cache().increment('counter', 1, 1e18);
    await cache().acquireSlot('slots', 'me', 1, 1e18);
    await cache().set('fraction', 'kept', LONG_MS + 0.5);

    expect(await cache().get('value')).toBe('kept');
    expect(await cache().increment('counter', 1, LONG_MS)).toBe(2);
    expect(await cache().acquireSlot('slots', 'you', 1, LONG_MS)).toBe(false);
    expect(await cache().get('fraction')).toBe('kept');
  });

  it(`${name}: refuses everything after it was closed`, async () => {
    await cache().close();

    const attempts: Promise<unknown>[] = [
      cache().get('a'),
      cache().getMany(['a']),
      cache().set('a', 'b', LONG_MS),
      cache().delete('a'),
      cache().increment('a', 1, LONG_MS),
    ];
    attempts.push(cache().acquireSlot('a', 'me', 1, LONG_MS), cache().extendSlots('a', ['me'], 1, LONG_MS), cache().releaseSlot('a', 'me'));
    for (const attempt of await Promise.allSettled(attempts)) expect(attempt).toMatchObject({ reason: { code: 'storage.closed' } });
  });

  it(`${name}: forgets a value when its time is over, and takes a time under 1 ms for 1 ms`, async () => {
    await cache().set('short', 'value', 50);
    await cache().set('shorter', 'value', 0);
    await cache().set('long', 'value', LONG_MS);

    await advance(80);

    expect(await cache().get('short')).toBeNull();
    expect(await cache().get('shorter')).toBeNull();
    expect(await cache().get('long')).toBe('value');
  });

  it(`${name}: counts the time to live from the last set`, async () => {
    await cache().set('key', 'first', 500);
    await cache().set('key', 'second', LONG_MS);

    await advance(600);

    expect(await cache().get('key')).toBe('second');
  });

  it(`${name}: returns any text as it was set, and nothing after its deletion`, async () => {
    for (const value of ['', 'Zürich 🦊\n\u0000', '12', '-3', '="quoted"', '"', 'a\ud800b\udfff', '\udc00\ud800']) {
      await cache().set('key: with spaces, ü and *', value, LONG_MS);
      expect(await cache().get('key: with spaces, ü and *')).toBe(value);
    }

    await cache().delete('key: with spaces, ü and *');
    expect(await cache().get('key: with spaces, ü and *')).toBeNull();
  });

  it(`${name}: reads several keys at once, each as by itself, and slots as nothing`, async () => {
    await cache().set('ü \ud800', 'Zürich \ud800', LONG_MS);
    await cache().set('short', 'value', 50);
    await cache().increment('counter', 7, LONG_MS);
    await cache().acquireSlot('slots', 'me', 1, LONG_MS);
    expect(await cache().getMany([])).toEqual([]);
    expect(await cache().getMany(['unknown', 'counter', 'ü \ud800', 'short', 'slots', 'counter'])).toEqual([null, '7', 'Zürich \ud800', 'value', null, '7']);

    await advance(80);

    expect(await cache().getMany(['short', 'counter'])).toEqual([null, '7']);
    const most = Array.from({ length: cacheLimits.keysAtOnce }, (_, index) => `k${index}`);
    expect(await cache().getMany(most)).toHaveLength(most.length);
    await expect(cache().getMany([...most, 'one more'])).rejects.toThrow(RangeError);
    await expect(cache().getMany(['k'.repeat(cacheLimits.keyCharacters + 1)])).rejects.toThrow(RangeError);
  });

  it(`${name}: distinguishes keys with any difference`, async () => {
    const keys = ['', 'a', 'A', ' a', 'a ', '"a"', '=a', 'a\u0000', '\ud800', '\ud801', '\ufffd', '"\\ud800"', 'e\u0301', 'é'];
    for (const [index, key] of keys.entries()) await cache().set(key, `value ${index}`, LONG_MS);

    expect(await Promise.all(keys.map((key) => cache().get(key)))).toEqual(keys.map((_, index) => `value ${index}`));
  });

  it(`${name}: refuses to use an entry as another kind than it is, and leaves it as it was`, async () => {
    await cache().set('value', '1', LONG_MS);
    await cache().increment('counter', 1, LONG_MS);
    await cache().acquireSlot('slots', 'me', 1, LONG_MS);

    await expect(cache().get('slots')).rejects.toThrow(TypeError);
    for (const key of ['value', 'slots']) await expect(cache().increment(key, 1, LONG_MS)).rejects.toThrow(TypeError);
    for (const key of ['value', 'counter']) {
      await expect(cache().acquireSlot(key, 'me', 1, LONG_MS)).rejects.toThrow(TypeError);
      await expect(cache().releaseSlot(key, 'me')).rejects.toThrow(TypeError);
    }
    expect(await cache().get('value')).toBe('1');
    expect(await cache().increment('counter', 1, LONG_MS)).toBe(2);
    expect(await cache().acquireSlot('slots', 'you', 1, LONG_MS)).toBe(false);
  });

  it(`${name}: lets a set take a key over from any other kind`, async () => {
    await cache().increment('counter', 1, LONG_MS);
    await cache().acquireSlot('slots', 'me', 1, LONG_MS);

    for (const key of ['counter', 'slots']) {
      await cache().set(key, 'value', LONG_MS);
      expect(await cache().get(key)).toBe('value');
    }
  });
}

export function counterCases(name: string, cache: () => Cache, advance: (ms: number) => Promise<void>): void {
  it(`${name}: refuses to add what is no whole number, or more than a number can hold`, async () => {
    for (const by of [0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) await expect(cache().increment('hits', by, LONG_MS)).rejects.toThrow(RangeError);
    expect(await cache().get('hits')).toBeNull();
    expect(await cache().increment('hits', Number.MAX_SAFE_INTEGER, LONG_MS)).toBe(Number.MAX_SAFE_INTEGER);
  });

  it(`${name}: starts a counter's time to live with its first addition only`, async () => {
    expect(await cache().increment('hits', 2, 500)).toBe(2);
    expect(await cache().increment('hits', 3, LONG_MS)).toBe(5);

    await advance(600);

    expect(await cache().get('hits')).toBeNull();
    expect(await cache().increment('hits', 7, LONG_MS)).toBe(7);
  });

  it(`${name}: adds what comes at once without losing any`, async () => {
    const sums = await Promise.all(Array.from({ length: 50 }, () => cache().increment('hits', 2, LONG_MS)));

    expect([...sums].sort((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, index) => 2 * (index + 1)));
  });

  it(`${name}: makes additions to several counters at once, each with its time to live, and refuses only those to other kinds`, async () => {
    await cache().set('value', 'text', LONG_MS);
    const additions = { one: 1, value: 1, short: 3, two: -2 };
    const results = await Promise.allSettled(Object.entries(additions).map(([key, by]) => cache().increment(key, by, key === 'short' ? 50 : LONG_MS)));
    expect(results).toMatchObject([{ value: 1 }, { reason: expect.any(TypeError) }, { value: 3 }, { value: -2 }]);

    await advance(80);

    expect(await cache().getMany(Object.keys(additions))).toEqual(['1', 'text', null, '-2']);
  });

  it(`${name}: counts downwards too, shows a counter as text, and begins anew after its deletion`, async () => {
    await cache().increment('hits', 5, LONG_MS);
    expect(await cache().increment('hits', -7, LONG_MS)).toBe(-2);
    expect(await cache().get('hits')).toBe('-2');

    await cache().delete('hits');
    expect(await cache().increment('hits', 1, LONG_MS)).toBe(1);
  });
}

export function slotCases(name: string, cache: () => Cache, advance: (ms: number) => Promise<void>): void {
  it(`${name}: gives no more slots than the limit, however many ask at once`, async () => {
    const taken = await Promise.all(Array.from({ length: 10 }, (_, index) => cache().acquireSlot('calls', `owner-${index}`, 3, LONG_MS)));

    expect(taken.filter(Boolean)).toHaveLength(3);
  });

  it(`${name}: extends the slot of an owner that has one already, also when all are taken or the limit was lowered`, async () => {
    expect(await cache().acquireSlot('calls', 'me', 2, 500)).toBe(true);
    expect(await cache().acquireSlot('calls', 'you', 2, 500)).toBe(true);
    expect(await cache().acquireSlot('calls', 'me', 1, LONG_MS)).toBe(true);

    await advance(600);

    expect(await cache().acquireSlot('calls', 'other', 1, LONG_MS)).toBe(false);
  });

  it(`${name}: frees a slot that was not prolonged`, async () => {
    await cache().acquireSlot('calls', 'dead', 2, 50);
    await cache().acquireSlot('calls', 'alive', 2, LONG_MS);

    await advance(80);

    expect(await cache().acquireSlot('calls', 'next', 2, LONG_MS)).toBe(true);
    expect(await cache().acquireSlot('calls', 'one too many', 2, LONG_MS)).toBe(false);
  });

  it(`${name}: extends the slots of many owners at once, and gives free ones to owners without one`, async () => {
    const owners = Array.from({ length: 1_200 }, (_, index) => `owner ${index} \ud800`);
    await cache().acquireSlot('calls', 'short', 1_202, 300);
    await cache().extendSlots('calls', ['short', ...owners], 1_202, LONG_MS);
    expect(await cache().acquireSlot('calls', 'last', 1_202, LONG_MS)).toBe(true);
    await cache().extendSlots('calls', ['one too many'], 1_202, LONG_MS);
    await cache().extendSlots('calls', [], 1_202, LONG_MS);

    await advance(400);

    expect(await cache().acquireSlot('calls', 'next', 1_202, LONG_MS)).toBe(false);
    for (const owner of ['short', owners[0] ?? '', owners.at(-1) ?? '']) await cache().releaseSlot('calls', owner);
    for (const owner of ['a', 'b', 'c']) expect(await cache().acquireSlot('calls', owner, 1_202, LONG_MS)).toBe(true);
    expect(await cache().acquireSlot('calls', 'd', 1_202, LONG_MS)).toBe(false);
  });

  it(`${name}: frees a released slot, and nothing for an owner without one`, async () => {
    await cache().releaseSlot('calls', 'unknown');
    await cache().acquireSlot('calls', 'me', 1, LONG_MS);
    await cache().releaseSlot('calls', 'other');
    expect(await cache().acquireSlot('calls', 'you', 1, LONG_MS)).toBe(false);

    await cache().releaseSlot('calls', 'me');
    expect(await cache().acquireSlot('calls', 'you', 1, LONG_MS)).toBe(true);
  });

  it(`${name}: keeps slots of different keys apart, and frees all of a key that is deleted`, async () => {
    await cache().acquireSlot('one', 'me', 1, LONG_MS);
    expect(await cache().acquireSlot('two', 'you', 1, LONG_MS)).toBe(true);
    expect(await cache().acquireSlot('one', 'you', 1, LONG_MS)).toBe(false);

    await cache().delete('one');
    expect(await cache().acquireSlot('one', 'you', 1, LONG_MS)).toBe(true);
  });

  it(`${name}: gives a slot back to be taken by others as often as they like`, async () => {
    for (let round = 0; round < 20; round += 1) {
      expect(await cache().acquireSlot('calls', `call ${round} \ud800`, 1, LONG_MS)).toBe(true);
      await cache().releaseSlot('calls', `call ${round} \ud800`);
    }
  });

  it(`${name}: takes acquisitions and releases that come at once: what is released is free for others, and an owner that releases its slot has none`, async () => {
    await cache().acquireSlot('calls', 'before', 2, LONG_MS);
    const [, first, , second, lower, other] = await Promise.all([
      cache().releaseSlot('calls', 'before'),
      cache().acquireSlot('calls', 'first', 2, LONG_MS),
      cache().releaseSlot('calls', 'first'),
      cache().acquireSlot('calls', 'second', 2, LONG_MS),
      cache().acquireSlot('calls', 'third', 1, LONG_MS),
      cache().acquireSlot('others', 'first', 1, LONG_MS),
    ]);
    expect([first, second, lower, other]).toEqual([true, true, false, true]);
    expect(await cache().acquireSlot('calls', 'third', 2, LONG_MS)).toBe(true);
    expect(await cache().acquireSlot('calls', 'fourth', 2, LONG_MS)).toBe(false);
  });

  it(`${name}: gives no slot at all under a limit of none`, async () => {
    expect(await cache().acquireSlot('calls', 'me', 0, LONG_MS)).toBe(false);
  });
}
