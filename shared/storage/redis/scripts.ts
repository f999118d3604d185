import { createHash } from 'node:crypto';

/** A Lua script that Redis runs atomically. */
export interface Script {
  text: string;
  /** The name that EVALSHA takes. */
  sha1: string;
}

/**
 * Only the first addition sets the time to live. Arguments per key: addend, milliseconds. Returns the sums as text, since the client's parser rounds large
 * integers, and the error's text where a key can't be added to: the other additions are made.
 */
export const addToCounters = script(`
local sums = {}
for index, key in ipairs(KEYS) do
  local added = redis.pcall('INCRBY', key, ARGV[2 * index - 1])
  if type(added) == 'table' then
    sums[index] = added.err
  else
    if redis.call('PTTL', key) < 0 then redis.call('PEXPIRE', key, ARGV[2 * index]) end
    sums[index] = redis.call('GET', key)
  end
end
return sums`);

/**
 * Slots are a sorted set of owners, scored by expiry in the server's time: clock skew between processes has no effect. Arguments: limit,
 * milliseconds, owners. Returns how many of the owners have a slot.
 */
export const acquireSlots = script(`
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', nowMs)
local taken = 0
for index = 3, #ARGV do
  if redis.call('ZSCORE', KEYS[1], ARGV[index]) or redis.call('ZCARD', KEYS[1]) < tonumber(ARGV[1]) then
    redis.call('ZADD', KEYS[1], nowMs + ARGV[2], ARGV[index])
    taken = taken + 1
  end
end
if taken > 0 then redis.call('PEXPIREAT', KEYS[1], redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]) end
return taken`);

function script(text: string): Script {
  return { text, sha1: createHash('sha1').update(text).digest('hex') };
}
