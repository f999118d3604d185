import { describe, expect, it } from 'vitest';
import { QueryCount } from './count-queries.mjs';

/** A message of a PostgreSQL client: its type, its length, its body. */
function message(kind: string, body: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(4 + body.length);
  return Buffer.concat([Buffer.from(kind), length, Buffer.from(body)]);
}

const start = message('', '\0\x03\0\0user\0bench\0\0');
const prepared = ['P', 'B', 'D', 'E', 'S'].map((kind) => message(kind, kind === 'S' ? '' : 'QQQQEEEE'));
const conversation = Buffer.concat([start, message('Q', 'select 1\0'), ...prepared, message('Q', 'select 2\0'), message('X', '')]);

describe('the count of queries', () => {
  it('counts simple queries and executions, and nothing that only looks like one', () => {
    const count = new QueryCount();
    count.push(conversation);

    expect(count.count).toBe(3);
  });

  it('counts the same however the bytes are split', () => {
    for (const size of [1, 2, 3, 7, 16]) {
      const count = new QueryCount();
      for (let at = 0; at < conversation.length; at += size) count.push(conversation.subarray(at, at + size));

      expect(count.count, `pieces of ${size}`).toBe(3);
    }
  });
});
