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
 * milliseconds, owners. Returns for each owner 1 when it has a slot, else 0.
 */
export const acquireSlots = script(`
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', nowMs)
local limit, untilMs = tonumber(ARGV[1]), nowMs + ARGV[2]
local taken = redis.call('ZCARD', KEYS[1])
local answers, isChanged = {}, false
for index = 3, #ARGV do
  local owner = ARGV[index]
  if taken < limit or redis.call('ZSCORE', KEYS[1], owner) then
    taken = taken + redis.call('ZADD', KEYS[1], untilMs, owner)
    answers[index - 2], isChanged = 1, true
  else
    answers[index - 2] = 0
  end
end
if isChanged then redis.call('PEXPIREAT', KEYS[1], redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]) end
return answers`);

function script(text: string): Script {
  return { text, sha1: createHash('sha1').update(text).digest('hex') };
}
