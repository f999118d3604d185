import { createHash } from 'node:crypto';

/** A program for Redis, which runs it as one step among all clients. */
export interface Script {
  text: string;
  /** By which Redis knows it once it has seen the text. */
  sha1: string;
}

/**
 * The first addition starts the time to live. Arguments: addend, milliseconds. Answers the sum, as text: the library's reader of integers
 * rounds the largest that a number can hold.
 */
export const addToCounter = script(`
redis.call('INCRBY', KEYS[1], ARGV[1])
if redis.call('PTTL', KEYS[1]) < 0 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return redis.call('GET', KEYS[1])`);

/**
 * Slots are a sorted set: a holder's score is the instant until which it has its slot, by the server's clock, so that the clocks of
 * processes mean nothing. Arguments: holder, limit, milliseconds. Answers 1 when the holder has a slot now.
 */
export const acquireSlot = script(`
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', nowMs)
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], nowMs + ARGV[3], ARGV[1])
redis.call('PEXPIREAT', KEYS[1], redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2])
return 1`);

function script(text: string): Script {
  return { text, sha1: createHash('sha1').update(text).digest('hex') };
}
