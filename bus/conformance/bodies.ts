import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Bus } from '../bus.ts';
import { Collector, START, type UnderTest } from './under-test.ts';

/** Edge cases, by what is odd about them. */
const ODD_BODIES: Record<string, string> = {
  'the empty text': '',
  'an escaped U+0000 inside JSON': '{"text":"a\\u0000b"}',
  'U+0000 and U+0001 as they are': 'a\u0000b\u0001c\u00010d\u00011',
  'an emoji': '{"text":"\u{1f600} \u00e9"}',
  'a lone surrogate as a JSON escape': '{"text":"\\ud83d"}',
  'quotes, backslashes, braces and line ends': '{"a\\\\"}\',NULL,\r\n\t$1',
  'a text like a reference to a blob': 'blob:01ARZ3NDEKTSV4RRFFQ69G5FAV',
  'a text like a marked text': 'text:blob:x',
};

const MEBIBYTE = 1024 * 1024;

/** Characters of one to four bytes. */
function textOfSize(sizeBytes: number): string {
  const piece = 'abc\u00e9\u20ac\u{1f600}"\\'; // 3 + 2 + 3 + 4 + 2 bytes
  return piece.repeat(Math.ceil(sizeBytes / Buffer.byteLength(piece)));
}

/** Compared instead of the texts: a failed comparison would print 30 MiB. */
function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

async function throughCommands(bus: Bus, bodies: string[]): Promise<string[]> {
  const collected = new Collector<string>();
  bus.commands.read(1, START, async (commands) => {
    for (const { body } of commands) collected.add(body);
  });
  for (const [index, body] of bodies.entries()) {
    const { sequence } = await bus.commands.append(1, `m${index}`, body);
    const found = await bus.commands.at(sequence);
    expect(digestOf(found?.body ?? 'nothing')).toBe(digestOf(body));
  }
  return collected.atLeast(bodies.length);
}

async function throughWork(bus: Bus, bodies: string[]): Promise<string[]> {
  const collected = new Collector<[string, string]>();
  bus.work.consume('router.call', { concurrency: 2, ackWaitMs: 60_000 }, async (item) => {
    await item.ack();
    collected.add([item.messageId, item.body]);
  });
  for (const [index, body] of bodies.entries()) await bus.work.publish('router.call', `w${index}`, body);
  const byId = new Map(await collected.atLeast(bodies.length));
  return bodies.map((_, index) => byId.get(`w${index}`) ?? 'nothing');
}

export function bodyCases(underTest: UnderTest): void {
  describe.each([
    { by: 'commands', through: throughCommands },
    { by: 'work', through: throughWork },
  ])('bodies by $by', ({ through }) => {
    it.each(Object.entries(ODD_BODIES))('come back as they went in: %s', async (_, body) => {
      expect(await through(underTest().bus, [body])).toEqual([body]);
    });

    it('come back as they went in: a text that looks like a reference to another blob', async () => {
      const { bus } = underTest();
      const body = `blob:${await bus.blobs.put(Buffer.from('a secret'))}`;

      expect(await through(bus, [body])).toEqual([body]);
    });

    it('DESIGN 3: bodies come back in order when small, large and very large ones follow each other', async () => {
      const bodies = ['small', textOfSize(600 * 1024), 'x'.repeat(512 * 1024), textOfSize(30 * MEBIBYTE), 'last'];

      expect((await through(underTest().bus, bodies)).map(digestOf)).toEqual(bodies.map(digestOf));
    });
  });

  it('refuses a body of more than 32 MiB', async () => {
    const { bus } = underTest();
    const body = 'x'.repeat(32 * MEBIBYTE + 1);

    await expect(bus.commands.append(1, 'm1', body)).rejects.toMatchObject({ code: 'bus.body_too_large' });
    await expect(bus.work.publish('router.call', 'w1', body)).rejects.toMatchObject({ code: 'bus.body_too_large' });
  });
}
