import { EventStreamCodec } from '@smithy/eventstream-codec';
import { describe, expect, it } from 'vitest';
import { FrameReader, textOf } from './frames.ts';

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes as Uint8Array).toString(),
  (text) => Buffer.from(text),
);
const frame = (body: string) => Buffer.from(codec.encode({ headers: { ':event-type': { type: 'string', value: 'a' } }, body: Buffer.from(body) }));

/** What a reader makes of bytes in pieces of a size. */
function read(bytes: Buffer, pieceBytes: number) {
  const reader = new FrameReader();
  const bodies: string[] = [];
  for (let at = 0; at < bytes.length; at += pieceBytes) reader.read(bytes.subarray(at, at + pieceBytes), (one) => bodies.push(textOf(one)));
  return { bodies, isCut: reader.isCut };
}

describe('frames', () => {
  const bodies = ['{"text":"Grüße"}', '', '日本', 'x'.repeat(300)];
  const bytes = Buffer.concat(bodies.map(frame));

  it.each([1, 2, 3, 5, 7, 11, 12, 13, 16, 17, 64, 333, bytes.length])('are the same from pieces of %i bytes', (pieceBytes) => {
    expect(read(bytes, pieceBytes)).toEqual({ bodies, isCut: false });
  });

  it('have their headers', () => {
    const names: (string | null)[] = [];
    new FrameReader().read(frame('x'), (one) => names.push(one.header(':event-type'), one.header(':other')));
    expect(names).toEqual(['a', null]);
  });

  it.each([1, 4, 12, 15])('that end early are known to be cut (%i bytes less)', (missing) => {
    expect(read(bytes.subarray(0, bytes.length - missing), 7)).toEqual({ bodies: bodies.slice(0, -1), isCut: true });
  });

  it('with any changed bit are refused, and those before them are read', () => {
    const good = frame('good');
    const bad = frame('bad');
    for (let at = 4; at < bad.length; at += 1) {
      const damaged = Buffer.from(bad);
      damaged[at] = (damaged[at] ?? 0) ^ 1;
      const seen: string[] = [];
      const reader = new FrameReader();
      expect(() => reader.read(Buffer.concat([good, damaged]), (one) => seen.push(textOf(one)))).toThrow(SyntaxError);
      expect(seen).toEqual(['good']);
    }
  });

  it.each([0, 15, 16 * 1024 * 1024 + 1, 0xffff_ffff])('that state %i bytes are refused before more is held', (length) => {
    const head = Buffer.alloc(12);
    head.writeUInt32BE(length);
    expect(() => new FrameReader().read(head, () => {})).toThrow(new SyntaxError(`a frame of ${length} bytes`));
  });
});
