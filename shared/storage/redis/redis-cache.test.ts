import type { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { redisCache } from './redis-cache.ts';

it('rejects each release of a tick whose command throws before it is sent', async () => {
  const redis = {
    status: 'connecting',
    zrem: () => {
      throw new Error('no such command');
    },
  };
  const cache = redisCache(redis as unknown as Redis, 'redis');
  const released = ['a', 'b'].map((owner) => cache.releaseSlot('key', owner));
  expect((await Promise.allSettled(released)).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
});
