import { crc32 } from 'node:zlib';
import { EventStreamCodec } from '@smithy/eventstream-codec';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { FrameReader } from './frames.ts';

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes as Uint8Array).toString(),
  (text) => Buffer.from(text),
);
const frame = (body: string) => Buffer.from(codec.encode({ headers: { ':event-type': { type: 'string', value: 'a' } }, body: Buffer.from(body) }));

/** What a reader makes of bytes in pieces of a size. */
function read(bytes: Buffer, pieceBytes: number) {
  const reader = new FrameReader();
  const bodies: string[] = [];
  for (let at = 0; at < bytes.length; at += pieceBytes) reader.read(bytes.subarray(at, at + pieceBytes), (one) => bodies.push(one.text));
  return { bodies, isCut: reader.isCut };
}

describe('frames', () => {
  const bodies = ['{"text":"Grüße"}', '', '日本', 'x'.repeat(300)];
  const bytes = Buffer.concat(bodies.map(frame));

  it.each([1, 2, 3, 5, 7, 11, 12, 13, 16, 17, 64, 333, bytes.length])('are the same from pieces of %i bytes', (pieceBytes) => {
    expect(read(bytes, pieceBytes)).toEqual({ bodies, isCut: false });
  });

  it('have their own headers, also behind a frame with others', () => {
    const typed = (value: string) => Buffer.from(codec.encode({ headers: { ':event-type': { type: 'string', value } }, body: Buffer.from('x') }));
    const other = Buffer.from(codec.encode({ headers: { ':count': { type: 'integer', value: 1 } }, body: Buffer.from('x') }));
    const headers: unknown[] = [];
    new FrameReader().read(Buffer.concat([typed('a'), typed('a'), typed('b'), other, typed('a')]), (one) => headers.push(Object.fromEntries(one.headers)));
    expect(headers).toEqual([{ ':event-type': 'a' }, { ':event-type': 'a' }, { ':event-type': 'b' }, {}, { ':event-type': 'a' }]);
  });

  it('that are long are copied a few times, whatever their pieces', () => {
    const bytes = frame('x'.repeat(1024 * 1024));
    const allocate = vi.spyOn(Buffer, 'allocUnsafe');
    onTestFinished(() => allocate.mockRestore());
    expect(read(bytes, 1_024)).toEqual({ bodies: ['x'.repeat(1024 * 1024)], isCut: false });
    expect(allocate.mock.calls.length).toBeLessThanOrEqual(12);
  });

  it('are copied from their pieces, so that many small ones take the memory of their bytes', () => {
    const reader = new FrameReader();
    const piece = Buffer.alloc(1);
    const found: string[] = [];
    for (const byte of bytes) {
      piece[0] = byte;
      reader.read(piece, ({ text }) => found.push(text));
    }
    expect(found).toEqual(bodies);
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
      expect(() => reader.read(Buffer.concat([good, damaged]), (one) => seen.push(one.text))).toThrow(SyntaxError);
      expect(seen).toEqual(['good']);
    }
  });

  it.each([0, 15, 16 * 1024 * 1024 + 1, 0xffff_ffff])('that state %i bytes are refused before more is held', (length) => {
    const head = Buffer.alloc(12);
    head.writeUInt32BE(length);
    // Whatever its checksum.
    expect(() => new FrameReader().read(head, () => {})).toThrow(new SyntaxError(`a frame of ${length} bytes`));
  });

  it('with a damaged length are refused before the frame is waited for', () => {
    const head = Buffer.from(frame('x').subarray(0, 12));
    head.writeUInt32BE(5_000_000);
    expect(() => new FrameReader().read(head, () => {})).toThrow(SyntaxError);
  });

  it('whose headers are longer than they are, or can not be read, are refused', () => {
    for (const [headerBytes, body] of [
      [40, 'x'.repeat(20)],
      [20, 'x'.repeat(20)],
    ] as const) {
      const bytes = Buffer.concat([Buffer.alloc(12), Buffer.from(body), Buffer.alloc(4)]);
      bytes.writeUInt32BE(bytes.length);
      bytes.writeUInt32BE(headerBytes, 4);
      bytes.writeUInt32BE(crc32(bytes.subarray(0, 8)), 8);
      bytes.writeUInt32BE(crc32(bytes.subarray(0, -4)), bytes.length - 4);
      expect(() => new FrameReader().read(bytes, () => {})).toThrow(SyntaxError);
    }
  });

  it('whose headers state more bytes than they have are refused: what is behind them in memory is not read', () => {
    const head = Buffer.concat([Buffer.from([4]), Buffer.from('name'), Buffer.from([7, 0, 64]), Buffer.from('short')]);
    const bytes = Buffer.concat([Buffer.alloc(12), head, Buffer.alloc(100), Buffer.alloc(4)]);
    bytes.writeUInt32BE(bytes.length);
    bytes.writeUInt32BE(head.length, 4);
    bytes.writeUInt32BE(crc32(bytes.subarray(0, 8)), 8);
    bytes.writeUInt32BE(crc32(bytes.subarray(0, -4)), bytes.length - 4);
    for (let times = 0; times < 10; times += 1) {
      expect(() => new FrameReader().read(bytes, () => {})).toThrow(new SyntaxError('headers that can not be read'));
    }
  });
});
