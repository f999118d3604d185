import { expect, it } from 'vitest';
import { memoryCache } from '../storage/memory/memory-cache.ts';
import { addressTries } from './address-tries.ts';

const clock = { nowMs: () => 1_800_000_000_000 };

it.each([
  ['2001:db8::1', '2001:db8::2', 'one'],
  ['2001:db8:0:0:1::1', '2001:DB8::ffff:0:0:1%eth0', 'one'],
  ['2001:db8:0:1::1', '2001:db8:0:2::1', 'two'],
  ['::1', '::1:0:0:1', 'one'],
  ['192.0.2.1', '::ffff:192.0.2.1', 'one'],
  ['192.0.2.1', '::ffff:c000:201', 'one'],
  ['192.0.2.1', '64:ff9b::192.0.2.1', 'one'],
  ['64:ff9b::192.0.2.1', '64:ff9b::192.0.2.2', 'two'],
  ['64:ff9b:1::192.0.2.1', '64:ff9b:1::192.0.2.2', 'one'],
  ['192.0.2.1', '192.0.2.2', 'two'],
  ['::ffff:192.0.2.1', '::ffff:192.0.2.2', 'two'],
])('counts the tries from %s and from %s as those of %s', async (first, second, clients) => {
  const caches = [memoryCache({ clock }), null];
  for (const cache of caches) {
    const count = addressTries({ prefix: 'test', perMinute: 1, cache, clock });
    await count(first);
    const outcome = await count(second).then(
      () => 'two',
      (error) => error.code,
    );
    expect(outcome).toBe(clients === 'two' ? 'two' : 'request.rate_limited');
  }
});
